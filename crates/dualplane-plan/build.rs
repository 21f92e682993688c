//! Embeds what plans know of `knowledge/`: the cards, the architectures, and the facts of models.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// The bans of clippy.toml keep the crate pure; its build script reads files and talks to cargo by nature.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::disallowed_macros)]

use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::Value;

fn main() {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../knowledge");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));

    let cards = read(&root.join("gpus.toml"));
    let cards = cards.get("gpu").expect("cards").to_string();
    fs::write(out.join("gpus.json"), cards).expect("OUT_DIR is writable");

    let list = read(&root.join("architectures.toml"));
    let list = list.get("architecture").and_then(Value::as_array).expect("architectures");
    let rows: String = list.iter().map(architecture).collect();
    fs::write(out.join("architectures.rs"), format!("&[\n{rows}]\n")).expect("OUT_DIR is writable");

    // Models are looked up one by one, and parsed only when one is asked for.
    let folder = root.join("models");
    println!("cargo:rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|e| e.expect("readable entry").path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "toml"));
    files.sort();
    let models: String = files
        .iter()
        .flat_map(|f| read(f).get("model").and_then(Value::as_array).expect("a file of models").clone())
        .map(|entry| model(&entry))
        .collect();
    fs::write(out.join("models.rs"), format!("&[\n{models}]\n")).expect("OUT_DIR is writable");
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
            "source",
        ];
        assert!(known.contains(&key.as_str()), "architectures.toml: no key is called {key}");
    }
    let text = |key: &str, default: &'static str| {
        entry.get(key).map_or(default, |v| v.as_str().expect("a text")).to_owned()
    };
    let variant = |key: &str, default: &'static str| camel(&text(key, default));
    format!(
        "Architecture {{ names: &{:?}, model_types: &{:?}, traits: Traits {{ family: Family::{}, qk_norm: QkNorm::{}, \
         qkv_bias: Bias::{}, o_bias: Bias::{}, mlp: {:?}, layers: {:?}, everywhere: Everywhere::{} }} }},\n",
        names("names"),
        names("model_types"),
        variant("family", "decoder"),
        variant("qk_norm", "none"),
        variant("qkv_bias", "config"),
        variant("o_bias", "config"),
        text("mlp", "mlp"),
        text("layers", "model.layers"),
        variant("every_stage", "nothing"),
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

/// One entry of `knowledge/models/` as Rust text.
fn model(entry: &Value) -> String {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::trim);
    let id = text("id").expect("a model has an id");
    let aliases: Vec<&str> = entry
        .get("aliases")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    format!(
        "CatalogueEntry {{ id: {id:?}, aliases: &{aliases:?}, source: {:?}, config: {:?}, hf_quant_config: {:?} }},\n",
        text("source").unwrap_or_else(|| panic!("{id}: no source")),
        text("config").unwrap_or_else(|| panic!("{id}: no config")),
        text("hf_quant_config"),
    )
}
