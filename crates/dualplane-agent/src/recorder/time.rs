//! Times as they stand in summaries and names.

/// `2026-11-21T21:38:12.345Z` of milliseconds since 1970. What is no time of a calendar is the beginning of it.
pub(super) fn rfc3339(ms: i64) -> String {
    let t = jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    format!("{t:.3}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn milliseconds_in_utc() {
        assert_eq!(super::rfc3339(1_763_761_092_345), "2025-11-21T21:38:12.345Z");
        assert_eq!(super::rfc3339(i64::MAX), "1970-01-01T00:00:00.000Z");
    }
}
