//! By what the kernel's lines name the server. It is kept while the server runs: of a dead one nobody can ask.

use std::collections::BTreeSet;

/// Pids that are kept; triage takes no more of one list.
const MAX_PIDS: usize = 4_096;

/// What is known of the server so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// The path of a group that holds the server and not this program.
    pub group: Option<String>,
    /// Processes of the server, all that were ever seen.
    pub pids: BTreeSet<u32>,
    /// There were more of them.
    pub more: bool,
    /// Paths and pids are those that the kernel prints: nothing of them is seen through a namespace.
    pub of_machine: bool,
}

impl Known {
    /// Takes one look in. A group stays known when the server is gone from it.
    pub(crate) fn saw(&mut self, group: Option<String>, pids: &[u32]) {
        self.group = group.or(self.group.take());
        for pid in pids {
            if self.pids.len() < MAX_PIDS {
                self.pids.insert(*pid);
            } else {
                self.more |= !self.pids.contains(pid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_once_seen_stays_known_within_bounds() {
        let mut known = Known::default();
        known.saw(Some("/a".into()), &[1, 2]);
        known.saw(None, &[2, 3]);
        assert_eq!((known.group.as_deref(), known.pids.len(), known.more), (Some("/a"), 3, false));
        known.saw(Some("/b".into()), &(0..5_000).collect::<Vec<_>>());
        assert_eq!((known.group.as_deref(), known.pids.len(), known.more), (Some("/b"), MAX_PIDS, true));
    }
}
