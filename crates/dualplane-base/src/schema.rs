//! The documents that dualplane writes and reads again: `dualplane.NAME/vN`. `docs/compatibility.md` is the promise behind
//! this table; `testdata/releases/` holds documents of each release, which every later one must read.

use std::fmt;

/// A kind of document.
#[derive(Debug, PartialEq, Eq)]
pub struct Schema {
    /// What stands between `dualplane.` and the version.
    pub name: &'static str,
    /// The oldest version that is read.
    pub oldest: u32,
    /// The version that is written; it is read as well.
    pub newest: u32,
    /// What it is.
    pub what: &'static str,
    /// Commands that read it; none where it is written for others only.
    pub read_by: &'static [&'static str],
}

const fn row(
    name: &'static str,
    [oldest, newest]: [u32; 2],
    what: &'static str,
    read_by: &'static [&'static str],
) -> Schema {
    Schema { name, oldest, newest, what, read_by }
}

/// All of them.
pub const SCHEMAS: &[Schema] = &[
    row("bundle", [1, 1], "the manifest of a bundle", &["triage", "map", "top --replay"]),
    row("revisions", [1, 1], "the last two revisions of a workload", &["triage"]),
    row("incident", [1, 1], "the summary of an incident of the agent", &["incidents", "triage"]),
    row("incidents", [1, 1], "a list of incidents", &[]),
    row("fleet-incident", [1, 1], "an incident as the server keeps it", &[]),
    row("fleet-incidents", [1, 1], "a list of incidents of the server", &[]),
    row("notification", [1, 1], "a message of the server to a webhook", &[]),
    row("verdict", [1, 2], "a report of triage", &["apply"]),
    row("verdicts", [1, 2], "reports of triage", &["apply"]),
    row("change", [1, 1], "the record of a change", &["rollback"]),
    row("changes", [1, 1], "a list of changes", &[]),
    row("plan", [1, 1], "a plan", &[]),
    row("fit", [1, 1], "an answer of fit", &[]),
    row("preflight", [1, 1], "an answer of preflight", &[]),
    row("map", [1, 1], "a map", &[]),
    row("top", [1, 1], "a picture of top", &[]),
    row("guard", [1, 1], "a status of guard", &[]),
    row("upgrade", [1, 1], "an answer of upgrade-check", &[]),
    row("shape", [1, 1], "the shape of requests", &["plan --shape", "fit --shape"]),
    row("lint", [1, 1], "findings of lint", &[]),
    row("lint-baseline", [1, 1], "a baseline of lint", &["lint --baseline"]),
    row("resources", [1, 1], "sizes of resources", &[]),
    row("rules", [1, 1], "alerts and records of rules", &[]),
    row("rehearsal", [1, 1], "an answer of rehearse", &[]),
    row("measure", [1, 1], "a report of measure", &["gate", "tune"]),
    row("gate", [1, 1], "an answer of gate", &[]),
    row("gate-policy", [1, 1], "a policy of gate", &["gate --policy"]),
    row("tune", [1, 1], "a log of tune", &["tune --log", "apply"]),
    row("calibration", [1, 1], "a calibration", &["plan --calibration"]),
];

/// What an id says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Id {
    /// This program reads or writes it.
    Known(&'static Schema),
    /// A later version of dualplane wrote it.
    Newer(&'static Schema, u32),
    /// Older than what is read.
    Older(&'static Schema, u32),
    /// A kind of document that this version does not have.
    Other,
}

/// Reads an id; `None` where it is none of dualplane's.
///
/// ```
/// use dualplane_base::schema::{Id, id};
/// assert!(matches!(id("dualplane.bundle/v1"), Some(Id::Known(_))));
/// assert!(matches!(id("dualplane.bundle/v9"), Some(Id::Newer(_, 9))));
/// assert_eq!(id("apps/v1"), None);
/// ```
#[must_use]
pub fn id(text: &str) -> Option<Id> {
    let (name, version) = text.strip_prefix("dualplane.")?.split_once("/v")?;
    let version: u32 = version.parse().ok()?;
    let Some(schema) = SCHEMAS.iter().find(|s| s.name == name) else { return Some(Id::Other) };
    Some(match version {
        v if v > schema.newest => Id::Newer(schema, v),
        v if v < schema.oldest => Id::Older(schema, v),
        _ => Id::Known(schema),
    })
}

impl fmt::Display for Id {
    /// A sentence without its end: what the document is, and what to do with it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(s) => match s.read_by {
                [] => write!(f, "it is {} that dualplane wrote; no command reads it", s.what),
                by => write!(
                    f,
                    "it is {} that dualplane wrote; `dualplane {}` reads it",
                    s.what,
                    by.join("` or `dualplane ")
                ),
            },
            Self::Newer(s, v) => write!(
                f,
                "it is {} of a newer dualplane (version {v}; this program reads up to {}): update dualplane",
                s.what, s.newest
            ),
            Self::Older(s, v) => write!(
                f,
                "it is {} of a form that is no longer read (version {v}; this program reads from {}): use the dualplane that wrote it",
                s.what, s.oldest
            ),
            Self::Other => f.write_str("it is a document of a newer dualplane: update dualplane"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_told_apart() {
        assert!(SCHEMAS.iter().all(|s| s.oldest >= 1 && s.oldest <= s.newest));
        for s in SCHEMAS {
            let of = |v: u32| id(&format!("dualplane.{}/v{v}", s.name)).unwrap();
            assert_eq!(of(s.newest), Id::Known(s));
            assert_eq!(of(s.newest + 1), Id::Newer(s, s.newest + 1));
            assert!(of(s.newest + 1).to_string().contains("update dualplane"));
            assert_eq!(of(0), Id::Older(s, 0));
        }
        assert_eq!(id("dualplane.oracle/v1"), Some(Id::Other));
        for none in [
            "",
            "v1",
            "apps/v1",
            "dualplane.bundle",
            "dualplane.bundle/v",
            "dualplane.bundle/v1a",
            "dualplane.bundle/1",
        ] {
            assert_eq!(id(none), None, "{none}");
        }
    }
}
