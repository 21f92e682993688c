//! Settings of a command line that is split into words: read, set, added.

/// A flag as one may write it: `--max-num-seqs`, `--max_num_seqs`.
fn plain(flag: &str) -> String {
    flag.trim_start_matches('-').replace('_', "-")
}

fn is(word: &str, names: &[String]) -> bool {
    word.starts_with('-') && names.iter().any(|n| n.starts_with('-') && plain(n) == plain(word))
}

/// The value of a setting that bears one of these names; the last one counts.
#[must_use]
pub fn value<'w>(words: &'w [String], names: &[String]) -> Option<&'w str> {
    words.iter().enumerate().rev().find_map(|(i, word)| match word.split_once('=') {
        Some((flag, value)) if is(flag, names) => Some(value),
        None if is(word, names) => words.get(i + 1).map(String::as_str),
        _ => None,
    })
}

/// The words with a setting of another value; it is added at the end, by its first name with a dash, where it is not there.
/// `None` where none of its names is a flag.
#[must_use]
pub fn set(words: &[String], names: &[String], to: &str) -> Option<Vec<String>> {
    let mut out = words.to_vec();
    let at = words.iter().rposition(|word| is(word.split('=').next().unwrap_or(word), names));
    match at {
        Some(at) => {
            let word = words.get(at)?;
            match word.split_once('=') {
                Some((flag, _)) => *out.get_mut(at)? = format!("{flag}={to}"),
                None if at + 1 < out.len() => *out.get_mut(at + 1)? = to.to_owned(),
                None => out.push(to.to_owned()),
            }
        }
        None => {
            let flag = names.iter().find(|n| n.starts_with('-'))?;
            out.extend([flag.clone(), to.to_owned()]);
        }
    }
    Some(out)
}
