//! Dense networks and experts.

use super::tally::{Tally, matrix};
use crate::plan::arith::{ceil_div, mul, round_up};
use crate::plan::model::family;
use crate::plan::model::{FeedForward, LinearScheme, Model, Moe};
use crate::plan::outcome::TensorClass::{self, Mlp, Moe as M};

pub(super) fn add(t: &mut Tally<'_>, model: &Model, f: &FeedForward) {
    let traits = family::traits(&model.architecture);
    let (mlp, router) = traits.map_or(("mlp", "gate"), |x| (x.mlp, x.router));
    match *f {
        FeedForward::None => {}
        FeedForward::Dense { intermediate, gated, bias } => {
            let module = if model.family == family::Family::KimiLinear { "mlp" } else { mlp };
            dense(t, Mlp, module, model.hidden_size, intermediate, gated, bias);
        }
        FeedForward::Moe(m) => {
            if m.dense_beside > 0 {
                dense(t, Mlp, "mlp", model.hidden_size, m.dense_beside, true, false);
            }
            experts(t, model, mlp, router, &m);
        }
    }
}

/// A network whose width is cut among ranks.
fn dense(
    t: &mut Tally<'_>,
    class: TensorClass,
    module: &str,
    hidden: u64,
    width: u64,
    gated: bool,
    bias: bool,
) {
    let width = t.cut(width, "intermediate size");
    if gated {
        t.linear(class, module, &[("gate_proj", width), ("up_proj", width)], hidden, bias);
    } else {
        t.linear(class, module, &[("up_proj", width)], hidden, bias);
    }
    t.linear(class, module, &[("down_proj", hidden)], width, bias);
}

fn experts(t: &mut Tally<'_>, model: &Model, mlp: &str, router: &str, m: &Moe) {
    let hidden = model.hidden_size;
    let element = t.rank.element;
    let _ = router;
    let router_bytes = if m.router_bytes > 0 { m.router_bytes } else { element };
    t.add(M, [m.experts, hidden, router_bytes]);
    if m.router_bias {
        t.add(M, [m.experts, router_bytes]);
    }
    if m.router_correction {
        t.add(M, [m.experts, m.correction_bytes]);
    }
    if m.hash_table_rows > 0 {
        t.add(M, [m.hash_table_rows, m.top_k, 4]);
    }
    let module = format!("{mlp}.experts");
    routed(t, &module, m, m.latent.unwrap_or(hidden));
    if let Some(latent) = m.latent {
        t.linear(M, mlp, &[("fc1_latent_proj", latent)], hidden, false);
        t.linear(M, mlp, &[("fc2_latent_proj", hidden)], latent, false);
    }
    if m.shared_intermediate > 0 {
        let name = if m.shared_gate { "shared_expert" } else { "shared_experts" };
        dense(t, M, &format!("{mlp}.{name}"), hidden, m.shared_intermediate, m.gated, false);
        if m.shared_gate {
            t.linear(M, mlp, &[("shared_expert_gate", 1)], hidden, false);
        }
    }
}

/// The experts that a rank holds: all of them cut, or some of them whole.
fn routed(t: &mut Tally<'_>, module: &str, m: &Moe, hidden: u64) {
    let local = if t.rank.ep > 1 {
        ceil_div(m.experts.saturating_add(t.rank.redundant), t.rank.ep)
    } else {
        m.experts
    };
    let width =
        if t.rank.ep > 1 { m.intermediate } else { t.cut(m.intermediate, "expert intermediate size") };
    let element = t.rank.element;
    let scheme = t.expert_scheme(module);
    let up = if m.gated { 2 } else { 1 };
    let one = match scheme {
        LinearScheme::Mxfp4 => {
            let width = round_up(width, 64);
            matrix(scheme, &[mul([up, width])], hidden, element).saturating_add(matrix(
                scheme,
                &[hidden],
                width,
                element,
            ))
        }
        _ => {
            let ups = [width, width];
            let ups = if m.gated { &ups[..] } else { &ups[..1] };
            matrix(scheme, ups, hidden, element).saturating_add(matrix(scheme, &[hidden], width, element))
        }
    };
    t.add(M, [local, one]);
    if m.bias {
        t.add(M, [local, mul([up, width]).saturating_add(hidden), element]);
    }
}
