//! What a `tokenizer.json` counts. Built with the feature `tokenizer`; without it every file is refused, with what to do instead.

#[cfg(feature = "tokenizer")]
pub use with::Vocabulary;
#[cfg(not(feature = "tokenizer"))]
pub use without::Vocabulary;

#[cfg(feature = "tokenizer")]
mod with {
    use std::fmt::Display;

    use kitoken::convert::convert_tokenizers;
    use kitoken::{Kitoken, Processing};

    /// Texts are counted in pieces of so many bytes at most: what splits them remembers each place in a run of spaces, and some models
    /// take a time that grows by the square of a word. A cut makes a token or two more, of some two thousand.
    pub(super) const PIECE: usize = 8 << 10;
    /// A cut is before a space where there is one near: words of their own are counted the same.
    const NEAR: usize = 256;

    /// The first piece of a text, and the rest.
    pub(super) fn cut(text: &str) -> (&str, &str) {
        if text.len() <= PIECE {
            return (text, "");
        }
        let boundary = |at: usize| (0..=at).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
        let end = boundary(PIECE);
        let near = boundary(end - NEAR);
        let space = text.get(near..end).and_then(|t| t.rfind(' ')).map(|at| near + at);
        text.split_at_checked(space.filter(|at| *at > 0).unwrap_or(end)).unwrap_or((text, ""))
    }

    /// The words of a model.
    pub struct Vocabulary(Kitoken);

    impl std::fmt::Debug for Vocabulary {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.debug_tuple("Vocabulary").finish_non_exhaustive()
        }
    }

    impl Vocabulary {
        /// Reads a file's bytes.
        ///
        /// # Errors
        /// They are no tokenizer, or one of a kind that is not known.
        pub fn read(bytes: &[u8]) -> Result<Self, String> {
            let unusable = |e: &dyn Display| format!("is no tokenizer.json that can be used: {e}");
            let mut known = convert_tokenizers(bytes).map_err(|e| unusable(&e))?;
            // Embedding models bring a length to cut at or to fill up to; a server says itself what it does with a long prompt.
            let all = |p: &Processing| !matches!(p, Processing::Pad { .. } | Processing::Truncate { .. });
            known.config.processing.retain(all);
            Kitoken::try_from(known).map(Self).map_err(|e| unusable(&e))
        }

        /// Tokens of a text, and the pieces in which they were counted; `None` where it cannot be split.
        #[must_use]
        pub fn count(&self, text: &str) -> Option<(u64, u64)> {
            let (mut rest, mut tokens, mut pieces) = (text, 0, 0);
            loop {
                let (piece, behind) = cut(rest);
                // What a text calls a special token is one for servers, too.
                tokens += self.0.encode(piece, true).ok()?.len() as u64;
                (rest, pieces) = (behind, pieces + 1);
                if rest.is_empty() {
                    return Some((tokens, pieces));
                }
            }
        }
    }
}

#[cfg(not(feature = "tokenizer"))]
mod without {
    /// There is none.
    #[derive(Debug)]
    pub enum Vocabulary {}

    impl Vocabulary {
        /// Refuses each file.
        ///
        /// # Errors
        /// Always.
        pub fn read(_: &[u8]) -> Result<Self, String> {
            Err("this program was built without tokenizers and cannot read it; ask the server (--tokenize, tokenize = true), or build it with \
                 cargo build --release -p dualplane"
                .into())
        }

        /// Never asked.
        #[must_use]
        pub fn count(&self, _: &str) -> Option<(u64, u64)> {
            match *self {}
        }
    }
}

#[cfg(all(test, feature = "tokenizer"))]
mod tests {
    use proptest::prelude::*;

    use super::Vocabulary;
    use super::with::{PIECE, cut};

    fn vocabulary() -> Vocabulary {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/guard/tokenizer.json");
        Vocabulary::read(&std::fs::read(file).unwrap()).unwrap()
    }

    /// A run of a million spaces, or of one word, once ended the search for words in a panic, or took minutes.
    #[test]
    fn long_runs_are_counted() {
        let v = vocabulary();
        for run in [" ", "a", "\n ", "\u{4f60}", "'", "1 ", "\u{301}"] {
            let text = run.repeat((1 << 18) / run.len());
            let (tokens, pieces) = v.count(&text).unwrap();
            assert!(tokens > 1000 && pieces >= 32, "{run:?} {tokens} {pieces}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn pieces_are_the_text(words in proptest::collection::vec("[a-z\u{e4}\u{4f60}\u{1f600}]{0,90}( |\n|)", 0..400)) {
            let text = words.concat();
            let (mut rest, mut all) = (text.as_str(), String::new());
            while !rest.is_empty() {
                let (piece, behind) = cut(rest);
                prop_assert!(!piece.is_empty() && piece.len() <= PIECE);
                all.push_str(piece);
                rest = behind;
            }
            prop_assert_eq!(all, text);
        }
    }
}
