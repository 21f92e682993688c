//! Embeds the levers: `knowledge/levers.toml`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// The bans of clippy.toml keep the crate pure; its build script reads files and talks to cargo by nature.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::disallowed_macros)]

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let file = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"))
        .join("../../knowledge/levers.toml");
    println!("cargo:rerun-if-changed={}", file.display());
    let text = fs::read_to_string(&file).expect("knowledge/levers.toml");
    let table: serde_json::Value = toml::from_str(&text).expect("levers.toml is TOML");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it")).join("levers.json");
    fs::write(out, table.to_string()).expect("OUT_DIR is writable");
}
