//! How many deaths of one crash loop are kept: the first always, a few more for comparison, then one now and then.

use std::collections::HashMap;
use std::time::Duration;

use dualplane_node::clock::Moment;

use crate::incident::LoopKey;

/// Deaths of a loop that are kept in any case: a loop's second death shows what repeats, its third that it does.
const ALWAYS: u64 = 3;
/// Later ones at most once in so long.
const MIN_INTERVAL: Duration = Duration::from_secs(60);
/// Loops that are known.
const MAX_LOOPS: usize = 8192;

/// What is done with a death.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    /// The first of its loop.
    First,
    /// A later one that is kept.
    Later,
    /// One of many: counted only.
    Skip,
}

/// Deaths by loop.
#[derive(Debug, Default)]
pub(super) struct CrashLoops {
    by: HashMap<LoopKey, (u64, Moment)>,
}

impl CrashLoops {
    /// Deaths that an earlier run kept.
    pub(super) fn known(&mut self, key: LoopKey) {
        self.by.entry(key).or_insert((0, Moment::default())).0 += 1;
    }

    /// A death now.
    pub(super) fn admit(&mut self, key: &LoopKey, now: Moment) -> Admission {
        if self.by.len() >= MAX_LOOPS && !self.by.contains_key(key) {
            // The loop that has been silent the longest is over.
            let oldest = self.by.iter().min_by_key(|(_, (_, at))| *at).map(|(k, _)| k.clone());
            if let Some(k) = oldest {
                self.by.remove(&k);
            }
        }
        let (deaths, kept) = self.by.entry(key.clone()).or_insert((0, Moment::default()));
        *deaths += 1;
        if *deaths > ALWAYS && now.since(*kept) < MIN_INTERVAL {
            return Admission::Skip;
        }
        *kept = now;
        if *deaths == 1 { Admission::First } else { Admission::Later }
    }

    /// A death that was admitted turned out to be none.
    pub(super) fn forget(&mut self, key: &LoopKey) {
        if let Some((deaths, _)) = self.by.get_mut(key) {
            *deaths = deaths.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_some_more_and_one_a_minute() {
        let mut l = CrashLoops::default();
        let at = |ms: u64| Moment(60_000_000_000 + ms * 1_000_000);
        let key = ("u".to_owned(), "c".to_owned());
        let first: Vec<Admission> = (0..5).map(|i| l.admit(&key, at(i * 300))).collect();
        assert_eq!(
            first,
            [Admission::First, Admission::Later, Admission::Later, Admission::Skip, Admission::Skip]
        );
        assert_eq!(l.admit(&key, at(61_000)), Admission::Later);
        assert_eq!(l.admit(&key, at(61_300)), Admission::Skip);
        let other = ("v".to_owned(), "c".to_owned());
        l.known(other.clone());
        assert_eq!(l.admit(&other, at(0)), Admission::Later, "an earlier run kept its first");
        l.forget(&key);
        for i in 0..20_000 {
            l.admit(&(i.to_string(), String::new()), at(70_000 + i));
        }
        assert!(l.by.len() <= MAX_LOOPS);
    }
}
