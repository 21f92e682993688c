//! Whether an end was a death. The node does not see exit codes: who tells, and what follows from it.

use std::time::Duration;

/// After so long nobody will tell any more.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// What is known of an end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct EndFacts {
    /// The kernel killed processes of it just before.
    pub(super) oom: bool,
    /// That kill was told before, and the container lived on.
    pub(super) lived_on: bool,
    /// What the API server says.
    pub(super) exit: Option<Exit>,
    /// The verdict names a memory error or broken hardware.
    pub(super) judged_memory: bool,
    /// The kubelet began another instance.
    pub(super) restarted: bool,
    /// The pod's logs were removed: the pod was deleted.
    pub(super) removed: bool,
    /// Since when it is looked at.
    pub(super) age: Duration,
}

/// An end as the API server tells it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exit {
    /// Exit code.
    pub code: i64,
    /// `OOMKilled`, `Error`, `Completed`.
    pub reason: String,
    /// The pod is being deleted.
    pub deleting: bool,
}

/// What it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// A death.
    Death,
    /// Meant: done, or asked to stop.
    Clean,
    /// Nobody has said yet.
    Wait,
    /// Nobody will.
    Unclear,
}

pub(super) fn decide(k: &EndFacts) -> Decision {
    // Asked to stop, a server ends with 0 or 143; where it does not within its time, it is killed: 137.
    let asked = |e: &Exit| e.deleting && matches!(e.code, 0 | 137 | 143);
    // A kill that it survived for days is no reason for an end that was asked for. The runtime says OOMKilled of both.
    let survived = k.lived_on && k.exit.as_ref().map_or(!k.restarted, asked);
    if (k.oom || k.judged_memory) && !survived {
        return Decision::Death;
    }
    if let Some(e) = &k.exit {
        return match e.reason.as_str() {
            "OOMKilled" if !survived => Decision::Death,
            _ if e.code == 0 || asked(e) => Decision::Clean,
            _ => Decision::Death,
        };
    }
    match () {
        () if k.restarted => Decision::Death,
        () if k.removed => Decision::Clean,
        () if k.age > SETTLE_TIMEOUT => Decision::Unclear,
        () => Decision::Wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(code: i64, reason: &str, deleting: bool) -> EndFacts {
        EndFacts { exit: Some(Exit { code, reason: reason.into(), deleting }), ..EndFacts::default() }
    }

    fn killed_before(known: EndFacts) -> EndFacts {
        EndFacts { oom: true, judged_memory: true, lived_on: true, ..known }
    }

    #[test]
    fn who_tells_decides() {
        let none = EndFacts::default();
        let cases = [
            (none.clone(), Decision::Wait),
            (EndFacts { age: Duration::from_secs(1000), ..none.clone() }, Decision::Unclear),
            (EndFacts { restarted: true, ..none.clone() }, Decision::Death),
            (EndFacts { removed: true, ..none.clone() }, Decision::Clean),
            (EndFacts { removed: true, oom: true, ..none.clone() }, Decision::Death),
            (EndFacts { removed: true, judged_memory: true, ..none }, Decision::Death),
            (exit(0, "Completed", false), Decision::Clean),
            (exit(0, "OOMKilled", false), Decision::Death),
            (exit(1, "Error", false), Decision::Death),
            (exit(137, "Error", false), Decision::Death),
            (exit(137, "Error", true), Decision::Clean),
            (exit(143, "Error", true), Decision::Clean),
            (exit(1, "Error", true), Decision::Death),
            (EndFacts { restarted: true, ..exit(0, "Completed", false) }, Decision::Clean),
            // A worker was killed, the server went on, and was deleted later; or died of it after all.
            (killed_before(exit(143, "OOMKilled", true)), Decision::Clean),
            (killed_before(exit(137, "Error", true)), Decision::Clean),
            (killed_before(EndFacts { removed: true, ..EndFacts::default() }), Decision::Clean),
            (killed_before(EndFacts::default()), Decision::Wait),
            (killed_before(exit(1, "OOMKilled", false)), Decision::Death),
            (killed_before(exit(1, "Error", true)), Decision::Death),
            (killed_before(EndFacts { restarted: true, ..EndFacts::default() }), Decision::Death),
        ];
        for (known, decision) in cases {
            assert_eq!(decide(&known), decision, "{known:?}");
        }
    }
}
