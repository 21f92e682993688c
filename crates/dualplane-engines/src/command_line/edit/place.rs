//! Finds a setting in the words of a command, and changes it where it is written.

use super::read::{Commands, Spot, Word};
use super::script::{quote, rewrite, rewrite_attached, variable as lone};
use super::{Invocation, Source, To, Unchanged, Variable, is_variable, value_spot};
use crate::command_line::plain;
use crate::{Descriptor, Engines};

/// A setting that is there.
#[derive(Debug, Clone)]
pub(super) struct Found {
    /// As it is written: `--max-model-len`, `-c`, `OLLAMA_NUM_PARALLEL`.
    pub name: String,
    /// Its value; empty where it has none.
    pub value: String,
    /// The word of the flag; `None` for a variable of the pod.
    pub word: Option<Word>,
    /// The word of its value, where that is a word of its own.
    pub separate: Option<Word>,
    /// `--flag=value` or `NAME=value`.
    pub attached: bool,
}

/// What stands before `=`.
pub(super) fn flag_of(word: &str) -> &str {
    word.split_once('=').map_or(word, |(name, _)| name)
}

fn flag_name(word: &str) -> Option<&str> {
    let name = word.trim_start_matches('-');
    let dashes = word.len() - name.len();
    ((1..=2).contains(&dashes) && name.starts_with(|c: char| c.is_ascii_alphabetic())).then(|| flag_of(word))
}

/// Whether a word is this flag, in any spelling of it.
pub(super) fn is_flag(word: &str, flag: &str) -> bool {
    flag.starts_with('-') && flag_name(word).is_some_and(|w| plain(w) == plain(flag))
}

/// Python's argparse takes the beginning of a flag's name for the flag.
pub(super) fn abbreviates(word: &str, names: &[String]) -> bool {
    let Some(given) = flag_name(word).map(plain).filter(|g| g.len() > 3) else { return false };
    let flags = names.iter().filter(|n| n.starts_with("--"));
    flags
        .map(|n| plain(n))
        .any(|n| n.len() > given.len() && n.starts_with(&given) && words_end(&n, given.len()))
}

/// `--max-num` is short for `--max-num-seqs` to a reader, too; `--max-n` is nobody's.
fn words_end(name: &str, at: usize) -> bool {
    name.get(at..).is_some_and(|rest| rest.starts_with('-'))
}

/// The setting as the program takes it: the last flag, else a variable of the script, else one of the pod.
pub(super) fn find(
    invocation: &Invocation,
    commands: &Commands,
    names: &[String],
    engines: &Engines,
) -> Option<Found> {
    let own = engines.started_by(&texts(commands)).map(|(at, _)| at);
    let mut searched = commands.all.iter().enumerate().filter(|(i, _)| own.is_none_or(|o| o == *i));
    let flag = searched.find_map(|(_, words)| in_words(words, names));
    flag.or_else(|| {
        let variables: Vec<&String> = names.iter().filter(|n| is_variable(n)).collect();
        let assigned = commands.all.iter().flatten().filter(|_| commands.scripted).rev();
        let mut assigned = assigned.filter_map(|w| w.text.split_once('=').map(|(n, v)| (w, n, v)));
        if let Some((word, name, value)) = assigned.find(|(_, n, _)| variables.iter().any(|v| *v == n)) {
            let (name, value) = (name.to_owned(), value.to_owned());
            return Some(Found { name, value, word: Some(word.clone()), separate: None, attached: true });
        }
        let of = |v: &Variable| variables.iter().any(|n| **n == v.name);
        let found = invocation.env.iter().rfind(|v| of(v))?;
        let (name, value) = (found.name.clone(), found.value.clone().unwrap_or_default());
        Some(Found { name, value, word: None, separate: None, attached: false })
    })
}

fn in_words(words: &[Word], names: &[String]) -> Option<Found> {
    let (at, word) = words.iter().enumerate().rfind(|(_, w)| names.iter().any(|n| is_flag(&w.text, n)))?;
    let name = flag_of(&word.text).to_owned();
    if let Some((_, value)) = word.text.split_once('=') {
        let value = value.to_owned();
        return Some(Found { name, value, word: Some(word.clone()), separate: None, attached: true });
    }
    let separate = words.get(at + 1).filter(|w| flag_name(&w.text).is_none()).cloned();
    let value = separate.as_ref().map_or_else(String::new, |w| w.text.clone());
    Some(Found { name, value, word: Some(word.clone()), separate, attached: false })
}

pub(super) fn texts(commands: &Commands) -> Vec<Vec<String>> {
    commands.all.iter().map(|c| c.iter().map(|w| w.text.clone()).collect()).collect()
}

/// Which command is the engine's. Without a command of the pod its arguments go to the image's entrypoint, which must be
/// known, or show by a flag of the engine that it passes them on.
pub(super) fn server(
    invocation: &Invocation,
    commands: &Commands,
    engine: &Descriptor,
    engines: &Engines,
) -> Option<usize> {
    if let Some((at, _)) = engines.started_by(&texts(commands)).filter(|(_, d)| engine.is_kin(d)) {
        return Some(at);
    }
    let image = invocation.image.to_ascii_lowercase();
    let known =
        invocation.command.is_empty() && engine.entrypoints.iter().any(|e| image.contains(e.as_str()));
    let shows =
        |words: &Vec<Word>| words.iter().any(|w| flag_name(&w.text).is_some_and(|f| engine.has_flag(f)));
    (!commands.scripted && (known || commands.all.iter().any(shows))).then_some(0)
}

fn list(invocation: &mut Invocation, source: Source) -> Option<&mut Vec<String>> {
    match source {
        Source::Command => Some(&mut invocation.command),
        Source::Args => Some(&mut invocation.args),
        Source::Env => None,
    }
}

fn text<'l>(invocation: &'l mut Invocation, spot: &Spot) -> Option<&'l mut String> {
    match spot.source {
        Source::Env => invocation.env.get_mut(spot.index)?.value.as_mut(),
        source => list(invocation, source)?.get_mut(spot.index),
    }
}

fn write(
    invocation: &mut Invocation,
    spot: &Spot,
    new: impl Fn(&str) -> String,
    whole: impl Fn(&str) -> String,
) {
    let Some(text) = text(invocation, spot) else { return };
    match spot.span {
        Some((start, end)) => {
            let Some(mut raw) = text.get(start..end).map(new) else { return };
            // `8>log`: the shell would take the number for a file's.
            if redirects(text, end) && raw.bytes().all(|b| b.is_ascii_digit()) {
                raw = format!("'{raw}'");
            }
            text.replace_range(start..end, &raw);
        }
        None => *text = whole(text),
    }
}

/// Whether a redirection follows without a blank.
fn redirects(text: &str, at: usize) -> bool {
    text.get(at..).is_some_and(|t| t.starts_with(['<', '>']))
}

/// Gives it another value.
pub(super) fn replace(invocation: &mut Invocation, found: &Found, value: &str) -> Result<(), Unchanged> {
    let Some(word) = &found.word else {
        variable(invocation, &found.name, value);
        return Ok(());
    };
    if let Some(separate) = &found.separate {
        let spot = value_spot(invocation, separate).clone();
        write(invocation, &spot, |raw| rewrite(raw, value), |_| value.to_owned());
        return Ok(());
    }
    if !found.attached {
        // A flag without its value: what it means to the program is not known.
        return Err(Unchanged::Unclear(found.name.clone()));
    }
    let spot = value_spot(invocation, word).clone();
    let raw = match (spot.span, text(invocation, &spot).map(|t| t.clone())) {
        (Some((start, end)), Some(t)) => t.get(start..end).map(str::to_owned),
        (None, t) => t,
        _ => None,
    };
    // `--flag=$(NAME)`: the variable holds the value, where it is this flag's own.
    let inner = raw.as_deref().and_then(|r| lone(r.split_once('=')?.1)).filter(|v| v.name != "@");
    if let Some(at) = inner
        .filter(|v| super::read::uses(invocation, &v.name) == 1)
        .and_then(|v| Some(invocation.variable(&v.name)?.0))
    {
        if let Some(v) = invocation.env.get_mut(at) {
            v.value = Some(value.to_owned());
        }
        return Ok(());
    }
    let name = found.name.clone();
    write(invocation, &spot, |raw| rewrite_attached(raw, value), |_| format!("{name}={value}"));
    Ok(())
}

/// Takes it out.
pub(super) fn remove(invocation: &mut Invocation, found: &Found) {
    let Some(word) = &found.word else {
        invocation.env.retain(|v| v.name != found.name);
        return;
    };
    // The later one first: the place of the other does not move.
    for word in found.separate.iter().chain([word]) {
        let spot = match &word.value_of {
            Some((spot, _)) if word.shared => spot,
            _ => &word.spot,
        };
        let Some((start, end)) = spot.span else {
            if let Some(list) = list(invocation, spot.source).filter(|l| spot.index < l.len()) {
                list.remove(spot.index);
            }
            continue;
        };
        let Some(text) = text(invocation, spot) else { continue };
        let before = text.get(..start).unwrap_or_default();
        let blanks = before.len() - before.trim_end_matches([' ', '\t']).len();
        // At the head of a text the blanks behind it go with it.
        let behind = text.get(end..).unwrap_or_default();
        let more = if before.trim_end_matches([' ', '\t']).is_empty() {
            behind.len() - behind.trim_start_matches([' ', '\t']).len()
        } else {
            0
        };
        text.replace_range(start - blanks..end + more, "");
    }
}

/// Adds a flag behind the last word of a command.
pub(super) fn append(invocation: &mut Invocation, words: &[Word], scripted: bool, flag: &str, to: To<'_>) {
    // As its neighbours are written.
    let flags: Vec<&Word> =
        words.iter().filter(|w| flag_name(&w.text).is_some_and(|n| n.starts_with("--"))).collect();
    let attached = !flags.is_empty() && flags.iter().all(|w| w.text.contains('='));
    let new: Vec<String> = match to {
        To::Value(value) if attached => vec![format!("{flag}={value}")],
        To::Value(value) => vec![flag.to_owned(), value.to_owned()],
        _ => vec![flag.to_owned()],
    };
    let last = words.last().map(|w| w.spot.clone());
    match last.filter(|_| scripted) {
        Some(spot @ Spot { span: Some((_, end)), .. }) => {
            if let Some(text) = text(invocation, &spot) {
                let mut new: String = new.iter().map(|w| format!(" {}", quote(w))).collect();
                if redirects(text, end) {
                    new.push(' ');
                }
                text.insert_str(end, &new);
            }
        }
        // Parameters of the script, or no script at all.
        _ => invocation.args.extend(new),
    }
}

/// Sets a variable of the pod. One that comes from another object is overridden.
pub(super) fn variable(invocation: &mut Invocation, name: &str, value: &str) {
    match invocation.env.iter_mut().rfind(|v| v.name == name) {
        Some(v) => v.value = Some(value.to_owned()),
        None => invocation.env.push(Variable { name: name.to_owned(), value: Some(value.to_owned()) }),
    }
}
