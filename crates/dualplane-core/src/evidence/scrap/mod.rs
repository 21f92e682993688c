//! The tolerant reader: what people really paste of a pod's status, however it was cut, stripped, quoted, joined or typed
//! off. One reader on a vocabulary of fields ([`field`]), not one parser a form.
//!
//! Lines are tidied, read as pairs of label and value, as rows, or as bare status words, and joined to pieces of pods.
//! Whatever does not stand in a piece is not known; see [`Extent`](crate::evidence::Extent).

mod asked;
mod field;
mod limits;
mod pairs;
mod piece;
mod rows;
pub(in crate::evidence) mod tidy;
mod words;

use super::{Bundle, Event, prose};
use crate::units::parse_k8s_memory;
use field::Field;
pub use limits::QuotedLimit;
use piece::Assembly;
use words::{Loose, Plane};

/// Larger texts are logs: of them only what stands near a state is read.
pub(in crate::evidence) const MAX_TEXT: usize = 256 << 10;
/// A described pod in one line fits.
const MAX_LINE: usize = 32 << 10;
/// Lines around a state in a larger text.
const REACH: usize = 40;
/// A message with more lines is more than a message.
const MAX_MESSAGE: usize = 200;
/// What somewhere stands in every text that has something to read, in lower case.
const ANCHORS: &[&str] = &[
    "oom",
    "0om",
    "o0m",
    "00m",
    "exit",
    "reason",
    "state",
    "terminated",
    "warning",
    "normal",
    "cuda",
    "outofmemory",
    "vram",
];

/// How the kubelet's message of an eviction begins.
const EVICTED: &str = "The node was low on resource: ";

/// Words of a person that name a plane; see [`words`].
#[derive(Debug, Clone)]
pub struct Quote {
    /// File.
    pub file: String,
    /// Line, from 1.
    pub line: u64,
    /// The line.
    pub text: String,
    /// They name VRAM, else host RAM.
    pub gpu: bool,
}

/// Reads the scraps of a block into the bundle; returns the lines they take, as (start, end). `large`: the block stands in
/// a text above [`MAX_TEXT`].
pub(in crate::evidence) fn read(
    bundle: &mut Bundle,
    lines: &[&str],
    first: u64,
    file: &str,
    command: Option<&str>,
    large: bool,
) -> Vec<(usize, usize)> {
    let asked = command.map(asked::asked).unwrap_or_default();
    if !large {
        bundle.limits.extend(limits::quoted(lines, first, file, &asked));
    }
    let near = near(lines, large, !asked.fields.is_empty());
    if near.is_empty() {
        return Vec::new();
    }
    let mut reader = Reader {
        assembly: Assembly::default(),
        columns: None,
        taken: Vec::new(),
        quotes: Vec::new(),
        evictions: Vec::new(),
    };
    reader.assembly.about(&asked.pod, &asked.namespace);
    let mut tidied: Vec<(usize, String)> = Vec::with_capacity(near.len());
    for i in near {
        let Some(line) = lines.get(i).filter(|l| !l.trim().is_empty() && l.len() <= MAX_LINE) else {
            continue;
        };
        tidied.push((i, tidy::bare(line)));
    }
    for (at, (i, bare)) in tidied.iter().enumerate() {
        let raw = lines.get(*i).copied().unwrap_or_default();
        let next = tidied.get(at + 1).map_or("", |(_, l)| l.as_str());
        let number = first + *i as u64;
        if let Some(event) = rows::event(bare, number, file) {
            bundle.events.push(event);
            reader.taken.push(*i);
        } else if !reader.row(raw, *i) && !is_record(raw) && !is_logged(bare, raw) {
            if !asked.fields.is_empty() && reader.printed(bare, &asked, *i) {
                continue;
            }
            reader.line(bare, next, *i);
        }
    }
    let Reader { assembly, mut taken, quotes, evictions, .. } = reader;
    for (i, message) in evictions {
        taken.push(i);
        bundle.events.push(Event {
            file: file.to_owned(),
            line: Some(first + i as u64),
            reason: "Evicted".to_owned(),
            message,
            warning: true,
            count: 1,
            ..Event::default()
        });
    }
    let (pods, used) = assembly.finish(file);
    let found = !pods.is_empty();
    bundle.pasted.extend(pods);
    taken.extend(used);
    if lines.len() <= MAX_MESSAGE {
        for (i, plane) in quotes {
            let text = lines.get(i).copied().unwrap_or_default().trim().to_owned();
            bundle.quotes.push(Quote {
                file: file.to_owned(),
                line: first + i as u64,
                text,
                gpu: plane == Plane::Gpu,
            });
        }
    }
    if found {
        around(lines, &mut taken);
    }
    taken.into_iter().map(|i| (i, i + 1)).collect()
}

/// The lines that are worth reading.
fn near(lines: &[&str], large: bool, asked: bool) -> Vec<usize> {
    let anchor = |l: &&str| {
        let lower = l.get(..l.len().min(MAX_LINE)).unwrap_or(l).to_ascii_lowercase();
        ANCHORS.iter().any(|a| lower.contains(a))
    };
    if !large {
        return if asked || lines.iter().any(anchor) { (0..lines.len()).collect() } else { Vec::new() };
    }
    let states = |l: &str| {
        let l = l.trim_start_matches([' ', '"', '>', '-']);
        ["Last State:", "State:  ", "lastState", "terminated"].iter().any(|s| l.starts_with(s))
    };
    let mut out: Vec<usize> = Vec::new();
    for (i, _) in lines.iter().enumerate().filter(|(_, l)| states(l)) {
        let from = out.last().map_or(0, |l| l + 1).max(i.saturating_sub(REACH));
        out.extend(from..(i + REACH).min(lines.len()));
    }
    out
}

/// Lines of the same object around those that were read are no log, either; of a text that is mostly an object, none is.
fn around(lines: &[&str], taken: &mut Vec<usize>) {
    let mut all = vec![false; lines.len()];
    for i in taken.iter() {
        all.iter_mut().skip(*i).take(1).for_each(|t| *t = true);
    }
    let of_object: Vec<bool> = lines.iter().map(|l| l.len() <= MAX_LINE && is_of_object(l)).collect();
    let written = lines.iter().filter(|l| !l.trim().is_empty()).count();
    if of_object.iter().filter(|o| **o).count() * 2 > written {
        for (t, line) in all.iter_mut().zip(lines) {
            *t |= !prose::logs(line);
        }
    } else {
        for i in taken.iter().copied() {
            let mut mark = |j: usize| match (of_object.get(j), all.get_mut(j)) {
                // Each line is claimed once, so that this takes one pass in all.
                (Some(true), Some(t)) if !*t => {
                    *t = true;
                    true
                }
                _ => false,
            };
            (0..i).rev().find(|j| !mark(*j));
            (i + 1..lines.len()).find(|j| !mark(*j));
        }
    }
    *taken = all.iter().enumerate().filter(|(_, t)| **t).map(|(i, _)| i).collect();
}

/// `  ready: false`, `"image": "x",`, `},`, `Ready:          True`: a line of YAML, JSON or a description.
fn is_of_object(line: &str) -> bool {
    let bare =
        line.trim_start_matches(|c: char| " >|│*-•\t\"'{[".contains(c)).trim_end_matches([' ', '│', '|']);
    if bare.is_empty() || bare.chars().all(|c| "{}[],".contains(c)) {
        return !line.trim().is_empty();
    }
    let Some((key, value)) = bare.split_once(':') else { return false };
    let key = key.trim_end_matches(['"', '\'']);
    let joined = value.is_empty() || value.starts_with([' ', '"', '{', '[']);
    let plain = key.starts_with(|c: char| c.is_ascii_lowercase())
        && key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'/' | b'_' | b'-'));
    let described =
        key.starts_with(|c: char| c.is_ascii_uppercase()) && key.len() <= 24 && value.starts_with("  ");
    joined && (plain || described)
}

/// A record of a log as JSON says of others what it says.
fn is_record(line: &str) -> bool {
    line.trim_start().starts_with('{')
        && ["\"msg\"", "\"message\":", "\"level\"", "\"log\"", "\"severity\"", "\"ts\""]
            .iter()
            .any(|k| line.contains(k))
        && !line.contains("\"terminated\"")
}

/// A line of a log speaks of its own matters. A status has times, too, but they stand behind a label.
fn is_logged(bare: &str, raw: &str) -> bool {
    let found = pairs::pairs(bare);
    let state = found.iter().any(|p| matches!(p.field, Field::LastState | Field::Terminated));
    let labelled = raw.trim_start().starts_with('{')
        || state && found.len() > 3
        || found.first().is_some_and(|p| bare.get(..p.start).is_some_and(|b| b.trim().is_empty()))
        || bare.starts_with("map ");
    // Times further in are values.
    let begin = bare.char_indices().nth(48).and_then(|(i, _)| bare.get(..i)).unwrap_or(bare);
    !labelled && prose::logs(begin)
}

struct Reader {
    assembly: Assembly,
    columns: Option<rows::Columns>,
    taken: Vec<usize>,
    quotes: Vec<(usize, Plane)>,
    evictions: Vec<(usize, String)>,
}

impl Reader {
    /// A heading of custom columns, or a row below one.
    fn row(&mut self, raw: &str, i: usize) -> bool {
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
    fn printed(&mut self, bare: &str, asked: &asked::Asked, i: usize) -> bool {
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

    /// A line as pairs, as a heading, or as bare words.
    fn line(&mut self, bare: &str, next: &str, i: usize) {
        if let Some((_, message)) = bare.split_once(EVICTED) {
            self.evictions.push((i, format!("{EVICTED}{message}")));
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
            matches!(field::word(first), Some(field::Word::End(..)))
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
