//! Decoders that look at an encoder's output: each layer attends to what was generated, then to what was heard.

use super::{Context, decoder, missing};
use crate::model::layer::{Attention, FeedForward, Gqa, Layer, QkNorm, Reach};
use crate::outcome::PlanError;

/// vLLM models/whisper.py. The second attention of a layer is a layer of its own here: it has its own cache.
pub(super) fn layers(cx: &Context<'_>) -> Result<Vec<Layer>, PlanError> {
    let width = cx.keys.u64(&["decoder_ffn_dim"]).ok_or_else(|| missing("decoder_ffn_dim"))?;
    // Keys have no bias of their own.
    let heard = Gqa { reach: Reach::Encoder, qk_norm: QkNorm::None, ..decoder::attention(cx, 0) };
    let said = Gqa { reach: Reach::Full, ..heard };
    let layer =
        |attention, feed_forward| Layer { attention: Attention::Gqa(attention), feed_forward, norms: 3 };
    let dense = FeedForward::Dense { intermediate: width, gated: false, bias: true };
    Ok((0..cx.layers).flat_map(|_| [layer(said, FeedForward::None), layer(heard, dense)]).collect())
}
