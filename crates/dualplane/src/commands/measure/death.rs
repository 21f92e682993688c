//! What a server died of: triage over what is left of it.

use std::path::Path;
use std::time::Duration;

use dualplane_core::evidence::RawFile;
use dualplane_gate::document::Restart;
use dualplane_measure::server::{Server, remains};
use dualplane_report as report;
use jiff::Timestamp;

use super::Bench;
use crate::commands::Failure;
use crate::own_knowledge;

/// The kernel writes a record of a kill in pieces, and a parent notices later.
const SETTLE: Duration = Duration::from_secs(2);
/// For the server to end once a part of it is gone.
const END: Duration = Duration::from_secs(20);

pub(super) fn judge(bench: &mut Bench<'_>) -> Result<Restart, Failure> {
    let at = Timestamp::now();
    let exit_code = bench.server.as_mut().and_then(|s: &mut Server| s.exit_code(END));
    let told = std::time::Instant::now();
    while told.elapsed() < SETTLE {
        std::thread::park_timeout(SETTLE);
    }
    let knowledge = own_knowledge::load(bench.args.knowledge.as_deref())?;
    let left = remains(bench.log.as_deref(), Path::new("/dev/kmsg"), bench.boot_us);
    let files: Vec<RawFile> = left.files.into_iter().map(|(name, bytes)| RawFile::new(name, bytes)).collect();
    let mut restart = Restart { at: Some(at.to_string()), exit_code, ..Restart::default() };
    let mut reports = report::triage_all("server", files, Vec::new(), &knowledge);
    if let Some(first) = reports.first_mut() {
        report::mask(first, &knowledge);
        let v = &first.verdict;
        restart.class = Some(v.class.as_str().to_owned());
        restart.plane = Some(v.class.plane().as_str().to_owned());
        restart.trigger = v.trigger.as_ref().map(|t| t.text.clone());
    }
    Ok(restart)
}
