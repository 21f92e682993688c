//! Looking around a word: its neighbours, within the sentence.

use super::lex::Token;
use super::lexicon::Roles;

/// The words of a line, to look around in.
pub(super) struct Words<'t> {
    pub(super) text: &'t str,
    pub(super) tokens: &'t [Token],
}

impl Words<'_> {
    pub(super) fn is(&self, i: usize, roles: Roles) -> bool {
        self.tokens.get(i).is_some_and(|t| t.roles & roles != 0)
    }

    pub(super) fn word(&self, i: usize) -> &str {
        self.tokens.get(i).and_then(|t| self.text.get(t.at..t.end)).unwrap_or_default()
    }

    pub(super) fn named(&self, i: usize, words: &[&str]) -> bool {
        words.iter().any(|w| w.eq_ignore_ascii_case(self.word(i)))
    }

    pub(super) fn same(&self, i: usize, j: usize) -> bool {
        let of = |i: usize| self.tokens.get(i).map(|t| t.sentence);
        of(i).is_some() && of(i) == of(j)
    }

    pub(super) fn ahead(&self, i: usize, reach: usize, roles: Roles) -> Option<usize> {
        (i + 1..=i + reach).take_while(|j| self.same(i, *j)).find(|j| self.is(*j, roles))
    }

    pub(super) fn behind(&self, i: usize, reach: usize, roles: Roles) -> Option<usize> {
        (i.saturating_sub(reach)..i).rev().take_while(|j| self.same(i, *j)).find(|j| self.is(*j, roles))
    }

    pub(super) fn parted(&self, i: usize, j: usize) -> bool {
        self.tokens.get(i + 1..=j).is_some_and(|t| t.iter().any(|t| t.parted))
    }

    pub(super) fn apart(&self, i: usize) -> &str {
        let before = i.checked_sub(1).and_then(|j| self.tokens.get(j)).map_or(0, |t| t.end);
        self.tokens.get(i).and_then(|t| self.text.get(before..t.at)).unwrap_or_default()
    }
}
