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
fn models_of_the_catalogue_are_planned_as_the_engine_builds_them() {
    let rows = root().join("testdata/plan/catalogue.jsonl");
    // The totals are held; a class is named by what the engine calls its modules, and `fc1` tells nothing.
    let bounds = ["--min-kv", "100", "--min-weights", "100", "--min-classes", "80"];
    let o = run(&[&["dev", "oracle", rows.to_str().unwrap()], &bounds[..]].concat());
    assert_eq!(code(&o), 0, "{}", stdout(&o));
}

#[test]
fn architectures_of_the_registry_are_planned_or_estimated_aloud() {
    let rows = root().join("testdata/plan/breadth.jsonl");
    let bounds = ["--min-kv", "97", "--min-weights", "90", "--max-silent", "0"];
    let o = run(&[&["dev", "mutate", "--kept", rows.to_str().unwrap()], &bounds[..]].concat());
    assert_eq!(code(&o), 0, "{}", stdout(&o));
    // Each answer stays an answer.
    assert!(stdout(&o).contains("answered 100.0 %"), "{}", stdout(&o));
}

#[test]
fn mutants_that_were_missed_are_right_now() {
    let rows = root().join("testdata/plan/mutants.jsonl");
    let bounds = ["--min-kv", "100", "--min-weights", "100", "--max-silent", "0"];
    let o = run(&[&["dev", "mutate", "--kept", rows.to_str().unwrap()], &bounds[..]].concat());
    assert_eq!(code(&o), 0, "{}", stdout(&o));
}

#[test]
fn what_is_estimated_holds_within_its_own_band() {
    let rows = root().join("testdata/plan/estimates.jsonl");
    let bounds = ["--min-kv", "100", "--min-weights", "0", "--max-silent", "0"];
    let o = run(&[&["dev", "mutate", "--kept", rows.to_str().unwrap()], &bounds[..]].concat());
    assert_eq!(code(&o), 0, "{}", stdout(&o));
    // Each of them is off, so that a band is what holds it.
    assert!(stdout(&o).contains("weights within 1 % 0.0 %"), "{}", stdout(&o));
}

#[test]
fn the_buffers_of_llama_cpp_are_reached() {
    let rows = root().join("testdata/plan/llama.jsonl");
    let file = rows.to_str().unwrap();
    let o = run(&["dev", "llama", file, "--min-kv", "100", "--min-weights", "100", "--min-compute", "95"]);
    assert_eq!(code(&o), 0, "{}", stdout(&o));
    let wrong = std::fs::read_to_string(&rows).unwrap().replacen("\"context\":", "\"context\":9", 40);
    let kept = crate::harness::dir(&[("rows.jsonl", wrong.as_bytes())]);
    let o = run(&["dev", "llama", kept.path().join("rows.jsonl").to_str().unwrap()]);
    assert_ne!(code(&o), 0, "{}", stdout(&o));
}

#[test]
fn start_ups_that_people_published_are_reached() {
    let rows = root().join("testdata/plan/startups.csv");
    let o = run(&["dev", "startups", rows.to_str().unwrap()]);
    assert_eq!(code(&o), 0, "{}", stdout(&o));
    // All but one are of the catalogue and were known to their release.
    assert!(stdout(&o).contains("31 rows of vLLM, 1 skipped"), "{}", stdout(&o));
}

#[test]
fn the_pools_of_sglang_are_reached() {
    let rows = root().join("testdata/plan/sglang.jsonl");
    let o = run(&["dev", "sglang", rows.to_str().unwrap()]);
    assert_eq!(code(&o), 0, "{}", stdout(&o));
    let wrong = std::fs::read_to_string(&rows).unwrap().replace("\"tokens\":", "\"tokens\":9");
    let kept = crate::harness::dir(&[("rows.jsonl", wrong.as_bytes())]);
    let o = run(&["dev", "sglang", kept.path().join("rows.jsonl").to_str().unwrap()]);
    assert_ne!(code(&o), 0, "{}", stdout(&o));
}

#[test]
fn a_real_vllm_on_the_cpu_is_reached() {
    let rows = root().join("testdata/plan/cpu.jsonl");
    let o = run(&["dev", "cpu", rows.to_str().unwrap()]);
    assert_eq!(code(&o), 0, "{}", stdout(&o));
    let kept = std::fs::read_to_string(&rows).unwrap();
    // Another pool, and another peak of a whole start.
    for (what, other) in [("\"kv_tokens\": ", "\"kv_tokens\": 9"), ("}}, \"peak\": ", "}}, \"peak\": 9")] {
        let wrong = crate::harness::dir(&[("rows.jsonl", kept.replacen(what, other, 1).as_bytes())]);
        let o = run(&["dev", "cpu", wrong.path().join("rows.jsonl").to_str().unwrap()]);
        assert_ne!(code(&o), 0, "{}", stdout(&o));
    }
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
