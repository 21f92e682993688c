//! Series as Prometheus' HTTP API answers them, and as `promtool query range -o json` prints them.

use dualplane_base::order::Order as _;
use std::collections::BTreeMap;

use serde_json::Value;

/// More points of one answer than a store gives: 11,000 of each of a thousand series.
const MAX_POINTS: usize = 11_000_000;

/// A series.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name of the metric.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Time in milliseconds since 1970 and value, by time. Values that are no numbers are left out.
    pub points: Vec<(i64, f64)>,
}

impl Series {
    /// A label, where it is there and not empty. An exporter's own labels stand under `exported_…` where Prometheus kept its
    /// own.
    #[must_use]
    pub fn label(&self, name: &str) -> Option<&str> {
        let of = |name: &str| self.labels.get(name).map(String::as_str).filter(|v| !v.is_empty());
        of(&format!("exported_{name}")).or_else(|| of(name))
    }
}

/// The series of an answer; none where it is no answer.
#[must_use]
pub fn read(answer: &Value) -> Vec<Series> {
    let list = answer.pointer("/data/result").unwrap_or(answer);
    let mut left = MAX_POINTS;
    let mut out = Vec::new();
    for of in list.as_array().into_iter().flatten() {
        let Some(metric) = of.get("metric").and_then(Value::as_object) else { continue };
        let Some(name) = metric.get("__name__").and_then(Value::as_str) else { continue };
        let labels = metric
            .iter()
            .filter(|(k, _)| *k != "__name__")
            .filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned())))
            .collect();
        let pairs = of.get("values").and_then(Value::as_array).into_iter().flatten().chain(of.get("value"));
        let mut points: Vec<(i64, f64)> = pairs.filter_map(point).take(left).collect();
        left -= points.len();
        points.order_by_key(|(at, _)| *at);
        points.dedup_by_key(|(at, _)| *at);
        out.push(Series { name: name.to_owned(), labels, points });
    }
    out
}

fn point(pair: &Value) -> Option<(i64, f64)> {
    let at = pair.get(0)?.as_f64()? * 1000.0;
    let value: f64 = pair.get(1)?.as_str()?.parse().ok()?;
    (at.is_finite() && value.is_finite()).then_some((at as i64, value))
}

/// Answers for one span after another, put together: a store gives 11,000 points of a series at once.
#[must_use]
pub fn joined(answers: impl IntoIterator<Item = Vec<Series>>) -> Vec<Series> {
    type Key = (String, BTreeMap<String, String>);
    let mut all: BTreeMap<Key, Vec<(i64, f64)>> = BTreeMap::new();
    for s in answers.into_iter().flatten() {
        all.entry((s.name, s.labels)).or_default().extend(s.points);
    }
    let one = |((name, labels), mut points): (Key, Vec<(i64, f64)>)| {
        points.order_by_key(|(at, _)| *at);
        points.dedup_by_key(|(at, _)| *at);
        Series { name, labels, points }
    };
    all.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answers_are_read_joined_and_bounded_by_what_they_hold() {
        let part = |from: u64| {
            json!({"status": "success", "data": {"resultType": "matrix", "result": [
                {"metric": {"__name__": "m", "pod": "a", "exported_pod": "b"},
                 "values": [[from, "1"], [from + 60, "NaN"], [from + 30, "2.5"], [from + 30, "2.5"]]},
                {"metric": {"pod": "a"}, "values": [[from, "1"]]},
            ]}})
        };
        let all = joined([read(&part(600)), read(&part(0)), read(&part(600)), read(&json!("nothing"))]);
        assert_eq!(all.len(), 1);
        let at: Vec<i64> = all[0].points.iter().map(|(at, _)| at / 1000).collect();
        assert_eq!((at, all[0].label("pod")), (vec![0, 30, 600, 630], Some("b")));
    }
}
