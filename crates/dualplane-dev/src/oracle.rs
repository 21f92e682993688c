//! `dualplane dev oracle FILE --configs DIR`: the arithmetic of plans against what the engine's own code answered.
//!
//! Each line of the file is one answer: the request, and what the engine resolved, planned and built for it.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use dualplane_plan::model::ModelFiles;
use dualplane_plan::{
    self as plan, Gpu, Launch, MaxModelLen, Model, Plan, PlanError, Prepared, Speculation, Speculative,
    Verdict, Version,
};
use serde_json::Value;

use super::table::Table;
use super::{DevError, Outcome};

/// Names and totals (GiB) that stand for a capability where a request names none.
const DEVICES: &[((u32, u32), &str, f64)] = &[
    ((7, 5), "Tesla T4", 14.56),
    ((8, 0), "NVIDIA A100-SXM4-80GB", 79.25),
    ((8, 6), "NVIDIA A10", 22.05),
    ((8, 9), "NVIDIA L40S", 44.42),
    ((9, 0), "NVIDIA H100 80GB HBM3", 79.19),
    ((10, 0), "NVIDIA B200", 178.35),
    ((12, 0), "NVIDIA GeForce RTX 5090", 31.36),
];

/// What is asked.
#[derive(Debug, clap::Args)]
pub struct OracleArgs {
    /// Recorded answers, one JSON object per line
    pub answers: PathBuf,
    /// Directory of the model configurations that the answers name; repeatable. Without one, answers name models of the
    /// catalogue
    #[arg(long)]
    pub configs: Vec<PathBuf>,
    /// Minimum percentage of rows with equal blocks, tokens and concurrency
    #[arg(long, default_value_t = 99.0)]
    pub min_kv: f64,
    /// Minimum percentage of rows with weights within 0.1 %
    #[arg(long, default_value_t = 98.0)]
    pub min_weights: f64,
    /// Minimum percentage of rows with each class of weights within 0.5 %; by default the same
    #[arg(long)]
    pub min_classes: Option<f64>,
    /// Number of misses to print per table
    #[arg(long, default_value_t = 20)]
    pub misses: usize,
    /// Only rows whose ID contains this text
    #[arg(long)]
    pub only: Option<String>,
}

pub(crate) fn run(args: &OracleArgs) -> Result<Outcome, DevError> {
    let text = super::read(&args.answers)?;
    let mut figures = Figures::default();
    let mut models = HashMap::new();
    for line in text.lines().filter(|l| !l.trim().is_empty()) {
        let row: Value = serde_json::from_str(line)?;
        if args.only.as_ref().is_some_and(|o| !word(&row, "id").contains(o)) {
            continue;
        }
        let name = word(&row, "config").to_owned();
        let model = models.entry(name.clone()).or_insert_with(|| read(&args.configs, &name));
        figures.add(&row, model);
    }
    if figures.rows == 0 {
        return Err(DevError::NoLabels(args.answers.clone()));
    }
    Ok(Outcome { text: figures.show(args.misses), good: figures.good(args) })
}

pub(crate) fn word<'a>(row: &'a Value, key: &str) -> &'a str {
    row.get(key).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn count(row: &Value, key: &str) -> Option<u64> {
    row.get(key).and_then(Value::as_u64)
}

pub(crate) fn read(dirs: &[PathBuf], name: &str) -> Result<Model, PlanError> {
    if dirs.is_empty() {
        let missing = || PlanError::unsupported(format!("{name}, which is not in the catalogue"));
        let entry = plan::catalogue::find(name).ok_or_else(missing)?;
        return Model::read(&ModelFiles {
            config: entry.config(),
            hf_quant_config: entry.hf_quant_config(),
            safetensors_index: None,
        });
    }
    let quant = name.replace("_config.json", "_hf_quant_config.json");
    let file = |name: &str| dirs.iter().find_map(|d| fs::read_to_string(d.join(name)).ok());
    let config =
        file(name).ok_or_else(|| PlanError::Unreadable { file: name.into(), why: "is not there".into() })?;
    let quant = file(&quant);
    Model::read(&ModelFiles { config: &config, hf_quant_config: quant.as_deref(), safetensors_index: None })
}

/// The request of a row as a launch.
pub(crate) fn launch(row: &Value) -> (Launch, Gpu) {
    let none = Value::Null;
    let r = row.get("request").unwrap_or(&none);
    let max_model_len = match r.get("max_model_len").and_then(Value::as_i64) {
        None => MaxModelLen::Model,
        Some(n) => u64::try_from(n).map_or(MaxModelLen::Fit, MaxModelLen::Tokens),
    };
    let speculative = r.get("speculative").filter(|s| s.is_object()).map(|s| Speculative {
        method: match word(s, "method") {
            "mtp" => Speculation::Mtp,
            "eagle" => Speculation::Eagle,
            "eagle3" => Speculation::Eagle3,
            "draft_model" => Speculation::DraftModel,
            "ngram" => Speculation::Ngram,
            _ => Speculation::Other,
        },
        num_tokens: count(s, "num_speculative_tokens").unwrap_or(0),
        model: s.get("model").and_then(Value::as_str).map(str::to_owned),
    });
    let given = |key: &str| r.get(key).and_then(Value::as_str).map(str::to_owned);
    let launch = Launch {
        version: Version::parse(word(row, "vllm")).unwrap_or(dualplane_plan::NEWEST_VLLM),
        version_known: true,
        tp: count(r, "tp").unwrap_or(1),
        pp: count(r, "pp").unwrap_or(1),
        max_model_len,
        max_num_seqs: count(r, "max_num_seqs"),
        max_num_batched_tokens: count(r, "max_num_batched_tokens"),
        block_size: count(r, "block_size"),
        kv_cache_dtype: given("kv_cache_dtype").unwrap_or_else(|| "auto".into()),
        dtype: given("dtype").unwrap_or_else(|| "auto".into()),
        quantization: given("quantization"),
        expert_parallel: r.get("enable_expert_parallel").and_then(Value::as_bool) == Some(true),
        prefix_caching: r.get("enable_prefix_caching").and_then(Value::as_bool),
        available_kv_bytes: Some(count(r, "available_kv_bytes").unwrap_or(40 << 30)),
        speculative,
        trust_remote_code: r.pointer("/engine_args/trust_remote_code").and_then(Value::as_bool) == Some(true),
        ..Launch::default()
    };
    let part =
        |i: usize| r.get("capability").and_then(|c| c.get(i)).and_then(Value::as_u64).map(|n| n as u32);
    let capability = (part(0).unwrap_or(9), part(1).unwrap_or(0));
    let device = DEVICES.iter().find(|d| d.0 == capability);
    let name = given("device_name").unwrap_or_else(|| device.map_or("NVIDIA GPU", |d| d.1).to_owned());
    let gib = device.map_or(80.0, |d| d.2);
    let total_bytes = count(r, "device_total_bytes").unwrap_or((gib * f64::from(1 << 30)) as u64);
    (launch, Gpu { name: name.clone(), device_name: name, total_bytes, capability, host_use: None })
}

#[derive(Default)]
struct Figures {
    rows: usize,
    outcome: Table,
    kv: Table,
    refusal: Table,
    groups: Table,
    weights: Table,
    classes: Table,
    stages: Table,
    unknown_weights: usize,
    by_class: BTreeMap<&'static str, (usize, usize)>,
}

impl Figures {
    fn add(&mut self, row: &Value, model: &Result<Model, PlanError>) {
        self.rows += 1;
        let id = word(row, "id").to_owned();
        let (launch, gpu) = launch(row);
        let made = match model {
            Ok(m) => Prepared::new(m, &launch, &gpu).and_then(|p| Ok((p, plan::plan(m, &launch, &gpu)?))),
            Err(e) => Err(e.clone()),
        };
        let truth = word(row, "outcome");
        let predicted = match &made {
            Err(e) => format!("error ({e})"),
            // An estimate says nothing of the engine's own answer.
            Ok((_, p)) if p.estimated => "estimated".into(),
            Ok((_, p)) if p.verdict == Verdict::Fits => "fits".into(),
            Ok(_) => "refused".into(),
        };
        let declined = made.as_ref().map_or(true, |(_, p)| p.estimated);
        let right = predicted == truth || truth == "error" && declined;
        self.outcome
            .mark(right, || format!("{id}: {truth} {}, predicted {predicted}", short(word(row, "error"))));
        let Ok((prepared, p)) = made else { return };
        if truth == "error" {
            return;
        }
        self.kv(row, &id, &p);
        self.weights(row, &id, &prepared);
    }

    fn kv(&mut self, row: &Value, id: &str, p: &Plan) {
        let kv = &p.gpu.kv_cache;
        if word(row, "outcome") == "fits" {
            let hundredths = kv.max_concurrency_hundredths.expected;
            let printed = format!("{}.{:02}", hundredths / 100, hundredths % 100);
            let got = (kv.blocks.expected, kv.tokens.expected, printed.as_str());
            let concurrency = word(row, "printed_concurrency");
            let want =
                (count(row, "num_blocks").unwrap_or(0), count(row, "kv_tokens").unwrap_or(0), concurrency);
            self.kv.mark(got == want, || {
                format!("{id}: {want:?}, predicted {got:?}; {}", first_difference(row, p))
            });
        } else {
            let message = p.refusal.as_ref().map_or("", |r| r.message.as_str());
            self.refusal.mark(message == word(row, "refusal"), || {
                format!(
                    "{id}:\n    {}\n    {message}\n    {}",
                    word(row, "refusal"),
                    first_difference(row, p)
                )
            });
        }
        let difference = first_difference(row, p);
        self.groups.mark(difference.is_empty(), || format!("{id}: {difference}"));
    }

    fn weights(&mut self, row: &Value, id: &str, prepared: &Prepared) {
        let Some(w) = row.get("weights") else { return };
        // Where repacking died on the machine without a GPU, nothing says what the kernels keep.
        if w.get("processed_error").is_some() {
            self.unknown_weights += 1;
            return;
        }
        let Some(truth) = w.get("processed").or_else(|| w.get("built")).filter(|t| t.is_object()) else {
            return;
        };
        let got = prepared.weights_by_class(0);
        let total: u64 = got.iter().map(|(_, b)| b).sum();
        let want = count(truth, "total").unwrap_or(0);
        let none = Value::Null;
        let classes = truth.get("by_class").unwrap_or(&none);
        let mut wrong = String::new();
        for class in plan::TensorClass::ALL {
            let name = class.as_str();
            let got = got.iter().find(|(c, _)| *c == class).map_or(0, |(_, b)| *b);
            let want = count(classes, name).unwrap_or(0);
            if got == 0 && want == 0 {
                continue;
            }
            // Below a two-thousandth of the whole a class is scales, counters and small buffers of kernels.
            let ok = off(got, want) <= 0.005 || got.abs_diff(want) as f64 <= total as f64 * 5e-4;
            let tally = self.by_class.entry(name).or_default();
            tally.0 += usize::from(ok);
            tally.1 += 1;
            if !ok {
                let delta = i128::from(got) - i128::from(want);
                let _ = write!(wrong, " {name} {want} predicted {got} ({delta:+})");
            }
        }
        self.classes.mark(wrong.is_empty(), || format!("{id}:{wrong}"));
        let share = (total as f64 / want.max(1) as f64 - 1.0) * 100.0;
        self.weights.mark(off(total, want) <= 0.001, || {
            format!("{id}: {want}, predicted {total} ({share:+.3} %){wrong}")
        });
        for (i, stage) in
            row.pointer("/weights_stages").and_then(Value::as_array).into_iter().flatten().enumerate()
        {
            let Some(want) = stage.as_u64() else { continue };
            let got: u64 = prepared.weights_by_class(i + 1).iter().map(|(_, b)| b).sum();
            self.stages
                .mark(off(got, want) <= 0.005, || format!("{id} stage {}: {want}, predicted {got}", i + 1));
        }
    }

    fn good(&self, args: &OracleArgs) -> bool {
        self.kv.percent() >= args.min_kv
            && self.weights.percent() >= args.min_weights
            && self.outcome.percent() >= args.min_kv
            && self.refusal.percent() >= args.min_kv
            && self.classes.percent() >= args.min_classes.unwrap_or(args.min_weights)
    }

    fn show(&self, misses: usize) -> String {
        let mut out = String::new();
        let tables = [
            ("outcome", "fits, refused or error as the engine says", &self.outcome),
            ("kv", "blocks, tokens, printed concurrency equal", &self.kv),
            ("refusal", "text equal", &self.refusal),
            ("groups", "block size, groups and bytes per block equal", &self.groups),
            ("weights", "total within 0.1 %", &self.weights),
            ("classes", "every class within 0.5 %", &self.classes),
            ("stages", "later pipeline stages within 0.5 % (as built)", &self.stages),
        ];
        for (name, _, t) in &tables {
            for miss in t.misses.iter().take(misses) {
                let _ = writeln!(out, "{name} {miss}");
            }
            if t.misses.len() > misses {
                let _ = writeln!(out, "{name} ... {} more", t.misses.len() - misses);
            }
        }
        let _ = writeln!(
            out,
            "{} rows, {} of them without weights after repacking",
            self.rows, self.unknown_weights
        );
        for (name, what, t) in &tables {
            let _ = writeln!(out, "{name:<8} {:>7.2} %  {:>5}/{:<5} {what}", t.percent(), t.right, t.of);
        }
        for (name, (right, of)) in &self.by_class {
            let _ = writeln!(out, "  {name:<12} {right:>5}/{of}");
        }
        out
    }
}

pub(crate) fn off(got: u64, want: u64) -> f64 {
    if want == 0 { if got == 0 { 0.0 } else { 1.0 } } else { got.abs_diff(want) as f64 / want as f64 }
}

pub(crate) fn short(text: &str) -> String {
    dualplane_base::text::shorten(&text.replace('\n', " "), 140).into_owned()
}

/// The first thing in which the cache differs, from the cause to its effects.
pub(crate) fn first_difference(row: &Value, p: &Plan) -> String {
    let kv = &p.gpu.kv_cache;
    let resolved = [
        ("max_model_len", kv.max_model_len),
        ("max_num_seqs", p.resolved.max_num_seqs),
        ("max_num_batched_tokens", p.resolved.max_num_batched_tokens),
        ("max_in_flight_tokens", p.resolved.max_in_flight_tokens),
        ("block_size", kv.block_size),
        ("padding_layers", kv.padding_layers),
    ];
    for (name, got) in resolved {
        if let Some(want) = count(row, name).filter(|w| *w != got) {
            return format!("{name} {want}, predicted {got}");
        }
    }
    if !word(row, "cache_dtype").is_empty() && word(row, "cache_dtype") != p.resolved.kv_cache_dtype {
        return format!("cache_dtype {}, predicted {}", word(row, "cache_dtype"), p.resolved.kv_cache_dtype);
    }
    let none = Vec::new();
    let groups = row.get("groups").and_then(Value::as_array).unwrap_or(&none);
    let mut want: Vec<_> = groups
        .iter()
        .map(|g| {
            ["layers", "block_size", "page_size_bytes", "blocks_per_request"]
                .map(|k| count(g, k).unwrap_or(0))
        })
        .collect();
    let mut got: Vec<_> =
        kv.groups.iter().map(|g| [g.layers, g.block_size, g.page_bytes, g.blocks_per_request]).collect();
    // The engine lists the layers of its first pipeline stage only.
    if row.pointer("/request/pp").and_then(Value::as_u64).is_some_and(|pp| pp > 1) {
        want.iter_mut().for_each(|g| g[0] = 0);
        got.iter_mut().for_each(|g| g[0] = 0);
        if kv.groups.first().is_some_and(|g| g.kind.contains("mla")) {
            return String::new();
        }
    }
    want.sort_unstable();
    got.sort_unstable();
    if !groups.is_empty() && want != got {
        return format!("groups (layers, block, page, blocks) {want:?}, predicted {got:?}");
    }
    let widest = row
        .get("bytes_per_block")
        .and_then(Value::as_array)
        .and_then(|l| l.iter().filter_map(Value::as_u64).max());
    if let Some(want) = widest.filter(|w| *w != kv.bytes_per_block) {
        return format!("bytes per block {want}, predicted {}", kv.bytes_per_block);
    }
    String::new()
}
