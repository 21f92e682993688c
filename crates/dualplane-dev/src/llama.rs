//! `dualplane dev llama FILE`: the buffers of plans against those that llama.cpp's own code simulates (`e2e/llama`).
//!
//! A line of the file is a model (metadata and tensors of its header) or the answer to a request that names one.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::PathBuf;

use dualplane_plan::cli::CommandLine;
use dualplane_plan::engines::llama_cpp::ggml::GgmlType;
use dualplane_plan::engines::llama_cpp::gguf::{Tensor, Value as Meta};
use dualplane_plan::engines::llama_cpp::{self, Gguf};
use dualplane_plan::{EngineKind, Gpu, MaxModelLen, PlanError, Split};
use serde_json::Value;

use super::oracle::{count, off, short, word};
use super::table::Table;
use super::{DevError, Outcome};

/// What is asked.
#[derive(Debug, clap::Args)]
pub struct LlamaArgs {
    /// Models and answers, one JSON object per line
    pub answers: PathBuf,
    /// Minimum percentage of rows with the KV cache of each device equal
    #[arg(long, default_value_t = 99.0)]
    pub min_kv: f64,
    /// Minimum percentage of rows with the weights of each device within 0.5 %
    #[arg(long, default_value_t = 97.0)]
    pub min_weights: f64,
    /// Minimum percentage of rows with the compute buffer of each card within its band
    #[arg(long, default_value_t = 95.0)]
    pub min_compute: f64,
    /// Number of misses to print per table
    #[arg(long, default_value_t = 20)]
    pub misses: usize,
}

pub(crate) fn run(args: &LlamaArgs) -> Result<Outcome, DevError> {
    let text = super::read(&args.answers)?;
    let mut models: HashMap<String, Gguf> = HashMap::new();
    let mut figures = Figures::default();
    for line in text.lines().filter(|l| !l.trim().is_empty()) {
        let row: Value = serde_json::from_str(line)?;
        if row.get("model").is_some() {
            models.insert(word(&row, "model").to_owned(), header(&row));
            continue;
        }
        let Some(gguf) = models.get(word(&row, "of")) else {
            let why = format!("{} names no model of this file", word(&row, "id"));
            return Err(DevError::Rejected { path: args.answers.clone(), why });
        };
        figures.add(&row, gguf);
    }
    if figures.rows == 0 {
        return Err(DevError::NoLabels(args.answers.clone()));
    }
    Ok(Outcome { text: figures.show(args.misses), good: figures.good(args) })
}

/// The header that a row describes.
fn header(row: &Value) -> Gguf {
    let whole = |v: &Value| v.as_u64().or_else(|| v.as_bool().map(u64::from));
    let meta = |v: &Value| -> Option<Meta> {
        match v {
            Value::String(s) => Some(Meta::Text(s.clone())),
            Value::Array(all) => Some(Meta::Ints(all.iter().filter_map(whole).collect())),
            other => whole(other).map(Meta::Int),
        }
    };
    let keys: BTreeMap<String, Meta> = row
        .get("keys")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(k, v)| Some((k.clone(), meta(v)?)))
        .collect();
    let tensor = |t: &Value| -> Option<Tensor> {
        let mut shape = [1; 4];
        for (at, n) in shape.iter_mut().zip(t.get(1)?.as_array()?) {
            *at = n.as_u64()?;
        }
        let kind = GgmlType::by_name(t.get(2)?.as_str()?)?;
        Some(Tensor { name: t.get(0)?.as_str()?.to_owned(), shape, kind })
    };
    let tensors =
        row.get("tensors").and_then(Value::as_array).into_iter().flatten().filter_map(tensor).collect();
    Gguf { keys, tensors }
}

/// The flags of a row as a launch, on cards that hold anything.
fn launch(flags: &Value) -> CommandLine {
    let mut line = CommandLine::of(EngineKind::LlamaCpp);
    let on = |k: &str| flags.get(k).and_then(Value::as_bool);
    let text = |k: &str| flags.get(k).and_then(Value::as_str).map(str::to_owned);
    line.launch.version_known = true;
    line.launch.pp = count(flags, "cards").unwrap_or(1);
    line.launch.max_num_seqs = count(flags, "parallel");
    line.launch.max_model_len = count(flags, "ctx").map_or(MaxModelLen::Model, MaxModelLen::Tokens);
    let ask = &mut line.llama_cpp;
    ask.no_fit = true;
    ask.gpu_layers = count(flags, "ngl");
    ask.split = Split::Layer;
    ask.tensor_split = flags
        .get("split")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_f64)
        .collect();
    ask.cache_type_k = text("ctk");
    ask.cache_type_v = text("ctv");
    ask.batch = count(flags, "batch");
    ask.ubatch = count(flags, "ubatch");
    ask.unified = on("unified");
    ask.swa_full = on("swa_full") == Some(true);
    ask.kv_in_ram = on("kv_in_ram") == Some(true);
    ask.experts_in_ram = count(flags, "experts_in_ram").unwrap_or(0);
    ask.flash_attention = match text("fa").as_deref() {
        Some("on") => Some(true),
        Some("off") => Some(false),
        _ => None,
    };
    line
}

/// Bytes of one kind of buffer on each card, and in RAM behind them.
type ByDevice = BTreeMap<i64, u64>;

/// What the library answered.
fn answered(row: &Value, kind: &str) -> ByDevice {
    let mut out = ByDevice::new();
    for b in row.get("buffers").and_then(Value::as_array).into_iter().flatten() {
        let bytes = count(b, kind).unwrap_or(0);
        if bytes > 0 {
            *out.entry(b.get("card").and_then(Value::as_i64).unwrap_or(-1)).or_default() += bytes;
        }
    }
    out
}

fn told(devices: &ByDevice) -> String {
    let mut out = String::new();
    for (card, bytes) in devices {
        let name = if *card < 0 { "RAM".to_owned() } else { format!("card {card}") };
        let _ = write!(out, " {name} {:.2}", *bytes as f64 / f64::from(1 << 20));
    }
    out
}

#[derive(Default)]
struct Figures {
    rows: usize,
    outcome: Table,
    weights: Table,
    kv: Table,
    compute: Table,
    near: Table,
}

impl Figures {
    fn add(&mut self, row: &Value, gguf: &Gguf) {
        self.rows += 1;
        let none = Value::Null;
        let id = format!("{} {}", word(row, "id"), row.get("flags").unwrap_or(&none));
        let line = launch(row.get("flags").unwrap_or(&none));
        let gpu = Gpu {
            name: "card".into(),
            device_name: "card".into(),
            total_bytes: 1 << 50,
            capability: (9, 0),
            host_use: None,
        };
        let made: Result<_, PlanError> =
            gguf.model().and_then(|model| llama_cpp::buffers(&model, Some(gguf), &line, &gpu));
        let fits = word(row, "outcome") == "fits";
        self.outcome.mark(fits == made.is_ok(), || {
            let why = made.as_ref().err().map_or_else(|| "a plan".to_owned(), ToString::to_string);
            format!("{id}: {} {}, predicted {why}", word(row, "outcome"), short(word(row, "error")))
        });
        let (true, Ok(b)) = (fits, &made) else { return };
        let of = |cards: &dyn Fn(&llama_cpp::Buffers) -> u64, ram: u64| -> ByDevice {
            let mut out: ByDevice = b
                .cards
                .iter()
                .enumerate()
                .map(|(i, c)| (i as i64, cards(c)))
                .filter(|(_, n)| *n > 0)
                .collect();
            if ram > 0 {
                out.insert(-1, ram);
            }
            out
        };
        let same = |got: &ByDevice, want: &ByDevice, near: f64| {
            got.len() == want.len()
                && want.iter().all(|(k, n)| got.get(k).is_some_and(|g| off(*g, *n) <= near))
        };
        let miss = |got: &ByDevice, want: &ByDevice| format!("{id}:{}, predicted{}", told(want), told(got));
        let (want, got) = (answered(row, "model"), of(&|c| c.weights, b.ram.weights));
        self.weights.mark(same(&got, &want, 0.005), || miss(&got, &want));
        let (want, got) = (answered(row, "context"), of(&|c| c.cache, b.ram.cache));
        self.kv.mark(same(&got, &want, 1e-6), || miss(&got, &want));
        let mut want = answered(row, "compute");
        want.remove(&-1);
        let got = of(&|c| c.compute.expected, 0);
        let held = want.iter().all(|(card, n)| {
            let at = usize::try_from(*card).unwrap_or(usize::MAX);
            b.cards.get(at).is_some_and(|c| (c.compute.low..=c.compute.high).contains(n))
        });
        self.compute.mark(held, || miss(&got, &want));
        let near = want.iter().all(|(card, n)| got.get(card).is_some_and(|g| off(*g, *n) <= 0.1));
        self.near.mark(near, || miss(&got, &want));
    }

    fn tables(&self) -> [(&'static str, &'static str, &Table); 5] {
        [
            ("outcome", "rejected where the library rejects", &self.outcome),
            ("weights", "model buffers of each device within 0.5 %", &self.weights),
            ("kv", "caches and states of each device equal", &self.kv),
            ("compute", "compute buffer of each card within its band", &self.compute),
            ("near", "compute buffer of each card within 10 %", &self.near),
        ]
    }

    fn good(&self, args: &LlamaArgs) -> bool {
        self.kv.percent() >= args.min_kv
            && self.weights.percent() >= args.min_weights
            && self.compute.percent() >= args.min_compute
    }

    fn show(&self, misses: usize) -> String {
        let mut out = String::new();
        for (name, _, t) in self.tables() {
            for miss in t.misses.iter().take(misses) {
                let _ = writeln!(out, "{name} {miss}");
            }
        }
        let _ = writeln!(out, "{} rows", self.rows);
        for (name, what, t) in self.tables() {
            let _ = writeln!(out, "{name:<8} {:>7.2} %  {:>5}/{:<5} {what}", t.percent(), t.right, t.of);
        }
        out
    }
}
