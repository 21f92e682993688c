//! How to see that a change holds, beyond its own number: both planes, the clients, and for how long.

use super::{Action, Context, Stage, names, promql};
use dualplane_base::Plane;
use dualplane_core::evidence::metrics::{Sample, last_before};
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
    if let Some(now) = in_time(cx) {
        a = a.because(now);
    }
    let first_token = cx.facts.engine.head().and_then(|d| d.metrics.as_ref()?.first_token());
    Some(match first_token {
        Some(name) => {
            a.run(promql(&format!("histogram_quantile(0.99, sum by (le) (rate({name}_bucket[5m])))")))
        }
        None => a,
    })
}

/// How many requests were answered in time until now, by the engine's own histogram: of a first token within a second, as
/// people at a chat notice more.
fn in_time(cx: &Context<'_>) -> Option<String> {
    const SECOND: f64 = 1.0;
    let name = cx.facts.engine.head()?.metrics.as_ref()?.first_token()?;
    let bucket = format!("{name}_bucket");
    let end = cx.verdict.subject.death.as_ref().and_then(|d| d.finished);
    // Of a series the last sample counts: its counters hold what was before.
    let all = || cx.bundle.metrics.iter().filter(|s| s.name == bucket);
    let last = last_before(all(), end)?;
    let now = || all().filter(|s| s.file == last.file && s.stamp == last.stamp);
    let up_to = |s: &Sample| s.label("le").and_then(|le| le.parse::<f64>().ok());
    let sum =
        |of: &dyn Fn(f64) -> bool| now().filter(|s| up_to(s).is_some_and(of)).map(|s| s.value).sum::<f64>();
    let answered = sum(&|le| le.is_infinite());
    let in_time = sum(&|le| (le - SECOND).abs() < 1e-9);
    let has = now().any(|s| up_to(s).is_some_and(|le| (le - SECOND).abs() < 1e-9));
    (has && answered >= 1.0).then(|| {
        format!(
            "until now {in_time:.0} of {answered:.0} requests had their first token within {SECOND:.0} s ({:.1} %): compare \
            the share after the change",
            100.0 * in_time / answered
        )
    })
}
