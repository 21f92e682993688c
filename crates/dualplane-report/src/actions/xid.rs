//! GPU faults: the vendor's action for the first Xid, and who else is hit.

use super::{Action, Context, Stage, names, on_node, promql};
use dualplane_core::facts::{Maker, XidEvent};

pub(super) fn advise(cx: &Context<'_>) -> Vec<Action> {
    let mut out = Vec::new();
    let n = names(cx);
    let first = cx.verdict.trigger.as_ref().and_then(|t| cx.facts.xids.iter().find(|x| x.place == t.place));
    let Some(x) = first else {
        text_only(cx, &mut out);
        finish(cx, &mut out);
        return out;
    };
    // Xid 154 is the driver's own summary: its action outranks the table's for the same GPU.
    let summary = cx.facts.xids.iter().rev().find(|s| s.code == 154 && s.pci == x.pci);
    let known = cx.knowledge.xid(x.code);
    let action = summary
        .map(recovery)
        .filter(|a| *a != "none")
        .or(known.map(|k| k.action.as_str()))
        .unwrap_or("reset_gpu");
    let because = match (summary, known) {
        (Some(s), _) if recovery(s) != "none" => format!("Xid 154 on the same GPU: {}", s.detail),
        (_, Some(k)) => format!(
            "Xid {}: vendor bucket {} (then {})",
            k.code,
            or_dash(&k.immediate),
            or_dash(&k.investigate)
        ),
        _ => format!(
            "Xid {} is not in the catalogue; a reset is the safe step before using the GPU again",
            x.code
        ),
    };
    match action {
        "restart_app" => out.push(
            Action::new(Stage::StopTheBleeding, "Restart the server; the GPU itself needs no reset")
                .because(because)
                .run(format!("kubectl delete pod {} -n {}", n.pod, n.ns)),
        ),
        "none" => out.push(
            Action::new(Stage::StopTheBleeding, "This Xid alone requires no action on the GPU")
                .because(because),
        ),
        "reboot_node" => {
            out.push(
                Action::new(Stage::StopTheBleeding, "Drain the node and reboot it")
                    .because(because)
                    .run(format!("kubectl cordon {}", n.node))
                    .run(format!("kubectl drain {} --ignore-daemonsets --delete-emptydir-data", n.node))
                    .run(on_node(&n.node, "systemctl reboot")),
            );
        }
        _ => {
            out.push(
                Action::new(Stage::StopTheBleeding, "Drain the pods of this GPU, then reset it")
                    .because(because)
                    .run(format!("kubectl cordon {}", n.node))
                    .run(format!("kubectl drain {} --ignore-daemonsets --delete-emptydir-data", n.node))
                    .run(on_node(&n.node, &format!("nvidia-smi --gpu-reset -i {}", x.pci))),
            );
        }
    }
    if let Some(k) = known {
        out.push(
            Action::new(
                Stage::Fix,
                format!("Decide whether to return the GPU to service or replace it: {}", k.meaning),
            )
            .because(affects(k)),
        );
        if let Some(a) = out.last_mut() {
            for command in k.then.list() {
                a.commands.push(command.replace("<pci>", &x.pci));
            }
        }
    }
    finish(cx, &mut out);
    out
}

fn affects(k: &dualplane_core::knowledge::Xid) -> String {
    if k.affects_text.is_empty() {
        format!("affected: {}", or_dash(&k.affects))
    } else {
        k.affects_text.clone()
    }
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "—" } else { text }
}

/// Action of an Xid 154 text, the state it changed *to*.
fn recovery(x: &XidEvent) -> &'static str {
    let to = x.detail.rsplit(" to ").next().unwrap_or_default();
    match to {
        t if t.contains("Node Reboot") => "reboot_node",
        t if t.contains("Drain and Reset") => "drain_and_reset",
        t if t.contains("GPU Reset") => "reset_gpu",
        t if t.contains("Drain P2P") => "drain_and_reset",
        _ => "none",
    }
}

/// Only the engine reports the fault: ask the driver first.
fn text_only(cx: &Context<'_>, out: &mut Vec<Action>) {
    let n = names(cx);
    out.push(
        Action::new(
            Stage::StopTheBleeding,
            "Restart the server, and check the driver's Xid before \
        relying on this GPU again",
        )
        .because(
            "the engine reports a GPU fault; whether to restart, reset or replace depends on the \
            Xid, which the evidence does not contain",
        )
        .run(on_node(&n.node, cx.facts.maker.kernel_words()))
        .run(on_node(&n.node, cx.facts.maker.faults())),
    );
    let illegal = cx
        .verdict
        .trigger
        .as_ref()
        .is_some_and(|t| t.text.contains("illegal") || t.text.contains("launch failure"));
    if illegal {
        out.push(
            Action::new(
                Stage::Fix,
                "If dmesg shows Xid 13 or 31 on different GPUs in turn, the program \
            is at fault: find the GPU kernel; if it is always the same GPU, run the vendor's diagnostics \
            on it",
            )
            .run("dcgmi diag -r 3")
            .run(
                "CUDA_LAUNCH_BLOCKING=1 in the server's environment identifies the kernel (slow: use \
                on one replica only)",
            ),
        );
    }
}

fn finish(cx: &Context<'_>, out: &mut Vec<Action>) {
    let n = names(cx);
    if cx.facts.maker == Maker::Nvidia {
        out.push(
            Action::new(
                Stage::Verify,
                "No new Xid during a day of traffic, and no pending \
    remap",
            )
            .run(on_node(
                &n.node,
                "nvidia-smi --query-remapped-rows=gpu_bus_id,remapped_rows.pending,remapped_rows.failure \
    --format=csv",
            ))
            .run(promql("changes(DCGM_FI_DEV_XID_ERRORS[1d]) == 0")),
        );
        out.push(Action::new(
            Stage::Prevent,
            "Let the device plugin remove faulty GPUs (health check), and \
    alert on DCGM_FI_DEV_XID_ERRORS other than 13, 31, 43, 45",
        ));
    } else {
        out.push(
            Action::new(Stage::Verify, "No new fault of the GPU during a day of traffic")
                .run(on_node(&n.node, cx.facts.maker.faults()))
                .run(on_node(&n.node, cx.facts.maker.kernel_words())),
        );
        out.push(Action::new(Stage::Prevent, "Let the device plugin remove faulty GPUs (health check)"));
    }
    out.push(Action::new(
        Stage::Avoid,
        "Do not change memory limits, utilisation or context length: nothing ran out of memory",
    ));
}
