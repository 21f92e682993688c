//! Doors of the private line readers for `fuzz/`, behind the feature `fuzzing`.

use super::{Facts, Place, kernel_oom, quote, scan, trace, xid};
use crate::evidence::LogSource;
use crate::evidence::framing::unwrap_kernel;
use crate::knowledge::Knowledge;

fn place(line: usize) -> Place {
    Place { file: "f".into(), line: Some(line as u64 + 1) }
}

/// The OOM killer's records in a kernel log.
pub fn ooms(text: &str) -> usize {
    let mut builder = kernel_oom::OomBuilder::default();
    for (i, raw) in text.lines().enumerate() {
        let u = unwrap_kernel(raw);
        builder.line(&place(i), raw, &u.text, u.stamp);
    }
    let records = builder.finish();
    for r in &records {
        let _ = (r.pod_uid(), r.container_id(), r.before_start(), r.node_allocatable(), r.pod_level());
    }
    records.len()
}

/// An Xid line and what lists GPUs.
pub fn xid(line: &str) -> bool {
    let u = unwrap_kernel(line);
    let listed = xid::listed(&u.text);
    let event = xid::parse(&place(0), line, &u.text, u.stamp);
    if let Some(e) = &event {
        let address = xid::pci_address(&e.pci);
        assert_eq!(
            address.as_deref().and_then(xid::pci_address),
            address,
            "an address is read as it is written"
        );
    }
    listed.is_some() || event.is_some()
}

/// Tracebacks of interleaved processes, and prompts that go on over lines.
pub fn traceback(text: &str) -> usize {
    let mut traces = trace::Traces::default();
    let mut ended = 0;
    let lines: Vec<&str> = text.lines().collect();
    for (i, line) in lines.iter().enumerate() {
        let process = traces.process(crate::evidence::framing::process_of(line), line);
        let message = trace::message_of(line);
        ended += usize::from(traces.ends(&process, message) && trace::exception_name(message).is_some());
        let next = lines.get(i + 1..).unwrap_or_default();
        if i < 8 {
            let behind = quote::lines_behind(line, line.len() / 2, next.iter());
            assert!(behind.quoted <= behind.looked && behind.looked <= next.len() as u64);
        }
    }
    ended
}

/// A whole log.
pub fn log(bytes: &[u8], kernel: bool, knowledge: &Knowledge) -> usize {
    let log = LogSource { name: "f".into(), kernel, bytes: bytes.to_vec().into(), ..LogSource::default() };
    let mut facts = Facts::default();
    scan::scan(&log, knowledge, &super::owner::Owners::default(), &mut facts);
    facts.hits.len() + facts.ooms.len() + facts.xids.len()
}
