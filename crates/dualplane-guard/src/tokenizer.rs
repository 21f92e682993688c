//! Tokenizers of models, from their `tokenizer.json`: prompts are counted before they are sent, without asking a server.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dualplane_admission::template::Texts;
use hyper::body::Bytes;
use serde::Deserialize;
use tokio::sync::Semaphore;

use crate::ask::{Api, Ask, read_counting};
use crate::vocabulary::Vocabulary;

/// Longer texts are not counted but estimated by what was learnt: a second of a processor for each would be an attack.
const MOST: u64 = 1 << 20;
/// The largest that was seen has 33 MiB (Gemma 3: 262,144 words).
const LARGEST: u64 = 256 << 20;

/// One of the file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenizerConfig {
    /// The model's `tokenizer.json`.
    pub file: PathBuf,
    /// Models whose it is, as requests name them; none: of every model that no other is for.
    #[serde(default)]
    pub models: Vec<String>,
}

/// A tokenizer that was read.
pub struct Tokenizer {
    said: TokenizerConfig,
    words: Arc<Vocabulary>,
    /// As many count at a time as there are processors. Who finds none free is estimated and does not wait.
    free: Arc<Semaphore>,
}

impl Tokenizer {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, is too large, or is no tokenizer.
    fn load(said: &TokenizerConfig) -> Result<Self, String> {
        let path = &said.file;
        let at = |why: &dyn fmt::Display| format!("{}: {why}", path.display());
        let bytes = read(path).map_err(|e| at(&e))?;
        let words = Vocabulary::read(&bytes).map_err(|e| at(&e))?;
        let most = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Ok(Self { said: said.clone(), words: Arc::new(words), free: Arc::new(Semaphore::new(most)) })
    }

    /// Counts the texts of a request, on another thread: a long prompt takes some milliseconds, in which streams go on.
    pub(crate) async fn texts(&self, api: Api, ask: &Ask, body: &Bytes) -> Option<Texts> {
        if ask.text_bytes > MOST {
            return None;
        }
        let permit = Arc::clone(&self.free).try_acquire_owned().ok()?;
        let (words, body) = (Arc::clone(&self.words), body.clone());
        let counted = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            count(&words, api, &body)
        });
        counted.await.ok().flatten()
    }
}

fn read(path: &Path) -> Result<Vec<u8>, std::io::Error> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(std::io::Error::other("is larger than any tokenizer (256 MiB)"));
    }
    Ok(bytes)
}

/// The texts of a body; `None` where one of them cannot be split, which says nothing of the others.
fn count(words: &Vocabulary, api: Api, body: &[u8]) -> Option<Texts> {
    let whole = std::cell::Cell::new(true);
    let of = |text: &str| {
        words.count(text).unwrap_or_else(|| {
            whole.set(false);
            (0, 0)
        })
    };
    let texts = read_counting(api, body, &of).ok()?.texts;
    whole.get().then_some(texts)
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tokenizer").field(&self.said).finish()
    }
}

/// All of a configuration.
#[derive(Debug, Clone, Default)]
pub struct Tokenizers(Arc<Vec<Tokenizer>>);

impl Tokenizers {
    /// Reads all files.
    ///
    /// # Errors
    /// The first key that cannot be, and why.
    pub(crate) fn load(said: &[TokenizerConfig]) -> Result<Self, (String, String)> {
        let mut all: Vec<Tokenizer> = Vec::new();
        for (i, one) in said.iter().enumerate() {
            let twice = all.iter().find_map(|t| {
                let both_rest = one.models.is_empty() && t.said.models.is_empty();
                let shared = one.models.iter().find(|m| t.said.models.contains(m));
                shared.cloned().or_else(|| both_rest.then(|| "every model".to_owned()))
            });
            if let Some(model) = twice {
                return Err((
                    format!("tokenizer[{i}].models"),
                    format!("{model} has another tokenizer, too"),
                ));
            }
            all.push(Tokenizer::load(one).map_err(|why| (format!("tokenizer[{i}].file"), why))?);
        }
        Ok(Self(Arc::new(all)))
    }

    /// That of a model.
    #[must_use]
    pub fn of(&self, model: &str) -> Option<&Tokenizer> {
        let named = |t: &&Tokenizer| t.said.models.iter().any(|m| m == model);
        self.0.iter().find(named).or_else(|| self.0.iter().find(|t| t.said.models.is_empty()))
    }
}

#[cfg(all(test, feature = "tokenizer"))]
mod tests {
    use std::sync::LazyLock;

    use dualplane_admission::template::Template;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/guard/tokenizer.json");

    fn config(file: &str, models: &[&str]) -> TokenizerConfig {
        TokenizerConfig { file: file.into(), models: models.iter().map(|m| (*m).to_owned()).collect() }
    }

    fn tokenizer() -> &'static Tokenizer {
        static READ: LazyLock<Tokenizer> = LazyLock::new(|| Tokenizer::load(&config(FILE, &[])).unwrap());
        &READ
    }

    fn count_of(t: &Tokenizer, api: Api, body: &serde_json::Value) -> Texts {
        count(&t.words, api, body.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn a_model_has_its_own_or_that_of_the_rest() {
        let all = Tokenizers::load(&[config(FILE, &["a", "b"]), config(FILE, &[])]).unwrap();
        assert_eq!(all.of("b").unwrap().said.models, ["a", "b"]);
        assert!(all.of("c").unwrap().said.models.is_empty());
        let one = Tokenizers::load(&[config(FILE, &["a"])]).unwrap();
        assert!(one.of("c").is_none());
        for (two, key) in [
            ([config(FILE, &[]), config(FILE, &[])], "tokenizer[1].models"),
            ([config(FILE, &["a"]), config(FILE, &["b", "a"])], "tokenizer[1].models"),
            ([config(FILE, &["a"]), config("/no", &["b"])], "tokenizer[1].file"),
            (
                [config(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"), &[]), config(FILE, &["a"])],
                "tokenizer[0].file",
            ),
        ] {
            assert_eq!(Tokenizers::load(&two).unwrap_err().0, key);
        }
    }

    /// The file cuts at 64 tokens and fills up to them.
    #[test]
    fn neither_cuts_nor_fills_up() {
        let t = tokenizer();
        let texts = count_of(t, Api::Completions, &json!({ "prompt": "a" }));
        assert_eq!((texts.tokens, texts.texts, texts.messages), (1, 1, 0));
        assert!(count_of(t, Api::Completions, &json!({ "prompt": "q ".repeat(500) })).tokens > 400);
    }

    #[test]
    fn names_are_part_of_a_tools_schema_and_not_of_a_message() {
        let t = tokenizer();
        let plain = json!({ "messages": [{ "role": "user", "content": "abc" }] });
        let a = count_of(t, Api::Chat, &plain);
        assert_eq!((a.texts, a.names, a.messages), (1, 0, 1));
        let mut tools = plain;
        tools["tools"] =
            json!([{ "type": "function", "function": { "name": "f", "parameters": { "x": {} } } }]);
        let b = count_of(t, Api::Chat, &tools);
        assert_eq!((b.texts, b.names, b.messages), (6, 4, 1));
        assert!(b.tokens > a.tokens);
        // One text of a conversation is a message, too, where a template stands around it.
        assert_eq!(count_of(t, Api::Responses, &json!({ "input": "abc" })).messages, 1);
        let turns =
            json!({ "input": [{ "role": "user", "content": "a" }, { "role": "user", "content": "b" }] });
        assert_eq!(count_of(t, Api::Responses, &turns).messages, 2);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        /// What a server counts of the whole prompt, as its template writes it, lies within the range, whatever the texts.
        #[test]
        fn the_whole_prompt_lies_in_the_range(texts in proptest::collection::vec("[ -~\\n\u{e4}\u{4f60}\u{1f600}]{0,80}", 1..12),
            template in 0_usize..3) {
            let t = tokenizer();
            let messages: Vec<_> = texts.iter().map(|c| json!({ "role": "user", "content": c })).collect();
            let counted = count_of(t, Api::Chat, &json!({ "messages": messages }));
            let written: Vec<String> = texts
                .iter()
                .map(|c| match template {
                    0 => format!("<s>{c}</s>\n"),
                    1 => format!("<s>U\n{c}</s>"),
                    _ => format!("\n\nu: {c}"),
                })
                .collect();
            let whole = format!("<s>{}<s>", written.concat());
            let server = t.words.count(&whole).unwrap().0;
            let range = Template::default().tokens(&counted);
            prop_assert!(range.low <= server && server <= range.high, "{:?} {}", range, server);
        }

        /// Broken bodies neither panic nor count more tokens than bytes.
        #[test]
        fn any_body(body in "\\PC{0,200}") {
            let t = tokenizer();
            let bodies = [body.clone(), format!("{{\"prompt\":{}}}", json!(body))];
            for b in &bodies {
                if let Some(texts) = count(&t.words, Api::Completions, b.as_bytes()) {
                    prop_assert!(texts.tokens <= b.len() as u64);
                }
            }
        }
    }
}
