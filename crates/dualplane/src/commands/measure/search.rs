//! The most requests at once that stay safe: doubled until a step fails, then halved between the last two.

use dualplane_base::text::counted;
use dualplane_gate::document::{Measure, Run, SafeLoad};
use dualplane_measure::Target;

use super::Bench;
use super::drive::{Common, one};
use crate::commands::Failure;

/// No server of one replica runs more.
const MOST: u64 = 4_096;
/// Two steps that are this near to each other are one.
const NEAR: f64 = 1.1;
/// Share of good requests below which a step fails.
const GOOD: f64 = 0.99;
/// Share of a plane's limit above which a step fails.
const FULL: f64 = 0.9;

pub(super) fn search(
    bench: &mut Bench<'_>,
    target: &mut Target,
    common: &Common,
    m: &mut Measure,
) -> Result<(), Failure> {
    let (mut safe, mut unsafe_at, mut why) = (0_u64, None::<u64>, None);
    let mut next = bench.args.concurrency.unwrap_or(1);
    loop {
        let run = one(bench, target, common, &format!("{next} at once"), Some(next))?;
        let broken = broken(&run);
        let over = run.cut_short;
        m.runs.push(run);
        match broken {
            Some(reason) => {
                unsafe_at = Some(next);
                why = Some(format!("{next} at once: {reason}"));
            }
            None => safe = safe.max(next),
        }
        if over || bench.stopped() {
            break;
        }
        next = match unsafe_at {
            None if next >= MOST => break,
            None => (next * 2).min(MOST),
            Some(high) if high <= safe + 1 || high as f64 <= safe.max(1) as f64 * NEAR => break,
            Some(high) => u64::midpoint(safe, high).max(1),
        };
        if Some(next) == unsafe_at || next == safe {
            break;
        }
    }
    m.safe = Some(SafeLoad { concurrency: (safe > 0).then_some(safe as u32), rate: None, bounded_by: why });
    Ok(())
}

/// What makes a step unsafe, in words.
fn broken(run: &Run) -> Option<String> {
    if let Some(r) = run.restarts.iter().flatten().next() {
        return Some(format!("the server died ({})", r.class.as_deref().unwrap_or("unknown")));
    }
    for (name, plane) in [("host RAM", &run.host), ("VRAM", &run.vram)] {
        let full = plane
            .as_ref()
            .and_then(|p| Some(p.peak_bytes? as f64 / p.limit_bytes.filter(|l| *l > 0)? as f64));
        if let Some(share) = full.filter(|s| *s > FULL) {
            return Some(format!("{name} was {:.0} % full", share * 100.0));
        }
    }
    let r = run.requests.as_ref()?;
    if r.failures() * 100 > r.sent {
        return Some(format!("{} of {} failed", r.failures(), r.sent));
    }
    if let Some(n) = run.kv.as_ref().and_then(|k| k.preemptions).filter(|n| *n > 0) {
        return Some(counted(n, "preemption"));
    }
    let share = r.good.map(|g| g as f64 / r.succeeded.max(1) as f64);
    share.filter(|s| *s < GOOD).map(|s| format!("{:.1} % of the answers were in the SLO", s * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dualplane_gate::document::{Kv, PlaneFigures, Requests, Restart};

    #[test]
    fn what_makes_a_step_unsafe_is_said() {
        let requests = |good, failed: u64| Requests {
            sent: 100,
            succeeded: 100 - failed,
            good: Some(good),
            failed: vec![dualplane_gate::document::Failed { reason: "timeout".into(), count: failed }],
            cancelled: 0,
        };
        let of = |run: Run| broken(&run);
        assert_eq!(of(Run { requests: Some(requests(100, 0)), ..Run::default() }), None);
        assert!(of(Run { requests: Some(requests(90, 0)), ..Run::default() }).unwrap().contains("90.0 %"));
        assert!(of(Run { requests: Some(requests(95, 5)), ..Run::default() }).unwrap().contains("failed"));
        let kv = Some(Kv { preemptions: Some(1), ..Kv::default() });
        assert!(
            of(Run { requests: Some(requests(100, 0)), kv, ..Run::default() })
                .unwrap()
                .contains("1 preemption")
        );
        let host =
            Some(PlaneFigures { peak_bytes: Some(95), limit_bytes: Some(100), ..PlaneFigures::default() });
        assert!(
            of(Run { requests: Some(requests(100, 0)), host, ..Run::default() })
                .unwrap()
                .contains("host RAM was 95 %")
        );
        let restarts = Some(vec![Restart { class: Some("host_oom_killed".into()), ..Restart::default() }]);
        assert!(of(Run { restarts, ..Run::default() }).unwrap().contains("host_oom_killed"));
    }
}
