//! The recorder: rounds into the ring, ends into bundles, bundles into verdicts.
//!
//! Three threads. `recorder.rs` is the first: it waits (`wake.rs`), takes rounds, keeps to the kernel's messages
//! (`quotes.rs`); `ends.rs` freezes what is gone (`freeze.rs`, `crash_loops.rs`). `keeper.rs` is the second: it makes files of what was
//! frozen (`bundle.rs`, `shared_ring.rs`) and puts them on the disk. `judge.rs` is the third: it adds what the API server knows,
//! has the bundle judged, and settles whether the end was a death (`decide.rs`).

mod bundle;
mod config;
mod container_ref;
mod crash_loops;
mod decide;
mod ends;
mod freeze;
mod judge;
mod keeper;
mod later;
mod origin;
mod outside;
mod quotes;
#[expect(clippy::module_inception, reason = "the thread that gives the folder its name")]
mod recorder;
mod seen_instances;
mod shared_ring;
mod tend;
mod time;
mod wake;

pub use bundle::Author;
pub use config::{Config, Counts, Dependencies, RecorderError};
pub use container_ref::ContainerRef;
pub use decide::Exit;
pub use keeper::{KeptCounts, Shared, incidents_dir};
pub use outside::{Cluster, ClusterTrouble, Judge, Judged};
pub use recorder::Recorder;
