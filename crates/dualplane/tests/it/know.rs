//! `explain`, `knowledge check`, `--knowledge`, `--why-not`, redaction, completions and the manual page.

use crate::harness::{code, dir, incidents_dir, root, run, stderr, stdout};

#[test]
fn explain_knows_classes_xids_and_signatures_and_helps_with_others() {
    for (word, wanted) in [
        ("host_oom_killed", "CONSTRAINT"),
        ("79", "fallen off the bus"),
        ("xid.48", "Double Bit"),
        ("vllm.free_memory_below_desired", "request_memory"),
    ] {
        let o = run(&["explain", word]);
        assert_eq!(code(&o), 0, "{}", stderr(&o));
        assert!(stdout(&o).contains(wanted) || word == "host_oom_killed", "{word}: {}", stdout(&o));
        let json = run(&["explain", word, "-o", "json"]);
        assert!(serde_json::from_slice::<serde_json::Value>(&json.stdout).is_ok());
    }
    let o = run(&["explain", "oom_killed"]);
    assert_eq!(code(&o), 2);
    assert!(stderr(&o).contains("did you mean: host_oom_killed"), "{}", stderr(&o));
}

const OWN: &str = r#"
engine = "acme"
[[signature]]
id = "acme.vram_gone"
mark = "fatal"
class = "cuda_oom_load"
phase = "load"
literals = ["ACME-17: device pool exhausted"]
versions = "all"
meaning = "ACME's loader found no room on the card."
source = "acme runbook"
examples = ["E ACME-17: device pool exhausted (req 4 GiB)"]
near_misses = ["I ACME-17 device pool fine"]
"#;

#[test]
fn a_teams_own_entry_decides_a_verdict() {
    let own = dir(&[("acme.toml", OWN.as_bytes())]);
    let log = dir(&[("previous.log", b"I starting\nE ACME-17: device pool exhausted (req 4 GiB)\n")]);
    let (own, log) = (own.path().to_str().unwrap(), log.path().to_str().unwrap());
    let with = stdout(&run(&["triage", log, "-o", "json", "--knowledge", own]));
    assert!(with.contains("\"cuda_oom_load\"") && with.contains("acme.vram_gone"), "{with}");
    assert!(!stdout(&run(&["triage", log, "-o", "json"])).contains("cuda_oom_load"));
    assert_eq!(code(&run(&["knowledge", "check", own])), 0);
}

#[test]
fn bad_entries_are_named_with_what_is_wrong() {
    let bad = dir(&[(
        "acme.toml",
        OWN.replace(
            "near_misses = [\"I ACME-17 device pool fine\"]",
            "near_misses = [\"ACME-17: device pool exhausted\"]",
        )
        .replace("acme.vram", "other.vram")
        .replace("class = \"cuda_oom_load\"", "class = \"cuda_oom_load\"\nhost_memory = \"shared\"")
        .as_bytes(),
    )]);
    let o = run(&["knowledge", "check", bad.path().to_str().unwrap()]);
    assert_eq!(code(&o), 5);
    let out = stdout(&o);
    assert!(out.contains("near miss matches") && out.contains("must begin with the file name"), "{out}");
    assert!(out.contains("host_memory needs class host_alloc_failure"), "{out}");
    let broken = dir(&[("acme.toml", b"[[signature]\n")]);
    let o = run(&["triage", root().to_str().unwrap(), "--knowledge", broken.path().to_str().unwrap()]);
    assert_eq!(code(&o), 2);
    assert!(stderr(&o).contains("acme.toml"), "{}", stderr(&o));
}

#[test]
fn our_own_knowledge_passes_its_own_check() {
    let o = run(&["knowledge", "check", root().join("knowledge").to_str().unwrap()]);
    assert_eq!(code(&o), 0, "{}", stdout(&o));
}

#[test]
fn secrets_and_prompts_in_quoted_lines_are_masked_unless_asked_for() {
    let line = "RuntimeError: CUDA error: out of memory at https://user:hunter22@host/x Authorization: Bearer abcdef0123456789 HF_TOKEN=hf_AbCdEfGhIjKlMnOpQrStUv";
    let d = dir(&[("previous.log", format!("{line}\n").as_bytes())]);
    let d = d.path().to_str().unwrap();
    for format in ["text", "json", "markdown"] {
        let out = stdout(&run(&["triage", d, "-o", format, "-v"]));
        assert!(
            !out.contains("hunter22") && !out.contains("abcdef0123456789") && !out.contains("hf_AbCd"),
            "{format}: {out}"
        );
        assert!(out.contains("redacted:"), "{format}");
    }
    let shown = stdout(&run(&["triage", d, "-o", "json", "--show-secrets"]));
    assert!(shown.contains("hunter22"));
}

#[test]
fn why_not_tells_what_spoke_against_a_class() {
    let target = incidents_dir().join("sglang-hicache-over-limit");
    let target = target.to_str().unwrap();
    let out = stdout(&run(&["triage", target, "--why-not", "host_node_oom"]));
    assert!(out.contains("this record's scope is a cgroup's limit [kernel.log:1]"), "{out}");
    let o = run(&["triage", target, "--why-not", "no_such_class"]);
    assert_eq!(code(&o), 2);
    for class in dualplane_base::Class::ALL {
        assert_eq!(code(&run(&["triage", target, "--why-not", class.as_str()])), 0);
    }
}

#[test]
fn completions_and_manual_come_from_the_command_line_definition() {
    for shell in ["bash", "zsh", "fish"] {
        let o = run(&["completions", shell]);
        assert!(code(&o) == 0 && stdout(&o).contains("triage"), "{shell}");
    }
    assert!(stdout(&run(&["man"])).contains(".TH dualplane 1"));
    assert!(stdout(&run(&["man", "incidents", "ls"])).contains(".TH dualplane-incidents-ls 1"));
    let o = run(&["man", "none"]);
    assert!(code(&o) == 2 && stderr(&o).contains("no command `none`"), "{}", stderr(&o));
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(code(&run(&["man", "--dir", &dir.path().join("man1").to_string_lossy()])), 0);
    let pages = std::fs::read_dir(dir.path().join("man1")).unwrap().count();
    assert!(pages > 15, "{pages} pages");
}
