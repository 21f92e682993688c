//! What stands on an edge although it starts, and two templates beside it: a safe one and a fast one.

use serde::Serialize;

use crate::answer::{Answer, Named, answer};
use crate::card::{self, Placed};
use crate::launch::{CommandLine, MaxModelLen};
use crate::outcome::{Plan, Verdict};
use crate::quantity::Plane;
use crate::stages::Step;
use crate::traffic::{Demand, Preemption, Traffic};
use crate::version::EngineKind;
use crate::ways::{USUAL_PART, Way, ways};
use dualplane_base::units::{Bytes, GIB, thousands};

/// Share of the card that is taken before any cache from which on a request is likely to find no room, in percent.
const FULL_AT_START: u64 = 80;
/// Shares of a safe start, the first that holds.
const SAFE: [f64; 2] = [0.88, 0.9];
/// The same where the card's memory is the host's, too.
const SAFE_SHARED: [f64; 2] = [0.8, 0.7];
/// Nothing is gained above this share, and a fragmented allocator or a display has nothing left.
const FAST: f64 = 0.95;
/// GPUs of a server where no cloud's machine with the card is known.
const USUAL_NODE: u64 = 8;

/// Something that holds and is close to not holding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Edge {
    /// Stable word.
    pub name: &'static str,
    /// What it is, with its figures.
    pub text: String,
}

/// Settings that go together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Template {
    /// `safe` or `performance`.
    pub name: &'static str,
    /// `--gpu-memory-utilization`.
    pub gpu_memory_utilization: f64,
    /// `--max-model-len`.
    pub max_model_len: u64,
    /// `--max-num-seqs`.
    pub max_num_seqs: u64,
    /// Whether it starts.
    pub verdict: Verdict,
    /// What it rests on.
    pub why: String,
}

/// Figures of one token and of all requests together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// Bytes of the cache that a token of a full-length request takes on one GPU.
    pub token_bytes: u64,
    /// Bytes that `max_num_seqs` requests of `max_model_len` tokens would take.
    pub demand_bytes: u64,
    /// The same as a multiple of the pool, in tenths.
    pub demand_tenths: u64,
    /// VRAM in use once the pool is allocated, in percent of the card.
    pub after_start_percent: u64,
    /// Of it without the pool.
    pub without_pool_percent: u64,
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Edges {
    /// Figures; `None` where the GPU plane is not known.
    pub cost: Option<Cost>,
    /// Warnings.
    pub list: Vec<Edge>,
    /// Templates, for vLLM.
    pub templates: Vec<Template>,
    /// What would start where this does not, or may not.
    pub ways: Vec<Way>,
    /// What was stated of requests, and what they need.
    pub traffic: Option<(Traffic, Demand)>,
}

/// The edges of an answer.
#[must_use]
pub fn edges(
    named: &Named,
    line: &CommandLine,
    placed: &Placed,
    a: &Answer,
    traffic: Option<Traffic>,
) -> Edges {
    let Ok(plan) = &a.plan else { return Edges::default() };
    let kv = &plan.gpu.kv_cache;
    let cost = cost(a, plan);
    let traffic = traffic.map(|t| {
        let demand = t.demand(kv.tokens.low, kv.max_model_len, plan.resolved.max_num_seqs);
        (t, demand)
    });
    let mut list = warnings(a, plan, &cost, traffic.as_ref());
    list.extend(one_node(line, &placed.gpu.name));
    let templates = if line.launch.engine == EngineKind::Vllm && line.launch.available_kv_bytes.is_none() {
        let usual = traffic.as_ref().map(|(t, _)| t.input_p50.saturating_add(t.output_p50));
        let both: Vec<Template> = [safe(named, line, placed, plan), fast(named, line, placed, plan, usual)]
            .into_iter()
            .flatten()
            .collect();
        // Settings that do not start are no templates.
        if both.iter().all(|t| t.verdict == Verdict::Refused) { Vec::new() } else { both }
    } else {
        Vec::new()
    };
    let ways = ways(named, line, placed, a);
    let ends_on_the_card = a.stages.ending.as_ref().is_some_and(|e| e.plane == Plane::Gpu);
    if a.verdict() == Verdict::Refused && ends_on_the_card && ways.is_empty() {
        list.push(Edge {
            name: "nothing_near",
            text: "no other setting and no more of this card, of those tried, hold it; without --gpu the plan lists the cards \
                   that do"
                .into(),
        });
    }
    Edges { cost: Some(cost), list, templates, ways, traffic }
}

fn percent(part: u64, whole: u64) -> u64 {
    u64::try_from(u128::from(part) * 100 / u128::from(whole.max(1))).unwrap_or(u64::MAX)
}

fn cost(a: &Answer, plan: &Plan) -> Cost {
    let g = &plan.gpu;
    let kv = &g.kv_cache;
    let seqs = plan.resolved.max_num_seqs;
    let demand = kv.needed_bytes.saturating_mul(seqs);
    let at = |step: Step| {
        let stage = a.stages.list.iter().find(|s| s.step == step);
        stage.and_then(|s| s.gpu_bytes).map_or(0, |q| q.expected)
    };
    let without = at(Step::WarmUp).saturating_sub(kv.available_bytes.expected);
    let pool = kv.available_bytes.expected;
    Cost {
        token_bytes: kv.needed_bytes / kv.max_model_len.max(1),
        demand_bytes: demand,
        // Of a pool that holds nothing there is no multiple.
        demand_tenths: (u128::from(demand) * 10)
            .checked_div(u128::from(pool))
            .map_or(0, |n| u64::try_from(n).unwrap_or(u64::MAX)),
        after_start_percent: percent(at(Step::KvCache), g.total_bytes),
        without_pool_percent: percent(without, g.total_bytes),
    }
}

fn warnings(a: &Answer, plan: &Plan, cost: &Cost, traffic: Option<&(Traffic, Demand)>) -> Vec<Edge> {
    let g = &plan.gpu;
    let kv = &g.kv_cache;
    let mut out = Vec::new();
    if a.verdict() == Verdict::Refused {
        return out;
    }
    if cost.without_pool_percent >= FULL_AT_START {
        out.push(Edge {
            name: "full_at_start",
            text: format!(
                "{} % of the card is taken before any cache: a longer prompt or one more request is likely to fail",
                cost.without_pool_percent
            ),
        });
    }
    let share = g.requested_bytes as f64 / g.total_bytes.max(1) as f64;
    let vllm = a.line.launch.engine == EngineKind::Vllm;
    if vllm && share > FAST - 0.001 && a.line.launch.kv_cache_memory_bytes.is_none() {
        let left = Bytes(g.total_bytes.saturating_sub(g.requested_bytes));
        let with = if kv.max_concurrency_hundredths.low < plan.resolved.max_num_seqs.saturating_mul(100) {
            format!(
                ", and {} sequences of {} tokens ask for {}.{} times the pool: together an edge",
                thousands(plan.resolved.max_num_seqs),
                thousands(kv.max_model_len),
                cost.demand_tenths / 10,
                cost.demand_tenths % 10
            )
        } else {
            String::new()
        };
        out.push(Edge {
            name: "high_share",
            text: format!(
                "--gpu-memory-utilization {share:.2} leaves {left} for the context, collectives and whatever else is on the \
                 card{with}"
            ),
        });
    }
    if vllm && kv.max_concurrency_hundredths.low < 200 {
        let c = kv.max_concurrency_hundredths.low;
        out.push(Edge {
            name: "few_at_once",
            text: format!(
                "at the lower bound only {}.{:02} requests of {} tokens fit at once: a second long one waits or is preempted",
                c / 100,
                c % 100,
                thousands(kv.max_model_len)
            ),
        });
    }
    if let Some((t, d)) = traffic {
        if d.too_long_per_mille > 0 {
            out.push(Edge {
                name: "longer_than_the_context",
                text: format!(
                    "{}.{} % of the requests are longer than the context of {} tokens: rejected, or cut short",
                    d.too_long_per_mille / 10,
                    d.too_long_per_mille % 10,
                    thousands(kv.max_model_len)
                ),
            });
        }
        let text = match d.preemption {
            Preemption::None => return out,
            // Less than one moment in two thousand is nothing to warn of.
            Preemption::Rare if d.over_pool_per_mille == 0 => return out,
            Preemption::Rare => "preemption is expected only where many long requests meet",
            Preemption::Some => "preemption is expected at times",
            Preemption::Usual => "preemption or waiting is expected most of the time",
        };
        out.push(Edge {
            name: "preemption",
            text: format!(
                "{text}, in {}.{} % of the moments: {} {} requests need {} tokens at the median and {} in one moment of a \
                 hundred, and the pool holds {}",
                d.over_pool_per_mille / 10,
                d.over_pool_per_mille % 10,
                thousands(t.concurrency),
                t.name,
                thousands(d.p50_tokens),
                thousands(d.p99_tokens),
                thousands(d.pool_tokens)
            ),
        });
    }
    out
}

/// GPUs that one pod asks for, what a machine with this card has at most, and the machine where one is known; `None` where
/// they are enough.
#[must_use]
pub fn beyond_a_machine(line: &CommandLine, card: &str) -> Option<(u64, u64, Option<&'static str>)> {
    let gpus = line.gpus_of_pod();
    // A slice is of its card.
    let whole = card.split(':').next().unwrap_or(card);
    let of_cloud = card::machines().filter(|(_, c, ..)| *c == whole).map(|(name, _, n, _)| (n, Some(name)));
    let (most, example) = of_cloud.min_by_key(|(n, _)| std::cmp::Reverse(*n)).unwrap_or((USUAL_NODE, None));
    (gpus > most && most > 0 && card != "CPU").then_some((gpus, most, example))
}

/// More GPUs in one pod than a machine with this card has: such a pod stays Pending on every node.
fn one_node(line: &CommandLine, card: &str) -> Option<Edge> {
    let l = &line.launch;
    let (gpus, most, example) = beyond_a_machine(line, card)?;
    let example = example.map(|e| format!(" ({e})")).unwrap_or_default();
    let nodes = gpus.div_ceil(most);
    let split = match l.engine {
        EngineKind::Vllm | EngineKind::Sglang if l.dp > 1 => {
            format!("give each node its own copies, {most} GPUs a pod")
        }
        EngineKind::Vllm if l.tp > most => {
            format!(
                "--tensor-parallel-size {most} --pipeline-parallel-size {} --nnodes {nodes}",
                nodes * l.pp
            )
        }
        EngineKind::Vllm | EngineKind::Sglang => format!("--nnodes {nodes}"),
        _ => "use fewer ranks".to_owned(),
    };
    Some(Edge {
        name: "more_than_a_node",
        text: format!(
            "each pod asks for {gpus} GPUs, and a machine with this card has at most {most}{example}: the pod stays Pending; {split}"
        ),
    })
}

fn planned(named: &Named, line: &CommandLine, placed: &Placed, share: f64) -> Option<(Verdict, Plan)> {
    let mut line = line.clone();
    line.launch.gpu_memory_utilization = Some(share);
    line.launch.kv_cache_memory_bytes = None;
    let a = answer(named, &line, placed, None).ok()?;
    let gpu = a.stages.ending.as_ref().is_none_or(|e| e.plane == crate::Plane::Host);
    let verdict = if gpu { Verdict::Fits } else { a.verdict() };
    a.plan.ok().map(|p| (verdict, p))
}

/// Every request at its longest at the same time, at the lower bound of the pool; at most 0.90 unless that does not hold.
fn safe(named: &Named, line: &CommandLine, placed: &Placed, asked: &Plan) -> Option<Template> {
    let given = asked.gpu.requested_bytes as f64 / asked.gpu.total_bytes.max(1) as f64;
    let shares = if placed.gpu.host_use.is_some() { SAFE_SHARED } else { SAFE };
    let tried = shares.into_iter().chain([(given * 1000.0).round() / 1000.0]);
    let all: Vec<_> = tried.filter_map(|s| planned(named, line, placed, s).map(|(v, p)| (s, v, p))).collect();
    let (share, verdict, plan) = all.iter().find(|(_, v, _)| *v == Verdict::Fits).or_else(|| all.first())?;
    let kv = &plan.gpu.kv_cache;
    let seqs = (kv.max_concurrency_hundredths.low / 100).clamp(1, plan.resolved.max_num_seqs);
    let why = match (verdict, *share > 0.9) {
        (Verdict::Fits, false) => "all at full length at once, at the pool's lower bound".to_owned(),
        (Verdict::Fits, true) => {
            format!("0.90 does not hold one request of {} tokens on this card", thousands(kv.max_model_len))
        }
        _ => "does not hold: a shorter --max-model-len, or more GPUs".to_owned(),
    };
    Some(Template {
        name: "safe",
        gpu_memory_utilization: *share,
        max_model_len: kv.max_model_len,
        max_num_seqs: seqs,
        verdict: *verdict,
        why,
    })
}

/// Requests of the usual length, at the expected pool and the largest share that leaves room for what stands beside it.
fn fast(
    named: &Named,
    line: &CommandLine,
    placed: &Placed,
    asked: &Plan,
    usual: Option<u64>,
) -> Option<Template> {
    let total = asked.gpu.total_bytes as f64;
    // The context at its most, and graphs of versions that capture them beside their share; in a shared pool, RAM too.
    let ram = placed.gpu.host_use.map_or(0.0, |u| u.expected as f64 + 6.0 * GIB as f64);
    let beside = ram + 2.2 * GIB as f64;
    let share = ((1.0 - beside / total.max(1.0)).clamp(0.5, FAST) * 100.0).floor() / 100.0;
    let (verdict, plan) = planned(named, line, placed, share)?;
    let kv = &plan.gpu.kv_cache;
    let (tokens, what) = match usual {
        Some(n) => (n, format!("requests of {} tokens, as stated", thousands(n))),
        None => (kv.max_model_len / USUAL_PART, "requests that use a quarter of the context".to_owned()),
    };
    let seqs = (kv.tokens.expected / tokens.max(1)).clamp(1, 1024);
    let len = match line.launch.max_model_len {
        MaxModelLen::Tokens(n) => n,
        _ => kv.max_model_len,
    };
    Some(Template {
        name: "performance",
        gpu_memory_utilization: share,
        max_model_len: len,
        max_num_seqs: seqs,
        verdict,
        why: format!("{what}, at the expected pool; bursts of long ones are preempted"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_with_more_gpus_than_a_machine_has_is_told_how_to_split() {
        let line = |tp, pp, dp, nodes| {
            let mut line = CommandLine::of(EngineKind::Vllm);
            (line.launch.tp, line.launch.pp, line.launch.dp, line.host.nodes) = (tp, pp, dp, nodes);
            line
        };
        let text = |l: &CommandLine, card| one_node(l, card).map(|e| e.text).unwrap_or_default();
        let told = text(&line(16, 1, 1, 0), "H100-80GB");
        assert!(told.contains("16 GPUs") && told.contains("at most 8 (p5"), "{told}");
        assert!(told.ends_with("--tensor-parallel-size 8 --pipeline-parallel-size 2 --nnodes 2"), "{told}");
        assert!(text(&line(8, 2, 1, 0), "H100-80GB").ends_with("--nnodes 2"));
        assert!(text(&line(1, 1, 16, 0), "some card").contains("its own copies"));
        for (l, card) in [
            (line(8, 2, 1, 2), "H100-80GB"),
            (line(8, 1, 1, 0), "H100-80GB"),
            (line(16, 1, 1, 0), "A100-40GB"),
        ] {
            assert_eq!(one_node(&l, card), None, "{card}");
        }
    }
}
