//! Lengths from an engine's own histograms: a page of metrics, or answers of Prometheus.

use std::collections::BTreeMap;

use dualplane_base::metrics::sample;
use serde_json::Value;

use crate::forms::forms;

/// Bounds of one histogram, at most.
const MAX_BOUNDS: usize = 512;

/// Buckets by their upper bound (in thousandths), each with what it holds alone.
type Buckets = BTreeMap<u64, f64>;

/// What histograms tell.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Histograms {
    /// Which engine's they are.
    pub engine: String,
    /// Mean length and number of each bucket of the prompts.
    pub(crate) input: Vec<(f64, f64)>,
    /// The same of the answers.
    pub(crate) output: Vec<(f64, f64)>,
    pub(crate) requests: f64,
    /// Mean seconds of a request.
    pub(crate) seconds: Option<f64>,
    pub(crate) prefix_share: Option<f64>,
    pub(crate) running: Option<f64>,
    /// Seconds over which they counted.
    pub(crate) span: Option<f64>,
}

/// Series by name and upper bound: what a counter grew by.
#[derive(Debug, Default)]
pub(crate) struct Grown {
    buckets: BTreeMap<(String, u64), f64>,
    plain: BTreeMap<String, f64>,
    span: Option<f64>,
}

/// PromQL for each engine over the last so many seconds: what is there while it is, and the queries of its histograms by name.
#[must_use]
pub fn histograms(seconds: u64, selector: &str) -> Vec<(String, Vec<(String, String)>)> {
    let of = |n: &crate::forms::Names| {
        let buckets = |name: &str| {
            (
                format!("{name}_bucket"),
                format!("sum by (le) (increase({name}_bucket{{{selector}}}[{seconds}s]))"),
            )
        };
        let plain =
            |name: &str| (name.to_owned(), format!("sum(increase({name}{{{selector}}}[{seconds}s]))"));
        let mut queries = vec![buckets(&n.input), buckets(&n.output)];
        for name in [&n.input, &n.output] {
            queries.push(plain(&format!("{name}_sum")));
        }
        if let Some(name) = &n.seconds {
            queries.extend([plain(&format!("{name}_sum")), plain(&format!("{name}_count"))]);
        }
        queries.extend(n.prefix.iter().flatten().map(|p| plain(p)));
        if let Some(name) = &n.running {
            queries.push((name.clone(), format!("sum(avg_over_time({name}{{{selector}}}[{seconds}s]))")));
        }
        (format!("count({}_count{{{selector}}})", n.input), queries)
    };
    forms().metrics.iter().map(of).collect()
}

impl Grown {
    /// Takes a line of a page: its counters grew since the server started.
    pub(crate) fn line(&mut self, line: &str) -> bool {
        let Some((name, labels, value, _)) = sample(line) else { return false };
        let le = labels.iter().find(|(k, _)| k == "le").map(|(_, v)| v.as_str());
        self.add(name, le, value);
        true
    }

    fn add(&mut self, name: &str, le: Option<&str>, value: f64) {
        if !value.is_finite() || value < 0.0 || !known(name) {
            return;
        }
        match (name.strip_suffix("_bucket"), le.and_then(bound)) {
            (Some(of), Some(le)) => {
                if self.buckets.len() < MAX_BOUNDS * 64 {
                    *self.buckets.entry((of.to_owned(), le)).or_default() += value;
                }
            }
            (None, _) => *self.plain.entry(name.to_owned()).or_default() += value,
            (Some(_), None) => {}
        }
    }

    /// Takes an answer of Prometheus: of a range what grew in it, of an instant its value. `name` where the query took it away.
    pub(crate) fn answer(&mut self, answer: &Value, name: Option<&str>) -> bool {
        let Some(list) = answer.pointer("/data/result").and_then(Value::as_array) else { return false };
        for series in list {
            let labels = series.get("metric");
            let label = |key: &str| labels.and_then(|l| l.get(key)).and_then(Value::as_str);
            let Some(name) = label("__name__").or(name) else { continue };
            let number = |pair: &Value| -> Option<f64> { pair.get(1)?.as_str()?.parse().ok() };
            if let Some(value) = series.get("value").and_then(number) {
                self.add(name, label("le"), value);
            }
            if let Some(values) = series.get("values").and_then(Value::as_array) {
                let gauge = forms().metrics.iter().any(|n| n.running.as_deref() == Some(name));
                let points: Vec<f64> = values.iter().filter_map(number).collect();
                let value = if gauge {
                    points.iter().sum::<f64>() / points.len().max(1) as f64
                } else {
                    grown(&points)
                };
                self.add(name, label("le"), value);
                let time = |p: Option<&Value>| p.and_then(|p| p.get(0)).and_then(Value::as_f64);
                if let Some((from, to)) = time(values.first()).zip(time(values.last())) {
                    self.span = Some(self.span.unwrap_or(0.0).max(to - from));
                }
            }
        }
        true
    }

    /// Says over how many seconds the counters grew.
    pub(crate) const fn over(&mut self, seconds: f64) {
        self.span = Some(seconds);
    }

    /// The engine that tells most.
    pub(crate) fn histograms(&self) -> Option<Histograms> {
        let all = forms().metrics.iter().filter_map(|names| {
            let of = |name: &str| self.distribution(name);
            let (input, output) = (of(&names.input)?, of(&names.output)?);
            let plain = |name: &str| self.plain.get(name).copied();
            let seconds = names.seconds.as_ref().and_then(|name| {
                let (sum, count) = (plain(&format!("{name}_sum"))?, plain(&format!("{name}_count"))?);
                (count > 0.0).then(|| sum / count)
            });
            let prefix = names.prefix.as_ref().and_then(|[asked, hit]| {
                let (asked, hit) = (plain(asked)?, plain(hit)?);
                (asked > 0.0).then(|| (hit / asked).clamp(0.0, 1.0))
            });
            Some(Histograms {
                engine: names.of.clone(),
                requests: input.iter().map(|(_, n)| n).sum(),
                input,
                output,
                seconds,
                prefix_share: prefix,
                running: names.running.as_ref().and_then(|n| plain(n)),
                span: self.span,
            })
        });
        all.max_by(|a, b| a.requests.total_cmp(&b.requests))
    }

    /// Mean and number of each bucket: its middle, all moved so that the mean is that of the sum.
    fn distribution(&self, name: &str) -> Option<Vec<(f64, f64)>> {
        let mut alone = Buckets::new();
        let mut below = 0.0;
        let mut low = 0.0;
        let mut middles = Vec::new();
        let range = (name.to_owned(), 0)..=(name.to_owned(), u64::MAX);
        for ((_, le), count) in self.buckets.range(range) {
            let n = (count - below).max(0.0);
            below = below.max(*count);
            let high = if *le == u64::MAX { low * 1.5 } else { *le as f64 / 1000.0 };
            alone.insert(*le, n);
            // Lengths within a bucket lie lower rather than higher: the geometric middle.
            let middle = if low >= 1.0 { (low * high).sqrt() } else { high / 2.0 };
            if n > 0.0 {
                middles.push((middle.max(1.0), n));
            }
            low = high;
        }
        let count: f64 = middles.iter().map(|(_, n)| n).sum();
        if count <= 0.0 {
            return None;
        }
        let mean = middles.iter().map(|(m, n)| m * n).sum::<f64>() / count;
        // The sum is of all that were counted, so it tells the mean better than any middle.
        if let Some(sum) = self.plain.get(&format!("{name}_sum")).filter(|s| **s > 0.0) {
            let factor = (sum / count / mean).clamp(0.5, 2.0);
            middles.iter_mut().for_each(|(m, _)| *m = (*m * factor).max(1.0));
        }
        Some(middles)
    }
}

fn known(name: &str) -> bool {
    forms().metrics.iter().any(|n| {
        let own = [Some(&n.input), Some(&n.output), n.seconds.as_ref()];
        own.into_iter().flatten().any(|own| name.starts_with(own.as_str()))
            || n.prefix.iter().flatten().any(|p| p == name)
            || n.running.as_deref() == Some(name)
    })
}

fn bound(le: &str) -> Option<u64> {
    match le {
        "+Inf" | "Inf" | "inf" => Some(u64::MAX),
        le => le.parse::<f64>().ok().filter(|n| (0.0..1e12).contains(n)).map(|n| (n * 1000.0) as u64),
    }
}

/// What a counter grew by, over restarts.
fn grown(points: &[f64]) -> f64 {
    let step = |w: &[f64]| match w {
        [a, b] if b >= a => b - a,
        [_, b] => *b,
        _ => 0.0,
    };
    points.windows(2).map(step).sum()
}
