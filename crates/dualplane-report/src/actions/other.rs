//! Not memory, or unknown: no lever is turned; the next step is said.

use serde_json::json;

use super::patch::container_patch;
use super::{Action, Context, Stage, names, next, quotes};
use dualplane_base::Class;
use dualplane_core::verdict::Names;

pub(super) fn advise(cx: &Context<'_>) -> Vec<Action> {
    if cx.verdict.class == Class::Unknown { unknown(cx) } else { not_memory(cx) }
}

fn unknown(cx: &Context<'_>) -> Vec<Action> {
    let mut a =
        Action::new(Stage::StopTheBleeding, "Get the decisive evidence before the next restart erases it");
    // Of a workload that is only named, its pods come first.
    a.commands.extend(super::scaling::pods(cx));
    a.commands.extend(fetches(cx));
    vec![
        a,
        Action::new(
            Stage::Avoid,
            "Do not change memory settings on a guess: there is no proof that host RAM or VRAM failed",
        ),
    ]
}

fn not_memory(cx: &Context<'_>) -> Vec<Action> {
    let mut out = Vec::new();
    let n = names(cx);
    let told = |words: &str| quotes(cx).any(|q| q.contains(words));
    let startup = told("failed startup probe");
    if startup || told("failed liveness probe") {
        probe(cx, startup, &mut out);
    } else if told("ephemeral-storage") || told("No space left on device") {
        out.push(
            Action::new(
                Stage::Fix,
                "Free or limit the full disk: give caches a volume with a size \
        limit, or lower their limit",
            )
            .run(n.exec("df -h")),
        );
    }
    if told("FailedPostStartHook") {
        out.push(
            Action::new(
                Stage::Fix,
                "Mend the container's postStart hook: the kubelet kills a container whose hook fails. Its event quotes what \
                the hook printed",
            )
            .run(format!(
                "kubectl get events -n {} --field-selector involvedObject.name={},reason=FailedPostStartHook",
                n.ns, n.pod
            ))
            .run(format!("kubectl get pod {} -n {} -o jsonpath='{{.spec.containers[*].lifecycle.postStart}}'", n.pod, n.ns)),
        );
    }
    if out.is_empty() {
        out.push(next::step(cx));
    }
    // A cause that is not shown may be memory after all.
    let avoid = if cx.verdict.doubted() {
        out.splice(0..0, [settle(cx)]);
        "Do not change host RAM or VRAM settings before the evidence shows that one of them ran out"
    } else {
        "Do not change host RAM or VRAM settings for this"
    };
    out.push(Action::new(Stage::Avoid, avoid));
    out
}

/// Gets what would show the cause behind the end.
fn settle(cx: &Context<'_>) -> Action {
    let mut a = Action::new(
        Stage::StopTheBleeding,
        "Get what shows the cause behind it before the next restart erases it: memory is not excluded",
    );
    a.commands.extend(fetches(cx));
    a
}

/// The commands that get what is missing.
fn fetches(cx: &Context<'_>) -> impl Iterator<Item = String> {
    cx.verdict.missing.iter().filter_map(|gap| gap.command.clone())
}

/// The largest models load for half an hour from a network file system; who lived longer was most likely up.
const LONGEST_START_S: i64 = 1800;

/// A probe gave up on a start that takes longer than it allows.
fn probe(cx: &Context<'_>, startup: bool, out: &mut Vec<Action>) {
    let n = names(cx);
    let pod = cx.verdict.subject.pod_of(cx.bundle);
    let container = pod
        .and_then(|p| p.containers.iter().find(|c| Some(&c.name) == cx.verdict.subject.container.as_ref()));
    let spec = container.and_then(|c| if startup { c.startup } else { c.liveness });
    let lived = cx
        .verdict
        .subject
        .death
        .as_ref()
        .and_then(|d| d.started.zip(d.finished))
        .and_then(|(a, b)| a.ms_until(b))
        .map(|ms| ms / 1000);
    if let Some(code) = cx.verdict.subject.refused_probe(cx.bundle) {
        out.push(
            Action::new(
                Stage::Fix,
                format!("Correct the probe's path, port or headers: the server answered it with {code}, so that it was alive"),
            )
            .run(format!(
                "kubectl get pod {} -n {} -o jsonpath='{{.spec.containers[*].livenessProbe}} {{.spec.containers[*].startupProbe}}'",
                n.pod, n.ns
            )),
        );
        out.push(no_kill(&n));
        return;
    }
    let lived_text = lived.map_or_else(
        || "the evidence does not show how long a start takes".to_owned(),
        |s| format!("the container ran for {s} s until the kill"),
    );
    let allowed = spec.map(|p| p.initial_delay + p.period * p.failure_threshold);
    let serving = matches!(cx.verdict.phase, dualplane_base::Phase::Traffic | dualplane_base::Phase::Idle);
    // A liveness probe fails at any time: without a log nothing but a short life says that it was a start.
    let brief = lived.is_some_and(|s| s < LONGEST_START_S);
    let starting = startup || !serving && (brief || cx.verdict.phase != dualplane_base::Phase::Unknown);
    let mut a = if starting {
        // Twice what was not enough is a start for a measurement, not a promise.
        let period = spec.map_or(10, |p| p.period.max(1));
        let want = lived.map(|s| (s.max(60) as u64 * 2).div_ceil(period));
        match want {
            Some(t) => Action::new(
                Stage::Fix,
                format!(
                    "Allow more time to start: startupProbe \
            failureThreshold {t} at periodSeconds {period} ({} s), then measure the real load time and \
            set 1.5 × that",
                    t * period
                ),
            )
            .because(format!(
                "{lived_text} and was not ready by then; 2 × that ÷ {period} s, rounded up = {t}"
            ))
            .patch(&container_patch(
                cx,
                json!({ "startupProbe": { "failureThreshold": t, "periodSeconds": period } }),
            )),
            None => Action::new(
                Stage::Fix,
                "Allow more time to start: a startupProbe with \
            failureThreshold × periodSeconds = 1.5 × the measured load time",
            )
            .because(lived_text),
        }
    } else {
        Action::new(
            Stage::Fix,
            "Find out why /health did not respond in time (event loop blocked, engine \
        stuck, overload), and only then relax the liveness probe",
        )
        .because(lived_text)
    };
    if let Some(s) = allowed {
        a = a.because(format!(
            "the probe currently allows {s} s (initialDelaySeconds + periodSeconds × failureThreshold)"
        ));
    }
    out.push(a);
    out.push(no_kill(&n));
}

fn no_kill(n: &Names) -> Action {
    Action::new(Stage::Verify, "The pod becomes Ready without a Killing event").run(format!(
        "kubectl get events -n {} --field-selector involvedObject.name={},reason=Killing",
        n.ns, n.pod
    ))
}
