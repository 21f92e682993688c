//! The ways in which a message says that memory is missing.

use super::lex::Token;
use super::lexicon::*;
use super::look::Words;

/// What kind of lack it is, which tells the plane where no word does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Out of, not enough, refused.
    Plain,
    /// The words for errno 12, which the host's kernel answers.
    Errno,
    /// `std::bad_alloc`, `MemoryError`: the language's own heap, unless a card is named.
    Heap,
    /// A process was killed for it.
    Kill,
    /// `out of resources`: a device's, or nothing.
    Resources,
    /// A process or container is said to be out of memory: the host's, where no card is named.
    Holder,
    /// Above a limit that somebody set: of a process, where no card is named.
    Limit,
}

/// Such a place in the line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lack {
    pub(super) kind: Kind,
    pub(super) from: usize,
    pub(super) to: usize,
}

/// All of them, in the order of the line, and whether the line speaks of one that did not happen.
pub(super) fn lacks(text: &str, tokens: &[Token]) -> (Vec<Lack>, bool) {
    let words = Words { text, tokens };
    let mut found: Vec<Lack> = Vec::new();
    let mut hedged = false;
    for i in 0..tokens.len() {
        if found.last().is_some_and(|l| i <= l.to) || words.is_reason(i) || i > 0 && words.is_reason(i - 1) {
            continue;
        }
        match words.at(i) {
            Some(lack) if words.is_hedged(&lack) => hedged = true,
            Some(lack) => found.push(lack),
            None => {}
        }
    }
    (found, hedged)
}

impl Words<'_> {
    /// `OOMKilled`, as Kubernetes and Docker write it: a field, a reason or somebody's word for it, which has readers of its
    /// own.
    fn is_reason(&self, i: usize) -> bool {
        let adjacent =
            self.tokens.get(i).zip(self.tokens.get(i + 1)).is_some_and(|(oom, kill)| oom.end == kill.at);
        adjacent && self.is(i, OOM) && self.named(i + 1, &["kill", "killed"])
    }

    fn at(&self, i: usize) -> Option<Lack> {
        let lack = |kind, from, to| Some(Lack { kind, from, to });
        let t = self.tokens.get(i)?;
        if t.roles & OUT != 0
            && let Some((kind, to)) = self.out_of(i)
        {
            return lack(kind, i, to);
        }
        if t.roles & OOM != 0
            && let Some((kind, to)) = self.oom(i)
        {
            return lack(kind, i, to);
        }
        if t.roles & KILL != 0
            && let Some(to) = self.killed(i)
        {
            return lack(Kind::Kill, i, to);
        }
        if let Some((kind, to)) = self.heap_error(i) {
            return lack(kind, i, to);
        }
        if t.roles & ALLOCATE != 0
            && let Some(from) = self.allocation_error(i)
        {
            return lack(Kind::Plain, from, i + 1);
        }
        if t.roles & LACK != 0
            && let Some((from, to)) = self.lacking(i)
        {
            return lack(Kind::Plain, from, to);
        }
        if t.roles & NOT != 0
            && let Some((from, to)) = self.not_enough(i).or_else(|| self.does_not_fit(i))
        {
            return lack(Kind::Plain, from, to);
        }
        if t.roles & FAIL != 0
            && let Some((kind, from, to)) = self.refused(i)
        {
            return lack(kind, from, to);
        }
        if t.roles & EXCEED != 0
            && let Some((kind, from, to)) = self.exceeds(i)
        {
            return lack(kind, from, to);
        }
        if t.roles & ASKS != 0
            && let Some((from, to)) = self.asks_more(i).map(|to| (i, to)).or_else(|| self.tried(i))
        {
            return lack(Kind::Plain, from, to);
        }
        None
    }
}
