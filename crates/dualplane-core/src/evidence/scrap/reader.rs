//! Reads the lines of a block one by one: as pairs, as rows, as printed or written words.

use super::field::{self, Field};
use super::piece::{self, Assembly};
use super::words::{self, Loose, Plane};
use super::{asked, pairs, rows, tidy};
use crate::units::parse_k8s_memory;

/// How the kubelet's message of an eviction begins.
const EVICTED: &str = "The node was low on resource: ";

/// What the lines of a block said so far.
#[derive(Default)]
pub(super) struct Reader {
    pub(super) assembly: Assembly,
    pub(super) columns: Option<rows::Columns>,
    pub(super) taken: Vec<usize>,
    pub(super) quotes: Vec<(usize, Plane)>,
    pub(super) evictions: Vec<(usize, String)>,
}

impl Reader {
    /// A heading of custom columns, or a row below one.
    pub(super) fn row(&mut self, raw: &str, i: usize) -> bool {
        let line = tidy::unquoted(raw);
        if let Some(columns) = rows::columns(&line) {
            self.columns = Some(columns);
            self.taken.push(i);
            return true;
        }
        let Some(columns) = &self.columns else { return false };
        let cells = rows::cells(columns, &line);
        if cells.is_empty() {
            self.columns = None;
            return false;
        }
        self.assembly.close();
        for (field, cell) in cells {
            match field {
                Field::Name | Field::Pod => self.assembly.named(cell, i),
                Field::Container => self.assembly.begin(cell, i),
                f => self.assembly.take(f, "Exit Code", cell, i, true),
            }
        }
        self.assembly.close();
        self.taken.push(i);
        true
    }

    /// What a template printed, one value after another.
    pub(super) fn printed(&mut self, bare: &str, asked: &asked::Asked, i: usize) -> bool {
        if bare.contains(':') {
            return false;
        }
        let values: Vec<&str> = bare.split_whitespace().filter(|v| *v != "%" && !v.contains('$')).collect();
        let mut used = false;
        for (at, value) in values.iter().enumerate() {
            match asked.fields.get(at % asked.fields.len().max(1)) {
                Some(Some(Field::Reason)) => {
                    let Some(Loose::Printed { word, .. }) = words::loose(value) else { continue };
                    self.assembly.word(word, i);
                    used = true;
                }
                Some(Some(f)) => {
                    self.assembly.take(*f, "exitCode", value, i, true);
                    used = true;
                }
                Some(None) if asked.limit => {
                    if let Some(bytes) = parse_k8s_memory(value) {
                        self.assembly.limit(bytes);
                    }
                }
                _ => {}
            }
        }
        used
    }

    /// The code and the message of a task's end.
    pub(super) fn task_end(&mut self, end: &str, i: usize) {
        if let Some(word) = field::in_two(end) {
            self.assembly.word(word, i);
        }
        if let Some((label, code)) = end.split_once(": ") {
            self.assembly.take(Field::ExitCode, label, code, i, true);
        }
    }

    /// A line as pairs, as a heading, or as bare words.
    pub(super) fn line(&mut self, bare: &str, next: &str, i: usize) {
        if let Some((_, message)) = bare.split_once(EVICTED) {
            self.evictions.push((i, format!("{EVICTED}{message}")));
            return;
        }
        if let Some((name, word, restarts)) = rows::pod(bare) {
            self.assembly.close();
            self.assembly.named(name, i);
            self.assembly.word(word, i);
            self.assembly.take(Field::Restarts, "restarts", restarts, i, true);
            self.assembly.close();
            return;
        }
        if let Some(name) = heading(bare, next) {
            self.assembly.begin(name, i);
            return;
        }
        let found = pairs::pairs(bare);
        let mut message = false;
        for (at, p) in found.iter().enumerate() {
            let names = matches!(
                p.field,
                Field::Pod | Field::Container | Field::Name | Field::Namespace | Field::Node
            );
            if message && names {
                continue;
            }
            message = p.field == Field::Message;
            let head = p.start == 0
                || bare.get(..p.start).is_some_and(|b| {
                    b.trim_end().is_empty() || b.trim_end().ends_with([',', '/', '|', ';', '('])
                })
                || at > 0;
            if p.field == Field::Name && !p.label.starts_with('N') {
                let follows = found
                    .get(at + 1)
                    .map(|p| p.field)
                    .or_else(|| pairs::pairs(next).first().map(|p| p.field));
                let value = p.value.split([' ', ',']).next().unwrap_or_default();
                if matches!(follows, Some(Field::Ready | Field::Restarts | Field::LastState))
                    && piece::is_name(value)
                {
                    self.assembly.name(value, i);
                }
                continue;
            }
            self.assembly.take(p.field, p.label, p.value, i, head);
        }
        // A label alone: its value stands in the next line.
        if found.is_empty()
            && let Some(f) = field::field(bare.trim())
            && field::field(next.trim()).is_none()
        {
            let known = field::word(next.trim()).is_some() || field::code(next.trim()).is_some();
            if known && next.split_whitespace().count() == 1 {
                self.assembly.take(f, bare.trim(), next.trim(), i, true);
                return;
            }
        }
        let status = found.iter().any(|p| {
            !matches!(p.field, Field::Memory | Field::Name | Field::Image | Field::Node | Field::Pod)
        });
        self.spoken(bare, &found, status, i);
    }

    /// What a line says beside its pairs.
    fn spoken(&mut self, bare: &str, found: &[pairs::Pair<'_>], status: bool, i: usize) {
        let reason_said = found.iter().any(|p| {
            let first = p.value.split([' ', ',', ';', '(', '/']).find(|t| !t.is_empty()).unwrap_or_default();
            let reads =
                matches!(p.field, Field::State | Field::LastState | Field::Reason | Field::Terminated);
            reads && matches!(field::word(first), Some(field::Word::End(..)))
        });
        let coded = found.iter().any(|p| p.field == Field::ExitCode);
        let spoken = words::spoken_code(bare).filter(|_| !coded);
        let oom = bare
            .split([' ', '(', ')', ',', ':'])
            .find_map(|w| match field::word(w) {
                Some(w @ field::Word::End(field::OOM_KILLED, _)) => Some(w),
                _ => None,
            })
            .or_else(|| field::in_two(bare));
        let machine = status
            || spoken.is_some()
                && ["reason ", "(exit", "(oom"].iter().any(|w| bare.to_ascii_lowercase().contains(w));
        if let Some(word) = oom.filter(|_| machine && !reason_said && !field_says_otherwise(found)) {
            self.assembly.word(word, i);
        } else if oom.is_none() || !status {
            match words::loose(bare) {
                Some(Loose::Printed { name, restarts, word, code }) if !status => {
                    if let Some(name) = name {
                        self.assembly.begin(name, i);
                    }
                    if let Some(n) = restarts {
                        self.assembly.take(Field::Restarts, "restarts", &n.to_string(), i, true);
                    }
                    self.assembly.word(word, i);
                    if let Some(code) = code {
                        self.assembly.code(code, false, false, i);
                    }
                    return;
                }
                Some(Loose::Written(plane)) => {
                    self.quotes.push((i, plane));
                    return;
                }
                _ => {}
            }
        }
        if let Some((code, blurred)) = spoken {
            let runtime = bare.contains("Exited (")
                || bare.contains("exited with code")
                || bare.starts_with("Container terminated");
            if runtime || status || oom.is_some() {
                self.assembly.code(code, blurred, runtime, i);
            }
        }
    }
}

/// Docker's flag says that it was not.
fn field_says_otherwise(found: &[pairs::Pair<'_>]) -> bool {
    found.iter().any(|p| p.field == Field::OomKilled)
}

/// `  vllm:` above the fields of a described container.
fn heading<'a>(bare: &'a str, next: &str) -> Option<&'a str> {
    let name = bare.trim().strip_suffix(':')?;
    let below = ["Container ID:", "Image:", "State:", "Last State:", "Port:"]
        .iter()
        .any(|k| next.trim_start().starts_with(k));
    (below && piece::is_name(name) && field::field(name).is_none()).then_some(name)
}
