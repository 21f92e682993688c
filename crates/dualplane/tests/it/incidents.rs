//! Our own incidents hold fully; the labelled corpus beside the project holds its figures where it is there.

use crate::harness::{code, incidents_dir, run, shared_incidents, stderr, stdout};

#[test]
fn our_own_incidents_are_all_right() {
    let dir = incidents_dir();
    let o = run(&["dev", "corpus", dir.to_str().unwrap(), "--min-class", "100", "--min-trigger", "100"]);
    assert_eq!(code(&o), 0, "{}{}", stdout(&o), stderr(&o));
}

#[test]
fn the_shared_corpus_holds_its_figures() {
    let Some(dir) = shared_incidents() else {
        eprintln!("no labelled corpus beside the project; nothing to measure");
        return;
    };
    // Four of its labels say not_memory without a proof (docs/adr/0006): a log that serves and just stops (c026, c175) or
    // stops while it loads (c031), and clean-up Xids without an end (c125).
    let o = run(&["dev", "corpus", dir.to_str().unwrap(), "--min-class", "95", "--min-trigger", "97"]);
    assert_eq!(code(&o), 0, "{}{}", stdout(&o), stderr(&o));
}

/// The measure itself can fail: a wrong label brings the figure down.
#[test]
fn a_wrong_label_is_noticed() {
    let dir = crate::harness::dir(&[
        ("x/previous.log", b"ggml_backend_cuda_buffer_type_alloc_buffer: allocating 3257.82 MiB on device 0: cudaMalloc failed: out of memory\n"),
        ("x/truth.json", br#"{"class": "host_oom_killed", "plane": "host", "trigger_line": null}"#),
    ]);
    let o = run(&["dev", "corpus", dir.path().to_str().unwrap()]);
    assert_eq!(code(&o), 5);
    assert!(stdout(&o).contains("wrong plane: 1"), "{}", stdout(&o));
}

/// Labels are never read as evidence.
#[test]
fn labels_are_not_evidence() {
    let dir = crate::harness::dir(&[("truth.json", br#"{"class": "host_oom_killed", "plane": "host"}"#)]);
    let o = run(&["triage", dir.path().to_str().unwrap()]);
    assert_eq!(code(&o), 4);
}
