//! Tokens as a server counts them in its answer.

use std::sync::LazyLock;

use memchr::memmem;

/// What all names of such counts have, and what stands around it in those of a prompt and of an output. Bodies are searched
/// once, and a chunk of a stream that counts nothing costs that search alone.
const WORD: &str = "tokens";
const PROMPT: [(&str, &str); 3] = [("\"prompt_", ""), ("\"input_", ""), ("\"", "_evaluated")];
const OUTPUT: [(&str, &str); 3] = [("\"completion_", ""), ("\"output_", ""), ("\"", "_predicted")];
static TOKENS: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new(WORD));

/// Tokens as the server counted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Usage {
    pub(crate) prompt: Option<u64>,
    pub(crate) output: Option<u64>,
}

impl Usage {
    /// The last number of each stands: a stream counts up.
    pub(crate) fn look(&mut self, text: &[u8]) {
        for at in TOKENS.find_iter(text) {
            let (before, behind) = text.split_at(at);
            let named = |(begin, end): &(&str, &str)| {
                // Most of these words are told by what stands before them.
                let behind =
                    behind.strip_prefix(WORD.as_bytes()).filter(|_| before.ends_with(begin.as_bytes()))?;
                number(behind.strip_prefix(end.as_bytes())?.strip_prefix(b"\"")?)
            };
            if let Some(n) = PROMPT.iter().find_map(named) {
                self.prompt = Some(n);
            } else if let Some(n) = OUTPUT.iter().find_map(named) {
                self.output = Some(n);
            }
        }
    }
}

/// The number behind a key.
fn number(text: &[u8]) -> Option<u64> {
    let rest = text.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    let digits = rest.iter().take(12).take_while(|b| b.is_ascii_digit()).count();
    std::str::from_utf8(rest.get(..digits)?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_tokens_are_found_at_the_end() {
        let mut u = Usage::default();
        u.look(br#"{"choices":[{"text":"\"completion_tokens\": 9"}],"usage":{"prompt_tokens": 12,"total_tokens":15,"completion_tokens":3}}"#);
        assert_eq!(u, Usage { prompt: Some(12), output: Some(3) });
        let mut u = Usage::default();
        u.look(br#"{"usage":{"input_tokens":4,"output_tokens":"x"}}"#);
        assert_eq!(u, Usage { prompt: Some(4), output: None });
        // Details of a count are no count, and the last of a stream stands.
        for part in [
            r#"data: {"usage":{"input_tokens":25,"output_tokens":1,"prompt_tokens_details":{"cached_tokens":9}}}"#,
            r#"data: {"delta":"tokens","output_tokens": 15,"completion_tokens_details":3,"total_tokens":40}"#,
        ] {
            u.look(part.as_bytes());
        }
        assert_eq!(u, Usage { prompt: Some(25), output: Some(15) });
        u.look(br#"{"tokens_evaluated" : 8, "tokens_predicted":3,"tokens_cached":1}"#);
        assert_eq!(u, Usage { prompt: Some(8), output: Some(3) });
    }
}
