//! The KV cache is too small for the longest request or for the traffic.

mod cpu;

use super::check::Rest;
use super::pool_size::given;
use super::vram::{pool, pool_start, utilization, utilization_flag};
use super::{Action, Context, Stage, ceil_hundredth, names, on_node, promql};
use crate::planned::{RefusedStart, of_start};
use dualplane_base::Phase;
use dualplane_base::units::{Bytes, thousands};
use dualplane_core::evidence::metrics::last_before;
use dualplane_core::facts::Hit;
use dualplane_plan::Plan;
use dualplane_plan::repair::{longest, needed};

/// Above this share the engine's own context and graphs have no room left.
const MAX_UTILIZATION: f64 = 0.97;

/// Tokens of a block where the log does not say: vLLM's default on GPUs.
const BLOCK: u64 = 16;

pub(super) fn advise(cx: &Context<'_>) -> Vec<Action> {
    let mut out = Vec::new();
    let hit = cx
        .verdict
        .trigger
        .as_ref()
        .and_then(|t| cx.facts.hits.iter().find(|h| h.place == t.place && h.class.is_some()));
    match cx.verdict.phase {
        Phase::Load | Phase::Profile => start(cx, hit, &mut out),
        _ => traffic(cx, &mut out),
    }
    let on_cpu = cx.facts.engine.on_cpu().map(|on_cpu| cpu::avoid(cx, on_cpu));
    out.push(Action::new(Stage::Avoid, match (on_cpu, utilization_flag(cx), given(cx)) {
        (Some(on_cpu), ..) => on_cpu,
        (None, Some(flag), Some(pool)) => format!(
            "Do not raise the container's memory limit or {flag}: the KV cache is in VRAM, and {} gives it its size",
            pool.flag
        ),
        (None, Some(flag), None) => format!(
            "Do not raise the container's memory limit or lower {flag}: the KV cache is in VRAM and needs a larger share"
        ),
        (None, None, _) => "Do not raise the container's memory limit: the KV cache is in VRAM".to_owned(),
    }).rests(Rest::TwoPools));
    out.push(Action::new(
        Stage::Prevent,
        "Alert on KV use above 95 % for 5 minutes and on any \
    preemptions; route long prompts to a separate pool",
    ));
    out
}

/// The engine refused to start: its pool cannot hold one longest request.
fn start(cx: &Context<'_>, hit: Option<&Hit>, out: &mut Vec<Action>) {
    let num = |groups: &[&str]| hit.and_then(|h| groups.iter().find_map(|g| h.number(g)));
    let memory = |group: &str| hit.and_then(|h| h.memory(group));
    let max_len = num(&["max_model_len"]);
    let told = RefusedStart {
        max_model_len: max_len.map(|l| l as u64),
        needed: memory("needed"),
        available: memory("available"),
    };
    let plan = of_start(cx.bundle, cx.facts, cx.knowledge.gpus(), told);
    let printed = num(&["estimated_max_len", "kv_tokens"]).filter(|t| *t >= 1.0).map(|t| t as u64);
    let (fits, whose) = match (printed, plan.as_ref().and_then(|p| p.refusal.as_ref()?.estimated_max_len)) {
        (Some(fit), _) => (Some(fit), ""),
        (None, Some(fit)) => (Some(fit), " as planned for this model and pool"),
        (None, None) => (None, ""),
    };
    let verify_len = fits;
    let length = cx.flag(|f| &f.length).unwrap_or("the longest request");
    if let (Some(len), Some(fit)) = (max_len, fits) {
        // A length that the engine estimates is in whole blocks; of a pool's tokens blocks of 16 are whole everywhere.
        let estimated = num(&["estimated_max_len"]).is_some() || printed.is_none();
        let fit = if estimated { fit } else { fit / 16 * 16 };
        out.push(
            Action::new(
                Stage::Fix,
                format!("Set {length} {fit} (from {}), if no request needs more", thousands(len as u64)),
            )
            .because(format!(
                "the KV cache holds {} tokens{whose}, one request may use {}; in whole blocks",
                thousands(fits.unwrap_or(0)),
                thousands(len as u64)
            ))
            .set(cx, length, fit, Some(len.to_string())),
        );
    }
    // A pool whose size alone is printed: what one request asks for is known to be more.
    let whole = fits.map(|f| f / BLOCK * BLOCK).filter(|f| *f > 0);
    if let (None, Some(fit), Some(length)) = (max_len, whole, cx.flag(|f| &f.length)) {
        let tokens = thousands(fits.unwrap_or(0));
        out.push(
            Action::new(
                Stage::Fix,
                format!(
                    "Set {length} {fit} or less, if no request needs more, or give the KV cache more tokens"
                ),
            )
            .because(format!(
                "the KV cache holds {tokens} tokens, fewer than one request of the longest length may use"
            ))
            .set(cx, length, fit, None),
        );
    }
    // A message without an estimate (vLLM 0.8) still says what one request of the maximum length needs.
    if let (None, Some(len), Some(need), Some(have)) = (fits, told.max_model_len, told.needed, told.available)
        && have.0 > 0
    {
        let fit = longest(have, need, len, BLOCK);
        out.push(
            Action::new(
                Stage::Fix,
                format!("Set {length} {fit} (from {}), if no request needs more", thousands(len)),
            )
            .because(format!(
                "{} tokens x {have} ÷ {need}, in whole blocks; less where layers keep a window or a state",
                thousands(len)
            ))
            .set(cx, length, fit, Some(len.to_string())),
        );
    }
    match (given(cx), cx.facts.engine.on_cpu()) {
        (Some(pool), _) => pool.start(cx, told, out),
        (None, Some(on_cpu)) => cpu::raise(cx, on_cpu, told.needed, told.available, out),
        (None, None) => {
            least_share(cx, hit, out);
            raise(cx, hit, max_len, fits, plan.as_ref(), out);
            pool_start(cx, out);
        }
    }
    if out.is_empty() {
        let before = "what is allocated before the KV cache (weights: quantise or use more GPUs; \
        activations: halve the tokens per step)";
        let title = utilization_flag(cx)
            .map_or_else(|| format!("Shrink {before}"), |flag| format!("Raise {flag} or shrink {before}"));
        out.push(Action::new(Stage::Fix, title).because(
            "the message contains no sizes; see the start-up \
        lines above it: weights, activation peak, available KV cache",
        ));
    }
    let holds = match verify_len {
        Some(tokens) => format!("of at least {} tokens", thousands(tokens)),
        None => "that holds a request of the longest length".to_owned(),
    };
    let words = cx.engine().and_then(|d| d.printed.pool_words.as_deref());
    let words = words.map(|w| format!(" and {w}")).unwrap_or_default();
    out.push(Action::new(Stage::Verify, format!("The start-up log prints a KV cache {holds}{words}")));
}

/// The message names the least share that works.
fn least_share(cx: &Context<'_>, hit: Option<&Hit>, out: &mut Vec<Action>) {
    let least = hit.and_then(|h| h.number("desired")).filter(|s| *s > 0.0 && *s < MAX_UTILIZATION);
    let Some((least, flag)) = least.zip(utilization_flag(cx)) else { return };
    let want = ceil_hundredth(least + 0.005);
    let now = hit.and_then(|h| h.number("utilization"));
    let from = now.map(|u| format!(" (from {u})")).unwrap_or_default();
    out.push(
        Action::new(Stage::Fix, format!("Set {flag} {want}{from}"))
            .because(format!(
                "the message asks for more than {least}; rounded up to the next hundredth above it"
            ))
            .set(cx, flag, want, now.map(|u| u.to_string())),
    );
}

/// How much utilisation the missing KV bytes are.
fn raise(
    cx: &Context<'_>,
    hit: Option<&Hit>,
    max_len: Option<f64>,
    fits: Option<u64>,
    plan: Option<&Plan>,
    out: &mut Vec<Action>,
) {
    let flag = utilization_flag(cx).unwrap_or("the engine's share of the GPU");
    let told = hit.and_then(|h| h.memory("needed"));
    let have = hit.and_then(|h| h.memory("available"));
    let pool = cx.facts.hits.iter().rev().find_map(|h| {
        h.memory("kv_size").or_else(|| h.memory("available").filter(|_| h.id == "vllm.kv_available"))
    });
    let (need, have, how) = match (told, have, max_len, fits, pool) {
        (Some(n), Some(h), ..) => (n, h, "from the message".to_owned()),
        (_, _, Some(_), _, Some(pool)) if plan.is_some() => {
            let need = plan.map_or(Bytes(0), |p| Bytes(p.gpu.kv_cache.needed_bytes));
            (need, pool, "planned for this model and length".to_owned())
        }
        (_, _, Some(len), Some(fit), Some(pool)) if fit > 0 => {
            let how = format!(
                "{pool} ÷ {} tokens × {} tokens, in whole blocks of {BLOCK}",
                thousands(fit),
                thousands(len as u64)
            );
            (needed(pool, fit, len as u64, BLOCK), pool, how)
        }
        _ => return,
    };
    let short = need.saturating_sub(have);
    let total = total(cx);
    let Some(((u, from), (total, source))) = utilization(cx).zip(total) else {
        out.push(
            Action::new(
                Stage::Fix,
                format!(
                    "Or find {short} more VRAM for the KV cache: raise {flag} by {short} ÷ the GPU's total"
                ),
            )
            .because(format!("needed {need} − available {have} = {short} ({how})"))
            .run(on_node(&names(cx).node, cx.facts.maker.memory())),
        );
        return;
    };
    let kv_type = cx.engine().and_then(|d| d.flags.kv_type.as_ref());
    let kv_type = kv_type.map(|t| format!(" ({t} halves its bytes)")).unwrap_or_default();
    let want = ceil_hundredth(u + short.share_of(total));
    let shown = format!(
        "needed {need} − available {have} = {short} ({how}); {u} ({from}) + {short} ÷ {total} ({source}) = {:.4}",
        u + short.share_of(total)
    );
    if want <= MAX_UTILIZATION {
        out.push(
            Action::new(Stage::Fix, format!("Or set {flag} {want} (from {u})"))
                .because(format!("{shown}, rounded up"))
                .set(cx, flag, want, Some(u.to_string())),
        );
    } else {
        out.push(
            Action::new(
                Stage::Fix,
                format!(
                    "Raising the utilisation alone is not enough: store the KV \
            cache in fp8{kv_type} or shard over more GPUs"
                ),
            )
            .because(format!(
                "{shown}, above the {MAX_UTILIZATION} that leaves room for the CUDA \
                context and graphs"
            )),
        );
    }
}

/// The card's total: printed by the engine, or the catalogue's figure for a printed name.
fn total(cx: &Context<'_>) -> Option<(Bytes, String)> {
    let printed = cx.facts.hits.iter().rev().find_map(|h| h.memory("total").filter(|t| t.0 > 1 << 30));
    if let Some(t) = printed {
        return Some((t, "from the log".to_owned()));
    }
    let label = cx
        .bundle
        .nodes
        .iter()
        .flat_map(|n| &n.labels)
        .find(|(k, _)| k == "nvidia.com/gpu.product")
        .map(|(_, v)| v.clone());
    let card =
        label.or_else(|| cx.bundle.metrics.iter().find_map(|s| s.label("modelName").map(str::to_owned)))?;
    let gpu = cx.knowledge.gpu(&card)?;
    Some((gpu.total()?, format!("catalogue, {}", gpu.id)))
}

/// These series of the engine's own page, through the API server: images seldom have a client.
fn metrics_of_pod(cx: &Context<'_>, port: u16, series: &[&str]) -> String {
    let n = names(cx);
    format!(
        "kubectl get --raw /api/v1/namespaces/{}/pods/{}:{port}/proxy/metrics | grep -E '{}'",
        n.ns,
        n.pod,
        series.join("|")
    )
}

/// Requests preempt or retract one another.
fn traffic(cx: &Context<'_>, out: &mut Vec<Action>) {
    let find =
        |groups: &[&str]| cx.facts.hits.iter().rev().find_map(|h| groups.iter().find_map(|g| h.number(g)));
    let end = cx.verdict.subject.death.as_ref().and_then(|d| d.finished);
    let metric = |names: &[&str]| {
        let named = cx.bundle.metrics.iter().filter(|s| names.contains(&s.name.as_str()));
        last_before(named, end).map(|s| s.value)
    };
    let all: Vec<&str> = cx
        .facts
        .engine
        .all
        .iter()
        .filter_map(|d| d.metrics.as_ref())
        .flat_map(dualplane_engines::metrics::Metrics::running_names)
        .collect();
    let running = metric(&all).or_else(|| find(&["running"]));
    let flag = cx.flag(|f| &f.batch).unwrap_or("the number of requests at a time");
    let watched = cx.engine().and_then(|d| Some((d, d.metrics.as_ref()?)));
    match running.filter(|r| *r >= 2.0) {
        Some(r) => {
            // The pool is full at `r`; a tenth less leaves the blocks that running requests grow into.
            let cap = (r * 0.9).floor() as u64;
            out.push(
                Action::new(
                    Stage::Fix,
                    format!(
                        "Set {flag} {cap}: requests then wait in the queue \
                instead of preempting each other"
                    ),
                )
                .because(format!(
                    "{r} were running when the KV cache was full; 0.9 × {r} leaves a \
                    tenth of it for tokens still to be generated"
                ))
                .set(cx, flag, cap, None),
            );
        }
        None => {
            let one = if cx.engine().is_none() {
                "Shorten the longest request, where the message is of one that the whole cache cannot hold; else lower"
            } else {
                "Lower"
            };
            let title = format!(
                "{one} {flag} to 90 % of the number of requests running when the KV cache is full (the \
                evidence does not show that number)"
            );
            let a = Action::new(Stage::Fix, title);
            out.push(match watched {
                Some((d, m)) => {
                    let series: Vec<&str> = m.running_names().chain(m.kv_use_names()).collect();
                    let port = d.ports.first().copied().unwrap_or(8000);
                    a.run(metrics_of_pod(cx, port, &series))
                }
                None => a,
            });
        }
    }
    let advised = match given(cx) {
        // What the engine's head says of a larger pool may name the share.
        Some(size) => {
            out.push(size.taken_out(cx));
            None
        }
        None => pool(cx, out),
    };
    advised.unwrap_or_else(|| {
        let kv_type = cx.engine().and_then(|d| d.flags.kv_type.as_ref());
        let kv_type = kv_type.map(|t| format!("{t} doubles its tokens; ")).unwrap_or_default();
        out.push(Action::new(
            Stage::Fix,
            format!("Or enlarge the KV cache: {kv_type}more GPUs or a quantised model free VRAM for it"),
        ));
    });
    let counter = "Under the same traffic, the preemption (retraction) counter does not increase and KV cache use \
        stays below 95 %";
    let [usage, .., preempted] = watched.map(|(_, m)| m.names()).unwrap_or_default();
    let a = Action::new(Stage::Verify, counter);
    out.push(match (preempted, usage) {
        (Some(p), Some(u)) => a.run(promql(&format!("rate({p}[5m]) == 0 and {u} < 0.95"))),
        (None, Some(u)) => a.run(promql(&format!("{u} < 0.95"))),
        _ => a,
    });
}
