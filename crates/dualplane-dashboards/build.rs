//! Embeds `knowledge/dashboards/*.toml`, one board a file, in the order of their numbers, packed: few runs print one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// The bans of clippy.toml keep the crate pure; its build script reads files and talks to cargo by nature.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::disallowed_macros)]

use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::Value;

#[path = "../dualplane-base/packer.rs"]
mod packer;

fn main() {
    let root =
        Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../knowledge/dashboards");
    println!("cargo:rerun-if-changed={}", root.display());
    let entries = fs::read_dir(&root).unwrap_or_else(|e| panic!("{}: {e}", root.display()));
    let mut files: Vec<PathBuf> = entries.map(|e| e.expect("readable entry").path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "toml"));
    files.sort();
    let read = |file: &PathBuf| -> Value {
        println!("cargo:rerun-if-changed={}", file.display());
        let text = fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
    };
    let mut boards: Vec<Value> = files.iter().map(read).collect();
    boards.sort_by_key(|b| b["place"].as_i64());
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    let text = Value::Array(boards).to_string();
    fs::write(out.join("boards.rs"), packer::block(&out, "boards", &text)).expect("OUT_DIR is writable");
}
