//! `dualplane dev startups ROWS.csv --models MODELS.json`: plans against what real start-ups printed, engine by engine.
//!
//! A row gives flags, and the sizes that the log printed with two decimals. The facts of its model are a configuration
//! by name, or fields of one.

mod others;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use dualplane_core::plan::model::ModelFiles;
use dualplane_core::plan::{self, EngineKind, Gpu, Launch, MaxModelLen, Model, Plan, Verdict, Version};
use dualplane_core::units::GIB;
use serde_json::{Map, Value, json};

use super::Failure;
use crate::args::StartupsArgs;
use crate::exit::{self, Code};
use crate::output;

type Row = HashMap<String, String>;

pub(crate) fn run(args: &StartupsArgs) -> Result<Code, Failure> {
    let read = |path: &Path| {
        fs::read_to_string(path).map_err(|source| Failure::Unreadable { path: path.into(), source })
    };
    let facts: Value = serde_json::from_str(&read(&args.models)?)?;
    let none = Value::Null;
    let facts = facts.get("models").unwrap_or(&none);
    let mut all = ENGINES.map(|(_, engine)| Figures { engine, ..Figures::default() });
    let mut others = others::Others::default();
    for row in rows(&read(&args.rows)?) {
        if others.add(&row, facts, &args.configs) {
            continue;
        }
        let name = text(&row, "engine");
        let engine = ENGINES.iter().position(|(start, _)| name.starts_with(start));
        if let Some(figures) = engine.and_then(|i| all.get_mut(i)) {
            figures.add(&row, facts, &args.configs);
        }
    }
    if others.rows > 0 {
        output::write(&others.show())?;
    }
    if all.iter().all(|f| f.rows == 0) && others.rows == 0 {
        return Err(Failure::NoLabels(args.rows.clone()));
    }
    let mut good = true;
    for figures in all.iter_mut().filter(|f| f.rows > 0) {
        output::write(&figures.show())?;
        good &= figures.good(args);
    }
    Ok(if good { exit::OK } else { exit::BELOW_BOUND })
}

/// Engines by how a row's name for them begins.
const ENGINES: [(&str, EngineKind); 3] =
    [("vllm", EngineKind::Vllm), ("sglang", EngineKind::Sglang), ("tensorrt-llm", EngineKind::TensorrtLlm)];

/// Rows of a CSV with a header; quoted fields may hold commas and doubled quotes.
fn rows(text: &str) -> Vec<Row> {
    let mut lines = text.lines().map(fields);
    let Some(header) = lines.next() else { return Vec::new() };
    lines.map(|l| header.iter().cloned().zip(l).collect()).collect()
}

fn fields(line: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                out.last_mut().into_iter().for_each(|f| f.push('"'));
            }
            '"' => quoted = !quoted,
            ',' if !quoted => out.push(String::new()),
            c => out.last_mut().into_iter().for_each(|f| f.push(c)),
        }
    }
    out
}

fn text<'a>(row: &'a Row, key: &str) -> &'a str {
    row.get(key).map_or("", String::as_str)
}

fn num(row: &Row, key: &str) -> Option<f64> {
    text(row, key).parse().ok()
}

fn int(row: &Row, key: &str) -> Option<u64> {
    text(row, key).parse().ok()
}

/// A configuration from the facts: the stored one that they name, else one made of their fields.
fn config(facts: &Value, dirs: &[PathBuf]) -> Option<(String, Option<String>)> {
    let source = facts.get("source").and_then(Value::as_str).unwrap_or_default();
    let name = source.rsplit(['/', ':']).next().unwrap_or_default();
    let file = |name: &str| dirs.iter().find_map(|d| fs::read_to_string(d.join(name)).ok());
    if name.ends_with("_config.json")
        && let Some(text) = file(name)
    {
        return Some((text, file(&name.replace("_config.json", "_hf_quant_config.json"))));
    }
    let architecture = facts.get("architecture").and_then(Value::as_str)?;
    let mut made = Map::new();
    for (key, value) in facts.as_object()? {
        let skip =
            matches!(key.as_str(), "first_k_dense" | "kv_layers" | "linear_attn" | "layer_types_summary");
        if !value.is_null() && !skip {
            made.insert(key.clone(), value.clone());
        }
    }
    if let Some(linear) = facts.get("linear_attn").and_then(Value::as_object) {
        made.extend(linear.iter().map(|(k, v)| (k.clone(), v.clone())));
    }
    let summary = facts.get("quantization_config_summary").filter(|q| q.is_object());
    if let Some(q) = summary {
        made.insert("quantization_config".into(), q.clone());
    }
    made.remove("vision_tower");
    made.insert("architectures".into(), json!([architecture]));
    if architecture == "OPTForCausalLM" {
        made.insert("tie_word_embeddings".into(), json!(true));
    }
    Some((Value::Object(made).to_string(), None))
}

/// Compute capability by what the row calls the card.
const CARDS: &[(&str, (u32, u32))] = &[
    ("H100", (9, 0)),
    ("H200", (9, 0)),
    ("H20", (9, 0)),
    ("A100", (8, 0)),
    ("A10", (8, 6)),
    ("A40", (8, 6)),
    ("3090", (8, 6)),
    ("3080", (8, 6)),
    ("4090", (8, 9)),
    ("L40", (8, 9)),
    ("T4", (7, 5)),
    ("2060", (7, 5)),
    ("2080", (7, 5)),
    ("V100", (7, 0)),
    ("5090", (12, 0)),
    ("5070", (12, 0)),
    ("RTX PRO", (12, 0)),
];

/// Totals that logs print for a card, where the row gives none.
const TOTALS: &[(&str, f64)] = &[("H200", 139.80), ("H100", 79.19), ("A100-80", 79.25)];

fn launch(row: &Row, engine: EngineKind) -> (Launch, Gpu) {
    let version = text(row, "engine_version");
    // Releases of SGLang that were not named more closely: the rules of 0.4.6 held from 0.4.3 to 0.4.8.
    let known = Version::parse(&version.replace("0.1x", "0.12").replace("0.4.x", "0.4.6"));
    let extra = text(row, "extra_args");
    let tp = int(row, "tp").unwrap_or(1);
    let kv = if text(row, "kv_cache_dtype").starts_with("fp8") { "fp8" } else { "auto" };
    let dtype = match text(row, "weights_dtype") {
        "fp16" => "float16",
        "bf16" => "bfloat16",
        _ => "auto",
    };
    // A main branch of 2026 lies between the releases whose arithmetic is known.
    let newest = match engine {
        EngineKind::Vllm if version.starts_with("2026") => Version(0, 28, 0),
        engine => Version::newest(engine),
    };
    let launch = Launch {
        engine,
        version: known.unwrap_or(newest),
        version_known: known.is_some(),
        tp,
        pp: int(row, "pp").unwrap_or(1),
        dcp: if extra.contains("decode-context-parallel-size 2") { 2 } else { 1 },
        expert_parallel: extra.contains("--enable-expert-parallel"),
        max_model_len: int(row, "max_model_len").map_or(MaxModelLen::Model, MaxModelLen::Tokens),
        allow_long_max_model_len: true,
        max_num_seqs: int(row, "max_num_seqs"),
        max_num_batched_tokens: int(row, "max_num_batched_tokens"),
        block_size: int(row, "block_size"),
        gpu_memory_utilization: num(row, "gpu_memory_utilization_or_fraction"),
        kv_cache_dtype: kv.into(),
        dtype: dtype.into(),
        enforce_eager: text(row, "enforce_eager") == "true",
        prefix_caching: if extra.contains("prefix caching off") {
            Some(false)
        } else if extra.contains("mamba-cache-mode align") || extra.contains("align mode") {
            Some(true)
        } else {
            None
        },
        mamba_ssm_cache_dtype: extra.contains("ssm-cache-dtype float16").then(|| "float16".into()),
        disable_hybrid_kv_cache_manager: extra.contains("hybrid manager disabled"),
        first_engine: version.contains("V0"),
        ..Launch::default()
    };
    let name = text(row, "gpu");
    let capability = CARDS.iter().find(|(card, _)| name.contains(card)).map_or((9, 0), |(_, c)| *c);
    let by_name = TOTALS.iter().find(|(card, _)| name.contains(card)).map_or(79.19, |(_, gib)| *gib);
    let total = num(row, "gpu_total_gib").unwrap_or(by_name);
    let gpu = Gpu {
        name: name.to_owned(),
        device_name: name.to_owned(),
        total_bytes: (total * GIB as f64) as u64,
        capability,
    };
    (launch, gpu)
}

/// What a row had that its columns do not hold.
fn incomparable(row: &Row) -> Option<&'static str> {
    let (extra, gpu, model) = (text(row, "extra_args"), text(row, "gpu"), text(row, "model"));
    let has = |words: &[&str]| words.iter().any(|w| extra.contains(w));
    if has(&["DFlash", "DSpark", "dflash", "MTP draft", "ultramax"]) || model.contains("dflash") {
        Some("a drafter whose configuration is not known")
    } else if has(&["prefetch offload", "TP/PP split not shown"]) {
        Some("an offload or a split that the row does not describe")
    } else if ["4-bit", "quantised"].iter().any(|w| model.contains(w)) {
        Some("a quantisation that the row does not describe")
    } else if text(row, "quantization").contains("experts on CPU") {
        Some("experts in host memory")
    } else if ["Ascend", "TPU", "XPU", "MetaX", "Intel"].iter().any(|w| gpu.contains(w)) {
        Some("another platform than CUDA")
    } else {
        None
    }
}

#[derive(Default)]
struct Table {
    of: usize,
    right: usize,
    misses: Vec<String>,
}

impl Table {
    fn mark(&mut self, right: bool, miss: String) {
        self.of += 1;
        self.right += usize::from(right);
        if !right {
            self.misses.push(miss);
        }
    }

    fn percent(&self) -> f64 {
        if self.of == 0 { 100.0 } else { self.right as f64 * 100.0 / self.of as f64 }
    }
}

#[derive(Default)]
struct Figures {
    engine: EngineKind,
    rows: usize,
    tokens: Table,
    concurrency: Table,
    weights: Table,
    pool: Table,
    outcome: Table,
    half_widths: Vec<f64>,
    skipped: Vec<String>,
}

impl Figures {
    fn add(&mut self, row: &Row, facts: &Value, dirs: &[PathBuf]) {
        self.rows += 1;
        let id = format!("{} {} {}", text(row, "id"), text(row, "engine_version"), text(row, "model"));
        let Some((config, quant)) = facts.get(text(row, "model")).and_then(|f| config(f, dirs)) else {
            self.skipped.push(format!("{id}: configuration not known"));
            return;
        };
        let files =
            ModelFiles { config: &config, hf_quant_config: quant.as_deref(), safetensors_index: None };
        if let Some(why) = incomparable(row) {
            return self.skipped.push(format!("{id}: {why}"));
        }
        let (launch, gpu) = launch(row, self.engine);
        let model = match Model::read(&files) {
            Ok(m) => m,
            Err(e) => return self.skipped.push(format!("{id}: {e}")),
        };
        let pool = num(row, "kv_cache_gib_per_gpu");
        let with_pool =
            Launch { available_kv_bytes: pool.map(|g| (g * GIB as f64) as u64), ..launch.clone() };
        match (plan::plan(&model, &with_pool, &gpu), plan::plan(&model, &launch, &gpu)) {
            (Ok(given), Ok(alone)) => {
                self.kv(row, &id, pool, &given);
                self.started(row, &id, pool, &alone);
                self.alone(row, &id, pool, &alone, &launch, &model);
            }
            (Err(e), _) | (_, Err(e)) => self.skipped.push(format!("{id}: {e}")),
        }
    }

    /// With the pool that the log printed.
    fn kv(&mut self, row: &Row, id: &str, pool: Option<f64>, p: &Plan) {
        if pool.is_none() {
            return;
        }
        let outcome = text(row, "outcome");
        let predicted = if p.verdict == Verdict::Fits { "started" } else { "kv_too_small" };
        if outcome == "started" || outcome == "kv_too_small" {
            self.outcome.mark(outcome == predicted, format!("{id}: {outcome}, predicted {predicted}"));
        }
        let Some(want) = num(row, "kv_cache_tokens") else { return };
        let got = p.gpu.kv_cache.tokens.expected as f64;
        self.tokens.mark(within(got, want, 0.01), format!("{id}: {want} tokens, predicted {got}"));
        if let Some(want) = num(row, "max_concurrency") {
            let got = p.gpu.kv_cache.max_concurrency_hundredths.expected as f64 / 100.0;
            self.concurrency.mark(within(got, want, 0.01), format!("{id}: {want}x, predicted {got}x"));
        }
    }

    /// Whether it starts, from flags, model and card: where the row prints no pool.
    fn started(&mut self, row: &Row, id: &str, pool: Option<f64>, p: &Plan) {
        let outcome = text(row, "outcome");
        let open = pool.is_some() || text(row, "gpu").is_empty() || self.engine == EngineKind::Vllm;
        if open || !matches!(outcome, "started" | "kv_too_small") {
            return;
        }
        let right = match p.verdict {
            Verdict::Fits => outcome == "started",
            Verdict::Refused => outcome == "kv_too_small",
            Verdict::Uncertain => true,
        };
        let said = p.refusal.as_ref().map_or("it starts", |r| &r.message);
        self.outcome.mark(right, format!("{id}: {outcome}, predicted {:?}: {said}", p.verdict));
    }

    fn good(&self, args: &StartupsArgs) -> bool {
        self.tokens.percent() >= args.min_kv
            && self.concurrency.percent() >= args.min_kv
            && self.weights.percent() >= args.min_weights
            && self.pool.percent() >= args.min_weights
            && self.outcome.percent() >= 100.0
    }

    /// From flags, model and card alone.
    fn alone(&mut self, row: &Row, id: &str, pool: Option<f64>, p: &Plan, launch: &Launch, model: &Model) {
        let quant = text(row, "quantization");
        // A format that the configuration does not hold cannot be counted from it.
        let known_format = quant.is_empty() || model.quantization.is_some() && !quant.contains("online");
        // Kernels lay FP4 experts out by card, and other platforms lay out all of them.
        let card = !text(row, "gpu").is_empty() || !quant.contains("mxfp4");
        let known_format = known_format && card && !text(row, "gpu").contains("AMD");
        // Other engines' rows are of clusters: without the ranks there is nothing to divide by.
        let known_format = known_format && (self.engine == EngineKind::Vllm || !text(row, "tp").is_empty());
        if let Some(want) = num(row, "weights_gib_per_gpu").filter(|_| known_format) {
            let got = p.gpu.weights_bytes.expected as f64 / GIB as f64;
            let off = (got / want - 1.0) * 100.0;
            // Two decimals say no more than half of the last one.
            let printed = text(row, "weights_gib_per_gpu").split('.').nth(1).map_or(0, str::len);
            let half = 0.5 * 0.1_f64.powi(i32::try_from(printed).unwrap_or(2));
            let right = within(got, want, 0.004) || (got - want).abs() <= half;
            self.weights.mark(right, format!("{id}: {want} GiB, predicted {got:.4} ({off:+.2} %)"));
        }
        let card = num(row, "gpu_total_gib").is_some();
        let flags = card && launch.gpu_memory_utilization.is_some() && known_format;
        if let Some(want) = pool.filter(|_| flags) {
            let band = p.gpu.kv_cache.available_bytes;
            let gib = |b: u64| b as f64 / GIB as f64;
            let inside = gib(band.low) - 0.005 <= want && want <= gib(band.high) + 0.005;
            let terms = format!(
                "{id}: {want} GiB, predicted {:.2}..{:.2}..{:.2} (weights {:.2}, activation {:.2}, graphs {:.2}, rest {:.2})",
                gib(band.low),
                gib(band.expected),
                gib(band.high),
                gib(p.gpu.weights_bytes.expected),
                gib(p.gpu.activation_bytes.expected),
                gib(p.gpu.cuda_graph_bytes.expected),
                gib(p.gpu.non_torch_bytes.expected)
            );
            self.pool.mark(inside, terms);
            self.half_widths.push(gib(band.high - band.low) / 2.0 / want * 100.0);
        }
    }

    fn show(&mut self) -> String {
        let mut out = String::new();
        let tables = [
            ("tokens", "tokens within 1 % from the printed pool", &self.tokens),
            ("conc", "maximum concurrency within 1 %", &self.concurrency),
            ("weights", "weights per GPU within 0.4 %", &self.weights),
            ("pool", "printed pool inside the band from flags, model and card", &self.pool),
            ("outcome", "started or refused, from the printed pool or from the flags", &self.outcome),
        ];
        for (name, _, t) in &tables {
            for miss in &t.misses {
                let _ = writeln!(out, "{name} {miss}");
            }
        }
        for s in &self.skipped {
            let _ = writeln!(out, "skipped {s}");
        }
        let _ = writeln!(out, "{} rows of {}, {} skipped", self.rows, self.engine, self.skipped.len());
        for (name, what, t) in &tables {
            let _ = writeln!(out, "{name:<8} {:>7.2} %  {:>3}/{:<3} {what}", t.percent(), t.right, t.of);
        }
        self.half_widths.sort_by(f64::total_cmp);
        if let Some(median) = self.half_widths.get(self.half_widths.len() / 2) {
            let _ = writeln!(out, "median half-width of the band {median:.1} %");
        }
        out
    }
}

fn within(got: f64, want: f64, share: f64) -> bool {
    (got - want).abs() <= want * share
}
