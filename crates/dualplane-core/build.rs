//! Embeds `knowledge/` as one JSON text, without examples: they are tests, and parsing them at start would cost time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// The bans of clippy.toml keep the crate pure; its build script reads files and talks to cargo by nature.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::disallowed_macros)]

use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::{Map, Value, json};

fn main() {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../knowledge");
    println!("cargo:rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    let mut all = Map::new();
    for file in files {
        println!("cargo:rerun-if-changed={}", file.display());
        let text = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let doc: Value = toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let name = file.strip_prefix(&root).expect("below root").with_extension("");
        merge(&mut all, doc, &name.to_string_lossy().replace('\\', "/"));
    }
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join("knowledge.json");
    fs::write(out, Value::Object(all).to_string()).expect("OUT_DIR is writable");
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
        let path = entry.expect("readable entry").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "toml") {
            files.push(path);
        }
    }
}

fn merge(all: &mut Map<String, Value>, doc: Value, file: &str) {
    let Value::Object(doc) = doc else { return };
    let engine = doc.get("engine").cloned().unwrap_or(Value::Null);
    for (key, value) in doc {
        let Value::Array(entries) = value else { continue };
        let into = all.entry(key.clone()).or_insert_with(|| json!([]));
        for mut entry in entries {
            if let Some(entry) = entry.as_object_mut() {
                entry.remove("examples");
                entry.remove("near_misses");
                if key == "signature" {
                    entry.insert("engine".into(), engine.clone());
                    entry.insert("file".into(), file.into());
                }
            }
            into.as_array_mut().expect("made as array").push(entry);
        }
    }
}
