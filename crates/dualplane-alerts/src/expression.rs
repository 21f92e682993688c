//! Expressions as they stand in the data: `{name}` is a threshold or a list of labels, `name(x)` a macro.

use std::collections::{BTreeMap, BTreeSet};

use crate::rule::Rules;

/// Macros use macros; more steps than this are a mistake of the data.
const MAX_STEPS: usize = 100;

/// The expression without macros.
pub(crate) fn unfolded(text: &str, macros: &BTreeMap<String, String>) -> String {
    let mut text = text.to_owned();
    for _ in 0..MAX_STEPS {
        let Some(next) = macros.iter().find_map(|(name, body)| unfold_one(&text, name, body)) else { break };
        text = next;
    }
    text
}

/// The first call of a macro replaced by its body.
fn unfold_one(text: &str, name: &str, body: &str) -> Option<String> {
    let call = format!("{name}(");
    let at = text.match_indices(&call).map(|(at, _)| at).find(|at| {
        let before = text.get(..*at).and_then(|b| b.chars().next_back());
        before.is_none_or(|c| !is_name(c))
    })?;
    let inner = text.get(at + call.len()..)?;
    let mut depth = 1;
    let end = inner.char_indices().find_map(|(i, c)| {
        depth += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        (depth == 0).then_some(i)
    })?;
    let (argument, rest) = (inner.get(..end)?, inner.get(end + 1..)?);
    Some(format!("{}{}{rest}", text.get(..at)?, body.replace("{x}", argument)))
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == ':'
}

/// Names in `{…}` that stand for something: matchers have more than a name.
pub(crate) fn placeholders(text: &str) -> BTreeSet<&str> {
    let inner = text.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(inner, _)| inner);
    inner.filter(|i| !i.is_empty() && i.chars().all(|c| c.is_ascii_lowercase() || c == '_')).collect()
}

/// Each `{name}` replaced by what `of` says; unknown ones stay, which the tests of this crate exclude.
pub(crate) fn filled(text: &str, of: impl Fn(&str) -> Option<String>) -> String {
    placeholders(text).into_iter().fold(text.to_owned(), |out, name| match of(name) {
        Some(value) => out.replace(&format!("{{{name}}}"), &value),
        None => out,
    })
}

/// On one line.
pub(crate) fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Names of series in an expression, without what stands in quotes.
pub(crate) fn series<'t>(text: &'t str, rules: &Rules) -> BTreeSet<&'t str> {
    let unquoted = text.split('"').step_by(2);
    let words = unquoted.flat_map(|part| part.split(|c: char| !is_name(c)));
    words.filter(|w| rules.is_series(w)).collect()
}

/// A number as PromQL takes it.
pub(crate) fn number(value: f64) -> String {
    // Rust prints neither an exponent nor a needless fraction.
    format!("{value}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn macros_nest_and_end_at_their_own_bracket() {
        let macros: BTreeMap<String, String> =
            [("a", "f({x}, 1)"), ("b", "g(a({x}))")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        assert_eq!(unfolded("max(b(rate(m[5m]))) + x_a(1)", &macros), "max(g(f(rate(m[5m]), 1))) + x_a(1)");
        // A bracket that never closes is left to promtool.
        assert_eq!(unfolded("a(m", &macros), "a(m");
    }

    #[test]
    fn matchers_are_no_placeholders() {
        let text = r#"m{a="b"} > {limit} and {__name__="x"}"#;
        assert_eq!(placeholders(text), ["limit"].into());
        assert_eq!(
            filled(text, |n| (n == "limit").then(|| "2".into())),
            r#"m{a="b"} > 2 and {__name__="x"}"#
        );
        assert_eq!(
            (number(0.9), number(14400.0), number(1_073_741_824.0)),
            ("0.9".into(), "14400".into(), "1073741824".into())
        );
    }
}
