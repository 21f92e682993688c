//! Samples of metrics: Prometheus text, answers of its API, exports of other tools.

pub(in crate::evidence) mod exports;
pub(in crate::evidence) mod promql;

pub use dualplane_base::metrics::*;
