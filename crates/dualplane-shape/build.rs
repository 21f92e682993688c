//! Embeds the shapes of `knowledge/shapes`, each as JSON.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// The bans of clippy.toml keep the crate pure; its build script reads files and talks to cargo by nature.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::disallowed_macros)]

use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::Value;

fn main() {
    let folder =
        Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../knowledge/shapes");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    println!("cargo:rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|e| e.expect("readable entry").path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "toml"));
    files.sort();
    let shapes: String = files
        .iter()
        .map(|file| {
            println!("cargo:rerun-if-changed={}", file.display());
            let text = fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            let shape: Value = toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            let name = shape.get("name").and_then(Value::as_str).expect("a shape has a name");
            format!("({name:?}, {:?}),\n", shape.to_string())
        })
        .collect();
    fs::write(out.join("shapes.rs"), format!("&[\n{shapes}]\n")).expect("OUT_DIR is writable");
}
