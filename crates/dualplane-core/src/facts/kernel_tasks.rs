//! The table of tasks that the OOM killer prints: who held what when it ran.
//!
//! Source: Linux `mm/oom_kill.c` `dump_tasks`, `dump_task`. Columns are pages; `rss_anon`, `rss_file` and `rss_shmem` came
//! with 6.8, before it `rss` is all three together.

use crate::units::Bytes;
use dualplane_base::order::Order as _;

/// Pages of x86-64 and of arm64 as distributions ship it.
const PAGE: u64 = 4096;
/// Tasks of one record that are kept: a container has tens, a node thousands.
const KEPT: usize = 1024;

/// A task of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Host pid.
    pub pid: u64,
    /// At most 15 characters of its name.
    pub comm: String,
    /// What it held: anonymous and shared memory where the kernel tells them apart, else with its file pages.
    pub held: Bytes,
}

/// A table that is being read.
#[derive(Debug, Clone, Default)]
pub(super) struct Tasks {
    columns: Vec<String>,
    rows: Vec<Task>,
}

impl Tasks {
    /// Reads a line; whether it is one of the table's.
    pub(super) fn line(&mut self, text: &str) -> bool {
        let Some((inner, rest)) = bracket(text) else { return false };
        if inner == "pid" {
            self.columns = rest.split_ascii_whitespace().map(str::to_owned).take(16).collect();
            return true;
        }
        let Ok(pid) = inner.parse() else { return false };
        if self.columns.is_empty() {
            return false;
        }
        let mut words = rest.split_ascii_whitespace();
        // The name is the last column and may hold blanks.
        let numbers: Vec<u64> = words
            .by_ref()
            .take(self.columns.len() - 1)
            .map_while(|w| w.parse::<i64>().ok())
            .map(|n| n.unsigned_abs())
            .collect();
        if numbers.len() + 1 != self.columns.len() {
            return false;
        }
        let pages =
            |name: &str| self.columns.iter().position(|c| c == name).and_then(|i| numbers.get(i)).copied();
        let held = match (pages("rss_anon"), pages("rss_shmem")) {
            (Some(anon), Some(shmem)) => anon.saturating_add(shmem),
            _ => pages("rss").unwrap_or_default(),
        };
        let comm = words.collect::<Vec<_>>().join(" ");
        if self.rows.len() < KEPT {
            self.rows.push(Task { pid, comm, held: Bytes(held.saturating_mul(PAGE)) });
        }
        true
    }

    /// The tasks, the largest first.
    pub(super) fn finish(self) -> Vec<Task> {
        let mut rows = self.rows;
        rows.order_by_key(|t| std::cmp::Reverse(t.held));
        rows
    }
}

/// `[ 1234]  0  1234 …`, and what stands behind the bracket.
fn bracket(text: &str) -> Option<(&str, &str)> {
    let rest = text.trim_start().strip_prefix('[')?;
    let (inner, rest) = rest.split_once(']')?;
    Some((inner.trim(), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&str]) -> Vec<(u64, String, u64)> {
        let mut tasks = Tasks::default();
        for line in lines {
            tasks.line(line);
        }
        tasks.finish().into_iter().map(|t| (t.pid, t.comm, t.held.0 / PAGE)).collect()
    }

    #[test]
    fn both_generations_of_columns() {
        let new = of(&[
            "[  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents oom_score_adj name",
            "[   4711]     0  4711      400      120       20       90        10    45056        0          -997 pause",
            "[   4712]     0  4712  5000000  3000000  2500000   100000   400000  1234567        0           985 VLLM::Worker TP",
        ]);
        assert_eq!(new, [(4712, "VLLM::Worker TP".to_owned(), 2_900_000), (4711, "pause".to_owned(), 30)]);
        let old = of(&[
            "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name",
            "[  98465]     0 98465    33000    24001   249856        0             0 hog",
        ]);
        assert_eq!(old, [(98465, "hog".to_owned(), 24001)]);
    }

    #[test]
    fn a_row_without_its_head_is_none() {
        assert!(of(&["[ 4711] 0 4711 400 120 45056 0 -997 pause", "[12] x", "[]", "no"]).is_empty());
    }
}
