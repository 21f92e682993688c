//! What a recorder may do beyond an ordinary user: three capabilities of the forty that `privileged` gives, each with what
//! needs it. A container has to be privileged for `/dev/kmsg` (its device cgroup refuses it to all others);
//! that is no reason to keep the right to mount, to load modules or to write others' files.

use std::io;

pub use rustix::thread::CapabilitySet;
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_capabilities_secure_bits, set_no_new_privs,
};

/// What recording needs.
/// - `SYSLOG`: to open `/dev/kmsg` where `kernel.dmesg_restrict` is 1, as most distributions set it.
/// - `SYS_PTRACE`: `/proc/PID/root` (use of a pod's `/dev/shm`), `smaps_rollup` and the links of `/proc/PID/fd` of processes
///   that are another user's or hold more capabilities.
/// - `DAC_READ_SEARCH`: to list `/proc/PID/fd` of another user's process, which tells whose a listening socket is: an
///   engine's metrics are asked for at a port that its command line does not tell, and at no neighbour's.
pub const RECORDING: CapabilitySet =
    CapabilitySet::SYSLOG.union(CapabilitySet::SYS_PTRACE).union(CapabilitySet::DAC_READ_SEARCH);

/// Gives up all but `wanted`, for this thread, those that it starts later, and every program that they start: a judge of
/// hostile logs has none at all. Call it before any thread. What was not held is not gained.
///
/// # Errors
/// The kernel refused. What could be given up is given up all the same.
pub fn keep_only(wanted: CapabilitySet) -> io::Result<()> {
    let now = capabilities(None)?;
    // Both need SETPCAP, which a container that was given few does not have; then the sets below are small already.
    for one in CapabilitySet::all().difference(wanted).iter() {
        let _ = remove_capability_from_bounding_set(one);
    }
    let _ = set_capabilities_secure_bits(
        CapabilitiesSecureBits::NO_ROOT | CapabilitiesSecureBits::NO_ROOT_LOCKED,
    );
    let _ = clear_ambient_capability_set();
    let kept = now.permitted.intersection(wanted);
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets)?;
    // No program with set-user-ID gives them back.
    Ok(set_no_new_privs(true)?)
}
