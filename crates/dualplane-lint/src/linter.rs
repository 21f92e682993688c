//! Holds objects against the rules: each alone as it comes, and all against each other at the end.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use dualplane_base::json::str_at;
use serde_json::Value;

use crate::checks::{self, Run, Said, Seen, Server};
use crate::expression::{Expression, Scope, of};
use crate::finding::{Edit, Finding, Severity};
use crate::memo::Memo;
use crate::object::{COMPOSE, Object, Pods, containers, is_of_interest, is_owned, kinds_with_pods, volumes};
use crate::planned::Planner;
use crate::reads::Reads;
use crate::rule::{Each, Rule, Rules};
use crate::server::{Known, has_gpu, haystack};
use crate::suppress;

/// Answers that are kept of each rule, some 200 bytes each.
const MEMO: usize = 512;
/// A longer question is asked anew: to keep it costs more.
const LONGEST: usize = 4096;

/// What to look for.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Card of servers whose manifest names none.
    pub card: Option<String>,
    /// Only these rules; all where empty.
    pub only: Vec<String>,
    /// Rules that are not looked for.
    pub disabled: Vec<String>,
    /// The least severity.
    pub least: Option<Severity>,
}

/// What one object gave.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Findings; their lines are those of the document until somebody looks them up.
    pub findings: Vec<Finding>,
    /// Those that an annotation of the object suppresses.
    pub suppressed: u64,
    /// No rule looks at its kind.
    pub unknown: bool,
    /// Containers that ask for a GPU and are no server that is known, in words: no rule looked at them.
    pub not_known: Vec<String>,
}

/// A rule, ready to be asked.
struct Compiled {
    rule: &'static Rule,
    holds: Option<Expression>,
    check: Option<Run>,
    values: BTreeMap<&'static str, Expression>,
    set: Option<Expression>,
    /// What all of these expressions read, told when they are asked first.
    reads: OnceLock<Reads>,
    memo: Memo<Vec<u8>, Option<Arc<Told>>>,
}

/// What the expressions of a rule say of what does not hold.
#[derive(Debug)]
struct Told {
    said: Said,
    /// The fix as a value.
    set: Option<Value>,
}

impl Compiled {
    fn reads(&self) -> &Reads {
        self.reads.get_or_init(|| {
            let mut reads = Reads::default();
            let all = self.holds.iter().chain(self.values.values()).chain(&self.set);
            all.for_each(|e| e.reads(&mut reads));
            reads
        })
    }

    /// What it says of a part; none where all is well.
    fn told(&self, part: &Part<'_>) -> Option<Arc<Told>> {
        let holds = self.holds.as_ref()?;
        let ask = || self.asked(holds, part.scope()).map(Arc::new);
        let key = self.reads().key(&part.variables);
        if key.len() > LONGEST { ask() } else { self.memo.get(key, ask) }
    }

    fn asked(&self, holds: &Expression, scope: &Scope<'_>) -> Option<Told> {
        if holds.holds(scope) != Ok(false) {
            return None;
        }
        let values: BTreeMap<&str, String> =
            self.values.iter().filter_map(|(k, e)| Some((*k, e.text(scope)?))).collect();
        let fill =
            |text: &str| values.iter().fold(text.to_owned(), |t, (k, v)| t.replace(&format!("{{{k}}}"), v));
        let said = Said { message: fill(&self.rule.message), fix: fill(&self.rule.fix), ..Said::default() };
        Some(Told { said, set: self.set.as_ref().and_then(|e| e.json(scope)) })
    }
}

/// The rules with what they need.
pub struct Linter {
    rules: Vec<Compiled>,
    known: Known,
    planner: Planner,
    seen: Mutex<Seen>,
}

impl std::fmt::Debug for Linter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Linter of {} rules", self.rules.len())
    }
}

/// Something that a rule looks at.
struct Part<'a> {
    /// In words: `container server`.
    name: String,
    pointer: String,
    value: &'a Value,
    haystack: Option<&'a str>,
    /// Names of expressions for it and for what it stands in.
    variables: Vec<(&'static str, &'a Value)>,
    /// They as expressions want them, where one is asked.
    scope: OnceCell<Scope<'a>>,
}

impl<'a> Part<'a> {
    fn new(name: String, pointer: String, variables: Vec<(&'static str, &'a Value)>) -> Self {
        let value = variables.last().map_or(&Value::Null, |(_, v)| v);
        Self { name, pointer, value, haystack: None, variables, scope: OnceCell::new() }
    }

    fn scope(&self) -> &Scope<'a> {
        self.scope.get_or_init(|| {
            let mut scope = Scope::new();
            self.variables.iter().for_each(|(name, value)| scope.set(name, of(value)));
            scope
        })
    }
}

impl Linter {
    /// A linter of the embedded rules.
    #[must_use]
    pub fn new(options: &Options) -> Self {
        Self::with_memo(options, MEMO)
    }

    /// One that keeps so many answers of each rule.
    pub(crate) fn with_memo(options: &Options, most: usize) -> Self {
        let all = Rules::embedded();
        let wanted = |r: &&Rule| {
            (options.only.is_empty() || options.only.contains(&r.id))
                && !options.disabled.contains(&r.id)
                && options.least.is_none_or(|l| r.severity >= l)
        };
        let compile = |rule: &'static Rule| Compiled {
            rule,
            holds: rule.holds.as_deref().map(Expression::new),
            check: rule.check.as_deref().and_then(checks::named),
            values: rule.values.iter().map(|(k, v)| (k.as_str(), Expression::new(v))).collect(),
            set: rule.set.as_ref().map(|s| Expression::new(&s.value)),
            reads: OnceLock::new(),
            memo: Memo::new(most),
        };
        Self {
            rules: all.list().iter().filter(wanted).map(compile).collect(),
            known: Known::new(&all.servers),
            planner: Planner::new(options.card.clone()),
            seen: Mutex::default(),
        }
    }

    /// Findings of one object.
    #[must_use]
    pub fn object(&self, object: &Object) -> Outcome {
        let mut out = Outcome::default();
        if !is_of_interest(&object.kind) {
            out.unknown = true;
            return out;
        }
        // What a workload of the same cluster owns is told of that workload.
        if is_owned(&object.value) {
            return out;
        }
        let pods = object.pods();
        let servers = |pod: &Pods<'_>| containers(pod).any(|(_, c)| self.known.is_server(c));
        let serving: Vec<&Pods<'_>> = pods.iter().filter(|p| servers(p)).collect();
        if pods.is_empty() && kinds_with_pods().any(|k| k == object.kind) {
            // Its containers stand elsewhere: KServe takes them from a ServingRuntime.
            out.unknown = true;
            return out;
        } else if pods.is_empty() {
            self.seen().watcher(object);
        } else {
            out.not_known = pods.iter().flat_map(|p| self.not_known(object, p)).collect();
            if serving.is_empty() {
                return out;
            }
        }
        let whole = Part::new(String::new(), String::new(), vec![("object", &object.value)]);
        for compiled in self.of_each(Each::Object, &object.kind) {
            self.ask(compiled, object, &whole, &mut out);
        }
        if object.kind == COMPOSE {
            self.services(object, &mut out);
        }
        for pod in serving {
            self.pod(object, pod, &mut out);
        }
        out
    }

    /// Findings between the objects that were passed.
    #[must_use]
    pub fn end(&self) -> Outcome {
        let seen = self.seen();
        let mut out = Outcome::default();
        for c in self.rules.iter().filter(|c| c.rule.each == Each::All) {
            let Some(Run::All(run)) = c.check else { continue };
            for among in run(&seen) {
                self.tell(c.rule, &among.watcher.object, "", "", &among.said, &mut out);
            }
        }
        out
    }

    /// Whether more objects were passed than are held against each other.
    #[must_use]
    pub fn dropped(&self) -> bool {
        self.seen().dropped
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of_each<'s>(&'s self, each: Each, kind: &'s str) -> impl Iterator<Item = &'s Compiled> {
        self.rules.iter().filter(move |c| c.rule.each == each && c.rule.looks_at(kind))
    }

    fn services(&self, object: &Object, out: &mut Outcome) {
        let services = object.value.get("services").and_then(Value::as_object);
        for (name, s) in services.into_iter().flatten() {
            let as_container =
                serde_json::json!({"image": s.get("image"), "args": s.get("words"), "env": s.get("env")});
            if !self.known.is_server(&as_container) {
                continue;
            }
            let hay = haystack(&as_container);
            let pointer = format!("/services/{}", name.replace('~', "~0").replace('/', "~1"));
            let part = Part {
                haystack: Some(&hay),
                ..Part::new(format!("service {name}"), pointer, vec![("s", s)])
            };
            for compiled in self.of_each(Each::Service, &object.kind) {
                self.ask(compiled, object, &part, out);
            }
        }
    }

    fn not_known<'p>(&'p self, object: &'p Object, pod: &'p Pods<'p>) -> impl Iterator<Item = String> + 'p {
        let unknown = |c: &&Value| has_gpu(c) && !self.known.is_server(c) && !self.known.is_beside(c);
        containers(pod).map(|(_, c)| c).filter(unknown).map(|c| {
            let (kind, name) = (&object.kind, &object.name);
            format!("{kind} {name}, container {} ({})", str_at(c, "/name"), str_at(c, "/image"))
        })
    }

    fn pod(&self, object: &Object, pod: &Pods<'_>, out: &mut Outcome) {
        let whole = Part::new(String::new(), pod.pointer.clone(), vec![("pod", pod.spec)]);
        for compiled in self.of_each(Each::Pod, &object.kind) {
            self.ask(compiled, object, &whole, out);
        }
        for (pointer, v) in volumes(pod) {
            let name = format!("volume {}", str_at(v, "/name"));
            let part = Part::new(name, pointer, vec![("pod", pod.spec), ("v", v)]);
            for compiled in self.of_each(Each::Volume, &object.kind) {
                self.ask(compiled, object, &part, out);
            }
        }
        for (index, (pointer, c)) in containers(pod).enumerate() {
            let hay = haystack(c);
            let name = format!("container {}", str_at(c, "/name"));
            let part =
                Part { haystack: Some(&hay), ..Part::new(name, pointer, vec![("pod", pod.spec), ("c", c)]) };
            for compiled in self.of_each(Each::Container, &object.kind) {
                self.ask(compiled, object, &part, out);
            }
            if !self.known.is_server(c) {
                continue;
            }
            self.seen().workload(object, pod, c);
            let gpu = has_gpu(c);
            for compiled in self.of_each(Each::Server, &object.kind) {
                self.ask(compiled, object, &part, out);
            }
            for compiled in self.of_each(Each::Gpu, &object.kind).filter(|_| gpu) {
                self.ask(compiled, object, &part, out);
            }
            self.checks(object, pod, index, &part, out);
        }
    }

    /// Checks in Rust of one server. Its plan is made once.
    fn checks(&self, object: &Object, pod: &Pods<'_>, index: usize, part: &Part<'_>, out: &mut Outcome) {
        let gpu = has_gpu(part.value);
        let mut wanted = self
            .of_each(Each::Server, &object.kind)
            .chain(self.of_each(Each::Gpu, &object.kind).filter(|_| gpu))
            .filter(|c| c.check.is_some() && mentioned(c.rule, part))
            .peekable();
        if wanted.peek().is_none() {
            return;
        }
        let server = Server { object, pod, c: part.value, plan: self.planner.plan(pod.spec, index) };
        for compiled in wanted {
            if let Some(Run::Server(check)) = compiled.check
                && let Some(said) = check(&server)
            {
                self.tell(compiled.rule, object, &part.name, &part.pointer, &said, out);
            }
        }
    }

    /// One expression on one part.
    fn ask(&self, c: &Compiled, object: &Object, part: &Part<'_>, out: &mut Outcome) {
        if !mentioned(c.rule, part) {
            return;
        }
        let Some(told) = c.told(part) else { return };
        let before = out.findings.len();
        self.tell(c.rule, object, &part.name, &part.pointer, &told.said, out);
        let Some(f) = out.findings.get_mut(before) else { return };
        f.pointer.push_str(&below(&c.rule.at));
        if let (Some(set), Some(value)) = (&c.rule.set, told.set.clone()) {
            let pointer = match set.path.strip_prefix('/') {
                Some(top) => format!("{}{}", object.pointer, below(top)),
                None => format!("{}{}{}", object.pointer, part.pointer, below(&set.path)),
            };
            f.edits.push(Edit { pointer, value });
        }
    }

    fn tell(&self, rule: &Rule, object: &Object, part: &str, pointer: &str, said: &Said, out: &mut Outcome) {
        if suppress::reason(object, &rule.id).is_some() {
            out.suppressed += 1;
            return;
        }
        let pointer = format!("{}{pointer}", object.pointer);
        let edits = said
            .set
            .iter()
            .map(|(at, value)| Edit { pointer: format!("{pointer}{at}"), value: value.clone() });
        out.findings.push(Finding {
            rule: rule.id.clone(),
            severity: rule.severity,
            source: object.source.clone(),
            at: object.source.line,
            kind: object.kind.clone(),
            namespace: object.namespace.clone(),
            name: object.name.clone(),
            part: part.to_owned(),
            edits: edits.collect(),
            pointer: format!("{pointer}{}", said.at),
            message: if said.message.is_empty() { rule.title.clone() } else { said.message.clone() },
            fix: if said.fix.is_empty() { rule.fix.clone() } else { said.fix.clone() },
        });
    }

    /// Errors of expressions on an object: of none of our examples there is any.
    #[cfg(test)]
    pub(crate) fn errors(&self, object: &Object) -> Vec<String> {
        let mut out = Vec::new();
        let mut one = |c: &Compiled, scope: &Scope<'_>| {
            if let Some(Err(e)) = c.holds.as_ref().map(|h| h.holds(scope)) {
                out.push(format!("{}: {e}", c.rule.id));
            }
        };
        let mut top = Scope::new();
        top.set("object", of(&object.value));
        self.of_each(Each::Object, &object.kind).for_each(|c| one(c, &top));
        for pod in object.pods() {
            top.set("pod", of(pod.spec));
            self.of_each(Each::Pod, &object.kind).for_each(|c| one(c, &top));
            for (_, v) in volumes(&pod) {
                top.set("v", of(v));
                self.of_each(Each::Volume, &object.kind).for_each(|c| one(c, &top));
            }
            for (_, container) in containers(&pod) {
                top.set("c", of(container));
                self.of_each(Each::Container, &object.kind).for_each(|c| one(c, &top));
                if self.known.is_server(container) {
                    self.of_each(Each::Server, &object.kind).for_each(|c| one(c, &top));
                    if has_gpu(container) {
                        self.of_each(Each::Gpu, &object.kind).for_each(|c| one(c, &top));
                    }
                }
            }
        }
        out
    }
}

fn mentioned(rule: &Rule, part: &Part<'_>) -> bool {
    rule.mentions.is_empty()
        || part.haystack.is_none_or(|h| rule.mentions.iter().any(|w| h.contains(w.as_str())))
}

/// `a.b` as `/a/b`.
fn below(path: &str) -> String {
    path.split('.').filter(|s| !s.is_empty()).map(|s| format!("/{s}")).collect()
}
