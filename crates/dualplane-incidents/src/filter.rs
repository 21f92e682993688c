//! Which incidents a list shows. A filter reads a URL's query and writes one: every filter is a link.

use std::collections::{BTreeMap, BTreeSet};

use crate::dimension::Dimension;
use crate::incident::Incident;
use crate::query::{encode, pairs};
use crate::time::Time;

/// Values that one filter holds in all.
pub const MAX_VALUES: usize = 64;
/// Characters of one value.
const MAX_LENGTH: usize = 400;

/// Values of a dimension are alternatives, dimensions narrow each other. Without anything it shows each cause once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Values of each dimension, one of which an incident must have.
    pub any: BTreeMap<Dimension, BTreeSet<String>>,
    /// Deaths of this loop.
    pub loop_key: Option<String>,
    /// Deaths of this cause.
    pub cause_key: Option<String>,
    /// Died at this time or later.
    pub since: Option<Time>,
    /// Died before this time.
    pub until: Option<Time>,
    /// Words that summary, trigger, pod, node, model or image hold, whatever their case.
    pub text: Option<String>,
    /// Every death, not each cause once.
    pub each: bool,
}

/// A query that is no filter. Its words go to whoever wrote the link.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// `%` without two digits.
    #[error("the link's query is not properly encoded: write % as %25")]
    Encoding,
    /// A key that no filter has.
    #[error("no filter is called {0:?}: use one of {known}", known = known())]
    Key(String),
    /// A value that its key cannot have.
    #[error("{key}={value}: {why}")]
    Value {
        /// Key.
        key: &'static str,
        /// What was given, shortened.
        value: String,
        /// What can be given.
        why: &'static str,
    },
    /// Too many.
    #[error("at most {MAX_VALUES} values fit into one filter")]
    TooMany,
}

const OTHERS: &[&str] = &["loop", "cause", "since", "until", "q", "each"];

fn known() -> String {
    let all: Vec<&str> = Dimension::ALL.iter().map(|d| d.as_str()).chain(OTHERS.iter().copied()).collect();
    all.join(", ")
}

impl Filter {
    /// Reads a query.
    ///
    /// # Errors
    ///
    /// Where a key or a value is unknown: a filter that is misread would show an all-clear.
    pub fn parse(query: &str) -> Result<Self, FilterError> {
        let (filter, rest) = Self::parse_with(query, &[])?;
        debug_assert!(rest.is_empty());
        Ok(filter)
    }

    /// Reads a query that holds other keys as well, like the place in a list; these are handed back.
    ///
    /// # Errors
    ///
    /// As [`Self::parse`].
    pub fn parse_with(
        query: &str,
        others: &[&'static str],
    ) -> Result<(Self, BTreeMap<&'static str, String>), FilterError> {
        let mut filter = Self::default();
        let mut rest = BTreeMap::new();
        for (key, value) in pairs(query).ok_or(FilterError::Encoding)? {
            if let Some(other) = others.iter().find(|o| **o == key) {
                rest.insert(*other, value);
            } else {
                filter.take(&key, value)?;
            }
        }
        Ok((filter, rest))
    }

    fn take(&mut self, key: &str, value: String) -> Result<(), FilterError> {
        // A form sends the fields that were left empty as well.
        if value.is_empty() {
            return match Dimension::parse(key).is_some() || OTHERS.contains(&key) {
                true => Ok(()),
                false => Err(FilterError::Key(short(key))),
            };
        }
        if value.chars().count() > MAX_LENGTH {
            let key = Dimension::parse(key).map_or("a value", Dimension::as_str);
            return Err(refused(key, &value, "it is too long"));
        }
        if let Some(dimension) = Dimension::parse(key) {
            if !possible(dimension, &value) {
                return Err(refused(
                    dimension.as_str(),
                    &value,
                    "there is no such value; see docs/verdict.md",
                ));
            }
            self.any.entry(dimension).or_default().insert(value);
            if self.any.values().map(BTreeSet::len).sum::<usize>() > MAX_VALUES {
                return Err(FilterError::TooMany);
            }
            return Ok(());
        }
        let time = |key| {
            let why = "write a time as RFC 3339 with its zone, like 2026-11-25T03:12:00Z";
            Time::parse(&value).ok_or_else(|| refused(key, &value, why))
        };
        match key {
            "loop" => self.loop_key = Some(value),
            "cause" => self.cause_key = Some(value),
            "since" => self.since = Some(time("since")?),
            "until" => self.until = Some(time("until")?),
            "q" => self.text = Some(value),
            "each" => match value.as_str() {
                "true" => self.each = true,
                "false" => self.each = false,
                _ => return Err(refused("each", &value, "write true or false")),
            },
            _ => return Err(FilterError::Key(short(key))),
        }
        Ok(())
    }

    /// As a query without its `?`; the same filter always gives the same.
    #[must_use]
    pub fn to_query(&self) -> String {
        let mut out: Vec<String> = Vec::new();
        for (dimension, values) in &self.any {
            out.extend(values.iter().map(|v| format!("{}={}", dimension.as_str(), encode(v))));
        }
        let mut push = |key: &str, value: Option<String>| {
            if let Some(value) = value {
                out.push(format!("{key}={}", encode(&value)));
            }
        };
        push("loop", self.loop_key.clone());
        push("cause", self.cause_key.clone());
        push("since", self.since.map(|t| t.to_string()));
        push("until", self.until.map(|t| t.to_string()));
        push("q", self.text.clone());
        push("each", self.each.then(|| "true".to_owned()));
        out.join("&")
    }

    /// The same with this value as well.
    #[must_use]
    pub fn with(&self, dimension: Dimension, value: &str) -> Self {
        let mut out = self.clone();
        out.any.entry(dimension).or_default().insert(value.to_owned());
        out
    }

    /// The same without this value.
    #[must_use]
    pub fn without(&self, dimension: Dimension, value: &str) -> Self {
        let mut out = self.clone();
        if let Some(values) = out.any.get_mut(&dimension) {
            values.remove(value);
            if values.is_empty() {
                out.any.remove(&dimension);
            }
        }
        out
    }

    /// This value is asked for.
    #[must_use]
    pub fn has(&self, dimension: Dimension, value: &str) -> bool {
        self.any.get(&dimension).is_some_and(|v| v.contains(value))
    }

    /// It holds nothing back.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        Self { each: false, ..self.clone() } == Self::default()
    }

    /// Each cause stands once, by its latest death. What two deaths of a cause may have differently, like their pod, cannot
    /// be asked of the latest alone: the others would be missed. Then every death is shown.
    #[must_use]
    pub fn collapses(&self) -> bool {
        !self.each
            && self.text.is_none()
            && self.until.is_none()
            && self.cause_key.is_none()
            && self.loop_key.is_none()
            && self.any.keys().all(|d| d.is_of_the_cause())
    }

    /// It lets this incident through; whether a cause collapses is the list's matter. What stores answer is held to this.
    #[must_use]
    pub fn matches(&self, incident: &Incident) -> bool {
        let in_time = self.since.is_none_or(|t| incident.died_at >= t)
            && self.until.is_none_or(|t| incident.died_at < t);
        let keys = self.loop_key.as_ref().is_none_or(|k| *k == incident.loop_key)
            && self.cause_key.as_ref().is_none_or(|k| *k == incident.cause_key);
        in_time
            && keys
            && self.any.iter().all(|(d, wanted)| incident.values(*d).iter().any(|v| wanted.contains(v)))
            && self.text.as_ref().is_none_or(|t| searched(incident).contains(&folded(t)))
    }

    /// The first page of what it shows of these, the newest first: what a store must answer.
    #[must_use]
    pub fn select<'a>(&self, all: &'a [Incident]) -> Vec<&'a Incident> {
        let mut out: Vec<&Incident> = all.iter().filter(|i| self.matches(i)).collect();
        out.sort_by(|a, b| (b.died_at, &b.id).cmp(&(a.died_at, &a.id)));
        if self.collapses() {
            let mut seen = BTreeSet::new();
            out.retain(|i| seen.insert(&i.cause_key));
        }
        out
    }
}

/// What a search looks through, in the case that [`folded`] gives. A store keeps it beside the incident.
#[must_use]
pub fn searched(i: &Incident) -> String {
    let trigger = i.trigger.as_ref().map_or("", |t| t.text.as_str());
    let parts = [&i.summary, trigger, &i.pod, &i.node, &i.model, &i.image].map(folded);
    parts.join("\n")
}

/// Without the difference of upper and lower case.
#[must_use]
pub fn folded(text: impl AsRef<str>) -> String {
    text.as_ref().to_lowercase()
}

fn possible(dimension: Dimension, value: &str) -> bool {
    use dualplane_base::{Class, Confidence, Phase, Plane};
    match dimension {
        Dimension::Class => Class::ALL.iter().any(|c| c.as_str() == value),
        Dimension::Plane => Plane::ALL.iter().any(|c| c.as_str() == value),
        Dimension::Phase => Phase::ALL.iter().any(|c| c.as_str() == value),
        Dimension::Confidence => Confidence::ALL.iter().any(|c| c.as_str() == value),
        Dimension::Xid => value.parse::<u32>().is_ok_and(|n| n.to_string() == value),
        _ => true,
    }
}

fn refused(key: &'static str, value: &str, why: &'static str) -> FilterError {
    FilterError::Value { key, value: short(value), why }
}

fn short(text: &str) -> String {
    let clean = dualplane_base::text::printable(text);
    dualplane_base::text::shorten(&clean, 60).into_owned()
}
