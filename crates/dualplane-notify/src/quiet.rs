//! Quiet hours: `mo-fr 22:00-07:00`, in a fixed distance from UTC. Given a time they say until when to wait.

use std::str::FromStr;

const DAYS: [&str; 7] = ["mo", "tu", "we", "th", "fr", "sa", "su"];
const MINUTE_MS: i64 = 60_000;
const DAY: i64 = 24 * 60;

/// A span of the day on some days; it may reach over midnight and belongs to the day on which it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quiet {
    /// Days on which it begins, from Monday.
    days: [bool; 7],
    /// Minutes of the day.
    from: i64,
    to: i64,
    /// Minutes east of UTC.
    offset: i64,
}

/// What is no span.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "quiet hours are written like \"22:00-07:00\", \"mo-fr 22:00-07:00\" or \"sa,su 00:00-24:00 +02:00\", and {0:?} is not"
)]
pub struct QuietError(String);

impl FromStr for Quiet {
    type Err = QuietError;

    fn from_str(text: &str) -> Result<Self, QuietError> {
        let refuse = || QuietError(dualplane_base::text::shorten(text, 60).into_owned());
        let mut days = [true; 7];
        let mut span = None;
        let mut offset = 0;
        for word in text.split_whitespace() {
            if let Some((from, to)) = word.split_once('-').and_then(|(a, b)| Some((clock(a)?, clock(b)?))) {
                span = Some((from, to));
            } else if let Some(minutes) = zone(word) {
                offset = minutes;
            } else {
                days = on(&word.to_lowercase()).ok_or_else(refuse)?;
            }
        }
        let (from, to) = span.filter(|(from, to)| from != to && *from < DAY).ok_or_else(refuse)?;
        Ok(Self { days, from, to, offset })
    }
}

fn clock(text: &str) -> Option<i64> {
    let (h, m) = text.split_once(':')?;
    if h.len() != 2 || m.len() != 2 {
        return None;
    }
    let (h, m): (i64, i64) = (h.parse().ok()?, m.parse().ok()?);
    let minutes = h * 60 + m;
    (m < 60 && (0..=DAY).contains(&minutes)).then_some(minutes)
}

/// `Z`, `UTC`, `+02:00`.
fn zone(text: &str) -> Option<i64> {
    if matches!(text, "Z" | "UTC") {
        return Some(0);
    }
    let sign = match text.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    clock(text.get(1..)?).filter(|m| *m <= 14 * 60).map(|m| sign * m)
}

/// `mo`, `mo-fr`, `sa,su`; over the week's end as well: `fr-mo`.
fn on(text: &str) -> Option<[bool; 7]> {
    let day = |name: &str| DAYS.iter().position(|d| *d == name);
    let mut out = [false; 7];
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (day(first)?, day(last)?);
        let count = (last + 7 - first) % 7;
        for i in 0..=count {
            *out.get_mut((first + i) % 7)? = true;
        }
    }
    Some(out)
}

impl Quiet {
    /// The end of the span that this moment lies in; `None` where it lies in none.
    #[must_use]
    pub fn until(&self, now_ms: i64) -> Option<i64> {
        let local = now_ms.div_euclid(MINUTE_MS).saturating_add(self.offset);
        let length = if self.to > self.from { self.to - self.from } else { self.to + DAY - self.from };
        let today = local.div_euclid(DAY);
        [today, today - 1].into_iter().find_map(|day| {
            // 1970-01-01 was a Thursday.
            let begins =
                usize::try_from((day + 3).rem_euclid(7)).ok().and_then(|d| self.days.get(d).copied())?;
            let from = day * DAY + self.from;
            let inside = begins && (from..from + length).contains(&local);
            inside.then(|| (from + length - self.offset).saturating_mul(MINUTE_MS))
        })
    }
}

/// Until when several spans are quiet, one after the other.
pub(crate) fn until(spans: &[Quiet], now_ms: i64) -> Option<i64> {
    let mut at = now_ms;
    // Spans that touch each other make a longer one; a week is the longest there can be.
    for _ in 0..16 {
        match spans.iter().filter_map(|q| q.until(at)).max() {
            Some(end) if end > at => at = end,
            _ => break,
        }
    }
    (at > now_ms).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dualplane_incidents::Time;

    fn ends(span: &str, now: &str) -> Option<String> {
        let q: Quiet = span.parse().unwrap();
        q.until(Time::parse(now).unwrap().ms()).map(|ms| Time::from_ms(ms).to_string())
    }

    #[test]
    fn a_span_reaches_over_midnight_and_belongs_to_its_first_day() {
        // 2026-11-27 is a Friday.
        let fri = "2026-11-27T23:30:00Z";
        assert_eq!(ends("mo-fr 22:00-07:00", fri).as_deref(), Some("2026-11-28T07:00:00.000Z"));
        assert_eq!(
            ends("mo-fr 22:00-07:00", "2026-11-28T06:59:59Z").as_deref(),
            Some("2026-11-28T07:00:00.000Z")
        );
        assert_eq!(ends("mo-fr 22:00-07:00", "2026-11-28T07:00:00Z"), None);
        assert_eq!(ends("mo-fr 22:00-07:00", "2026-11-28T23:00:00Z"), None, "a Saturday");
        assert_eq!(
            ends("22:00-07:00 +02:00", "2026-11-27T20:00:00Z").as_deref(),
            Some("2026-11-28T05:00:00.000Z")
        );
        assert_eq!(
            ends("fr-mo 00:00-24:00", "2026-11-29T12:00:00Z").as_deref(),
            Some("2026-11-30T00:00:00.000Z")
        );
    }

    #[test]
    fn what_is_no_span_is_refused() {
        for bad in [
            "",
            "22:00",
            "22:00-22:00",
            "25:00-07:00",
            "22-7",
            "xx 22:00-07:00",
            "22:00-07:60",
            "24:00-01:00",
            "22:00-07:00 +15:00",
            "mo-xx 22:00-07:00",
        ] {
            assert!(bad.parse::<Quiet>().is_err(), "{bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_is_quiet_for_ever_and_the_end_is_not_quiet(now in 0_i64..4_000_000_000_000, from in 0_i64..1440, length in 1_i64..1440) {
            let to = (from + length) % 1440;
            let q = Quiet { days: [true; 7], from, to: if to == 0 { 1440 } else { to }, offset: 0 };
            if let Some(end) = q.until(now) {
                proptest::prop_assert!(end > now && end - now <= 24 * 3_600_000);
                proptest::prop_assert_eq!(q.until(end), None);
            }
        }
    }
}
