//! What a request asks for, read from its path and its body within bounds.
//!
//! `api.rs` knows paths, `meter.rs` walks JSON once and keeps numbers alone, `media.rs` what is encoded in it, `image.rs` reads the size of a picture from its
//! first bytes. Where servers read a body differently (a key that stands twice), the larger reading counts.

mod api;
mod image;
mod media;
mod meter;
mod scalar;

use dualplane_admission::cost::{Prefix, Range, Shape};
use dualplane_admission::tokens::Calibration;
use dualplane_admission::unpaged::Bucket;

pub use api::Api;
pub use meter::{Ask, Count, NotRead, read, read_counting};

/// Tokens of a picture at least: the smallest that a vision encoder makes of one.
const IMAGE_LOW: u64 = 64;
/// … at most, for one of usual size: 13 tiles of 256 (InternVL); four of LLaVA-NeXT's and of Llama's stay below.
const IMAGE_HIGH: u64 = 3_328;
/// Pixels of a token (Qwen2-VL and later: 28 by 28), where that is more.
const PIXELS_PER_TOKEN: u64 = 784;
/// … which no more than this many come of.
const IMAGE_MOST: u64 = 16_384;
/// Bytes of encoded sound for a token: base64 of 16-bit PCM at 25 tokens a second, and of a strongly compressed one.
const SOUND_BYTES: (u64, u64) = (2_000, 300);

impl Ask {
    /// Its cost's input: `counted` are the tokens of all but pictures and sound; without it the bytes of text are tokens by what was
    /// learnt of this model.
    #[must_use]
    pub fn shape(
        &self,
        api: Api,
        body_bytes: u64,
        calibration: &Calibration,
        counted: Option<Range>,
    ) -> Shape {
        let text = match counted {
            Some(range) => range,
            None => calibration.tokens(self.text_bytes, self.messages.max(1)),
        };
        let images = Range {
            low: self.images.saturating_mul(IMAGE_LOW),
            high: (self.pixels / PIXELS_PER_TOKEN)
                .max(self.images.saturating_mul(IMAGE_HIGH))
                .min(self.images.saturating_mul(IMAGE_MOST)),
        };
        let sound = Range { low: self.media_bytes / SOUND_BYTES.0, high: self.media_bytes / SOUND_BYTES.1 };
        let ids = Range::exact(if counted.is_some() { 0 } else { self.numbers });
        let prefix = self.prefix.map(|(hash, bytes)| {
            let tokens = floor(calibration.range().0 * real(bytes));
            Prefix { hash, tokens }
        });
        let prompt = text.plus(images).plus(sound).plus(ids);
        Shape {
            // At least one token of a prompt is computed.
            prompt: Range { low: prompt.low.max(1), high: prompt.high.max(1) },
            max_output: self.max_output,
            generates: api.generates(),
            sequences: self.sequences.max(1).saturating_mul(self.batch.max(1)),
            pixels: self.pixels,
            body_bytes,
            prefix,
        }
    }

    /// Its shape for a server that does not page its memory.
    #[must_use]
    pub fn bucket(&self, body_bytes: u64) -> Bucket {
        let prompt = (self.text_bytes / 4).saturating_add(self.numbers);
        let tokens = prompt.saturating_add(self.max_output.unwrap_or(0));
        Bucket::of(tokens, self.pixels, self.batch.max(self.sequences), self.steps, body_bytes)
    }
}

#[expect(clippy::cast_precision_loss, reason = "bytes of a body stay far below 2^53")]
fn real(n: u64) -> f64 {
    n as f64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast of floats saturates")]
fn floor(x: f64) -> u64 {
    x as u64
}
