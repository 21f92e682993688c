//! What every part of dualplane shares and none owns: the words of verdicts, places in the evidence, amounts, times, text,
//! ids.
//!
//! Nothing here knows evidence, engines or reports. Like the core it is pure: no I/O, no clock, no environment.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

pub mod cgroup_path;
mod class;
pub mod command;
pub mod deprecation;
pub mod device_id;
pub mod drawn;
pub mod gpu;
pub mod hash;
pub mod incident_id;
pub mod json;
pub mod junit;
pub mod metrics;
pub mod near;
pub mod order;
pub mod packed;
mod place;
pub mod plot;
pub mod process;
pub mod schema;
pub mod style;
pub mod text;
pub mod time;
pub mod units;
pub mod version;
pub mod writer;
pub mod yaml;

pub use class::{Class, Confidence, Phase, Plane};
pub use place::Place;
pub use version::Version;
