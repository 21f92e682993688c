//! Orders rotated files of one log: oldest first.

use crate::evidence::LogSource;
use dualplane_base::order::Order as _;

/// Sorts logs by base name; within one base older rotations come first and the live file last.
pub(in crate::evidence) fn order(logs: &mut [LogSource]) {
    logs.order_by_key(|log| key(&log.name));
}

/// `server.log.2` is older than `server.log.1`, `0.log.20260703-224006` older than `0.log`.
fn key(name: &str) -> (String, i64) {
    let plain = name.strip_suffix(".gz").unwrap_or(name);
    if let Some((base, suffix)) = plain.rsplit_once('.') {
        let digits: String = suffix.chars().filter(char::is_ascii_digit).collect();
        let is_stamp =
            digits.len() >= 8 && suffix.chars().all(|c| c.is_ascii_digit() || c == '-' || c == '_');
        if is_stamp {
            // A date: later is newer, and the file without a date is the newest.
            return (
                base.to_owned(),
                digits.get(..14.min(digits.len())).and_then(|d| d.parse().ok()).unwrap_or(0),
            );
        }
        if !digits.is_empty() && digits.len() == suffix.len() {
            return (base.to_owned(), i64::MAX - 1 - digits.parse::<i64>().unwrap_or(0));
        }
    }
    (plain.to_owned(), i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::key;

    #[test]
    fn oldest_first() {
        let mut names = [
            "a.log",
            "a.log.1",
            "a.log.10",
            "a.log.2",
            "0.log",
            "0.log.20260703-224006",
            "0.log.20260702-000000",
        ];
        names.sort_by_key(|n| key(n));
        assert_eq!(
            names,
            [
                "0.log.20260702-000000",
                "0.log.20260703-224006",
                "0.log",
                "a.log.10",
                "a.log.2",
                "a.log.1",
                "a.log"
            ]
        );
    }
}
