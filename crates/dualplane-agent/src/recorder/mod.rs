//! The recorder: rounds into the ring, ends into bundles, bundles into verdicts.
//!
//! Three threads. `recorder.rs` is the first: it waits (`wake.rs`), takes rounds, keeps to the kernel's messages
//! (`quotes.rs`); `ends.rs` freezes what is gone (`freeze.rs`, `loops.rs`). `keeper.rs` is the second: it makes files of what was
//! frozen (`bundle.rs`, `tape.rs`) and puts them on the disk. `judge.rs` is the third: it adds what the API server knows,
//! has the bundle judged, and settles whether the end was a death (`decide.rs`).

mod bundle;
mod config;
mod decide;
mod ends;
mod freeze;
mod judge;
mod keeper;
mod loops;
mod quotes;
#[expect(clippy::module_inception, reason = "the thread that gives the folder its name")]
mod recorder;
mod seen;
mod tape;
mod time;
mod wake;
mod who;

pub use bundle::Author;
pub use config::{Config, Counts, Parts, RecorderError};
pub use decide::Exit;
pub use judge::{Cluster, Judge, Judged};
pub use keeper::{KeptCounts, Shared, incidents_dir};
pub use recorder::Recorder;
pub use who::Who;
