//! Sentences that say that memory was asked for and not given.

use super::lack::Kind;
use super::lexicon::*;
use super::look::Words;

impl Words<'_> {
    pub(super) fn refused(&self, i: usize) -> Option<(Kind, usize, usize)> {
        if let Some(verb) = self.ahead(i, 4, ALLOCATE | TAKE).filter(|v| !self.parted(i, *v)) {
            // "failed to get the allocation": what failed is another verb.
            let between = |j: usize| {
                self.is(j, MEMORY | GPU | DEVICE | HOST | KV | PAGES | PREFIX | NUMBER | OWNER)
                    || self.named(
                        j,
                        &[
                            "to",
                            "be",
                            "in",
                            "during",
                            "on",
                            "while",
                            "a",
                            "an",
                            "the",
                            "pre",
                            "re",
                            "not",
                            "t",
                            "dynamically",
                            "even",
                            "locally",
                        ],
                    )
            };
            if !(i + 1..verb).all(between) {
                return None;
            }
            let object = |j: &usize| {
                self.same(i, *j) && !self.named(*j, &["the", "a", "an", "to", "for", "of", "enough"])
            };
            let first = (verb + 1..=verb + 3).find(object);
            let errno = self.named(i, &["cannot"])
                && self.named(i + 1, &["allocate"])
                && self.named(i + 2, &["memory"])
                && !self.named(i + 3, &["on", "for", "in", "of", "from"]);
            if errno {
                return Some((Kind::Errno, i, i + 2));
            }
            let what = (verb + 1..=verb + 7)
                .take_while(|j| self.same(i, *j) && !self.parted(verb, *j))
                .find(|j| self.is(*j, MEMORY | UNIT));
            if self.named(verb, &["find"]) {
                let slot = self
                    .ahead(verb, 8, KV)
                    .or_else(|| self.ahead(verb, 4, PAGES).filter(|_| self.ahead(verb, 4, MEMORY).is_some()));
                return slot.filter(|j| !self.parted(verb, *j)).map(|j| (Kind::Plain, i, j));
            }
            let other = first.is_some_and(|j| self.is(j, OTHER) && !self.is(j + 1, MEMORY))
                || (verb + 1..=verb + 2).any(|j| self.is(j, OTHER) && !self.is(j + 1, MEMORY));
            let strong = self.is(verb, ALLOCATE);
            if !other && (strong || what.is_some()) {
                return Some((Kind::Plain, i, what.unwrap_or(verb)));
            }
        }
        let verb = self.behind(i, 12, ALLOCATE).filter(|_| !self.is(i, NOT))?;
        if (verb.saturating_sub(2)..verb).any(|j| self.same(i, j) && self.is(j, OTHER))
            || self.is(verb + 1, OTHER)
        {
            return None;
        }
        // A device plugin's "Allocate failed" is of cards.
        let call = self.named(verb, &["allocate"]) && self.behind(i, 12, MEMORY).is_none();
        (!call && self.ahead(i, 8, OTHER).is_none()).then_some((Kind::Plain, verb, i))
    }

    pub(super) fn heap_error(&self, i: usize) -> Option<(Kind, usize)> {
        let joined = |j: usize| self.tokens.get(j).is_some_and(|t| t.joined);
        // cudaErrorMemoryAllocation, CL_MEM_OBJECT_ALLOCATION_FAILURE.
        let of_card = self.is(i, ALLOCATE)
            && joined(i)
            && self.is(i.wrapping_sub(1), MEMORY)
            && i >= 3
            && self.named(i - 2, &["error"])
            && joined(i - 1)
            && joined(i - 2)
            && self.is(i - 3, GPU | PREFIX);
        if of_card {
            return Some((Kind::Plain, i));
        }
        let bad = self.named(i, &["bad"]) && self.named(i + 1, &["alloc"]) && joined(i + 1);
        let error = self.named(i, &["memory"])
            && self.named(i + 1, &["error", "exception"])
            && joined(i + 1)
            && self
                .tokens
                .get(i)
                .is_some_and(|t| self.text.as_bytes().get(t.at).is_some_and(u8::is_ascii_uppercase))
            && !(joined(i) && self.is(i.wrapping_sub(1), OF))
            && self.word(i + 1).starts_with('E');
        (bad || error).then_some((Kind::Heap, i + 1))
    }

    /// "CUDA memory allocation error": the noun says what a verb would.
    pub(super) fn allocation_error(&self, i: usize) -> Option<usize> {
        let memory = i.checked_sub(1).filter(|m| self.is(*m, MEMORY) && self.same(*m, i))?;
        let error = self.named(i, &["allocation"]) && self.named(i + 1, &["error", "fault"]);
        let apart = self.apart(i + 1) == " " && !self.tokens.get(i).is_some_and(|t| t.joined);
        let owner =
            memory.checked_sub(1).filter(|o| self.is(*o, GPU | DEVICE | HOST | KV) && self.same(*o, i));
        (error && apart).then(|| owner.unwrap_or(memory))
    }

    pub(super) fn tried(&self, i: usize) -> Option<(usize, usize)> {
        let verb = Some(i + 2)
            .filter(|v| self.named(i + 1, &["to"]) && self.is(*v, ALLOCATE | TAKE) && self.same(i, *v))?;
        // "attempting to allocate 3.00G. That was not possible": the next sentence says how it went.
        let possible = |j: &usize| self.named(*j, &["possible"]) && self.is(j.wrapping_sub(1), NOT);
        if self.is(verb, ALLOCATE)
            && self.is(verb + 1, NUMBER)
            && let Some(end) = (verb + 2..verb + 9).find(possible)
        {
            return Some((i, end));
        }
        let what = self.ahead(verb, 5, MEMORY)?;
        self.behind(i, 8, FAIL).map(|from| (from, what))
    }

    pub(super) fn asks_more(&self, i: usize) -> Option<usize> {
        let reach = (i + 1..i + 40).take_while(|j| self.same(i, *j));
        let but = reach.clone().find(|j| self.named(*j, &["only"]))?;
        let amount = |mut js: std::ops::Range<usize>| js.any(|j| self.is(j, UNIT | KV | PAGES | MEMORY));
        // "needs 900 blocks but the KV cache has only 512".
        if self.is(but + 1, NUMBER) && self.is(i + 1, NUMBER) && (i..but).any(|j| self.is(j, KV)) {
            return Some(but + 1);
        }
        let to = (but..but + 12).take_while(|j| self.same(i, *j)).find(|j| self.is(*j, AVAILABLE))?;
        (amount(i..but) && amount(but..but + 12)).then_some(to)
    }
}
