//! Embeds `knowledge/` as one JSON text, without examples: they are tests, and parsing them at start would cost time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// The bans of clippy.toml keep the crate pure; its build script reads files and talks to cargo by nature.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::disallowed_macros)]

use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::{Map, Value};

#[path = "src/knowledge/document.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "the library exports them, and `knowledge check` reads the examples"
)]
mod document;

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
        // Models and their architectures are for plans only, which embed them on their own: here each start would parse them.
        if name.starts_with("models") || name == Path::new("architectures") {
            continue;
        }
        // The examples stay out.
        document::add(&mut all, doc, &name.to_string_lossy().replace('\\', "/"));
    }
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("knowledge.json"), Value::Object(all).to_string()).expect("OUT_DIR is writable");
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
