//! Embeds `knowledge/lint/*.toml` without the examples, which are tests.
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
        Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../knowledge/lint");
    println!("cargo:rerun-if-changed={}", root.display());
    let entries = fs::read_dir(&root).unwrap_or_else(|e| panic!("{}: {e}", root.display()));
    let mut files: Vec<PathBuf> = entries.map(|e| e.expect("readable entry").path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "toml"));
    files.sort();
    let mut rules = Vec::new();
    let mut all = Map::new();
    for file in files {
        println!("cargo:rerun-if-changed={}", file.display());
        let text = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let doc: Value = toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        for (key, value) in doc.as_object().expect("a table") {
            if key == "rule" {
                rules.extend(value.as_array().expect("rules").iter().cloned().map(without_examples));
            } else {
                all.insert(key.clone(), value.clone());
            }
        }
    }
    all.insert("rule".to_owned(), rules.into());
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    let text = Value::Object(all).to_string();
    fs::write(out.join("lint.rs"), packer::block(&out, "lint", &text)).expect("OUT_DIR is writable");
}

fn without_examples(mut rule: Value) -> Value {
    let map = rule.as_object_mut().expect("a rule is a table");
    map.remove("good");
    map.remove("bad");
    rule
}
