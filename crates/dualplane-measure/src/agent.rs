//! Both planes of a container as the agent of its node tells them (`docs/agent.md`).

use std::collections::BTreeMap;
use std::time::Duration;

use dualplane_base::metrics::sample;
use dualplane_runs::{Faults, Host, Sample};

use crate::engine::{agent, get};

/// Which container is asked for, and where.
#[derive(Debug)]
pub struct Ask {
    url: String,
    namespace: String,
    pod: String,
    container: Option<String>,
    http: ureq::Agent,
    /// Xids by card and code, as the agent counted them last.
    xids: Option<BTreeMap<(String, u32), u64>>,
}

/// Xids of one code that came between two readings, at most.
const MOST_XIDS: u64 = 100;

impl Ask {
    /// The agent at this URL; a container as `NAMESPACE/POD/CONTAINER`, the last part may be missing.
    #[must_use]
    pub fn new(url: &str, pod: &str) -> Self {
        let mut parts = pod.splitn(3, '/').map(str::to_owned);
        let (namespace, name) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let base = url.trim_end_matches('/');
        let url = if base.ends_with("/metrics") { base.to_owned() } else { format!("{base}/metrics") };
        let container = parts.next();
        let http = agent(&url, Duration::from_millis(900));
        Self { url, namespace, pod: name, container, http, xids: None }
    }

    /// Takes both planes, and what the container's cards told of errors.
    pub(crate) fn read(&mut self, s: &mut Sample) -> Option<Faults> {
        let page = get(&self.http, &self.url, None)?;
        self.take(&page, s)
    }

    fn take(&mut self, page: &str, s: &mut Sample) -> Option<Faults> {
        let mut host = Host::default();
        let mut cards: Vec<String> = Vec::new();
        let lines = || page.lines().filter(|l| l.starts_with("dualplane_")).filter_map(sample);
        for (name, labels, value, _) in lines() {
            let label = |key: &str| labels.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str());
            let own = label("namespace") == Some(&self.namespace) && label("pod") == Some(&self.pod);
            let own = own && self.container.as_deref().is_none_or(|c| label("container") == Some(c));
            if !own || !value.is_finite() || value < 0.0 {
                continue;
            }
            let bytes = Some(value as u64);
            match name {
                "dualplane_container_memory_usage_bytes" => host.current = add(host.current, bytes),
                "dualplane_container_memory_working_set_bytes" => {
                    host.working_set = add(host.working_set, bytes)
                }
                "dualplane_container_memory_anon_bytes" => host.anon = add(host.anon, bytes),
                "dualplane_container_memory_shmem_bytes" => host.shmem = add(host.shmem, bytes),
                "dualplane_container_memory_file_bytes" => host.file = add(host.file, bytes),
                "dualplane_container_memory_kernel_bytes" => host.kernel = add(host.kernel, bytes),
                "dualplane_container_memory_unevictable_bytes" => host.pinned = add(host.pinned, bytes),
                "dualplane_container_memory_limit_bytes" => host.limit = add(host.limit, bytes),
                "dualplane_container_memory_peak_bytes" => host.peak = add(host.peak, bytes),
                "dualplane_container_gpu_memory_used_bytes" => {
                    s.vram = add(s.vram, bytes);
                    cards.extend(label("UUID").map(str::to_owned));
                }
                "dualplane_engine_kv_cache_usage_ratio" => s.kv = Some(value),
                "dualplane_engine_requests_running" => s.running = Some(value),
                "dualplane_engine_requests_waiting" => s.waiting = Some(value),
                "dualplane_engine_preemptions_total" => s.preemptions = Some(value),
                _ => {}
            }
        }
        let mut faults = Faults::default();
        let mut xids = BTreeMap::new();
        for (name, labels, value, _) in lines() {
            let label = |key: &str| labels.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str());
            let Some(uuid) = label("UUID").filter(|u| cards.iter().any(|c| c == u)) else { continue };
            if !value.is_finite() || value < 0.0 {
                continue;
            }
            let n = Some(value as u64);
            match (name, label("type"), label("xid").and_then(|x| x.parse::<u32>().ok())) {
                ("dualplane_gpu_memory_size_bytes", ..) => s.vram_total = add(s.vram_total, n),
                ("dualplane_gpu_ecc_errors_total", Some("corrected"), _) => {
                    faults.ecc_corrected = add(faults.ecc_corrected, n);
                }
                ("dualplane_gpu_ecc_errors_total", Some("uncorrected"), _) => {
                    faults.ecc_uncorrected = add(faults.ecc_uncorrected, n);
                }
                ("dualplane_gpu_remapped_rows", ..) => faults.remapped = add(faults.remapped, n),
                ("dualplane_gpu_xid_errors_total", _, Some(xid)) => {
                    xids.insert((uuid.to_owned(), xid), value as u64);
                }
                _ => {}
            }
        }
        s.host = Some(host).filter(|h| *h != Host::default());
        if cards.is_empty() {
            return None;
        }
        // What was counted before the first reading is of another time.
        let before = self.xids.replace(xids.clone());
        for ((card, xid), now) in xids.iter().filter(|_| before.is_some()) {
            let was = before.as_ref().and_then(|b| b.get(&(card.clone(), *xid))).copied().unwrap_or(0);
            let new = if *now >= was { now - was } else { *now };
            faults.xids.extend((0..new.min(MOST_XIDS)).map(|_| *xid));
        }
        Some(faults)
    }
}

/// Without a name, the containers of a pod are one.
fn add(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    Some(a.unwrap_or(0).saturating_add(b?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_the_agent_gives_the_container_that_was_named() {
        let page = "# TYPE dualplane_container_memory_anon_bytes gauge\n\
            dualplane_container_memory_anon_bytes{node=\"n\",namespace=\"serving\",pod=\"llm-0\",container=\"server\"} 1000\n\
            dualplane_container_memory_anon_bytes{node=\"n\",namespace=\"serving\",pod=\"llm-0\",container=\"sidecar\"} 5\n\
            dualplane_container_memory_anon_bytes{node=\"n\",namespace=\"other\",pod=\"llm-0\",container=\"server\"} 77\n\
            dualplane_container_memory_shmem_bytes{node=\"n\",namespace=\"serving\",pod=\"llm-0\",container=\"server\"} 20\n\
            dualplane_container_gpu_memory_used_bytes{node=\"n\",namespace=\"serving\",pod=\"llm-0\",container=\"server\",gpu=\"0\",UUID=\"GPU-1\"} 300\n\
            dualplane_gpu_memory_size_bytes{node=\"n\",gpu=\"0\",UUID=\"GPU-1\"} 800\n\
            dualplane_gpu_memory_size_bytes{node=\"n\",gpu=\"1\",UUID=\"GPU-2\"} 900\n";
        let of = |pod: &str| {
            let mut s = Sample::default();
            let _ = Ask::new("http://x:1/", pod).take(page, &mut s);
            s
        };
        let s = of("serving/llm-0/server");
        assert_eq!(
            (s.host.unwrap().held(), s.vram, s.vram_total),
            (Some((1020, true)), Some(300), Some(800))
        );
        assert_eq!(of("serving/llm-0").host.unwrap().anon, Some(1005));
        assert_eq!(of("serving/none").host, None);
        // Only what comes while it is measured, and only of the container's cards, is the run's.
        let with = |xids: &str| {
            format!(
                "{page}dualplane_gpu_ecc_errors_total{{gpu=\"0\",UUID=\"GPU-1\",type=\"uncorrected\"}} 3\n{xids}"
            )
        };
        let xid = |uuid: &str, n: u32| {
            format!("dualplane_gpu_xid_errors_total{{gpu=\"0\",UUID=\"{uuid}\",xid=\"31\"}} {n}\n")
        };
        let mut ask = Ask::new("http://x:1/", "serving/llm-0");
        let mut take = |page: &str| ask.take(page, &mut Sample::default()).unwrap();
        assert_eq!(take(&with(&xid("GPU-1", 2))), Faults { ecc_uncorrected: Some(3), ..Faults::default() });
        assert_eq!(take(&with(&(xid("GPU-1", 4) + &xid("GPU-2", 9)))).xids, [31, 31]);
        assert!(take(&with(&xid("GPU-1", 4))).xids.is_empty());
    }
}
