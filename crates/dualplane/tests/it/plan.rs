//! Plans against what the engine's own code answered.

use crate::harness::{code, root, run, stdout};

#[test]
fn the_kept_answers_are_reached() {
    let dir = root().join("testdata/plan");
    let (rows, configs) = (dir.join("rows.jsonl"), dir.join("configs"));
    let (rows, configs) = (rows.to_str().unwrap(), configs.to_str().unwrap());
    let o = run(&["dev", "oracle", rows, "--configs", configs, "--min-kv", "100", "--min-weights", "100"]);
    assert_eq!(code(&o), 0, "{}", stdout(&o));
    assert!(stdout(&o).starts_with("50 rows"), "{}", stdout(&o));
}

#[test]
fn a_wrong_answer_is_a_miss() {
    let dir = root().join("testdata/plan");
    let rows = std::fs::read_to_string(dir.join("rows.jsonl")).unwrap();
    let wrong = rows.replacen("\"num_blocks\":", "\"num_blocks\":9", 1);
    let kept = crate::harness::dir(&[("rows.jsonl", wrong.as_bytes())]);
    let (file, configs) = (kept.path().join("rows.jsonl"), dir.join("configs"));
    let o = run(&["dev", "oracle", file.to_str().unwrap(), "--configs", configs.to_str().unwrap()]);
    assert_ne!(code(&o), 0);
    assert!(stdout(&o).contains("predicted ("), "{}", stdout(&o));
}

#[test]
fn the_answers_beside_the_project_are_reached_where_they_are() {
    let shared = root().join("../shared");
    let rows = shared.join("oracle/vllm-0.33.0.jsonl");
    if !rows.is_file() {
        return;
    }
    let configs = shared.join("corpus/model-configs");
    let o = run(&["dev", "oracle", rows.to_str().unwrap(), "--configs", configs.to_str().unwrap()]);
    assert_eq!(code(&o), 0, "{}", stdout(&o));
}
