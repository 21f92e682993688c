//! Where memory use becomes a finding: every threshold of a server that lives, each with its reason.

/// Host RAM of this share of the limit is under pressure. The usual alert on
/// `container_memory_working_set_bytes ÷ limit` begins here: a batch, a reload or a long prompt takes a tenth of a limit.
pub(in crate::verdict) const HOST_HIGH: f64 = 0.90;
/// Host RAM of this share is near the limit: where servers that watch themselves begin to throttle.
pub(super) const HOST_NEAR: f64 = 0.85;
/// VRAM of this share is saturated, whoever reserved it: graphs, activations of a long step and the allocator's rounding
/// need some percent that no pool provides.
pub const VRAM_HIGH: f64 = 0.95;
/// VRAM of this share leaves room for no further request where memory is taken as it is needed. An engine that reserves its
/// share at start always stands here, and is well.
pub(super) const VRAM_NEAR: f64 = 0.80;
/// A KV cache of this share has no room to admit another sequence without evicting one.
pub(in crate::verdict) const KV_FULL: f64 = 0.95;
/// Growth below this share of the limit within the samples is noise: caches and allocators breathe.
pub(super) const RISE: f64 = 0.01;
/// Growth is foreseen from this share of the limit on: below it a start still loads.
pub(super) const GROWN: f64 = 0.5;
/// Samples of a shorter time foretell nothing: they show a start or a burst.
pub(super) const WINDOW_MS: i64 = 10 * 60 * 1000;
/// A limit that is reached later is a plan, no incident.
pub(super) const HORIZON_MS: i64 = 24 * 60 * 60 * 1000;
