//! What stands around the pool: ranks, lengths, pages, memory of others, and what is left open.

use super::{defaults, images, term};
use crate::engines::Shapes;
use crate::gpu::Gpu;
use crate::launch::{Launch, Speculation};
use crate::model::Model;
use crate::outcome::PlanError;
use crate::quantity::{Quantity, Term, Unknown};
use dualplane_base::units::MIB;

/// Ranks that share the heads.
pub(super) fn attention_ranks(launch: &Launch) -> Result<u64, PlanError> {
    for (flag, n) in [("--tp-size", launch.tp), ("--pp-size", launch.pp), ("--dp-size", launch.dp)] {
        if n == 0 || n > 4096 {
            return Err(PlanError::contradiction(flag, format!("{n} ranks")));
        }
    }
    if !launch.sglang.dp_attention {
        return Ok(launch.tp);
    }
    if !launch.tp.is_multiple_of(launch.dp) {
        return Err(PlanError::contradiction(
            "--dp-size",
            format!("tp_size ({}) is not divisible by dp_size ({})", launch.tp, launch.dp),
        ));
    }
    Ok(launch.tp / launch.dp)
}

pub(super) fn context(model: &Model, launch: &Launch) -> Result<u64, PlanError> {
    let asked = launch.asked_len(
        model.longest,
        "--context-length",
        "context_length",
        "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN",
    )?;
    Ok(asked.unwrap_or(model.max_model_len))
}

/// Context of CUDA, communicators and what else was taken before the weights.
pub(super) fn outside(launch: &Launch) -> Term {
    let (low, mid, high) = match launch.tp.saturating_mul(launch.pp) {
        1 => (300, 650, 1100),
        2..=4 => (350, 800, 1700),
        _ => (1200, 2050, 3200),
    };
    term(
        "non_torch",
        Quantity::band(low * MIB, mid * MIB, high * MIB),
        format!("{mid} MiB on {} ranks, taken before the weights are loaded", launch.tp * launch.pp),
        "start-up logs of SGLang: H100 0.7 GiB alone, RTX 3090 0.65 GiB on two, H200 1.9 to 2.5 GiB on eight",
    )
}

/// What images take after the pool is sized.
pub(super) fn encoder(model: &Model, launch: &Launch, gpu: &Gpu) -> Quantity {
    Quantity::exact(images::kept_mib(model, launch, gpu).saturating_mul(MIB))
}

pub(super) fn unknown(
    model: &Model,
    launch: &Launch,
    shapes: &Shapes,
    states: bool,
    given: bool,
) -> Vec<Unknown> {
    let mut out = Vec::new();
    let mut add = |what: String, settle: &str| out.push(Unknown { what, settle: settle.into() });
    if !launch.version_known {
        add(
            format!("the engine version; assumed SGLang {}", launch.version),
            "--engine-version, or an image with a version tag",
        );
    } else if !defaults::READ.contains(&launch.version) {
        add(
            format!("whether SGLang {} differs from the supported releases", launch.version),
            "start once and compare with the printed values",
        );
    }
    if !given {
        add(
            "whether activations and graphs fit the reserve: the engine does not measure them before it \
            sizes the pool"
                .into(),
            "start once and send the longest prompts; lower --mem-fraction-static if CUDA runs out of memory",
        );
    }
    let drafter = launch.speculative.as_ref();
    if drafter.is_some_and(|s| !matches!(s.method, Speculation::Mtp | Speculation::Ngram)) {
        add(
            "the draft model's weights, and its layers if they differ from the main model's".into(),
            "start once and read \"Load weight end\"",
        );
    }
    if states {
        add(
            "states per running request, which depend on the linear attention backend: 5 with an extra \
            buffer, 3 without"
                .into(),
            "the start-up line with max_running_requests",
        );
    }
    out.extend(model.unread());
    out.extend(shapes.unknown());
    out
}
