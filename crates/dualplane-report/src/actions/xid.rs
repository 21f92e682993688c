//! GPU faults: the vendor's action for the first Xid, and who else is hit.

use super::{Action, Context, Stage, names, on_node, promql, scaling};
use dualplane_core::facts::{Maker, XidEvent};

pub(super) fn advise(cx: &Context<'_>) -> Vec<Action> {
    let mut out = Vec::new();
    let first = cx.verdict.trigger.as_ref().and_then(|t| cx.facts.xids.iter().find(|x| x.place == t.place));
    match first {
        Some(x) => by_code(cx, x.caused_by.unwrap_or(x.code), &x.pci, &mut out),
        None => match of_gauge(cx) {
            Some((code, pci)) => by_code(cx, code, &pci, &mut out),
            None => text_only(cx, &mut out),
        },
    }
    finish(cx, &mut out);
    out
}

/// The code that DCGM's gauge shows, and the address of the card where the sample names it.
fn of_gauge(cx: &Context<'_>) -> Option<(u32, String)> {
    let place = &cx.verdict.trigger.as_ref()?.place;
    let sample = cx.bundle.metrics.iter().find(|s| s.file == place.file && Some(s.line) == place.line)?;
    let code = if sample.name == "DCGM_FI_DEV_XID_ERRORS" && sample.value >= 1.0 {
        sample.value as u32
    } else {
        sample.label("err_code")?.parse().ok()?
    };
    let index = sample.label("gpu").filter(|g| g.len() <= 2 && g.chars().all(|c| c.is_ascii_digit()));
    let card = sample.label("pci_bus_id").and_then(dualplane_core::facts::pci_address);
    Some((code, card.or(index.map(str::to_owned)).unwrap_or_else(|| "GPU".to_owned())))
}

/// What the vendor's table says of a code, or the driver itself.
fn by_code(cx: &Context<'_>, code: u32, card: &str, out: &mut Vec<Action>) {
    let n = names(cx);
    // The address comes from a log: only what an address is made of goes into a command.
    let plain = !card.is_empty() && card.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, ':' | '.'));
    let card = if plain { card } else { "GPU" };
    // Xid 154 is the driver's own summary: its action outranks the table's for the same GPU.
    let summary = cx.facts.xids.iter().rev().find(|s| s.code == 154 && s.pci == card);
    let known = cx.knowledge.xid(code);
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
        _ => {
            format!("Xid {code} is not in the catalogue; a reset is the safe step before using the GPU again")
        }
    };
    let drains = !matches!(action, "restart_app" | "none");
    if drains {
        out.push(
            Action::new(
                Stage::StopTheBleeding,
                "Keep new pods off the node, and save the driver's state: a reset or a reboot erases it",
            )
            .run(format!("kubectl cordon {}", n.node))
            .run(on_node(&n.node, "nvidia-bug-report.sh")),
        );
        out.extend(scaling::blocked(cx));
    }
    let drain = |title: &str, last: &str| {
        Action::new(Stage::StopTheBleeding, title)
            .because(because.clone())
            .because("move its traffic to other replicas first; a drain ends every pod of the node")
            .run(format!("kubectl drain {} --ignore-daemonsets --delete-emptydir-data", n.node))
            .run(on_node(&n.node, last))
    };
    out.push(match action {
        "restart_app" => {
            Action::new(Stage::StopTheBleeding, "Restart the server; the GPU itself needs no reset")
                .because(because.clone())
                .run(format!("kubectl delete pod {} -n {}", n.pod, n.ns))
        }
        "none" => Action::new(Stage::StopTheBleeding, "This Xid alone requires no action on the GPU")
            .because(because.clone()),
        "reboot_node" => drain("Drain the node and reboot it", "systemctl reboot"),
        _ => drain(
            "Drain the pods of this GPU, then reset it",
            &of_card("nvidia-smi --gpu-reset -i <pci>", card),
        ),
    });
    let Some(k) = known else { return };
    let question = if drains {
        "Decide whether to return the GPU to service or replace it"
    } else {
        "Find out what made it, and whether it comes back on the same GPU"
    };
    let decide = Action::new(Stage::Fix, format!("{question}: {}", k.meaning)).because(affects(k));
    // What was run before the drain is not run again.
    let done = ["nvidia-bug-report.sh", "nvidia-smi --gpu-reset -i <pci>"];
    let steps = k.then.list().into_iter().filter(|s| !drains || !done.contains(s));
    out.push(steps.fold(decide, |a, step| match step.strip_prefix("# ") {
        Some(words) => a.because(format!("also: {words}")),
        None => a.run(on_node(&n.node, &of_card(step, card))),
    }));
}

/// A command of the table for this card: by its PCI address as the tools write it, or by its index as DCGM's gauge has it.
/// Where neither is known the command asks for all cards, and has a placeholder where it would act on one.
fn of_card(command: &str, card: &str) -> String {
    let by_address = card.contains(':');
    let id = match by_address {
        true if !card.contains('.') => format!("{card}.0"),
        false if card.is_empty() || !card.chars().all(|c| c.is_ascii_digit()) => {
            let all = command.replace("--gpu-reset -i <pci>", "--gpu-reset -i GPU_ID");
            return all.replace(" -i <pci>", "").replace(" -s <pci>", " -d 10de:").replace(" -i <index>", "");
        }
        _ => card.to_owned(),
    };
    if !by_address {
        return command.replace(" -s <pci>", " -d 10de:").replace("<pci>", &id).replace("<index>", &id);
    }
    let index = format!("$(nvidia-smi --query-gpu=index --format=csv,noheader -i {id})");
    command.replace("<pci>", &id).replace("<index>", &index)
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

/// A node that was taken out comes back, or is replaced.
fn uncordon(cx: &Context<'_>, out: &mut Vec<Action>) {
    let node = names(cx).node;
    let cordoned = out.iter().flat_map(|a| &a.commands).any(|c| c.starts_with("kubectl cordon"));
    if cordoned {
        out.push(
            Action::new(
                Stage::Verify,
                "Only when the diagnosis passes, let the node take pods again; else give the saved state to the vendor",
            )
            .run(format!("kubectl uncordon {node}")),
        );
    }
}

/// Only the engine reports the fault: ask the driver first.
fn text_only(cx: &Context<'_>, out: &mut Vec<Action>) {
    let n = names(cx);
    let what = if cx.facts.maker == Maker::Nvidia { "Xid" } else { "message" };
    out.push(
        Action::new(
            Stage::StopTheBleeding,
            format!("Restart the server, and check the driver's {what} before relying on this GPU again"),
        )
        .because(format!(
            "whether to restart, reset or replace depends on the driver's {what}, which the evidence does not contain"
        ))
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
            .because(
                "CUDA_LAUNCH_BLOCKING=1 in the server's environment identifies the kernel (slow: use on one replica only)",
            )
            .run(on_node(&n.node, "dcgmi diag -r 3")),
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
        uncordon(cx, out);
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
