//! Reads one machine for dualplane: **cgroups, node memory, kernel messages, GPUs, pod logs**, all on one clock.
//!
//! - [`cgroup`] finds containers and reads what the kernel counts for each;
//! - [`node`] reads the machine as a whole and the processes of a container;
//! - [`kmsg`] follows the kernel's messages over its own restarts, without a doubled or a missed line;
//! - [`gpu`] reads VRAM and health through NVML, or plays a recorded table;
//! - [`cri`] names pods from the kubelet's log folders and copies the logs of dead instances;
//! - [`pod_resources`] asks the kubelet which GPUs it gave to which container;
//! - [`sample`] takes rounds over all of it into records of fixed size;
//! - [`clock`] is the one clock of all, [`descriptors`] makes room for the files that stay open, [`privileges`] gives up what
//!   is not needed.
//!
//! Nothing here writes to what it reads. What cannot be read is `None` or counted, never 0.
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

pub mod cgroup;
pub mod clock;
pub mod cri;
pub mod descriptors;
pub mod gpu;
pub mod kmsg;
pub mod node;
pub mod number;
pub mod pod_resources;
pub mod privileges;
pub mod sample;
