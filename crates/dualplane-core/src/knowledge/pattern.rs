//! Patterns of signatures: compiled when a line first asks for one, at first without what only many lines repay.
//!
//! The engines of a regular expression that read a line fastest (a lazy automaton, forwards and backwards; literals that
//! stand in each match) take most of the time of its compilation. A short report asks a pattern once or twice; a large log
//! asks it a thousand times, and then they are built. Both engines find the same.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use regex_automata::meta::{BuildError, Config, Regex};
use regex_automata::util::captures::Captures;
use regex_automata::util::syntax;

use super::signature::Text;

/// Lines after which the engines for many lines are built: they cost about what so many lines cost without them.
const FEW: u32 = 32;

/// So many lines are looked through for words first: a large log asks the pattern, whose fast engines read a line sooner.
const LOOKED_THROUGH: u32 = 256;

/// A pattern, as far as it was compiled.
#[derive(Debug, Default)]
pub(super) struct Pattern {
    looked_through: AtomicU32,
    few: OnceLock<Option<Regex>>,
    many: OnceLock<Option<Regex>>,
    asked: AtomicU32,
}

impl Clone for Pattern {
    /// A copy is compiled anew.
    fn clone(&self) -> Self {
        Self::new()
    }
}

impl Pattern {
    /// Not compiled yet.
    pub(super) const fn new() -> Self {
        Self {
            looked_through: AtomicU32::new(0),
            few: OnceLock::new(),
            many: OnceLock::new(),
            asked: AtomicU32::new(0),
        }
    }

    /// The groups of the first place where the pattern of this text stands; `None` also where it does not compile.
    pub(super) fn captures(&self, pattern: &str, words: &[Text], line: &[u8]) -> Option<Captures> {
        if !words.is_empty() && self.looked_through.load(Ordering::Relaxed) < LOOKED_THROUGH {
            self.looked_through.fetch_add(1, Ordering::Relaxed);
            if !has_any(words, line) {
                return None;
            }
        }
        let regex = if self.asked.load(Ordering::Relaxed) < FEW {
            self.asked.fetch_add(1, Ordering::Relaxed);
            self.few.get_or_init(|| compile(pattern, &for_few()).ok())
        } else {
            self.many.get_or_init(|| compile(pattern, &Config::new()).ok())
        };
        let regex = regex.as_ref()?;
        let mut captures = regex.create_captures();
        regex.captures(line, &mut captures);
        captures.is_match().then_some(captures)
    }
}

/// Whether one of these, in small letters, stands in the line.
fn has_any(words: &[Text], line: &[u8]) -> bool {
    let line = line.to_ascii_lowercase();
    words.iter().any(|w| memchr::memmem::find(&line, w.as_bytes()).is_some())
}

/// The names of groups that took part in a match, and what they hold.
pub(super) fn groups<'a>(
    captures: &'a Captures,
    line: &'a [u8],
) -> impl Iterator<Item = (&'a str, &'a [u8])> {
    let names = captures.pattern().into_iter().flat_map(|id| captures.group_info().pattern_names(id));
    names.enumerate().filter_map(|(i, name)| Some((name?, line.get(captures.get_group(i)?.range())?)))
}

/// Whether a pattern compiles, and if not why.
pub(super) fn check(pattern: &str) -> Result<(), String> {
    let why = |e: Box<BuildError>| e.syntax_error().map_or_else(|| e.to_string(), ToString::to_string);
    compile(pattern, &for_few()).map(drop).map_err(why)
}

fn for_few() -> Config {
    Config::new().auto_prefilter(false).hybrid(false).onepass(false)
}

/// Compiles a pattern as the matcher uses it: on bytes, ASCII classes, bounded size.
fn compile(pattern: &str, config: &Config) -> Result<Regex, Box<BuildError>> {
    Regex::builder()
        .syntax(syntax::Config::new().unicode(false).utf8(false))
        .configure(config.clone().utf8_empty(false).nfa_size_limit(Some(1 << 20)))
        .build(pattern)
        .map_err(Box::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knowledge::Knowledge;

    #[test]
    fn few_and_many_lines_find_the_same() {
        let lines = include_str!("../../../../knowledge/everyday.log").lines().map(str::to_owned);
        let knowledge = Knowledge::embedded().unwrap();
        let lines: Vec<String> =
            lines.chain(knowledge.signatures().iter().map(|s| s.literals.concat())).collect();
        let found = |regex: &Regex, line: &str| {
            let mut c = regex.create_captures();
            regex.captures(line.as_bytes(), &mut c);
            (0..c.group_len()).map(|i| c.get_group(i)).collect::<Vec<_>>()
        };
        let mut hits = 0;
        for pattern in knowledge.signatures().iter().filter_map(|s| s.pattern.as_deref()) {
            let few = compile(pattern, &for_few()).unwrap();
            let many = compile(pattern, &Config::new()).unwrap();
            for line in &lines {
                let found = [found(&few, line), found(&many, line)];
                assert_eq!(found[0], found[1], "{pattern} on {line}");
                hits += usize::from(found[0].iter().any(Option::is_some));
            }
        }
        assert!(hits > 100, "{hits}");
    }

    #[test]
    fn a_pattern_that_does_not_compile_finds_nothing_and_says_why() {
        assert!(Pattern::default().captures("(", &[], b"(").is_none());
        assert!(check("(").is_err() && check("(?P<n>a)").is_ok());
    }

    #[test]
    fn groups_have_names_before_and_after_many_lines() {
        let pattern = Pattern::default();
        for _ in 0..FEW + 2 {
            let line = b"took 12 of 16 GiB";
            let found = pattern.captures(r"took (?P<used>\d+) of (\d+)(?P<none> KiB)?", &[], line).unwrap();
            assert_eq!(groups(&found, line).collect::<Vec<_>>(), [("used", &b"12"[..])]);
        }
        assert!(pattern.many.get().is_some_and(Option::is_some));
    }
}
