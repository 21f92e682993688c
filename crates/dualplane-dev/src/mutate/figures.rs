//! How far a plan is from the engine's answer, by architecture.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use dualplane_plan::model::ModelFiles;
use dualplane_plan::{self as plan, Model, Plan, PlanError, Prepared, Verdict};
use serde_json::{Map, Value, json};

use super::{MutateArgs, Row};
use crate::oracle::{count, launch, off, short, word};

/// Within which an amount is right.
const NEAR: f64 = 0.01;

/// Counts of one architecture.
#[derive(Default, Clone, Copy)]
struct Counts {
    /// Answers of the engine that tell sizes.
    asked: usize,
    answered: usize,
    kv: usize,
    weights: usize,
    silent: usize,
    /// What the engine rejects, and how often the plan rejects it too.
    rejected: usize,
    rejected_too: usize,
}

impl Counts {
    /// What the engine rejects and the plan starts.
    const fn accepted(self) -> usize {
        self.rejected - self.rejected_too
    }

    fn add(&mut self, other: Self) {
        self.asked += other.asked;
        self.answered += other.answered;
        self.kv += other.kv;
        self.weights += other.weights;
        self.silent += other.silent;
        self.rejected += other.rejected;
        self.rejected_too += other.rejected_too;
    }
}

/// Counts by architecture, and what was missed.
#[derive(Default)]
pub(super) struct Figures {
    by: BTreeMap<String, Counts>,
    misses: Vec<String>,
}

/// The tensors as the kernels keep them, or as they were built where nothing says what the kernels keep; nothing where the
/// oracle could not run what repacks them.
fn truth(answer: &Value) -> Option<&Value> {
    let w = answer.get("weights").filter(|w| w.get("processed_error").is_none())?;
    w.get("processed").or_else(|| w.get("built")).filter(|t| t.is_object())
}

/// What is compared of an answer, for the file of misses.
pub(super) fn trimmed(answer: &Value) -> Map<String, Value> {
    let keys = [
        "id",
        "vllm",
        "outcome",
        "max_model_len",
        "max_num_seqs",
        "max_num_batched_tokens",
        "cache_dtype",
        "max_in_flight_tokens",
        "block_size",
        "padding_layers",
        "num_blocks",
        "kv_tokens",
        "printed_concurrency",
        "bytes_per_block",
        "needed_bytes",
        "request",
    ];
    let mut out = Map::new();
    for key in keys {
        if let Some(v) = answer.get(key).filter(|v| !v.is_null()) {
            out.insert(key.into(), v.clone());
        }
    }
    if let Some(e) = answer.get("error").and_then(Value::as_str) {
        out.insert("error".into(), short(e).into());
    }
    if let Some(list) = answer.get("groups").and_then(Value::as_array) {
        let names = ["layers", "block_size", "page_size_bytes", "blocks_per_request"];
        let kept =
            |g: &Value| names.iter().filter_map(|k| Some(((*k).to_owned(), g.get(k)?.clone()))).collect();
        out.insert("groups".into(), list.iter().map(|g| Value::Object(kept(g))).collect());
    }
    if let Some(t) = truth(answer) {
        let pick = |k: &str| (k.to_owned(), t.get(k).cloned().unwrap_or_default());
        let built: Map<String, Value> = [pick("total"), pick("by_class")].into_iter().collect();
        out.insert("weights".into(), serde_json::json!({ "processed": built }));
    }
    out
}

impl Figures {
    /// Compares one row: whether something of it was missed, and what was planned.
    pub(super) fn add(&mut self, row: &Row, architecture: &str) -> (bool, Value) {
        let mut n = Counts::default();
        let made = planned(row);
        let miss = compare(row, &made, &mut n);
        self.by.entry(architecture.to_owned()).or_default().add(n);
        let missed = miss.is_some();
        self.misses.extend(miss);
        let told = made.map_or_else(
            |e| json!({ "error": e.to_string() }),
            |(prepared, p)| {
                let kv = &p.gpu.kv_cache;
                json!({
                    "kv_tokens": kv.tokens.expected,
                    "needed_bytes": kv.needed_bytes,
                    "weights": prepared.weights_by_class(0).iter().map(|(_, b)| b).sum::<u64>(),
                    "estimated": p.estimated,
                })
            },
        );
        (missed, told)
    }

    fn sum(&self) -> Counts {
        let mut sum = Counts::default();
        self.by.values().for_each(|c| sum.add(*c));
        sum
    }

    pub(super) fn good(&self, args: &MutateArgs) -> bool {
        let sum = self.sum();
        crate::percent(sum.kv, sum.asked) >= args.min_kv
            && crate::percent(sum.weights, sum.asked) >= args.min_weights
            && args.max_silent.is_none_or(|most| sum.silent + sum.accepted() <= most)
    }

    pub(super) fn show(&self, misses: usize) -> String {
        let mut out = String::new();
        for miss in self.misses.iter().take(misses) {
            let _ = writeln!(out, "{miss}");
        }
        let head = ["asked", "answered", "kv", "weights", "silent", "rejected"];
        let _ = writeln!(out, "{:<46}{}", "architecture", head.map(|h| format!("{h:>10}")).concat());
        let line = |name: &str, c: &Counts| {
            let rejected = format!("{}/{}", c.rejected_too, c.rejected);
            let n = [c.asked, c.answered, c.kv, c.weights, c.silent].map(|n| format!("{n:>10}")).concat();
            format!("{name:<46}{n}{rejected:>10}")
        };
        for (name, c) in &self.by {
            let _ = writeln!(out, "{}", line(name, c));
        }
        let sum = self.sum();
        let _ = writeln!(out, "{}", line(&format!("all {}", self.by.len()), &sum));
        let share = |n| crate::percent(n, sum.asked);
        let _ = writeln!(
            out,
            "answered {:.1} %, KV cache within 1 % {:.1} %, weights within 1 % {:.1} %, wrong in silence {}, started although the engine rejects it {}",
            share(sum.answered),
            share(sum.kv),
            share(sum.weights),
            sum.silent,
            sum.accepted()
        );
        out
    }
}

/// The plan of a row's config and request.
fn planned(row: &Row) -> Made {
    let (launch, gpu) = launch(&row.answer);
    let text = row.config.to_string();
    let model = Model::read(&ModelFiles { config: &text, ..ModelFiles::default() })?;
    let prepared = Prepared::new(&model, &launch, &gpu)?;
    let p = plan::plan(&model, &launch, &gpu)?;
    Ok((prepared, p))
}

type Made = Result<(Prepared, Plan), PlanError>;

/// What is missed of one row.
fn compare(row: &Row, made: &Made, n: &mut Counts) -> Option<String> {
    let id = word(&row.answer, "id");
    let outcome = word(&row.answer, "outcome");
    if outcome == "error" {
        // What the oracle itself could not do is no answer of the engine.
        let own = ["died", "Timeout", "MemoryError", "meta", "BrokenPipe"]
            .iter()
            .any(|w| word(&row.answer, "error").contains(w));
        if own {
            return None;
        }
        n.rejected += 1;
        let too = made.as_ref().map_or(true, |(_, p)| p.estimated);
        n.rejected_too += usize::from(too);
        let error = word(&row.answer, "error");
        return (!too).then(|| format!("{id}: the engine ends with {}", short(error)));
    }
    n.asked += 1;
    let (prepared, p) = match made {
        Err(e) => return Some(format!("{id}: {outcome}, but {e}")),
        Ok(made) => made,
    };
    n.answered += 1;
    let mut out = String::new();
    let mut silent = false;
    let kv = kv(row, outcome, p);
    n.kv += usize::from(kv.is_none());
    if let Some((why, declared)) = kv {
        silent |= !declared;
        let _ = write!(out, "; KV {why}");
    }
    match weights(row, prepared, p) {
        Some((why, estimated)) => {
            silent |= !estimated;
            let _ = write!(out, "; {why}");
        }
        None => n.weights += 1,
    }
    n.silent += usize::from(silent);
    let declared = if silent { "" } else { " (estimated)" };
    (!out.is_empty()).then(|| format!("{id}{declared}{out}"))
}

/// What is missed of the cache, and whether the plan declares it: an estimate holds within its own band, and leaves open what
/// its band leaves open.
fn kv(row: &Row, outcome: &str, p: &Plan) -> Option<(String, bool)> {
    let kv = &p.gpu.kv_cache;
    let predicted = match p.verdict {
        Verdict::Fits => "fits",
        Verdict::Uncertain if p.estimated => outcome,
        Verdict::Uncertain | Verdict::Refused => "refused",
    };
    let difference = || crate::oracle::first_difference(&row.answer, p);
    if predicted != outcome {
        return Some((format!("{outcome}, predicted {predicted}; {}", difference()), false));
    }
    if outcome != "fits" {
        return None;
    }
    let want = count(&row.answer, "kv_tokens").unwrap_or(0);
    let (got, band) = (kv.tokens.expected, kv.tokens.low..=kv.tokens.high);
    let declared = p.estimated && band.contains(&want);
    (off(got, want) > NEAR).then(|| (format!("{want} tokens, predicted {got}; {}", difference()), declared))
}

fn weights(row: &Row, prepared: &Prepared, p: &Plan) -> Option<(String, bool)> {
    let truth = truth(&row.answer)?;
    let want = count(truth, "total").unwrap_or(0);
    let got = prepared.weights_by_class(0);
    let total: u64 = got.iter().map(|(_, b)| b).sum();
    if off(total, want) <= NEAR {
        return None;
    }
    let share = (total as f64 / want.max(1) as f64 - 1.0) * 100.0;
    let mut out = format!("weights {want}, predicted {total} ({share:+.2} %)");
    for class in plan::TensorClass::ALL {
        let name = class.as_str();
        let got = got.iter().find(|(c, _)| *c == class).map_or(0, |(_, b)| *b);
        let want = truth.pointer(&format!("/by_class/{name}")).and_then(Value::as_u64).unwrap_or(0);
        if got.abs_diff(want) as f64 > want.max(total) as f64 * 5e-4 {
            let _ = write!(out, " {name} {want} predicted {got}");
        }
    }
    let band = p.gpu.weights_bytes;
    Some((out, (band.low..=band.high).contains(&want)))
}
