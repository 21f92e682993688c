//! Checks entries of `knowledge/` the way the walk-all test does, so that a team's own entries are held to the same rules.

use std::collections::BTreeSet;

use super::signature::{Mark, Signature};
use super::{Examples, HeadExamples, Knowledge, Match, pattern};
use crate::text::strip_ansi;
use dualplane_base::Class;
use dualplane_engines::command_line::{program_words, shell};
use dualplane_engines::{Descriptor, Engines, Kind};

/// Shorter literals hit everywhere and make the prefilter useless.
const SHORTEST_LITERAL: usize = 4;

/// One rule that an entry breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Signature id.
    pub id: String,
    /// What is wrong and what to do.
    pub what: String,
}

/// Checks signatures with their examples; an empty list means that all is well.
#[must_use]
pub fn check(knowledge: &Knowledge, examples: &[Examples]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    for e in examples {
        let mut say = |what: String| problems.push(Problem { id: e.id.clone(), what });
        if !seen.insert(e.id.as_str()) {
            say("the ID is used twice".into());
        }
        let Some(s) = knowledge.signatures().iter().rev().find(|s| s.id == e.id) else {
            say("the entry was not loaded".into());
            continue;
        };
        entry(s, &mut say);
        if e.hits.is_empty() {
            say("it has no examples: add at least one real line".into());
        }
        if e.misses.is_empty() {
            say("it has no near_misses: add at least one similar line that must not match".into());
        }
        for line in e.hits.iter().filter(|l| !hits(knowledge, &e.id, l, true)) {
            say(format!("its example does not match: {line}"));
        }
        for line in e.misses.iter().filter(|l| hits(knowledge, &e.id, l, false)) {
            say(format!("its near miss matches: {line}"));
        }
    }
    problems
}

/// Checks engines' heads with their examples.
#[must_use]
pub fn check_heads(knowledge: &Knowledge, examples: &[HeadExamples]) -> Vec<Problem> {
    let engines = knowledge.engines();
    let mut problems = Vec::new();
    for e in examples {
        let mut say = |what: String| problems.push(Problem { id: format!("engine {}", e.id), what });
        let Some(head) = engines.iter().find(|d| d.id == e.id) else {
            say("the head was not loaded".into());
            continue;
        };
        head_of(head, engines, &mut say);
        let image =
            |i: &String| engines.by_image(i).is_some_and(|n| n.engine.id == e.id || n.server.id == e.id);
        let command = |c: &String| {
            let words = shell(c, &[]).concat();
            let found = engines.by_command(&words).map(|(d, _)| d);
            found.or_else(|| engines.by_program(program_words(&words))).is_some_and(|d| d.id == e.id)
        };
        let process = |p: &String| engines.serves_models(p) && engines.may_own(Some(head), p);
        each("image", &e.images, image, &mut say);
        each("command", &e.commands, command, &mut say);
        each("process", &e.processes, process, &mut say);
        if head.kind != Kind::Helper && e.images[0].is_empty() && e.commands[0].is_empty() {
            say("it has no examples: give an image or a command".into());
        }
    }
    problems
}

fn each(
    what: &str,
    [hits, misses]: &[Vec<String>; 2],
    is: impl Fn(&String) -> bool,
    say: &mut impl FnMut(String),
) {
    for x in hits.iter().filter(|x| !is(x)) {
        say(format!("its {what} is not recognised: {x}"));
    }
    for x in misses.iter().filter(|x| is(x)) {
        say(format!("a near miss is recognised by its {what}: {x}"));
    }
}

fn head_of(head: &Descriptor, engines: &Engines, say: &mut impl FnMut(String)) {
    if head.parent.as_deref().is_some_and(|p| engines.get(p).is_none_or(|d| d.parent.is_some())) {
        say("its parent is no engine, or has a parent itself".into());
    }
    let lower = |w: &&String| w.chars().any(char::is_uppercase);
    if let Some(word) = head.images.iter().chain(&head.processes).chain(&head.helpers).find(lower) {
        say(format!("{word:?} is compared in small letters"));
    }
    let pools = head.host_pool.iter();
    for p in pools.filter(|p| !p.flags.is_empty() && crate::units::unit_bytes(&p.unit).is_none()) {
        say(format!("the unit {:?} of {} is none", p.unit, p.name));
    }
    if engines.iter().filter(|d| d.usual).count() > 1 {
        say("only one engine can be the usual one".into());
    }
}

fn entry(s: &Signature, say: &mut impl FnMut(String)) {
    let stem = s.file.rsplit('/').next().unwrap_or_default();
    if !s.id.starts_with(&format!("{stem}.")) {
        say(format!("its ID must begin with the file name: {stem}.…"));
    }
    if s.literals.is_empty() {
        say("it has no literals: they are the prefilter for its lines".into());
    }
    for l in s.literals.iter().filter(|l| l.len() < SHORTEST_LITERAL) {
        say(format!("its literal {l:?} is shorter than {SHORTEST_LITERAL} bytes"));
    }
    match (s.mark, s.class) {
        (Mark::Fatal | Mark::Degraded | Mark::Suspect, None | Some(Class::NotMemory | Class::Unknown)) => {
            say("mark fatal, degraded and suspect need a memory class or xid_hardware".into());
        }
        (Mark::Failure | Mark::Refused, class) if class != Some(Class::NotMemory) => {
            say("marks failure and refused need class not_memory".into())
        }
        (Mark::Phase, _) if s.phase.is_none() => say("mark phase needs a phase".into()),
        _ => {}
    }
    let pairs = s.changed.iter().chain(&s.unchanged).flatten();
    for group in pairs.filter(|g| s.pattern.as_ref().is_none_or(|p| !p.contains(&format!("(?P<{g}>")))) {
        say(format!("it compares the group {group:?}, which its pattern does not have"));
    }
    if s.doubt.is_some() && !matches!(s.mark, Mark::Failure | Mark::Fatal) {
        say("doubt needs mark failure or fatal".into());
    }
    if s.any_level && s.mark != Mark::Failure {
        say("any_level needs mark failure".into());
    }
    if s.other_rank && s.mark != Mark::Cascade {
        say("other_rank needs mark cascade".into());
    }
    if s.host_memory.is_some() && s.class != Some(Class::HostAllocFailure) {
        say("host_memory needs class host_alloc_failure".into());
    }
    if let Some(p) = &s.pattern
        && let Err(error) = pattern::check(p)
    {
        say(format!("its pattern does not compile: {error}"));
    }
}

fn hits(knowledge: &Knowledge, id: &str, line: &str, context: bool) -> bool {
    let is = |m: &Match| knowledge.signature(m.id).is_some_and(|s| s.id == id);
    // Its own context stands near an example, not that of every other entry.
    let own = knowledge.signatures().iter().rev().find(|s| s.id == id).map(|s| &*s.context);
    let near = |word: &str| context && own.unwrap_or_default().iter().any(|c| c == word);
    knowledge.matches(&strip_ansi(line), near).iter().any(is)
}
