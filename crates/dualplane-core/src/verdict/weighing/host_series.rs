//! Both planes over time, where the verdict is of the host plane.

use super::Weighing;
use crate::verdict::case::Case;
use crate::verdict::pressure::thresholds::HOST_HIGH;
use crate::verdict::proof::Series;
use crate::verdict::series::{fullest, kv, peak, place, say, vram};
use crate::verdict::{Cited, Decided, Plane};

pub(in crate::verdict) const RULE: Weighing = Weighing {
    id: "host_series",
    adds: "the working set's peak before the end, with VRAM and the KV cache at that moment",
    because: "it shows which of the two was full at the end",
    source: "cAdvisor container_memory_working_set_bytes; DCGM DCGM_FI_DEV_FB_USED; engines' metrics",
    apply,
};

fn apply(case: &Case<'_>, decided: &mut Decided) {
    if decided.class.plane() != Plane::Host {
        return;
    }
    let (bundle, subject) = (case.bundle, &case.subject);
    let host = peak(bundle, subject, case.facts, "container_memory_working_set_bytes");
    let Some(host) = host.filter(|h| h.share >= HOST_HIGH) else { return };
    let cards = vram(bundle, subject, host.sample.stamp);
    let worst = fullest(&cards);
    let proof = Series::WorkingSet {
        peak: host.peak(),
        vram: worst.map(|v| (v.gpu.clone(), v.share())),
        kv_cache: kv(bundle, case.facts, subject, host.sample.stamp).map(|k| k.value),
    };
    say(decided, Cited::at(proof, &host.place()));
    if let Some(v) = worst {
        decided.supports.push(Cited::at(Series::Vram(v.proof()), &place(v.sample)));
    }
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{File, adds_nothing, file, pod, weighs};

    fn working_set(pod: &str, bytes: u64) -> File {
        let labels = format!("namespace=\"serve\",pod=\"{pod}\",container=\"vllm\"");
        file("m.prom", &format!("container_memory_working_set_bytes{{{labels}}} {bytes} 1795170560000\n"))
    }

    #[test]
    fn a_working_set_at_the_limit_supports_the_kill() {
        weighs(&RULE, &[pod(137, "OOMKilled"), working_set("llm-0", 68_000_000_000)]);
    }

    #[test]
    fn a_missed_spike_and_another_pod_do_not() {
        for sample in [working_set("llm-0", 30_000_000_000), working_set("llm-1", 68_000_000_000)] {
            adds_nothing(&RULE, "oom_killed_status", &[pod(137, "OOMKilled"), sample]);
        }
    }
}
