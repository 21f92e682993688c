//! Curves drawn in a terminal: occupancy of the cache and the queue over one time axis.

/// Eighths of a cell, from empty to full.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Rows of one curve, from the top; `most` fills all of them.
pub(super) fn rows(values: &[f64], most: f64, height: usize) -> Vec<String> {
    let most = if most > 0.0 { most } else { 1.0 };
    (0..height)
        .rev()
        .map(|row| {
            values
                .iter()
                .map(|v| {
                    let eighths = (v / most * (height * 8) as f64).ceil() as i64 - (row * 8) as i64;
                    // What is not nothing is seen.
                    let least = i64::from(row == 0 && *v > 0.0);
                    let cell = eighths.clamp(least, 8) as usize;
                    EIGHTHS.get(cell).copied().unwrap_or('█')
                })
                .collect::<String>()
        })
        .collect()
}

/// Seconds as people say them.
pub(super) fn clock(seconds: f64) -> String {
    let s = seconds.max(0.0);
    if s >= 7200.0 {
        format!("{:.1} h", s / 3600.0)
    } else if s >= 120.0 {
        format!("{} min {:02} s", (s / 60.0) as u64, (s % 60.0) as u64)
    } else if s >= 10.0 {
        format!("{s:.0} s")
    } else if s >= 0.1 {
        format!("{s:.1} s")
    } else {
        format!("{:.0} ms", s * 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_fills_its_rows_from_below() {
        let drawn = rows(&[0.0, 0.01, 0.5, 1.0], 1.0, 2);
        assert_eq!(drawn, ["   █", " ▁██"]);
    }

    #[test]
    fn times_are_said_in_their_own_units() {
        assert_eq!(clock(0.031), "31 ms");
        assert_eq!(clock(2.04), "2.0 s");
        assert_eq!(clock(192.0), "3 min 12 s");
        assert_eq!(clock(10_000.0), "2.8 h");
    }
}
