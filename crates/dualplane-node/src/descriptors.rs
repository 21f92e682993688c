//! Room for descriptors: seven a container, so 110 containers need 770 of the 1024 that a shell gives by default.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors of 500 containers and everything else.
const WANTED: u64 = 8192;

/// Raises the soft limit as far as the hard one allows. Returns what it is now; `None` is no limit.
pub fn raise() -> Option<u64> {
    let now = getrlimit(Resource::Nofile);
    let soft = now.current?;
    let wanted = now.maximum.map_or(WANTED, |m| m.min(WANTED));
    if soft < wanted
        && setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: now.maximum }).is_ok()
    {
        return Some(wanted);
    }
    Some(soft)
}

#[cfg(test)]
mod tests {
    #[test]
    fn there_is_room_afterwards() {
        let hard = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
        let now = super::raise();
        assert!(now.is_none_or(|n| n >= super::WANTED || Some(n) == hard), "{now:?}");
    }
}
