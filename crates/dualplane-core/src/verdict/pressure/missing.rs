//! What would say more of a server that lives: the other plane, and both over time.

use super::Pressure;
use crate::evidence::{Bundle, Gap};
use crate::facts::{Facts, Maker};
use crate::verdict::missing::Names;
use crate::verdict::{Plane, Subject};
use dualplane_base::order::Order as _;

/// Beside the gaps of the evidence itself.
pub(in crate::verdict) fn list(
    bundle: &Bundle,
    facts: &Facts,
    pressure: &Pressure,
    subject: &Subject,
) -> Vec<Gap> {
    let n = Names::of(subject);
    let mut out = bundle.gaps.clone();
    let mut add = |what: &str, why: &str, command: String| {
        out.push(Gap { what: what.to_owned(), why: why.to_owned(), command: Some(command) });
    };
    if pressure.worst(Plane::Host).is_none() {
        let why = "whether host RAM is near its limit as well";
        add("host RAM now", why, format!("kubectl top pod {} -n {} --containers > top.txt", n.pod, n.ns));
    }
    if pressure.worst(Plane::Gpu).is_none() {
        let maker = facts.maker;
        let to = if matches!(maker, Maker::Amd | Maker::Ascend) { "txt" } else { "csv" };
        add(
            "VRAM now",
            "whether VRAM is near its limit as well",
            format!("{} > {}.{to}", n.exec(maker.usage()), maker.tool()),
        );
    }
    if pressure.readings.iter().all(|r| r.growth.is_none() && r.stamp.is_none()) {
        add(
            "memory over time",
            "whether it grows, and when it reaches the limit; take it every few minutes",
            format!(
                "kubectl get --raw /api/v1/nodes/{}/proxy/metrics/cadvisor | grep 'pod=\"{}\"' >> metrics.prom",
                n.node, n.pod
            ),
        );
    }
    out.order();
    out.dedup();
    out
}
