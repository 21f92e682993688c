//! Flags of releases: what one has and another lacks.

use crate::harness::{code, run, stderr};
use serde_json::Value;

#[test]
fn a_flag_counts_for_the_releases_that_have_it() {
    let plan = |version: &[&str], flags: &[&str]| {
        let head = ["plan", "--gpu", "H100", "-o", "json"];
        run(&[&head[..], version, &["--", "vllm", "serve", "qwen3-8b", "--max-model-len", "8192"], flags]
            .concat())
    };
    let yarn = "{\"rope_type\":\"yarn\",\"factor\":4.0,\"original_max_position_embeddings\":32768}";
    for version in [&[][..], &["--engine-version", "0.12.0"]] {
        let o = plan(version, &["--rope-scaling", yarn]);
        assert_eq!(code(&o), 2);
        assert!(stderr(&o).contains("0.11.1 lacks it; use --hf-overrides"), "{}", stderr(&o));
    }
    assert_eq!(code(&plan(&["--engine-version", "0.10.2"], &["--rope-scaling", yarn])), 0);
    let long = format!("{{\"rope_scaling\": {yarn}}}");
    let o = plan(&[], &["--hf-overrides", &long]);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    let caching = |o: &std::process::Output| {
        let v: Value = serde_json::from_slice(&o.stdout).unwrap();
        v["resolved"]["prefix_caching"].clone()
    };
    assert_eq!(caching(&plan(&[], &["--disable-prefix-caching"])), Value::Bool(false));
    let o = plan(&["--engine-version", "0.32.0"], &["--disable-prefix-caching"]);
    assert!(stderr(&o).contains("use --no-enable-prefix-caching"), "{}", stderr(&o));
}
