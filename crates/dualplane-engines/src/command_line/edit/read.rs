//! The commands that a container starts, as words that know where they stand.

use std::collections::BTreeSet;

use super::script::{self, Token};
use super::{Invocation, Source};
use crate::command_line::base;

/// Names of shells whose `-c` takes a text.
const SHELLS: [&str; 5] = ["sh", "bash", "ash", "dash", "zsh"];
/// What may stand before the shell: `tini -- bash -c`.
const BEFORE_SHELL: usize = 4;

/// Where a text or a part of it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spot {
    /// In which list.
    pub source: Source,
    /// Which element of it.
    pub index: usize,
    /// Bytes of that element; the whole element where it is no script.
    pub span: Option<(usize, usize)>,
}

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// What the program is given.
    pub text: String,
    /// Where it is written.
    pub spot: Spot,
    /// Where the value is written, for a word that came out of a variable, and the variable's name.
    pub value_of: Option<(Spot, String)>,
    /// It came out of a variable of several words: what stands at `spot` is not this word alone.
    pub shared: bool,
}

/// What a container runs.
#[derive(Debug, Clone, Default)]
pub(super) struct Commands {
    /// Each command's words.
    pub all: Vec<Vec<Word>>,
    /// They stand in a shell's text.
    pub scripted: bool,
}

/// The commands of a container; `None` where its script is not read.
pub(super) fn commands(invocation: &Invocation) -> Option<Commands> {
    let list: Vec<(Source, usize, &String)> =
        [(Source::Command, &invocation.command), (Source::Args, &invocation.args)]
            .into_iter()
            .flat_map(|(source, words)| words.iter().enumerate().map(move |(i, w)| (source, i, w)))
            .collect();
    let shell = list.iter().take(BEFORE_SHELL).position(|(_, _, w)| SHELLS.contains(&base(w)));
    let rest = shell.and_then(|at| list.get(at + 1..)).unwrap_or_default();
    let flags = rest.iter().take_while(|(_, _, w)| w.starts_with('-') && w.len() <= 5).collect::<Vec<_>>();
    let takes_text = flags.iter().any(|(_, _, w)| !w.starts_with("--") && w.ends_with('c'));
    let Some((source, index, text)) = rest.get(flags.len()).filter(|_| takes_text) else {
        let words =
            list.iter().map(|(source, index, text)| element(invocation, *source, *index, text)).collect();
        return Some(Commands { all: vec![words], scripted: false });
    };
    // What stands behind the text is `$0`, `$1`, …
    let parameters = rest.get(flags.len() + 2..).unwrap_or_default();
    let parameters: Vec<Word> = parameters.iter().map(|(s, i, t)| element(invocation, *s, *i, t)).collect();
    let mut out = Commands { all: Vec::new(), scripted: true };
    for command in script::commands(text)? {
        let mut words = Vec::new();
        for token in command {
            let spot = Spot { source: *source, index: *index, span: Some((token.start, token.end)) };
            words.extend(expanded(invocation, token, spot, &parameters));
        }
        out.all.push(words);
    }
    Some(out)
}

/// An element of a list. Kubernetes fills in `$(NAME)` and leaves the word one word.
fn element(invocation: &Invocation, source: Source, index: usize, text: &str) -> Word {
    let spot = Spot { source, index, span: None };
    let lone = script::variable(text).filter(|v| v.kubernetes && !v.quoted);
    let value = lone.and_then(|v| Some((invocation.variable(&v.name)?, v.name)));
    match value {
        Some(((at, value), name)) => Word {
            text: value.to_owned(),
            spot,
            value_of: Some((Spot { source: Source::Env, index: at, span: None }, name)),
            shared: false,
        },
        None => Word { text: filled(invocation, text), spot, value_of: None, shared: false },
    }
}

/// A text with `$(NAME)` filled in.
fn filled(invocation: &Invocation, text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("$(") {
        out.push_str(before);
        let known =
            behind.split_once(')').and_then(|(name, tail)| Some((invocation.variable(name)?.1, tail)));
        if let Some((value, tail)) = known {
            out.push_str(value);
            rest = tail;
        } else {
            out.push_str("$(");
            rest = behind;
        }
    }
    out + rest
}

/// What the shell makes of a word: several, where it is a variable of several.
fn expanded(invocation: &Invocation, token: Token, spot: Spot, parameters: &[Word]) -> Vec<Word> {
    let plain = |text: String, spot: Spot| vec![Word { text, spot, value_of: None, shared: false }];
    let Some(variable) = token.variable else { return plain(filled(invocation, &token.text), spot) };
    if variable.name == "@" {
        return parameters.to_vec();
    }
    let Some((at, value)) = invocation.variable(&variable.name) else { return plain(token.text, spot) };
    let whole = Spot { source: Source::Env, index: at, span: None };
    if variable.quoted {
        let value_of = Some((whole, variable.name));
        return vec![Word { text: value.to_owned(), spot, value_of, shared: false }];
    }
    // What Kubernetes fills in the shell reads as its own text; what the shell fills in it only splits.
    let parts = match variable.kubernetes {
        true => script::commands(value).map(|c| c.into_iter().flatten().collect()),
        false => Some(split(value)),
    };
    let Some(parts) = parts else { return plain(token.text, spot) };
    let shared = parts.len() != 1;
    let part = |t: Token| {
        let inner = Spot { span: Some((t.start, t.end)), ..whole.clone() };
        Word { text: t.text, spot: spot.clone(), value_of: Some((inner, variable.name.clone())), shared }
    };
    parts.into_iter().map(part).collect()
}

/// Words between blanks.
fn split(value: &str) -> Vec<Token> {
    let mut out = Vec::new();
    let mut start = None;
    for (i, c) in value.char_indices().chain([(value.len(), ' ')]) {
        match (c.is_whitespace(), start) {
            (false, None) => start = Some(i),
            (true, Some(from)) => {
                let text = value.get(from..i).unwrap_or_default().to_owned();
                out.push(Token { start: from, end: i, text, variable: None });
                start = None;
            }
            _ => {}
        }
    }
    out
}

/// How often a variable's value is used: one that is used twice is not one flag's own.
pub(super) fn uses(invocation: &Invocation, name: &str) -> usize {
    let values = invocation.env.iter().filter_map(|v| v.value.as_deref());
    let texts = invocation.command.iter().chain(&invocation.args).map(String::as_str).chain(values);
    texts.map(|t| references(t).filter(|n| *n == name).count()).sum()
}

/// Names behind `$`, in braces and in parentheses.
fn references(text: &str) -> impl Iterator<Item = &str> {
    text.split('$').skip(1).filter_map(|t| {
        let t = t.strip_prefix(['{', '(']).unwrap_or(t);
        let end = t.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(t.len());
        t.get(..end).filter(|n| !n.is_empty())
    })
}

/// Variables in the words of a command whose values do not stand in the pod's own list.
pub(super) fn hidden(invocation: &Invocation, words: &[Word]) -> BTreeSet<String> {
    let names = words.iter().flat_map(|w| references(&w.text));
    names.filter(|n| invocation.variable(n).is_none()).map(str::to_owned).collect()
}
