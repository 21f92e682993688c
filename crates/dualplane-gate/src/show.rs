//! Numbers as people read them.

/// `1.25 s`, `340 ms`.
pub(crate) fn seconds(v: f64) -> String {
    match v {
        v if v.abs() >= 60.0 => format!("{v:.0} s"),
        v if v.abs() >= 1.0 => format!("{v:.2} s"),
        v if v.abs() >= 0.001 => format!("{:.0} ms", v * 1000.0),
        0.0 => "0 s".to_owned(),
        v => format!("{:.3} ms", v * 1000.0),
    }
}

/// `12 %`, `0.1 %`.
pub(crate) fn share(v: f64) -> String {
    let percent = v * 100.0;
    match percent.abs() {
        // What is not all of it does not read like it.
        p if p > 99.0 && p < 100.0 => format!("{:.1} %", (percent * 10.0).trunc() / 10.0),
        p if p >= 10.0 || p == 0.0 => format!("{percent:.0} %"),
        p if p >= 0.1 => format!("{percent:.1} %"),
        _ => format!("{percent:.3} %"),
    }
}

/// `+8.1 %`.
pub(crate) fn signed(v: f64) -> String {
    format!("{:+.1} %", v * 100.0)
}

/// Three digits or all of a whole number.
pub(crate) fn number(v: f64) -> String {
    match v.abs() {
        a if a >= 100.0 || v.fract() == 0.0 => format!("{v:.0}"),
        a if a >= 1.0 => format!("{v:.2}"),
        _ => format!("{v:.4}"),
    }
}
