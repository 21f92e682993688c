//! Embeds what plans know of `knowledge/`: the cards, the architectures, and the facts of models.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// The bans of clippy.toml keep the crate pure; its build script reads files and talks to cargo by nature.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::disallowed_macros)]

use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::Value;

/// Lists of architectures in the table `sglang`, fields of `Code`.
const SGLANG: [&str; 12] = [
    "attention_ranks",
    "embedding_of_group",
    "embedding_of_all",
    "embedding_apart",
    "embedding_whole",
    "transformers_code",
    "head_in_32_bits",
    "head_of_its_own",
    "own_windows",
    "two_more_states",
    "trtllm_mla",
    "triton_on_blackwell",
];

#[path = "../dualplane-base/packer.rs"]
mod packer;

fn main() {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../knowledge");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));

    let cards = read(&root.join("gpus.toml"));
    let cards = cards.get("gpu").expect("cards").to_string();
    fs::write(out.join("gpus.rs"), packer::block(&out, "gpus", &cards)).expect("OUT_DIR is writable");

    let machines = read(&root.join("instances.toml"));
    let rows = |list: &Value, source: &str| -> String {
        list.as_array()
            .expect("a list")
            .iter()
            .map(|m| {
                let text = |key: &str| m.get(key).and_then(Value::as_str).expect("a text");
                let count = m.get("count").and_then(Value::as_u64).unwrap_or(0);
                line(&[text("name"), text("gpu"), &count.to_string(), source])
            })
            .collect()
    };
    let tables = machines.get("machines").and_then(Value::as_array).expect("tables of machines");
    let all: String = tables
        .iter()
        .map(|t| {
            let source = t.get("source").and_then(Value::as_str).expect("machines have a source");
            rows(t.get("instance").expect("machines"), source)
        })
        .collect();
    let text = all + &rows(machines.get("short").expect("short names"), "");
    fs::write(out.join("machines.rs"), packer::block(&out, "machines", &text)).expect("OUT_DIR is writable");

    for (name, file) in [("sglang_flags", "sglang-0.5.23.txt"), ("vllm_flags", "vllm.txt")] {
        let file = root.join("flags").join(file);
        println!("cargo:rerun-if-changed={}", file.display());
        let flags = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        fs::write(out.join(format!("{name}.rs")), packer::block(&out, name, &flags))
            .expect("OUT_DIR is writable");
    }

    let list = read(&root.join("architectures.toml"));
    for (name, place) in [
        ("both_ways", "/pictures/both_ways"),
        ("encoders", "/encoders/names"),
        ("heads_divide_width", "/transformers/heads_divide_width"),
    ] {
        let types: Vec<&str> = list
            .pointer(place)
            .and_then(Value::as_array)
            .expect("a list of names")
            .iter()
            .map(|m| m.as_str().expect("a name"))
            .collect();
        fs::write(out.join(format!("{name}.rs")), format!("&{types:?}\n")).expect("OUT_DIR is writable");
    }
    let versions = list.get("versions").and_then(Value::as_object).expect("wrappers of several versions");
    let versions: Vec<(&str, &str, &str)> = versions
        .iter()
        .flat_map(|(name, of)| {
            let of = of.as_object().expect("versions of a wrapper");
            of.iter()
                .map(move |(v, inner)| (name.as_str(), v.as_str(), inner.as_str().expect("an architecture")))
        })
        .collect();
    fs::write(out.join("versions.rs"), format!("&{versions:?}\n")).expect("OUT_DIR is writable");
    let code: Vec<String> = SGLANG
        .iter()
        .map(|key| {
            let names = list.pointer("/sglang").and_then(|t| t.get(key)).and_then(Value::as_array);
            let names = names.unwrap_or_else(|| panic!("architectures.toml: no sglang.{key}"));
            let names: Vec<&str> = names.iter().map(|n| n.as_str().expect("an architecture")).collect();
            format!("{key}: &{names:?}")
        })
        .collect();
    let code = format!("Code {{ {} }}\n", code.join(", "));
    fs::write(out.join("sglang.rs"), code).expect("OUT_DIR is writable");
    let list = list.get("architecture").and_then(Value::as_array).expect("architectures");
    let rows: String = list.iter().map(architecture).collect();
    fs::write(out.join("architectures.rs"), format!("&[\n{rows}]\n")).expect("OUT_DIR is writable");

    // Models are looked up one by one, and parsed only when one is asked for.
    let folder = root.join("models");
    println!("cargo:rerun-if-changed={}", folder.display());
    let files: Vec<Value> = files_of(&folder).iter().map(|f| read(f)).collect();
    let all: Vec<Value> =
        files.iter().filter_map(|f| f.get("model").and_then(Value::as_array)).flatten().cloned().collect();
    let quant = |entry: &Value| entry.get("hf_quant_config").and_then(Value::as_str).map_or(0, str::len);
    let mut texts = Packer::of(all.iter().map(|entry| config(entry, &all).len() + quant(entry)).sum());
    let models: String = all.iter().map(|entry| model(entry, &all, &mut texts)).collect();
    fs::write(out.join("models.rs"), packer::block(&out, "models", &models)).expect("OUT_DIR is writable");
    texts.write(&out);
    let typed: String = files
        .iter()
        .filter_map(|f| f.get("typed").and_then(Value::as_object))
        .flatten()
        .map(|(name, id)| format!("({name:?}, {:?}),\n", id.as_str().expect("an id")))
        .collect();
    fs::write(out.join("typed.rs"), format!("&[\n{typed}]\n")).expect("OUT_DIR is writable");
}

/// The TOML files of a folder.
fn files_of(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|e| e.expect("readable entry").path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "toml"));
    files.sort();
    files
}

fn read(file: &Path) -> Value {
    println!("cargo:rerun-if-changed={}", file.display());
    let text = fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

/// One entry of `architectures.toml` as Rust text. A word that no variant has does not compile; a key that is none is told
/// here.
fn architecture(entry: &Value) -> String {
    let entry = entry.as_object().expect("a table");
    let names = |key: &str| -> Vec<&str> {
        let list = entry.get(key).and_then(Value::as_array).unwrap_or_else(|| panic!("{entry:?}: no {key}"));
        list.iter().map(|n| n.as_str().expect("a name")).collect()
    };
    for key in entry.keys() {
        let known = [
            "names",
            "model_types",
            "family",
            "qk_norm",
            "qkv_bias",
            "o_bias",
            "mlp",
            "layers",
            "every_stage",
            "gated",
            "mlp_bias",
            "norms",
            "tied",
            "head",
            "positions",
            "mrope",
            "windows",
            "shared",
            "language_model",
            "tie_of",
            "backend",
            "output_gate",
            "renormalises",
            "checkpoints",
            "mlp_whole",
            "causal_mask",
            "compiles",
            "remote_code",
            "mlp_four_times",
            "float16",
            "cache_dtype",
            "source",
        ];
        assert!(known.contains(&key.as_str()), "architectures.toml: no key is called {key}");
    }
    let text = |key: &str, default: &'static str| {
        entry.get(key).map_or(default, |v| v.as_str().expect("a text")).to_owned()
    };
    let variant = |key: &str, default: &'static str| camel(&text(key, default));
    let switch = |key: &str, default: bool| {
        entry
            .get(key)
            .map_or(default, |v| v.as_bool().unwrap_or_else(|| panic!("{entry:?}: {key} is no switch")))
    };
    let norms = entry.get("norms").map_or(2, |v| v.as_u64().expect("a number of norms"));
    format!(
        "Architecture {{ names: {:?}, model_types: {:?}, traits: Traits {{ name: {:?}, family: Family::{}, qk_norm: \
         QkNorm::{}, qkv_bias: Bias::{}, o_bias: Bias::{}, mlp: {:?}, layers: {:?}, everywhere: Everywhere::{}, gated: {}, \
         mlp_bias: Bias::{}, norms: {norms}, tied: {}, head: Head::{}, positions: Positions::{}, mrope: Mrope::{}, windows: Windows::{}, shared: Shared::{}, \
         inner: {}, tie_of: Tie::{}, backend: ModelCode::{}, output_gate: OutputGate::{}, renormalises: Renormalises::{}, checkpoints: {}, mlp_whole: {}, causal_mask: {}, compiles: {}, remote_code: {}, mlp_four_times: {}, float16: {}, cache_dtype: {} }} }},\n",
        names("names").join(" "),
        names("model_types").join(" "),
        names("names").first().copied().unwrap_or_default(),
        variant("family", "decoder"),
        variant("qk_norm", "none"),
        variant("qkv_bias", "config"),
        variant("o_bias", "config"),
        text("mlp", "mlp"),
        text("layers", "model.layers"),
        variant("every_stage", "nothing"),
        switch("gated", true),
        variant("mlp_bias", "config"),
        switch("tied", false),
        variant("head", "untied"),
        variant("positions", "rotary"),
        variant("mrope", "fourfold"),
        variant("windows", "each_layer"),
        variant("shared", "none"),
        text("language_model", "own") == "inner",
        variant("tie_of", "first"),
        variant("backend", "own"),
        variant("output_gate", "never"),
        variant("renormalises", "unless_off"),
        switch("checkpoints", true),
        switch("mlp_whole", false),
        switch("causal_mask", false),
        switch("compiles", false),
        switch("remote_code", false),
        switch("mlp_four_times", false),
        switch("float16", true),
        switch("cache_dtype", true),
    )
}

/// `per_head` → `PerHead`.
fn camel(word: &str) -> String {
    let part = |p: &str| {
        let mut letters = p.chars();
        letters
            .next()
            .map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
    };
    word.split('_').map(part).collect()
}

/// Bytes of a block, about: one text that is asked for unpacks its neighbours too.
const BLOCK: usize = 64 << 10;

/// Long texts that are alike, packed in blocks of about one size: a short one would not be worth it.
struct Packer {
    block: usize,
    blocks: Vec<String>,
}

impl Packer {
    /// For texts of so many bytes.
    fn of(bytes: usize) -> Self {
        Self { block: bytes.div_ceil(bytes.div_ceil(BLOCK).max(1)), blocks: Vec::new() }
    }

    /// Adds a text; where it lies, as block and bytes.
    fn add(&mut self, text: &str) -> String {
        if self.blocks.last().is_none_or(|b| b.len() >= self.block) {
            self.blocks.push(String::new());
        }
        let block = self.blocks.len() - 1;
        let into = self.blocks.last_mut().expect("one was added");
        let from = into.len();
        *into += text;
        format!("{block} {from} {}", into.len())
    }

    fn write(&self, out: &Path) {
        let mut list = String::new();
        for (number, text) in self.blocks.iter().enumerate() {
            list += &(packer::block(out, &format!("models.{number}"), text) + ",");
        }
        let list = format!("[Block; {}] = [\n{list}];\n", self.blocks.len());
        fs::write(out.join("blocks.rs"), format!("static BLOCKS: {list}")).expect("OUT_DIR is writable");
    }
}

/// One entry of `knowledge/models/` as a line of tabbed fields, which `catalogue/texts.rs` reads. A quantised sibling names its `base` and what it sets.
fn model(entry: &Value, all: &[Value], texts: &mut Packer) -> String {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::trim);
    let id = text("id").expect("a model has an id");
    let aliases: Vec<&str> = entry
        .get("aliases")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let config = texts.add(&config(entry, all));
    let quant = text("hf_quant_config").map_or_else(String::new, |t| texts.add(t));
    let source = text("source").unwrap_or_else(|| panic!("{id}: no source"));
    let fields = [id, &aliases.join(" "), source, &config, &quant];
    assert!(aliases.iter().all(|a| !a.contains(' ')), "{id}: an id has a space");
    line(&fields)
}

/// The configuration of an entry: its own, or that of its base with what it sets.
fn config(entry: &Value, all: &[Value]) -> String {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::trim);
    let id = text("id").expect("a model has an id");
    match text("base") {
        Some(base) => {
            let found = all.iter().find(|m| m.get("id").and_then(Value::as_str) == Some(base));
            let found = found.unwrap_or_else(|| panic!("{id}: no model is called {base}"));
            let own = found.get("config").and_then(Value::as_str).expect("a base has a config");
            let mut config: Value = serde_json::from_str(own).expect("JSON");
            let set: Value = serde_json::from_str(text("set").expect("what it sets")).expect("JSON");
            let into = config.as_object_mut().expect("an object");
            into.extend(set.as_object().expect("an object").clone());
            config.to_string()
        }
        None => text("config").unwrap_or_else(|| panic!("{id}: no config")).to_owned(),
    }
}

/// A line of tabbed fields.
fn line(fields: &[&str]) -> String {
    assert!(fields.iter().all(|f| !f.contains(['\t', '\n'])), "{fields:?}: a field has several lines");
    fields.join("\t") + "\n"
}
