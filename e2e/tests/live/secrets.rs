//! Secrets that stand in a pod's fields and logs are in nothing that is written.

use crate::harness::{root, run, unpack};

#[test]
fn planted_secrets_are_in_no_bundle_and_in_no_report() {
    let planted = std::fs::read_to_string(root().join("e2e/scenarios/planted-secrets.txt")).unwrap();
    let planted: Vec<&str> =
        planted.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')).collect();
    assert!(planted.len() >= 10);
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("b.tar.zst");
    run(&["capture", "pod/secrets", "-n", "serving", "--out", &bundle.to_string_lossy()]).ok();
    let mut texts: Vec<(String, Vec<u8>)> = unpack(&bundle);
    assert!(texts.iter().any(|(n, _)| n.starts_with("logs/")), "the log is what could leak");
    for format in ["text", "json", "markdown"] {
        let ran = run(&["triage", "pod/secrets", "-n", "serving", "-v", "-o", format]).ok();
        texts.push((format!("triage -o {format}"), ran.out));
    }
    let leaks: Vec<String> = texts
        .iter()
        .flat_map(|(name, bytes)| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            planted.iter().filter(move |s| text.contains(**s)).map(move |s| format!("{s} in {name}"))
        })
        .collect();
    assert!(leaks.is_empty(), "{}", leaks.join("\n"));
    let manifest = texts.iter().find(|(n, _)| n.ends_with("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest.1).unwrap();
    assert!(manifest["redacted"].as_object().unwrap().len() >= 5, "{}", manifest["redacted"]);
}
