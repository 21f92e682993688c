//! The MIG instance is too small: the next profile of the same card that holds what is needed.

use super::check::{Rest, against};
use super::{Action, Context, Stage, names, on_node};
use dualplane_base::order::Order as _;
use dualplane_base::units::{Bytes, MIB};
use dualplane_core::change::{Change, Resource};
use dualplane_core::verdict::Trigger;

pub(super) fn advise(cx: &Context<'_>) -> Vec<Action> {
    let mut out = Vec::new();
    let mig = cx.facts.mig.as_ref();
    let oom = cx.verdict.trigger.as_ref().and_then(Trigger::vram);
    let need = oom.as_ref().and_then(|o| o.own().zip(o.requested)).map(|(own, req)| own.saturating_add(req));
    let profile = mig.and_then(|m| m.profile.clone());
    let card = mig
        .and_then(|m| m.card.as_deref())
        .and_then(|c| cx.knowledge.gpu(c))
        .or_else(|| unique_card(cx, profile.as_deref()));
    let size = mig.and_then(|m| m.size).or_else(|| {
        let gpu = card?;
        gpu.mig_size(gpu.mig.iter().find(|p| Some(p.profile.as_str()) == profile.as_deref())?)
    });
    match (card, size) {
        (Some(gpu), Some(size)) => {
            let at_least = need.unwrap_or(Bytes(size.0 + 1));
            let mut larger: Vec<_> = gpu
                .mig
                .iter()
                .filter_map(|p| Some((gpu.mig_size(p)?, p)))
                .filter(|(s, p)| *s > size && *s >= at_least && !p.profile.contains('+'))
                .collect();
            larger.order_by_key(|(s, p)| (*s, p.profile.len()));
            if let Some((s, p)) = larger.first() {
                let why = need.map_or_else(
                    || {
                        format!(
                            "the instance has {size}; the message contains no sizes, so {} is the next \
                    larger profile, not a proven fit",
                            p.profile
                        )
                    },
                    |n| {
                        format!(
                            "at least {n} is needed (this process + the failed request); the instance \
                    has {size}, {} has {s}",
                            p.profile
                        )
                    },
                );
                out.push(
                    Action::new(
                        Stage::Fix,
                        format!(
                            "Request nvidia.com/mig-{} ({} MiB) instead of {} ({} MiB)",
                            p.profile,
                            s.0 / MIB,
                            profile.as_deref().unwrap_or("the current instance"),
                            size.0 / MIB
                        ),
                    )
                    .because(why)
                    .because(format!("profiles of {} as reported by the driver", gpu.id)),
                );
                larger_instance(cx, &p.profile, out.last_mut());
            } else {
                out.push(Action::new(
                    Stage::Fix,
                    format!("Use a whole {}: no larger MIG profile is sufficient", gpu.id),
                ));
            }
        }
        (_, size) => {
            let have = size.map_or_else(
                || "the evidence does not show its size".to_owned(),
                |s| format!("the instance has {s}"),
            );
            out.push(
                Action::new(Stage::Fix, "Request the next larger MIG profile of this GPU, or a whole GPU")
                    .because(format!("{have}; the evidence does not name the GPU"))
                    .run(on_node(&names(cx).node, "nvidia-smi mig -lgip   # profiles and their real sizes")),
            );
        }
    }
    let smaller: Vec<String> = [
        cx.flag(|f| &f.length).map(|f| format!("a shorter {f}")),
        cx.flag(|f| &f.batch).map(|f| format!("fewer {f}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    let smaller = if smaller.is_empty() { String::new() } else { format!(", {}", smaller.join(" with ")) };
    let quantised =
        Action::new(Stage::Fix, format!("Or use a model that fits: a quantised checkpoint{smaller}"));
    out.push(quantised.rests(Rest::Unquantised));
    if !smaller.is_empty() {
        let less = smaller.trim_start_matches(", ");
        let a = Action::new(Stage::Fix, format!("Or ask for less: {less}"));
        out.extend(against(cx, Rest::Unquantised).map(|why| a.because(why)));
    }
    let n = names(cx);
    out.push(
        Action::new(
            Stage::Verify,
            "On the new instance, start-up completes and the engine prints a positive KV cache size",
        )
        .run(format!(
            "kubectl logs -n {} {} -c {} | grep -iE 'kv cache|#tokens|blocks'",
            n.ns, n.pod, n.container
        )),
    );
    out.push(Action::new(
        Stage::Prevent,
        "Plan with the size reported by the driver, not with the profile's name: 1g.18gb of an H200 has \
        16384 MiB",
    ));
    out.push(Action::new(Stage::Avoid, "Do not raise the container's memory limit: it is host RAM"));
    out.push(
        Action::new(
            Stage::Avoid,
            "Do not read \"please report a bug to PyTorch\" as a bug: on MIG the allocator's out-of-memory report itself \
            fails",
        )
        .rests(Rest::Says("report a bug to PyTorch")),
    );
    out
}

/// The container asks for one profile; it is to ask for as many of another.
fn larger_instance(cx: &Context<'_>, profile: &str, action: Option<&mut Action>) {
    let Some((name, count)) =
        cx.container().and_then(|c| c.devices.iter().find(|(n, _)| n.contains("/mig-")))
    else {
        return;
    };
    let of = |name: &str, limit: Option<u64>, was: Option<u64>| {
        let [limit, was] = [limit, was].map(|n| n.map(|n| n.to_string()));
        Change::Resource(Resource { name: name.to_owned(), limit, request: None, was })
    };
    let new = format!("nvidia.com/mig-{profile}");
    if let Some(a) = action {
        a.changes.extend([of(name, None, Some(*count)), of(&new, Some(*count), None)]);
    }
}

/// The only card of the catalogue with this profile name and size.
fn unique_card<'a>(cx: &Context<'a>, profile: Option<&str>) -> Option<&'a dualplane_core::knowledge::Gpu> {
    let profile = profile?;
    let mut it = cx.knowledge.gpus().iter().filter(|g| g.mig.iter().any(|p| p.profile == profile));
    let first = it.next()?;
    it.next().is_none().then_some(first)
}
