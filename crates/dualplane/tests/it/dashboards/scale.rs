//! Numbers on an axis and in a legend, in units that people read.

use dualplane_dashboards::Measure;

/// What a value is divided by, and what stands behind it.
fn unit(measure: Measure, largest: f64) -> (f64, &'static str) {
    let of = |steps: &[(f64, &'static str)]| {
        let fits = steps.iter().rev().find(|(size, _)| largest >= *size);
        *fits.or(steps.first()).unwrap()
    };
    const GIB: f64 = 1_073_741_824.0;
    match measure {
        Measure::Ratio => (0.01, " %"),
        Measure::Seconds => of(&[(0.001, " ms"), (1.0, " s")]),
        Measure::Bytes => of(&[(1.0, " B"), (1_048_576.0, " MiB"), (GIB, " GiB")]),
        Measure::BytesPerSecond => of(&[(1.0, " B/s"), (1_048_576.0, " MiB/s"), (GIB, " GiB/s")]),
        Measure::RequestsPerSecond => (1.0, " req/s"),
        Measure::TokensPerSecond => of(&[(1.0, " tok/s"), (1000.0, "k tok/s")]),
        Measure::Celsius => (1.0, " °C"),
        Measure::Watts => (1.0, " W"),
        Measure::Hertz => (1e9, " GHz"),
        Measure::Count => (1.0, ""),
    }
}

/// An axis from zero: its end, and its marks with their words.
pub(super) struct Axis {
    pub(super) end: f64,
    pub(super) marks: Vec<(f64, String)>,
}

/// Three to five marks at round numbers.
pub(super) fn axis(measure: Measure, largest: f64) -> Axis {
    let largest = if largest > 0.0 { largest } else { 1.0 };
    let (size, word) = unit(measure, largest);
    let raw = largest / size / 3.6;
    let power = 10f64.powf(raw.log10().floor());
    let mut step = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|m| m * power).find(|s| *s >= raw).unwrap();
    // Things are counted in whole numbers.
    if measure == Measure::Count && largest >= 1.0 {
        step = step.max(1.0);
    }
    let mut marks = Vec::new();
    let mut n = 0.0;
    // The highest mark is at or above the largest value.
    while n == 0.0 || (n - 1.0) * step * size < largest * 0.999 {
        marks.push((n * step * size, format!("{}{word}", plain(n * step, step))));
        n += 1.0;
    }
    Axis { end: marks.last().unwrap().0, marks }
}

/// As many digits behind the point as the step has.
fn plain(value: f64, step: f64) -> String {
    let digits = if step >= 1.0 && step.fract() == 0.0 {
        0
    } else if step >= 0.1 && (step * 10.0).fract() < 1e-9 {
        1
    } else {
        2
    };
    format!("{value:.digits$}")
}

/// One value in words.
pub(super) fn words(measure: Measure, value: f64) -> String {
    let (size, word) = unit(measure, value.abs());
    let v = value / size;
    let digits = if v.fract().abs() < 1e-9 || v.abs() >= 100.0 {
        0
    } else if v.abs() >= 10.0 {
        1
    } else {
        2
    };
    format!("{v:.digits$}{word}")
}

#[test]
fn axes_end_at_round_numbers() {
    let of = |m, v| axis(m, v).marks.into_iter().map(|(_, w)| w).collect::<Vec<_>>().join(", ");
    assert_eq!(of(Measure::Ratio, 0.93), "0 %, 50 %, 100 %");
    assert_eq!(of(Measure::Bytes, 3.1e11), "0 GiB, 100 GiB, 200 GiB, 300 GiB");
    assert_eq!(of(Measure::Count, 38.0), "0, 20, 40");
    assert_eq!(words(Measure::Seconds, 0.42), "420 ms");
    assert_eq!(words(Measure::Ratio, 0.973), "97.3 %");
}
