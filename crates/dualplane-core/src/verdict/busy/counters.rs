//! What counters did over a time: by how much they rose, and in which half of it.

use crate::evidence::metrics::{Sample, by_series};
use crate::time::Stamp;
use dualplane_base::order::Order as _;

/// A counter over a time, all its series together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rise<'a> {
    /// How much it rose.
    pub(super) by: f64,
    /// How much it rose up to the middle sample, and how long that took, in milliseconds; none where samples have no time
    /// or are too few.
    pub(super) first_half: Option<(f64, i64)>,
    /// How long all of it took.
    pub(super) ms: Option<i64>,
    /// The last sample.
    pub(super) last: &'a Sample,
}

impl Rise<'_> {
    /// What it rose by in a second, in the first and in the second half.
    pub(super) fn rates(&self) -> Option<(f64, f64)> {
        let ((before, first), all) = self.first_half.zip(self.ms)?;
        let second = all - first;
        let rate = |by: f64, ms: i64| by * 1000.0 / ms as f64;
        (first > 0 && second > 0).then(|| (rate(before, first), rate(self.by - before, second)))
    }
}

/// The counters of these samples; `None` where no series has two of them.
pub(super) fn rise<'a>(samples: impl Iterator<Item = &'a Sample>) -> Option<Rise<'a>> {
    let mut out: Option<Rise<'a>> = None;
    for mut series in by_series(samples.filter(|s| s.value.is_finite())) {
        let since = series.first().and_then(|s| s.stamp);
        series.order_by_key(|s| ms(since, s.stamp));
        let (Some(first), Some(last)) = (series.first().copied(), series.last().copied()) else { continue };
        if series.len() < 2 {
            continue;
        }
        let middle = series.get(series.len() / 2).copied().filter(|_| series.len() > 2);
        let half = middle.and_then(|m| Some((up(&series, m), ms(first.stamp, m.stamp)?)));
        let by = up(&series, last);
        out = Some(match out {
            None => Rise { by, first_half: half, ms: ms(first.stamp, last.stamp), last },
            Some(o) => Rise {
                by: o.by + by,
                first_half: o.first_half.zip(half).map(|((a, t), (b, _))| (a + b, t)),
                ..o
            },
        });
    }
    out
}

/// How far a series rose up to a sample; where it began anew, from zero.
fn up(series: &[&Sample], to: &Sample) -> f64 {
    let end = series.iter().position(|s| std::ptr::eq(*s, to)).unwrap_or(0);
    let pairs = series.iter().zip(series.iter().skip(1)).take(end);
    pairs.map(|(a, b)| if b.value >= a.value { b.value - a.value } else { b.value }).sum()
}

fn ms(from: Option<Stamp>, to: Option<Stamp>) -> Option<i64> {
    from.zip(to).and_then(|(a, b)| a.ms_until(b))
}
