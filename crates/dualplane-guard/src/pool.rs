//! Which pool a request waits in: by length, pictures, adapter, model.

use crate::ask::Ask;

/// What a pool takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Tokens of the prompt from …
    pub min: u64,
    /// … to.
    pub max: u64,
    /// With pictures, or without.
    pub images: Option<bool>,
    /// With an adapter, or without.
    pub adapter: Option<bool>,
    /// Names of models; empty: any.
    pub models: Vec<String>,
}

impl Rule {
    fn takes(&self, ask: &Ask, prompt: u64) -> bool {
        let named = ask.model.as_ref().is_some_and(|m| self.models.contains(m));
        (self.min..=self.max).contains(&prompt)
            && self.images.is_none_or(|i| i == (ask.images > 0))
            && self.adapter.is_none_or(|a| a == ask.adapter || (a && named))
            && (self.models.is_empty() || named)
    }
}

/// The first pool that takes it, by number; the last is that of all others.
#[must_use]
pub fn of(rules: &[Rule], ask: &Ask, prompt: u64) -> usize {
    rules.iter().position(|r| r.takes(ask, prompt)).unwrap_or(rules.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_decides() {
        let rule = |min, images| Rule { min, max: u64::MAX, images, adapter: None, models: Vec::new() };
        let rules = [rule(0, Some(true)), rule(4000, None)];
        let ask = |images| Ask { images, ..Ask::default() };
        assert_eq!(
            (of(&rules, &ask(1), 9000), of(&rules, &ask(0), 4000), of(&rules, &ask(0), 3999)),
            (0, 1, 2)
        );
    }
}
