//! Embeds `knowledge/alerts/*.toml`, with the tests: `dualplane rules --tests` prints them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// The bans of clippy.toml keep the crate pure; its build script reads files and talks to cargo by nature.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::disallowed_macros)]

use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::{Map, Value};

#[path = "../dualplane-base/packer.rs"]
mod packer;

fn main() {
    let root =
        Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../knowledge/alerts");
    println!("cargo:rerun-if-changed={}", root.display());
    let entries = fs::read_dir(&root).unwrap_or_else(|e| panic!("{}: {e}", root.display()));
    let mut files: Vec<PathBuf> = entries.map(|e| e.expect("readable entry").path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "toml"));
    files.sort();
    let mut all = Map::new();
    for file in files {
        println!("cargo:rerun-if-changed={}", file.display());
        let text = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let doc: Value = toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let family = file.file_stem().and_then(|s| s.to_str()).expect("a name").to_owned();
        for (key, value) in doc.as_object().expect("a table") {
            merge(&mut all, key, value, &family).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        }
    }
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    let text = Value::Object(all).to_string();
    fs::write(out.join("alerts.rs"), packer::block(&out, "alerts", &text)).expect("OUT_DIR is writable");
}

/// Lists are joined, and each entry gets its file's name; tables are joined where their keys differ.
fn merge(all: &mut Map<String, Value>, key: &str, value: &Value, family: &str) -> Result<(), String> {
    match value {
        Value::Array(items) => {
            let list = all.entry(key).or_insert_with(|| Value::Array(Vec::new()));
            for item in items {
                let mut item = item.clone();
                item.as_object_mut().expect("a table").insert("family".to_owned(), family.into());
                list.as_array_mut().expect("a list").push(item);
            }
        }
        Value::Object(map) => {
            let table = all.entry(key).or_insert_with(|| Value::Object(Map::new()));
            for (name, entry) in map {
                if table.as_object_mut().expect("a table").insert(name.clone(), entry.clone()).is_some() {
                    return Err(format!("{key}.{name} stands twice"));
                }
            }
        }
        other => return Err(format!("{key} = {other} is neither a table nor a list")),
    }
    Ok(())
}
