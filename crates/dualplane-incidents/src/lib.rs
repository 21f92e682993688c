//! What a fleet keeps of a death: [`Incident`], made of a report of `triage` and of what the sender knows of the place;
//! [`Filter`], of which every one is a link; [`Cursor`], a place in a list; [`Fleet`], the statistics over many.
//!
//! Stores and pages share these values. Everything is pure: no I/O, no clock; when something was received is a value.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod cursor;
mod dimension;
mod filter;
mod fleet;
mod incident;
mod keys;
mod query;
mod report;
mod time;
mod whereabouts;

pub use cursor::Cursor;
pub use dimension::Dimension;
pub use filter::{Filter, FilterError, MAX_VALUES, folded, searched};
pub use fleet::{Fleet, GpuHealth, Share, Worst};
pub use incident::{Clock, Gpu, Incident, Memory, Planned, Pressure, SCHEMA, Trigger, Vram, Xid};
pub use keys::{id_of_sender, is_id, is_sent_id, workload_of_pod};
pub use query::{decode, encode};
pub use report::{ReportError, fullest, items, of_report};
pub use time::Time;
pub use whereabouts::Where;
