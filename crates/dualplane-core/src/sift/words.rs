//! The words that select a line, and what each is worth.

use std::collections::BTreeMap;

use super::grams::MIN_WORD;
use crate::knowledge::{Knowledge, Mark, Scope};

/// What healthy servers print all day.
pub(super) const EVERYDAY: &str = include_str!("../../../../knowledge/everyday.log");

/// Words that no signature has and that other readers of a log go by: tracebacks, violent ends, kernel records.
const OTHERS: &[(&str, Worth)] = &[
    ("Traceback (most recent call last)", Worth { rank: 2, after: 200 }),
    ("most recent call first", Worth { rank: 2, after: 200 }),
    ("invoked oom-killer", Worth { rank: 3, after: 600 }),
    ("oom-kill:constraint=", Worth { rank: 3, after: AFTER }),
    ("Out of memory: Kill", Worth { rank: 3, after: AFTER }),
    ("Memory cgroup out of memory", Worth { rank: 3, after: AFTER }),
    ("Killed process ", Worth { rank: 3, after: AFTER }),
    ("NVRM: Xid (", Worth { rank: 3, after: AFTER }),
    ("NVRM: GPU", Worth { rank: 2, after: AFTER }),
    ("nvswitch", Worth { rank: 1, after: AFTER }),
    ("terminate called after throwing", Worth { rank: 2, after: AFTER }),
    ("core dumped", Worth { rank: 2, after: AFTER }),
    ("panic: ", Worth { rank: 2, after: 200 }),
    ("Fatal Python error", Worth { rank: 2, after: 200 }),
    ("fatal error", Worth { rank: 1, after: AFTER }),
    ("*** Error in", Worth { rank: 1, after: AFTER }),
    ("double free or corruption", Worth { rank: 1, after: AFTER }),
    ("Assertion failed", Worth { rank: 1, after: AFTER }),
    ("GGML_ASSERT", Worth { rank: 2, after: AFTER }),
    ("killing latest task", Worth { rank: 1, after: AFTER }),
    ("HTTP/1.1\" 5", Worth { rank: 0, after: 0 }),
    ("| 500 |", Worth { rank: 0, after: 0 }),
    ("| 503 |", Worth { rank: 0, after: 0 }),
];

/// Lines behind a find: an error's numbers, hints and frames stand there.
const AFTER: u32 = 48;

/// How much a find matters where there is no room for all, and how many lines behind it belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Worth {
    /// 3 a cause, 2 what follows of it, 1 numbers, 0 a thing to count.
    pub(super) rank: u8,
    pub(super) after: u32,
}

/// All words that select, each once, with their worth.
pub(super) fn words(knowledge: &Knowledge) -> (Vec<String>, Vec<Worth>) {
    let mut all: BTreeMap<String, Worth> = OTHERS.iter().map(|(w, v)| ((*w).to_owned(), *v)).collect();
    for s in knowledge.signatures() {
        let worth = match s.mark {
            Mark::Fatal | Mark::Degraded | Mark::Suspect | Mark::Failure | Mark::Death => {
                Worth { rank: 3, after: AFTER }
            }
            Mark::Cascade => Worth { rank: 2, after: AFTER },
            Mark::Info => Worth { rank: 1, after: 2 },
            Mark::Phase if s.scope == Scope::Log => Worth { rank: 1, after: 2 },
            // Frames stand in tracebacks, which are kept whole; what is benign or a user's selects nothing.
            Mark::Phase | Mark::Benign | Mark::UserText => continue,
        };
        if s.of_objects() || s.of_exceptions() {
            continue;
        }
        for literal in s.literals.iter().filter(|l| l.len() >= MIN_WORD && !EVERYDAY.contains(l.as_str())) {
            let old = all.entry(literal.clone()).or_insert(worth);
            *old = Worth { rank: old.rank.max(worth.rank), after: old.after.max(worth.after) };
        }
    }
    all.into_iter().unzip()
}
