//! What pages of metrics tell of a server's memory and of its end: the agent's, and Triton's.

use std::collections::{BTreeMap, BTreeSet};

use dualplane_admission::server::Vram;
use dualplane_base::Class;
use dualplane_base::metrics::sample;
use dualplane_base::units::Bytes;
use dualplane_node::cgroup::{Limit, Memory};

/// VRAM on Triton's page: the fullest card.
pub(crate) fn vram_of(page: &str) -> Option<Vram> {
    let of = |name: &str| {
        let values =
            page.lines().filter(|l| l.starts_with(name)).filter_map(sample).filter(|(n, ..)| *n == name);
        values.map(|(_, labels, v, _)| (labels, v)).collect::<Vec<_>>()
    };
    let total = of("nv_gpu_memory_total_bytes");
    let used = of("nv_gpu_memory_used_bytes");
    let pairs =
        used.iter().filter_map(|(l, u)| Some((whole(*u)?, whole(total.iter().find(|(t, _)| t == l)?.1)?)));
    pairs.min_by_key(|(u, t)| t.saturating_sub(*u)).map(|(used, limit)| Vram { limit, used })
}

/// VRAM of a container's cards on the agent's page: the fullest of them, with whatever else is on it.
pub(crate) fn vram_of_agent(page: &str, container: &str) -> Option<Vram> {
    let who = who(container);
    let label = |labels: &[(String, String)], key: &str| {
        labels.iter().find(|(k, _)| k == key).map(|(_, v)| v.clone()).filter(|v| !v.is_empty())
    };
    let (mut own, mut sizes, mut free) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
    for line in page.lines().filter(|l| l.starts_with("dualplane_") && l.contains("gpu")) {
        let Some((name, labels, value, _)) = sample(line) else { continue };
        let Some(card) = label(&labels, "UUID") else { continue };
        match name {
            "dualplane_container_gpu_memory_used_bytes" | "dualplane_container_gpu_given"
                if who.iter().all(|(key, value)| label(&labels, key).as_deref() == *value) =>
            {
                own.insert(card);
            }
            "dualplane_gpu_memory_size_bytes" => drop(whole(value).map(|n| sizes.insert(card, n))),
            "dualplane_gpu_memory_free_bytes" => drop(whole(value).map(|n| free.insert(card, n))),
            _ => {}
        }
    }
    let of = |card| Some((*free.get(card)?, *sizes.get(card)?));
    let (free, limit) = own.iter().filter_map(of).min()?;
    Some(Vram { limit, used: limit.saturating_sub(free) })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be a count")]
pub(crate) fn whole(n: f64) -> Option<u64> {
    (n.is_finite() && n >= 0.0).then_some(n as u64)
}

/// Labels that say of whom a line of the agent's page is.
fn who(container: &str) -> [(&'static str, Option<&str>); 3] {
    let mut words = container.split('/').filter(|w| !w.is_empty());
    [("namespace", words.next()), ("pod", words.next()), ("container", words.next())]
}

/// When a container last died by the agent's page (milliseconds since 1970), and its class once that is judged.
pub(crate) fn last_incident(page: &str, container: &str) -> Option<(i64, Option<Class>)> {
    let who = who(container);
    let (mut at, mut class) = (None, None);
    for line in page.lines().filter(|l| l.starts_with("dualplane_container_last_incident")) {
        let Some((name, labels, value, _)) = sample(line) else { continue };
        let label = |key: &str| labels.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str());
        if !who.iter().all(|(key, value)| label(key) == *value) {
            continue;
        }
        match name {
            "dualplane_container_last_incident" => {
                class = Class::ALL.iter().find(|c| label("class") == Some(c.as_str())).copied();
            }
            "dualplane_container_last_incident_timestamp_seconds" => {
                at = whole(value * 1e3).and_then(|ms| i64::try_from(ms).ok());
            }
            _ => {}
        }
    }
    Some((at?, class))
}

/// A container on the agent's page.
pub(crate) fn of_agent(page: &str, container: &str) -> Result<Memory, String> {
    let who = who(container);
    let mut memory = Memory::default();
    let mut found = false;
    for line in page.lines().filter(|l| l.starts_with("dualplane_container_")) {
        let Some((name, labels, value, _)) = sample(line) else { continue };
        let is = |(key, value): &(&str, Option<&str>)| {
            labels.iter().any(|(k, v)| k == key && Some(v.as_str()) == *value)
        };
        if !who.iter().all(is) {
            continue;
        }
        let Some(n) = whole(value) else { continue };
        found = true;
        match name {
            "dualplane_container_memory_limit_bytes" => memory.limit = Some(Limit::At(Bytes(n))),
            "dualplane_container_memory_anon_bytes" => memory.anon = Some(Bytes(n)),
            "dualplane_container_memory_shmem_bytes" => memory.shmem = Some(Bytes(n)),
            "dualplane_container_memory_kernel_bytes" => memory.kernel = Some(Bytes(n)),
            "dualplane_container_oom_kills_total" => memory.oom_kill = Some(n),
            "dualplane_container_memory_pressure_stalled_seconds_total" => {
                memory.pressure.full_us = whole(value * 1e6);
            }
            _ => {}
        }
    }
    if found { Ok(memory) } else { Err(format!("the agent knows no container {container}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_on_the_agents_page() {
        let page = "dualplane_container_memory_limit_bytes{node=\"n\",namespace=\"s\",pod=\"p\",container=\"c\"} 1000\n\
            dualplane_container_memory_anon_bytes{node=\"n\",namespace=\"s\",pod=\"p\",container=\"c\"} 300\n\
            dualplane_container_memory_anon_bytes{node=\"n\",namespace=\"s\",pod=\"p\",container=\"other\"} 900\n\
            dualplane_container_memory_shmem_bytes{node=\"n\",namespace=\"s\",pod=\"p\",container=\"c\"} 50\n\
            dualplane_container_oom_kills_total{node=\"n\",namespace=\"s\",pod=\"p\",container=\"c\"} 2\n";
        let m = of_agent(page, "s/p/c").unwrap();
        assert_eq!((m.anon, m.shmem), (Some(Bytes(300)), Some(Bytes(50))));
        assert_eq!((m.limit, m.oom_kill), (Some(Limit::At(Bytes(1000))), Some(2)));
        assert!(of_agent(page, "s/p/x").is_err());
        assert_eq!(last_incident(page, "s/p/c"), None);
        assert!(of_agent("", "s/p/c").is_err());
    }

    #[test]
    fn the_fullest_of_a_containers_cards_on_the_agents_page() {
        let of = |pod: &str, card: &str| {
            format!(
                "dualplane_container_gpu_memory_used_bytes{{node=\"n\",namespace=\"s\",pod=\"{pod}\",container=\"c\",gpu=\"0\",UUID=\"{card}\"}} 1\n"
            )
        };
        let card = |card: &str, size: u64, free: u64| {
            format!(
                "dualplane_gpu_memory_size_bytes{{node=\"n\",gpu=\"0\",UUID=\"{card}\",model=\"m\",GPU_I_ID=\"\"}} {size}\n\
                 dualplane_gpu_memory_free_bytes{{node=\"n\",gpu=\"0\",UUID=\"{card}\",model=\"m\",GPU_I_ID=\"\"}} {free}\n"
            )
        };
        let page = [
            of("p", "GPU-a"),
            of("p", "GPU-b"),
            of("other", "GPU-c"),
            card("GPU-a", 100, 60),
            card("GPU-b", 80, 30),
            card("GPU-c", 100, 1),
        ]
        .concat();
        assert_eq!(vram_of_agent(&page, "s/p/c"), Some(Vram { limit: 80, used: 50 }));
        assert_eq!(vram_of_agent(&page, "s/other/c"), Some(Vram { limit: 100, used: 99 }));
        assert_eq!(vram_of_agent(&page, "s/none/c"), None);
        // Given by the kubelet, and nothing runs on it yet.
        let given = of("new", "GPU-a").replace("gpu_memory_used_bytes", "gpu_given");
        assert_eq!(vram_of_agent(&(page + &given), "s/new/c"), Some(Vram { limit: 100, used: 40 }));
    }

    #[test]
    fn the_fullest_card_counts() {
        let page = "nv_gpu_memory_total_bytes{gpu_uuid=\"a\"} 100\nnv_gpu_memory_total_bytes{gpu_uuid=\"b\"} 100\n\
            nv_gpu_memory_used_bytes{gpu_uuid=\"a\"} 10\nnv_gpu_memory_used_bytes{gpu_uuid=\"b\"} 70\n";
        assert_eq!(vram_of(page), Some(Vram { limit: 100, used: 70 }));
        assert_eq!(vram_of("nv_gpu_memory_used_bytes 3\n"), None);
    }
}
