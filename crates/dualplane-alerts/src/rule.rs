//! Rules as data: `knowledge/alerts/*.toml`.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use dualplane_base::packed::Block;
use serde::{Deserialize, Serialize};

/// The rules as JSON: with their tests they are long, and one command in thirty asks for them.
pub(crate) static TEXT: Block = include!(concat!(env!("OUT_DIR"), "/alerts.rs"));

/// How soon somebody must look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Good to know beside another alert.
    Info,
    /// In working hours.
    Warning,
    /// Now.
    Critical,
}

impl Severity {
    /// The label's value.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// Who exposes series.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// As people write it.
    pub name: String,
    /// It is an engine: `--engine` chooses it, else `--source`.
    #[serde(default)]
    pub engine: bool,
    /// What is odd about it.
    pub note: String,
    /// Names of its series that rules use.
    pub metrics: Vec<String>,
    /// Where the names are known from.
    pub origin: String,
}

/// What a threshold counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// 0 to 1.
    Ratio,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// A number of things.
    Count,
    /// How many times as much.
    Factor,
    /// Degrees.
    Celsius,
}

/// A threshold that a person may set.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Value {
    /// What it is unless set.
    pub default: f64,
    /// What it counts.
    pub unit: Unit,
    /// What it is compared with.
    pub what: String,
    /// Why this default.
    pub why: String,
}

/// Input of a test, which several share.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fixture {
    /// As of a case.
    pub(crate) input: String,
}

/// One or several points in time.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum At {
    /// One.
    One(String),
    /// Several.
    Many(Vec<String>),
}

impl At {
    /// All of them.
    #[must_use]
    pub fn list(&self) -> &[String] {
        match self {
            Self::One(at) => std::slice::from_ref(at),
            Self::Many(all) => all,
        }
    }
}

/// Labels of a series, in their order.
pub(crate) type Labels = BTreeMap<String, String>;

/// What a record must be.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Its labels.
    pub labels: Labels,
    /// Its value.
    pub value: f64,
}

/// A test: series in, and what must come of them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What happens.
    pub say: String,
    /// Fixtures that come first.
    #[serde(default)]
    pub uses: Vec<String>,
    /// When to look.
    pub at: At,
    /// `series => values` lines, in promtool's notation.
    pub input: String,
    /// Of an alert that fires.
    #[serde(default)]
    pub labels: Vec<Labels>,
    /// Of a record.
    #[serde(default)]
    pub expect: Vec<Sample>,
}

/// A recording rule.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Its series.
    pub name: String,
    /// What it says.
    pub what: String,
    /// Labels by which a source has spoken, so that the next one is not asked: a list by its name.
    #[serde(default)]
    pub on: Option<String>,
    /// Expressions, the best source first.
    pub from: Vec<String>,
    /// Its tests.
    pub test: Vec<Case>,
    /// Its file.
    pub family: String,
}

/// An alert.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alert {
    /// Stable id, never reused.
    pub id: String,
    /// Its name in Prometheus.
    pub alert: String,
    /// The plane; of the series where missing.
    #[serde(default)]
    pub plane: Option<String>,
    /// Severity.
    pub severity: Severity,
    /// The class whose runbook helps; of the series where missing.
    #[serde(default)]
    pub class: Option<String>,
    /// How long it must hold; `0m` for events, whose expressions have a window of their own.
    #[serde(rename = "for")]
    pub hold: String,
    /// Why it is off unless asked for.
    #[serde(default)]
    pub optional: Option<String>,
    /// One line.
    pub title: String,
    /// What it means, and what it does not.
    pub why: String,
    /// One line with numbers, as a template of Prometheus.
    pub summary: String,
    /// First command for the person on call, as a template.
    pub first: String,
    /// Where the formula is from.
    pub source: String,
    /// Records whose absence changes nothing but what they would add or take away.
    #[serde(default)]
    pub without: Vec<String>,
    /// As of a record.
    #[serde(default)]
    pub on: Option<String>,
    /// Several expressions, as of a record.
    #[serde(default)]
    pub from: Vec<String>,
    /// Or one.
    #[serde(default)]
    pub expr: Option<String>,
    /// Series with which it fires.
    pub fires: Vec<Case>,
    /// Series with which it must not.
    pub silent: Vec<Case>,
    /// Its file.
    pub family: String,
}

impl Alert {
    /// Its expressions.
    #[must_use]
    pub fn parts(&self) -> &[String] {
        match &self.expr {
            Some(one) => std::slice::from_ref(one),
            None => &self.from,
        }
    }
}

/// All of it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    #[serde(rename = "source")]
    pub(crate) sources: BTreeMap<String, Source>,
    #[serde(rename = "value")]
    pub(crate) values: BTreeMap<String, Value>,
    pub(crate) text: BTreeMap<String, String>,
    #[serde(rename = "macro")]
    pub(crate) macros: BTreeMap<String, String>,
    #[serde(rename = "fixture")]
    pub(crate) fixtures: BTreeMap<String, Fixture>,
    #[serde(rename = "record")]
    pub(crate) records: Vec<Record>,
    #[serde(rename = "alert")]
    pub(crate) alerts: Vec<Alert>,
    #[serde(skip)]
    index: OnceLock<BTreeMap<String, Option<String>>>,
}

impl Rules {
    /// The embedded rules; none only if the text does not parse, which the tests of this crate exclude.
    #[must_use]
    pub fn embedded() -> &'static Self {
        static RULES: OnceLock<Rules> = OnceLock::new();
        RULES.get_or_init(|| serde_json::from_str(TEXT.text()).unwrap_or_default())
    }

    /// All alerts.
    #[must_use]
    pub fn alerts(&self) -> &[Alert] {
        &self.alerts
    }

    /// All records.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// All thresholds.
    pub fn values(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.values.iter().map(|(k, v)| (k.as_str(), v))
    }

    /// All sources.
    pub fn sources(&self) -> impl Iterator<Item = (&str, &Source)> {
        self.sources.iter().map(|(k, v)| (k.as_str(), v))
    }

    /// An alert by its id, or by its name in Prometheus.
    #[must_use]
    pub fn alert(&self, id: &str) -> Option<&Alert> {
        self.alerts.iter().find(|a| a.id == id || a.alert == id)
    }

    /// All names of series, each with its source; records have none.
    fn index(&self) -> &BTreeMap<String, Option<String>> {
        self.index.get_or_init(|| {
            let records = self.records.iter().map(|r| (r.name.clone(), None));
            let metrics = |(id, s): (&String, &Source)| {
                let id = id.clone();
                s.metrics.clone().into_iter().map(move |m| (m, Some(id.clone()))).collect::<Vec<_>>()
            };
            records.chain(self.sources.iter().flat_map(metrics)).collect()
        })
    }

    /// The source of a series.
    pub(crate) fn source_of(&self, metric: &str) -> Option<&str> {
        self.index().get(metric)?.as_deref()
    }

    /// Whether a source exposes it or a rule records it.
    pub(crate) fn is_series(&self, name: &str) -> bool {
        self.index().contains_key(name)
    }
}
