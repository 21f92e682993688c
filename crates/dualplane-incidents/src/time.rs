//! A point in time as a number that sorts, written as RFC 3339 in UTC.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Milliseconds since 1970 in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(i64);

/// The years 0001 to 9999: what RFC 3339 can write.
const RANGE: std::ops::RangeInclusive<i64> = -62_135_596_800_000..=253_402_207_200_000;

impl Time {
    /// Of milliseconds since 1970; what no calendar of four digits holds is clamped.
    #[must_use]
    pub fn from_ms(ms: i64) -> Self {
        Self(ms.clamp(*RANGE.start(), *RANGE.end()))
    }

    /// Milliseconds since 1970.
    #[must_use]
    pub fn ms(self) -> i64 {
        self.0
    }

    /// Reads RFC 3339; the zone must be there. `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let at: Timestamp = text.trim().parse().ok()?;
        Some(Self::from_ms(at.as_millisecond()))
    }

    /// The day in UTC, `2026-11-25`.
    #[must_use]
    pub fn day(self) -> String {
        self.to_string().chars().take(10).collect()
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Timestamp::from_millisecond(self.0) {
            Ok(at) => write!(f, "{at:.3}"),
            Err(_) => f.write_str("1970-01-01T00:00:00.000Z"),
        }
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        Self::parse(&text).ok_or_else(|| {
            serde::de::Error::custom("a time must be RFC 3339 with its zone, like 2026-11-25T03:12:00Z")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_what_it_writes_and_needs_a_zone() {
        let t = Time::parse("2026-11-25T03:12:00.5+01:00").unwrap();
        assert_eq!(t.to_string(), "2026-11-25T02:12:00.500Z");
        assert_eq!(Time::parse(&t.to_string()), Some(t));
        assert_eq!(t.day(), "2026-11-25");
        assert_eq!(Time::parse("2026-11-25T03:12:00"), None);
        assert_eq!(Time::parse("yesterday"), None);
    }

    proptest::proptest! {
        #[test]
        fn every_number_is_a_time_that_reads_again(ms in proptest::num::i64::ANY) {
            let t = Time::from_ms(ms);
            proptest::prop_assert_eq!(Time::parse(&t.to_string()), Some(t));
        }
    }
}
