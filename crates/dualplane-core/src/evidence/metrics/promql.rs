//! Answers of Prometheus' HTTP API: `/api/v1/query` (vector) and `/api/v1/query_range` (matrix), and the bare list that
//! `promtool query instant|range … -o json` prints.

use dualplane_base::order::Order as _;
use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::evidence::metrics::{MAX_OF_NAME, MAX_SAMPLES, Sample, at_ms};

/// What an answer holds.
#[derive(Debug, Default)]
pub(in crate::evidence) struct Read {
    pub(in crate::evidence) samples: Vec<Sample>,
    /// Samples beyond the bounds.
    pub(in crate::evidence) dropped: usize,
    /// Series without a name.
    pub(in crate::evidence) nameless: usize,
}

/// It is an answer with series. An answer of Loki has `streams`.
pub(in crate::evidence) fn is_answer(value: &Value) -> bool {
    let kind = value.pointer("/data/resultType").and_then(Value::as_str);
    kind.is_some_and(|k| matches!(k, "vector" | "matrix"))
        || value.as_array().is_some_and(|list| !list.is_empty() && list.iter().all(is_series))
}

fn is_series(value: &Value) -> bool {
    value.get("metric").is_some_and(Value::is_object)
        && (value.get("value").is_some_and(Value::is_array)
            || value.get("values").is_some_and(Value::is_array))
}

/// Reads the samples, in the order of the text.
pub(in crate::evidence) fn read(value: &Value, text: &str, file: &str) -> Read {
    let list = value.pointer("/data/result").unwrap_or(value);
    let mut out = Read::default();
    let mut names: HashMap<String, usize> = HashMap::new();
    let mut place = Place { text, at: 0, line: 1, missed: 0 };
    for series in list.as_array().into_iter().flatten() {
        let Some(metric) = series.get("metric").and_then(Value::as_object) else { continue };
        let pairs = series.get("values").and_then(Value::as_array);
        let pairs = pairs.into_iter().flatten().chain(series.get("value"));
        let Some(name) = metric.get("__name__").and_then(Value::as_str) else {
            out.nameless += 1;
            continue;
        };
        let mut labels: Vec<(String, String)> = metric
            .iter()
            .filter(|(k, _)| *k != "__name__")
            .filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned())))
            .collect();
        labels.order();
        for pair in pairs {
            let (Some(time), Some(shown)) =
                (pair.get(0).and_then(Value::as_f64), pair.get(1).and_then(Value::as_str))
            else {
                continue;
            };
            let Ok(value) = shown.parse::<f64>() else { continue };
            let line = place.of(shown);
            let of_name = names.entry(name.to_owned()).or_insert(0);
            *of_name += 1;
            if out.samples.len() >= MAX_SAMPLES || *of_name > MAX_OF_NAME {
                out.dropped += 1;
                continue;
            }
            out.samples.push(Sample {
                name: name.to_owned(),
                text: exposed(name, &labels, shown, time),
                labels: labels.clone(),
                value,
                stamp: Some(at_ms(time * 1000.0)),
                file: file.to_owned(),
                line,
            });
        }
    }
    out
}

/// The sample as Prometheus text.
fn exposed(name: &str, labels: &[(String, String)], value: &str, time: f64) -> String {
    let mut out = String::from(name);
    let mut open = '{';
    for (k, v) in labels {
        let v = v.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let _ = write!(out, "{open}{k}=\"{v}\"");
        open = ',';
    }
    if open == ',' {
        out.push('}');
    }
    let _ = write!(out, " {value} {time}");
    out
}

/// Finds values in the text one behind the other.
struct Place<'a> {
    text: &'a str,
    at: usize,
    line: u64,
    /// Values that were not found, each at the cost of the rest of the text.
    missed: usize,
}

/// A text that writes its digits as escapes is not searched for ever.
const MAX_MISSED: usize = 8;

impl Place<'_> {
    /// The line of the next `"value"`; where it is written otherwise, the line of the one before.
    fn of(&mut self, value: &str) -> u64 {
        let rest = self.text.get(self.at..).filter(|_| self.missed < MAX_MISSED);
        let Some(rest) = rest else { return self.line };
        let quoted = format!("\"{value}\"");
        if let Some(found) = rest.find(&quoted) {
            let end = found + quoted.len();
            self.line += rest.get(..end).map_or(0, |t| t.bytes().filter(|b| *b == b'\n').count()) as u64;
            self.at += end;
        } else {
            self.missed += 1;
        }
        self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Read {
        read(&serde_json::from_str(text).unwrap(), text, "x")
    }

    #[test]
    fn vectors_matrices_and_lists() {
        let matrix = "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[\n{\"metric\":{\"__name__\":\"a_b\",\"pod\":\"p\"},\n\"values\":[[1700000000,\"1\"],\n[1700000015.5,\"2\"]]},\n{\"metric\":{},\"values\":[[1,\"3\"]]}]}}";
        let r = of(matrix);
        assert_eq!((r.samples.len(), r.nameless), (2, 1));
        assert_eq!(r.samples[1].stamp.map(|s| s.show()).as_deref(), Some("2023-11-14T22:13:35.500Z"));
        assert_eq!((r.samples[0].line, r.samples[1].line), (3, 4));
        assert_eq!(r.samples[0].text, "a_b{pod=\"p\"} 1 1700000000");
        let r = of("[{\"metric\":{\"__name__\":\"up\"},\"value\":[1700000000.1,\"NaN\"]}]");
        assert!(r.samples[0].value.is_nan());
    }

    #[test]
    fn other_json_is_none() {
        for text in
            ["[]", "{}", "[1]", "{\"data\":{\"resultType\":\"streams\",\"result\":[]}}", "[{\"metric\":1}]"]
        {
            assert!(!is_answer(&serde_json::from_str(text).unwrap()), "{text}");
        }
    }
}
