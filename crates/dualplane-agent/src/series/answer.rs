//! An answer of `/api/v1/query_range`, one point a line: a report cites the line.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::Pairs;
use super::thin::Point;

/// Series of one file.
#[derive(Debug, Default)]
pub(super) struct Answer {
    series: String,
}

impl Answer {
    /// Adds a series; one without points is none.
    pub(super) fn put(&mut self, name: &str, labels: &Pairs, points: &[Point]) {
        let mut finite = points.iter().filter(|(_, v)| v.is_finite()).peekable();
        if finite.peek().is_none() {
            return;
        }
        let mut metric = Map::new();
        metric.insert("__name__".into(), name.into());
        for (key, value) in labels.iter().filter(|(_, v)| !v.is_empty()) {
            metric.insert((*key).into(), value.as_str().into());
        }
        if !self.series.is_empty() {
            self.series.push_str(",\n");
        }
        let _ = write!(self.series, "{{\"metric\":{},\"values\":[", Value::Object(metric));
        let mut comma = "\n";
        for (ms, value) in finite {
            // Seconds with three digits; before 1970 is nothing.
            let (s, ms) = (ms.div_euclid(1000), ms.rem_euclid(1000));
            let _ = write!(self.series, "{comma}[{s}.{ms:03},\"{value}\"]");
            comma = ",\n";
        }
        self.series.push_str("]}");
    }

    /// The file; `None` without a series.
    pub(super) fn finish(self) -> Option<Vec<u8>> {
        if self.series.is_empty() {
            return None;
        }
        let head = "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[\n";
        Some(format!("{head}{}\n]}}}}\n", self.series).into_bytes())
    }
}
