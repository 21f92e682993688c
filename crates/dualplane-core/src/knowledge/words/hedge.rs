//! What speaks of a lack without telling of one: it may come, was avoided, is counted or set.

use super::lack::{Kind, Lack};
use super::lexicon::*;
use super::look::Words;

impl Words<'_> {
    pub(super) fn is_hedged(&self, lack: &Lack) -> bool {
        let first = lack.from;
        let hedge = |j: usize| {
            self.is(j, HEDGE) && !(self.named(j, &["if"]) && self.named(j.wrapping_sub(1), &["as"]))
                || self.named(j, &["could", "can", "when"]) && !self.is(j, NOT) && !self.is(j + 1, NOT)
        };
        if (first.saturating_sub(12)..first).any(|j| self.same(first, j) && hedge(j)) {
            return true;
        }
        let inside = self.tokens.get(first).is_some_and(|t| t.joined);
        if self.is(first.wrapping_sub(1), NOT) && lack.kind != Kind::Errno && !inside
            || first > 0
                && self.is(first, OOM | OUT)
                && self.named(first - 1, &["0", "without"])
                && self.apart(first).trim().is_empty()
        {
            return true;
        }
        // "OOMKilled means that …", "CUDA out of memory usually happens when …": an explanation.
        const EXPLAINS: &[&str] = &["mean", "means", "happens", "occurs", "usually", "typically", "often"];
        if (lack.to + 1..=lack.to + 2).any(|j| self.same(first, j) && self.named(j, EXPLAINS)) {
            return true;
        }
        if self.is_asked(lack.to) {
            return true;
        }
        if self.is(first, OOM | OUT) && !inside && self.denied(first) {
            return true;
        }
        if self.tokens.iter().skip(lack.to).any(|t| t.roles & GOES_ON != 0) && lack.kind != Kind::Kill {
            return true;
        }
        // "using managed memory instead": the program says how it goes on.
        let instead = (lack.to + 1..lack.to + 20).find(|j| self.named(*j, &["instead"]));
        if instead.is_some_and(|j| (j.saturating_sub(6)..j).any(|k| k > lack.to && self.named(k, &["using"])))
        {
            return true;
        }
        // A compiler's kernel does not fit on the chip: "ran out of memory in memory space vmem".
        if (lack.to + 1..lack.to + 6).any(|j| self.same(first, j) && self.is(j, KERNEL) && self.is(j, OTHER))
        {
            return true;
        }
        // The memory that the threads of a kernel share lies on the chip.
        let own = || first..=lack.to + 1;
        let shared = own().any(|j| self.is(j, SHARED)) && !own().any(|j| self.is(j, HOST));
        if shared && self.tokens.iter().any(|t| t.roles & (GPU | KERNEL) != 0) {
            return true;
        }
        // `singleProcessOOMKill` is the name of a setting.
        if lack.kind == Kind::Kill && inside && self.apart(first).is_empty() {
            return true;
        }
        // `--oom-score`, `oom_kill_disable=false`, `"oom_kill": 0`.
        let mut last = lack.to;
        while self.tokens.get(last + 1).is_some_and(|t| t.joined) {
            last += 1;
        }
        let (Some(from), Some(to)) = (self.tokens.get(first), self.tokens.get(last)) else { return true };
        let before = self.text.get(..from.at).unwrap_or_default();
        let behind = self.text.get(to.end..).unwrap_or_default();
        let small =
            self.text.get(from.at..to.end).is_some_and(|t| t.bytes().all(|b| !b.is_ascii_uppercase()));
        let counted = behind.strip_prefix(['"', '\'']).unwrap_or(behind);
        before.ends_with("--")
            || behind.starts_with('=')
            || small
                && counted.strip_prefix([':', ' ', '=']).map(str::trim_start).is_some_and(|v| {
                    v == "0" || v.starts_with("0,") || v.starts_with("false") || v.starts_with("true")
                })
    }

    /// The sentence ends with a question mark.
    fn is_asked(&self, at: usize) -> bool {
        let behind = self.tokens.get(at).and_then(|t| self.text.get(t.end..)).unwrap_or_default();
        let bytes = behind.as_bytes();
        let ends = |i: usize| bytes.get(i + 1).is_none_or(u8::is_ascii_whitespace);
        let end =
            (0..bytes.len()).find(|i| matches!(bytes.get(*i), Some(b'.' | b'!' | b'?' | b';')) && ends(*i));
        end.is_some_and(|i| bytes.get(i) == Some(&b'?'))
    }

    /// "no CUDA OOM", "do not see any sign of a GPU OOM": somebody says that there is none.
    fn denied(&self, first: usize) -> bool {
        const BETWEEN: &[&str] = &[
            "a", "an", "any", "the", "t", "sign", "signs", "trace", "evidence", "of", "see", "find", "found",
            "have", "show", "shows", "contain", "contains", "single",
        ];
        let mut i = first;
        while let Some(before) = i.checked_sub(1).filter(|b| self.same(*b, i) && !self.parted(*b, i)) {
            if self.is(before, NOT) && !self.is(before, FAIL) || self.named(before, &["without"]) {
                return true;
            }
            if !self.is(before, GPU | DEVICE | HOST | KV) && !self.named(before, BETWEEN) {
                return false;
            }
            i = before;
        }
        false
    }
}
