//! Nothing ended, and a plane stands at its limit: what to do before it does.

use super::check::Rest;
use super::{Action, Context, Stage, names, of_limit, own_cgroup_and_stat, promql};
use dualplane_base::Plane;
use dualplane_base::units::GIB;
use dualplane_core::verdict::pressure::{Bound, Level, Pressure, Reading};
use dualplane_core::verdict::rules::UNDER_PRESSURE;

/// The share at which the use stands with the new limit: below where it would be near again (85 %).
const TARGET: f64 = 0.8;

/// `None` where no plane is at its limit, or something else ended and is the matter.
pub(super) fn advise(cx: &Context<'_>) -> Option<Vec<Action>> {
    let p = cx.verdict.pressure.as_ref().filter(|p| p.bound != Bound::None)?;
    if cx.verdict.decided_by != UNDER_PRESSURE {
        return None;
    }
    let mut out = Vec::new();
    let high = |plane| p.worst(plane).filter(|r| r.level == Level::High);
    let (host, gpu) = (high(Plane::Host), high(Plane::Gpu));
    if let Some(r) = host {
        of_host(cx, r, &mut out);
    }
    if let Some(r) = gpu {
        of_gpu(cx, r, &mut out);
    }
    verify(cx, p, &mut out);
    if host.is_none() {
        out.push(Action::new(
            Stage::Avoid,
            "Do not raise the container's memory limit for this: resources.limits.memory is host RAM, and host RAM is \
            not short",
        ).rests(Rest::TwoPools));
    }
    if gpu.is_none() {
        out.push(
            Action::new(
                Stage::Avoid,
                "Do not change settings of VRAM for this: they do not change the use of host RAM",
            )
            .rests(Rest::TwoPools),
        );
    }
    Some(out)
}

fn of_host(cx: &Context<'_>, r: &Reading, out: &mut Vec<Action>) {
    let n = names(cx);
    let Some((used, limit)) = r.bytes else { return };
    out.push(
        Action::new(
            Stage::StopTheBleeding,
            "Find what holds the memory while it is there: which process, and which kind",
        )
        .run(n.exec(&own_cgroup_and_stat(
            "memory.current memory.usage_in_bytes",
            "anon|file|shmem|unevictable|total_rss|total_cache|total_shmem",
        )))
        .run(n.exec("sh -c 'grep -s VmRSS /proc/[0-9]*/status | sort -k2 -nr | head -n 5'")),
    );
    if let Some(g) = &r.growth {
        out.push(
            Action::new(
                Stage::StopTheBleeding,
                "Restart in order before the limit is reached, one replica at a time, or raise the limit to gain time",
            )
            .because(format!("{}; {} of limit are an hour", g.sentence(), g.per_hour)),
        );
        out.push(Action::new(
            Stage::Fix,
            "Find what grows: compare its beginning with the last change of version, workers or traffic; growth at \
            constant traffic is a leak",
        ));
        return;
    }
    let want = used.scale(1.0 / TARGET).round_up_to(GIB);
    if want > limit {
        let title = format!("Raise the memory request and limit to {} (from {})", want.k8s(), limit.k8s());
        let a = Action::new(Stage::Fix, title).because(format!(
            "{used} in use ÷ {TARGET}, rounded up to whole GiB = {}: it then stands at 80 % or below",
            want.k8s()
        ));
        // A patch names the subject's container; another one's limit is for a person to find.
        let own = cx.verdict.subject.container.is_some() && r.container == cx.verdict.subject.container;
        out.push(if own { a.memory(cx, Some(want), want) } else { a });
    }
    out.push(Action::new(
        Stage::Fix,
        "Or use less: fewer workers, smaller batches and requests, smaller pinned or offload pools",
    ));
}

fn of_gpu(cx: &Context<'_>, r: &Reading, out: &mut Vec<Action>) {
    let length = cx.flag(|f| &f.length).unwrap_or("the longest request");
    let batch = cx.flag(|f| &f.batch).unwrap_or("the number of requests at a time");
    let Some((used, total)) = r.bytes else {
        // The KV cache is full, and requests wait.
        out.push(Action::new(
            Stage::Fix,
            format!(
                "Admit less ({batch}), shorten {length}, or give the KV cache more room: a quantised model, more GPUs, \
                another replica"
            ),
        ));
        return;
    };
    let free = total.saturating_sub(used);
    let share =
        super::vram::utilization_flag(cx).filter(|_| cx.facts.engine.head().is_some_and(|d| d.preallocates));
    let share = super::pool_size::given(cx).map(|p| p.flag).or(share);
    // The rest of the card is to be 5 % of it.
    let lower = super::vram::utilization(cx).map(|(u, from)| {
        (super::floor_hundredth(u - total.scale(0.05).saturating_sub(free).share_of(total)), u, from)
    });
    out.push(match share {
        Some(flag) if lower.as_ref().is_some_and(|(to, u, _)| to < u && *to > 0.05) => {
            let (to, u, from) = lower.unwrap_or_default();
            Action::new(
                Stage::Fix,
                format!("Set {flag} {to} (from {u}): {free} outside of it are too little for activations, graphs and rounding"),
            )
            .because(format!(
                "{total} − {used} = {free}; 5 % of the card are {}; {u} ({from}) − the difference ÷ {total}, rounded down",
                total.scale(0.05)
            ))
            .set(cx, flag, to, Some(u.to_string()))
        }
        Some(flag) => Action::new(
            Stage::Fix,
            format!("Lower {flag}: {free} outside of it are too little for activations, graphs and rounding"),
        )
        .because(format!("{total} − {used} = {free}; keep 5 % of the card, {}", total.scale(0.05))),
        None => Action::new(
            Stage::Fix,
            format!(
                "Take less of the card: lower {batch}, {length} or the size of a step, or use a smaller model"
            ),
        )
        .because(format!("{total} − {used} = {free} left")),
    });
}

fn verify(cx: &Context<'_>, p: &Pressure, out: &mut Vec<Action>) {
    let n = names(cx);
    let mut a = Action::new(
        Stage::Verify,
        "At peak traffic, host RAM stays below 90 % of its limit and VRAM below 95 %, and neither grows",
    );
    if p.bound != Bound::Gpu {
        a = a.run(promql(&format!("{} < 0.9", of_limit(&n, true))));
    }
    if p.bound != Bound::Host {
        a = a.run(n.exec(cx.facts.maker.follow()));
    }
    out.push(a);
}
