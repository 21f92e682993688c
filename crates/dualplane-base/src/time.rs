//! Time stamps as evidence prints them, without a clock and without guessing a zone.
//!
//! Logs disagree about what they know: CRI and Kubernetes give an instant, vLLM gives month, day and time without a
//! year, the kernel gives seconds since boot. A [`Stamp`] keeps what was known, so that two stamps are only compared
//! where that is honest.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use serde::Serialize;

/// A point in time as one source told it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "clock", rename_all = "snake_case")]
pub enum Stamp {
    /// Wall clock in milliseconds since 1970 (UTC, or the source's own zone where it told none).
    Wall {
        /// Milliseconds since the epoch.
        ms: i64,
        /// The zone was printed (`Z` or an offset).
        zoned: bool,
        /// The year was printed; otherwise it stands for 1972 until [`Stamp::with_year_near`] fills it in.
        year: bool,
    },
    /// Microseconds since boot (kernel log).
    Boot {
        /// Microseconds since boot.
        us: i64,
    },
}

/// Stand-in for "no year printed": a leap year, so that 29 February parses.
const NO_YEAR: i16 = 1972;

/// No zone is further from UTC.
pub const WIDEST_ZONE_MS: i64 = 14 * 3_600_000;

impl Stamp {
    /// Milliseconds from `self` to `later`, where both clocks can be compared.
    #[must_use]
    pub fn ms_until(self, later: Self) -> Option<i64> {
        match (self, later) {
            (Self::Wall { ms: a, year: ya, .. }, Self::Wall { ms: b, year: yb, .. }) if ya == yb => {
                b.checked_sub(a)
            }
            (Self::Boot { us: a }, Self::Boot { us: b }) => b.checked_sub(a).map(|d| d / 1000),
            _ => None,
        }
    }

    /// Whether `later` is not before it, where the API or the kubelet wrote one of them in whole seconds.
    #[must_use]
    pub fn reaches(self, later: Self) -> Option<bool> {
        const ROUNDED_MS: i64 = 1000;
        self.ms_until(later).map(|ms| ms >= -ROUNDED_MS)
    }

    /// Milliseconds by which it may stand apart from other clocks: `zoned` where its zone was printed, else any zone.
    #[must_use]
    pub fn slack_ms(self, zoned: i64) -> i64 {
        if matches!(self, Self::Wall { zoned: true, .. }) { zoned } else { WIDEST_ZONE_MS }
    }

    /// Fills in a missing year: the one that brings it nearest to a stamp of another source of the same incident, so
    /// that 31 December and 1 January stay a second apart.
    #[must_use]
    pub fn with_year_near(self, reference: Option<Self>) -> Self {
        let (Self::Wall { ms, zoned, year: false }, Some(Self::Wall { ms: near, year: true, .. })) =
            (self, reference)
        else {
            return self;
        };
        let year_of =
            |ms: i64| Timestamp::from_millisecond(ms).ok().map(|t| t.to_zoned(TimeZone::UTC).year());
        let Some(year) = year_of(near) else { return self };
        let in_year = |year: i16| {
            let civil = Timestamp::from_millisecond(ms).ok()?.to_zoned(TimeZone::UTC).datetime();
            civil.with().year(year).build().ok().and_then(utc_ms)
        };
        let years = [year.saturating_sub(1), year, year.saturating_add(1)];
        let best = years.into_iter().filter_map(in_year).min_by_key(|ms| ms.abs_diff(near));
        best.map_or(self, |ms| Self::Wall { ms, zoned, year: true })
    }

    /// The time zone that lies between a stamp without one and a stamp of the same moment, in milliseconds to add; 0 where
    /// they agree, `None` where no zone explains their distance.
    ///
    /// Zones are whole quarter hours (Nepal +05:45) and no more than 14 hours (Kiribati) from UTC, in the tz database.
    #[must_use]
    pub fn zone_until(self, near: Self) -> Option<i64> {
        const STEP: i64 = 15 * 60 * 1000;
        const AGREE: i64 = 2 * 60 * 1000;
        let (Self::Wall { zoned: false, .. }, gap) = (self, self.ms_until(near)?) else { return None };
        let zone = gap.checked_add(STEP / 2)?.div_euclid(STEP).checked_mul(STEP)?;
        (zone.abs() <= WIDEST_ZONE_MS && (gap - zone).abs() <= AGREE).then_some(zone)
    }

    /// A stamp without a zone, moved by the zone that lies between it and a stamp of the same moment.
    #[must_use]
    pub fn without_zone(self, near: Self) -> Self {
        self.zone_until(near).map_or(self, |zone| self.moved(zone))
    }

    /// A wall time without a zone, moved by a zone in milliseconds; any other stamp as it is.
    #[must_use]
    pub fn moved(self, zone: i64) -> Self {
        match self {
            Self::Wall { ms, zoned: false, year } => {
                Self::Wall { ms: ms.saturating_add(zone), zoned: false, year }
            }
            other => other,
        }
    }

    /// Whether the year was printed.
    #[must_use]
    pub fn has_year(self) -> bool {
        matches!(self, Self::Wall { year: true, .. })
    }

    /// For people and JSON: RFC 3339 where the zone is known, without `Z` where it is not, `+12.345s` since boot.
    #[must_use]
    pub fn show(self) -> String {
        match self {
            Self::Boot { us } => {
                format!("+{}.{:03}s since boot", us / 1_000_000, us.rem_euclid(1_000_000) / 1000)
            }
            Self::Wall { ms, zoned, year } => {
                let Ok(t) = Timestamp::from_millisecond(ms) else { return String::new() };
                let c = t.to_zoned(TimeZone::UTC).datetime();
                let time = format!(
                    "{:02}-{:02}T{:02}:{:02}:{:02}{}{}",
                    c.month(),
                    c.day(),
                    c.hour(),
                    c.minute(),
                    c.second(),
                    if c.millisecond() > 0 { format!(".{:03}", c.millisecond()) } else { String::new() },
                    if zoned { "Z" } else { "" }
                );
                if year { format!("{:04}-{time}", c.year()) } else { time }
            }
        }
    }
}

fn utc_ms(civil: DateTime) -> Option<i64> {
    civil.to_zoned(TimeZone::UTC).ok().map(|z: Zoned| z.timestamp().as_millisecond())
}

/// Reads an RFC 3339 instant, as Kubernetes, CRI and most JSON logs print it.
#[must_use]
pub fn parse_rfc3339(text: &str) -> Option<Stamp> {
    let t: Timestamp = text.trim().parse().ok()?;
    Some(Stamp::Wall { ms: t.as_millisecond(), zoned: true, year: true })
}

/// Finds a time stamp at the beginning of a log line or just behind its first tags.
///
/// Knows: RFC 3339; `2025-03-12 08:25:21[.123|,123]`; `2025/03/11 - 05:49:47`; vLLM's `04-02 09:27:44`; glog's
/// `E1109 08:14:02.660118`; syslog's `Jul 03 22:40:06`; `dmesg -T`'s `Thu Aug  6 11:20:38 2026`; TensorRT-LLM's
/// `07/17/2025-11:05:12`.
#[must_use]
pub fn find_stamp(line: &str) -> Option<Stamp> {
    // Only the head of a line is looked at: a time inside a message is not when the line was written.
    let head = line.get(..floor_boundary(line, 96)).unwrap_or(line);
    let bytes = head.as_bytes();
    for (i, pair) in bytes.windows(2).enumerate() {
        // Every form has a two-digit hour before a colon; look at what surrounds the first one.
        if pair.first().is_some_and(u8::is_ascii_digit) && pair.get(1) == Some(&b':') && i >= 1 {
            let Some(start) = i.checked_sub(1) else { continue };
            if let Some(stamp) = around_time(head, start) {
                return Some(stamp);
            }
        }
    }
    None
}

fn floor_boundary(s: &str, mut at: usize) -> usize {
    if at >= s.len() {
        return s.len();
    }
    while !s.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// `at` is where `HH:MM:SS` begins; the date stands before it (or, for `ctime` forms, the year behind it).
fn around_time(head: &str, at: usize) -> Option<Stamp> {
    let time = head.get(at..at + 8)?;
    let b = time.as_bytes();
    let ok =
        b.iter().enumerate().all(|(i, c)| if i == 2 || i == 5 { *c == b':' } else { c.is_ascii_digit() });
    if !ok {
        return None;
    }
    let num = |s: &str| s.trim().parse::<i8>().ok();
    let (hour, minute, second) = (num(time.get(0..2)?)?, num(time.get(3..5)?)?, num(time.get(6..8)?)?);
    let after = head.get(at + 8..)?;
    let fraction = after.strip_prefix(['.', ',']).map(|f| f.bytes().take_while(u8::is_ascii_digit).count());
    let millis = fraction
        .and_then(|n| after.get(1..=n.min(3)))
        .and_then(|d| format!("{d:0<3}").parse::<i64>().ok())
        .unwrap_or(0);
    let tail = after.get(fraction.map_or(0, |n| n + 1)..)?;
    let before = head.get(..at)?;
    let (year, month, day) = date_before(before, tail)?;
    let civil = DateTime::new(year.unwrap_or(NO_YEAR), month, day, hour, minute, second, 0).ok()?;
    let mut ms = utc_ms(civil)?.checked_add(millis)?;
    let zoned = if tail.starts_with('Z') {
        true
    } else if let Some(offset) = offset_seconds(tail) {
        ms = ms.checked_sub(offset.checked_mul(1000)?)?;
        true
    } else {
        false
    };
    Some(Stamp::Wall { ms, zoned, year: year.is_some() })
}

/// `+02:00` or `-0500` directly behind the time.
fn offset_seconds(tail: &str) -> Option<i64> {
    let sign = match tail.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits: String =
        tail.get(1..)?.chars().take(5).filter(|c| *c != ':').take_while(char::is_ascii_digit).collect();
    let hours: i64 = digits.get(0..2)?.parse().ok()?;
    let minutes: i64 = digits.get(2..4)?.parse().ok()?;
    (hours <= 14 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

fn date_before(before: &str, tail: &str) -> Option<(Option<i16>, i8, i8)> {
    let before = before.trim_end_matches([' ', 'T', '-']);
    // 2025-03-12, 2025/03/11
    if let Some(d) = before.len().checked_sub(10).and_then(|i| before.get(i..)).filter(|d| d.is_ascii()) {
        let b = d.as_bytes();
        let sep = b.get(4).copied();
        if sep.is_some_and(|s| s == b'-' || s == b'/')
            && b.get(7).copied() == sep
            && let (Ok(y), Ok(m), Ok(day)) =
                (d.get(0..4)?.parse::<i16>(), d.get(5..7)?.parse::<i8>(), d.get(8..10)?.parse::<i8>())
        {
            return Some((Some(y), m, day));
        }
        // 07/17/2025
        if b.get(2) == Some(&b'/')
            && b.get(5) == Some(&b'/')
            && let (Ok(m), Ok(day), Ok(y)) =
                (d.get(0..2)?.parse::<i8>(), d.get(3..5)?.parse::<i8>(), d.get(6..10)?.parse::<i16>())
        {
            return Some((Some(y), m, day));
        }
    }
    short_date(before, tail)
}

/// Dates without a year: `04-02`, `E1109`, `Jul  3`.
fn short_date(before: &str, tail: &str) -> Option<(Option<i16>, i8, i8)> {
    if let Some(d) = before.len().checked_sub(5).and_then(|i| before.get(i..)) {
        if d.as_bytes().get(2) == Some(&b'-')
            && let (Ok(m), Ok(day)) = (d.get(0..2)?.parse::<i8>(), d.get(3..5)?.parse::<i8>())
        {
            return Some((None, m, day));
        }
        if matches!(d.as_bytes().first(), Some(b'I' | b'W' | b'E' | b'F' | b'D'))
            && let (Ok(m), Ok(day)) = (d.get(1..3)?.parse::<i8>(), d.get(3..5)?.parse::<i8>())
        {
            return Some((None, m, day));
        }
    }
    if let Some(d) = before.len().checked_sub(4).and_then(|i| before.get(i..))
        && d.bytes().all(|b| b.is_ascii_digit())
        && before.len() == 4
    {
        return Some((None, d.get(0..2)?.parse().ok()?, d.get(2..4)?.parse().ok()?));
    }
    let mut words = before.split_whitespace().rev();
    let day: i8 = words.next()?.parse().ok()?;
    let month = words.next()?;
    let month = MONTHS.iter().position(|m| month.ends_with(m))?;
    let year = tail.trim_start().get(..4).and_then(|y| y.parse::<i16>().ok()).filter(|y| *y > 1990);
    Some((year, i8::try_from(month).ok()? + 1, day))
}

/// Reads `[ 5521.220914]` or `[ 5521.220914,3]` at the head of a kernel line: microseconds since boot, and the rest.
#[must_use]
pub fn parse_boot_prefix(line: &str) -> Option<(Stamp, &str)> {
    let inner = line.strip_prefix('[')?;
    let end = inner.find(']')?;
    let (secs, frac) = inner.get(..end)?.trim().split_once('.')?;
    if secs.is_empty() || frac.is_empty() || frac.len() > 9 {
        return None;
    }
    let us: i64 = format!("{frac:0<6}").get(..6)?.parse().ok()?;
    let us = secs.parse::<i64>().ok()?.checked_mul(1_000_000)?.checked_add(us)?;
    Some((Stamp::Boot { us }, inner.get(end + 1..)?.trim_start()))
}

/// `45 s`, `40 min`, `2 h 10 min`, `3 d 4 h`: a time in milliseconds as people say it.
#[must_use]
pub fn span(ms: i64) -> String {
    let min = ms / 60_000;
    match min {
        0 => format!("{} s", ms / 1000),
        1..=59 => format!("{min} min"),
        60..=1439 => format!("{} h {} min", min / 60, min % 60),
        _ => format!("{} d {} h", min / 1440, min % 1440 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str) -> Option<String> {
        find_stamp(line).map(Stamp::show)
    }

    #[test]
    fn stamps_as_engines_print_them() {
        for (line, want) in [
            ("2025-03-11T05:50:17.114Z level=INFO", "2025-03-11T05:50:17.114Z"),
            ("time=2025-07-02T19:20:58.771+02:00 level=ERROR", "2025-07-02T17:20:58.771Z"),
            ("(EngineCore_DP0 pid=602) ERROR 09-30 11:20:11 [core.py:708] x", "09-30T11:20:11"),
            ("[2025-03-12 08:25:21 TP2] Scheduler", "2025-03-12T08:25:21"),
            ("2026-01-06 10:15:02,411\tINFO usage_lib.py:473", "2026-01-06T10:15:02.411"),
            ("E1109 08:14:02.660118 7012 backend_model.cc:553] ERROR", "11-09T08:14:02.660"),
            ("0424 17:25:31.330971 88 pb_stub.cc:402] Failed", "04-24T17:25:31.330"),
            ("[GIN] 2025/03/11 - 05:49:47 | 200 |", "2025-03-11T05:49:47"),
            ("Jul 03 22:40:06 control-1 kernel: kube-apiserver", "07-03T22:40:06"),
            ("[Thu Aug  6 11:20:38 2026] NVRM: Xid", "2026-08-06T11:20:38"),
            ("[07/17/2025-11:05:12] [TRT-LLM] [I] x", "2025-07-17T11:05:12"),
        ] {
            assert_eq!(shown(line).as_deref(), Some(want), "{line}");
        }
        assert_eq!(shown("[rank0]:[W829 12:44:16.131931664 ProcessGroupNCCL.cpp:632] x"), None);
        assert_eq!(shown("no time here 12:30"), None);
        assert_eq!(shown("99-99 99:99:99"), None);
    }

    #[test]
    fn only_comparable_clocks_are_compared() {
        let vllm = find_stamp("ERROR 09-30 11:20:11 x").unwrap();
        let pod = parse_rfc3339("2025-09-30T11:20:41Z").unwrap();
        assert_eq!(vllm.ms_until(pod), None);
        assert_eq!(vllm.with_year_near(Some(pod)).ms_until(pod), Some(30_000));
        let eve = find_stamp("ERROR 12-31 23:59:58 x").unwrap();
        let new_year = parse_rfc3339("2027-01-01T00:00:05Z").unwrap();
        assert_eq!(eve.with_year_near(Some(new_year)).ms_until(new_year), Some(7_000));
        let local = find_stamp("[Thu Jun 18 11:10:08 2026] x").unwrap();
        let end = parse_rfc3339("2026-06-18T09:10:09Z").unwrap();
        assert_eq!(local.without_zone(end).ms_until(end), Some(1_000));
        let earlier = find_stamp("[Thu Jun 18 09:03:00 2026] x").unwrap();
        assert_eq!(earlier.without_zone(end), earlier, "seven minutes are no zone");
        let nepal = find_stamp("[Thu Jun 18 14:55:08 2026] x").unwrap();
        assert_eq!(nepal.zone_until(end), Some(-(5 * 60 + 45) * 60_000));
        assert_eq!(find_stamp("[Thu Jun 18 09:09:00 2026] x").unwrap().zone_until(end), Some(0));
        assert_eq!(find_stamp("[Sat Jun 20 09:10:09 2026] x").unwrap().zone_until(end), None);
        assert_eq!(end.zone_until(end), None, "it has a zone");
        let (boot, rest) = parse_boot_prefix("[ 5521.220914] NVRM: Xid").unwrap();
        assert_eq!((boot, rest), (Stamp::Boot { us: 5_521_220_914 }, "NVRM: Xid"));
        assert_eq!(boot.ms_until(pod), None);
        assert!(parse_boot_prefix("[core.py:700] x").is_none());
    }
}
