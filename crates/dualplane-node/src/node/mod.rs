//! The machine as a whole, and the processes of one container.

mod life;
mod machine;
mod processes;
mod shm;

pub use life::{ProcessState, ProcessStatus, host_cgroups, host_pids, life, uses_gpu};
pub use machine::{Machine, NodeReader};
pub use processes::{Listing, Proc, cgroup_of, list, processes};
pub use shm::{Shm, of_process, shm};
