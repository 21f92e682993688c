//! What stops the damage while the cause is looked for: a smaller launch, none at all, less traffic; and never more replicas
//! of what does not fit.

use super::{Action, Context, Stage, Workload, names, workload};
use dualplane_base::units::thousands;
use dualplane_base::{Class, Phase, Plane};
use dualplane_engines::Descriptor;

/// A launch that fits nearly everywhere: short requests, few at a time, and room beside the pool. What it refuses meanwhile
/// is said with it.
const LENGTH: u64 = 4096;
const REQUESTS: u64 = 32;
const SHARE: f64 = 0.88;

/// `others` are the actions that the class advises.
pub(super) fn advise(cx: &Context<'_>, others: &[Action]) -> Vec<Action> {
    let mut out = Vec::new();
    // Where a setting was computed, that is the first thing to do.
    if !others.iter().any(|a| a.stage == Stage::Fix && !a.changes.is_empty()) {
        out.extend(small_envelope(cx));
    }
    if cx.verdict.class == Class::HostOomKilled && cx.verdict.phase == Phase::Traffic {
        out.push(Action::new(
            Stage::StopTheBleeding,
            "Let the gateway send fewer requests at a time, and none of the largest, until the limit or the cause is \
            changed: a kill takes all requests in flight with it",
        ));
    }
    if never_serves(cx) {
        out.extend(to_zero(cx));
        out.push(Action::new(
            Stage::Avoid,
            "Do not add replicas of this launch: each needs the same memory and fails the same way",
        ));
    }
    out
}

/// It failed before it served, by what each replica of this launch needs.
fn never_serves(cx: &Context<'_>) -> bool {
    let by_size = matches!(
        cx.verdict.class,
        Class::HostOomKilled | Class::CudaOomLoad | Class::KvCacheCapacity | Class::MigSliceTooSmall
    );
    by_size && matches!(cx.verdict.phase, Phase::Load | Phase::Profile)
}

/// Each restart of what cannot start reads the weights again and keeps a GPU from others.
fn to_zero(cx: &Context<'_>) -> Option<Action> {
    let Workload::Rolling(of) = workload(cx) else { return None };
    // A DaemonSet has no number of replicas.
    if of.starts_with("daemonset/") {
        return None;
    }
    let n = names(cx);
    Some(
        Action::new(
            Stage::StopTheBleeding,
            "If no replica serves, scale to 0 until the settings are changed: each restart reads the weights again and \
            keeps the GPU",
        )
        .because("first note the number of replicas; afterwards the second command with it scales back")
        .run(format!("kubectl get {of} -n {} -o jsonpath='{{.spec.replicas}}'", n.ns))
        .run(format!("kubectl scale {of} -n {} --replicas=0", n.ns)),
    )
}

/// Smaller settings of an engine whose pool divides a share of the card among requests.
fn small_envelope<'a>(cx: &Context<'a>) -> Option<Action> {
    let serving = matches!(cx.verdict.phase, Phase::Traffic | Phase::Profile);
    let pool =
        matches!(cx.verdict.class, Class::CudaOomRuntime | Class::Fragmentation | Class::KvCacheCapacity);
    if !serving || !pool || cx.verdict.class.plane() != Plane::Gpu {
        return None;
    }
    let head = cx.facts.engine.head().filter(|d| d.preallocates && !d.flags.share.is_empty())?;
    let e = &cx.facts.engine;
    // What is smaller already is not raised; what is not known is larger by default.
    let number = |flag: Option<&'a String>, now: Option<f64>, want: u64| {
        flag.filter(|_| now.is_none_or(|n| n > want as f64)).map(|f| (f.as_str(), want, now))
    };
    let (lengths, batches) = (&head.flags.length, &head.flags.batch);
    let length = number(lengths.first(), e.lever_number(lengths), LENGTH);
    let requests = number(batches.first(), e.lever_number(batches), REQUESTS);
    let share = share(cx, head);
    let mut a = Action::new(Stage::StopTheBleeding, String::new());
    let mut settings = Vec::new();
    for (flag, want, now) in [length, requests].into_iter().flatten() {
        settings.push(format!("{flag} {want}"));
        a = a.set(cx, flag, want, now.map(|n| n.to_string()));
    }
    if let Some((flag, now)) = share {
        settings.push(format!("{flag} {SHARE}"));
        a = a.set(cx, flag, SHARE, Some(now.to_string()));
    }
    if settings.is_empty() {
        return None;
    }
    a.title = format!("Until the cause is removed, serve with a small envelope: {}", settings.join(", "));
    if length.is_some() {
        a = a.because(format!("requests of more than {} tokens are refused meanwhile", thousands(LENGTH)));
    }
    Some(a)
}

/// The share leaves room for a step; a KV cache that is too small needs no smaller one.
fn share<'a>(cx: &Context<'a>, head: &'a Descriptor) -> Option<(&'a str, f64)> {
    let (now, _) = super::vram::utilization(cx).filter(|_| cx.verdict.class == Class::CudaOomRuntime)?;
    let flag = head.flags.share.first()?;
    (now > SHARE).then_some((flag.as_str(), now))
}
