//! How fast what is held grows, from looks a second apart. Pure.

/// Looks that are remembered: one a second.
const LOOKS: usize = 60;
/// Fewer say nothing of a trend.
const LEAST: usize = 6;
/// Between two looks, in seconds.
const APART: f64 = 1.0;

/// The last minute.
#[derive(Debug, Clone, Default)]
pub(crate) struct Growth {
    looks: std::collections::VecDeque<(f64, f64)>,
}

impl Growth {
    /// At `seconds` (of any clock that does not go back) so many bytes were held.
    pub(crate) fn look(&mut self, seconds: f64, held: u64) {
        if self.looks.back().is_some_and(|(t, _)| seconds - t < APART) {
            return;
        }
        if self.looks.len() == LOOKS {
            self.looks.pop_front();
        }
        #[allow(clippy::cast_precision_loss, reason = "a trend of bytes needs no last bit")]
        self.looks.push_back((seconds, held as f64));
    }

    /// Bytes a second, as the median of the slopes between the older half and the younger: one batch that was at its peak
    /// when it was looked at moves it little. `None` where too few looks were taken. Never below 0: what falls fills nothing.
    pub(crate) fn per_second(&self) -> Option<f64> {
        if self.looks.len() < LEAST {
            return None;
        }
        let half = self.looks.len() / 2;
        let pairs = self.looks.iter().zip(self.looks.iter().skip(half));
        let mut slopes: Vec<f64> = pairs.map(|((t0, h0), (t1, h1))| (h1 - h0) / (t1 - t0)).collect();
        slopes.sort_by(f64::total_cmp);
        slopes.get(slopes.len() / 2).map(|s| s.max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(looks: impl IntoIterator<Item = (f64, u64)>) -> Option<f64> {
        let mut growth = Growth::default();
        looks.into_iter().for_each(|(t, held)| growth.look(t, held));
        growth.per_second()
    }

    #[test]
    fn a_line_has_its_slope() {
        let slope = of((0..30_u32).map(|s| (f64::from(s), u64::from(s) * 1_000))).unwrap();
        assert!((slope - 1_000.0).abs() < 1e-6, "{slope}");
    }

    #[test]
    fn peaks_of_batches_are_no_growth() {
        let saw = (0..60_u32).map(|s| (f64::from(s), if s % 7 == 0 { 9_000_000 } else { 1_000 }));
        assert!(of(saw).unwrap() < 1.0);
    }

    #[test]
    fn few_looks_and_looks_too_near_say_nothing() {
        assert_eq!(of((0..5_u32).map(|s| (f64::from(s), 1))), None);
        assert_eq!(of((0..500_u32).map(|ms| (f64::from(ms) / 1_000.0, 1))), None);
    }

    #[test]
    fn what_falls_does_not_fill() {
        assert_eq!(of((0..30_u32).map(|s| (f64::from(s), 1_000_000 - u64::from(s)))), Some(0.0));
    }
}
