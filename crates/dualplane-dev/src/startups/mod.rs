//! `dualplane dev startups ROWS.csv --models MODELS.json`: plans against what real start-ups printed, engine by engine.
//!
//! A row gives flags, and the sizes that the log printed with two decimals. The facts of its model are a configuration
//! by name, or fields of one.

mod calibrated;
mod facts;
mod others;
mod row;

use std::fmt::Write as _;
use std::path::PathBuf;

use dualplane_base::units::GIB;
use dualplane_plan::model::ModelFiles;
use dualplane_plan::{self as plan, EngineKind, Gpu, Launch, Model, Plan, Verdict};
use serde_json::Value;

use crate::table::Table;
use crate::{DevError, Outcome};
use calibrated::Start;
use row::{Row, incomparable, launch, num, rows, text, unknown_format};

/// What is asked.
#[derive(Debug, clap::Args)]
pub struct StartupsArgs {
    /// Recorded start-ups (CSV), one per row
    pub rows: PathBuf,
    /// Facts about their models (JSON); without them, models of the catalogue
    #[arg(long)]
    pub models: Option<PathBuf>,
    /// Directory of the model configurations that the facts name; repeatable
    #[arg(long)]
    pub configs: Vec<PathBuf>,
    /// Minimum percentage of rows within 1 % in tokens and concurrency
    #[arg(long, default_value_t = 95.0)]
    pub min_kv: f64,
    /// Minimum percentage of rows with weights within 0.4 %, and of pools within their band
    #[arg(long, default_value_t = 90.0)]
    pub min_weights: f64,
    /// Print each row as a line of a Markdown table: GiB of weights and tokens as printed and as planned
    #[arg(long)]
    pub each: bool,
}

pub(crate) fn run(args: &StartupsArgs) -> Result<Outcome, DevError> {
    let facts: Value = match &args.models {
        Some(file) => serde_json::from_str(&crate::read(file)?)?,
        None => Value::Null,
    };
    let none = Value::Null;
    let facts = facts.get("models").unwrap_or(&none);
    let mut all = ENGINES.map(|(_, engine)| Figures { engine, ..Figures::default() });
    let mut others = others::Others::default();
    let broken = |e: csv::Error| DevError::Unreadable { path: args.rows.clone(), source: e.into() };
    for row in rows(&crate::read(&args.rows)?).map_err(broken)? {
        if others.add(&row, facts, &args.configs) {
            continue;
        }
        let name = row::text(&row, "engine");
        let engine = ENGINES.iter().position(|(start, _)| name.starts_with(start));
        if let Some(figures) = engine.and_then(|i| all.get_mut(i)) {
            figures.add(&row, facts, &args.configs);
        }
    }
    let mut text = if others.rows > 0 { others.show() } else { String::new() };
    if all.iter().all(|f| f.rows == 0) && others.rows == 0 {
        return Err(DevError::NoLabels(args.rows.clone()));
    }
    let mut good = true;
    for figures in all.iter_mut().filter(|f| f.rows > 0) {
        if args.each {
            text.push_str(&figures.each());
        }
        text.push_str(&figures.show());
        good &= figures.good(args);
    }
    Ok(Outcome { text, good })
}

/// Engines by how a row's name for them begins.
const ENGINES: [(&str, EngineKind); 3] =
    [("vllm", EngineKind::Vllm), ("sglang", EngineKind::Sglang), ("tensorrt-llm", EngineKind::TensorrtLlm)];

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
    starts: Vec<Start>,
    /// Rows whose layers were deduced from the numbers that they are compared with.
    deduced: usize,
    skipped: Vec<String>,
    /// Lines of the table, one a row.
    each: Vec<String>,
}

impl Figures {
    fn add(&mut self, row: &Row, facts: &Value, dirs: &[PathBuf]) {
        self.rows += 1;
        let id = format!("{} {} {}", text(row, "id"), text(row, "engine_version"), text(row, "model"));
        let model = text(row, "model");
        let Some(config) = facts::config(model, facts.get(model), dirs) else {
            return self.skip(row, &id, "configuration not known");
        };
        let files = ModelFiles {
            config: &config.text,
            hf_quant_config: config.hf_quant_config.as_deref(),
            safetensors_index: None,
        };
        if let Some(why) = incomparable(row) {
            return self.skip(row, &id, why);
        }
        let (launch, gpu) = launch(row, self.engine);
        let model = match Model::read(&files) {
            Ok(mut m) => {
                if config.named {
                    m.quantized_as_named();
                }
                m
            }
            Err(e) => return self.skip(row, &id, &e.to_string()),
        };
        self.deduced += usize::from(config.caches_only);
        let pool = num(row, "kv_cache_gib_per_gpu");
        let with_pool =
            Launch { available_kv_bytes: pool.map(|g| (g * GIB as f64) as u64), ..launch.clone() };
        match (plan::plan(&model, &with_pool, &gpu), plan::plan(&model, &launch, &gpu)) {
            (Ok(given), Ok(alone)) => {
                let weights = alone.gpu.weights_bytes;
                let gib = |b: u64| format!("{:.2}", b as f64 / GIB as f64);
                let mut planned = gib(weights.expected);
                if weights.low < weights.high {
                    let _ = write!(planned, " ({} to {})", gib(weights.low), gib(weights.high));
                }
                let tokens = pool.map(|_| given.gpu.kv_cache.tokens.expected.to_string());
                self.each.push(line(row, &format!("{planned} | {}", tokens.unwrap_or_default())));
                self.kv(row, &id, pool, &given);
                self.started(row, &id, pool, &alone);
                if !config.caches_only {
                    self.alone(row, &id, pool, &alone, &launch, &gpu, &model);
                }
            }
            (Err(e), _) | (_, Err(e)) => self.skip(row, &id, &e.to_string()),
        }
    }

    fn skip(&mut self, row: &Row, id: &str, why: &str) {
        self.each.push(line(row, &format!("not planned: {why} | ")));
        self.skipped.push(format!("{id}: {why}"));
    }

    /// With the pool that the log printed.
    fn kv(&mut self, row: &Row, id: &str, pool: Option<f64>, p: &Plan) {
        if pool.is_none() {
            return;
        }
        let outcome = text(row, "outcome");
        let predicted = if p.verdict == Verdict::Fits { "started" } else { "kv_too_small" };
        // Whether a request of the maximum length fits is known only where the row says that length.
        let told = num(row, "max_model_len").is_some();
        if told && (outcome == "started" || outcome == "kv_too_small") {
            self.outcome.mark(outcome == predicted, || format!("{id}: {outcome}, predicted {predicted}"));
        }
        let Some(want) = num(row, "kv_cache_tokens") else { return };
        let got = p.gpu.kv_cache.tokens.expected as f64;
        self.tokens.mark(within(got, want, 0.01), || format!("{id}: {want} tokens, predicted {got}"));
        if let Some(want) = num(row, "max_concurrency") {
            let got = p.gpu.kv_cache.max_concurrency_hundredths.expected as f64 / 100.0;
            self.concurrency.mark(within(got, want, 0.01), || format!("{id}: {want}x, predicted {got}x"));
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
        self.outcome.mark(right, || format!("{id}: {outcome}, predicted {:?}: {said}", p.verdict));
    }

    /// Within the bounds, as far as there are rows enough to hold a share against a bound.
    fn good(&self, args: &StartupsArgs) -> bool {
        const ENOUGH: usize = 10;
        let holds = |t: &Table, least: f64| t.of < ENOUGH || t.percent() >= least;
        holds(&self.tokens, args.min_kv)
            && holds(&self.concurrency, args.min_kv)
            && holds(&self.weights, args.min_weights)
            && holds(&self.pool, args.min_weights)
            && self.outcome.percent() >= 100.0
    }

    /// From flags, model and card alone.
    #[expect(clippy::too_many_arguments, reason = "one row and all that was made of it")]
    fn alone(
        &mut self,
        row: &Row,
        id: &str,
        pool: Option<f64>,
        p: &Plan,
        launch: &Launch,
        gpu: &Gpu,
        model: &Model,
    ) {
        let quant = text(row, "quantization");
        // A format that the configuration does not hold cannot be counted from it.
        let known_format = quant.is_empty() || model.quantization.is_some() && !quant.contains("online");
        // Kernels lay FP4 experts out by card, and other platforms lay out all of them.
        let card = !text(row, "gpu").is_empty() || !quant.contains("mxfp4");
        let known_format = known_format && card && !text(row, "gpu").contains("AMD") && !unknown_format(row);
        // Other engines' rows are of clusters: without the ranks there is nothing to divide by.
        let known_format = known_format && (self.engine == EngineKind::Vllm || !text(row, "tp").is_empty());
        if let Some(want) = num(row, "weights_gib_per_gpu").filter(|_| known_format) {
            let got = p.gpu.weights_bytes.expected as f64 / GIB as f64;
            let off = (got / want - 1.0) * 100.0;
            // Two decimals say no more than half of the last one.
            let printed = text(row, "weights_gib_per_gpu").split('.').nth(1).map_or(0, str::len);
            let half = 0.5 * 0.1_f64.powi(i32::try_from(printed).unwrap_or(2));
            let band = p.gpu.weights_bytes;
            let declared = model.quantized_by_name
                && (band.low as f64..=band.high as f64).contains(&(want * GIB as f64));
            let right = within(got, want, 0.004) || (got - want).abs() <= half || declared;
            self.weights.mark(right, || format!("{id}: {want} GiB, predicted {got:.4} ({off:+.2} %)"));
        }
        let flags =
            num(row, "gpu_total_gib").is_some() && launch.gpu_memory_utilization.is_some() && known_format;
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
            self.pool.mark(inside, || terms);
            self.half_widths.push(gib(band.high - band.low) / 2.0 / want * 100.0);
            self.starts.push(Start::new(row, id, p, launch, gpu, want));
        }
    }

    fn each(&self) -> String {
        format!(
            "| start-up | GiB printed | tokens printed | GiB planned | tokens planned |\n|---|---|---|---|---|\n{}",
            self.each.concat()
        )
    }

    fn show(&mut self) -> String {
        let mut out = String::new();
        let (after, apart) = calibrated::tables(&self.starts);
        let tables = [
            ("tokens", "tokens within 1 % from the printed pool", &self.tokens),
            ("conc", "maximum concurrency within 1 %", &self.concurrency),
            ("weights", "weights per GPU within 0.4 %, or within the declared band", &self.weights),
            ("pool", "printed pool inside the band from flags, model and card", &self.pool),
            ("after", "pool within 2 % after calibration from another row of the same machine", &after),
            ("outcome", "started or refused, from the printed pool or from the flags", &self.outcome),
        ];
        for (name, _, t) in &tables {
            for miss in &t.misses {
                let _ = writeln!(out, "{name} {miss}");
            }
        }
        for line in &apart {
            let _ = writeln!(out, "after, not counted: {line}");
        }
        for s in &self.skipped {
            let _ = writeln!(out, "skipped {s}");
        }
        let _ = writeln!(out, "{} rows of {}, {} skipped", self.rows, self.engine, self.skipped.len());
        for (name, what, t) in &tables {
            let _ = writeln!(out, "{name:<8} {:>7.2} %  {:>3}/{:<3} {what}", t.percent(), t.right, t.of);
        }
        let _ = writeln!(
            out,
            "{} rows with layers that were deduced from their own numbers (tokens and concurrency only)",
            self.deduced
        );
        self.half_widths.sort_by(f64::total_cmp);
        if let Some(median) = self.half_widths.get(self.half_widths.len() / 2) {
            let _ = writeln!(out, "median half-width of the band {median:.1} %");
        }
        out
    }
}

/// A line of the table: what was printed, and what was planned.
fn line(row: &Row, planned: &str) -> String {
    let [id, model, version] = ["id", "model", "engine_version"].map(|k| text(row, k));
    let [weights, tokens] = ["weights_gib_per_gpu", "kv_cache_tokens"].map(|k| text(row, k));
    format!("| {id} {model}, {version} | {weights} | {tokens} | {planned} |\n")
}

fn within(got: f64, want: f64, share: f64) -> bool {
    (got - want).abs() <= want * share
}
