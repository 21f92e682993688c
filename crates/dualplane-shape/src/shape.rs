//! The file of a shape: a joint histogram of prompts and answers, or two points of each, and how they come.

use serde::{Deserialize, Serialize};

/// What `schema` of a file says.
pub const SHAPE: &str = "dualplane.shape/v1";

/// No histogram needs more cells.
pub const MAX_CELLS: usize = 10_000;
/// Nor a day more slices than these.
pub const MAX_RATES: usize = 288;
/// Nor a fleet more tenants: those that bring least are added up.
pub const MAX_TENANTS: usize = 1_000;
/// Tokens above which a request counts as long, unless told otherwise: what one chunk of prefill takes at most by the defaults of
/// vLLM (8192 on servers) is fed in one step, and longer ones hold others up.
pub const LONG: u64 = 8_192;

/// A length by two of its points; its logarithm is taken for normal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Points {
    /// Half of them are at most this long.
    pub p50: u64,
    /// 99 of 100.
    pub p99: u64,
}

/// One cell of the histogram: mean lengths of its requests, and how many they are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requests {
    /// Tokens of the prompt.
    pub input: u64,
    /// Tokens of the answer.
    pub output: u64,
    /// How many; only their ratio counts.
    #[serde(default = "one")]
    pub weight: f64,
}

/// How requests arrive around their mean rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arrival {
    /// Deviation of the time between two requests, over its mean, with slow changes of the rate taken out: 1 is chance
    /// (Poisson), 0 a metronome, more than 1 comes in bursts.
    #[serde(default = "one")]
    pub cv: f64,
    /// Rates of equal slices of the time, over their mean: a day, or what was counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<f64>,
    /// Length of one slice in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_seconds: Option<f64>,
    /// The most in one second that was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_per_second: Option<f64>,
}

/// Requests whose client went away.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cancelled {
    /// Share of all requests.
    pub share: f64,
    /// Share of its answer that such a request got, on the average.
    #[serde(default = "half")]
    pub after: f64,
}

/// One of those who share the server; without a name, because whose it is does not matter here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    /// Share of all requests.
    pub share: f64,
    /// Tokens of its prompts on the average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// Tokens of its answers on the average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
}

/// How much of the work is long context.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Long {
    /// Prompt and answer together above so many tokens are long.
    pub above: u64,
    /// Share of the requests.
    pub share: f64,
    /// Share of all tokens that they bring.
    pub tokens_share: f64,
}

/// A shape as its file says it (`docs/shape.schema.json`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    /// [`SHAPE`].
    pub schema: String,
    /// What people call it.
    #[serde(default = "unnamed")]
    pub name: String,
    /// Whether requests were counted.
    #[serde(default)]
    pub measured: bool,
    /// Where it is from.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Requests that were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<u64>,
    /// Time over which they were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_seconds: Option<f64>,
    /// Requests at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u64>,
    /// The most at once that was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency_peak: Option<u64>,
    /// Mean rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrival_per_second: Option<f64>,
    /// Around that rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrival: Option<Arrival>,
    /// That a request takes, on the average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Share of the prompts' tokens that an earlier request brought.
    #[serde(default)]
    pub prefix_share: f64,
    /// Different beginnings that are shared at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefixes: Option<u64>,
    /// Whose client went away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<Cancelled>,
    /// How much is long context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long: Option<Long>,
    /// Who shares the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tenants: Vec<Tenant>,
    /// The prompts by two points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Points>,
    /// The answers by two points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Points>,
    /// The joint histogram, instead of the points.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<Requests>,
}

pub(crate) const fn one() -> f64 {
    1.0
}

const fn half() -> f64 {
    0.5
}

fn unnamed() -> String {
    "own".into()
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            schema: SHAPE.into(),
            name: unnamed(),
            measured: false,
            source: String::new(),
            counted: None,
            span_seconds: None,
            concurrency: None,
            concurrency_peak: None,
            arrival_per_second: None,
            arrival: None,
            seconds: None,
            prefix_share: 0.0,
            prefixes: None,
            cancelled: None,
            long: None,
            tenants: Vec::new(),
            input: None,
            output: None,
            requests: Vec::new(),
        }
    }
}

fn share(name: &str, value: f64) -> Result<(), String> {
    if (0.0..=1.0).contains(&value) {
        return Ok(());
    }
    Err(format!("{name} is {value}, and a share lies between 0 and 1"))
}

fn positive(name: &str, value: Option<f64>) -> Result<(), String> {
    match value {
        Some(v) if !(v.is_finite() && v > 0.0) => Err(format!("{name} is {v}, and must be above 0")),
        _ => Ok(()),
    }
}

impl Shape {
    /// Whether it says what a load can be made of.
    ///
    /// # Errors
    /// A sentence that says what contradicts.
    pub fn check(&self) -> Result<(), String> {
        if self.schema != SHAPE {
            return Err(format!("schema is `{}` and not `{SHAPE}`", self.schema));
        }
        share("prefix_share", self.prefix_share)?;
        self.cells()?;
        if self.concurrency == Some(0) {
            return Err("concurrency is 0".into());
        }
        if self.prefixes == Some(0) {
            return Err("prefixes is 0".into());
        }
        if self.concurrency.is_none() && self.arrival_per_second.is_none() {
            return Err("concurrency is missing, or arrival_per_second with seconds".into());
        }
        positive("arrival_per_second", self.arrival_per_second)?;
        positive("seconds", self.seconds)?;
        positive("span_seconds", self.span_seconds)?;
        if let Some(arrival) = &self.arrival {
            arrival.check()?;
        }
        if let Some(c) = &self.cancelled {
            share("cancelled.share", c.share)?;
            share("cancelled.after", c.after)?;
        }
        if let Some(l) = &self.long {
            share("long.share", l.share)?;
            share("long.tokens_share", l.tokens_share)?;
        }
        if self.tenants.len() > MAX_TENANTS {
            return Err(format!("{} tenants, and at most {MAX_TENANTS} are read", self.tenants.len()));
        }
        self.tenants.iter().try_for_each(|t| share("share of a tenant", t.share))
    }

    /// Requests at once, and whether they come by chance: those that arrive in the time that one takes.
    ///
    /// # Errors
    /// A sentence that says what is missing.
    pub fn at_once(&self) -> Result<(u64, bool), String> {
        match (self.concurrency, self.arrival_per_second, self.seconds) {
            (Some(0), ..) => Err("concurrency is 0".into()),
            (Some(n), ..) => Ok((n, false)),
            (None, Some(rate), Some(seconds)) if rate > 0.0 && seconds > 0.0 => {
                Ok(((rate * seconds).ceil() as u64, true))
            }
            _ => Err("concurrency is missing, or arrival_per_second with seconds".into()),
        }
    }
}

impl Arrival {
    fn check(&self) -> Result<(), String> {
        if !(0.0..=100.0).contains(&self.cv) {
            return Err(format!("arrival.cv is {}, and lies between 0 and 100", self.cv));
        }
        if self.rates.len() > MAX_RATES {
            return Err(format!(
                "{} slices in arrival.rates, and at most {MAX_RATES} are read",
                self.rates.len()
            ));
        }
        if self.rates.iter().any(|r| !r.is_finite() || *r < 0.0) {
            return Err("one of arrival.rates is negative or no number".into());
        }
        if !self.rates.is_empty() && self.rates.iter().sum::<f64>() <= 0.0 {
            return Err("all of arrival.rates are 0".into());
        }
        if !self.rates.is_empty() && self.slice_seconds.is_none() {
            return Err("arrival.rates stand there without slice_seconds".into());
        }
        positive("arrival.slice_seconds", self.slice_seconds)?;
        positive("arrival.peak_per_second", self.peak_per_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(more: &str) -> Result<(), String> {
        let text = format!(r#"{{"schema": "dualplane.shape/v1", {more}}}"#);
        serde_json::from_str::<Shape>(&text).map_err(|e| e.to_string())?.check()
    }

    const POINTS: &str = r#""input": {"p50": 10, "p99": 20}, "output": {"p50": 1, "p99": 2}"#;

    #[test]
    fn what_contradicts_is_told() {
        let of = |text: &str| check(text).unwrap_err();
        assert!(of(POINTS).contains("concurrency is missing"));
        assert!(of(r#""concurrency": 1"#).contains("requests are missing"));
        assert!(
            of(&format!(r#""concurrency": 1, "prefix_share": 30, {POINTS}"#)).contains("between 0 and 1")
        );
        assert!(of(&format!(r#""concurency": 1, {POINTS}"#)).contains("concurency"));
        assert!(
            of(r#""concurrency": 1, "requests": [{"input": 1, "output": 1, "weight": 0}]"#)
                .contains("weights")
        );
        let arrival = |text: &str| of(&format!(r#""concurrency": 1, {POINTS}, "arrival": {{{text}}}"#));
        assert!(arrival(r#""cv": -1"#).contains("arrival.cv"));
        assert!(arrival(r#""rates": [0, 0], "slice_seconds": 1"#).contains("all of arrival.rates"));
        assert!(arrival(r#""rates": [1, 2]"#).contains("slice_seconds"));
        assert!(
            of(&format!(r#""concurrency": 1, {POINTS}, "tenants": [{{"share": 2}}]"#)).contains("tenant")
        );
        let cancelled = format!(r#""concurrency": 1, {POINTS}, "cancelled": {{"share": 0.1, "after": 7}}"#);
        assert!(of(&cancelled).contains("cancelled.after"));
    }

    #[test]
    fn requests_at_once_are_said_or_follow_from_rate_and_time() {
        let of = |more: &str| {
            let text = format!(r#"{{"schema": "dualplane.shape/v1", {more}, {POINTS}}}"#);
            serde_json::from_str::<Shape>(&text).unwrap().at_once()
        };
        assert_eq!(of(r#""arrival_per_second": 2, "seconds": 8.5"#), Ok((17, true)));
        assert_eq!(of(r#""arrival_per_second": 2, "concurrency": 3"#), Ok((3, false)));
        assert!(of(r#""arrival_per_second": 2"#).is_err());
    }
}
