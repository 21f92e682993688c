//! Somebody else holds the card, or a quota of it was hit.

use super::share::utilization_flag;
use crate::actions::patch::container_patch;
use crate::actions::{Action, Context, Stage, floor_hundredth, names, on_node};
use dualplane_base::units::{Bytes, GIB, MIB};
use dualplane_core::facts::vram::VramOom;
use serde_json::json;

pub(super) fn conflict(cx: &Context<'_>, oom: &VramOom, out: &mut Vec<Action>) {
    let n = names(cx);
    let hit = cx.verdict.trigger.as_ref().and_then(|t| cx.facts.hits.iter().find(|h| h.place == t.place));
    let free = hit.and_then(|h| h.memory("free")).or(oom.free);
    let total = hit.and_then(|h| h.memory("total")).or(oom.total);
    let desired = hit.and_then(|h| h.memory("desired"));
    if let Some((wanted, quota)) = hit.and_then(|h| Some((h.memory("wanted")?, h.memory("quota")?))) {
        over_quota(cx, wanted, quota, out);
        return;
    }
    out.push(
        Action::new(
            Stage::StopTheBleeding,
            "Find the process that uses the GPU and stop it if it should \
        not be there (a terminating replica, an orphan of a crash, another pod)",
        )
        .run(on_node(&n.node, cx.facts.maker.processes()))
        .run(format!("kubectl get pod -A --field-selector spec.nodeName={} -o wide", n.node))
        .run(on_node(&n.node, "cat /proc/PID/cgroup   # the path names the pod's UID")),
    );
    if let (Some(free), Some(total), Some(desired)) = (free, total, desired) {
        let held = total.saturating_sub(free);
        let fit = floor_hundredth(free.share_of(total));
        out.push(
            Action::new(
                Stage::Fix,
                format!(
                    "Free {} on the GPU for this server: other processes use \
            {held} before it starts",
                    desired.saturating_sub(free)
                ),
            )
            .because(format!(
                "needed {desired} − free {free} = {} short; total {total} − free {free} \
                = {held} used by other processes",
                desired.saturating_sub(free)
            )),
        );
        let shares = held.share_of(total) < 0.25 && cx.weights().is_none_or(|w| w < free);
        if let Some(flag) = utilization_flag(cx).filter(|_| shares) {
            out.push(
                Action::new(
                    Stage::Fix,
                    format!("Or share the GPU on purpose: {flag} {fit} fits the memory that is free now"),
                )
                .because(format!("{free} ÷ {total} = {:.4}, rounded down", free.share_of(total)))
                .set(cx, flag, fit, None),
            );
        }
    } else if let (Some(others), Some(total)) = (oom.others(), oom.total) {
        out.push(
            Action::new(
                Stage::Fix,
                format!(
                    "Give the server its own GPU (or MIG instance): other processes use {others} of {total}"
                ),
            )
            .because(format!(
                "total {total} − free {} − this process {} = {others}",
                oom.free.unwrap_or_default(),
                oom.own().unwrap_or_default()
            )),
        );
    } else {
        out.push(Action::new(
            Stage::Fix,
            "Give the server its own GPU, or start it once the other process's memory use is stable",
        ));
    }
    out.push(
        Action::new(Stage::Prevent, "In a rolling update, let the old pod end before the new one starts: \
        maxSurge 0 or strategy Recreate, and check free VRAM before the start")
            .patch(&json!({
                "spec": { "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 0, "maxUnavailable": 1 } } }
            })),
    );
    out.push(Action::new(
        Stage::Prevent,
        "Time-slicing (nvidia.com/gpu.shared, replicas) does not isolate \
    memory: use MIG or whole GPUs for servers that claim a fraction of the GPU",
    ));
}

/// A layer that shares the card between containers refused what exceeds this one's part.
fn over_quota(cx: &Context<'_>, wanted: Bytes, quota: Bytes, out: &mut Vec<Action>) {
    // The resource counts whole MiB (HAMi docs: nvidia.com/gpumem).
    let room = Bytes(GIB);
    let mib = wanted.saturating_add(room).0.div_ceil(MIB);
    out.push(
        Action::new(
            Stage::Fix,
            format!("Raise the container's share of the card: nvidia.com/gpumem {mib} (MiB) covers the refused allocation and {room} beside it"),
        )
        .because(format!("({wanted} wanted + {room}) ÷ 1 MiB = {mib}, rounded up; the quota is {quota} = {} MiB", quota.0 / MIB))
        .patch(&container_patch(cx, json!({ "resources": { "limits": { "nvidia.com/gpumem": mib.to_string() } } }))),
    );
    if let Some(flag) = utilization_flag(cx) {
        out.push(Action::new(
            Stage::Fix,
            format!("Or keep the quota and lower {flag}: the engine takes its share of the total that the layer shows it"),
        ));
    }
}
