//! Memory that is taken before the engine starts: refused, or subtracted, by version.

use super::blocks::gib;
use crate::gpu::Gpu;
use crate::launch::Launch;
use crate::outcome::{Refusal, Verdict};
use crate::quantity::Unknown;
use dualplane_base::Version;
use dualplane_base::units::MIB;

/// The check at start compares what is free with what was asked for (vLLM v1/worker/utils.py `request_memory`). Before, and
/// in the first engine, what others held was subtracted from the pool.
pub(crate) fn checks(launch: &Launch) -> bool {
    launch.version >= Version(0, 9, 2) && !launch.is_first_engine()
}

/// What the process takes before it looks: its context, and since 0.11.0 the buffers of collectives too, in bytes. Least
/// and most that were seen.
pub(crate) fn own(launch: &Launch) -> (u64, u64) {
    let several = launch.tp.saturating_mul(launch.pp) > 1 && launch.version >= Version(0, 11, 0);
    (280 * MIB, if several { 2048 * MIB } else { 600 * MIB })
}

/// What becomes of a start on a card that is partly taken.
pub(crate) struct Start {
    /// At the free memory as it was given, and at what is left when the engine looks.
    pub(crate) verdict: Verdict,
    pub(crate) refusal: Option<Refusal>,
    pub(crate) unknown: Option<Unknown>,
}

/// The outcome of the check; `None` where nothing was measured, or this version has no check.
pub(crate) fn check(launch: &Launch, gpu: &Gpu, requested: u64, utilisation: f64) -> Option<Start> {
    let free = launch.free_gpu_bytes.filter(|_| checks(launch))?;
    let (least, most) = own(launch);
    if free < requested {
        // Releases read: 0.11.2 without, 0.14.1 with the device.
        let device = if launch.version >= Version(0, 14, 0) { "cuda:0 " } else { "" };
        let message = format!(
            "Free memory on device {device}({}/{} GiB) on startup is less than desired GPU memory utilization \
             ({utilisation:?}, {} GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
            gib(free),
            gib(gpu.total_bytes),
            gib(requested),
        );
        let refusal = Some(Refusal { message, estimated_max_len: None });
        return Some(Start { verdict: Verdict::Refused, refusal, unknown: None });
    }
    let verdict = if free.saturating_sub(most) >= requested { Verdict::Fits } else { Verdict::Uncertain };
    let unknown = (verdict == Verdict::Uncertain).then(|| Unknown {
        what: format!(
            "the engine's own use before it checks free memory: {} to {} GiB of {} GiB free; it requires \
            {} GiB",
            gib(least),
            gib(most),
            gib(free),
            gib(requested)
        ),
        settle: "free memory on the GPU, or lower --gpu-memory-utilization".into(),
    });
    Some(Start { verdict, refusal: None, unknown })
}

/// What others hold, in bytes, where this version counts it with its own memory outside of torch.
pub(crate) fn held(launch: &Launch, gpu: &Gpu) -> u64 {
    launch.free_gpu_bytes.filter(|_| !checks(launch)).map_or(0, |free| gpu.total_bytes.saturating_sub(free))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dualplane_base::units::GIB;

    fn at(version: Version, free_gib: f64, tp: u64) -> Option<Start> {
        let bytes = |gib: f64| (gib * GIB as f64) as u64;
        let gpu = Gpu {
            name: String::new(),
            device_name: String::new(),
            total_bytes: bytes(23.56),
            capability: (8, 6),
            host_use: None,
        };
        let launch = Launch { version, tp, free_gpu_bytes: Some(bytes(free_gib)), ..Launch::default() };
        let requested = (gpu.total_bytes as f64 * 0.92).ceil() as u64;
        check(&launch, &gpu, requested, 0.92)
    }

    #[test]
    fn the_refusal_reads_as_the_engine_prints_it() {
        // A log of such a card said 21.67: its total has more digits than it prints.
        let with = at(Version(0, 21, 0), 12.18, 1).and_then(|s| s.refusal).unwrap().message;
        assert!(with.starts_with(
            "Free memory on device cuda:0 (12.18/23.56 GiB) on startup is less than desired GPU memory utilization \
             (0.92, 21.68 GiB). Decrease GPU memory utilization or reduce"
        ), "{with}");
        let without = at(Version(0, 11, 2), 12.18, 1).and_then(|s| s.refusal).unwrap().message;
        assert!(without.starts_with("Free memory on device (12.18/"), "{without}");
    }

    #[test]
    fn what_the_engine_takes_itself_makes_it_uncertain() {
        let verdict = |free, tp| at(Version(0, 21, 0), free, tp).map(|s| s.verdict);
        assert_eq!(verdict(23.5, 1), Some(Verdict::Fits));
        assert_eq!(verdict(21.9, 1), Some(Verdict::Uncertain));
        assert_eq!(verdict(23.5, 2), Some(Verdict::Uncertain));
        assert_eq!(verdict(21.6, 1), Some(Verdict::Refused));
        assert!(at(Version(0, 8, 5), 12.18, 1).is_none());
        let gpu = Gpu {
            name: String::new(),
            device_name: String::new(),
            total_bytes: 24 * GIB,
            capability: (8, 6),
            host_use: None,
        };
        let free = |version| Launch { version, free_gpu_bytes: Some(20 * GIB), ..Launch::default() };
        assert_eq!(held(&free(Version(0, 8, 5)), &gpu), 4 * GIB);
        assert_eq!(held(&free(Version(0, 11, 0)), &gpu), 0);
    }
}
