//! Text from outside as it may stand in a page: nothing that breaks out of its place, and nothing invisible.

use dualplane_base::text::markup;
use maud::Render;

/// Most characters of one value that a page shows: a line of a log may be a megabyte long.
const LONGEST: usize = 20_000;

/// Text of a report, a log or a name. Everything that was not written here goes into a page through this.
pub(crate) struct T<'a>(pub(crate) &'a str);

impl Render for T<'_> {
    fn render_to(&self, out: &mut String) {
        out.push_str(&markup(&dualplane_base::text::shorten(self.0, LONGEST)));
    }
}

/// The same for what is made on the spot.
pub(crate) struct Told(pub(crate) String);

impl Render for Told {
    fn render_to(&self, out: &mut String) {
        T(&self.0).render_to(out);
    }
}

/// What a module reads from an attribute: it is escaped and not cut. Its own texts were made visible before.
pub(crate) struct Whole(pub(crate) String);

impl Render for Whole {
    fn render_to(&self, out: &mut String) {
        out.push_str(&markup(&self.0));
    }
}

/// Milliseconds since 1970 as RFC 3339 to the second, in UTC.
pub(crate) fn instant(ms: i64) -> String {
    let whole = ms.div_euclid(1000).saturating_mul(1000);
    dualplane_base::time::Stamp::Wall { ms: whole, zoned: true, year: true }.show()
}

/// `2026-11-25 20:14 UTC`, as a list shows it.
pub(crate) fn minute(ms: i64) -> String {
    let at = instant(ms);
    match (at.get(..10), at.get(11..16)) {
        (Some(day), Some(time)) => format!("{day} {time}"),
        _ => at,
    }
}

/// How long ago something was: `just now`, `12 min ago`, `3 d ago`.
pub(crate) fn ago(now_ms: i64, at_ms: i64) -> String {
    let s = now_ms.saturating_sub(at_ms) / 1000;
    match s {
        // Clocks of two machines differ a little; what is far ahead is said as it is.
        ..=-120 => format!("in {}", dualplane_base::time::span(s.saturating_neg().saturating_mul(1000))),
        -119..=59 => "just now".to_owned(),
        60..=5_399 => format!("{} min ago", s / 60),
        5_400..=172_799 => format!("{} h ago", (s + 1_800) / 3_600),
        _ => format!("{} d ago", s / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_at_a_glance() {
        let told: Vec<String> = [0, 119_000, 7_300_000, 3 * 86_400_000]
            .iter()
            .map(|before| ago(1_000_000_000, 1_000_000_000 - before))
            .collect();
        assert_eq!(told, ["just now", "1 min ago", "2 h ago", "3 d ago"]);
        assert_eq!(ago(0, 600_000), "in 10 min");
        assert_eq!(minute(1_795_169_100_000), "2026-11-20 10:05");
    }
}
