//! How to see that a change holds, beyond its own number: both planes, the clients, and for how long.

use super::{Action, Context, Stage, names, promql};
use dualplane_base::Plane;
use dualplane_core::facts::Maker;

/// One peak of traffic, as a rule of thumb: what only a peak shows is not seen before.
const MINUTES: u32 = 30;

pub(super) fn advise(cx: &Context<'_>) -> Option<Action> {
    if !matches!(cx.verdict.class.plane(), Plane::Host | Plane::Gpu) {
        return None;
    }
    let n = names(cx);
    let title = format!(
        "Then watch a traffic peak, at least {MINUTES} minutes: no restart, host RAM below 90 % of its limit, VRAM below 95 %, \
        time to first token and p99 back at their targets, and no short request that waits behind long ones"
    );
    let of = format!("namespace=\"{}\",container=\"{}\"", n.ns, n.container);
    let mut a = Action::new(Stage::Verify, title)
        .because("more answered requests in total are no success where fewer of them are in time")
        .run(promql(&format!("increase(kube_pod_container_status_restarts_total{{{of}}}[{MINUTES}m]) == 0")));
    if cx.facts.maker == Maker::Nvidia {
        a = a.run(promql("DCGM_FI_DEV_FB_USED / (DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE) < 0.95"));
    }
    let first_token = cx.facts.engine.head().and_then(|d| d.metrics.as_ref()?.first_token());
    Some(match first_token {
        Some(name) => {
            a.run(promql(&format!("histogram_quantile(0.99, sum by (le) (rate({name}_bucket[5m])))")))
        }
        None => a,
    })
}
