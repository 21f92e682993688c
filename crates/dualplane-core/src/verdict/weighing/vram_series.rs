//! Both planes over time, where the verdict is of the GPU plane.

use super::Weighing;
use crate::verdict::case::Case;
use crate::verdict::proof::Series;
use crate::verdict::series::{fullest, peak, place, say, vram};
use crate::verdict::{Cited, Decided, Plane};

pub(in crate::verdict) const RULE: Weighing = Weighing {
    id: "vram_series",
    adds: "VRAM at the moment of the error, and that the working set stayed below its limit",
    because: "it shows which of the two was full at the end",
    source: "DCGM DCGM_FI_DEV_FB_USED; cAdvisor container_memory_working_set_bytes",
    apply,
};

fn apply(case: &Case<'_>, decided: &mut Decided) {
    if decided.class.plane() != Plane::Gpu {
        return;
    }
    let (bundle, subject) = (case.bundle, &case.subject);
    let moment = decided.trigger.as_ref().and_then(|t| t.stamp);
    let cards = vram(bundle, subject, moment.filter(|m| m.has_year()));
    let Some(v) = fullest(&cards) else { return };
    let host = peak(bundle, subject, case.facts, "container_memory_working_set_bytes");
    let working_set = host.map(|h| (h.share, h.limit));
    say(decided, Cited::at(Series::VramAtError { vram: v.proof(), working_set }, &place(v.sample)));
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{File, adds_nothing, file, log, pod, weighs};

    const OOM: &str = "INFO 11-20 10:05:12 [model_runner.py:1108] Starting to load model m...\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.19 GiB of which 1.10 GiB is free. Including non-PyTorch memory, this process has 77.50 GiB memory in use. Of the allocated memory 76.00 GiB is allocated by PyTorch, and 0.10 GiB is reserved by PyTorch but unallocated.\n";

    fn card(pod: &str) -> File {
        let labels = format!("gpu=\"0\",namespace=\"serve\",pod=\"{pod}\",container=\"vllm\"");
        file(
            "m.prom",
            &format!("DCGM_FI_DEV_FB_USED{{{labels}}} 79800\nDCGM_FI_DEV_FB_FREE{{{labels}}} 1100\n"),
        )
    }

    #[test]
    fn the_pod_s_own_card_supports_the_error() {
        weighs(&RULE, &[pod(1, "Error"), log(OOM), card("llm-0")]);
    }

    #[test]
    fn another_pod_s_card_does_not() {
        adds_nothing(&RULE, "vram_exhausted", &[pod(1, "Error"), log(OOM), card("llm-1")]);
    }
}
