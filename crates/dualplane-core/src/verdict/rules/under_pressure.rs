//! Nothing ended, but a plane stands at its limit: that is no health, and no death either.

use super::{Beats, Judged, Rule, Stage, decided, unmet};
use crate::evidence::Termination;
use crate::verdict::case::Case;
use crate::verdict::pressure::{Bound, Level, Pressure, Reading};
use crate::verdict::{Cited, Class, Confidence};

/// Id of the rule: nothing died, so its class is no death that is not understood.
pub const ID: &str = "under_pressure";

pub(in crate::verdict) const RULE: Rule = Rule {
    id: ID,
    stage: Stage::Pressure,
    classes: &[Class::Unknown],
    when: "nothing ended, and host RAM is at 90 % of its limit, VRAM at 95 %, the KV cache at 95 % with requests that \
    wait, or a steady growth reaches the limit within a day",
    near_miss: "a limit that is full of page cache; VRAM at 90 % that the engine reserved at start",
    beats: &[
        Beats::stage(Stage::Life, "that it goes on does not tell how long"),
        Beats::stage(Stage::Nothing, "a server at its limit is not healthy, though nothing failed yet"),
    ],
    source: "kubelet: working set; cgroup v2 memory.stat; DCGM, nvidia-smi; engines' metrics (verdict/pressure)",
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    if case.death().is_some_and(|d: &Termination| !d.clean()) {
        return Err(unmet("a container ended"));
    }
    let pressure =
        case.pressure.as_ref().ok_or_else(|| unmet("nothing shows the memory of a server that runs"))?;
    let plane = match pressure.bound {
        Bound::None => return Err(unmet("no plane is at its limit, or will be within a day")),
        Bound::Host => "host RAM is",
        Bound::Gpu => "GPU memory is",
        Bound::Both => "host RAM and GPU memory are",
    };
    let high: Vec<&Reading> = high(pressure);
    let worst: Vec<String> = high.iter().map(|r| r.told()).collect();
    let ended = if case.pod().is_some() { "nothing has ended" } else { "the evidence shows no end" };
    let summary = format!("{ended}, but {plane} under pressure: {}", worst.join("; "));
    let supports = high.iter().map(|r| Cited::at((*r).clone(), &r.place)).collect();
    // Without the object nobody knows whose figures they are, and whether it still runs.
    let confidence = if case.pod().is_some() { Confidence::High } else { Confidence::Low };
    Ok(decided(Class::Unknown, case.end_phase(), confidence, summary, supports))
}

/// The fullest of each plane that is at its limit.
fn high(pressure: &Pressure) -> Vec<&Reading> {
    let planes = [crate::verdict::Plane::Host, crate::verdict::Plane::Gpu];
    planes.iter().filter_map(|p| pressure.worst(*p)).filter(|r| r.level == Level::High).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::RULE;
    use crate::verdict::Plane;
    use crate::verdict::pressure::{Bound, Level};
    use crate::verdict::rules::testing::{File, file, holds, judged, log, pod_with};

    const SMI: &str = "index, name, uuid, pci.bus_id, memory.total [MiB], memory.used [MiB], memory.free [MiB]\n0, NVIDIA H100 80GB HBM3, GPU-5fd4f087-86f3-7a43-b711-4771313afc50, 00000000:4A:00.0, 81559 MiB, ";

    /// The pod runs, is ready, and never ended.
    fn lives() -> File {
        image("vllm/vllm-openai:v0.11.0")
    }

    fn image(image: &str) -> File {
        pod_with(0, "", |p| {
            p["spec"]["containers"][0]["image"] = image.into();
            let status = &mut p["status"]["containerStatuses"][0];
            status["image"] = image.into();
            status["lastState"] = json!({});
            status["ready"] = true.into();
            status["restartCount"] = 0.into();
        })
    }

    fn top(used: &str) -> File {
        file(
            "top.txt",
            &format!("POD     NAME   CPU(cores)   MEMORY(bytes)\nllm-0   vllm   4021m        {used}\n"),
        )
    }

    fn card(used: u64) -> File {
        file("nvidia-smi.csv", &format!("{SMI}{used} MiB, {} MiB\n", 81_559 - used))
    }

    /// A working set every five minutes, in GiB.
    fn grows(gib: &[f64]) -> File {
        let labels = "namespace=\"serve\",pod=\"llm-0\",container=\"vllm\"";
        let line = |(i, g): (usize, &f64)| {
            let at = 1_795_171_800_000 + i as u64 * 300_000;
            format!("container_memory_working_set_bytes{{{labels}}} {} {at}\n", g * 1_073_741_824.0)
        };
        file("m.prom", &gib.iter().enumerate().map(line).collect::<String>())
    }

    #[track_caller]
    fn bound(files: &[File]) -> Bound {
        judged(files).pressure.expect("both planes are told of").bound
    }

    #[test]
    fn each_plane_is_held_against_its_own_limit() {
        let host = [lives(), top("62915Mi"), card(40_000)];
        holds(&RULE, &host);
        assert_eq!(bound(&host), Bound::Host);
        let gpu = [lives(), top("20000Mi"), card(80_300)];
        holds(&RULE, &gpu);
        assert_eq!(bound(&gpu), Bound::Gpu);
        let both = [lives(), top("62915Mi"), card(80_300)];
        holds(&RULE, &both);
        assert_eq!(bound(&both), Bound::Both);
    }

    #[test]
    fn what_an_engine_reserved_is_no_pressure() {
        let level = |image: File| {
            let v = judged(&[image, top("20000Mi"), card(73_400)]);
            assert_ne!(v.decided_by, RULE.id, "{:#?}", v.trace);
            v.pressure.unwrap().worst(Plane::Gpu).unwrap().level
        };
        assert_eq!(level(lives()), Level::Normal);
        // ComfyUI takes memory as it needs it.
        assert_eq!(level(image("yanwk/comfyui-boot:cu124-slim")), Level::Near);
    }

    #[test]
    fn page_cache_at_the_limit_is_no_pressure() {
        let cache = [
            lives(),
            file("cgroup/memory.max", "68719476736\n"),
            file("cgroup/memory.current", "68700000000\n"),
            file(
                "cgroup/memory.stat",
                "anon 9663676416\nfile 57982058496\nkernel 104857600\nshmem 1073741824\nunevictable 0\n",
            ),
        ];
        let v = judged(&cache);
        assert_ne!(v.decided_by, RULE.id, "{:#?}", v.trace);
        assert_eq!(v.pressure.unwrap().worst(Plane::Host).unwrap().level, Level::Normal);
        // The same in tmpfs cannot be given back.
        let [pod, max, current, _] = cache;
        let shm = file(
            "cgroup/memory.stat",
            "anon 9663676416\nfile 57982058496\nkernel 104857600\nshmem 57000000000\nunevictable 0\n",
        );
        holds(&RULE, &[pod, max, current, shm]);
    }

    #[test]
    fn growth_that_reaches_the_limit_today_is_pressure() {
        let rising = [lives(), grows(&[40.0, 41.0, 42.0, 43.0, 44.0, 45.0, 46.0, 47.0, 48.0])];
        holds(&RULE, &rising);
        let growth = judged(&rising).pressure.unwrap().worst(Plane::Host).unwrap().growth.clone().unwrap();
        assert!((growth.to_limit_ms - 80 * 60_000).abs() < 10_000, "16 GiB at 12 GiB/h: {growth:?}");
        let flat = judged(&[lives(), grows(&[2.0, 20.0, 40.0, 48.0, 48.0, 48.0, 48.0, 48.0, 48.0])]);
        assert_ne!(flat.decided_by, RULE.id, "{:#?}", flat.trace);
    }

    #[test]
    fn repeated_printouts_show_vram_that_grows() {
        let printed = |used: &dyn Fn(u64) -> u64| {
            let mut text =
                "timestamp, index, memory.total [MiB], memory.used [MiB], memory.free [MiB]\n".to_owned();
            for i in 0..12 {
                let u = used(i);
                text += &format!(
                    "2026/11/20 10:{:02}:07.113, 0, 81559 MiB, {u} MiB, {} MiB\n",
                    i * 2,
                    81_559 - u
                );
            }
            judged(&[image("yanwk/comfyui-boot:cu124-slim"), file("nvidia-smi.csv", &text)])
        };
        let rising = printed(&|i| 50_000 + i * 1000);
        assert_eq!(rising.decided_by, RULE.id, "{:#?}", rising.trace);
        let growth = rising.pressure.unwrap().worst(Plane::Gpu).unwrap().growth.clone().unwrap();
        assert!((growth.to_limit_ms / 60_000 - 41).abs() <= 1, "20.6 GiB at 0.5 GiB a minute: {growth:?}");
        assert_ne!(printed(&|_| 61_000).decided_by, RULE.id);
    }

    #[test]
    fn without_a_limit_the_machine_binds() {
        let free = pod_with(0, "", |p| {
            p["spec"]["containers"][0]["resources"] = json!({"limits": {"nvidia.com/gpu": "1"}});
            p["status"]["containerStatuses"][0]["lastState"] = json!({});
            p["status"]["containerStatuses"][0]["restartCount"] = json!(0);
        });
        let meminfo = "MemTotal:       527951764 kB\nMemFree:         1200000 kB\nMemAvailable:    22100000 kB\nBuffers:           12000 kB\nCached:          21500000 kB\nSwapCached:            0 kB\nSwapTotal:             0 kB\nSwapFree:              0 kB\n";
        holds(&RULE, &[free, file("meminfo", meminfo)]);
        // With a limit that is far away, other pods' memory is the node's matter.
        let v = judged(&[lives(), top("20000Mi"), file("meminfo", meminfo)]);
        assert_ne!(v.decided_by, RULE.id, "{:#?}", v.trace);
    }

    #[test]
    fn each_container_has_its_own_limit() {
        let two = pod_with(0, "", |p| {
            p["spec"]["containers"].as_array_mut().unwrap().push(json!({
                "name": "proxy", "image": "envoy:1", "resources": {"limits": {"memory": "1Gi"}}
            }));
            let status = p["status"]["containerStatuses"].as_array_mut().unwrap();
            status[0]["lastState"] = json!({});
            let mut proxy = status[0].clone();
            proxy["name"] = "proxy".into();
            status.push(proxy);
        });
        let rows = "POD     NAME    CPU(cores)   MEMORY(bytes)\nllm-0   vllm    4021m        9000Mi\nllm-0   proxy   12m          1001Mi\n";
        let v = judged(&[two, file("top.txt", rows)]);
        let worst = v.pressure.unwrap().readings[0].clone();
        assert_eq!((worst.container.as_deref(), worst.level), (Some("proxy"), Level::High));
    }

    #[test]
    fn a_full_cache_counts_where_requests_wait() {
        let metrics = |waiting: u64| {
            let text = format!(
                "vllm:kv_cache_usage_perc{{model_name=\"m\"}} 0.99\nvllm:num_requests_waiting{{model_name=\"m\"}} {waiting}\n"
            );
            judged(&[lives(), file("m.prom", &text)])
        };
        assert_eq!(metrics(14).decided_by, RULE.id);
        assert_ne!(metrics(0).decided_by, RULE.id);
    }

    #[test]
    fn an_end_is_told_first_and_samples_of_the_dead_say_nothing() {
        let died = |reason: &str| pod_with(137, reason, |_| {});
        let v = judged(&[died("OOMKilled"), top("62915Mi")]);
        assert_eq!((v.decided_by, v.pressure.is_none()), ("oom_killed_status", true));
        // Taken at 10:20, and the container that runs began at 10:30:10.
        let labels = "namespace=\"serve\",pod=\"llm-0\",container=\"vllm\"";
        let before = file(
            "m.prom",
            &format!("container_memory_working_set_bytes{{{labels}}} 66000000000 1795170000000\n"),
        );
        let v = judged(&[died("Error"), before]);
        assert!(v.pressure.is_none(), "{:#?}", v.pressure);
    }

    /// As cAdvisor tells where it does not reach the container runtime: of the pod, and of each container by its id alone.
    #[test]
    fn the_sum_of_a_pod_is_of_its_only_container() {
        let id = "c0ffee42".repeat(8);
        let row = |labels: &str, bytes: u64| {
            format!("container_memory_working_set_bytes{{{labels}}} {bytes} 1795171800000\n")
        };
        let sum = |bytes| {
            row(r#"container="",id="/kubepods/burstable/pod1-2",namespace="serve",pod="llm-0""#, bytes)
                + &row(
                    &format!(r#"container="",id="/kubepods/burstable/pod1-2/{id}",namespace="",pod="""#),
                    68_000_000_000,
                )
                + &row(
                    r#"container="",id="/kubepods/burstable/pod7",namespace="serve",pod="llm-1""#,
                    68_000_000_000,
                )
        };
        let judged_with = |text: String| judged(&[lives(), file("m.prom", &text)]);
        assert_eq!(judged_with(sum(66_000_000_000)).decided_by, RULE.id);
        let low = judged_with(sum(20_000_000_000));
        assert_eq!(low.pressure.unwrap().worst(Plane::Host).unwrap().level, Level::Normal);
        // Where a container is named, the sum is not asked: it holds the neighbours as well.
        let named = row(r#"container="vllm",namespace="serve",pod="llm-0""#, 20_000_000_000);
        let named = judged_with(sum(66_000_000_000) + &named);
        assert_eq!(named.pressure.unwrap().worst(Plane::Host).unwrap().level, Level::Normal);
        // Of two that run nobody knows whose it is.
        let two = pod_with(0, "", |p| {
            p["status"]["containerStatuses"][0]["state"] =
                json!({"running": {"startedAt": "2026-11-20T10:30:10Z"}});
            p["status"]["containerStatuses"][0]["lastState"] = json!({});
            for list in ["/spec/containers", "/status/containerStatuses"] {
                let list = p.pointer_mut(list).unwrap().as_array_mut().unwrap();
                let mut other = list[0].clone();
                other["name"] = "proxy".into();
                list.push(other);
            }
        });
        let two = judged(&[two, file("m.prom", &sum(66_000_000_000))]);
        assert!(two.pressure.is_none_or(|p| p.worst(Plane::Host).is_none()));
    }

    #[test]
    fn a_quiet_log_beside_it_does_not_make_it_healthy() {
        holds(&RULE, &[lives(), top("62915Mi"), log("INFO: Started server process [1]\n")]);
    }
}
