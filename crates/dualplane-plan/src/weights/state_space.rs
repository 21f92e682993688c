//! Weights of state spaces without heads, and of short convolutions.

use super::tally::Tally;
use crate::arith::{floor_div, mul};
use crate::model::keys::number;
use crate::model::{Attention, Family, Mamba1, Model, ShortConv};
use crate::outcome::TensorClass::{Attention as A, Mlp, Norms, Other};

/// vLLM layers/mamba/mamba_mixer.py.
pub(super) fn mamba1(t: &mut Tally<'_>, model: &Model, m: &Mamba1) {
    let hidden = model.hidden_size;
    let element = t.rank.element;
    let inner = t.cut(m.inner, "number of Mamba channels");
    let selected = m.dt_rank.saturating_add(m.state.saturating_mul(2));
    t.linear(A, "mixer", &[("in_proj", inner), ("in_proj", inner)], hidden, false);
    t.linear(A, "mixer", &[("x_proj", selected)], inner, false);
    t.linear(A, "mixer", &[("dt_proj", inner)], m.dt_rank, true);
    t.linear(A, "mixer", &[("out_proj", hidden)], inner, false);
    t.add(A, [inner, m.conv, element]);
    if m.conv_bias {
        t.add(A, [inner, element]);
    }
    // A in 32 bits, D in the model's dtype.
    t.add(A, [inner, m.state, 4]);
    t.add(A, [inner, element]);
    t.add(Norms, [selected, element]);
}

/// vLLM layers/mamba/short_conv.py: three streams in, one out.
pub(super) fn short_conv(t: &mut Tally<'_>, model: &Model, c: &ShortConv) {
    let width = t.cut(c.width, "number of channels of the convolution");
    t.linear(
        A,
        "conv",
        &[("in_proj", width), ("in_proj", width), ("in_proj", width)],
        model.hidden_size,
        false,
    );
    t.linear(A, "conv", &[("out_proj", model.hidden_size)], width, false);
    t.add(A, [width, c.conv, t.rank.element]);
}

/// Zamba 2 (vLLM models/zamba2.py): blocks of attention and feed-forward over the input and the embedding side by side,
/// with narrow adapters for each layer that uses one, and a projection behind it.
pub(super) fn shared(t: &mut Tally<'_>, model: &Model) {
    if model.family != Family::Zamba {
        return;
    }
    let key = |name: &str, default: u64| model.text.get(name).and_then(number).unwrap_or(default);
    let on = |name: &str| model.text.get(name).and_then(serde_json::Value::as_bool) == Some(true);
    let users = model.layers.iter().filter(|l| matches!(l.attention, Attention::Gqa(_))).count() as u64;
    let (hidden, element, tp) = (model.hidden_size, t.rank.element, t.rank.tp);
    // A block that no layer uses is not built.
    let blocks = key("num_mem_blocks", 1).min(users);
    let inner = key("attention_hidden_size", mul([2, hidden]));
    let width = key("intermediate_size", mul([4, hidden]));
    t.add(A, [blocks, floor_div(mul([4, inner]).saturating_sub(inner), tp), inner, element]);
    t.add(A, [blocks, floor_div(inner, tp), hidden, element]);
    t.add(Mlp, [blocks, floor_div(mul([3, width]), tp), hidden, element]);
    let rank = key("adapter_rank", 128);
    t.add(Mlp, [users, rank, hidden.saturating_add(floor_div(mul([2, width]), tp)), element]);
    if on("use_shared_attention_adapter") {
        t.add(A, [users, 3, rank, inner.saturating_add(floor_div(inner, tp)), element]);
    }
    t.add(Other, [users, hidden, hidden, element]);
}
