//! Several pods of one node: what its kernel log says is read once for all, and each report is the one of the pod alone.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    missing_docs,
    clippy::disallowed_methods,
    clippy::disallowed_types
)]

mod common;

use common::{copies, small_incidents};
use dualplane_core::evidence::{Bundle, RawFile};
use dualplane_core::facts::NodeLogs;
use dualplane_core::knowledge::Knowledge;
use dualplane_report as report;

/// Incidents with a kernel log, and which of their files that is.
fn with_a_kernel_log() -> Vec<(String, Vec<RawFile>, usize)> {
    let mut out = Vec::new();
    for (name, files) in small_incidents() {
        let logs = Bundle::from_files(copies(&files)).logs;
        let of_kernel: Vec<&str> = logs.iter().filter(|l| l.kernel).map(|l| l.name.as_str()).collect();
        if let [one] = of_kernel.as_slice()
            && let Some(at) = files.iter().position(|f| f.name == *one)
        {
            out.push((name, files, at));
        }
    }
    assert!(out.len() > 100, "{}", out.len());
    out
}

/// The incident as one of a node whose kernel log is this one.
fn on_the_node(files: &[RawFile], at: usize, log: &[u8]) -> Vec<RawFile> {
    let mut files = copies(files);
    files[at] = RawFile::new("node/kernel/kern.log", log.to_vec());
    files
}

#[test]
fn each_pod_of_a_node_is_told_what_it_is_told_alone() {
    let knowledge = Knowledge::embedded().unwrap();
    let all = with_a_kernel_log();
    let json = |reports: &[report::Report]| report::json::render(reports).unwrap();
    // Neighbours of each other: all that the kernel can say of one stands in the log of another.
    for node in all.chunks(3) {
        let log: Vec<u8> = node.iter().flat_map(|(_, files, at)| files[*at].bytes.clone()).collect();
        let mut shared = NodeLogs::default();
        for (name, files, at) in node.iter().chain(node) {
            let alone = report::triage_all(name, on_the_node(files, *at, &log), Vec::new(), &knowledge);
            let of_files = on_the_node(files, *at, &log);
            let together = report::triage_shared(name, of_files, Vec::new(), &knowledge, None, &mut shared);
            assert_eq!(json(&together), json(&alone), "{name}");
        }
    }
}
