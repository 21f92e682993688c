//! What to look at where a server lives at its limit, the likeliest of a plane first.

use dualplane_base::Plane;
use dualplane_core::verdict::pressure::{Level, Pressure};

/// Host RAM near its limit while VRAM is moderate.
const HOST: &[&str] = &[
    "the memory limit, against what loading, pinned pools and /dev/shm need",
    "the number of workers and processes: each has its own heap",
    "batches and request sizes, which are staged in host RAM",
    "tokenizer and preprocessing, above all of images and long prompts",
];

/// VRAM or the KV cache at its limit while host RAM is stable.
const GPU: &[&str] = &[
    "the size of the model and its quantisation",
    "the batch: tokens of one step",
    "concurrent sequences",
    "the KV cache: context length, its share of the card, its data type",
];

/// The lists of the planes that bind, the host's first.
pub(crate) fn of(p: &Pressure) -> Vec<&'static str> {
    let high = |plane: Plane| p.worst(plane).is_some_and(|r| r.level == Level::High);
    let of = |plane: Plane, list: &'static [&'static str]| if high(plane) { list } else { &[] };
    of(Plane::Host, HOST).iter().chain(of(Plane::Gpu, GPU)).copied().collect()
}
