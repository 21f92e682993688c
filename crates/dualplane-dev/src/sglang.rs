//! `dualplane dev sglang FILE`: the arithmetic of SGLang's plans against what its own code answered (`e2e/sglang`).
//!
//! A line is one launch of one model on one card: flags, what they resolved to, the weights that were built, and the pools
//! for one or more amounts of free memory.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use dualplane_plan::engines::sglang::{Measured, Sizes, sizes};
use dualplane_plan::model::ModelFiles;
use dualplane_plan::{Gpu, Launch, Model, PlanError, Version, cli};
use serde_json::Value;

use super::oracle::{count, off, read, short, word};
use super::table::Table;
use super::{DevError, Outcome};

/// What is asked.
#[derive(Debug, clap::Args)]
pub struct SglangArgs {
    /// Recorded answers, one JSON object per line
    pub answers: PathBuf,
    /// Directory of the model configurations that the answers name; repeatable. Without one, answers name models of the
    /// catalogue or hold their configuration
    #[arg(long)]
    pub configs: Vec<PathBuf>,
    /// Minimum percentage of launches that are planned where the engine answers
    #[arg(long, default_value_t = 90.0)]
    pub min_answered: f64,
    /// Minimum percentage of pools with tokens, states and requests equal
    #[arg(long, default_value_t = 95.0)]
    pub min_kv: f64,
    /// Minimum percentage of launches with weights within 1 %
    #[arg(long, default_value_t = 90.0)]
    pub min_weights: f64,
    /// Largest number of plans with weights outside their own band, and of plans where the engine has an error
    #[arg(long, default_value_t = 0)]
    pub max_silent: usize,
    /// Number of misses to print per table
    #[arg(long, default_value_t = 20)]
    pub misses: usize,
    /// Only rows whose ID contains this text
    #[arg(long)]
    pub only: Option<String>,
}

pub(crate) fn run(args: &SglangArgs) -> Result<Outcome, DevError> {
    let text = super::read(&args.answers)?;
    let mut figures = Figures::default();
    let mut models = HashMap::new();
    for line in text.lines().filter(|l| !l.trim().is_empty()) {
        let row: Value = serde_json::from_str(line)?;
        if args.only.as_ref().is_some_and(|o| !word(&row, "id").contains(o)) {
            continue;
        }
        let name = word(&row, "config").to_owned();
        let model = models.entry(name.clone()).or_insert_with(|| match row.get("model") {
            Some(config) => Model::read(&ModelFiles {
                config: &config.to_string(),
                hf_quant_config: None,
                safetensors_index: None,
            }),
            None => read(&args.configs, &name),
        });
        figures.add(&row, model);
    }
    if figures.rows == 0 {
        return Err(DevError::NoLabels(args.answers.clone()));
    }
    Ok(Outcome { text: figures.show(args.misses), good: figures.good(args) })
}

/// The flags of a row, as they would be typed.
fn launch(row: &Value) -> Result<Launch, PlanError> {
    let command = format!("python3 -m sglang.launch_server --model-path m {}", word(row, "flags"));
    let mut launch = cli::parse(&[command], &[], None)?.launch;
    launch.version = Version::parse(word(row, "sglang")).unwrap_or(launch.version);
    launch.version_known = true;
    Ok(launch)
}

fn gpu(row: &Value) -> Gpu {
    let part = |i: usize| {
        row.pointer("/card/capability").and_then(|c| c.get(i)).and_then(Value::as_u64).unwrap_or(0) as u32
    };
    let name = row.pointer("/card/name").and_then(Value::as_str).unwrap_or_default();
    let total_bytes = row.pointer("/card/total_bytes").and_then(Value::as_u64).unwrap_or(0);
    Gpu {
        name: name.into(),
        device_name: name.into(),
        total_bytes,
        capability: (part(0), part(1)),
        host_use: None,
    }
}

#[derive(Default)]
struct Figures {
    rows: usize,
    errors: usize,
    as_built: usize,
    answered: Table,
    silent: Table,
    settings: Table,
    kv: Table,
    refusal: Table,
    weights: Table,
}

impl Figures {
    fn add(&mut self, row: &Value, model: &Result<Model, PlanError>) {
        self.rows += 1;
        let id = word(row, "id");
        let none = Vec::new();
        let pools = row.get("pools").and_then(Value::as_array).unwrap_or(&none);
        let gpu = gpu(row);
        let launch = launch(row);
        let of = |after: u64| {
            let launch = launch.as_ref().map_err(PlanError::clone)?;
            let model = model.as_ref().map_err(PlanError::clone)?;
            if let Some(what) = &model.estimated {
                return Err(PlanError::unsupported(what.clone()));
            }
            let driver_mib = row.pointer("/card/driver_mib").and_then(Value::as_u64).unwrap_or(0);
            let before = count(row, "before").unwrap_or(0);
            sizes(model, launch, &gpu, &Measured { driver_mib, before, after })
        };
        if pools.is_empty() {
            self.errors += 1;
            let made = of(count(row, "before").unwrap_or(0));
            self.silent.mark(made.is_err(), || {
                format!("{id}: a plan, and of the engine {}", short(word(row, "error")))
            });
            return;
        }
        for (i, pool) in pools.iter().enumerate() {
            let made = of(count(pool, "after").unwrap_or(0));
            if i == 0 {
                self.answered.mark(made.is_ok(), || {
                    format!("{id}: {}", made.as_ref().err().map(ToString::to_string).unwrap_or_default())
                });
            }
            let Ok(s) = made else { continue };
            if i == 0 {
                self.settings(row, &s);
                self.weights(row, &s);
            }
            self.pool(id, pool, &s);
        }
    }

    fn settings(&mut self, row: &Value, s: &Sizes) {
        let of = |key: &str| row.pointer(&format!("/resolved/{key}")).cloned().unwrap_or(Value::Null);
        let share = of("mem_fraction_static").as_f64().unwrap_or(0.0);
        let chunk =
            of("chunked_prefill_size").as_i64().and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 0);
        let kv = word(row, "kv_dtype").replace("float8_", "fp8_").replace("fp8_e4m3fn", "fp8_e4m3");
        let want = (chunk, of("page_size").as_u64().unwrap_or(0), count(row, "context").unwrap_or(0), kv);
        let got = (s.chunk, s.page, s.context, s.kv_dtype.clone());
        self.settings.mark(want == got && (share - s.share).abs() < 1e-9, || {
            format!("{}: {share} {want:?}, predicted {} {got:?}", word(row, "id"), s.share)
        });
    }

    fn pool(&mut self, id: &str, pool: &Value, s: &Sizes) {
        let id = format!("{id} {}", count(pool, "after").unwrap_or(0));
        let refusal = pool.get("refusal").and_then(Value::as_str);
        if let (Some(want), Some(got)) = (refusal, &s.refusal) {
            // What a plan prints is the start of the engine's line: the advice behind it is left out.
            self.refusal
                .mark(want.starts_with(&got.message), || format!("{id}:\n    {want}\n    {}", got.message));
        }
        if pool.get("error").is_some() {
            return;
        }
        let of = |key: &str| count(pool, key).unwrap_or(0);
        let want = (refusal.is_some(), of("tokens"), of("window_tokens"), of("states"), of("running"));
        let got = (s.refusal.is_some(), s.tokens, s.window_tokens, s.states, s.requests);
        let same = if want.0 { got.0 } else { want == got };
        self.kv.mark(same, || {
            format!(
                "{id}: {want:?} cell {} state {}, predicted {got:?} cell {} state {}",
                pool.get("cell").map(ToString::to_string).unwrap_or_default(),
                of("state_bytes"),
                s.cell,
                s.state_bytes
            )
        });
    }

    fn weights(&mut self, row: &Value, s: &Sizes) {
        let Some(want) = row.get("weights").and_then(|w| count(w, "total")) else { return };
        // Where repacking wants a kernel, nothing says what it keeps.
        if row.pointer("/weights/as_built").is_some() {
            self.as_built += 1;
            return;
        }
        let got = s.weights.expected;
        let miss = || {
            let share = (got as f64 / want.max(1) as f64 - 1.0) * 100.0;
            format!("{}: {want}, predicted {got} ({share:+.2} %)", word(row, "id"))
        };
        self.weights.mark(off(got, want) <= 0.01, miss);
        self.silent.mark((s.weights.low..=s.weights.high).contains(&want), miss);
    }

    fn tables(&self) -> [(&'static str, &'static str, &Table); 6] {
        [
            ("answered", "planned where the engine answers", &self.answered),
            ("settings", "share, prompt chunk, page, context and dtype of the cache equal", &self.settings),
            ("kv", "tokens, tokens of windows, states and requests equal, or refused alike", &self.kv),
            ("refusal", "text equal", &self.refusal),
            ("weights", "total within 1 %", &self.weights),
            ("silent", "weights inside their band, and no plan where the engine fails", &self.silent),
        ]
    }

    fn good(&self, args: &SglangArgs) -> bool {
        self.answered.percent() >= args.min_answered
            && self.kv.percent() >= args.min_kv
            && self.settings.percent() >= args.min_kv
            && self.refusal.percent() >= args.min_kv
            && self.weights.percent() >= args.min_weights
            && self.silent.misses.len() <= args.max_silent
    }

    fn show(&self, misses: usize) -> String {
        let mut out = String::new();
        for (name, _, t) in self.tables() {
            for miss in t.misses.iter().take(misses) {
                let _ = writeln!(out, "{name} {miss}");
            }
            if t.misses.len() > misses {
                let _ = writeln!(out, "{name} ... {} more", t.misses.len() - misses);
            }
        }
        let (rows, errors, built) = (self.rows, self.errors, self.as_built);
        let _ =
            writeln!(out, "{rows} rows, {errors} of them errors, {built} without weights after repacking");
        for (name, what, t) in self.tables() {
            let _ = writeln!(out, "{name:<8} {:>7.2} %  {:>5}/{:<5} {what}", t.percent(), t.right, t.of);
        }
        out
    }
}
