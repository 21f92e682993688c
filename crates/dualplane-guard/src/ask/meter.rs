//! Walks a JSON body once and keeps numbers alone: nothing of a prompt is copied or kept.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use dualplane_admission::template::Texts;
use dualplane_base::hash::fnv1a;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::Api;
use super::image::pixels;
use super::media::Media;
use super::scalar::{Any, One};

/// Pixels of a picture that is named and not sent, or of a format that we do not read: a photo as phones send it.
const UNKNOWN_PIXELS: u64 = 4 << 20;
/// A beginning that is shorter is not worth a place in a table.
const LEAST_PREFIX: usize = 512;

/// What a body asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ask {
    /// Model that it names.
    pub model: Option<String>,
    /// Bytes of text that become a prompt.
    pub text_bytes: u64,
    /// Numbers that are tokens, or elements of a tensor.
    pub numbers: u64,
    /// Messages of a conversation.
    pub messages: u64,
    /// Prompts in one request.
    pub batch: u64,
    /// Answers for each prompt.
    pub sequences: u64,
    /// The caller's own bound of an answer.
    pub max_output: Option<u64>,
    /// The answer comes in parts.
    pub stream: bool,
    /// Pictures.
    pub images: u64,
    /// Their pixels.
    pub pixels: u64,
    /// Bytes of sound and other encoded media.
    pub media_bytes: u64,
    /// It asks for an adapter by a field of its own.
    pub adapter: bool,
    /// Steps of a diffusion.
    pub steps: u64,
    /// It has tools, or functions.
    pub tools: bool,
    /// Its first long text: hash and bytes.
    pub prefix: Option<(u64, u64)>,
    /// Its texts, counted with a tokenizer; nothing where there is none.
    pub texts: Texts,
}

/// Why a body is not read.
#[derive(Debug, thiserror::Error)]
pub enum NotRead {
    /// It is no JSON, or nested more than 127 deep.
    #[error("the body is not valid JSON: {0}")]
    Json(String),
    /// It is JSON, and no object.
    #[error("the body is JSON, and not an object")]
    NoObject,
}

/// Tokens of a text, and the pieces in which they were counted.
pub type Count<'c> = &'c dyn Fn(&str) -> (u64, u64);

/// Reads a body.
///
/// # Errors
/// It is no JSON object, or deeper than servers read.
pub fn read(api: Api, body: &[u8]) -> Result<Ask, NotRead> {
    read_counting(api, body, &|_| (0, 1))
}

/// Reads a body and counts the tokens of each text that becomes a prompt.
///
/// # Errors
/// As [`read`].
pub fn read_counting(api: Api, body: &[u8], count: Count<'_>) -> Result<Ask, NotRead> {
    let first = body.iter().find(|b| !b.is_ascii_whitespace());
    if !matches!(first, Some(b'{')) {
        // Say what is wrong with it, and not with our visitor.
        return match serde_json::from_slice::<IgnoredAny>(body) {
            Ok(_) => Err(NotRead::NoObject),
            Err(e) => Err(NotRead::Json(e.to_string())),
        };
    }
    let mut found = Found { api, ask: Ask::default(), bounds: BTreeMap::new(), width: 0, height: 0, count };
    let mut json = serde_json::Deserializer::from_slice(body);
    Fields { found: &mut found, free: api.names_are_free(), nested: false }
        .deserialize(&mut json)
        .and_then(|()| json.end())
        .map_err(|e| NotRead::Json(e.to_string()))?;
    Ok(found.ask())
}

struct Found<'c> {
    api: Api,
    ask: Ask,
    /// Bounds of the output by key; a key that stands twice keeps the larger, and none is the largest.
    bounds: BTreeMap<&'static str, Option<u64>>,
    width: u64,
    height: u64,
    count: Count<'c>,
}

impl Found<'_> {
    fn ask(mut self) -> Ask {
        self.ask.max_output = self.bounds.values().copied().flatten().max();
        self.ask.pixels = self.ask.pixels.saturating_add(self.width.saturating_mul(self.height));
        // Tools stand before the first message in most templates, so it is no beginning any more.
        if self.ask.tools {
            self.ask.prefix = None;
        }
        if let (Some((hash, _)), Some(model)) = (&mut self.ask.prefix, &self.ask.model) {
            *hash ^= fnv1a(model.bytes());
        }
        // One prompt of these is a conversation, too.
        let least = u64::from(matches!(self.api, Api::Chat | Api::Responses | Api::Messages));
        self.ask.texts.messages = self.ask.messages.max(least);
        self.ask
    }
}

/// Fields of the body, or of an object of parameters in it.
struct Fields<'f, 'c> {
    found: &'f mut Found<'c>,
    /// Unknown names may hold text.
    free: bool,
    nested: bool,
}

/// A name, as it stands in the body unless it is escaped: serde copies each that is read as a plain `Cow`.
#[derive(Deserialize)]
struct Key<'b>(#[serde(borrow)] Cow<'b, str>);

/// Names of the bound of an output.
const BOUNDS: &[&str] = &[
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "max_new_tokens",
    "max_gen_len",
    "n_predict",
    "max_length",
];

/// Names of text that becomes a prompt, and of what stands in it.
const TEXTS: &[&str] = &[
    "messages",
    "prompt",
    "input",
    "inputs",
    "input_ids",
    "prompt_token_ids",
    "text_input",
    "text",
    "texts",
    "system",
    "instructions",
    "tools",
    "functions",
    "documents",
    "query",
    "queries",
    "content",
    "suffix",
    "input_prefix",
    "input_suffix",
    "text_1",
    "text_2",
    "data",
    "data_1",
    "data_2",
    "image_data",
    "image",
    "images",
];

impl<'de> DeserializeSeed<'de> for Fields<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Fields<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Key<'de>>()? {
            let found = &mut *self.found;
            let key: &str = &key.0;
            if let Some(name) = BOUNDS.iter().find(|b| **b == key) {
                let bound = map.next_value_seed(One)?.count;
                let known = found.bounds.entry(name).or_insert(bound);
                *known = known.zip(bound).map(|(a, b)| a.max(b));
                continue;
            }
            match key {
                "model" => found.ask.model = map.next_value_seed(One)?.word,
                "n" | "best_of" | "num_return_sequences" | "num_beams" | "beam_width" => {
                    let n = map.next_value_seed(One)?.count.unwrap_or(1);
                    found.ask.sequences = found.ask.sequences.max(n);
                }
                "num_inference_steps" | "steps" => {
                    found.ask.steps = found.ask.steps.max(map.next_value_seed(One)?.count.unwrap_or(0));
                }
                "width" => found.width = found.width.max(map.next_value_seed(One)?.count.unwrap_or(0)),
                "height" => found.height = found.height.max(map.next_value_seed(One)?.count.unwrap_or(0)),
                "size" => {
                    let size = map.next_value_seed(One)?.word;
                    let sides = size.as_deref().and_then(|s| s.split_once('x'));
                    if let Some((Ok(w), Ok(h))) = sides.map(|(w, h)| (w.parse(), h.parse())) {
                        found.width = found.width.max(w);
                        found.height = found.height.max(h);
                    }
                }
                "stream" => found.ask.stream |= map.next_value_seed(One)?.yes,
                "adapter_id" | "lora_path" | "lora" => {
                    map.next_value::<Any>()?;
                    found.ask.adapter = true;
                }
                "parameters" | "sampling_params" | "options" | "generation_config" if !self.nested => {
                    map.next_value_seed(Fields { found, free: false, nested: true })?;
                }
                _ if TEXTS.contains(&key) || self.free => {
                    found.ask.tools |= matches!(key, "tools" | "functions");
                    let batch = matches!(
                        key,
                        "prompt"
                            | "input"
                            | "inputs"
                            | "texts"
                            | "queries"
                            | "text"
                            | "text_input"
                            | "input_ids"
                    );
                    let picture = matches!(key, "image_data" | "image" | "images");
                    let turns = key == "messages" || (key == "input" && found.api == Api::Responses);
                    let meter = Meter {
                        ask: &mut found.ask,
                        count: found.count,
                        top: true,
                        batch,
                        messages: turns,
                        picture,
                        // In a conversation the template says whose turn it is; of anything else the names are told.
                        named: !turns,
                    };
                    map.next_value_seed(meter)?;
                }
                _ => {
                    map.next_value::<Any>()?;
                }
            }
        }
        Ok(())
    }

    // Parameters may be null or a list; nothing of it is known.
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element::<Any>()?.is_some() {}
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
}

/// Counts what stands in a value.
struct Meter<'a> {
    ask: &'a mut Ask,
    count: Count<'a>,
    /// The value of a field, and not something in it.
    top: bool,
    /// Strings and lists at the top are prompts of their own.
    batch: bool,
    messages: bool,
    /// A string is a picture: an address, a data URL or base64.
    picture: bool,
    /// Names of what stands in it are part of the prompt.
    named: bool,
}

impl Meter<'_> {
    fn text(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let len = bytes.len() as u64;
        let encoded = text.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
        match encoded {
            Some((kind, data)) if kind.starts_with("image/") => self.image(pixels(data.as_bytes())),
            Some((_, data)) => self.media(data.len() as u64),
            None if self.picture => {
                let data = if text.starts_with("http") { None } else { pixels(bytes) };
                self.image(data);
            }
            None => {
                self.ask.text_bytes = self.ask.text_bytes.saturating_add(len);
                self.counted(text);
                if self.ask.prefix.is_none() && self.ask.text_bytes == len && bytes.len() >= LEAST_PREFIX {
                    self.ask.prefix = Some((fnv1a(bytes.iter().copied()), len));
                }
            }
        }
    }

    fn counted(&mut self, text: &str) {
        let t = &mut self.ask.texts;
        let (tokens, pieces) = (self.count)(text);
        t.tokens = t.tokens.saturating_add(tokens);
        t.texts = t.texts.saturating_add(pieces);
    }

    fn image(&mut self, pixels: Option<u64>) {
        self.ask.images += 1;
        self.ask.pixels = self.ask.pixels.saturating_add(pixels.unwrap_or(UNKNOWN_PIXELS));
    }

    fn media(&mut self, bytes: u64) {
        self.ask.media_bytes = self.ask.media_bytes.saturating_add(bytes);
    }

    fn inner(&mut self, picture: bool) -> Meter<'_> {
        let (count, named) = (self.count, self.named);
        Meter { ask: &mut *self.ask, count, top: false, batch: false, messages: false, picture, named }
    }
}

impl<'de> DeserializeSeed<'de> for Meter<'_> {
    type Value = Kind;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Kind, D::Error> {
        d.deserialize_any(self)
    }
}

/// What a value was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Text,
    List,
    Other,
}

impl<'de> Visitor<'de> for Meter<'_> {
    type Value = Kind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_str<E>(mut self, text: &str) -> Result<Kind, E> {
        self.text(text);
        Ok(Kind::Text)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Kind, E> {
        self.ask.numbers = self.ask.numbers.saturating_add(1);
        Ok(Kind::Number)
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<Kind, E> {
        self.visit_u64(0)
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<Kind, E> {
        self.visit_u64(0)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Kind, E> {
        Ok(Kind::Other)
    }

    fn visit_unit<E>(self) -> Result<Kind, E> {
        Ok(Kind::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<Kind, A::Error> {
        let mut prompts = 0_u64;
        let picture = self.picture;
        while let Some(kind) = seq.next_element_seed(self.inner(picture))? {
            prompts += u64::from(matches!(kind, Kind::Text | Kind::List));
            if self.top && self.messages {
                self.ask.messages += 1;
            }
        }
        if self.top && self.batch {
            self.ask.batch = self.ask.batch.max(prompts);
        }
        Ok(Kind::List)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Kind, A::Error> {
        while let Some(key) = map.next_key::<Key<'de>>()? {
            match &*key.0 {
                // An object of a picture has its address in `url`.
                "image_url" | "image" | "input_image" => {
                    map.next_value_seed(self.inner(true))?;
                }
                "url" if self.picture => {
                    map.next_value_seed(self.inner(true))?;
                }
                // How finely to look at it.
                "detail" | "format" | "type" | "role" => {
                    map.next_value::<Any>()?;
                }
                "input_audio" | "audio_url" | "video_url" | "file" | "source" => {
                    map.next_value_seed(Media(&mut *self.ask))?;
                }
                key => {
                    // Names stand in the prompt where an object is a tool.
                    self.ask.text_bytes = self.ask.text_bytes.saturating_add(key.len() as u64);
                    let calls = matches!(key, "tool_calls" | "function_call" | "tool_use");
                    if self.named {
                        self.ask.texts.names = self.ask.texts.names.saturating_add(1);
                        self.counted(key);
                    }
                    let inner = self.inner(false);
                    map.next_value_seed(Meter { named: inner.named || calls, ..inner })?;
                }
            }
        }
        Ok(Kind::Other)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ask(api: Api, body: &str) -> Ask {
        read(api, body.as_bytes()).unwrap()
    }

    #[test]
    fn each_api() {
        let a = ask(
            Api::Chat,
            r#"{"model":"m","messages":[{"role":"system","content":"abc"},{"role":"user","content":[{"type":"text","text":"defg"}]}],
            "max_tokens":null,"max_completion_tokens":50,"n":2,"stream":true,"user":"not a prompt"}"#,
        );
        assert_eq!((a.messages, a.max_output, a.sequences, a.stream), (2, Some(50), 2, true));
        // Content, and the names `content` and `text`.
        assert_eq!(a.text_bytes, 7 + 7 + 7 + 4);
        let a = ask(Api::Completions, r#"{"prompt":["abcd","ef"],"max_tokens":5,"best_of":3}"#);
        assert_eq!((a.text_bytes, a.batch, a.sequences), (6, 2, 3));
        let a = ask(Api::Completions, r#"{"prompt":[1,2,3],"n_predict":-1}"#);
        assert_eq!((a.numbers, a.batch, a.max_output), (3, 0, None));
        let a = ask(Api::Completions, r#"{"prompt":[[1,2],[3]]}"#);
        assert_eq!((a.numbers, a.batch), (3, 2));
        let a = ask(Api::Generate, r#"{"inputs":"abc","parameters":{"max_new_tokens":9,"best_of":2}}"#);
        assert_eq!((a.text_bytes, a.max_output, a.sequences), (3, Some(9), 2));
        let a = ask(Api::Generate, r#"{"text":"abc","sampling_params":{"max_new_tokens":9,"n":2}}"#);
        assert_eq!((a.text_bytes, a.max_output, a.sequences), (3, Some(9), 2));
        let a = ask(Api::Generate, r#"{"text_input":"abc","max_tokens":9,"PROMPT":"own"}"#);
        assert_eq!((a.text_bytes, a.max_output), (6, Some(9)));
        let a = ask(Api::Images, r#"{"prompt":"cat","size":"1024x512","n":2,"num_inference_steps":30}"#);
        assert_eq!((a.pixels, a.sequences, a.steps), (1024 * 512, 2, 30));
        let a = ask(
            Api::Messages,
            r#"{"system":"abc","messages":[{"role":"user","content":"d"}],"max_tokens":1}"#,
        );
        assert_eq!((a.text_bytes, a.messages), (3 + 7 + 1, 1));
    }

    #[test]
    fn pictures_count_by_pixels_and_not_as_text() {
        let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
        let body = format!(
            r#"{{"messages":[{{"role":"user","content":[{{"type":"image_url","image_url":{{"url":"data:image/png;base64,{png}"}}}},
            {{"type":"image_url","image_url":{{"url":"https://x/y.jpg","detail":"low"}}}}]}}]}}"#
        );
        let a = ask(Api::Chat, &body);
        assert_eq!((a.images, a.pixels), (2, 1 + UNKNOWN_PIXELS));
        assert!(a.text_bytes < 20, "{a:?}");
        let body = format!(
            r#"{{"messages":[{{"role":"user","content":[{{"type":"image","source":{{"type":"base64","data":"{png}"}}}}]}}]}}"#
        );
        assert_eq!(ask(Api::Messages, &body).images, 1);
    }

    #[test]
    fn a_key_that_stands_twice_counts_by_its_larger_reading() {
        assert_eq!(ask(Api::Chat, r#"{"max_tokens":1,"max_tokens":100}"#).max_output, Some(100));
        assert_eq!(ask(Api::Chat, r#"{"max_tokens":100,"max_tokens":1}"#).max_output, Some(100));
        assert_eq!(ask(Api::Chat, r#"{"max_tokens":100,"max_tokens":null}"#).max_output, None);
        assert_eq!(
            ask(Api::Chat, r#"{"\u006dax_tokens":7}"#).max_output,
            Some(7),
            "an escaped name is the same name"
        );
    }

    #[test]
    fn what_is_no_object_or_too_deep_is_refused() {
        for bad in ["", "[]", "3", "{", "{\"a\":1}x", "\u{feff}{}", "{\"messages\":\"\\ud800\"}"] {
            assert!(read(Api::Chat, bad.as_bytes()).is_err(), "{bad}");
        }
        let deep = format!("{{\"messages\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(read(Api::Chat, deep.as_bytes()).is_err());
        let deep = format!("{{\"other\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(read(Api::Chat, deep.as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes(b in proptest::collection::vec(any::<u8>(), 0..200)) {
            for api in [Api::Chat, Api::Generate, Api::Infer] {
                let _ = read(api, &b);
            }
        }

        #[test]
        fn a_longer_prompt_never_counts_less(text in "\\PC{0,200}", more in "\\PC{0,50}") {
            let of = |t: &str| read(Api::Chat, serde_json::json!({"messages": [{"content": t}]}).to_string().as_bytes()).unwrap();
            prop_assume!(!text.starts_with("data:"));
            let (a, b) = (of(&text), of(&format!("{text}{more}")));
            prop_assert!(b.text_bytes >= a.text_bytes && a.text_bytes >= text.len() as u64);
        }
    }
}
