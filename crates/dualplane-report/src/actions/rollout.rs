//! A roll-out came before the death: what it changed can be taken back while the cause is looked for.

use super::{Action, Context, Stage, names};
use dualplane_base::units::parse_k8s_memory;
use dualplane_base::{Class, Plane};
use dualplane_core::evidence::{Change, Rollout};
use dualplane_core::verdict::{Names, bearing_changes};

/// Fields that are named in a title.
const NAMED: usize = 4;

pub(super) fn advise(cx: &Context<'_>) -> Vec<Action> {
    let mut out = Vec::new();
    let bearing = bearing_changes(cx.bundle, cx.verdict.class, &cx.verdict.subject);
    if bearing.is_empty() {
        out.extend(cx.bundle.rollouts.iter().find_map(|r| pause(cx, r)));
    }
    for (rollout, changes) in bearing {
        out.extend(back(cx, rollout, &changes));
        if cx.verdict.class == Class::HostOomKilled {
            out.extend(limit(cx, rollout, &changes));
        }
    }
    out
}

/// A roll-out lowered the limit: the one before is known to have worked, which no computed one is.
pub(super) fn lowered_the_limit(cx: &Context<'_>) -> bool {
    let bearing = bearing_changes(cx.bundle, cx.verdict.class, &cx.verdict.subject);
    bearing.iter().any(|(rollout, changes)| limit(cx, rollout, changes).is_some())
}

/// The whole revision.
fn back(cx: &Context<'_>, rollout: &Rollout, changes: &[&Change]) -> Option<Action> {
    let (kind, name) = rollout.workload.split_once('/')?;
    // Others are rolled back by their own controllers.
    if !matches!(kind, "deployment" | "statefulset" | "daemonset") {
        return None;
    }
    let mut fields: Vec<&str> = changes.iter().map(|c| c.field.as_str()).take(NAMED).collect();
    if changes.len() > NAMED {
        fields.push("more");
    }
    let title = format!(
        "If revision {} was stable, roll back to it: revision {} changed {}",
        rollout.from,
        rollout.to,
        fields.join(", ")
    );
    let command = format!(
        "kubectl rollout undo {kind}/{} -n {} --to-revision={}",
        Names::safe(Some(name), "NAME"),
        names(cx).ns,
        rollout.from
    );
    Some(Action::new(Stage::StopTheBleeding, title).run(command))
}

/// Another change was rolled out: whether it matters is not known, so that it goes no further.
fn pause(cx: &Context<'_>, rollout: &Rollout) -> Option<Action> {
    if !matches!(cx.verdict.class.plane(), Plane::Host | Plane::Gpu) || rollout.changes.is_empty() {
        return None;
    }
    // Only Deployments can be paused.
    let name = rollout.workload.strip_prefix("deployment/")?;
    let title = format!(
        "While replicas of revision {} still serve, pause the roll-out of revision {}: no more of them are replaced",
        rollout.from, rollout.to
    );
    Some(
        Action::new(Stage::StopTheBleeding, title)
            .because("kubectl rollout resume comes before the fix: a paused Deployment rolls nothing out")
            .run(format!(
                "kubectl rollout pause deployment/{} -n {}",
                Names::safe(Some(name), "NAME"),
                names(cx).ns
            )),
    )
}

/// A limit that was lowered.
fn limit(cx: &Context<'_>, rollout: &Rollout, changes: &[&Change]) -> Option<Action> {
    let of = |field: &str| changes.iter().find(|c| c.field == field);
    let limit = of("resources.limits.memory")?;
    let (before, after) = (limit.before.as_deref()?, limit.after.as_deref()?);
    let (was, is) = (parse_k8s_memory(before)?, parse_k8s_memory(after)?);
    if was <= is {
        return None;
    }
    let request = of("resources.requests.memory").and_then(|c| parse_k8s_memory(c.before.as_deref()?));
    let title = format!("Set the memory limit back to {}, which revision {} had", was.k8s(), rollout.from);
    Some(
        Action::new(Stage::Fix, title)
            .because(format!("revision {} lowered it from {} to {}", rollout.to, was.k8s(), is.k8s()))
            .memory(cx, request, was),
    )
}
