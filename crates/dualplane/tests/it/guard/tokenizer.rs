//! Prompts that are counted with the model's own tokenizer before they are sent.

use serde_json::json;

use super::backend::Backend;
use super::client::send;
use super::{Guard, chat, error};
use crate::harness::{code, dir, run, stderr, stdout};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/guard/tokenizer.json");

fn counted_by(guard: &Guard, by: &str) -> u64 {
    let page = String::from_utf8(send(&guard.admin, "GET", "/metrics", "", b"").body).unwrap();
    let key = format!("dualplane_guard_prompts_total{{counted_by=\"{by}\"}} ");
    page.lines().find_map(|l| l.strip_prefix(&key)).unwrap().parse().unwrap()
}

/// Three bytes are a token by the first guess, and three tokens by this vocabulary, which has none of these words.
#[test]
fn what_the_tokenizer_counts_decides_what_can_never_fit() {
    let backend = Backend::start(1000);
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "\u{4f60}".repeat(700) }], "max_tokens": 1,
        "user": "counts:2108" });
    let by_bytes = Guard::before(&backend);
    assert_eq!(by_bytes.post("/v1/chat/completions", &body).status, 200);
    assert_eq!(counted_by(&by_bytes, "bytes"), 1);

    let guard = Guard::start(&["--upstream", &backend.url(), "--tokenizer", FILE]);
    guard.until(|s| s["servers"][0]["kv_tokens"].is_u64());
    let refused = guard.post("/v1/chat/completions", &body);
    assert_eq!(error(&refused), (413, "kv_never_fits".into()));
    assert_eq!(counted_by(&guard, "tokenizer"), 1);
}

#[test]
fn a_tokenizer_of_another_model_is_not_used() {
    let backend = Backend::start(100_000);
    let guard = Guard::start(&["--upstream", &backend.url(), "--tokenizer", FILE]);
    guard.until(|s| s["servers"][0]["kv_tokens"].is_u64());
    for _ in 0..8 {
        assert_eq!(guard.chat("counts:5000", 1000, 5).status, 200);
    }
    let status = guard.until(|s| s["other_tokenizer"] == json!(["m"]));
    crate::schema::follows(&status, "guard");
    let text = stdout(&run(&["guard", "status", "--admin", &guard.admin]));
    assert!(text.contains("tokenizer of m: not used, as its server counts otherwise"), "{text}");
    guard.chat("counts:5000", 1000, 5);
    assert_eq!((counted_by(&guard, "tokenizer"), counted_by(&guard, "bytes")), (8, 1));
}

#[test]
fn a_file_that_is_no_tokenizer_is_refused_before_a_port_is_bound() {
    let d = dir(&[]);
    let path = d.path().join("guard.toml");
    let file = d.path().join("tokenizer.json");
    std::fs::write(&file, "{\"version\":\"1.0\"}").unwrap();
    let config = |file: &str| {
        format!("[[server]]\nurl = \"http://127.0.0.1:8000\"\n[[tokenizer]]\nfile = \"{file}\"\n")
    };
    std::fs::write(&path, config(file.to_str().unwrap())).unwrap();
    let o = run(&["guard", "check", "--config", path.to_str().unwrap()]);
    assert_eq!(code(&o), 2);
    assert!(
        stderr(&o).contains("tokenizer[0].file") && stderr(&o).contains("is no tokenizer.json"),
        "{}",
        stderr(&o)
    );
    std::fs::write(&path, config(FILE)).unwrap();
    let o = run(&["guard", "check", "--config", path.to_str().unwrap()]);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    assert!(stdout(&o).contains("prompts of all models: counted by"), "{}", stdout(&o));
    let o = run(&["guard", "--upstream", "http://127.0.0.1:8000", "--tokenizer", "/no/tokenizer.json"]);
    assert!(
        stderr(&o).contains("--tokenizer") && stderr(&o).contains("/no/tokenizer.json"),
        "{}",
        stderr(&o)
    );
}

/// A prompt that is counted reaches the server as it came.
#[test]
fn what_is_counted_is_sent_as_it_was() {
    let backend = Backend::start(100_000);
    let guard = Guard::start(&["--upstream", &backend.url(), "--tokenizer", FILE]);
    guard.until(|s| s["servers"][0]["kv_tokens"].is_u64());
    let body = chat("answer", 5000, 5).to_string();
    let answer = send(&guard.address, "POST", "/v1/chat/completions", "", body.as_bytes());
    assert_eq!(answer.status, 200);
    // The server's own count is a quarter of the bytes that reached it.
    let usage: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(usage["usage"]["prompt_tokens"], json!(body.len() / 4));
}
