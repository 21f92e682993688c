//! Numbers as engines take them on their command lines.

use crate::outcome::PlanError;
use dualplane_base::units::GIB;

use super::words::Given;

/// Sizes above this are typing errors: a pebibyte.
const MAX_NUMBER: f64 = (1_u64 << 50) as f64;

/// `32768`, `32k` (thousands), `32K` (1,024 each), `1.5G`.
///
/// `None` where it is no number.
///
/// Source: vLLM engine/arg_utils.py `human_readable_int`: small letters count by 1,000, capital ones by 1,024.
#[must_use]
pub fn human(text: &str) -> Option<u64> {
    let text = text.trim();
    let split = text.len() - text.chars().last().filter(char::is_ascii_alphabetic).map_or(0, char::len_utf8);
    let (digits, letter) = text.split_at_checked(split)?;
    let factor: f64 = match letter {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        "t" => 1e12,
        "K" => 1024.0,
        "M" => 1024.0 * 1024.0,
        "G" => GIB as f64,
        "T" => GIB as f64 * 1024.0,
        _ => return None,
    };
    let number = digits.replace('_', "").parse::<f64>().ok()?;
    let value = number * factor;
    // Half a sequence or token is a typing error, and the engines' parsers say so too.
    if letter.is_empty() && number.fract() != 0.0 {
        return None;
    }
    (value.is_finite() && (0.0..=MAX_NUMBER).contains(&value)).then_some(value as u64)
}

/// The value of a flag as a whole number.
pub(crate) fn count(given: &Given) -> Result<u64, PlanError> {
    human(given.value()).ok_or_else(|| wrong(given, "is not an integer"))
}

/// The value of a flag as a number of at least zero.
pub(crate) fn real(given: &Given) -> Result<f64, PlanError> {
    let value: Option<f64> = given.value().trim().parse().ok();
    value
        .filter(|v| v.is_finite() && (0.0..=MAX_NUMBER).contains(v))
        .ok_or_else(|| wrong(given, "is not a number"))
}

/// The value of a flag in GiB as bytes.
pub(crate) fn gib(given: &Given) -> Result<u64, PlanError> {
    Ok((real(given)?.min(MAX_NUMBER / GIB as f64) * GIB as f64) as u64)
}

/// An error that names the flag. A variable whose value is set when the pod runs contradicts nothing.
pub(crate) fn wrong(given: &Given, why: &str) -> PlanError {
    let name = given.path.as_ref().map_or_else(|| given.flag(), |p| format!("{}.{p}", given.flag()));
    let value = given.value();
    if is_left_open(value) {
        return PlanError::unsupported(format!(
            "{name} `{value}`, which is set when the pod runs; write its value instead"
        ));
    }
    PlanError::contradiction(name, format!("`{value}` {why}"))
}

/// A value with a variable or a command that was not filled in: `$(LWS_GROUP_SIZE)`, `$N`, `${N}`, `` `nproc` ``.
fn is_left_open(value: &str) -> bool {
    let names = |rest: &str| rest.starts_with(|c: char| c.is_ascii_alphanumeric() || "_({@*".contains(c));
    value.contains('`') || value.split('$').skip(1).any(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_count_as_the_engine_counts_them() {
        for (text, want) in [
            ("32768", Some(32_768)),
            ("32k", Some(32_000)),
            ("32K", Some(32_768)),
            ("1.5G", Some(GIB * 3 / 2)),
            ("25.6k", Some(25_600)),
            ("162.6", None),
            ("x", None),
            ("-1", None),
            ("", None),
            ("1e99", None),
        ] {
            assert_eq!(human(text), want, "{text}");
        }
    }

    #[test]
    fn what_is_set_later_contradicts_nothing() {
        for open in ["$(LWS_GROUP_SIZE)", "$N", "${N}", "$1", "$(nproc --all)", "`nproc`"] {
            assert!(is_left_open(open), "{open}");
        }
        for wrong in ["x", "$", "2$", "$-", ""] {
            assert!(!is_left_open(wrong), "{wrong}");
        }
    }
}
