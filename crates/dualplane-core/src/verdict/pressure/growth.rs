//! How fast memory grows, and when it reaches its limit.
//!
//! Whether it grows at all is for `dualplane_stats::drift` to say: a start that settles, garbage that is collected and chance
//! do not.

use dualplane_stats::drift::{Ask, Sample, drift};

use super::thresholds::{GROWN, HORIZON_MS, RISE, WINDOW_MS};
use crate::facts::Place;
use crate::text::counted;
use crate::time::{Stamp, span};
use crate::units::Bytes;

const HOUR_MS: f64 = 3_600_000.0;

/// A use that grows.
#[derive(Debug, Clone, PartialEq)]
pub struct Growth {
    /// Bytes an hour, of the lower edge of the samples.
    pub per_hour: Bytes,
    /// From the first sample to the last.
    pub window_ms: i64,
    /// Samples.
    pub samples: usize,
    /// Until the limit is reached at this rate.
    pub to_limit_ms: i64,
    /// The first of them.
    pub first: Place,
}

impl Growth {
    /// `grows by 1.20 GiB/h (9 samples in 40 min): at the limit in 2 h 10 min`.
    #[must_use]
    pub fn sentence(&self) -> String {
        format!(
            "grows by {}/h ({} in {}): at the limit in {}",
            self.per_hour,
            counted(self.samples as u64, "sample"),
            span(self.window_ms),
            span(self.to_limit_ms)
        )
    }

    /// The limit is near enough in time for somebody to act.
    pub(super) fn is_pressing(&self, share: f64) -> bool {
        share >= GROWN && self.window_ms >= WINDOW_MS && self.to_limit_ms <= HORIZON_MS
    }
}

/// One sample: when, how much, where.
pub(in crate::verdict) type Point = (Stamp, Bytes, Place);

/// What a series of samples in order of time says of the limit; `None` where it does not grow steadily.
pub(in crate::verdict) fn of(points: &[Point], limit: Bytes) -> Option<Growth> {
    let ((first, _, place), (last, now, _)) = (points.first()?, points.last()?);
    let window_ms = first.ms_until(*last).filter(|ms| *ms > 0)?;
    let series: Vec<Sample> = points
        .iter()
        .filter_map(|(at, used, _)| {
            let seconds = first.ms_until(*at)? as f64 / 1000.0;
            Some(Sample { seconds, value: used.0 as f64, load: None })
        })
        .collect();
    // How little matters follows from the limit, below.
    let grown = drift(&series, &Ask { least_per_hour: 0.0, ..Ask::default() }).filter(|d| d.grows())?;
    if grown.per_hour * grown.seconds / 3600.0 < RISE * limit.0 as f64 {
        return None;
    }
    let left = limit.saturating_sub(*now).0 as f64;
    Some(Growth {
        per_hour: Bytes::from_f64(grown.per_hour),
        window_ms,
        samples: points.len(),
        to_limit_ms: (left / grown.per_hour * HOUR_MS) as i64,
        first: place.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::GIB;

    fn points(gib: &[f64]) -> Vec<Point> {
        let at = |i: usize| dualplane_base::metrics::at_ms(1_795_170_600_000.0 + i as f64 * 300_000.0);
        let place = |i: usize| Place { file: "m.prom".into(), line: Some(i as u64 + 1) };
        gib.iter().enumerate().map(|(i, g)| (at(i), Bytes::from_f64(g * GIB as f64), place(i))).collect()
    }

    #[test]
    fn a_steady_rise_reaches_the_limit() {
        let g =
            of(&points(&[50.0, 51.0, 52.0, 53.0, 54.0, 55.0, 56.0, 57.0, 58.0]), Bytes(64 * GIB)).unwrap();
        // 1 GiB in 5 minutes, 6 GiB to go.
        assert!((g.per_hour.0 as f64 / GIB as f64 - 12.0).abs() < 0.01, "{g:?}");
        assert!((g.to_limit_ms - 30 * 60_000).abs() < 1000, "{g:?}");
        assert!(g.is_pressing(58.0 / 64.0) && !g.is_pressing(0.3));
    }

    #[test]
    fn a_load_that_stays_a_fall_and_noise_do_not_grow() {
        for flat in [
            &[2.0, 20.0, 40.0, 50.0, 50.0, 50.1, 50.0, 50.1, 50.1],
            &[58.0, 57.0, 56.0, 55.0, 54.0, 53.0, 52.0, 51.0, 50.0],
            &[50.0, 50.02, 50.01, 50.04, 50.05, 50.04, 50.07, 50.06, 50.08],
        ] {
            assert_eq!(of(&points(flat), Bytes(64 * GIB)), None, "{flat:?}");
        }
        assert_eq!(of(&points(&[50.0, 55.0, 60.0]), Bytes(64 * GIB)), None, "three samples are no trend");
    }
}
