//! The flight recorder of a node: samples both planes, keeps what the restart loop erases, and freezes it at a death.
//!
//! - [`observe`] takes rounds and makes one [`View`] of a machine of them: who is there, by name, with both planes;
//! - [`recorder`] keeps the rounds, notices deaths and freezes what is known of them;
//! - [`engine`] asks the engines in the containers for their own numbers;
//! - [`dcgm`] reads GPUs by the page of the DCGM exporter, where NVML is out of reach;
//! - [`ring`] keeps the last minutes on the disk, [`series`] makes evidence of them;
//! - [`incident`] is what a death leaves;
//! - [`health`] is what is wrong with the agent itself;
//! - [`publish`] hands both on: metrics, HTTP, sinks, Events;
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::print_stderr
    )
)]

pub mod dcgm;
pub mod engine;
mod figures;
mod given;
pub mod health;
pub mod incident;
pub mod observe;
pub mod publish;
pub mod recorder;
pub mod ring;
pub mod series;
mod view;

pub use view::{AllocatedDevice, ContainerView, EngineSample, GpuView, Holder, View, XidTally};
