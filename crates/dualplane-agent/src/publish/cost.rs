//! What the agent itself costs, from its own `/proc`.

use std::fs;
use std::time::Duration;

use dualplane_base::units::Bytes;
use dualplane_node::clock::{Anchor, Moment};
use dualplane_node::number::kilobytes;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of a tick in `/proc/PID/stat`: 100 a second for user space, whatever the kernel's own rate is.
const TICK: u64 = 10_000_000;

/// Resources of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Time on processors since it started.
    pub cpu: Option<Duration>,
    /// Resident memory.
    pub resident: Option<Bytes>,
    /// Open descriptors.
    pub open_fds: Option<u64>,
    /// The most that may be open.
    pub max_fds: Option<u64>,
    /// When it started, milliseconds since 1970.
    pub started_ms: Option<i64>,
}

impl Cost {
    /// Reads it now.
    #[must_use]
    pub fn own() -> Self {
        let t = clock_gettime(ClockId::ProcessCPUTime);
        let status = fs::read("/proc/self/status").unwrap_or_default();
        // The listing itself holds one.
        let open = fs::read_dir("/proc/self/fd").ok().map(|d| d.count().saturating_sub(1) as u64);
        Self {
            cpu: u64::try_from(t.tv_sec)
                .ok()
                .zip(u32::try_from(t.tv_nsec).ok())
                .map(|(s, n)| Duration::new(s, n)),
            resident: kilobytes(&status).find(|(k, _)| *k == b"VmRSS").map(|(_, b)| b),
            open_fds: open,
            max_fds: getrlimit(Resource::Nofile).current,
            started_ms: started(),
        }
    }
}

fn started() -> Option<i64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name stands in parentheses and may hold blanks; the 20th word behind it is the start.
    let ticks: u64 = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    Some(Anchor::take().wall_ms(Moment(ticks.checked_mul(TICK)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_costs_something() {
        let c = Cost::own();
        assert!(c.cpu.unwrap() > Duration::ZERO && c.resident.unwrap() > Bytes(1 << 20));
        assert!(c.open_fds.unwrap() >= 3 && c.max_fds.is_none_or(|m| m >= c.open_fds.unwrap()));
        let now = Anchor::take().wall_ms(Moment::now());
        let age = now - c.started_ms.unwrap();
        assert!((-1_000..3_600_000).contains(&age), "{age} ms");
    }
}
