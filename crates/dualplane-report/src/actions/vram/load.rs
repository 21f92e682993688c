//! The weights did not fit while they were loaded: more VRAM for each copy, or fewer bytes on it.

use super::counsel::counsel;
use crate::actions::check::Rest;
use crate::actions::{Action, Context, Stage};
use dualplane_base::units::Bytes;
use dualplane_core::facts::vram::VramOom;
use dualplane_core::verdict::Trigger;
use dualplane_plan::{Verdict, answer};

pub(super) fn load(cx: &Context<'_>, oom: &VramOom, out: &mut Vec<Action>) {
    let need = oom.own().zip(oom.requested).map(|(own, req)| own.saturating_add(req));
    if let (Some(need), Some(total)) = (need, oom.total) {
        out.push(
            Action::new(Stage::Fix, format!("Give the model more VRAM per copy: it needs at least {need} on this GPU before it can serve, and the GPU has {total}"))
                .because(format!("this process {} + the failed request {} = {need}, a lower bound because \
                loading was not finished", oom.own().unwrap_or_default(), oom.requested.unwrap_or_default()))
                .rests(Rest::TooSmall { need, total }),
        );
    }
    counsel(cx, |a| &a.load, oom, out).unwrap_or_else(|| {
        out.push(Action::new(Stage::Fix, "Shard the model over more GPUs, or load quantised weights"))
    });
}

pub(super) fn tensor_parallel(cx: &Context<'_>) -> Action {
    let flag = cx.flag(|f| &f.tensor_parallel).unwrap_or("the tensor-parallel size");
    let e = &cx.facts.engine;
    // A server that is told nothing of ranks and fails on the fourth card runs at least four.
    let oom = cx.verdict.trigger.as_ref().and_then(Trigger::vram).unwrap_or_default();
    let device = oom.gpu.map(u64::from).filter(|g| *g > 0 && !e.ranks_are_given());
    let by_device = device.map(|g| (g + 1).next_power_of_two()).filter(|n| *n > e.ranks() as u64);
    // What is only seen is a lower bound: heads are split over a power of two.
    let seen = e.ranks() as u64;
    let now = by_device.unwrap_or(if e.ranks_are_given() { seen } else { seen.next_power_of_two() });
    let known = if let (Some(device), Some(_)) = (device, by_device) {
        format!("GPU {device} failed, so that at least {} cards are in use", device + 1)
    } else if e.ranks_are_given() {
        format!("{flag} is currently {now}")
    } else {
        match seen {
            1 => "nothing shows more than one rank".to_owned(),
            n => format!("the log shows at least {n} ranks"),
        }
    };
    if let Some((ranks, each)) = ranks_that_fit(cx, now) {
        let a = Action::new(
            Stage::Fix,
            format!(
                "Set {flag} {ranks} (and the pod's GPU count accordingly): the plan of this model fits then"
            ),
        )
        .because(format!("{known}; with {ranks} ranks the weights take {each} of each GPU"))
        .rests(Rest::MoreRanks(ranks));
        return with_gpus(cx, a, flag, ranks, now);
    }
    let a = Action::new(
        Stage::Fix,
        format!(
            "Set {flag} {} (and the pod's GPU count accordingly): this halves the weights per rank",
            now * 2
        ),
    )
    .because(format!("{known}; each doubling halves the sharded weights per GPU"))
    .rests(Rest::MoreRanks(now * 2));
    with_gpus(cx, a, flag, now * 2, now)
}

/// The one without the other would not start.
fn with_gpus(cx: &Context<'_>, a: Action, flag: &str, ranks: u64, now: u64) -> Action {
    match cx.gpus(ranks) {
        Some(gpus) => {
            let a = a.set(cx, flag, ranks, Some(now.to_string()));
            if a.changes.is_empty() { a } else { gpus.into_iter().fold(a, Action::change) }
        }
        None => a,
    }
}

/// Ranks of a node, by powers of two, that hold the model, and what each then holds of weights: as the plan of the launch says
/// where it says that the ranks of now do not.
fn ranks_that_fit(cx: &Context<'_>, now: u64) -> Option<(u64, Bytes)> {
    let launch = &cx.budget.expected.as_ref()?.launch;
    let (named, placed) = launch.model.as_ref().zip(launch.placed.as_ref())?;
    let of = |ranks: u64| {
        let mut line = launch.line.clone();
        line.launch.tp = ranks;
        answer(named, &line, placed, None).ok()
    };
    if of(now)?.engine_verdict() != Verdict::Refused {
        return None;
    }
    let fits = |ranks: &u64| of(*ranks).is_some_and(|a| a.engine_verdict() == Verdict::Fits);
    let ranks = [2, 4, 8].into_iter().filter(|r| *r > now).find(fits)?;
    let weights = of(ranks)?.plan.ok()?.gpu.weights_bytes.expected;
    Some((ranks, Bytes(weights)))
}

/// Where the log prints the weights of all layers and how many there are, the number that fits can be computed.
pub(super) fn layers(cx: &Context<'_>, oom: &VramOom) -> Action {
    let flag = cx.flag(|f| &f.layers).unwrap_or("the number of layers on the GPU");
    let layers = cx.facts.hits.iter().rev().find_map(|h| h.number("layers_gpu"));
    // Device lines say "NVIDIA GeForce RTX 3090"; the catalogue knows the card's driver-reported total.
    let card = cx.facts.hits.iter().find_map(|h| h.word("gpu"));
    let total =
        card.as_deref().and_then(|c| cx.knowledge.gpu(c)).and_then(dualplane_core::knowledge::Gpu::total);
    // A tenth of the card stays for KV cache, compute buffers and the context; the log does not tell their sizes.
    let fit = |layers: f64, requested: Bytes, total: Bytes| {
        ((total.0 as f64 * 0.9) / (requested.0 as f64 / layers)).floor()
    };
    let known = layers.filter(|l| *l >= 1.0).zip(oom.requested).zip(total);
    // Where all layers fit the empty card, something else was on it.
    let known = known.filter(|((layers, requested), total)| fit(*layers, *requested, *total) < *layers);
    let Some(((layers, requested), total)) = known else {
        let length = cx.flag(|f| &f.length).unwrap_or("the context size");
        let step = cx.flag(|f| &f.micro_batch).unwrap_or("the tokens of a step");
        let title = format!(
            "Lower {flag}, {length} or {step}, in this order of effect for a weights, KV or compute buffer"
        );
        return Action::new(Stage::Fix, title);
    };
    let per_layer = requested.0 as f64 / layers;
    let fit = fit(layers, requested, total);
    Action::new(Stage::Fix, format!("Set {flag} {fit} (of {layers}); the rest runs on the CPU"))
        .rests(Rest::FewerLayers { some: fit as u64, all: layers as u64 })
        .rests(Rest::TwoPools)
        .set(cx, flag, fit, None)
        .because(format!("{requested} ÷ {layers} layers = {} per layer", Bytes::from_f64(per_layer)))
        .because(format!(
            "0.9 × {total} ({}) ÷ that = {fit}; the remaining tenth is for the KV cache, compute buffers \
            and CUDA context",
            card.unwrap_or_default()
        ))
}
