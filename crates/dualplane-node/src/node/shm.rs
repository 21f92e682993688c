//! Use of `/dev/shm`: 64 MiB by default in a container, and full is a crash that looks like anything else.

use std::path::Path;

use dualplane_base::units::Bytes;

/// Size and use of a tmpfs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shm {
    /// Its size; half of the machine's memory where none was given.
    pub size: Bytes,
    /// In use.
    pub used: Bytes,
}

/// A mounted tmpfs. `None` where nothing is mounted or nothing may be asked.
#[must_use]
pub fn shm(path: &Path) -> Option<Shm> {
    let s = rustix::fs::statvfs(path).ok()?;
    let size = s.f_blocks.checked_mul(s.f_frsize)?;
    let free = s.f_bfree.checked_mul(s.f_frsize)?;
    (size > 0).then_some(Shm { size: Bytes(size), used: Bytes(size.saturating_sub(free)) })
}

/// `/dev/shm` as one process sees it: that of its pod. Needs the host's pid namespace.
#[must_use]
pub fn of_process(proc_root: &Path, pid: u32) -> Option<Shm> {
    shm(&proc_root.join(pid.to_string()).join("root/dev/shm"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tmpfs_grows_with_what_is_in_it() {
        if let Some(before) = of_process(Path::new("/proc"), std::process::id()) {
            assert!(before.size > before.used);
            let f = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
            std::fs::write(f.path(), vec![1; 3 << 20]).unwrap();
            assert!(shm(Path::new("/dev/shm")).unwrap().used >= Bytes(3 << 20));
        }
        assert_eq!(shm(Path::new("/nonexistent")), None);
    }
}
