//! Reads files as streams of documents, has several threads look at them, and puts what they found into the order of the
//! text. Memory does not grow with the input: batches, findings and remarks are bounded.

use dualplane_base::order::Order as _;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

use dualplane_lint::read::{Document, Documents, MAX_DOCUMENT, Problem, items, parse};
use dualplane_lint::report::{Report, Unread};
use dualplane_lint::{Finding, Linter, Locator, Object, Outcome, Severity, Source};
use serde_json::Value;

use super::walk::walk;
use crate::commands::Failure;

/// Text of a batch: enough that handing it over costs nothing beside reading it.
const BATCH: usize = 128 << 10;
/// Findings that are kept, some 10 MiB; all are counted.
const MAX_FINDINGS: usize = 10_000;
/// Documents that could not be looked at, and kinds without rules.
const MAX_UNREAD: usize = 1_000;
const MAX_KINDS: usize = 200;

/// What a thread looks at.
enum Work {
    Text(String, Document),
    Value(Source, String, Value),
    Unread(Unread),
}

/// What a batch gave.
#[derive(Default)]
struct Given {
    outcomes: Vec<Outcome>,
    kinds: Vec<String>,
    not_known: Vec<String>,
    unread: Vec<Unread>,
    objects: u64,
    other_documents: u64,
}

/// Looks at everything. `held` says of a finding whether an exception or the baseline holds it back.
pub(super) fn scan(
    paths: &[PathBuf],
    linter: &Linter,
    held: impl Fn(&Finding) -> bool + Sync,
) -> Result<Report, Failure> {
    let walked = walk(paths)?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from).clamp(1, 8);
    let (to_workers, work) = sync_channel::<(u64, Vec<Work>)>(threads);
    let (to_merge, given) = sync_channel::<(u64, Given)>(threads * 4);
    let work = Mutex::new(work);
    let kept = AtomicUsize::new(0);
    let mut report = std::thread::scope(|scope| {
        for _ in 0..threads {
            let to_merge = to_merge.clone();
            let (work, kept) = (&work, &kept);
            scope.spawn(move || worker(work, &to_merge, &Looking { linter, kept }));
        }
        drop(to_merge);
        let (held, kept) = (&held, &kept);
        let merged = scope.spawn(move || merge(&given, held, kept));
        let files = walked.files.len();
        feed(&walked.files, to_workers);
        let mut report = merged.join().unwrap_or_default();
        report.files = u64::try_from(files).unwrap_or(u64::MAX);
        report
    });
    add(&mut report, linter.end(), &held);
    report.notes.extend(walked.notes);
    charts(&mut report, &walked.charts);
    report.findings.order_by(|a, b| {
        (&a.source.file, a.at, b.severity, &a.rule).cmp(&(&b.source.file, b.at, a.severity, &b.rule))
    });
    Ok(report)
}

/// Charts whose templates were not rendered. One that was asked for, or beside which nothing was checked, was not checked: that
/// is no remark.
fn charts(report: &mut Report, charts: &[(PathBuf, bool)]) {
    let nothing = report.objects == 0;
    for (dir, named) in charts {
        let file = dir.display().to_string();
        let why = "its templates were not checked; render it";
        if *named || nothing {
            let why = format!("it is a chart, and {why}: helm template {file} | dualplane lint -");
            report.unread.push(Unread { file, document: 1, line: 1, why });
        } else {
            report
                .notes
                .push(format!("{file} is a chart, and {why}: helm template {file} | dualplane lint -"));
        }
    }
}

/// Batches on their way to the threads.
struct Feeder {
    to: SyncSender<(u64, Vec<Work>)>,
    number: u64,
    batch: Vec<Work>,
    size: usize,
}

impl Feeder {
    fn add(&mut self, work: Work, size: usize) {
        self.batch.push(work);
        self.size += size;
        if self.size >= BATCH || self.batch.len() >= 512 {
            self.flush();
        }
    }

    /// It goes the way of all documents, so that it stands in its place.
    fn unread(&mut self, file: &str, line: u64, why: String) {
        self.add(Work::Unread(Unread { file: file.to_owned(), document: 1, line, why }), 0);
    }

    fn flush(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        self.size = 0;
        if !batch.is_empty() {
            // The threads end only after this sender is gone.
            let _ = self.to.send((self.number, batch));
            self.number += 1;
        }
    }
}

fn feed(files: &[PathBuf], to: SyncSender<(u64, Vec<Work>)>) {
    let mut feeder = Feeder { to, number: 0, batch: Vec::new(), size: 0 };
    for path in files {
        if let Err(e) = file(path, &mut feeder) {
            feeder.unread(&path.display().to_string(), 1, format!("it cannot be read: {e}"));
        }
    }
    feeder.flush();
}

fn file(path: &Path, feeder: &mut Feeder) -> io::Result<()> {
    if path.as_os_str() == "-" {
        return stream(io::stdin().lock(), "-", None, feeder);
    }
    let name = path.display().to_string();
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    stream(BufReader::with_capacity(64 << 10, file), &name, Some(size), feeder)
}

fn stream(mut reader: impl BufRead, name: &str, size: Option<u64>, feeder: &mut Feeder) -> io::Result<()> {
    let head = reader.fill_buf()?;
    let start = head.trim_ascii_start();
    let json = (start.starts_with(b"{") || start.starts_with(b"[")) && !start.starts_with(b"{{");
    let small = size.is_some_and(|s| s <= u64::try_from(MAX_DOCUMENT).unwrap_or(u64::MAX));
    // A small file is read as text, whose lines are then known.
    if json && !small {
        json_items(reader, name, feeder);
        return Ok(());
    }
    for document in Documents::new(reader) {
        let document = document?;
        let size = document.text.len();
        feeder.add(Work::Text(name.to_owned(), document), size);
    }
    Ok(())
}

fn json_items(reader: impl BufRead, name: &str, feeder: &mut Feeder) {
    let result = items(reader, &mut |item| {
        let source = Source { file: name.to_owned(), document: item.document, line: 1 };
        feeder.add(Work::Value(source, item.pointer, item.value), 2 << 10);
    });
    if let Err(e) = result {
        let line = u64::try_from(e.line()).unwrap_or(1).max(1);
        feeder.unread(name, line, format!("it is not JSON: {e}"));
    }
}

/// What threads look with.
struct Looking<'a> {
    linter: &'a Linter,
    /// Findings that are in the report already.
    kept: &'a AtomicUsize,
}

impl Looking<'_> {
    /// Whether a finding may still come into the report. The count only grows, so that what is refused here is refused there.
    fn wants(&self, f: &Finding) -> bool {
        self.kept.load(Ordering::Relaxed) < most(f.severity)
    }
}

fn worker(work: &Mutex<Receiver<(u64, Vec<Work>)>>, to: &SyncSender<(u64, Given)>, looking: &Looking<'_>) {
    loop {
        let next = work.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((number, batch)) = next else { return };
        let mut given = Given::default();
        for one in batch {
            match one {
                Work::Text(file, document) => text(&file, &document, looking, &mut given),
                Work::Unread(unread) => given.unread.push(unread),
                Work::Value(source, pointer, value) => {
                    let mut object = Object::new(value, source);
                    object.pointer = pointer;
                    look(&object, looking.linter, &mut given);
                }
            }
        }
        if to.send((number, given)).is_err() {
            return;
        }
    }
}

fn text(file: &str, document: &Document, looking: &Looking<'_>, given: &mut Given) {
    let mut unread = |line, why: String| {
        given.unread.push(Unread { file: file.to_owned(), document: document.number, line, why });
    };
    let parsed = parse(file, document);
    match parsed.problem {
        Some(Problem::Broken { line, why }) => unread(line, why),
        Some(Problem::Template { line }) => unread(
            line,
            "it is a template that was not rendered; check what it renders: helm template CHART | dualplane lint -".to_owned(),
        ),
        Some(Problem::Other) => given.other_documents += 1,
        None => {}
    }
    let from = given.outcomes.len();
    for object in &parsed.objects {
        look(object, looking.linter, given);
    }
    // The lines are looked up where something was found that will be told.
    let found = given.outcomes.get_mut(from..).unwrap_or_default();
    let mut told = found.iter_mut().flat_map(|o| &mut o.findings).filter(|f| looking.wants(f)).peekable();
    if told.peek().is_some() {
        let locator = Locator::new(&document.text);
        for f in told {
            f.at = locator.spot(&f.pointer).map_or(f.at, |s| document.line + s.line.saturating_sub(1));
        }
    }
}

fn look(object: &Object, linter: &Linter, given: &mut Given) {
    let outcome = linter.object(object);
    if outcome.unknown {
        let version = object.value.get("apiVersion").and_then(Value::as_str);
        // A kind without a version is a file of another tool's.
        match version {
            Some(_) => given.kinds.push(object.kind.clone()),
            None => given.other_documents += 1,
        }
        return;
    }
    given.objects += 1;
    given.not_known.extend_from_slice(&outcome.not_known);
    if !outcome.findings.is_empty() || outcome.suppressed > 0 {
        given.outcomes.push(outcome);
    }
}

fn merge(
    from: &Receiver<(u64, Given)>,
    held: &(impl Fn(&Finding) -> bool + Sync),
    kept: &AtomicUsize,
) -> Report {
    let mut report = Report::default();
    let mut waiting = BTreeMap::new();
    let mut next = 0;
    while let Ok((number, given)) = from.recv() {
        waiting.insert(number, given);
        while let Some(given) = waiting.remove(&next) {
            next += 1;
            report.objects += given.objects;
            report.other_documents += given.other_documents;
            for kind in given.kinds {
                if report.other_kinds.len() < MAX_KINDS || report.other_kinds.contains_key(&kind) {
                    *report.other_kinds.entry(kind).or_default() += 1;
                }
            }
            not_known(&mut report, given.not_known);
            for unread in given.unread {
                if report.unread.len() < MAX_UNREAD {
                    report.unread.push(unread);
                } else {
                    report.more_unread += 1;
                }
            }
            for outcome in given.outcomes {
                add(&mut report, outcome, held);
            }
            kept.store(report.findings.len(), Ordering::Relaxed);
        }
    }
    report
}

/// Keeps the names of containers without a known engine, so many of them.
pub(super) fn not_known(report: &mut Report, names: Vec<String>) {
    for name in names {
        if report.not_known.len() < MAX_UNREAD {
            report.not_known.push(name);
        } else {
            report.more_not_known += 1;
        }
    }
}

/// Findings among which one of this severity is kept: an error has a place of its own behind any number of notes.
const fn most(severity: Severity) -> usize {
    match severity {
        Severity::Error => 2 * MAX_FINDINGS,
        _ => MAX_FINDINGS,
    }
}

pub(super) fn add(report: &mut Report, outcome: Outcome, held: &(impl Fn(&Finding) -> bool + Sync)) {
    report.suppressed += outcome.suppressed;
    for f in outcome.findings {
        if held(&f) {
            report.suppressed += 1;
            continue;
        }
        report.worst = report.worst.max(Some(f.severity));
        *report.all.entry(f.severity).or_default() += 1;
        if report.findings.len() < most(f.severity) {
            report.findings.push(f);
        } else {
            report.more += 1;
        }
    }
}
