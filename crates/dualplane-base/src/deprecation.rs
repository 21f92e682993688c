//! What a later release takes away, said where it is used before it is gone: what, since when, until when, and what instead.
//! `docs/compatibility.md` is the promise behind this table.
//!
//! Only the table knows what goes. The command line, the readers and writers of documents, the agent's metrics and
//! `upgrade-check` ask it; none of them names a deprecated thing itself.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

/// What kind of thing goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Thing {
    /// A flag: of a command such as `incidents ls`, by its long name `--old`.
    Flag,
    /// A key of a document that people write: of `gate-policy`, by its path `headroom.host`. Lists on the way are walked.
    Key,
    /// A field of a document that dualplane writes: of `verdict`, by its path.
    Field,
    /// A version of a document that will be written no more: of `verdict`, `v2`.
    Version,
    /// A metric of the agent: of `agent`, by its name.
    Metric,
}

impl Thing {
    /// The word of `upgrade-check -o json`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Flag => "flag",
            Self::Key => "key",
            Self::Field => "field",
            Self::Version => "version",
            Self::Metric => "metric",
        }
    }
}

/// A release without its patch: `0.2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release(pub u32, pub u32);

impl Release {
    /// Of a version such as `0.2.1`.
    #[must_use]
    pub fn of(version: &str) -> Option<Self> {
        let mut parts = version.split('.');
        Some(Self(parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// One thing that goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deprecation {
    /// Its kind.
    pub thing: Thing,
    /// What it belongs to.
    pub of: &'static str,
    /// Its name there.
    pub name: &'static str,
    /// The first release that says so.
    pub since: Release,
    /// The first release without it.
    pub gone: Release,
    /// What to do, without a capital and an end: `use --new`.
    pub instead: &'static str,
}

/// All that goes. Nothing does yet.
pub const DEPRECATED: &[Deprecation] = &[];

/// The help of a metric, and what to use instead where it goes with a later release.
#[must_use]
pub fn metric_help<'h>(name: &str, help: &'h str, deprecated: &[Deprecation]) -> Cow<'h, str> {
    match deprecated.iter().find(|d| d.thing == Thing::Metric && d.name == name) {
        Some(d) => Cow::Owned(format!("{help} ({})", d.mark())),
        None => Cow::Borrowed(help),
    }
}

impl Deprecation {
    /// Behind the help of a flag or a metric.
    #[must_use]
    pub fn mark(&self) -> String {
        format!("deprecated since {}, gone with {}: {}", self.since, self.gone, self.instead)
    }

    /// Whether the release should not have it any more.
    #[must_use]
    pub fn is_overdue(&self, now: Release) -> bool {
        now >= self.gone
    }

    /// Whether a document holds the key or field, or is of the version.
    #[must_use]
    pub fn is_in(&self, document: &Value) -> bool {
        let id = document.get("schema").and_then(Value::as_str).and_then(|s| s.strip_prefix("dualplane."));
        let Some((name, version)) = id.and_then(|s| s.split_once('/')) else { return false };
        name == self.of
            && match self.thing {
                Thing::Key | Thing::Field => holds(document, self.name),
                Thing::Version => self.name == version,
                Thing::Flag | Thing::Metric => false,
            }
    }

    /// Whether a text of somebody else's names it: a metric in rules and boards, a flag in units, manifests and scripts that
    /// start dualplane.
    #[must_use]
    pub fn is_named_in(&self, text: &str) -> bool {
        let has = |word: &str| words(text).any(|w| w == word);
        match self.thing {
            Thing::Metric => has(self.name),
            Thing::Flag => has(self.name) && has("dualplane") && self.of.split(' ').all(has),
            Thing::Key | Thing::Field | Thing::Version => false,
        }
    }
}

impl fmt::Display for Deprecation {
    /// A sentence without its end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { of, name, .. } = self;
        match self.thing {
            Thing::Flag => write!(f, "{name} of `dualplane {of}`"),
            Thing::Key => write!(f, "the key `{name}` of dualplane.{of}"),
            Thing::Field => write!(f, "the field `{name}` of dualplane.{of}"),
            Thing::Version => write!(f, "dualplane.{of}/{name}"),
            Thing::Metric => write!(f, "the metric {name}"),
        }?;
        write!(f, " is {}", self.mark())
    }
}

/// Whether a value has something at a path.
fn holds(value: &Value, path: &str) -> bool {
    if let Value::Array(items) = value {
        return items.iter().any(|i| holds(i, path));
    }
    match path.split_once('.') {
        Some((first, rest)) => value.get(first).is_some_and(|v| holds(v, rest)),
        None => value.get(path).is_some(),
    }
}

/// Runs of what names and flags are made of.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '-')))
        .filter(|w| !w.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const fn goes(thing: Thing, of: &'static str, name: &'static str) -> Deprecation {
        Deprecation { thing, of, name, since: Release(0, 2), gone: Release(0, 3), instead: "use the other" }
    }

    const TABLE: &[Deprecation] = &[
        goes(Thing::Flag, "incidents ls", "--old"),
        goes(Thing::Key, "gate-policy", "headroom.host"),
        goes(Thing::Field, "verdict", "actions.patches.kind"),
        goes(Thing::Version, "verdict", "v2"),
        goes(Thing::Metric, "agent", "dualplane_old_bytes"),
    ];

    fn in_document(document: &Value) -> Vec<&'static str> {
        TABLE.iter().filter(|d| d.is_in(document)).map(|d| d.name).collect()
    }

    fn in_text(text: &str) -> Vec<&'static str> {
        TABLE.iter().filter(|d| d.is_named_in(text)).map(|d| d.name).collect()
    }

    /// Of the real table: who reads it finds sense, and what is overdue does not stay.
    #[test]
    fn the_table_keeps_the_promise() {
        let now = Release::of(env!("CARGO_PKG_VERSION")).unwrap();
        for d in DEPRECATED {
            assert!(d.since <= now, "{d}: not said by this release");
            assert!(d.since < d.gone, "{d}: no minor release says so before it is gone");
            assert!(!d.is_overdue(now), "{d}: to be removed");
            assert!(!d.instead.is_empty() && !d.instead.ends_with('.'), "{d}");
            if matches!(d.thing, Thing::Key | Thing::Field | Thing::Version) {
                assert!(crate::schema::SCHEMAS.iter().any(|s| s.name == d.of), "{d}: no such document");
            }
        }
        assert!(goes(Thing::Metric, "agent", "x").is_overdue(Release(0, 3)));
        assert!(goes(Thing::Metric, "agent", "x").is_overdue(Release(1, 0)));
        assert!(!goes(Thing::Metric, "agent", "x").is_overdue(Release(0, 2)));
    }

    #[test]
    fn sentences_say_what_and_until_when_and_what_instead() {
        let said: Vec<String> = TABLE.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "--old of `dualplane incidents ls` is deprecated since 0.2, gone with 0.3: use the other",
                "the key `headroom.host` of dualplane.gate-policy is deprecated since 0.2, gone with 0.3: use the other",
                "the field `actions.patches.kind` of dualplane.verdict is deprecated since 0.2, gone with 0.3: use the other",
                "dualplane.verdict/v2 is deprecated since 0.2, gone with 0.3: use the other",
                "the metric dualplane_old_bytes is deprecated since 0.2, gone with 0.3: use the other",
            ]
        );
    }

    #[test]
    fn documents_are_asked_for_what_they_hold() {
        let policy = json!({"schema": "dualplane.gate-policy/v1", "headroom": {"host": 0.1}});
        assert_eq!(in_document(&policy), ["headroom.host"]);
        let report = json!({"schema": "dualplane.verdict/v3", "actions": [{"patches": []}, {"patches": [{"kind": 1}]}]});
        assert_eq!(in_document(&report), ["actions.patches.kind"]);
        let without = json!({"schema": "dualplane.verdict/v2", "actions": [{"patches": [{}]}], "headroom": {"host": 1}});
        assert_eq!(in_document(&without), ["v2"]);
        for other in
            [json!({"headroom": {"host": 1}}), json!({"schema": "verdict/v2"}), json!([]), json!(null)]
        {
            assert_eq!(in_document(&other), [""; 0], "{other}");
        }
    }

    #[test]
    fn texts_are_asked_for_whole_names() {
        let unit = "ExecStart=/usr/bin/dualplane incidents ls --old=3\n";
        assert_eq!(in_text(unit), ["--old"]);
        assert_eq!(in_text("args: [\"incidents\", \"ls\", \"--old\"] # dualplane"), ["--old"]);
        assert_eq!(in_text("expr: sum(dualplane_old_bytes{node=\"a\"}) > 1"), ["dualplane_old_bytes"]);
        for other in [
            "dualplane incidents ls --older",
            "ls --old incidents",
            "dualplane triage --old",
            "dualplane_old_bytes_total",
            "my_dualplane_old_bytes",
        ] {
            assert_eq!(in_text(other), [""; 0], "{other}");
        }
    }

    proptest! {
        /// A name that stands between other text is found wherever it stands.
        #[test]
        fn a_name_is_found_anywhere(before in "[ ({\"\n]{0,4}", after in "[ )}\"\n={]{0,4}", rest in "[a-z ]{0,30}") {
            let text = format!("{rest} {before}dualplane_old_bytes{after} {rest}");
            prop_assert_eq!(in_text(&text), ["dualplane_old_bytes"]);
        }
    }
}
