//! Thresholds and durations as people type them.

use dualplane_base::units::parse_k8s_quantity;

use crate::rule::Unit;

/// A duration of Prometheus, in seconds: `10m`, `1h30m`.
#[must_use]
pub fn duration(text: &str) -> Option<f64> {
    const UNITS: &[(&str, f64)] = &[
        ("ms", 0.001),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
        ("d", 86_400.0),
        ("w", 604_800.0),
        ("y", 31_536_000.0),
    ];
    let mut rest = text;
    let (mut total, mut last) = (0.0, f64::INFINITY);
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, behind) = rest.split_at_checked(digits)?;
        let letters = behind.len() - behind.trim_start_matches(|c: char| c.is_ascii_lowercase()).len();
        let (unit, next) = behind.split_at_checked(letters)?;
        let (_, size) = UNITS.iter().find(|(name, _)| *name == unit)?;
        // Prometheus wants each unit once, the largest first.
        if *size >= last {
            return None;
        }
        total += number.parse::<u32>().ok().map(f64::from)? * size;
        last = *size;
        rest = next;
    }
    (last < f64::INFINITY).then_some(total)
}

/// A threshold, or what it should look like.
pub(crate) fn parse(text: &str, unit: Unit) -> Result<f64, &'static str> {
    let plain = text.parse::<f64>().ok();
    let (value, want) = match unit {
        Unit::Ratio => {
            let percent =
                text.strip_suffix('%').and_then(|p| p.trim().parse::<f64>().ok()).map(|p| p / 100.0);
            (plain.or(percent).filter(|v| *v <= 1.0), "a share: 0.85 or 85%")
        }
        Unit::Seconds => (plain.or_else(|| duration(text)), "a time: 90, 90s, 5m or 4h"),
        Unit::Bytes => (plain.or_else(|| parse_k8s_quantity(text)), "an amount of memory: 1Gi or 500M"),
        Unit::Count => (plain, "a number"),
        Unit::Factor => (plain, "a factor: 1.5"),
        Unit::Celsius => (plain, "degrees Celsius: 90"),
    };
    value.filter(|v| v.is_finite() && *v >= 0.0).ok_or(want)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_prometheus() {
        for (text, want) in [
            ("10m", Some(600.0)),
            ("1h30m", Some(5400.0)),
            ("90s", Some(90.0)),
            ("0m", Some(0.0)),
            ("30m1h", None),
            ("1m1m", None),
            ("10", None),
            ("m", None),
            ("", None),
            ("-5m", None),
            ("5 m", None),
            ("5min", None),
            ("99999999999h", None),
        ] {
            assert_eq!(duration(text), want, "{text}");
        }
    }

    #[test]
    fn thresholds_are_read_in_their_unit() {
        assert_eq!(parse("85%", Unit::Ratio), Ok(0.85));
        assert_eq!(parse("0.85", Unit::Ratio), Ok(0.85));
        assert_eq!(parse("5m", Unit::Seconds), Ok(300.0));
        assert_eq!(parse("1Gi", Unit::Bytes), Ok(1_073_741_824.0));
        for (text, unit) in [
            ("85", Unit::Ratio),
            ("-1", Unit::Count),
            ("nan", Unit::Factor),
            ("inf", Unit::Count),
            ("", Unit::Seconds),
            ("1 or vector(1)", Unit::Count),
        ] {
            assert!(parse(text, unit).is_err(), "{text}");
        }
    }
}
