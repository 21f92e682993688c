//! Kernels of attention: what each takes, and in which order vLLM asks them.

pub(super) mod heads;
pub(super) mod latent;

use crate::launch::is_quantised;
use crate::model::Dtype;

/// In as many bits as the layer computes.
fn plain(cache: &str) -> bool {
    !is_quantised(cache)
}

/// What all kernels but the slowest compute in.
fn in_16_bits(dtype: Dtype) -> bool {
    dtype != Dtype::Float32
}
