//! Towers for sound, by the kind that their own configuration names.

use super::encoder::{Blocks, key, put};
use super::tally::Tally;
use super::towers::{guess, questions};
use crate::arith::{floor_div, mul};
use crate::model::keys::number;
use crate::model::{Encoder, Model};
use crate::outcome::{PlanError, TensorClass::Vision};

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
        "qwen3_omni_moe_audio_encoder" | "qwen3_asr_encoder" => qwen3(t, e, cuts),
        "moss_transcribe_diarize_audio" => moss(t, model, e, cuts),
        "phi4mm_audio" => phi4(t, model, e),
        "gemma4_audio" => gemma4(t, model, e),
        "granite_speech_encoder" | "granite_speech_plus_encoder" => granite(t, model, e, cuts),
        _ => outline(t, model, e, cuts),
    }
}

/// Transformers' own module, which nothing cuts: on each layer two feed-forwards of four times the width, attention with a
/// projection for relative places, and a gated convolution; before them two convolutions over 128 bands of the spectrum,
/// each of which halves them (transformers models/gemma4/modeling_gemma4.py `Gemma4AudioModel`).
fn gemma4(t: &mut Tally<'_>, model: &Model, e: &Encoder) {
    let h = e.hidden_size;
    let kernel = key(&e.raw, "conv_kernel_size", 5);
    let vectors = mul([kernel.saturating_add(9), h]).saturating_add(floor_div(h, e.heads.max(1)));
    let layers = mul([e.layers, mul([24, h, h]).saturating_add(vectors)]);
    let channels = e.raw.get("subsampling_conv_channels").and_then(serde_json::Value::as_array);
    let channel = |i: usize, default| channels.and_then(|c| number(c.get(i)?)).unwrap_or(default);
    let (first, second) = (channel(0, 128), channel(1, 32));
    let narrowed = mul([10, first]).saturating_add(mul([mul([9, first]).saturating_add(1), second]));
    let entry = narrowed.saturating_add(mul([floor_div(128, 4), second, h]));
    let out = key(&e.raw, "output_proj_dims", 1536);
    let exit = mul([h.saturating_add(1), out]).saturating_add(mul([out, model.hidden_size]));
    put(t, false, 0, layers.saturating_add(entry).saturating_add(exit));
}

/// What vLLM's code of a tower shares among ranks evenly or not at all: what Granite's spells out on the way
/// (models/granite_speech.py).
pub(super) fn even(t: &mut Tally<'_>, e: &Encoder) {
    let spelled = key(&e.raw, "output_dim", 42);
    if e.family.starts_with("granite_speech") && !spelled.is_multiple_of(t.rank.tp.max(1)) {
        let why = format!("the encoder's output of {spelled} elements is not divisible by {}", t.rank.tp);
        t.reject(PlanError::contradiction("--tensor-parallel-size", why));
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
fn qwen3(t: &mut Tally<'_>, e: &Encoder, cuts: bool) {
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
        .saturating_add(mul([h, h.saturating_add(3)]))
        .saturating_add(mul([h.saturating_add(1), key(&e.raw, "output_dim", 3584)]));
    put(t, cuts, cut, whole);
    // The table of places is in 32 bits.
    t.add(Vision, [key(&e.raw, "max_source_positions", 1500), h, 4]);
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

/// vLLM models/phi4mm_audio.py `AudioEmbedding`: conformers with a causal convolution, whole on each rank, and two ways into the
/// language model, for speech alone and beside pictures.
fn phi4(t: &mut Tally<'_>, model: &Model, e: &Encoder) {
    let (h, wide) = (e.hidden_size, e.intermediate_size);
    // Gated, with biases, and a norm before it.
    let network = mul([3, h, wide]).saturating_add(2 * wide).saturating_add(3 * h);
    let attention = mul([4, h, h.saturating_add(1)]);
    // A gated projection, a narrow convolution with a projection behind it, one projection more, a norm.
    let taps = key(&e.raw, "kernel_size", 3);
    let convolution = mul([h, mul([4, h]).saturating_add(taps).saturating_add(9)]);
    let block = mul([2, network]).saturating_add(attention).saturating_add(convolution).saturating_add(4 * h);
    // Three halvings of time and spectrum by convolutions of three by three.
    let channels = e.raw.pointer("/nemo_conv_settings/conv_channels").and_then(number).unwrap_or(256);
    let input = key(&e.raw, "input_size", 80);
    let halvings = u64::from(key(&e.raw, "time_reduction", 8).max(1).ilog2());
    let rows = (0..halvings).fold(input, |n, _| n.saturating_add(1) / 2);
    let first = mul([10, channels]);
    let more = mul([halvings.saturating_sub(1), channels, channels.saturating_add(11)]);
    let out = mul([h, mul([channels, rows]).saturating_add(1)]);
    // Biases by distance, and mean and deviation of the spectrum.
    let distances =
        mul([2, key_of(&e.raw, "/relative_attention_bias_args/t5_bias_max_distance", 500), e.heads]);
    let ends =
        first.saturating_add(more).saturating_add(out).saturating_add(distances).saturating_add(2 * input);
    let text = model.hidden_size;
    let way = mul([text, h.saturating_add(text).saturating_add(2)]);
    put(t, false, 0, mul([e.layers, block]).saturating_add(ends).saturating_add(mul([2, way])));
}

fn key_of(raw: &serde_json::Value, path: &str, default: u64) -> u64 {
    raw.pointer(path).and_then(number).unwrap_or(default)
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
