//! Whole files are masked without touching what a verdict rests on, and planted secrets do not survive in any carrier.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stderr,
    missing_docs,
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::cmp_owned,
    clippy::disallowed_types
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use dualplane_core::evidence::RawFile;
use dualplane_core::knowledge::Knowledge;
use dualplane_core::redact::Redactor;
use dualplane_report as report;
use serde_json::{Value, json};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files of an incident, JSON written anew so that only masking can make a difference.
fn incident(dir: &Path) -> Vec<RawFile> {
    let mut paths = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for e in fs::read_dir(dir).unwrap() {
            let p = e.unwrap().path();
            if p.is_dir() {
                dirs.push(p);
            } else if p.file_name().unwrap() != "truth.json" {
                paths.push(p);
            }
        }
    }
    paths.sort();
    let file = |p: &PathBuf| {
        let name = p.strip_prefix(dir).unwrap().to_string_lossy().into_owned();
        let bytes = fs::read(p).unwrap();
        let json = p.extension().is_some_and(|e| e == "json");
        let bytes = match serde_json::from_slice::<Value>(&bytes) {
            Ok(v) if json => serde_json::to_vec_pretty(&v).unwrap(),
            _ => bytes,
        };
        RawFile::new(&name, bytes)
    };
    paths.iter().map(file).collect()
}

fn masked(files: &[RawFile], k: &Knowledge, counts: &mut BTreeMap<String, u64>) -> Vec<RawFile> {
    let mut r = Redactor::new(k);
    let mut out = Vec::new();
    for f in files {
        let bytes = match serde_json::from_slice::<Value>(&f.bytes) {
            Ok(mut v) if f.name.ends_with(".json") => {
                r.json(&mut v);
                let once = v.clone();
                r.json(&mut v);
                assert_eq!(v, once, "{}: masking twice is masking once", f.name);
                serde_json::to_vec_pretty(&v).unwrap()
            }
            _ => match std::str::from_utf8(&f.bytes) {
                Ok(text) => {
                    let new = r.text(text);
                    assert_eq!(new.split('\n').count(), text.split('\n').count(), "{}", f.name);
                    new.into_owned().into_bytes()
                }
                Err(_) => f.bytes.clone(),
            },
        };
        out.push(RawFile::new(&f.name, bytes));
    }
    for (id, n) in r.counts() {
        *counts.entry(id.clone()).or_default() += n;
    }
    out
}

type Said = (String, String, Option<String>);

/// What is said, and whether it rests on an error that a user's text quotes.
fn verdict(files: Vec<RawFile>, k: &Knowledge) -> Vec<(Said, bool)> {
    let one = |r: report::Report| {
        let v = r.verdict;
        let trigger = v.trigger.map(|t| format!("{:?}", t.place));
        let quoted = v.summary.contains("a user's text quotes an error");
        ((format!("{:?}", v.class), format!("{:?}", v.phase), trigger), quoted)
    };
    report::triage_all("x", files, Vec::new(), k).into_iter().map(one).collect()
}

/// `DUALPLANE_INCIDENTS` names another folder of incidents.
#[test]
fn masking_changes_no_verdict() {
    let k = Knowledge::embedded().unwrap();
    let dir = std::env::var_os("DUALPLANE_INCIDENTS")
        .map_or_else(|| root().join("testdata/incidents"), PathBuf::from);
    let mut dirs: Vec<PathBuf> =
        fs::read_dir(&dir).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir()).collect();
    dirs.sort();
    let (mut counts, mut wrong) = (BTreeMap::new(), Vec::new());
    for d in &dirs {
        let files = incident(d);
        let new = masked(&files, &k, &mut counts);
        for (a, b) in files.iter().zip(&new).filter(|(a, b)| a.bytes != b.bytes) {
            if std::env::var_os("DUALPLANE_SHOW").is_none() {
                break;
            }
            let (a, b) = (String::from_utf8_lossy(&a.bytes), String::from_utf8_lossy(&b.bytes));
            for (a, b) in a.lines().zip(b.lines()).filter(|(a, b)| a != b).take(4) {
                let cut = |s: &str| s.chars().take(260).collect::<String>();
                eprintln!("{}\n  - {}\n  + {}", d.display(), cut(a), cut(b));
            }
        }
        let (was, is) = (verdict(files, &k), verdict(new, &k));
        // "Not memory, a user wrote that" needs what the user wrote; without it nothing proves more than `unknown`.
        let same = |((was, quoted), (is, _)): (&(Said, bool), &(Said, bool))| {
            was == is || *quoted && (was.0.as_str(), is.0.as_str()) == ("NotMemory", "Unknown")
        };
        if was.len() != is.len() || !was.iter().zip(&is).all(same) {
            wrong.push(format!("{}\n  was {was:?}\n  is  {is:?}", d.display()));
        }
    }
    eprintln!("{} incidents, {counts:?}", dirs.len());
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), dirs.len(), wrong.join("\n"));
}

/// One entry of `testdata/secrets`.
#[derive(Debug)]
struct Planted {
    kind: String,
    lines: Vec<String>,
    /// Other carriers: a document.
    json: Option<Value>,
    secrets: Vec<String>,
    near: Vec<String>,
}

fn planted() -> Vec<Planted> {
    let mut out = Vec::new();
    let mut paths: Vec<PathBuf> =
        fs::read_dir(root().join("testdata/secrets")).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    for path in paths.iter().filter(|p| p.extension().is_some_and(|e| e == "toml")) {
        let doc: toml::Table = toml::from_str(&fs::read_to_string(path).unwrap().replace('§', "")).unwrap();
        for p in doc["planted"].as_array().unwrap() {
            let list = |key: &str| -> Vec<String> {
                let v = p.get(key).and_then(toml::Value::as_array).cloned().unwrap_or_default();
                v.iter().map(|v| v.as_str().unwrap().to_owned()).collect()
            };
            let text = |key: &str| p.get(key).map(|v| v.as_str().unwrap().to_owned());
            let mut lines = list("lines");
            lines.extend(text("line"));
            let mut json = text("json").map(|t| serde_json::from_str::<Value>(&t).unwrap());
            if let [name, value] = list("env").as_slice() {
                json = Some(pod(json!({"env": [{"name": name, "value": value}]})));
            }
            let args = list("args");
            if !args.is_empty() {
                json = Some(pod(json!({ "args": args })));
            }
            let kind = text("kind").unwrap();
            out.push(Planted { kind, lines, json, secrets: list("secrets"), near: list("near") });
        }
    }
    out
}

fn pod(container: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "llama-0"}, "spec": {"containers": [container]}})
}

/// The lines in all that wraps lines: a name, the text, whether it is one JSON document.
fn carriers(p: &Planted) -> Vec<(&'static str, String, bool)> {
    let each = |f: &dyn Fn(usize, &str) -> String| {
        p.lines.iter().enumerate().map(|(i, l)| f(i, l)).collect::<Vec<_>>().join("\n") + "\n"
    };
    let stamp = |i: usize| format!("2026-11-21T10:00:0{}.123456789Z", i % 10);
    let whole = p.lines.join("\n");
    let entries: Vec<Value> =
        p.lines.iter().enumerate().map(|(i, l)| json!([format!("17637192{:02}000000000", i), l])).collect();
    let parts = |i: usize, l: &str| {
        let first = p.secrets.iter().find_map(|s| l.find(s.as_str()).map(|at| at + s.len() / 2));
        let (a, b) = l.split_at(first.filter(|at| l.is_char_boundary(*at)).unwrap_or(l.len() / 2));
        format!("{} stdout P {a}\n{} stderr F between\n{} stdout F {b}", stamp(i), stamp(i), stamp(i))
    };
    let coloured = |l: &str| {
        p.secrets.iter().fold(l.to_owned(), |l, s| l.replace(s.as_str(), &format!("\u{1b}[33m{s}\u{1b}[0m")))
    };
    let doc = |v: Value| v.to_string();
    vec![
        ("plain", each(&|_, l| l.to_owned()), false),
        ("windows", each(&|_, l| format!("{l}\r")), false),
        ("cri", each(&|i, l| format!("{} stdout F {l}", stamp(i))), false),
        ("cri in parts", each(&parts), false),
        ("kubectl --timestamps", each(&|i, l| format!("{} {l}", stamp(i))), false),
        ("kubectl --prefix", each(&|_, l| format!("[pod/llama-0/vllm] {l}")), false),
        (
            "docker",
            each(&|i, l| doc(json!({"log": format!("{l}\n"), "stream": "stdout", "time": stamp(i)}))),
            false,
        ),
        (
            "journald",
            each(&|_, l| {
                doc(json!({"MESSAGE": l, "__REALTIME_TIMESTAMP": "1763719203000000", "PRIORITY": "6"}))
            }),
            false,
        ),
        ("app json", each(&|_, l| doc(json!({"level": "info", "msg": l}))), false),
        (
            "json in cri",
            each(&|i, l| format!("{} stdout F {}", stamp(i), doc(json!({"level": "info", "message": l})))),
            false,
        ),
        ("colours", each(&|_, l| coloured(l)), false),
        (
            "loki",
            doc(
                json!({"status": "success", "data": {"resultType": "streams", "result": [{"stream": {"pod": "x"}, "values": entries}]}}),
            ),
            true,
        ),
        ("event", doc(json!({"kind": "Event", "reason": "Failed", "message": whole})), true),
        (
            "termination message",
            doc(
                json!({"kind": "Pod", "status": {"containerStatuses": [{"lastState": {"terminated": {"message": whole}}}]}}),
            ),
            true,
        ),
        ("annotation", doc(json!({"kind": "Pod", "metadata": {"annotations": {"a/b": whole}}})), true),
        (
            "annotation with json",
            doc(
                json!({"kind": "Pod", "metadata": {"annotations": {"a/b": doc(json!({"x": {"y": whole}}))}}}),
            ),
            true,
        ),
        ("config map", doc(json!({"kind": "ConfigMap", "data": {"run.sh": whole}})), true),
        ("shell", doc(pod(json!({"command": ["sh", "-c", whole]}))), true),
    ]
}

#[test]
fn no_planted_secret_survives_in_any_carrier() {
    let k = Knowledge::embedded().unwrap();
    let all = planted();
    let (mut wrong, mut unstable) = (Vec::new(), Vec::new());
    let (mut kinds, mut checks) = (0, 0);
    for p in &all {
        kinds += usize::from(!p.secrets.is_empty());
        let innocent = p.secrets.is_empty();
        let mut check = |carrier: &str, was: &str, is: &str, shows: bool| {
            checks += 1;
            for s in p.secrets.iter().filter(|s| is.contains(s.as_str())) {
                wrong.push(format!("{} in {carrier}: {s} survives\n   {is}", p.kind));
            }
            // A runtime cuts lines anywhere: half a secret is one.
            let halves = p.secrets.iter().filter(|s| carrier == "cri in parts" && s.len() >= 16);
            for s in halves.flat_map(|s| [&s[..s.len() / 2], &s[s.len() / 2..]]).filter(|h| is.contains(h)) {
                wrong.push(format!("{} in {carrier}: half {s} survives\n   {is}", p.kind));
            }
            if innocent && was != is {
                wrong.push(format!("{} in {carrier} changed\n   {was}\n   {is}", p.kind));
            }
            for n in p.near.iter().filter(|n| shows && !is.contains(n.as_str())) {
                wrong.push(format!("{} in {carrier}: {n} is gone\n   {is}", p.kind));
            }
        };
        if let Some(doc) = &p.json {
            let mut v = doc.clone();
            Redactor::new(&k).json(&mut v);
            let once = v.to_string();
            check("json", &doc.to_string(), &once, true);
            Redactor::new(&k).json(&mut v);
            if v.to_string() != once {
                unstable.push(format!("{} in json: twice\n   {once}\n   {v}", p.kind));
            }
        }
        for (name, text, json) in carriers(p).into_iter().filter(|_| !p.lines.is_empty()) {
            if json {
                let mut v: Value = serde_json::from_str(&text).unwrap();
                Redactor::new(&k).json(&mut v);
                check(name, &text, &v.to_string(), false);
                let once = v.clone();
                Redactor::new(&k).json(&mut v);
                if v != once {
                    unstable.push(format!("{} in {name}: twice\n   {once}\n   {v}", p.kind));
                }
                continue;
            }
            let mut r = Redactor::new(&k);
            let new = r.text(&text).into_owned();
            assert_eq!(new.lines().count(), text.lines().count(), "{} in {name}: lines\n{new}", p.kind);
            if text.starts_with('{') && text.ends_with("}\n") && p.lines.len() == 1 {
                assert!(serde_json::from_str::<Value>(new.trim()).is_ok(), "{} in {name}: {new}", p.kind);
            }
            check(name, &text, &new, matches!(name, "plain" | "cri"));
            let twice = Redactor::new(&k).text(&new).into_owned();
            if twice != new {
                unstable.push(format!("{} in {name}: twice\n   {new}\n   {twice}", p.kind));
            }
        }
    }
    eprintln!("{kinds} kinds, {} near misses, {checks} carriers", all.len() - kinds);
    assert!(kinds >= 60);
    wrong.extend(unstable);
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}

/// A token between any fragments never survives, in a text or in JSON; a stand-in for `fuzz/fuzz_targets/redact.rs`.
#[test]
fn a_token_between_any_bytes_is_masked() {
    const PIECES: &[&str] = &[
        "://",
        "@",
        ":",
        "=",
        "\"",
        "'",
        "\\",
        "\\\"",
        "{",
        "}",
        "[",
        "]",
        "(",
        ",",
        " ",
        "\n",
        "\r\n",
        "\u{1b}[33m",
        "ü",
        "token",
        "api_key",
        "Authorization",
        "Bearer ",
        "password",
        "prompt: '",
        "\"messages\": [",
        "\"content\": \"",
        "-----BEGIN RSA PRIVATE KEY-----",
        "-----END",
        "[redacted:",
        "user_text]",
        "{\"log\":\"",
        "\",\"stream\":\"stdout\"}",
        "2026-11-21T10:00:00.123456789Z stdout P ",
        "2026-11-21T10:00:00.123456789Z stdout F ",
        "- name: HF_TOKEN",
        "value: ",
        "INFO 11-21 10:00:00 ",
        "cookie",
        "--",
        "?sig=",
        "HTTP/1.",
        "- \"GET /",
        "\\u0041",
        "hf_",
        "x",
        "\u{0}",
        "curl -u a:",
        "b'",
        "SecretStr(",
        "null",
        "0",
    ];
    let token = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345";
    let k = Knowledge::embedded().unwrap();
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |n: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % n as u64).unwrap()
    };
    for _ in 0..400 {
        let mut text = String::new();
        let (count, at) = (next(14), next(14));
        for i in 0..=count {
            if i == at.min(count) {
                text.push_str(&format!(" {token} "));
            }
            text.push_str(PIECES[next(PIECES.len())]);
        }
        let masked = Redactor::new(&k).text(&text).into_owned();
        assert!(!masked.contains(token), "{text:?}\n{masked:?}");
        assert_eq!(masked.split('\n').count(), text.split('\n').count(), "{text:?}\n{masked:?}");
        let mut v = json!({"kind": "Event", "message": text, "x": [{"name": text, "value": text}, [text]], text.clone(): 1});
        Redactor::new(&k).json(&mut v);
        let once = v.to_string();
        assert!(!once.contains(token), "{text:?}\n{once}");
        Redactor::new(&k).json(&mut v);
        assert_eq!(v.to_string(), once, "{text:?}");
    }
}

#[test]
fn hostile_input_neither_hangs_nor_overflows() {
    let k = Knowledge::embedded().unwrap();
    let mut deep = json!({"password": "hunter2hunter2"});
    for i in 0..200_000 {
        // `json!` would copy what is below.
        deep = if i % 2 == 0 {
            Value::Array(vec![deep])
        } else {
            Value::Object([("a".to_owned(), deep)].into_iter().collect())
        };
    }
    let mut r = Redactor::new(&k);
    r.json(&mut deep);
    assert_eq!(r.counts()["too_deep"], 1);
    let text = deep.to_string();
    assert!(text.len() < 1000 && text.contains("[redacted:too_deep]") && !text.contains("hunter2"), "{text}");
    // Escapes that are no UTF-16, nested JSON in strings, texts of one line.
    let secret = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345";
    for line in [
        format!("{{\"log\":\"\\ud800 {secret}\\n\",\"stream\":\"stdout\"}}"),
        format!("{{\"a\":\"\\uZZZZ {secret}\"}}"),
        format!("{}{secret}", "[".repeat(100_000)),
        format!("{} {secret}", "{\"a\":".repeat(100_000)),
    ] {
        assert!(!Redactor::new(&k).text(&line).contains(secret));
    }
    let mut nested = json!({ "token": secret }).to_string();
    for _ in 0..12 {
        nested = json!({ "a": nested }).to_string();
    }
    let mut v = Value::String(nested);
    Redactor::new(&k).json(&mut v);
    assert!(!v.to_string().contains(secret));
    for unit in [
        "token='",
        "://a:",
        "prompt: '\n",
        "\"content\": \"",
        "{\"log\":\"x",
        "Bearer ",
        "token=\\'",
        "-----BEGIN PRIVATE KEY-----",
    ] {
        let text = unit.repeat((1 << 20) / unit.len());
        assert_eq!(Redactor::new(&k).text(&text).lines().count(), text.lines().count());
    }
}
