//! VRAM ran out: at load, while serving, by fragmentation or because of a neighbour.

use serde_json::json;

use super::check::{Rest, against};
use super::patch::container_patch;
use super::{Action, Context, Stage, Workload, floor_hundredth, names, on_node, workload};
use dualplane_base::Class;
use dualplane_base::units::{Bytes, GIB, MIB};
use dualplane_core::change::Change;
use dualplane_core::facts::vram::VramOom;
use dualplane_core::verdict::Trigger;
use dualplane_engines::{Advice, Counsel, Descriptor, Lever, Step};
use dualplane_plan::Version;
use dualplane_plan::repair::default_share;

pub(super) fn advise(cx: &Context<'_>) -> Vec<Action> {
    let mut out = Vec::new();
    let oom = cx.verdict.trigger.as_ref().and_then(Trigger::vram).unwrap_or_default();
    match cx.verdict.class {
        Class::CudaOomLoad => load(cx, &oom, &mut out),
        Class::CudaOomRuntime => runtime(cx, &oom, &mut out),
        Class::Fragmentation => fragmentation(cx, &oom, &mut out),
        _ => conflict(cx, &oom, &mut out),
    }
    verify(cx, &oom, &mut out);
    avoid(cx, &mut out);
    out
}

/// What engines accept as a share; they refuse other values at start, so nothing is computed from them.
fn is_share(u: f64) -> bool {
    u > 0.0 && u <= 1.0
}

/// The engine's share of the card: flag, else as the log prints it, else the default of its version.
pub(super) fn utilization(cx: &Context<'_>) -> Option<(f64, String)> {
    let e = &cx.facts.engine;
    let head = e.head()?;
    let flag = head.flags.share.first()?;
    if e.lever(&head.flags.share).is_some() {
        // A value that is no share (a template's placeholder) is not the default either.
        let u = e.lever_number(&head.flags.share).filter(|u| is_share(*u))?;
        return Some((u, format!("{flag} {u} of the pod")));
    }
    let printed = cx.facts.hits.iter().rev().find_map(|h| h.number("utilization")).filter(|u| is_share(*u));
    if let Some(u) = printed {
        let name = head.printed.share_words.as_deref().unwrap_or("share");
        return Some((u, format!("{name} {u} as the log prints it")));
    }
    let version = e.version.as_deref().and_then(Version::parse);
    let u = default_share(head.plan.as_deref()?, version)?;
    let of = e
        .version
        .as_deref()
        .map_or("an unknown version; check it".to_owned(), |v| format!("{} {v}", head.name));
    Some((u, format!("default {u} of {of}")))
}

/// The flag of the share; none for an engine without one.
pub(super) fn utilization_flag<'a>(cx: &Context<'a>) -> Option<&'a str> {
    cx.flag(|f| &f.share)
}

fn load(cx: &Context<'_>, oom: &VramOom, out: &mut Vec<Action>) {
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

/// What the engine's head advises; `None` where it says nothing of this.
fn counsel(
    cx: &Context<'_>,
    of: impl Fn(&Advice) -> &[Counsel],
    oom: &VramOom,
    out: &mut Vec<Action>,
) -> Option<()> {
    let heads: Vec<_> = cx.advisors().collect();
    let of_head = |d: &&Descriptor| of(&d.advice).iter().any(|c| cx.concerns(c));
    let head = heads.into_iter().find(of_head)?;
    for c in of(&head.advice).iter().filter(|c| cx.concerns(c)) {
        out.extend(c.say.as_ref().map(|text| {
            let a = Action::new(Stage::Fix, text.clone());
            if c.unquantised { a.rests(Rest::Unquantised) } else { a }
        }));
        match c.lever {
            Some(Lever::TensorParallel) => out.push(tensor_parallel(cx)),
            Some(Lever::Step) => out.extend(head.step.as_ref().map(|s| step(cx, s, c.or))),
            Some(Lever::Layers) => out.push(layers(cx, oom)),
            Some(Lever::ShareAboveWeights) => out.extend(above_weights(cx)),
            None => {}
        }
    }
    Some(())
}

fn tensor_parallel(cx: &Context<'_>) -> Action {
    let flag = cx.flag(|f| &f.tensor_parallel).unwrap_or("the tensor-parallel size");
    let e = &cx.facts.engine;
    let now = e.ranks() as u64;
    let known = if e.ranks_are_given() {
        format!("{flag} is currently {now}")
    } else {
        match now {
            1 => "nothing shows more than one rank".to_owned(),
            n => format!("the log shows at least {n} ranks"),
        }
    };
    let a = Action::new(
        Stage::Fix,
        format!(
            "Set {flag} {} (and the pod's GPU count accordingly): this halves the weights per rank",
            now * 2
        ),
    )
    .because(format!("{known}; each doubling halves the sharded weights per GPU"))
    .rests(Rest::MoreRanks(now * 2));
    // The one without the other would not start.
    match cx.gpus(now * 2) {
        Some(gpus) => {
            let a = a.set(cx, flag, now * 2, Some(now.to_string()));
            if a.changes.is_empty() { a } else { gpus.into_iter().fold(a, Action::change) }
        }
        None => a,
    }
}

/// Where the log prints the weights of all layers and how many there are, the number that fits can be computed.
fn layers(cx: &Context<'_>, oom: &VramOom) -> Action {
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
        .set(cx, flag, fit, None)
        .because(format!("{requested} ÷ {layers} layers = {} per layer", Bytes::from_f64(per_layer)))
        .because(format!(
            "0.9 × {total} ({}) ÷ that = {fit}; the remaining tenth is for the KV cache, compute buffers \
            and CUDA context",
            card.unwrap_or_default()
        ))
}

/// The share must be above what the weights take of it.
fn above_weights(cx: &Context<'_>) -> Option<Action> {
    let (weights, (u, from)) = cx.weights().zip(utilization(cx))?;
    let flag = utilization_flag(cx)?;
    Some(
        Action::new(Stage::Fix, format!("Raise {flag} above {u}: weights take {weights} of it"))
            .because(from),
    )
}

/// What the engine's head advises where the pool cannot hold one request.
pub(super) fn pool_start(cx: &Context<'_>, out: &mut Vec<Action>) {
    counsel(cx, |a| &a.pool_start, &VramOom::default(), out).unwrap_or_default();
}

/// What the engine's head advises where the pool cannot hold the traffic.
pub(super) fn pool(cx: &Context<'_>, out: &mut Vec<Action>) -> Option<()> {
    counsel(cx, |a| &a.pool, &VramOom::default(), out)
}

fn runtime(cx: &Context<'_>, oom: &VramOom, out: &mut Vec<Action>) {
    // The share of an engine that is not known is not known either.
    let flag = cx.facts.engine.head().and_then(|d| d.flags.share.first());
    if let (Some(flag), Some((u, from)), Some(requested), Some(total)) =
        (flag, utilization(cx), oom.requested, oom.total)
    {
        let short = requested.saturating_sub(oom.free.unwrap_or_default());
        // The same request again as margin: the next longer prompt asks for more than this one.
        let give = short.saturating_add(requested);
        let lower = floor_hundredth(u - give.share_of(total));
        // The share must hold the weights, and something of a KV pool beside them.
        let weights = cx.weights().map(|b| b.share_of(total));
        let least = weights.unwrap_or_default().max(0.05);
        let sum = format!(
            "requested {requested} − free {} = {short} short; + {requested} margin for the next larger \
            step = {give}",
            oom.free.unwrap_or_default()
        );
        let rest = format!("{u} ({from}) − {give} ÷ total {total} = {:.4}", u - give.share_of(total));
        out.push(if lower > least {
            Action::new(
                Stage::Fix,
                format!(
                    "Set {flag} {lower} (from {u}): this leaves the missing \
            {give} outside the KV cache"
                ),
            )
            .because(sum)
            .because(format!("{rest}, rounded down to {lower}"))
            .set(cx, flag, lower, Some(u.to_string()))
        } else {
            Action::new(
                Stage::Fix,
                format!(
                    "{flag} cannot free the missing {give}: make the step \
            smaller, or use a larger GPU or more GPUs"
                ),
            )
            .because(sum)
            .because(format!("{rest}: less than the weights and the KV cache need"))
        });
    } else if let Some(flag) = flag {
        out.push(
            Action::new(
                Stage::Fix,
                format!(
                    "Lower {flag} by the memory that the failed step was missing; \
            the evidence does not show that size or the current fraction"
                ),
            )
            .because(
                format!(
                    "measure: peak used memory in {} during the failing step, minus its idle value, divided by the \
                    total",
                    cx.facts.maker.tool()
                ),
            )
            .run(names(cx).exec(cx.facts.maker.watch())),
        );
    }
    counsel(cx, |a| &a.runtime, oom, out).unwrap_or_default();
    if !out.iter().any(|a| a.stage == Stage::Fix) {
        out.push(smaller_step(oom));
    }
    serve_again(cx, out);
}

/// Without an engine that is known no setting has a name, but the sizes tell how much smaller a step must be.
fn smaller_step(oom: &VramOom) -> Action {
    let a = Action::new(
        Stage::Fix,
        "Make the failing step smaller: fewer or shorter inputs in a batch; half of either asks for about half",
    );
    match (oom.requested, oom.free) {
        (Some(requested), Some(free)) if requested > free => a.because(format!(
            "requested {requested} − free {free} = {} short",
            requested.saturating_sub(free)
        )),
        _ => a,
    }
}

/// The log is saved first: a restart may erase it.
fn serve_again(cx: &Context<'_>, out: &mut Vec<Action>) {
    let n = names(cx);
    out.push(
        Action::new(
            Stage::StopTheBleeding,
            "First save the logs: the kubelet keeps only one dead instance, and a restart or a new pod \
            replaces it",
        )
        .run(format!("kubectl logs -n {} {} -c {} --previous > previous.log", n.ns, n.pod, n.container))
        .run(format!("kubectl logs -n {} {} -c {} > current.log", n.ns, n.pod, n.container)),
    );
    out.push(Action::new(
        Stage::StopTheBleeding,
        "Limit the traffic that triggers it (longest prompts, largest batches) at the gateway or router \
        until the change is rolled out",
    ));
    let restart = "Only if the server no longer responds: restart it after saving the logs";
    out.push(match workload(cx) {
        Workload::Rolling(w) => Action::new(Stage::StopTheBleeding, restart)
            .run(format!("kubectl rollout restart {w} -n {}", n.ns)),
        Workload::Other(kind) => Action::new(
            Stage::StopTheBleeding,
            format!("{restart}. kubectl rollout restart does not support {kind}: use its controller's own \
            mechanism"),
        ),
        Workload::Bare => Action::new(
            Stage::StopTheBleeding,
            format!("{restart}. The pod has no controller that would recreate it: save its manifest and \
            apply it again"),
        ),
        Workload::Unknown => Action::new(
            Stage::StopTheBleeding,
            format!("{restart}. The evidence does not show the pod's owner"),
        )
        .run(format!("kubectl get pod {} -n {} -o jsonpath='{{.metadata.ownerReferences[*].kind}} {{.metadata.ownerReferences[*].name}}'", n.pod, n.ns)),
    });
}

fn step(cx: &Context<'_>, step: &Step, or: bool) -> Action {
    let given = cx.facts.engine.lever_number(&step.flags).map(|n| (n, step.flag_words.as_str()));
    let printed = || cx.printed(&step.printed).map(|n| (n, step.printed_words.as_str()));
    let (now, from) = given.or_else(printed).unzip();
    let flag = step.flags.first().map_or("", String::as_str);
    let a = halve(if or { "Or " } else { "" }, flag, &step.moves, now, from.unwrap_or_default());
    match now.and_then(half) {
        Some(half) => a.set(cx, flag, half, now.map(|n| n.to_string())),
        None => a,
    }
}

/// Half of a number of tokens. A number below two has none.
fn half(now: f64) -> Option<u64> {
    (now >= 2.0).then_some((now / 2.0) as u64)
}

/// What is in proportion to a number of tokens halves with it.
fn halve(or: &str, flag: &str, effect: &str, now: Option<f64>, from: &str) -> Action {
    let verb = if or.is_empty() { ["Set", "Halve"] } else { ["set", "halve"] };
    let [set, halve] = verb;
    match now.and_then(|n| Some((n, half(n)?))) {
        Some((n, half)) => {
            let from = if from.is_empty() { String::new() } else { format!(" ({from})") };
            Action::new(Stage::Fix, format!("{or}{set} {flag} {}: this halves {effect}", half))
                .because(format!("currently {n}{from}; the memory is proportional to the tokens per step"))
        }
        None => Action::new(
            Stage::Fix,
            format!(
                "{or}{halve} {flag}: {effect} is proportional to it (the evidence does not show its \
            value)"
            ),
        ),
    }
}

fn fragmentation(cx: &Context<'_>, oom: &VramOom, out: &mut Vec<Action>) {
    let idle = oom.reserved_unallocated().unwrap_or_default();
    let requested = oom.requested.unwrap_or_default();
    let conf = "PYTORCH_CUDA_ALLOC_CONF";
    // Its other options stay.
    let others = cx.value_of(conf).unwrap_or_default();
    let others = others.split(',').filter(|o| !o.is_empty() && !o.starts_with("expandable_segments"));
    let value = others.chain(["expandable_segments:True"]).collect::<Vec<_>>().join(",");
    let grow = cx.variable(conf, value).map(Change::Setting);
    let enough = format!(
        "{idle} reserved but unallocated ≥ {requested} requested: it would have been enough in one piece"
    );
    // Where the trigger is cut, the allocator's own table told.
    let sized = |a: Action| {
        if oom.reserved_unallocated().is_none() {
            return a;
        }
        a.because(enough.clone()).rests(Rest::OnePiece { idle, requested })
    };
    let growing = Action::new(
        Stage::Fix,
        "Let the allocator grow its segments: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
    )
    .rests(Rest::GrowsSegments);
    let growing = sized(growing)
        .because("PyTorch 2.9.1 ignores the new name PYTORCH_ALLOC_CONF for this option; use the old name");
    out.push(grow.into_iter().fold(growing, Action::change));
    if against(cx, Rest::GrowsSegments).is_some() {
        split_less(cx, oom, sized, out);
    }
    out.push(Action::new(
        Stage::StopTheBleeding,
        "Restart the server: a new allocator is not fragmented; \
    the time to the next failure shows how fast fragmentation grows",
    ));
    out.push(Action::new(
        Stage::Prevent,
        "Use few request sizes (bucketed lengths, fixed batch sizes) if the engine allows it",
    ));
}

/// Where segments cannot grow: blocks of the size that failed are kept whole.
fn split_less(cx: &Context<'_>, oom: &VramOom, sized: impl Fn(Action) -> Action, out: &mut Vec<Action>) {
    let Some(requested) = oom.requested else { return };
    let npu = cx.verdict.trigger.as_ref().is_some_and(|t| t.text.contains("NPU out of memory"));
    let conf = if npu { "PYTORCH_NPU_ALLOC_CONF" } else { "PYTORCH_CUDA_ALLOC_CONF" };
    if npu {
        let title = format!("Let the allocator grow its segments: {conf}=expandable_segments:True");
        let change = cx.variable(conf, "expandable_segments:True".to_owned()).map(Change::Setting);
        out.push(change.into_iter().fold(sized(Action::new(Stage::Fix, title)), Action::change));
        return;
    }
    let mib = (requested.0 / MIB).max(21);
    let value = format!("max_split_size_mb:{mib}");
    let change = cx.variable(conf, value.clone()).map(Change::Setting);
    let a = Action::new(Stage::Fix, format!("Keep large blocks whole: {conf}={value}"))
        .because(format!(
            "{requested} requested = {mib} MiB: larger cached blocks are then not cut for smaller requests"
        ))
        .because("this PyTorch is older than 2.1 and rejects expandable_segments");
    out.push(change.into_iter().fold(sized(a), Action::change));
}

fn conflict(cx: &Context<'_>, oom: &VramOom, out: &mut Vec<Action>) {
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
    let mib = wanted.0.div_ceil(MIB);
    out.push(
        Action::new(
            Stage::Fix,
            format!("Raise the container's share of the card: nvidia.com/gpumem {mib} (MiB) covers the refused allocation"),
        )
        .because(format!("{wanted} wanted ÷ 1 MiB = {mib}, rounded up; the quota is {quota} = {} MiB", quota.0 / MIB))
        .patch(&container_patch(cx, json!({ "resources": { "limits": { "nvidia.com/gpumem": mib.to_string() } } }))),
    );
    if let Some(flag) = utilization_flag(cx) {
        out.push(Action::new(
            Stage::Fix,
            format!("Or keep the quota and lower {flag}: the engine takes its share of the total that the layer shows it"),
        ));
    }
}

fn verify(cx: &Context<'_>, oom: &VramOom, out: &mut Vec<Action>) {
    let n = names(cx);
    // At load the failed request may be all weights; while serving it is the step that must fit next time.
    let most = if cx.verdict.class == Class::CudaOomLoad { Bytes(GIB) } else { Bytes(u64::MAX) };
    let margin = oom.requested.map_or(Bytes(GIB), |r| r.max(Bytes(GIB / 4)).min(most));
    out.push(
        Action::new(
            Stage::Verify,
            format!(
                "After the change: start-up completes, and at peak traffic at \
        least {margin} stays free on the GPU"
            ),
        )
        .run(n.exec(cx.facts.maker.memory())),
    );
}

fn avoid(cx: &Context<'_>, out: &mut Vec<Action>) {
    out.push(Action::new(
        Stage::Avoid,
        "Do not raise the container's memory limit for this: resources.limits.memory is host RAM, and VRAM ran out",
    ));
    if cx.verdict.class == Class::CudaOomLoad {
        out.push(
            Action::new(
                Stage::Avoid,
                "Do not lower the KV cache share to make room for weights: the weights did not fit on the \
            whole GPU",
            )
            .rests(Rest::WeightsFailed)
            .rests(Rest::KeepsShare),
        );
    }
    let share = cx.facts.engine.head().and_then(|d| d.flags.share.first());
    if let Some(flag) = share.filter(|_| cx.verdict.class == Class::CudaOomRuntime) {
        out.push(Action::new(
            Stage::Avoid,
            format!("Do not raise {flag}: this takes away the memory that the failing step needs"),
        ));
    }
    if cx.verdict.class == Class::GpuCapacityConflict {
        out.push(
            Action::new(
                Stage::Avoid,
                "Do not quantise or re-shard the model for this: it fits, but the GPU is in use",
            )
            .rests(Rest::FitsAlone),
        );
    }
}
