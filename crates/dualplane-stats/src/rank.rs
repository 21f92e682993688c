//! Percentiles, medians and their like of values in any order. What is no number is left out.

/// Values in order, without what is no number.
#[must_use]
pub fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut all: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
    all.sort_by(f64::total_cmp);
    all
}

/// The value below which a share of sorted values lies, between two of them by the line that joins them (the default of
/// most tools, type 7 of Hyndman and Fan); none of none.
#[must_use]
pub fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = share.clamp(0.0, 1.0) * last as f64;
    let low = at.floor() as usize;
    let (a, b) = (sorted.get(low)?, sorted.get((low + 1).min(last))?);
    Some(a + (b - a) * (at - at.floor()))
}

/// The median of values in any order.
#[must_use]
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    quantile(&sorted(values), 0.5)
}

/// The median distance to the median: how far values scatter, whatever a few of them do.
#[must_use]
pub fn mad(values: &[f64]) -> Option<f64> {
    let middle = median(values.iter().copied())?;
    median(values.iter().map(|v| (v - middle).abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_lie_on_the_line_between_values() {
        let four = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(quantile(&four, 0.5), Some(2.5));
        assert_eq!(quantile(&four, 0.0), Some(1.0));
        assert_eq!(quantile(&four, 1.0), Some(4.0));
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(median([f64::NAN, 3.0, 1.0, f64::INFINITY]), Some(2.0));
        assert_eq!(mad(&[1.0, 2.0, 3.0, 100.0]), Some(1.0));
    }

    proptest! {
        #[test]
        fn a_quantile_lies_within_and_never_falls(values in prop::collection::vec(-1e12..1e12f64, 1..60), a in 0.0..1.0f64, b in 0.0..1.0f64) {
            let all = sorted(values);
            let (low, high) = (quantile(&all, a.min(b)).unwrap(), quantile(&all, a.max(b)).unwrap());
            prop_assert!(low <= high + 1e-3);
            prop_assert!(all[0] <= low && high <= all[all.len() - 1] + 1e-3);
        }
    }
}
