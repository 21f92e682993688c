//! Values as `/metrics` and the series of a bundle tell them: numbers without a unit of their own. `None` where the machine
//! does not tell.

use dualplane_base::units::Bytes;

pub(crate) fn bytes(b: Option<Bytes>) -> Option<f64> {
    b.map(|b| b.0 as f64)
}

pub(crate) fn number(n: Option<u64>) -> Option<f64> {
    n.map(|n| n as f64)
}

/// Seconds of microseconds.
pub(crate) fn seconds(us: Option<u64>) -> Option<f64> {
    us.map(|us| us as f64 / 1e6)
}
