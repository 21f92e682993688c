//! Embeds the heads of `knowledge/engines/*.toml`, without their examples: they are tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// The bans of clippy.toml keep the crate pure; its build script reads files and talks to cargo by nature.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::disallowed_macros)]

use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::Value;

#[path = "src/head.rs"]
#[allow(dead_code, unreachable_pub, reason = "the library exports them for a team's own engines")]
mod head;

fn main() {
    let root =
        Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../knowledge/engines");
    println!("cargo:rerun-if-changed={}", root.display());
    let entries = fs::read_dir(&root).unwrap_or_else(|e| panic!("{}: {e}", root.display()));
    let mut files: Vec<PathBuf> = entries.map(|e| e.expect("readable entry").path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "toml"));
    files.sort();
    let heads: Vec<Value> = files.iter().filter_map(|f| head::head(&read(f))).collect();
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("engines.json"), Value::Array(heads).to_string()).expect("OUT_DIR is writable");
}

fn read(file: &Path) -> Value {
    println!("cargo:rerun-if-changed={}", file.display());
    let text = fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}
