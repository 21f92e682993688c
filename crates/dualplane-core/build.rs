//! Embeds `knowledge/`, without examples, which are tests: signatures as packed text, which takes a start a
//! millisecond to read, and all else as one JSON text. Both are compressed.
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

#[path = "src/knowledge/packing.rs"]
#[allow(dead_code, unreachable_pub, reason = "the library reads what is written here")]
mod packing;

#[path = "../dualplane-base/packer.rs"]
mod packer;

fn main() {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../knowledge");
    // Not the folder itself: a change of a rule for manifests, which another crate embeds, would compile all of this anew.
    for entry in fs::read_dir(&root).expect("knowledge") {
        let path = entry.expect("readable entry").path();
        if path != root.join("lint") {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    let mut all = Map::new();
    for file in files {
        if file.starts_with(root.join("lint")) {
            continue;
        }
        println!("cargo:rerun-if-changed={}", file.display());
        let text = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let doc: Value = toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let name = file.strip_prefix(&root).expect("below root").with_extension("");
        // Models, their architectures and clouds' machines are for plans only, which embed them on their own: here each start would parse them.
        if name.starts_with("models")
            || [Path::new("architectures"), Path::new("instances")].contains(&name.as_path())
        {
            continue;
        }
        // The examples stay out.
        document::add(&mut all, doc, &name.to_string_lossy().replace('\\', "/"));
    }
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    let signatures = all.remove("signature").unwrap_or_default();
    let signatures: Vec<String> = signatures.as_array().expect("entries").iter().map(packed).collect();
    for (name, text) in
        [("signatures", join(&signatures, packing::RECORD)), ("knowledge", Value::Object(all).to_string())]
    {
        fs::write(out.join(name).with_extension("rs"), packer::block(&out, name, &text))
            .expect("OUT_DIR is writable");
    }
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

/// One signature as `packing.rs` reads it. A key that is not known here is an error: it would be lost.
fn packed(signature: &Value) -> String {
    let mut keys = signature.as_object().expect("an entry is a table").clone();
    let id = keys.get("id").and_then(Value::as_str).unwrap_or("an entry without id").to_owned();
    for name in ["id", "versions", "meaning", "source", "mark", "literals"] {
        assert!(keys.contains_key(name), "{id}: the key {name} is missing");
    }
    let fields: Vec<String> = packing::FIELDS
        .iter()
        .map(|name| keys.remove(*name).filter(|v| !v.is_null()).map_or_else(String::new, |v| field(&v)))
        .collect();
    assert!(keys.is_empty(), "{id}: packing.rs does not know {:?}", keys.keys().collect::<Vec<_>>());
    join(&fields, packing::FIELD)
}

/// A text as it is, `true` as a word, a list's items one after another, a table's keys and values in turn.
fn field(value: &Value) -> String {
    let text = |text: &str| {
        assert!(!text.contains(char::is_control) && !text.is_empty(), "{text:?} cannot be packed");
        text.to_owned()
    };
    let items: Vec<String> = match value {
        Value::String(s) => return text(s),
        Value::Bool(set) => return if *set { "true".to_owned() } else { String::new() },
        Value::Array(items) => items.iter().map(field).collect(),
        Value::Object(table) => {
            let mut pairs: Vec<_> = table.iter().collect();
            pairs.sort_by_key(|(name, _)| *name);
            pairs.into_iter().flat_map(|(k, v)| [text(k), field(v)]).collect()
        }
        other => panic!("{other} cannot be packed"),
    };
    join(&items, packing::ITEM)
}

fn join(parts: &[String], between: char) -> String {
    parts.join(between.encode_utf8(&mut [0; 4]))
}
