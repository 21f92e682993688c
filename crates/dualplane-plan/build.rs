//! Embeds what plans know of `knowledge/`: the cards, and the facts of models.
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
