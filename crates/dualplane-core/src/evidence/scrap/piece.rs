//! Joins what single lines say to partial containers, and these to pods: names hold for what stands near them, and what
//! is said twice belongs to the next container.

use super::field::{ENDED_CLEANLY, Field, OOM_KILLED, Word, code, word};
use crate::evidence::describe;
use crate::evidence::kube_model::{Container, ContainerStatus, Extent, Pod, State, Termination};
use crate::time::{Stamp, parse_rfc3339};
use crate::units::{Bytes, parse_k8s_memory};

/// Containers in one text.
const MAX_CONTAINERS: usize = 200;

/// One run of a container, as far as it is told.
#[derive(Debug, Clone, Default)]
struct Run {
    /// Its heading stands in the text, as `State:` or `lastState:`.
    said: bool,
    kind: Kind,
    end: Termination,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Kind {
    #[default]
    Untold,
    Running,
    Waiting,
    Terminated,
}

/// Which run the next lines are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Of {
    #[default]
    Neither,
    Now,
    Last,
}

/// A container that is being put together.
#[derive(Debug, Default)]
struct Draft {
    name: Option<String>,
    image: Option<String>,
    id: Option<String>,
    now: Run,
    last: Run,
    of: Of,
    restarts: Option<u64>,
    ready: Option<bool>,
    limit: Option<Bytes>,
    request: Option<Bytes>,
    /// The section of resources that lines stand in.
    section: Option<Field>,
    /// Something names a status for certain: a reason, a state, or an exit code under its full label.
    sure: bool,
    lines: Vec<usize>,
}

/// Puts pieces together, in the order of the text.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    draft: Draft,
    pod: Pod,
    pods: Vec<Pod>,
    containers: usize,
    used: Vec<usize>,
}

impl Assembly {
    /// The pod that a command above the text names.
    pub(super) fn about(&mut self, pod: &str, namespace: &str) {
        pod.clone_into(&mut self.pod.name);
        namespace.clone_into(&mut self.pod.namespace);
    }

    /// Takes a field with what stands behind its label. `head`: the label opens its line or part of it.
    pub(super) fn take(&mut self, field: Field, label: &str, value: &str, line: usize, head: bool) {
        let first = value.split([' ', ',', ';', '(', '/']).find(|t| !t.is_empty()).unwrap_or_default();
        let title = label.starts_with(|c: char| c.is_ascii_uppercase());
        match field {
            Field::State | Field::LastState => self.state(field, label, value, first, line),
            Field::Terminated | Field::Waiting | Field::Running => self.section(field, first, value, line),
            Field::Reason => {
                if let Some(w) = word(first) {
                    self.word(w, line);
                }
            }
            Field::ExitCode => {
                if let Some((code, blurred)) = code(first).filter(|_| closed(value, first)) {
                    self.code(code, blurred, head && label.len() > 4, line);
                }
            }
            Field::OomKilled if first.eq_ignore_ascii_case("true") => {
                self.word(Word::End(OOM_KILLED, false), line);
            }
            Field::Restarts => {
                if let Ok(n) = first.parse() {
                    if self.draft.restarts.is_some() {
                        self.container();
                    }
                    self.draft.restarts = Some(n);
                    self.draft.lines.push(line);
                }
            }
            Field::Ready => {
                let ready = [("true", true), ("false", false)];
                let ready = ready.iter().find(|(w, _)| first.eq_ignore_ascii_case(w)).map(|(_, r)| *r);
                if ready.is_some() && self.draft.ready.is_none() {
                    self.draft.ready = ready;
                    self.draft.lines.push(line);
                }
            }
            Field::Started | Field::Finished => self.time(field, value, line),
            Field::Name if title && head => self.named(value, line),
            Field::Pod if head => self.named(value, line),
            Field::Container if head && is_name(first) => self.begin(first, line),
            Field::Namespace if head && is_name(first) => first.clone_into(&mut self.pod.namespace),
            Field::Node if head && is_name(first) => self.pod.node = Some(first.to_owned()),
            Field::Image if title && head && !first.is_empty() => {
                self.draft.image.get_or_insert_with(|| value.to_owned());
                self.draft.lines.push(line);
            }
            Field::ContainerId => {
                self.draft.id = value.split_once("//").map(|(_, id)| id.to_owned()).filter(|i| !i.is_empty());
            }
            Field::Limits | Field::Requests if title && value.is_empty() => self.draft.section = Some(field),
            Field::Memory => self.memory(first, line),
            _ => {}
        }
    }

    /// A container's name, and what follows is about it.
    pub(super) fn begin(&mut self, name: &str, line: usize) {
        if self.draft.name.as_deref() != Some(name) && (self.draft.name.is_some() || self.draft.tells()) {
            self.container();
        }
        self.draft.name = Some(name.to_owned());
        self.draft.lines.push(line);
    }

    /// A container's name that stands among its fields, as in objects.
    pub(super) fn name(&mut self, name: &str, line: usize) {
        if self.draft.name.is_some() {
            self.container();
        }
        self.draft.name = Some(name.to_owned());
        self.draft.lines.push(line);
    }

    /// A pod's name, with its namespace before it where that is told.
    pub(super) fn named(&mut self, value: &str, line: usize) {
        let first = value.split([' ', ',', '(']).next().unwrap_or_default();
        let (namespace, name) = first.split_once('/').unwrap_or(("", first));
        if !is_name(name) || name == self.pod.name {
            return;
        }
        // A name behind the only status of a pod that has none yet is that status's.
        if !self.pod.name.is_empty() || !self.pod.containers.is_empty() {
            self.close();
        }
        name.clone_into(&mut self.pod.name);
        if !namespace.is_empty() {
            namespace.clone_into(&mut self.pod.namespace);
        }
        self.used.push(line);
    }

    fn state(&mut self, field: Field, label: &str, value: &str, first: &str, line: usize) {
        let (found, empty) = (word(first), value.is_empty());
        // `Status:` of a described pod is its phase.
        let phase =
            label.eq_ignore_ascii_case("status") && matches!(found, Some(Word::Running | Word::Waiting));
        if phase || found.is_none() && !empty {
            return;
        }
        let now = field == Field::State;
        let said = |d: &Draft| if now { d.now.said } else { d.last.said };
        // A reason may stand before the state that it is of.
        if said(&self.draft) || now && self.draft.now.kind != Kind::Untold && found.is_some() {
            self.container();
        }
        let draft = &mut self.draft;
        draft.of = if now { Of::Now } else { Of::Last };
        let run = if now { &mut draft.now } else { &mut draft.last };
        run.said = true;
        draft.lines.push(line);
        match found {
            Some(Word::Terminated) => run.kind = Kind::Terminated,
            Some(Word::Waiting) => run.kind = Kind::Waiting,
            Some(Word::Running) => run.kind = Kind::Running,
            Some(w) => self.word(w, line),
            None => return,
        }
        self.draft.sure |= closed(value, first);
    }

    /// `terminated:` of an object, or `Terminated: OOMKilled` of a console.
    fn section(&mut self, field: Field, first: &str, value: &str, line: usize) {
        if let (Field::Terminated, Some(w @ Word::End(..))) = (field, word(first)) {
            return self.word(w, line);
        }
        let opens =
            value.is_empty() || super::pairs::pairs(head(value)).first().is_some_and(|p| p.start == 0);
        if !opens {
            return;
        }
        let kind = match field {
            Field::Terminated => Kind::Terminated,
            Field::Waiting => Kind::Waiting,
            _ => Kind::Running,
        };
        if self.draft.run().is_some_and(|r| r.kind != Kind::Untold) {
            self.container();
        }
        if self.draft.of == Of::Neither {
            self.draft.of = Of::Now;
        }
        self.draft.lines.push(line);
        if let Some(run) = self.draft.run_mut() {
            run.kind = kind;
        }
    }

    /// A word of a status, labelled or not.
    pub(super) fn word(&mut self, found: Word, line: usize) {
        match found {
            Word::End(reason, blurred) => {
                let run = self.ended(|t| t.reason.is_empty());
                reason.clone_into(&mut run.end.reason);
                run.end.blurred |= blurred;
                self.draft.sure |= reason != ENDED_CLEANLY;
            }
            Word::Wait(reason) => {
                let free = self.draft.now.end.reason.is_empty()
                    && matches!(self.draft.now.kind, Kind::Untold | Kind::Waiting);
                if !free {
                    self.container();
                }
                self.draft.now.kind = Kind::Waiting;
                reason.clone_into(&mut self.draft.now.end.reason);
                self.draft.of = Of::Now;
                self.draft.sure = true;
            }
            Word::Terminated | Word::Waiting | Word::Running => return,
        }
        self.draft.lines.push(line);
    }

    /// An exit code. `full`: under a label that only a container's status has.
    pub(super) fn code(&mut self, code: i64, blurred: bool, full: bool, line: usize) {
        let run = self.ended(|t| t.exit_code.is_none());
        run.end.exit_code = Some(code);
        run.end.blurred |= blurred;
        self.draft.sure |= full;
        self.draft.lines.push(line);
    }

    /// The run that ended and lacks what comes next; the next container's where this one has all.
    fn ended(&mut self, lacks: impl Fn(&Termination) -> bool) -> &mut Run {
        let d = &self.draft;
        let of = match d.of {
            Of::Now if d.now.kind == Kind::Untold || d.now.kind == Kind::Terminated && lacks(&d.now.end) => {
                Some(Of::Now)
            }
            Of::Last
                if d.last.kind == Kind::Untold || d.last.kind == Kind::Terminated && lacks(&d.last.end) =>
            {
                Some(Of::Last)
            }
            // It waits or runs now: the end is that of the run before.
            _ if matches!(d.now.kind, Kind::Waiting | Kind::Running) && d.last.kind == Kind::Untold => {
                Some(Of::Last)
            }
            Of::Neither => Some(Of::Now),
            _ => None,
        };
        let of = of.unwrap_or_else(|| {
            self.container();
            Of::Now
        });
        self.draft.of = of;
        let run = if of == Of::Last { &mut self.draft.last } else { &mut self.draft.now };
        run.kind = Kind::Terminated;
        run
    }

    fn time(&mut self, field: Field, value: &str, line: usize) {
        let Some(at) = stamp(value) else { return };
        let Some(run) = self.draft.run_mut() else { return };
        let slot = if field == Field::Started { &mut run.end.started } else { &mut run.end.finished };
        if slot.is_none() {
            *slot = Some(at);
            self.draft.lines.push(line);
        }
    }

    fn memory(&mut self, first: &str, line: usize) {
        let Some(bytes) = parse_k8s_memory(first) else { return };
        match self.draft.section {
            Some(Field::Limits) => self.draft.limit = self.draft.limit.or(Some(bytes)),
            Some(Field::Requests) => self.draft.request = self.draft.request.or(Some(bytes)),
            _ => return,
        }
        self.draft.lines.push(line);
    }

    /// The limit that a command asked for.
    pub(super) fn limit(&mut self, bytes: Bytes) {
        self.draft.limit = self.draft.limit.or(Some(bytes));
    }

    /// The container is told; the next one begins.
    pub(super) fn container(&mut self) {
        let draft = std::mem::take(&mut self.draft);
        if !draft.sure || !draft.tells() || self.containers >= MAX_CONTAINERS {
            // A limit that was asked for before the reason stays.
            self.draft.limit = draft.limit;
            return;
        }
        self.containers += 1;
        self.used.extend(&draft.lines);
        self.pod.containers.push(Container {
            name: draft.name.unwrap_or_default(),
            image: draft.image.unwrap_or_default(),
            memory_limit: draft.limit,
            memory_request: draft.request,
            status: Some(ContainerStatus {
                restarts: draft.restarts,
                ready: draft.ready,
                state: draft.now.state(),
                last: draft.last.state(),
                container_id: draft.id,
            }),
            ..Container::default()
        });
    }

    /// The pod is told; the next one begins.
    pub(super) fn close(&mut self) {
        self.container();
        let pod = std::mem::take(&mut self.pod);
        if !pod.containers.is_empty() {
            self.pods.push(pod);
        }
    }

    /// The pods, and the lines that they were read from.
    pub(super) fn finish(mut self, file: &str) -> (Vec<Pod>, Vec<usize>) {
        self.close();
        for pod in &mut self.pods {
            file.clone_into(&mut pod.file);
            pod.extent = Extent::Piece;
        }
        self.used.sort_unstable();
        self.used.dedup();
        (self.pods, self.used)
    }
}

impl Draft {
    fn run(&self) -> Option<&Run> {
        match self.of {
            Of::Neither => None,
            Of::Now => Some(&self.now),
            Of::Last => Some(&self.last),
        }
    }

    fn run_mut(&mut self) -> Option<&mut Run> {
        match self.of {
            Of::Neither => None,
            Of::Now => Some(&mut self.now),
            Of::Last => Some(&mut self.last),
        }
    }

    /// A state, or an end with its reason or code: what a name alone is not.
    fn tells(&self) -> bool {
        let ended =
            |r: &Run| r.kind == Kind::Terminated && (r.end.exit_code.is_some() || !r.end.reason.is_empty());
        let alive =
            self.now.kind == Kind::Running && (self.ready.is_some() || self.now.end.started.is_some());
        ended(&self.now) || ended(&self.last) || self.now.kind == Kind::Waiting || alive
    }
}

impl Run {
    fn state(self) -> State {
        match self.kind {
            Kind::Untold => State::None,
            Kind::Running => State::Running { started: self.end.started },
            Kind::Waiting => State::Waiting { reason: self.end.reason, message: String::new() },
            Kind::Terminated => State::Terminated(self.end),
        }
    }
}

/// As much of a value as the next field needs to show: a joined line is not read again for each of its fields.
fn head(value: &str) -> &str {
    let end = value.char_indices().nth(200).map_or(value.len(), |(i, _)| i);
    value.get(..end).unwrap_or(value)
}

/// Behind the value stands nothing, or another field: "State: Terminated is what I saw" is a sentence.
fn closed(value: &str, first: &str) -> bool {
    let value = head(value);
    let behind = value.split_once(first).map_or("", |(_, b)| b).trim_start();
    behind.is_empty()
        || behind.starts_with([',', '/', '|', '(', ')', ';'])
        || !super::pairs::pairs(value).is_empty()
}

fn stamp(value: &str) -> Option<Stamp> {
    let first = value.split([' ', ',']).next().unwrap_or_default();
    // A described time goes up to its zone; what follows in a joined line is another field.
    let zone = value.find(['+', '-']).and_then(|at| value.get(..at + 5));
    parse_rfc3339(first).or_else(|| describe::stamp(zone?))
}

/// What Kubernetes and Docker allow as a name.
pub(super) fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    !text.is_empty()
        && text.len() <= 253
        && text.starts_with(plain)
        && text.chars().all(|c| plain(c) || matches!(c, '-' | '.' | '_'))
}
