//! What tools of the driver and allocators say of cards.

pub mod model;
pub(in crate::evidence) mod smi;
pub(in crate::evidence) mod torch;
