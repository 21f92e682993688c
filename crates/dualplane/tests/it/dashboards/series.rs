//! Recorded series: promtool's notation as samples, and samples as a page that Prometheus takes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::harness::root;
use crate::recorded_load::Line;

/// 2024-06-18T14:00:00Z: the first sample. Past, so that a server takes it, and on the edge of a block.
pub(super) const START: i64 = 1_718_719_200;
/// Samples of each series, one a minute.
pub(super) const MINUTES: i64 = 480;

/// `testdata/dashboards/evening.yaml` as series with their values.
pub(super) fn evening() -> Vec<Line> {
    let text = std::fs::read_to_string(root().join("testdata/dashboards/evening.yaml")).unwrap();
    let doc: Value = serde_saphyr::from_str(&text).unwrap();
    let one = |l: &Value| (l["series"].as_str().unwrap().to_owned(), expand(l["values"].as_str().unwrap()));
    doc["input_series"].as_array().unwrap().iter().map(one).collect()
}

/// Series of one value a minute as a page in the format of OpenMetrics.
pub(super) fn open_metrics(lines: &[Line]) -> String {
    // All series of a metric stand together.
    let mut metrics: BTreeMap<&str, Vec<&Line>> = BTreeMap::new();
    for line in lines {
        let name = line.0.split('{').next().unwrap();
        let all = metrics.entry(name).or_default();
        assert!(all.iter().all(|(s, _)| *s != line.0), "{} is twice", line.0);
        all.push(line);
    }
    let mut out = String::new();
    for (series, samples) in metrics.into_values().flatten() {
        assert_eq!(samples.len(), MINUTES as usize, "{series}");
        for (minute, value) in (0..).zip(samples) {
            if let Some(value) = value {
                let _ = writeln!(out, "{series} {value} {}", START + minute * 60);
            }
        }
    }
    out + "# EOF\n"
}

/// `a+bxn` is a, a+b, … a+n·b; `axn` is a, n+1 times; `_xn` is missing n times.
pub(crate) fn expand(values: &str) -> Vec<Option<f64>> {
    let mut out = Vec::new();
    for piece in values.split_whitespace() {
        let (head, times) = piece.split_once('x').map_or((piece, 0), |(h, n)| (h, n.parse::<u32>().unwrap()));
        if head == "_" {
            out.extend((0..times.max(1)).map(|_| None));
            continue;
        }
        // The sign of the first number is not the slope's.
        let at =
            head.char_indices().skip(1).find(|(_, c)| ['+', '-'].contains(c)).map_or(head.len(), |(i, _)| i);
        let (first, slope) = head.split_at(at);
        let first: f64 = first.parse().unwrap();
        let slope: f64 = if slope.is_empty() { 0.0 } else { slope.parse().unwrap() };
        out.extend((0..=times).map(|n| Some(first + slope * f64::from(n))));
    }
    out
}

#[test]
fn the_notation_is_that_of_promtool() {
    let all = |text: &str| {
        expand(text).iter().map(|v| v.map_or("_".into(), |v| v.to_string())).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(all("1+2x2 -3-1x1 5x1 _x2 7"), "1 3 5 -3 -4 5 5 _ _ 7");
}
