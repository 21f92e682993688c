//! The shape of what was counted.

use dualplane_base::order::Order as _;
use std::collections::BTreeMap;

use dualplane_shape::{Arrival, Cancelled, Long, MAX_TENANTS, Requests, Shape, Tenant};

use crate::source::Profiler;
use crate::tally::Sum;
use crate::timeline::Times;

/// Cells of a shape; where there are more, neighbours are put together.
const MAX_CELLS: usize = 1_000;
/// Tenants that are told; all others are one.
const TENANTS: usize = 32;

/// What the user says beside the sources.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Its name.
    pub name: Option<String>,
    /// Requests at once, where no source says it.
    pub concurrency: Option<u64>,
}

/// Why there is no shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoShape {
    /// No line told of a request.
    Nothing {
        /// Lines that were read.
        lines: u64,
    },
    /// Requests were there, and no length of any.
    NoLengths {
        /// Requests.
        requests: u64,
    },
}

impl std::fmt::Display for NoShape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nothing { lines } => write!(f, "no line of {lines} tells of a request and its tokens"),
            Self::NoLengths { requests } => {
                write!(f, "{requests} requests are there, and no line says how many tokens any of them has")
            }
        }
    }
}

impl Profiler {
    /// The shape, and remarks on how sure it is.
    ///
    /// # Errors
    /// Where the sources tell of no lengths.
    pub fn shape(&mut self, options: &Options) -> Result<(Shape, Vec<String>), NoShape> {
        self.end();
        let mut notes = Vec::new();
        if self.too_large > 0 {
            notes.push("a JSON document above 64 MiB was not read: give it as JSON lines".to_owned());
        }
        let mut shape = if self.tally.all.n > 0 {
            self.counted_shape(&mut notes)
        } else if let Some(h) = self.grown.histograms() {
            of_histograms(&h, &mut notes)
        } else if self.tally.lengthless > 0 {
            return Err(NoShape::NoLengths { requests: self.tally.lengthless });
        } else {
            return Err(NoShape::Nothing { lines: self.lines });
        };
        if let Some(name) = &options.name {
            shape.name.clone_from(name);
        }
        if let Some(n) = options.concurrency {
            shape.concurrency = Some(n);
        }
        if shape.concurrency.is_none() && shape.arrival_per_second.is_none() {
            notes.push(
                "no source says how many requests there are at once: 1 is assumed (--concurrency N)"
                    .to_owned(),
            );
            shape.concurrency = Some(1);
        }
        Ok((shape, notes))
    }

    fn counted_shape(&self, notes: &mut Vec<String>) -> Shape {
        let t = &self.tally;
        let sources = self.sources.join(", ");
        let mut shape = Shape {
            name: "measured".into(),
            measured: true,
            source: format!("counted by dualplane profile: {sources}"),
            counted: Some(t.all.n),
            requests: cells(&t.cells),
            ..Shape::default()
        };
        let tokens = (t.all.input + t.all.output).max(1) as f64;
        shape.long = Some(Long {
            above: t.long_above,
            share: round(t.long.n as f64 / t.all.n as f64),
            tokens_share: round((t.long.input + t.long.output) as f64 / tokens),
        });
        let times = t.times.times().or_else(|| {
            let other = t.arrivals.times();
            if other.is_some() {
                notes.push("when requests came is told by lines that tell no length: the two may not be the same requests".into());
            }
            other
        });
        if let Some(times) = &times {
            arrivals(&mut shape, times);
        } else {
            notes.push("no source says when requests came".to_owned());
        }
        if t.running.0 > 0 {
            let mean = t.running.1 / t.running.0 as f64;
            shape.concurrency = shape.concurrency.or(Some((mean.ceil() as u64).max(1)));
            shape.concurrency_peak = shape.concurrency_peak.or(Some((t.running.2 as u64).max(1)));
        }
        shape.prefix_share = if t.cached.0 > 0 {
            round(t.cached.1 as f64 / t.cached.0 as f64)
        } else if t.hits.0 > 0 {
            round(t.hits.1 / t.hits.0 as f64)
        } else {
            0.0
        };
        if t.cancelled > 0 {
            let after = if t.cut.1 > 0 { round(t.cut.0 as f64 / t.cut.1 as f64) } else { 0.5 };
            shape.cancelled = Some(Cancelled { share: round(t.cancelled as f64 / t.all.n as f64), after });
        }
        shape.tenants = self.tenants();
        let of = |n: u64| format!("{n} of {} requests", t.all.n);
        if t.bounded > 0 {
            notes.push(format!(
                "{}: the answer's length is its bound (max_tokens), and no line tells what it was",
                of(t.bounded)
            ));
        }
        if t.estimated > 0 {
            notes.push(format!(
                "{}: tokens of the prompt are estimated, four characters each",
                of(t.estimated)
            ));
        }
        if t.failed > 0 {
            notes.push(format!("{} more failed and are left out", t.failed));
        }
        shape
    }

    fn tenants(&self) -> Vec<Tenant> {
        let t = &self.tally;
        let mut all: Vec<Sum> = t.tenants.values().copied().collect();
        if all.len() < 2 {
            return Vec::new();
        }
        all.order_by_key(|s| (std::cmp::Reverse(s.n), s.input, s.output));
        let mut rest = t.other_tenants;
        for s in all.split_off(all.len().min(TENANTS.min(MAX_TENANTS))) {
            rest.add(s.n, s.input, s.output);
        }
        all.extend((rest.n > 0).then_some(rest));
        let sum: u64 = all.iter().map(|s| s.n).sum();
        let of = |s: Sum| Tenant {
            share: round(s.n as f64 / sum.max(1) as f64),
            input: Some(s.input / s.n.max(1)),
            output: Some(s.output / s.n.max(1)),
        };
        all.into_iter().map(of).collect()
    }
}

fn arrivals(shape: &mut Shape, times: &Times) {
    shape.span_seconds = Some(round(times.span));
    shape.arrival_per_second = Some(significant(times.rate));
    shape.seconds = times.seconds.map(significant).filter(|s| *s > 0.0);
    shape.concurrency = times.at_once.map(|n| (n.ceil() as u64).max(1));
    shape.concurrency_peak = times.most_at_once.map(|n| n.max(shape.concurrency.unwrap_or(1)));
    shape.arrival = Some(Arrival {
        cv: times.cv.map_or(1.0, round),
        slice_seconds: (!times.rates.is_empty()).then_some(times.slice),
        rates: times.rates.clone(),
        peak_per_second: times.peak.filter(|p| *p > 0.0),
    });
}

fn of_histograms(h: &crate::Histograms, notes: &mut Vec<String>) -> Shape {
    notes.push("an engine's histograms tell prompts and answers apart: that long prompts have long answers is not in them".to_owned());
    let inputs: f64 = h.input.iter().map(|(_, n)| n).sum();
    let outputs: f64 = h.output.iter().map(|(_, n)| n).sum();
    let mut requests = Vec::new();
    for (input, a) in &h.input {
        for (output, b) in &h.output {
            let weight = round(a / inputs * b / outputs * h.requests);
            if weight > 0.0 {
                requests.push(Requests {
                    input: input.round() as u64,
                    output: output.round() as u64,
                    weight,
                });
            }
        }
    }
    let rate = h.span.filter(|s| *s > 0.0).map(|s| significant(h.requests / s)).filter(|r| *r > 0.0);
    let at_once = h.running.or_else(|| Some(rate? * h.seconds?));
    Shape {
        name: "measured".into(),
        measured: true,
        source: format!("histograms of {}, read by dualplane profile", h.engine),
        counted: Some(h.requests.round() as u64),
        span_seconds: h.span,
        requests,
        arrival_per_second: rate,
        seconds: h.seconds.map(significant).filter(|s| *s > 0.0),
        concurrency: at_once.map(|n| (n.ceil() as u64).max(1)),
        prefix_share: h.prefix_share.map_or(0.0, round),
        ..Shape::default()
    }
}

/// Mean lengths of each cell, neighbours put together until they are few enough.
fn cells(counted: &BTreeMap<(u16, u16), Sum>) -> Vec<Requests> {
    let mut cells = counted.clone();
    while cells.len() > MAX_CELLS {
        let mut wider: BTreeMap<(u16, u16), Sum> = BTreeMap::new();
        for ((i, o), s) in cells {
            wider.entry((i / 2, o / 2)).or_default().add(s.n, s.input, s.output);
        }
        cells = wider;
    }
    let mean = |sum: u64, n: u64| (sum as f64 / n as f64).round() as u64;
    cells
        .into_values()
        .map(|s| Requests { input: mean(s.input, s.n), output: mean(s.output, s.n), weight: s.n as f64 })
        .collect()
}

/// Four places behind the point.
fn round(n: f64) -> f64 {
    (n * 1e4).round() / 1e4
}

/// Four digits, also of small numbers.
fn significant(n: f64) -> f64 {
    if n == 0.0 || !n.is_finite() {
        return 0.0;
    }
    let scale = 10_f64.powi(3 - n.abs().log10().floor() as i32);
    (n * scale).round() / scale
}
