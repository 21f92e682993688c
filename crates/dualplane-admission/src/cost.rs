//! What a request may take of both planes before it is sent.

use crate::arithmetic::whole_blocks;

/// A number of tokens that is known as a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Range {
    /// At least so many.
    pub low: u64,
    /// At most so many, as far as is known.
    pub high: u64,
}

impl Range {
    /// A count that is exact.
    #[must_use]
    pub const fn exact(n: u64) -> Self {
        Self { low: n, high: n }
    }

    /// Both ends together with another's.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { low: self.low.saturating_add(other.low), high: self.high.saturating_add(other.high) }
    }
}

/// What the bytes of a request say that it asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shape {
    /// Tokens of the prompt, those of images included.
    pub prompt: Range,
    /// The caller's own bound of the output; `None` where there is none.
    pub max_output: Option<u64>,
    /// Whether tokens are generated at all: embeddings and rankings do not.
    pub generates: bool,
    /// Sequences that share the prompt (`n`, `best_of`).
    pub sequences: u64,
    /// Pixels of all images.
    pub pixels: u64,
    /// Bytes of the body.
    pub body_bytes: u64,
    /// A beginning that other requests have too: its hash and its tokens.
    pub prefix: Option<Prefix>,
}

/// A beginning of a prompt that the server keeps once for all requests that run with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    /// Stable hash of its bytes.
    pub hash: u64,
    /// Tokens, counted low: what is not shared for sure is paid.
    pub tokens: u64,
}

/// What host RAM of a server a request takes: on its way through Python processes and until its images are on the GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostModel {
    /// Whatever it asks: connection, request objects, queues.
    pub base: u64,
    /// For a byte of the body: the raw body, the decoded text, the parsed objects, and the message to the engine's process,
    /// each up to two bytes a character.
    pub per_body_byte: u64,
    /// For a token: a Python integer (28 bytes) and its pointer (8) in two processes, and the array of 8 bytes.
    pub per_token: u64,
    /// For a pixel: decoded as RGB (3 bytes), normalised as 32-bit floats (12), and once more while it is staged.
    pub per_pixel: u64,
}

impl Default for HostModel {
    fn default() -> Self {
        Self { base: 64 << 10, per_body_byte: 8, per_token: 80, per_pixel: 30 }
    }
}

/// What a request may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Tokens of KV cache that it is expected to hold at its end.
    pub kv: u64,
    /// Tokens that it holds for sure: the low end of its prompt and one token of output.
    pub certain: u64,
    /// Tokens that it holds if it uses up its own bound; `None` where it has none.
    pub bound: Option<u64>,
    /// Bytes of the server's host RAM.
    pub host: u64,
    /// The part of `kv` that is held once for all with the same prefix.
    pub prefix: Option<Prefix>,
}

/// Prices a request. `expected_output` is for one sequence; `block` is the server's unit of KV cache.
#[must_use]
pub fn price(shape: &Shape, expected_output: u64, block: u64, host: &HostModel) -> Cost {
    let sequences = shape.sequences.max(1);
    let output = match (shape.generates, shape.max_output) {
        (false, _) => 0,
        (true, Some(most)) => expected_output.min(most).max(1),
        (true, None) => expected_output.max(1),
    };
    let held = |prompt: u64, output: u64| {
        // The prompt is held once; what each sequence adds begins in the block where the prompt ends.
        let first = whole_blocks(prompt.saturating_add(output), block);
        let other = whole_blocks(output, block).saturating_add(if output > 0 { block } else { 0 });
        first.saturating_add(other.saturating_mul(sequences - 1))
    };
    let prefix = shape.prefix.filter(|p| p.tokens >= block.max(1)).map(|p| Prefix {
        // A block that is not filled by the prefix is not shared.
        tokens: p.tokens.min(shape.prompt.low) / block.max(1) * block.max(1),
        ..p
    });
    let host_tokens = shape.prompt.high.saturating_add(output.saturating_mul(sequences));
    let parts = [
        shape.body_bytes.saturating_mul(host.per_body_byte),
        host_tokens.saturating_mul(host.per_token),
        shape.pixels.saturating_mul(host.per_pixel),
    ];
    Cost {
        kv: held(shape.prompt.high, output),
        certain: held(shape.prompt.low, output.min(1)),
        bound: shape
            .generates
            .then_some(shape.max_output)
            .flatten()
            .map(|most| held(shape.prompt.low, most.max(1))),
        host: parts.into_iter().fold(host.base, u64::saturating_add),
        prefix: prefix.filter(|p| p.tokens > 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(prompt: u64, most: Option<u64>, n: u64) -> Shape {
        Shape {
            prompt: Range::exact(prompt),
            max_output: most,
            generates: true,
            sequences: n,
            ..Shape::default()
        }
    }

    #[test]
    fn prompt_once_and_output_for_each_sequence() {
        let host = HostModel::default();
        assert_eq!(price(&shape(100, Some(28), 1), 500, 16, &host).kv, 128);
        assert_eq!(price(&shape(100, None, 1), 28, 16, &host).kv, 128);
        // The second sequence: two blocks for 28 tokens, and the one that it has to copy.
        assert_eq!(price(&shape(100, Some(28), 2), 500, 16, &host).kv, 128 + 48);
        let embedding = Shape { generates: false, max_output: Some(9), ..shape(100, None, 1) };
        let cost = price(&embedding, 500, 16, &host);
        assert_eq!((cost.kv, cost.certain, cost.bound), (112, 112, None));
    }

    #[test]
    fn only_whole_blocks_of_a_prefix_are_shared() {
        let with = |tokens| Shape { prefix: Some(Prefix { hash: 7, tokens }), ..shape(100, Some(10), 1) };
        let shared = |tokens| price(&with(tokens), 10, 16, &HostModel::default()).prefix.map(|p| p.tokens);
        assert_eq!((shared(15), shared(40), shared(1000)), (None, Some(32), Some(96)));
    }

    #[test]
    fn nothing_overflows() {
        let all = Shape {
            prompt: Range { low: u64::MAX, high: u64::MAX },
            max_output: Some(u64::MAX),
            generates: true,
            sequences: u64::MAX,
            pixels: u64::MAX,
            body_bytes: u64::MAX,
            prefix: Some(Prefix { hash: 0, tokens: u64::MAX }),
        };
        let cost = price(&all, u64::MAX, 16, &HostModel::default());
        assert_eq!((cost.kv, cost.host), (u64::MAX, u64::MAX));
    }
}
