//! Sentences about limits: what is above one, and what was killed for it.

use super::lack::Kind;
use super::lexicon::*;
use super::look::Words;

impl Words<'_> {
    pub(super) fn oom(&self, i: usize) -> Option<(Kind, usize)> {
        if self.named(i, &["errno"]) {
            return self.named(i + 1, &["12"]).then_some((Kind::Errno, i + 1));
        }
        if self.named(i, &["enomem"]) {
            return Some((Kind::Errno, i));
        }
        // A setting or a counter, or nothing of the kind.
        let next = self.is(i + 1, ABOUT | NUMBER)
            || self.named(
                i + 1,
                &[
                    "group",
                    "guard",
                    "policy",
                    "margin",
                    "safe",
                    "notifier",
                    "watcher",
                    "monitor",
                    "listener",
                    "free",
                    "control",
                    "events",
                    "event",
                    "prevention",
                    "handler",
                    "handling",
                    "protection",
                    "check",
                    "reaper",
                    "adjust",
                    "recovery",
                    "retry",
                    "retries",
                    "risk",
                    "detector",
                    "observer",
                    "issues",
                    "fallback",
                ],
            );
        // "OOM event received": an act, where "OOM events" is a counter.
        if self.named(i + 1, &["event"]) && self.named(i + 2, &["received", "occurred"]) {
            return Some((Kind::Kill, i + 2));
        }
        if self.is(i + 1, KILL) && self.is(i + 2, ABOUT) {
            return None;
        }
        if next && self.behind(i, 4, KILL).is_none() && self.ahead(i, 3, KILL).is_none() {
            return None;
        }
        let acted = |j: usize| {
            self.is(j, KILL) && !self.named(j, &["kill", "killer", "kills", "stopped"])
                || self.named(j, &["sigkill"])
        };
        let near = (i.saturating_sub(8)..i + 12).filter(|j| self.same(i, *j)).find(|j| acted(*j));
        if let Some(j) = near {
            return Some((Kind::Kill, j.max(i)));
        }
        // The killer's own name, without a kill.
        let bare = self.is(i, HOST) || self.is(i + 1, KILL) && !self.named(i + 1, &["kill"]);
        if self.named(i + 1, &["kill"]) {
            return Some((Kind::Kill, i + 1));
        }
        (!bare).then_some((Kind::Plain, i))
    }

    pub(super) fn killed(&self, i: usize) -> Option<usize> {
        if self.named(i, &["kill", "killer", "kills"]) {
            return None;
        }
        let memory = |j: usize| self.is(j, MEMORY) && !self.is(j, KV) || self.is(j, OOM);
        let last = (i..i + 24).take_while(|j| self.same(i, *j)).last().unwrap_or(i);
        let first = (i.saturating_sub(20)..=i).find(|j| self.same(i, *j)).unwrap_or(i);
        let reason = |j: usize| {
            self.is(j, REASON | EXCEED | LACK)
                || self.is(j, LIMIT) && self.is(j, ABOUT)
                || self.is(j, OUT) && self.is(j + 1, OF)
        };
        // A page that the hardware lost is no lack of pages.
        if (first..=last).any(|j| self.is(j, ECC) || self.named(j, &["corruption", "hardware"])) {
            return None;
        }
        ((first..=last).any(memory) && (first..=last).any(reason)).then_some(last)
    }

    pub(super) fn exceeds(&self, i: usize) -> Option<(Kind, usize, usize)> {
        let verb = self.named(i, &["exceed", "exceeds", "exceeded", "exceeding"]);
        // "the budget exceeds 100%" is a setting out of its range.
        if self.is(i + 1, NUMBER) && self.ahead(i, 5, UNIT | MEMORY | BOUND).is_none() {
            return None;
        }
        let gone = self.named(i, &["over"])
            && self.named(i.wrapping_sub(1), &["gone", "went", "goes", "is", "running", "ran", "was"]);
        if self.named(i, &["over"]) && !gone {
            return None;
        }
        let fewer = self.named(i, &["less", "fewer", "smaller"]);
        let than = (i + 1..=i + if fewer || !self.named(i, &["more"]) { 1 } else { 8 })
            .any(|j| self.same(i, j) && self.named(j, &["than"]));
        let compares = than || gone || self.named(i, &["above", "beyond", "reached"]);
        if !verb && !compares {
            return None;
        }
        let comma = |j: usize| j > i && (i + 1..=j).any(|k| self.apart(k).contains(','));
        // The pool of an allocator of a card; there are pools of threads and connections, too.
        let of_card = self.tokens.iter().any(|t| t.roles & GPU != 0);
        let pool = |j: usize| of_card && self.named(j, &["pool"]) && self.named(j + 1, &["size"]);
        let noun = |j: usize| {
            pool(j)
                || self.is(j, MEMORY)
                    && !comma(j)
                    && !self.is(j, UNIT)
                    && !self.named(j, &["tensor", "tensors", "buffer"])
        };
        let (low, high) = (i.saturating_sub(9), i + 10);
        let range = if fewer { low..=i } else { low..=high };
        let memory = range.filter(|j| self.same(i, *j)).find(|j| noun(*j));
        let kv = (i + 1..=high).filter(|j| self.same(i, *j)).find(|j| self.is(*j, KV | PAGES));
        let bound = (low..=high).filter(|j| self.same(i, *j)).any(|j| self.is(j, LIMIT));
        let tokens = (low..i).any(|j| {
            self.same(i, j)
                && self.named(j, &["length", "tokens", "sequence", "prompt", "batch", "context", "request"])
        });
        let at = match (memory, kv) {
            (_, Some(at)) if tokens && (self.is(at, KV) || self.named(at, &["cache"])) => at,
            // What is there is less than what is needed, and no limit is below another.
            (Some(at), _) if fewer => {
                (at.saturating_sub(4)..i).any(|j| self.same(i, j) && self.is(j, AVAILABLE)).then_some(at)?
            }
            (Some(at), _) if bound || verb && at > i => at,
            _ => return None,
        };
        let memory_first = |b: usize| {
            self.same(i, b) && self.is(b, BOUND) && (at < b && b <= at + 2 || b < at && at <= b + 2)
        };
        // "exceeded job memory limit": whose it is stands before the verb or before the memory.
        let of_process = (low..i.max(at)).any(|j| self.same(i, j) && self.is(j, PROCESS));
        let beyond = (gone || self.named(i, &["beyond"])) && (i + 1..=i + 5).any(memory_first);
        let set = verb && at < i && (low..i).any(memory_first)
            || beyond
            || of_process
                && (low..=high).any(|j| self.same(i, j) && self.is(j, BOUND))
                && self.is(at, MEMORY);
        let part = [
            "model",
            "workspace",
            "tensor",
            "layer",
            "kernel",
            "plan",
            "cache",
            "batch",
            "weights",
            "engine",
        ];
        let of_a_part = (low..=high).any(|j| self.same(i, j) && self.named(j, &part));
        Some((if set && !of_a_part { Kind::Limit } else { Kind::Plain }, at.min(i), at.max(i)))
    }
}
