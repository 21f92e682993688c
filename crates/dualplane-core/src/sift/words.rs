//! The words that select a line, and what each is worth: the literals of `knowledge/`, and the words by which the readers of
//! `facts/` go besides.

use std::collections::BTreeMap;

use dualplane_grams::MIN_WORD;

use crate::facts::openings::{self, BEHIND_AN_ERROR};
use crate::knowledge::{Knowledge, Mark, Scope};

/// What healthy servers print all day.
pub(super) const EVERYDAY: &str = include_str!("../../../../knowledge/everyday.log");

/// How much a find matters where there is no room for all, and how many lines behind it belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Worth {
    /// 3 a cause, 2 what follows of it, 1 numbers, 0 a thing to count.
    pub(super) rank: u8,
    pub(super) after: u32,
    /// With this directly behind it the word selects nothing.
    pub(super) unless: Option<&'static str>,
}

const fn worth(rank: u8, after: u32) -> Worth {
    Worth { rank, after, unless: None }
}

/// All words that select, each once, with their worth.
pub(super) fn words(knowledge: &Knowledge) -> (Vec<String>, Vec<Worth>) {
    let mut all: BTreeMap<String, Worth> = openings::all()
        .map(|o| (o.word.to_owned(), Worth { rank: o.rank, after: o.after, unless: o.unless }))
        .collect();
    for s in knowledge.signatures() {
        let worth = match s.mark {
            Mark::Fatal | Mark::Degraded | Mark::Suspect | Mark::Failure | Mark::Refused | Mark::Death => {
                worth(3, BEHIND_AN_ERROR)
            }
            Mark::Cascade => worth(2, BEHIND_AN_ERROR),
            Mark::Info => worth(1, 2),
            Mark::Phase if s.scope == Scope::Log => worth(1, 2),
            // Frames stand in tracebacks, which are kept whole; what is benign or a user's selects nothing.
            Mark::Phase | Mark::Benign | Mark::UserText => continue,
        };
        if s.of_objects() || s.of_exceptions() {
            continue;
        }
        for literal in s.literals.iter().filter(|l| l.len() >= MIN_WORD && !EVERYDAY.contains(l.as_ref())) {
            let old = all.entry(literal.to_string()).or_insert(worth);
            // A signature that has the word judges for itself what stands behind it.
            *old = Worth { rank: old.rank.max(worth.rank), after: old.after.max(worth.after), unless: None };
        }
    }
    all.into_iter().unzip()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::lines::is_alarm;
    use crate::sift::{Feed, Sifter};

    #[test]
    fn what_readers_go_by_is_kept_wherever_it_stands() {
        let sifter = Sifter::new(&Knowledge::embedded().unwrap()).unwrap();
        for opening in openings::all() {
            assert!(opening.word.len() >= MIN_WORD, "{opening:?}");
            let line = format!("x {}1 of it\n", opening.word);
            let mut feed = Feed::new(&sifter, 1 << 20).with_ends(0);
            feed.push(format!("{}{line}{}", EVERYDAY.repeat(3), EVERYDAY.repeat(3)).as_bytes());
            let kept = String::from_utf8(feed.finish().text).unwrap();
            assert!(kept.contains(&line), "{opening:?}");
        }
    }

    #[test]
    fn an_aborted_request_is_no_violent_end_and_selects_nothing() {
        let sifter = Sifter::new(&Knowledge::embedded().unwrap()).unwrap();
        for (line, alarm) in [
            ("INFO 11-21 12:00:03 [async_llm.py:420] Aborted request(s) chatcmpl-8f0a3c2b.\n", false),
            ("run.sh: line 3: 12 Aborted\n", true),
            ("2026-11-21 12:00:03\tFATAL\tserver\tcannot go on\n", true),
        ] {
            assert_eq!(is_alarm(line, false), alarm, "{line}");
            let mut feed = Feed::new(&sifter, 1 << 20).with_ends(0);
            feed.push(line.as_bytes());
            assert_eq!(!feed.finish().text.is_empty(), alarm, "{line}");
        }
    }
}
