//! Replays `fuzz/corpus` with overflow checks and debug assertions, which the fast fuzz builds leave out.
//! `cargo test -p dualplane-report --features fuzzing --test fuzz_corpus`; `FUZZ_CORPUS` names another folder.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    clippy::disallowed_methods,
    clippy::disallowed_types
)]

use std::fs;
use std::path::{Path, PathBuf};

use dualplane_base::{time, units};
use dualplane_core::evidence::{Bundle, RawFile, metrics};
use dualplane_core::facts::vram;
use dualplane_core::fuzzing;
use dualplane_core::knowledge::Knowledge;
use dualplane_core::redact;
use dualplane_report::{self as report, Style};

fn replay(target: &str, data: &[u8], k: &Knowledge) -> bool {
    let text = String::from_utf8_lossy(data);
    match target {
        "describe" => drop(fuzzing::describe(&text)),
        "tables" => drop(fuzzing::tables(&text)),
        "printouts" => drop((fuzzing::printouts(&text), fuzzing::wrapped(data))),
        "series" => drop(fuzzing::series(&text)),
        "inspect" => drop(fuzzing::inspect(&text)),
        "exports" => drop(fuzzing::exports(&text)),
        "paste" => drop(fuzzing::paste(data)),
        "framing" => drop((fuzzing::unwrap(data, false), fuzzing::unwrap(data, true))),
        "kernel_oom" => drop(fuzzing::ooms(&text)),
        "xid" => drop(fuzzing::xid(&text)),
        "traceback" => drop(fuzzing::traceback(&text)),
        "matcher" => drop((fuzzing::log(data, true, k), fuzzing::log(data, false, k))),
        "metrics" => drop(metrics::parse(&text, "f")),
        "stamps" => drop(time::find_stamp(&text).map(|s| s.without_zone(s).with_year_near(Some(s)).show())),
        "units" => drop((
            units::parse_memory(&text, Some("GiB")).map(|b| b.scale(1.1).round_up_to(units::GIB).k8s()),
            units::parse_k8s_memory(&text),
            vram::parse(&text).map(|o| o.others()),
        )),
        "redact" => drop((redact::line(&text, k), redact::Redactor::new(k).text(&text))),
        "objects" | "evidence" | "reports" => {
            for name in ["pod.json", "pod.yaml", "kernel.log", "previous.log"] {
                let files = vec![RawFile::new(name, data.to_vec())];
                if target != "reports" {
                    drop(Bundle::from_files(files));
                    continue;
                }
                for r in report::triage_all("f", files, Vec::new(), k) {
                    drop(report::text(&r, Style { colour: false, verbose: true, width: 100 }));
                    drop(report::markdown(&r));
                }
            }
        }
        _ => return false,
    }
    true
}

#[test]
fn nothing_that_fuzzing_kept_panics() {
    let k = Knowledge::embedded().unwrap();
    let dir = std::env::var_os("FUZZ_CORPUS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus"), PathBuf::from);
    let (mut replayed, mut bytes) = (0u64, 0u64);
    for target in fs::read_dir(&dir).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir()) {
        let name = target.file_name().unwrap().to_string_lossy().into_owned();
        for file in fs::read_dir(&target).unwrap() {
            let data = fs::read(file.unwrap().path()).unwrap();
            bytes += data.len() as u64;
            replayed += u64::from(replay(&name, &data, &k));
        }
    }
    assert!(replayed > 1000, "only {replayed} inputs of {bytes} bytes in {}", dir.display());
}
