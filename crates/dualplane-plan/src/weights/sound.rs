//! Towers for sound, by the kind that their own configuration names.

use super::encoder::{Blocks, key, put};
use super::tally::Tally;
use super::towers::{guess, questions};
use crate::arith::{floor_div, mul};
use crate::model::keys::number;
use crate::model::{Encoder, Model};

/// A tower for sound: blocks, two convolutions over the spectrum, positions, and a projector.
pub(super) fn add(t: &mut Tally<'_>, model: &Model, e: &Encoder, cuts: bool) {
    match e.family.as_str() {
        "whisper" => {
            let (cut, whole) = whisper(e, e.intermediate_size);
            put(t, cuts, cut, whole);
        }
        "qwen2_audio_encoder" => qwen2(t, model, e),
        "qwen2_5_omni_audio_encoder" => {
            qwen2(t, model, e);
            // Where sound begins and ends.
            put(t, false, 0, 2 * model.hidden_size);
        }
        "qwen3_omni_moe_audio_encoder" => qwen3(t, model, e, cuts),
        "moss_transcribe_diarize_audio" => moss(t, model, e, cuts),
        "granite_speech_encoder" | "granite_speech_plus_encoder" => granite(t, model, e, cuts),
        _ => outline(t, model, e, cuts),
    }
}

/// vLLM models/whisper.py `WhisperEncoder`.
fn whisper(e: &Encoder, intermediate: u64) -> (u64, u64) {
    let h = e.hidden_size;
    let blocks = Blocks { intermediate, ..Blocks::plain(e) };
    let (cut, mut whole) = blocks.elements();
    whole = whole.saturating_add(mul([3, h, key(&e.raw, "num_mel_bins", 80).saturating_add(h)]));
    (cut, whole.saturating_add(mul([key(&e.raw, "max_source_positions", 1500), h])))
}

/// Transformers' own module, Whisper's encoder, which nothing cuts: keys have no bias, and one linear leads to the language
/// model (transformers models/qwen2_audio/modeling_qwen2_audio.py).
fn qwen2(t: &mut Tally<'_>, model: &Model, e: &Encoder) {
    let h = e.hidden_size;
    let (blocks, whole) = whisper(e, e.intermediate_size);
    let keys = mul([e.layers, h]);
    // Of two convolutions the biases, and a norm behind the blocks.
    let ends = mul([4, h]).saturating_add(mul([h.saturating_add(1), model.hidden_size]));
    put(t, false, 0, blocks.saturating_add(whole).saturating_sub(keys).saturating_add(ends));
}

/// vLLM models/qwen3_omni_moe_thinker.py `Qwen3OmniMoeAudioEncoder`: three convolutions over the spectrum as a picture, blocks, and
/// two linears.
fn qwen3(t: &mut Tally<'_>, model: &Model, e: &Encoder, cuts: bool) {
    let h = e.hidden_size;
    // Heads that ranks cannot share are whole on each.
    let cuts = cuts && e.heads.is_multiple_of(t.rank.tp.max(1));
    let (cut, mut whole) = Blocks::plain(e).elements();
    let channels = key(&e.raw, "downsample_hidden_size", 480);
    let halved = |n: u64| floor_div(n.saturating_add(1), 2);
    let rows = halved(halved(halved(key(&e.raw, "num_mel_bins", 128))));
    let convolutions = mul([channels, mul([18, channels]).saturating_add(9 + 3)]);
    whole = whole
        .saturating_add(convolutions)
        .saturating_add(mul([channels, rows, h]))
        .saturating_add(mul([key(&e.raw, "max_source_positions", 1500), h]))
        .saturating_add(mul([h, h.saturating_add(3)]))
        .saturating_add(mul([h.saturating_add(1), model.hidden_size]));
    put(t, cuts, cut, whole);
}

/// vLLM models/moss_transcribe_diarize.py: Whisper's encoder, whose feed-forward is read by Whisper's own key and has its
/// default without it; several frames enter the projector as one.
fn moss(t: &mut Tally<'_>, model: &Model, e: &Encoder, cuts: bool) {
    let (cut, whole) = whisper(e, key(&e.raw, "encoder_ffn_dim", 1536));
    let text = model.hidden_size;
    let frames = model.config.get("audio_merge_size").and_then(number).unwrap_or(4);
    let projector = mul([text, mul([frames, e.hidden_size]).saturating_add(text).saturating_add(4)]);
    put(t, cuts, cut, whole.saturating_add(projector));
}

/// vLLM models/granite_speech.py: conformers, of which only the feed-forwards are cut, and a Q-Former.
fn granite(t: &mut Tally<'_>, model: &Model, e: &Encoder, cuts: bool) {
    let h = e.hidden_size;
    let head = key(&e.raw, "dim_head", 128);
    let inner = mul([head, e.heads]);
    let wide = mul([h, key(&e.raw, "conv_expansion_factor", 2)]);
    // Two feed-forwards, each with a norm before it.
    let cut = mul([2, e.intermediate_size, mul([2, h]).saturating_add(1)]);
    let places = mul([2, key(&e.raw, "max_pos_emb", 512)]).saturating_add(1);
    let attention = mul([4, h, inner]).saturating_add(mul([places, head]));
    // A gated projection, a convolution along time with the statistics of its norm, a projection back.
    let taps = key(&e.raw, "conv_kernel_size", 15);
    let convolution = mul([wide, mul([3, h]).saturating_add(taps).saturating_add(6)]);
    let norms = 14 * h;
    let block = attention.saturating_add(convolution).saturating_add(norms);
    let ends = mul([h, key(&e.raw, "input_dim", 160).saturating_add(2)]).saturating_add(mul([
        2,
        h,
        key(&e.raw, "output_dim", 42),
    ]));
    let mut whole = mul([e.layers, block]).saturating_add(ends);
    if let Some(asking) = model.config.get("projector_config").filter(|v| v.is_object()) {
        let width = key(asking, "hidden_size", 768).saturating_add(1);
        whole = whole.saturating_add(questions(asking)).saturating_add(mul([width, model.hidden_size]));
    }
    put(t, cuts, mul([e.layers, cut]), whole);
}

/// A tower of which only the outline is known.
fn outline(t: &mut Tally<'_>, model: &Model, e: &Encoder, cuts: bool) {
    let h = e.hidden_size;
    let (mut cut, mut whole) = Blocks::plain(e).elements();
    if key(&e.raw, "conv_expansion_factor", 0) > 0 {
        // Conformers: a second feed-forward, and a convolution with a gate between two projections.
        let inner = mul([key(&e.raw, "conv_expansion_factor", 2), h]);
        let more = mul([2, h, e.intermediate_size]).saturating_add(mul([3, h, inner]));
        cut = cut.saturating_add(mul([e.layers, more]));
        // What stands between it and the language model differs more than the rest.
        t.doubt(mul([cut, t.rank.element]));
    } else {
        whole = whole.saturating_add(mul([3, h, key(&e.raw, "num_mel_bins", 128).saturating_add(h)]));
        whole = whole.saturating_add(mul([key(&e.raw, "max_source_positions", 1500), h]));
    }
    whole = whole.saturating_add(mul([model.hidden_size, model.hidden_size.saturating_add(h)]));
    guess(t, cuts, cut, whole);
}
