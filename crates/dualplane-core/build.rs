//! Embeds `knowledge/`, without examples, which are tests: signatures as Rust constants, which no start has to read, and all
//! else as one JSON text.
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
    fs::write(out.join("signatures.rs"), constants(signatures.as_array().expect("entries")))
        .expect("OUT_DIR is writable");
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

/// The signatures as an array of Rust. A key that is not known here is an error: it would be lost.
fn constants(signatures: &[Value]) -> String {
    let mut out = format!("pub(super) static SIGNATURES: [Signature; {}] = [\n", signatures.len());
    for signature in signatures {
        let mut keys = signature.as_object().expect("an entry is a table").clone();
        let id = keys.get("id").and_then(Value::as_str).unwrap_or("an entry without id").to_owned();
        let mut fields = Vec::new();
        let mut field = |name: &str, write: fn(&Value) -> String, absent: &str| {
            let value = keys.remove(name).filter(|v| !v.is_null());
            let text = value.map_or_else(|| absent.to_owned(), |v| write(&v));
            assert!(!text.is_empty(), "{id}: the key {name} is missing");
            fields.push(format!("{name}: {text}"));
        };
        for name in ["id", "versions", "meaning", "source"] {
            field(name, text, "");
        }
        field("file", text, "t(\"\")");
        for name in ["engine", "pattern", "until", "doubt"] {
            field(name, |v| format!("Some({})", text(v)), "None");
        }
        field("literals", texts, "");
        for name in ["words", "context", "unless"] {
            field(name, texts, "Cow::Borrowed(&[])");
        }
        field("mark", |v| format!("Mark::{}", variant(v)), "");
        field("scope", |v| format!("Scope::{}", variant(v)), "Scope::Log");
        field("class", |v| format!("Some(Class::{})", variant(v)), "None");
        field("phase", |v| format!("Some(Phase::{})", variant(v)), "None");
        field("host_memory", |v| format!("Some(HostMemory::{})", variant(v)), "None");
        for name in ["changed", "unchanged"] {
            field(name, |v| format!("Some([{}])", list(v).join(", ")), "None");
        }
        for name in ["any_level", "other_rank"] {
            field(name, |v| v.to_string(), "false");
        }
        field("units", pairs, "Cow::Borrowed(&[])");
        out += &format!("Signature {{ {}, compiled: Pattern::new() }},\n", fields.join(", "));
        assert!(keys.is_empty(), "{id}: build.rs does not know {:?}", keys.keys().collect::<Vec<_>>());
    }
    out + "];\n"
}

fn text(value: &Value) -> String {
    format!("t({:?})", value.as_str().unwrap_or_else(|| panic!("{value} is not a text")))
}

fn list(value: &Value) -> Vec<String> {
    value.as_array().unwrap_or_else(|| panic!("{value} is not a list")).iter().map(text).collect()
}

fn texts(value: &Value) -> String {
    format!("Cow::Borrowed(&[{}])", list(value).join(", "))
}

/// `cuda_oom_load` is `CudaOomLoad`.
fn variant(value: &Value) -> String {
    let word = value.as_str().unwrap_or_else(|| panic!("{value} is not a word"));
    let first = |w: &str| {
        w.chars().take(1).map(|c| c.to_ascii_uppercase()).chain(w.chars().skip(1)).collect::<String>()
    };
    word.split('_').map(first).collect()
}

fn pairs(value: &Value) -> String {
    let table = value.as_object().unwrap_or_else(|| panic!("{value} is not a table"));
    let mut pairs: Vec<_> = table.iter().collect();
    pairs.sort_by_key(|(name, _)| *name);
    let pairs: Vec<String> = pairs.iter().map(|(k, v)| format!("(t({k:?}), {})", text(v))).collect();
    format!("Cow::Borrowed(&[{}])", pairs.join(", "))
}
