//! Rows of measured start-ups: the table, and the launch that a row tells.

use std::collections::HashMap;

use dualplane_base::units::GIB;
use dualplane_plan::{EngineKind, Gpu, Launch, MaxModelLen, Version};

/// Values by the names of their columns.
pub(super) type Row = HashMap<String, String>;

/// Rows of a CSV with a header; a short row lacks its last columns.
pub(super) fn rows(text: &str) -> Result<Vec<Row>, csv::Error> {
    csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes()).deserialize().collect()
}

pub(super) fn text<'a>(row: &'a Row, key: &str) -> &'a str {
    row.get(key).map_or("", String::as_str)
}

pub(super) fn num(row: &Row, key: &str) -> Option<f64> {
    text(row, key).parse().ok()
}

pub(super) fn int(row: &Row, key: &str) -> Option<u64> {
    text(row, key).parse().ok()
}

/// Compute capability by what the row calls the card.
pub(super) const CARDS: &[(&str, (u32, u32))] = &[
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

pub(super) fn launch(row: &Row, engine: EngineKind) -> (Launch, Gpu) {
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
        engine => engine.newest(),
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
        } else if ["mamba-cache-mode align", "align mode", "2 state blocks per group"]
            .iter()
            .any(|w| extra.contains(w))
        {
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
        host_use: None,
    };
    (launch, gpu)
}

/// What a row had that its columns do not hold.
pub(super) fn incomparable(row: &Row) -> Option<&'static str> {
    let (extra, gpu, model) = (text(row, "extra_args"), text(row, "gpu"), text(row, "model"));
    let has = |words: &[&str]| words.iter().any(|w| extra.contains(w));
    if has(&["DFlash", "DSpark", "dflash", "MTP draft", "ultramax"]) || model.contains("dflash") {
        Some("a drafter whose configuration is not known")
    } else if has(&["prefetch offload", "TP/PP split not shown"]) {
        Some("an offload or a split that the row does not describe")
    } else if text(row, "quantization").contains("experts on CPU") {
        Some("experts in host memory")
    } else if ["Ascend", "TPU", "XPU", "MetaX", "Intel"].iter().any(|w| gpu.contains(w)) {
        Some("another platform than CUDA")
    } else {
        None
    }
}

/// Whether the row's weights are of a format that neither its configuration nor its columns describe.
pub(super) fn unknown_format(row: &Row) -> bool {
    ["4-bit", "quantised"].iter().any(|w| text(row, "model").contains(w))
}
