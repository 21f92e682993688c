//! Start-ups of TGI, llama.cpp and Ollama, which print other things than vLLM: tokens alone, or buffers.

use std::fmt::Write as _;
use std::path::PathBuf;

use dualplane_base::units::GIB;
use dualplane_plan::cli::CommandLine;
use dualplane_plan::host::Checkpoint;
use dualplane_plan::model::ModelFiles;
use dualplane_plan::{EngineKind, Gpu, MaxModelLen, Model, Named, Plan, Version, answer, card::Placed};
use serde_json::Value;

use super::row::{CARDS, Row, int, num, text};
use super::{Table, facts as known, within};

/// Engines by how a row's name for them begins.
const ENGINES: [(&str, EngineKind); 3] =
    [("tgi", EngineKind::Tgi), ("llama.cpp", EngineKind::LlamaCpp), ("ollama", EngineKind::LlamaCpp)];

#[derive(Default)]
pub(super) struct Others {
    pub(super) rows: usize,
    blocks: Table,
    tokens: Table,
    weights: Table,
    cache: Table,
    skipped: Vec<String>,
}

impl Others {
    /// Counts a row of these engines; false: it is another's.
    pub(super) fn add(&mut self, row: &Row, facts: &Value, dirs: &[PathBuf]) -> bool {
        let name = text(row, "engine").to_ascii_lowercase();
        let Some((_, engine)) = ENGINES.iter().find(|(start, _)| name.starts_with(start)) else {
            return false;
        };
        self.rows += 1;
        let id = format!("{} {name} {} {}", text(row, "id"), text(row, "engine_version"), text(row, "model"));
        let tokens = int(row, "kv_cache_tokens");
        let constant = text(row, "extra_args").contains("fallback constant");
        if let Some(tokens) = tokens.filter(|_| *engine == EngineKind::Tgi && !constant) {
            let block = int(row, "block_size").unwrap_or(1).max(1);
            self.blocks
                .mark(tokens.is_multiple_of(block), || format!("{id}: {tokens} are no blocks of {block}"));
        }
        if text(row, "gpu").is_empty() && num(row, "gpu_total_gib").is_none() {
            self.skipped.push(format!("{id}: neither the card nor the memory of it is given"));
            return true;
        }
        let model = text(row, "model");
        let Some(config) = known::config(model, facts.get(model), dirs) else {
            self.skipped.push(format!("{id}: configuration not known"));
            return true;
        };
        let files = ModelFiles {
            config: &config.text,
            hf_quant_config: config.hf_quant_config.as_deref(),
            safetensors_index: None,
        };
        match Model::read(&files).map_err(|e| e.to_string()).and_then(|m| plan(row, *engine, m)) {
            Ok(p) => self.compare(row, &id, &p, tokens),
            Err(why) => self.skipped.push(format!("{id}: {why}")),
        }
        true
    }

    fn compare(&mut self, row: &Row, id: &str, p: &Plan, tokens: Option<u64>) {
        let gib = |bytes: u64| bytes as f64 / GIB as f64;
        if let Some(want) = tokens {
            let got = p.gpu.kv_cache.tokens;
            let inside = (got.low..=got.high).contains(&want);
            self.tokens
                .mark(inside, || format!("{id}: {want} tokens, predicted {} to {}", got.low, got.high));
        }
        for (table, column, got) in [
            (&mut self.weights, "weights_gib_per_gpu", p.gpu.weights_bytes.expected),
            (&mut self.cache, "kv_cache_gib_per_gpu", p.gpu.kv_cache.available_bytes.expected),
        ] {
            if let Some(want) = num(row, column) {
                let right = within(gib(got), want, 0.01) || (gib(got) - want).abs() <= 0.005;
                table.mark(right, || format!("{id}: {column} {want} GiB, predicted {:.4}", gib(got)));
            }
        }
    }

    pub(super) fn show(&self) -> String {
        let mut out = String::new();
        let tables = [
            ("blocks", "printed tokens are whole blocks (TGI)", &self.blocks),
            ("tokens", "printed tokens inside the band from flags, model and card", &self.tokens),
            ("weights", "weights per GPU within 1 %", &self.weights),
            ("cache", "KV buffer within 1 %", &self.cache),
        ];
        for (name, _, t) in &tables {
            for miss in &t.misses {
                let _ = writeln!(out, "{name} {miss}");
            }
        }
        for s in &self.skipped {
            let _ = writeln!(out, "skipped {s}");
        }
        let _ = writeln!(
            out,
            "{} rows of TGI, llama.cpp and Ollama, {} not compared",
            self.rows,
            self.skipped.len()
        );
        for (name, what, t) in &tables {
            if t.of == 0 {
                let _ = writeln!(out, "{name:<8} not measured, no row tells enough: {what}");
                continue;
            }
            let _ = writeln!(out, "{name:<8} {:>7.2} %  {:>3}/{:<3} {what}", t.percent(), t.right, t.of);
        }
        out
    }
}

fn plan(row: &Row, engine: EngineKind, model: Model) -> Result<Plan, String> {
    let mut line = CommandLine::of(engine);
    let version = Version::parse(text(row, "engine_version"));
    let l = &mut line.launch;
    (l.version, l.version_known) = (version.unwrap_or(l.version), version.is_some());
    (l.tp, l.pp) = (int(row, "tp").unwrap_or(1), int(row, "pp").unwrap_or(1));
    l.max_model_len = int(row, "max_model_len").map_or(MaxModelLen::Model, MaxModelLen::Tokens);
    l.max_num_seqs = int(row, "max_num_seqs");
    l.max_num_batched_tokens = int(row, "max_num_batched_tokens");
    l.block_size = int(row, "block_size");
    l.gpu_memory_utilization = num(row, "gpu_memory_utilization_or_fraction");
    l.quantization = Some(text(row, "quantization")).filter(|q| !q.is_empty()).map(str::to_owned);
    let kv = text(row, "kv_cache_dtype");
    if engine == EngineKind::LlamaCpp && !kv.is_empty() {
        (line.llama_cpp.cache_type_k, line.llama_cpp.cache_type_v) = (Some(kv.into()), Some(kv.into()));
    }
    let name = text(row, "gpu").to_owned();
    let card = CARDS.iter().find(|(card, _)| name.contains(card));
    let total = num(row, "gpu_total_gib").ok_or("the total of the card is not given")?;
    let gpu = Gpu {
        device_name: name.clone(),
        name,
        total_bytes: (total * GIB as f64) as u64,
        capability: card.map_or((9, 0), |(_, c)| *c),
        host_use: None,
    };
    let named = Named {
        id: text(row, "model").into(),
        source: "facts of the start-ups".into(),
        model,
        gguf: None,
        files: Checkpoint::default(),
    };
    let placed = Placed { gpu, unknown: Vec::new() };
    answer(&named, &line, &placed, None).and_then(|a| a.plan).map_err(|e| e.to_string())
}
