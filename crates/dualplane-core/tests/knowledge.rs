//! Walks all of `knowledge/`: every example hits its own entry, every near miss does not, and an example alone in a
//! log never ends in another memory plane.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    clippy::disallowed_methods,
    clippy::disallowed_types
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use dualplane_base::{Class, Confidence, Plane};
use dualplane_core::evidence::{Bundle, RawFile};
use dualplane_core::facts::{Facts, extract};
use dualplane_core::knowledge::{Examples, Knowledge, Mark, Scope, Signature, check, check_heads, document};
use dualplane_core::redact;
use dualplane_core::verdict::{Verdict, judge};

fn files(dir: &Path, out: &mut Vec<PathBuf>) {
    for e in fs::read_dir(dir).unwrap() {
        let p = e.unwrap().path();
        if p.is_dir() {
            files(&p, out);
        } else if p.extension().is_some_and(|e| e == "toml") {
            out.push(p);
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../knowledge")
}

/// The examples of all signatures, which the embedded knowledge leaves out.
fn examples() -> Vec<Examples> {
    let mut paths = Vec::new();
    files(&root(), &mut paths);
    paths.sort();
    let mut out = Vec::new();
    for path in paths {
        let doc = toml::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let file = path.strip_prefix(root()).unwrap().with_extension("");
        out.extend(document::add(&mut serde_json::Map::new(), doc, &file.to_string_lossy()));
    }
    assert!(out.len() > 500, "only {} signatures found", out.len());
    out
}

/// What is packed into the program is what the files say: a team's own entries are read from the same keys by another way.
#[test]
fn embedded_signatures_are_those_of_the_files() {
    let mut paths = Vec::new();
    files(&root(), &mut paths);
    paths.sort();
    let mut all = serde_json::Map::new();
    for path in paths {
        let doc = toml::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let file = path.strip_prefix(root()).unwrap().with_extension("");
        document::add(&mut all, doc, &file.to_string_lossy());
    }
    let own = serde_json::json!({"signature": all["signature"]}).to_string();
    // Each known id is replaced, so these are all read from here.
    let (read, packed) = (Knowledge::extended(&own).unwrap(), Knowledge::embedded().unwrap());
    // Behind it stands what other tests have compiled.
    let fields = |text: &str| text.split(", compiled: ").next().map(str::to_owned).unwrap();
    let text = |k: &Knowledge| k.signatures().iter().map(|s| fields(&format!("{s:?}"))).collect::<Vec<_>>();
    let (read, packed) = (text(&read), text(&packed));
    assert!(packed.len() > 1000 && read.len() == packed.len());
    for (read, packed) in read.iter().zip(&packed) {
        assert_eq!(read, packed);
    }
}

/// The documents of engines' files, by their stems.
fn engine_files() -> Vec<(String, serde_json::Value)> {
    let mut paths = Vec::new();
    files(&root().join("engines"), &mut paths);
    paths.sort();
    let stem = |p: &PathBuf| p.file_stem().unwrap().to_string_lossy().into_owned();
    paths.iter().map(|p| (stem(p), toml::from_str(&fs::read_to_string(p).unwrap()).unwrap())).collect()
}

/// Each engine is recognised by its images, commands and processes, and by no other's.
#[test]
fn every_engine_is_recognised() {
    let k = Knowledge::embedded().unwrap();
    let all = engine_files();
    let heads: Vec<_> =
        all.iter().map(|(stem, doc)| (stem, dualplane_engines::examples(doc).expect(stem))).collect();
    assert!(heads.iter().all(|(stem, h)| **stem == h.id), "a head's id is its file's name");
    assert_eq!(k.engines().iter().count(), heads.len());
    let examples: Vec<_> = heads.into_iter().map(|(_, h)| h).collect();
    let told: Vec<String> =
        check_heads(&k, &examples).iter().map(|p| format!("{}: {}", p.id, p.what)).collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
    let mut wrong = examples[0].clone();
    wrong.images = [vec!["nginx:1".into()], Vec::new()];
    wrong.commands[1] = wrong.commands[0].clone();
    assert!(check_heads(&k, &[wrong]).len() >= 2, "the check finds what is wrong");
}

/// The rules are those that `--knowledge` holds a team's own entries to.
#[test]
fn every_entry_keeps_the_rules() {
    let k = Knowledge::embedded().unwrap();
    let problems = check(&k, &examples());
    let told: Vec<String> = problems.iter().map(|p| format!("{}: {}", p.id, p.what)).collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
    // The check itself finds what is wrong.
    let wrong =
        Examples { id: k.signatures()[0].id.to_string(), hits: vec!["no".into()], misses: Vec::new() };
    assert_eq!(check(&k, &[wrong]).len(), 2);
}

/// The words that are looked for before a pattern stand in every line that it finds, whoever's line it is.
#[test]
fn words_stand_wherever_their_pattern_does() {
    let k = Knowledge::embedded().unwrap();
    let everyday = fs::read_to_string(root().join("everyday.log")).unwrap();
    let mut lines: Vec<String> = everyday.lines().map(str::to_owned).collect();
    for e in examples() {
        lines.extend(e.hits.into_iter().chain(e.misses));
    }
    // Whatever the case in which they are printed.
    let loud: Vec<String> = lines.iter().map(|l| l.to_ascii_uppercase()).collect();
    let mut found = 0;
    for s in k.signatures().iter().filter(|s| !s.words.is_empty()) {
        assert!(s.words.iter().all(|w| *w == w.to_ascii_lowercase()), "{}: words are in small letters", s.id);
        let pattern = regex::Regex::new(s.pattern.as_deref().unwrap()).unwrap();
        for line in lines.iter().chain(&loud).filter(|l| pattern.is_match(l)) {
            let small = line.to_ascii_lowercase();
            assert!(s.words.iter().any(|w| small.contains(w.as_ref())), "{}: {line}", s.id);
            found += 1;
        }
    }
    assert!(found > 300, "only {found}");
}

/// An example as the only line of a log: what it proves must come out, and never another plane.
#[test]
fn an_example_alone_never_ends_in_another_plane() {
    let k = Knowledge::embedded().unwrap();
    let mut wrong = Vec::new();
    for e in examples() {
        let signature = k.signatures().iter().find(|s| s.id == e.id).unwrap();
        if signature.of_objects() {
            continue;
        }
        for line in &e.hits {
            // Entries that judge by wording need the traceback whose end they are.
            let line = if signature.of_exceptions() {
                format!("Traceback (most recent call last):\n  File \"x.py\", line 1, in f\n{line}")
            } else {
                line.clone()
            };
            let name = if signature.file == "kernel" { "kernel.log" } else { "previous.log" };
            let log = RawFile::new(name, format!("{line}\n").into_bytes());
            let class = judged(log, &k).1.class;
            let wanted = signature.class.map_or(Plane::None, Class::plane);
            let ok = match signature.mark {
                Mark::Fatal | Mark::Benign if signature.by_context() => true,
                Mark::Fatal | Mark::Degraded => class.plane() == wanted,
                Mark::Failure | Mark::Benign | Mark::UserText => class.plane() == Plane::None,
                // A wrapper may quote the error it wraps.
                _ => true,
            };
            if !ok {
                wrong.push(format!("{} ({:?}): got {class} for: {line}", e.id, signature.mark));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The example of a failure as its logger would print it as a warning, with which the process goes on.
fn as_warning(line: &str) -> String {
    let mut quiet = line.to_owned();
    for level in ["ERROR", "CRITICAL", "FATAL", "[E]", "[F]"] {
        quiet = quiet.replace(level, if level.starts_with('[') { "[W]" } else { "WARNING" });
    }
    // glog and Ray write a letter.
    let letter = regex::Regex::new(r"\bE(\d{4} \d\d:|(?: \d+){2}\])").unwrap();
    format!("WARNING 11-22 18:16:33 [model.py:2660] {}", letter.replace_all(&quiet, "W$1"))
}

/// What its own logger calls a warning has ended nothing: such a line alone must not clear memory of the end.
#[test]
fn a_warning_is_never_the_failure_that_ended_a_process() {
    let k = Knowledge::embedded().unwrap();
    let mut wrong = Vec::new();
    let mut seen = 0;
    for e in examples() {
        let s = k.signatures().iter().find(|s| s.id == e.id).unwrap();
        let asked = s.mark == Mark::Failure && !s.any_level && !s.of_objects() && s.file != "kernel";
        for line in e.hits.iter().filter(|_| asked) {
            seen += 1;
            let line = as_warning(line);
            let verdict = judged(RawFile::new("previous.log", format!("{line}\n").into_bytes()), &k).1;
            if verdict.class == Class::NotMemory && verdict.confidence == Confidence::High {
                wrong.push(format!("{}: {line}", e.id));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 150, "only {seen} examples");
}

#[test]
fn every_secret_is_masked_and_every_near_miss_stays() {
    let k = Knowledge::embedded().unwrap();
    let doc: toml::Table =
        toml::from_str(&fs::read_to_string(root().join("redaction.toml")).unwrap()).unwrap();
    // `§` keeps scanners of repositories from taking a made-up key for a key.
    let plain = |v: &toml::Value| v.as_str().unwrap().replace('§', "");
    let mut wrong = Vec::new();
    let mut ids = BTreeSet::new();
    for (of, form) in [("redaction", ""), ("secret_name", "=qX7vLmR2tB9s")] {
        for r in doc[of].as_array().unwrap() {
            let id = r["id"].as_str().unwrap();
            assert!(ids.insert(id.to_owned()), "{id} is used twice");
            assert!(!r["source"].as_str().unwrap().is_empty(), "{id}: no source");
            for line in r["examples"].as_array().unwrap() {
                let line = plain(line) + form;
                if !redact::line(&line, &k).contains("[redacted:") {
                    wrong.push(format!("{id} leaves {line}"));
                }
            }
            for line in r["near_misses"].as_array().unwrap() {
                let line = plain(line) + form;
                let masked = redact::line(&line, &k);
                if masked != line {
                    wrong.push(format!("{id} masks {line}: {masked}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let masked = redact::line("Received request c-1: prompt: 'my secret plan', params: x", &k);
    assert!(!masked.contains("plan") && masked.contains("[redacted:user_text]"), "{masked}");
}

/// One file as the whole evidence.
fn judged(file: RawFile, k: &Knowledge) -> (Facts, Verdict) {
    let bundle = Bundle::from_files(vec![file]);
    let facts = extract(&bundle, k);
    let verdict = judge(&bundle, &facts, k);
    (facts, verdict)
}

#[test]
fn xids_and_cards_are_unique_and_xid_examples_parse() {
    let k = Knowledge::embedded().unwrap();
    let codes: BTreeSet<u32> = k.xids().iter().map(|x| x.code).collect();
    assert_eq!(codes.len(), k.xids().len());
    let cards: BTreeSet<&str> = k.gpus().iter().map(|g| g.id.as_str()).collect();
    assert_eq!(cards.len(), k.gpus().len());
    assert_eq!(k.gpu("NVIDIA H100 80GB HBM3").unwrap().id, "H100-80GB");
    assert_eq!(k.gpu("h100-80gb").unwrap().id, "H100-80GB");
    assert!(k.gpu("no such card").is_none());
    let doc: toml::Table = toml::from_str(&fs::read_to_string(root().join("xid.toml")).unwrap()).unwrap();
    let mut lines = 0;
    for x in doc["xid"].as_array().unwrap() {
        let code = x["code"].as_integer().unwrap();
        for line in x["examples"].as_array().unwrap() {
            let log = RawFile::new("kernel.log", line.as_str().unwrap().as_bytes().to_vec());
            let (facts, verdict) = judged(log, &k);
            assert_eq!(facts.xids.first().map(|e| i64::from(e.code)), Some(code), "{line}");
            assert!(
                matches!(verdict.class, Class::XidHardware | Class::Unknown),
                "{line}: {}",
                verdict.class
            );
            lines += 1;
        }
    }
    assert!(lines >= 30, "{lines}");
}

/// Each page of metrics is read as its engine's head says, and is no page of another engine.
#[test]
fn every_page_of_metrics_tells_what_its_entry_says() {
    use dualplane_core::knowledge::metrics::{Counts, engines};
    let mut told = 0;
    for (name, doc) in engine_files() {
        let Some(entry) = doc["engine"].get("metrics") else { continue };
        told += 1;
        let label = entry.get("label").and_then(|l| l.as_str()).unwrap_or(&name);
        assert!(entry.get("source").is_some(), "{name}: no source");
        let pages = entry.get("examples").and_then(|e| e.as_array());
        let pages = pages.unwrap_or_else(|| panic!("{name}: no examples"));
        for page in pages {
            let text = page["page"].as_str().unwrap();
            let number = |key: &str| page.get(key).map(|v| v.as_f64().expect("a number"));
            let want = Counts {
                model: page.get("model").and_then(|m| m.as_str()).map(str::to_owned),
                kv_use: number("kv_use"),
                running: number("running"),
                waiting: number("waiting"),
                preemptions: number("preemptions"),
                first_tokens: number("first_tokens"),
                first_token_seconds: number("first_token_seconds"),
                prompt_tokens: number("prompt_tokens"),
                generated_tokens: number("generated_tokens"),
                pool_tokens: number("pool_tokens"),
                prefix_asked: number("prefix_asked"),
                prefix_had: number("prefix_had"),
            };
            for e in engines() {
                let got = e.read(text);
                assert_eq!(
                    got,
                    (e.engine == label).then(|| want.clone()),
                    "{} reads a page of {name}",
                    e.engine
                );
            }
        }
    }
    assert_eq!(told, engines().len());
}

/// A line that runtimes print for whoever uses them tells of no engine, although one describes it in its own words: else a
/// PyTorch server would get the flags of llama.cpp. `shared` says so, and nothing says it in vain.
#[test]
fn what_others_print_too_names_no_engine() {
    let k = Knowledge::embedded().unwrap();
    let of_runtimes = |id: &str| k.signatures().iter().any(|s| s.id == id && s.file.starts_with("runtime/"));
    let mut seen = BTreeSet::new();
    for e in examples().into_iter().filter(|e| of_runtimes(&e.id)) {
        for line in e.hits.iter().flat_map(|x| x.lines()) {
            for m in k.matches(line, |_| false) {
                let s = k.signature(m.id).unwrap();
                if s.file.starts_with("engines/") {
                    seen.insert(s.id.to_string());
                }
            }
        }
    }
    let said: BTreeSet<String> =
        k.signatures().iter().filter(|s| s.shared).map(|s| s.id.to_string()).collect();
    let wrong: Vec<_> = seen.symmetric_difference(&said).collect();
    assert!(wrong.is_empty(), "`shared` is missing, or said in vain: {wrong:#?}");
}

/// Engines name their functions alike (`capture`, `load_model`): a frame of one's traceback is no other's, whose flags would be
/// advised.
#[test]
fn a_frame_of_one_engine_s_traceback_is_no_other_s() {
    let k = Knowledge::embedded().unwrap();
    let frame = |s: &Signature| s.scope == Scope::Frame && s.file.starts_with("engines/");
    let mut told = 0;
    for e in examples() {
        let Some(own) = k.signatures().iter().find(|s| s.id == e.id.as_str()).filter(|s| frame(s)) else {
            continue;
        };
        for line in e.hits.iter().flat_map(|x| x.lines()) {
            for m in k.matches(line, |_| false) {
                let s = k.signature(m.id).unwrap();
                assert!(!frame(s) || s.file == own.file, "{} is {}'s, too: {line}", s.id, own.id);
                told += 1;
            }
        }
    }
    assert!(told > 10);
}

/// An error of a runtime is an engine's where the line is framed as that engine frames its lines, and nobody's else.
#[test]
fn the_frame_of_a_line_tells_whose_log_it_is() {
    let k = Knowledge::embedded().unwrap();
    let error = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.";
    for (frame, engine) in [
        ("(EngineCore_0 pid=211) ERROR 11-25 10:00:00 [core.py:710] ", Some("vllm")),
        ("(Worker_TP1 pid=5) ", Some("vllm")),
        ("(VllmWorkerProcess pid=5) ", Some("vllm")),
        ("[2026-11-25 10:00:00 TP0] ", Some("sglang")),
        ("[2026-11-25 10:00:00 DP1 TP3 EP3] ", Some("sglang")),
        ("[rank0]: ", None),
        ("(Workbench pid=5) ", None),
        ("", None),
    ] {
        let file = RawFile::new("previous.log", format!("{frame}{error}\n").into_bytes());
        let facts = extract(&Bundle::from_files(vec![file]), &k);
        assert_eq!(facts.engine.name.as_deref(), engine, "{frame}");
    }
}
