//! What a command is asked about: `pod/NAME`, `deploy/NAME`, a selector, every failed pod.

/// A kind of object that has pods, or is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Pod.
    Pod,
    /// Deployment.
    Deployment,
    /// ReplicaSet.
    ReplicaSet,
    /// StatefulSet.
    StatefulSet,
    /// DaemonSet.
    DaemonSet,
    /// Job.
    Job,
    /// LeaderWorkerSet: one model over several nodes.
    LeaderWorkerSet,
}

/// Names as kubectl takes them, group and version, and the resource of the API.
const KINDS: &[(Kind, &[&str], &str, &str, &str)] = &[
    (Kind::Pod, &["pod", "pods", "po"], "v1", "pods", "Pod"),
    (Kind::Deployment, &["deploy", "deployment", "deployments"], "apps/v1", "deployments", "Deployment"),
    (Kind::ReplicaSet, &["rs", "replicaset", "replicasets"], "apps/v1", "replicasets", "ReplicaSet"),
    (Kind::StatefulSet, &["sts", "statefulset", "statefulsets"], "apps/v1", "statefulsets", "StatefulSet"),
    (Kind::DaemonSet, &["ds", "daemonset", "daemonsets"], "apps/v1", "daemonsets", "DaemonSet"),
    (Kind::Job, &["job", "jobs"], "batch/v1", "jobs", "Job"),
    (
        Kind::LeaderWorkerSet,
        &["lws", "leaderworkerset", "leaderworkersets"],
        "leaderworkerset.x-k8s.io/v1",
        "leaderworkersets",
        "LeaderWorkerSet",
    ),
];

impl Kind {
    /// The kind that a word of the command line means; `deployments.apps` as kubectl prints it, too.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        let lower = word.to_ascii_lowercase();
        let first = lower.split('.').next().unwrap_or_default();
        KINDS.iter().find(|k| k.1.contains(&first)).map(|k| k.0)
    }

    /// The kind of an owner reference.
    #[must_use]
    pub fn named(kind: &str) -> Option<Self> {
        KINDS.iter().find(|k| k.4 == kind).map(|k| k.0)
    }

    /// The kind of an owner reference, if it is of the group that is known here: others have kinds of the same name
    /// (OpenKruise's `StatefulSet`), and a native object of that name is another one.
    #[must_use]
    pub fn of_owner(api_version: &str, kind: &str) -> Option<Self> {
        let group = |v: &str| v.rsplit_once('/').map_or(String::new(), |(g, _)| g.to_owned());
        Self::named(kind).filter(|k| group(k.group_version()) == group(api_version))
    }

    fn row(
        self,
    ) -> Option<&'static (Self, &'static [&'static str], &'static str, &'static str, &'static str)> {
        KINDS.iter().find(|k| k.0 == self)
    }

    /// `apps/v1`.
    #[must_use]
    pub fn group_version(self) -> &'static str {
        self.row().map_or("v1", |r| r.2)
    }

    /// `deployments`.
    #[must_use]
    pub fn resource(self) -> &'static str {
        self.row().map_or("pods", |r| r.3)
    }

    /// `Deployment`.
    #[must_use]
    pub fn kind(self) -> &'static str {
        self.row().map_or("Pod", |r| r.4)
    }

    /// `deployment`, for messages.
    #[must_use]
    pub fn word(self) -> &'static str {
        self.resource().strip_suffix('s').unwrap_or(self.resource())
    }
}

/// One object by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Kind.
    pub kind: Kind,
    /// Name.
    pub name: String,
}

impl Named {
    /// Reads `pod/NAME`. A word with another form is none.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        let (kind, name) = word.split_once('/')?;
        let kind = Kind::of(kind)?;
        is_name(name).then(|| Self { kind, name: name.to_owned() })
    }
}

impl std::fmt::Display for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.kind.word(), self.name)
    }
}

/// A DNS subdomain, as names of objects are.
#[must_use]
pub fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 253
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'.'))
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric())
}

/// What pods are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An object.
    One(Named),
    /// `-l`.
    Selector(String),
    /// All pods of the namespace.
    Namespace,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubectls_spellings_are_read() {
        let one = |w| Named::parse(w).map(|n| n.to_string());
        assert_eq!(one("pod/a-0").as_deref(), Some("pod/a-0"));
        assert_eq!(one("po/a.b").as_deref(), Some("pod/a.b"));
        assert_eq!(one("deployments.apps/x").as_deref(), Some("deployment/x"));
        assert_eq!(one("deployment.apps/x").as_deref(), Some("deployment/x"));
        assert_eq!(one("lws/big").as_deref(), Some("leaderworkerset/big"));
        for no in ["pods", "pod/", "pod/A", "pod/..", "pod/a/b", "logs/previous.log", "a/b"] {
            assert_eq!(one(no), None, "{no}");
        }
    }

    #[test]
    fn every_kind_has_its_row() {
        for row in KINDS {
            assert_eq!(row.0.resource(), row.3);
            assert_eq!(Kind::named(row.4), Some(row.0));
        }
    }
}
