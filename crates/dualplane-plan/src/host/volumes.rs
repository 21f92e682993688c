//! Memory volumes, /dev/shm, and whether the pod's own limit holds the need.

use super::{Cx, Part, When, whole_gib};
use crate::outcome::{HostPlan, Verdict};
use crate::quantity::Quantity;
use dualplane_base::units::{Bytes, GIB, MIB};

/// /dev/shm of a container without a volume there.
pub(crate) const DEFAULT_SHM: u64 = 64 * MIB;

const SOURCE: &str = "Kubernetes: emptyDir of medium Memory is charged to the pod";

pub(super) fn parts(cx: &mut Cx<'_>) -> Vec<Part> {
    let volumes = cx.input.line.host.pod.memory_volumes.clone();
    let mut out = Vec::new();
    for (path, limit) in volumes {
        match limit {
            Some(Bytes(limit)) => out.push(Part::new(
                "volume.memory",
                When::Serving,
                Quantity::band(0, 0, limit),
                format!("{path}: its files count as memory, up to its sizeLimit of {}", Bytes(limit)),
                SOURCE,
            )),
            None => cx.unknown(
                &format!("the data written to the Memory volume {path}, which has no sizeLimit"),
                "set sizeLimit, or put it on a disk",
            ),
        }
    }
    out
}

/// Size for /dev/shm: the most that is plausible, in whole GiB; 0 where the default is enough.
pub(super) fn size(shm: Quantity) -> u64 {
    if shm.high <= DEFAULT_SHM { 0 } else { whole_gib(shm.high) }
}

pub(super) fn judge(
    cx: &Cx<'_>,
    plan: &HostPlan,
    need: Quantity,
    shm: u64,
) -> (Option<Verdict>, Vec<String>) {
    let pod = &cx.input.line.host.pod;
    let mut findings = Vec::new();
    let verdict = pod.limit.map(|Bytes(limit)| {
        if limit < need.low {
            findings.push(format!(
                "the memory limit of {} is below the lowest plausible need of {}: the kernel will kill \
                the container",
                Bytes(limit),
                Bytes(need.low)
            ));
            Verdict::Refused
        } else if limit < need.high {
            findings.push(format!(
                "the memory limit of {} is within the plausible need of {} to {}",
                Bytes(limit),
                Bytes(need.low),
                Bytes(need.high)
            ));
            Verdict::Uncertain
        } else {
            Verdict::Fits
        }
    });
    let volume = match (&pod.shm, pod.known) {
        (Some(Some(Bytes(size))), _) => {
            Some((*size, format!("the volume on /dev/shm is limited to {}", Bytes(*size))))
        }
        (None, true) => {
            Some((DEFAULT_SHM, "no volume is mounted on /dev/shm, so its size is 64.00 MiB".to_owned()))
        }
        _ => None,
    };
    if let Some((size, how)) = volume
        && size < plan.shm_bytes.high
    {
        let need = plan.shm_bytes;
        findings.push(format!(
            "{how}; shared memory needs {} to {}: mount an emptyDir of medium Memory with sizeLimit {}Gi",
            Bytes(need.low),
            Bytes(need.high),
            shm / GIB
        ));
    }
    (verdict, findings)
}
