//! One automaton over the literals of all rules: most lines hold none of them and are not looked at twice.

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::redaction::{Names, Redaction};
use super::{Mark, Signature};

/// Whose literal stands in a text.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Owner {
    /// Index of a shape.
    Shape(usize),
    /// A word of secret names.
    Name,
    /// Index of a signature that marks user text.
    User(usize),
    /// A key of JSON that only a reader of JSON can judge.
    Key,
}

/// The automaton and whose literal is whose.
#[derive(Debug)]
pub(crate) struct Gate {
    automaton: AhoCorasick,
    owners: Vec<Owner>,
}

/// A literal that stands in a text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hit {
    pub(crate) owner: Owner,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Gate {
    /// `None` where the literals do not compile, which a test excludes for the embedded ones.
    pub(crate) fn new(shapes: &[Redaction], names: &Names, signatures: &[Signature]) -> Option<Self> {
        let mut literals: Vec<&str> = Vec::new();
        let mut owners = Vec::new();
        let mut add = |literal, owner| {
            literals.push(literal);
            owners.push(owner);
        };
        for (i, s) in shapes.iter().enumerate() {
            s.literals.iter().for_each(|l| add(l, Owner::Shape(i)));
        }
        // A part of a word stands in each of its spellings: `api_key`, `api-key`, `apiKey`. The longest is the rarest: `id`
        // would stop at every `pid=1`.
        let mut words: Vec<&str> = names
            .secret
            .iter()
            .flat_map(|s| s.words.iter().chain(&s.exact))
            .filter_map(|w| w.split('_').max_by_key(|p| p.len()))
            .filter(|w| !w.is_empty())
            .collect();
        words.sort_unstable();
        words.dedup();
        words.into_iter().for_each(|w| add(w, Owner::Name));
        for (i, s) in signatures.iter().enumerate().filter(|(_, s)| s.mark == Mark::UserText) {
            s.literals.iter().for_each(|l| add(l, Owner::User(i)));
        }
        const KEYS: &[&str] =
            &["\"value\"", "\"kind\"", "\"args\"", "\"command\"", "\"cmd\"", "\"env\"", "\"values\""];
        let fields: Vec<String> =
            names.fields.iter().flat_map(|f| &f.names).map(|n| format!("\"{n}\"")).collect();
        KEYS.iter().copied().chain(fields.iter().map(String::as_str)).for_each(|k| add(k, Owner::Key));
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .ascii_case_insensitive(true)
            // A DFA reads half as fast again and takes four times as long to build, which every short report would pay.
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(&literals)
            .ok()?;
        Some(Self { automaton, owners })
    }

    /// Whether any literal stands in the text.
    pub(crate) fn any(&self, text: &str) -> bool {
        self.automaton.is_match(text)
    }

    /// All literals that stand in the text.
    pub(crate) fn hits<'t>(&'t self, text: &'t str) -> impl Iterator<Item = Hit> + 't {
        self.automaton.find_overlapping_iter(text).filter_map(|m| {
            let owner = *self.owners.get(m.pattern().as_usize())?;
            Some(Hit { owner, start: m.start(), end: m.end() })
        })
    }
}
