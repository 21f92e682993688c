//! Settings as a log prints them at the start: one line that holds a Python dictionary or the arguments of a class. They are
//! what was served; a pod's command is the template that the next instance gets.

use super::Hit;
use super::engine::Flag;
use dualplane_engines::{Descriptor, Settings};

/// Flags that the start-up lines of this engine tell, in the order in which later ones win.
pub(super) fn printed<'h>(head: &Descriptor, hits: impl Iterator<Item = &'h Hit> + Clone) -> Vec<Flag> {
    let mut out = Vec::new();
    for settings in &head.printed.settings {
        // A log that holds several starts tells of the last one last.
        let last = hits.clone().filter(|h| h.id == settings.signature).fold(None, |last, hit| {
            hit.text.split_once(settings.after.as_str()).map_or(last, |(_, rest)| Some((hit, rest)))
        });
        let Some((hit, rest)) = last else { continue };
        out.extend(pairs(rest, settings.after.ends_with('(')).into_iter().filter_map(|(key, value)| {
            let name = flag_name(settings, &key)?;
            let value = value.strip_prefix("torch.").unwrap_or(&value);
            (value != "None").then(|| Flag { name, value: value.to_owned(), file: hit.place.file.clone() })
        }));
    }
    out
}

fn flag_name(settings: &Settings, key: &str) -> Option<String> {
    if settings.keys.is_empty() {
        return Some(key.replace('_', "-"));
    }
    settings.keys.iter().find(|(k, _)| k == key).map(|(_, flag)| flag.clone())
}

/// `{'a': 1, 'b': {...}}`, `a=1)` where a bracket is `open`, and `a='x', b=2` as pairs.
fn pairs(text: &str, open: bool) -> Vec<(String, String)> {
    let text = text.trim();
    let inner = text.strip_prefix('{');
    let (text, open) = (inner.unwrap_or(text), open || inner.is_some());
    let mut closed = !open;
    let mut out = Vec::new();
    let (mut depth, mut quote, mut item) = (0_u32, None, String::new());
    for c in text.chars() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(q), c) if q == c => quote = None,
            (None, '{' | '[' | '(') => depth += 1,
            // The end of the whole: what stands behind it is none of it.
            (None, '}' | ')') if depth == 0 => {
                closed = true;
                break;
            }
            (None, '}' | ']' | ')') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                out.extend(pair(&item));
                item.clear();
                continue;
            }
            _ => {}
        }
        item.push(c);
    }
    // Where the line is cut, so may its last value be: 4096 of 40960.
    if closed && depth == 0 && quote.is_none() {
        out.extend(pair(&item));
    }
    out
}

fn pair(item: &str) -> Option<(String, String)> {
    let item = item.trim();
    let (key, value) = item.split_at_checked(item.find([':', '='])?)?;
    let key = unquoted(key.trim());
    let word = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    word.then(|| (key.to_owned(), unquoted(value.get(1..).unwrap_or_default().trim()).to_owned()))
}

fn unquoted(v: &str) -> &str {
    let inner = |q| v.strip_prefix(q).and_then(|v| v.strip_suffix(q));
    inner('\'').or_else(|| inner('"')).unwrap_or(v)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, open: bool) -> Vec<(String, String)> {
        pairs(text, open)
    }

    fn pair_of(k: &str, v: &str) -> (String, String) {
        (k.to_owned(), v.to_owned())
    }

    #[test]
    fn all_forms_are_pairs() {
        let want = vec![pair_of("model", "a/b"), pair_of("x", "{'y': [1, 2]}"), pair_of("n", "8")];
        assert_eq!(of("{'model': 'a/b', 'x': {'y': [1, 2]}, 'n': 8}", false), want);
        assert_eq!(of("model='a/b', x={'y': [1, 2]}, n=8)", true), want);
        assert_eq!(of("model='a/b', x={'y': [1, 2]}, n=8", false), want);
    }

    #[test]
    fn what_stands_behind_the_end_is_no_setting() {
        assert_eq!(of("{'n': 8} and more, x=1", false), vec![pair_of("n", "8")]);
        assert_eq!(of("a=')', b=1) tail, c=2", true), vec![pair_of("a", ")"), pair_of("b", "1")]);
    }

    #[test]
    fn a_value_that_may_be_cut_is_none() {
        assert_eq!(of("{'n': 8, 'max_model_len': 4096", false), vec![pair_of("n", "8")]);
        assert_eq!(of("n=8, model='a/", false), vec![pair_of("n", "8")]);
        assert_eq!(of("n=8, x={'y': 1", false), vec![pair_of("n", "8")]);
        assert!(of("", false).is_empty() && of("}}}", false).is_empty() && of("no pairs", true).is_empty());
    }
}
