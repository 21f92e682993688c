//! `dualplane dev cpu FILE`: plans for the CPU against what a real vLLM said and held there (`e2e/vllm/run`).
//!
//! A row is one start: config, flags, environment, the lines about the cache, and the memory of each process that the kernel
//! cannot take back.

use std::fmt::Write as _;
use std::path::PathBuf;

use dualplane_base::Version;
use dualplane_base::units::{GIB, MIB};
use dualplane_plan::model::ModelFiles;
use dualplane_plan::stages::Step;
use dualplane_plan::{Answer, EngineKind, Gpu, Model, Named, Quantity, Verdict, answer, card, cli, host};
use serde_json::Value;

use super::oracle::{count, off, word};
use super::table::Table;
use super::{DevError, Outcome};

/// The release that the rows come from.
const RELEASE: Version = Version(0, 32, 0);

/// Within which a process is right.
const NEAR: f64 = 0.15;

/// What is asked.
#[derive(Debug, clap::Args)]
pub struct CpuArgs {
    /// Starts, one JSON object per line
    pub rows: PathBuf,
    /// Minimum percentage of rows with tokens and concurrency, or the refusal, as printed
    #[arg(long, default_value_t = 100.0)]
    pub min_kv: f64,
    /// Minimum percentage of stages and peaks of RAM within their band, and of bands that are no wider than ±15 %
    #[arg(long, default_value_t = 100.0)]
    pub min_host: f64,
}

pub(crate) fn run(args: &CpuArgs) -> Result<Outcome, DevError> {
    let mut figures = Figures::default();
    for line in super::read(&args.rows)?.lines().filter(|l| !l.trim().is_empty()) {
        let row: Value = serde_json::from_str(line)?;
        figures.add(&row, &planned(&row).map_err(|why| DevError::Rejected { path: args.rows.clone(), why })?);
    }
    if figures.rows == 0 {
        return Err(DevError::NoLabels(args.rows.clone()));
    }
    let good = figures.kv.percent() >= args.min_kv
        && [&figures.stages, &figures.peak, &figures.width].iter().all(|t| t.percent() >= args.min_host);
    Ok(Outcome { text: figures.show(), good })
}

fn planned(row: &Value) -> Result<Answer, String> {
    let texts = |v: &Value| -> Vec<String> {
        v.as_array().into_iter().flatten().filter_map(|a| a.as_str().map(str::to_owned)).collect()
    };
    let mut words: Vec<String> = ["vllm", "serve", "m", "--load-format", "dummy"].map(str::to_owned).into();
    words.extend(row.get("args").map(texts).unwrap_or_default());
    let env: Vec<(String, String)> = row
        .get("env")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned())))
        .collect();
    let said = |e: &dyn std::fmt::Display| e.to_string();
    let mut line = cli::parse(&words, &env, None).map_err(|e| said(&e))?;
    line.launch.engine = EngineKind::Vllm;
    (line.launch.version, line.launch.version_known) = (RELEASE, true);
    let config = row.get("config").cloned().unwrap_or_default().to_string();
    let model =
        Model::read(&ModelFiles { config: &config, ..ModelFiles::default() }).map_err(|e| said(&e))?;
    let node = row.pointer("/answer/node").and_then(Value::as_f64).unwrap_or(24.0);
    let placed = card::Placed { gpu: Gpu::of_host((node * GIB as f64) as u64), unknown: Vec::new() };
    let named = Named {
        id: word(row, "name").to_owned(),
        source: "row".into(),
        model,
        gguf: None,
        files: host::Checkpoint::default(),
    };
    answer(&named, &line, &placed, None).map_err(|e| said(&e))
}

#[derive(Default)]
struct Figures {
    rows: usize,
    table: String,
    kv: Table,
    stages: Table,
    peak: Table,
    width: Table,
    worker: Table,
}

impl Figures {
    fn add(&mut self, row: &Value, a: &Answer) {
        self.rows += 1;
        let name = word(row, "name");
        let (said, predicted) = (said(row), predicted(row, a));
        self.kv.mark(said == predicted, || format!("{name}: {said}, predicted {predicted}"));
        for (key, step) in [("kv_cache", Step::Profile), ("ready", Step::WarmUp), ("traffic", Step::Traffic)]
        {
            let held = row.pointer(&format!("/stages/{key}")).and_then(|s| count(s, "held"));
            let planned = a.stages.list.iter().find(|s| s.step == step).map(|s| s.host_bytes);
            if let (Some(held), Some(planned)) = (held, planned) {
                self.stages.mark(within(planned, held), || {
                    format!("{name} {key}: {}, predicted {}", mib(held), band(planned))
                });
            }
        }
        let need = a.host.plan.load_peak_bytes.max(a.host.plan.steady_bytes);
        let peak = count(row, "peak").unwrap_or(0);
        // A start that is refused ends before its pool.
        let refused = word(row.get("answer").unwrap_or(&Value::Null), "outcome") != "fits";
        let at = |step| a.stages.list.iter().find(|s| s.step == step).map(|s| s.host_bytes);
        let need = if refused { at(Step::Load).unwrap_or(need) } else { need };
        self.peak.mark(within(need, peak), || format!("{name}: {}, predicted {}", mib(peak), band(need)));
        let half = need.high.saturating_sub(need.low) as f64 / 2.0 / need.expected.max(1) as f64;
        self.width.mark(half <= NEAR, || format!("{name}: ±{:.1} %", half * 100.0));
        let worker = row.pointer("/processes/worker").and_then(|w| count(w, "serving")).unwrap_or(0);
        let terms = ["process.workers", "cpu.weights", "cpu.kv_cache", "cpu.compiled"];
        let of = |n: &&str| a.host.terms.iter().find(|t| t.name == **n).map_or(0, |t| t.quantity.expected);
        let of_worker: u64 = terms.iter().map(of).sum();
        if worker > 0 {
            self.worker.mark(off(of_worker, worker) <= NEAR, || {
                format!("{name}: {}, predicted {}", mib(worker), mib(of_worker))
            });
        }
        let _ = writeln!(
            self.table,
            "{name:<22} {said:<34} {:>5} {:>5} MiB ({:+.1} %), worker {:>5} {:>5}",
            mib(peak),
            mib(need.expected),
            (need.expected as f64 / peak.max(1) as f64 - 1.0) * 100.0,
            mib(worker),
            mib(of_worker)
        );
    }

    fn show(&self) -> String {
        let mut out = format!(
            "{:<22} {:<34} peak and its prediction, serving worker and its prediction\n{}",
            "start", "said", self.table
        );
        let tables = [
            ("kv", "tokens and concurrency, or the refusal, as printed", &self.kv),
            ("stages", "RAM at the end of load, when ready, after requests, within its band", &self.stages),
            ("peak", "highest RAM of the start within its band", &self.peak),
            ("band", "of the highest RAM at most ±15 % wide", &self.width),
            ("worker", "the worker's process within 15 % of what is expected", &self.worker),
        ];
        for (name, _, t) in tables {
            for miss in &t.misses {
                let _ = writeln!(out, "{name} {miss}");
            }
        }
        let _ = writeln!(out, "{} starts", self.rows);
        for (name, what, t) in tables {
            let _ = writeln!(out, "{name:<8} {:>7.2} %  {:>3}/{:<3} {what}", t.percent(), t.right, t.of);
        }
        out
    }
}

/// What the engine printed.
fn said(row: &Value) -> String {
    let none = Value::Null;
    let answer = row.get("answer").unwrap_or(&none);
    if word(answer, "outcome") != "fits" {
        return word(answer, "refusal").to_owned();
    }
    let float = |k: &str| answer.get(k).and_then(Value::as_f64).unwrap_or(0.0);
    // A model without a cache of its own prints nothing of it.
    format!("{} tokens, {:.2}x", float("kv_tokens"), float("concurrency"))
}

/// What it would print; where its pool is what is left of the node, what it printed if that is within the band.
fn predicted(row: &Value, a: &Answer) -> String {
    let plan = match &a.plan {
        Ok(p) => p,
        Err(e) => return e.to_string(),
    };
    if plan.verdict == Verdict::Refused {
        return plan.refusal.as_ref().map(|r| r.message.clone()).unwrap_or_default();
    }
    let kv = &plan.gpu.kv_cache;
    let tokens = row.pointer("/answer/kv_tokens").and_then(Value::as_f64).unwrap_or(0.0) as u64;
    if kv.tokens.low < kv.tokens.high && within(kv.tokens, tokens) {
        return said(row);
    }
    let c = kv.max_concurrency_hundredths.expected;
    format!("{} tokens, {}.{:02}x", kv.tokens.expected, c / 100, c % 100)
}

fn within(q: Quantity, n: u64) -> bool {
    (q.low..=q.high).contains(&n)
}

fn mib(bytes: u64) -> u64 {
    bytes / MIB
}

fn band(q: Quantity) -> String {
    format!("{} ({} to {}) MiB", mib(q.expected), mib(q.low), mib(q.high))
}
