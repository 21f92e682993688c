//! Tokens of a prompt whose texts were counted with the model's own tokenizer: what the server puts around them, as a range.

use crate::cost::Range;
use crate::tokens::PER_MESSAGE;

/// Before anything was counted, what a chat template says of its own at most: the date and the tools it may use (Llama 3.1 some 25
/// tokens, gpt-oss some 70), or the system message that it puts where the caller has none (Qwen2.5 some 20).
const OPENING: u64 = 128;
/// Where no template is used: the beginning and the end of a sequence.
const SPECIAL: u64 = 2;
/// Quotes, colons and brackets around a name in a schema.
const PER_NAME: u64 = 5;
/// Counts after which what was seen is believed.
const ENOUGH: u32 = 8;
/// Counts that lie outside of the range may be one in so many: more, and the tokenizer is that of another model.
const STRAY: u32 = 4;

/// Texts of a prompt that were counted each for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Texts {
    /// Tokens of all of them.
    pub tokens: u64,
    /// In how many pieces they were counted: each may melt into what stands beside it.
    pub texts: u64,
    /// Names of a schema among them.
    pub names: u64,
    /// Messages of a conversation; 0: no template is used.
    pub messages: u64,
}

/// What was learnt of a model's template.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Template {
    /// The most that stood in a prompt beside its texts and what each message takes.
    opening: u64,
    counts: u32,
    stray: u32,
}

impl Template {
    /// The tokens of the whole prompt.
    #[must_use]
    pub fn tokens(&self, of: &Texts) -> Range {
        Self::with(of, if self.counts >= ENOUGH { self.opening } else { OPENING })
    }

    fn with(of: &Texts, opening: u64) -> Range {
        let opening = if of.messages == 0 { SPECIAL } else { opening };
        let around = [opening, PER_MESSAGE.saturating_mul(of.messages), PER_NAME.saturating_mul(of.names)];
        Range {
            low: of.tokens.saturating_sub(of.texts),
            high: around.into_iter().fold(of.tokens, u64::saturating_add),
        }
    }

    /// Takes in what the server counted of a prompt.
    pub fn learn(&mut self, of: &Texts, counted: u64) {
        // Many messages that take less than they may hide an opening until a short conversation shows it: that is not astray.
        let Range { low, high } = Self::with(of, self.opening.max(OPENING));
        self.stray = self.stray.saturating_add(u32::from(counted < low || counted > high));
        self.counts = self.counts.saturating_add(1);
        if of.messages > 0 {
            let opening = counted.saturating_sub(Self::with(of, 0).high);
            // Another model's count is no template, however long it is.
            self.opening = self.opening.max(opening.min(OPENING * 8));
        }
        // What was long ago is no reason to mistrust what is right now, nor the other way round.
        if self.counts >= 256 {
            (self.counts, self.stray) = (self.counts / 2, self.stray / 2);
        }
    }

    /// Whether the server counts as the tokenizer does. If not, it is another model's, and its counts are worth nothing.
    #[must_use]
    pub fn is_believed(&self) -> bool {
        self.counts < ENOUGH || self.stray.saturating_mul(STRAY) <= self.counts
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn chat(tokens: u64, messages: u64) -> Texts {
        Texts { tokens, texts: messages, names: 0, messages }
    }

    #[test]
    fn narrows_to_what_the_template_says() {
        let mut t = Template::default();
        assert_eq!(t.tokens(&chat(1000, 2)), Range { low: 998, high: 1000 + 16 + 128 });
        for _ in 0..8 {
            t.learn(&chat(1000, 2), 1000 + 2 * 4 + 20);
        }
        assert_eq!(t.tokens(&chat(1000, 2)), Range { low: 998, high: 1028 });
        assert_eq!(t.tokens(&Texts { tokens: 9, texts: 1, ..Texts::default() }), Range { low: 8, high: 11 });
    }

    #[test]
    fn another_models_tokenizer_is_found_out_and_may_come_right() {
        let mut t = Template::default();
        for _ in 0..7 {
            t.learn(&chat(1000, 1), 1400);
        }
        assert!(t.is_believed(), "too few to say so");
        for _ in 0..8 {
            t.learn(&chat(1000, 1), 700);
        }
        assert!(!t.is_believed());
        for _ in 0..600 {
            t.learn(&chat(1000, 1), 1007);
        }
        assert!(t.is_believed(), "{t:?}");
    }

    proptest! {
        /// Whatever a template adds, by a constant and by message: what was counted lies in the range, and the tokenizer is believed.
        #[test]
        fn holds_any_template(opening in 0_u64..=OPENING, each in 0_u64..=PER_MESSAGE,
            prompts in proptest::collection::vec((1_u64..50_000, 1_u64..40), 1..60)) {
            let mut t = Template::default();
            for (tokens, messages) in prompts {
                let of = chat(tokens, messages);
                let counted = tokens + opening + each * messages;
                let first = t.tokens(&of);
                prop_assert!(first.low <= counted && (t.counts >= ENOUGH || counted <= first.high), "{:?}", first);
                t.learn(&of, counted);
                let range = t.tokens(&of);
                prop_assert!(range.low <= counted && counted <= range.high, "{:?} {}", range, counted);
                prop_assert!(range.high - range.low <= OPENING + messages * (PER_MESSAGE + 1));
                prop_assert!(t.is_believed());
            }
        }
    }
}
