//! Words for exit codes that are signals.

use dualplane_core::verdict::proof::{SharedMemory, Signal};

pub(super) fn sentence(proof: Signal) -> String {
    match proof {
        Signal::Crash { exit_code } => format!("exit code {exit_code}: signal {}", exit_code - 128),
        Signal::Terminated => {
            "exit code 143 means SIGTERM: something asked the container to stop; the OOM killer never sends \
            SIGTERM"
                .to_owned()
        }
        Signal::Segfault => "exit code 139 means SIGSEGV: a native crash, not a lack of memory".to_owned(),
        Signal::BusError => "exit code 135 = 128 + SIGBUS (7)".to_owned(),
        Signal::SharedMemory(SharedMemory::Mounted) => {
            "a volume is mounted at /dev/shm; compare its size with what the ranks share".to_owned()
        }
        Signal::SharedMemory(SharedMemory::Default) => {
            "no volume is mounted at /dev/shm, so it has the runtime's default of 64 MiB".to_owned()
        }
        Signal::SharedMemory(SharedMemory::Unknown) => {
            "/dev/shm has 64 MiB unless a volume is mounted there; the excerpt does not show it".to_owned()
        }
        Signal::CutFile => "a truncated memory-mapped weights file also causes SIGBUS".to_owned(),
    }
}
