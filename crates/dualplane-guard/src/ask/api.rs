//! Paths that cost memory, of the servers that we know. All others pass as they are.

use hyper::Method;

/// What a path asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Api {
    /// `/v1/chat/completions`.
    Chat,
    /// `/v1/completions`, llama.cpp's `/completion`.
    Completions,
    /// `/v1/responses`.
    Responses,
    /// `/v1/messages`.
    Messages,
    /// `/v1/embeddings`, `/pooling`, TEI's `/embed`.
    Embeddings,
    /// `/v1/rerank`, `/score`, `/classify`.
    Rerank,
    /// `/tokenize`: costs host RAM alone.
    Tokenize,
    /// SGLang's, TGI's and Triton's `generate`, and their streams.
    Generate,
    /// Triton's and KServe's `infer`, TorchServe's `predictions`.
    Infer,
    /// `/v1/audio/…`: a form with a file.
    Audio,
    /// `/v1/images/…`.
    Images,
}

impl Api {
    /// All of them.
    pub(crate) const ALL: [Self; 11] = [
        Self::Chat,
        Self::Completions,
        Self::Responses,
        Self::Messages,
        Self::Embeddings,
        Self::Rerank,
        Self::Tokenize,
        Self::Generate,
        Self::Infer,
        Self::Audio,
        Self::Images,
    ];

    /// By method and path; `None`: it passes.
    #[must_use]
    pub fn of(method: &Method, path: &str) -> Option<Self> {
        if method != Method::POST {
            return None;
        }
        // Servers take more than one slash for one, and a last one for none.
        let words = || path.split('/').filter(|w| !w.is_empty());
        // A prefix such as /openai or /api stands before it: the end decides.
        let ends = |tail: &[&str]| {
            let mut from_behind = words().rev();
            tail.iter().rev().all(|t| from_behind.next() == Some(*t))
        };
        let all: &[(&[&str], Self)] = &[
            (&["chat", "completions"], Self::Chat),
            (&["completions"], Self::Completions),
            (&["completion"], Self::Completions),
            (&["infill"], Self::Completions),
            (&["responses"], Self::Responses),
            (&["messages"], Self::Messages),
            (&["embeddings"], Self::Embeddings),
            (&["embedding"], Self::Embeddings),
            (&["embed"], Self::Embeddings),
            (&["embed_all"], Self::Embeddings),
            (&["embed_sparse"], Self::Embeddings),
            (&["pooling"], Self::Embeddings),
            (&["encode"], Self::Embeddings),
            (&["rerank"], Self::Rerank),
            (&["reranking"], Self::Rerank),
            (&["score"], Self::Rerank),
            (&["classify"], Self::Rerank),
            (&["predict"], Self::Rerank),
            (&["tokenize"], Self::Tokenize),
            (&["generate"], Self::Generate),
            (&["generate_stream"], Self::Generate),
            (&["infer"], Self::Infer),
            (&["audio", "transcriptions"], Self::Audio),
            (&["audio", "translations"], Self::Audio),
            (&["audio", "speech"], Self::Completions),
            (&["images", "generations"], Self::Images),
            (&["images", "edits"], Self::Audio),
        ];
        let known = all.iter().find(|(tail, _)| ends(tail)).map(|(_, api)| *api);
        let torchserve = words().next() == Some("predictions") && words().nth(1).is_some();
        // TGI answers at its root.
        known
            .or_else(|| torchserve.then_some(Self::Infer))
            .or_else(|| words().next().is_none().then_some(Self::Generate))
    }

    /// As metrics and the access log say it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Completions => "completions",
            Self::Responses => "responses",
            Self::Messages => "messages",
            Self::Embeddings => "embeddings",
            Self::Rerank => "rerank",
            Self::Tokenize => "tokenize",
            Self::Generate => "generate",
            Self::Infer => "infer",
            Self::Audio => "audio",
            Self::Images => "images",
        }
    }

    /// Tokens are generated, which stay in the KV cache.
    #[must_use]
    pub fn generates(self) -> bool {
        matches!(self, Self::Chat | Self::Completions | Self::Responses | Self::Messages | Self::Generate)
    }

    /// The body is a form with files: it is not read, its size counts.
    #[must_use]
    pub fn is_form(self) -> bool {
        self == Self::Audio
    }

    /// Names of inputs are the model's own, so every value may be text.
    #[must_use]
    pub(crate) fn names_are_free(self) -> bool {
        matches!(self, Self::Generate | Self::Infer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_path_decides() {
        let of = |path| Api::of(&Method::POST, path);
        assert_eq!(of("/v1/chat/completions"), Some(Api::Chat));
        assert_eq!(of("//openai/v1//chat/completions/"), Some(Api::Chat));
        assert_eq!(of("/v1/completions"), Some(Api::Completions));
        assert_eq!(of("/v2/models/ensemble/generate_stream"), Some(Api::Generate));
        assert_eq!(of("/v2/models/bert/versions/1/infer"), Some(Api::Infer));
        assert_eq!(of("/predictions/resnet/2.0"), Some(Api::Infer));
        assert_eq!(of("/v1/audio/transcriptions"), Some(Api::Audio));
        assert_eq!(of("/"), Some(Api::Generate));
        for passes in ["/metrics", "/v1/models", "/health", "/v1/load_lora_adapter", "/v1/chat"] {
            assert_eq!(of(passes), None, "{passes}");
        }
        assert_eq!(Api::of(&Method::GET, "/v1/chat/completions"), None);
    }
}
