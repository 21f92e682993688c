//! Families, labels and the bounded page that they are written to.

use std::borrow::Cow;
use std::fmt::Write as _;

use dualplane_base::deprecation::{DEPRECATED, Deprecation, metric_help};
use dualplane_base::metrics::push_label;

/// Samples of a page: a full node has some 250 containers with 25 each. What is beyond is counted, not written.
const MAX_SAMPLES: usize = 50_000;

/// Type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// Only grows, until what it counts for begins anew.
    Counter,
    /// Goes up and down.
    Gauge,
}

impl Type {
    /// As the page says it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
        }
    }
}

/// What one metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Family {
    /// Name.
    pub name: &'static str,
    /// Type.
    pub kind: Type,
    /// Labels besides `node`, with a blank between two.
    pub labels: &'static str,
    /// One sentence.
    pub help: &'static str,
}

impl Family {
    /// Its sentence, and what to use instead where it goes with a later release.
    pub(super) fn help(&self, deprecated: &[Deprecation]) -> Cow<'static, str> {
        metric_help(self.name, self.help, deprecated)
    }
}

/// A metric that goes up and down.
pub(super) const fn gauge(name: &'static str, labels: &'static str, help: &'static str) -> Family {
    Family { name, kind: Type::Gauge, labels, help }
}

/// A metric that only grows.
pub(super) const fn counter(name: &'static str, labels: &'static str, help: &'static str) -> Family {
    Family { name, kind: Type::Counter, labels, help }
}

/// A family and how its value is read.
pub(super) type Metric<T> = (Family, fn(&T) -> Option<f64>);

/// Label pairs as they stand between the braces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Labels(String);

impl Labels {
    /// One more.
    pub(super) fn with(&self, key: &str, value: &str) -> Self {
        let mut out = self.0.clone();
        if !out.is_empty() {
            out.push(',');
        }
        push_label(&mut out, key, value);
        Self(out)
    }
}

/// A page that is being written.
pub(super) struct Page<'o> {
    out: &'o mut String,
    samples: usize,
    left_out: u64,
    deprecated: &'static [Deprecation],
}

impl<'o> Page<'o> {
    pub(super) fn new(out: &'o mut String) -> Self {
        Self::with(out, DEPRECATED)
    }

    /// With another table of what goes.
    pub(super) fn with(out: &'o mut String, deprecated: &'static [Deprecation]) -> Self {
        Self { out, samples: 0, left_out: 0, deprecated }
    }

    /// A family of samples; one without any is not named.
    pub(super) fn family(&mut self, f: &Family, samples: impl Iterator<Item = (Labels, f64)>) {
        let mut begun = false;
        for (labels, value) in samples {
            // An engine may answer anything; Prometheus takes NaN and infinities, arithmetic on them says nothing.
            if !value.is_finite() {
                continue;
            }
            if self.samples >= MAX_SAMPLES {
                self.left_out += 1;
                continue;
            }
            self.samples += 1;
            if !begun {
                begun = true;
                // Writing into a String cannot fail.
                let help = f.help(self.deprecated);
                let _ = writeln!(self.out, "# HELP {} {help}\n# TYPE {} {}", f.name, f.name, f.kind.word());
            }
            let _ = match labels.0.as_str() {
                "" => writeln!(self.out, "{} {value}", f.name),
                l => writeln!(self.out, "{}{{{l}}} {value}", f.name),
            };
        }
    }

    /// All families of one kind of thing, for each thing with its labels.
    pub(super) fn all<T>(&mut self, table: &[Metric<T>], things: &[(Labels, &T)]) {
        for (family, value) in table {
            self.family(family, things.iter().filter_map(|(l, t)| Some((l.clone(), value(t)?))));
        }
    }

    /// Counts what the caller leaves out.
    pub(super) fn leave_out(&mut self, n: usize) {
        self.left_out += n as u64;
    }

    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The bound does not hold for what says that it was reached.
    pub(super) fn lift(&mut self) {
        self.samples = 0;
    }
}
