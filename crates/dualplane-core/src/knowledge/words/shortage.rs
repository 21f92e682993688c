//! Sentences that say that there is too little: out of memory, not enough of it, it does not fit.

use super::lack::Kind;
use super::lexicon::*;
use super::look::Words;

impl Words<'_> {
    pub(super) fn out_of(&self, i: usize) -> Option<(Kind, usize)> {
        if !self.is(i + 1, OF) {
            return None;
        }
        let what = self.noun(i + 1, 5)?;
        if self.named(what, &["resources"]) {
            return Some((Kind::Resources, what));
        }
        // .NET names its heap so; a library of a card puts its own name before it.
        let exception =
            self.named(what + 1, &["exception"]) && self.tokens.get(what + 1).is_some_and(|t| t.joined);
        let owned = (i.saturating_sub(6)..i).any(|j| self.is(j, OWNER | GPU));
        let kind = if exception && !owned {
            Kind::Heap
        } else if (i.saturating_sub(4)..i).any(|j| self.named(j, &["137"])) {
            Kind::Kill
        } else if (i.saturating_sub(8)..i).any(|j| self.same(i, j) && self.is(j, HOLDER)) {
            Kind::Holder
        } else {
            Kind::Plain
        };
        Some((kind, what))
    }

    pub(super) fn noun(&self, i: usize, reach: usize) -> Option<usize> {
        let mut kv = false;
        for j in i + 1..=i + reach {
            if !self.same(i, j) {
                return None;
            }
            kv |= self.is(j, KV | PAGES);
            if self.is(j, MEMORY) && !self.named(j, &["tensor", "tensors"]) || self.named(j, &["resources"]) {
                // Room is also made on disks, in lists and in windows.
                let vague = self.named(j, &["space", "room"]);
                // "not enough space in /dev/shm".
                if vague && let Some(k) = self.ahead(j, 4, HOST).filter(|k| self.is(*k, MEMORY)) {
                    return Some(k);
                }
                // "insufficient space for model and cache on device split": what is placed there is no file.
                let placed = ["model", "models", "weights", "layer", "layers", "tensor", "tensors", "cache"];
                let place = self.ahead(j, 8, GPU | DEVICE);
                if vague && let Some(k) = place.filter(|k| (j + 1..*k).any(|m| self.named(m, &placed))) {
                    return Some(k);
                }
                if vague && !(i + 1..j).any(|k| self.is(k, GPU | DEVICE | HOST | KV | PAGES | MEMORY)) {
                    return None;
                }
                // "device memory", "heap space": the last of them.
                return Some(if self.is(j + 1, MEMORY) && self.same(j, j + 1) { j + 1 } else { j });
            }
            if kv && !self.is(j + 1, KV | PAGES | MEMORY | LIMIT) {
                return self.is(j, KV | PAGES).then_some(j);
            }
            let describes = self.is(j, GPU | DEVICE | HOST | KV | PAGES | LIMIT | PREFIX | OWNER | NUMBER)
                || self.named(
                    j,
                    &[
                        "the",
                        "a",
                        "any",
                        "more",
                        "contiguous",
                        "physical",
                        "virtual",
                        "total",
                        "local",
                        "shared",
                        "usable",
                        "enough",
                        "unified",
                        "global",
                        "dedicated",
                        "on",
                        "private",
                        "managed",
                        "onboard",
                        "to",
                        "its",
                        "this",
                        "free",
                        "process",
                        "native",
                        "memory",
                        "s",
                        "ids",
                        "work",
                        "compute",
                        "overall",
                        "contiguos",
                        "cached",
                        "remote",
                        "persistent",
                        "anonymous",
                        "java",
                        "external",
                        "common",
                        "and",
                        "or",
                        "object",
                        "store",
                        "staging",
                        "work",
                        "allocatable",
                        "sufficient",
                        "scratch",
                    ],
                );
            if !describes {
                return None;
            }
        }
        None
    }

    pub(super) fn lacking(&self, i: usize) -> Option<(usize, usize)> {
        let before = self.named(i, &["insufficient", "insufficiency", "lack", "lacking", "lacks", "low"]);
        if before {
            let from = if self.named(i + 1, &["of", "on"]) { i + 1 } else { i };
            if let Some(to) = self.noun(from, 5).filter(|to| !self.is(to + 1, ABOUT)) {
                let speaks =
                    self.named(i, &["low"]) && !self.named(i + 1, &["on"]) && !self.named(i + 1, &["memory"]);
                return (!speaks && !self.named(to, &["resources"])).then_some((i, to));
            }
            if self.named(i, &["low", "lack", "lacks", "lacking"]) {
                return None;
            }
        }
        // "exhausted device memory".
        if self.named(i, &["exhausted", "exhausting", "depleted"])
            && let Some(to) = self.noun(i, 4).filter(|to| !self.is(to + 1, ABOUT))
        {
            return Some((i, to));
        }
        let from = self.behind(i, 8, MEMORY | KV)?;
        // "the cache is full" and "overflow" are said of much else.
        let plain = self.named(i, &["full", "overflow", "small"]);
        let too = !self.named(i, &["small"]) || self.named(i.wrapping_sub(1), &["too"]);
        let of_memory =
            self.is(from, MEMORY) && !self.named(from, &["buffer", "buffers", "space", "bytes", "workspace"]);
        let near = of_memory && from + 2 >= i || self.is(from, KV) && from + 6 >= i;
        (!plain || near && too).then_some((from, i))
    }

    pub(super) fn not_enough(&self, i: usize) -> Option<(usize, usize)> {
        let enough =
            self.ahead(i, 3, ENOUGH).or_else(|| (i + 1..=i + 3).find(|j| self.named(*j, &["sufficient"])));
        if let Some(j) = enough.filter(|j| self.same(i, *j)) {
            if let Some(to) = self.noun(j, 6).filter(|to| !self.named(*to, &["resources"])) {
                return Some((i, self.purpose(to)));
            }
            // "memory isn't enough": what is not enough stands before.
            let from = self.behind(i, 7, MEMORY | KV)?;
            return Some((from, j));
        }
        // "memory is not available": right before, so that what is named after memory is none.
        if self.named(i + 1, &["available"]) && !self.named(i, &["no"]) {
            let is = usize::from(self.named(i.wrapping_sub(1), &["is", "are", "was"]));
            return i
                .checked_sub(1 + is)
                .filter(|m| self.is(*m, MEMORY) && self.same(*m, i))
                .map(|m| (m, i + 1));
        }
        if !self.named(i, &["no"]) {
            return None;
        }
        let free = (i + 1..=i + 3).find(|j| self.is(*j, AVAILABLE) || self.named(*j, &["more"]));
        let leaves = self.named(i.wrapping_sub(1), &["leave", "leaves", "leaving", "left"]);
        let to = self.noun(i, 4)?;
        let is = usize::from(self.named(to + 1, &["is", "are", "was"]));
        // What is not set up is not short.
        if self.named(to + 1, &["reported", "found", "detected", "configured", "mounted"]) {
            return None;
        }
        let said = free.is_some() || leaves || self.is(to + 1, FOR) || self.is(to + is + 1, AVAILABLE);
        let disk = self.named(to, &["space"]) && !self.is(to.wrapping_sub(1), MEMORY | GPU | HOST | KV);
        (said && !disk && !self.is(to + 1, ABOUT)).then_some((i, to))
    }

    /// "… GPU memory to allocate the KV cache": what it was wanted for says what is too small.
    fn purpose(&self, to: usize) -> usize {
        let for_it = (to + 1..=to + 3).find(|j| self.same(to, *j) && self.is(*j, ALLOCATE | FOR));
        let kv = for_it.and_then(|f| self.ahead(f, 3, KV)).filter(|k| !self.parted(to, *k));
        kv.unwrap_or(to)
    }

    pub(super) fn does_not_fit(&self, i: usize) -> Option<(usize, usize)> {
        let fit = self.ahead(i, 4, FIT)?;
        let place = |j: &usize| self.is(*j, MEMORY | GPU | DEVICE | HOST | KV | PAGES) && !self.is(*j, UNIT);
        let to = (fit + 1..=fit + 10).take_while(|j| self.same(fit, *j)).filter(place).last();
        let from = (i.saturating_sub(6)..i)
            .find(|j| self.same(i, *j) && self.is(*j, GPU | HOST | KV | MEMORY) && !self.is(*j, UNIT));
        match (from, to) {
            (_, Some(to)) => Some((i, to)),
            (Some(from), None) => Some((from, fit)),
            _ => None,
        }
    }
}
