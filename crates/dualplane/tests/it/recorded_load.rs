//! `testdata/alerts/recorded.yaml`: a stretch of real load, and hours that are made of it.

use serde_json::Value;

use crate::dashboards::series::expand;
use crate::harness::root;

/// A name with labels, and its values, one each step.
pub(crate) type Line = (String, Vec<Option<f64>>);

/// The stretch.
pub(crate) struct Recorded {
    /// Seconds between two values.
    pub(crate) step: usize,
    lines: Vec<Line>,
    /// Values before the servers were ready.
    load: usize,
}

/// Names that only grow, as they are written for Prometheus.
fn is_counter(series: &str) -> bool {
    let name = series.split('{').next().unwrap();
    ["_total", "_count", "_sum", "_bucket"].iter().any(|end| name.ends_with(end))
}

impl Recorded {
    pub(crate) fn read() -> Self {
        let text = std::fs::read_to_string(root().join("testdata/alerts/recorded.yaml")).unwrap();
        let doc: Value = serde_saphyr::from_str(&text).unwrap();
        let number = |key: &str| usize::try_from(doc[key].as_u64().unwrap()).unwrap();
        let lines: Vec<Line> = doc["input_series"]
            .as_array()
            .unwrap()
            .iter()
            .map(|l| (l["series"].as_str().unwrap().to_owned(), expand(l["values"].as_str().unwrap())))
            .collect();
        let values = number("values");
        assert!(lines.iter().all(|(name, all)| all.len() == values || panic!("{name}: {}", all.len())));
        Self { step: number("step_seconds"), lines, load: number("serving_from") }
    }

    /// So many values of each: the load of the weights once, and then the stretch again and again, every `nth` value. A counter
    /// goes on where it stood.
    pub(crate) fn hours(&self, values: usize, nth: usize) -> Vec<Line> {
        let one = |(name, all): &Line| {
            let (head, rest) = all.split_at(self.load);
            // What comes late is there from then on; what counts begins where the stretch began.
            let known: Vec<f64> = rest.iter().flatten().copied().collect();
            let grows = match (known.first(), known.last()) {
                (Some(first), Some(last)) if is_counter(name) => (last - first).max(0.0),
                _ => 0.0,
            };
            let mut out: Vec<Option<f64>> = head.iter().step_by(nth).copied().collect();
            let mut turn = 0.0;
            while out.len() < values {
                out.extend(rest.iter().step_by(nth).map(|v| v.map(|v| v + turn * grows)));
                turn += 1.0;
            }
            out.truncate(values);
            (name.clone(), out)
        };
        self.lines.iter().map(one).collect()
    }
}

/// As promtool reads it.
pub(crate) fn notation(values: &[Option<f64>]) -> String {
    let mut out = String::new();
    for run in values.chunk_by(|a, b| a == b) {
        let n = run.len();
        out += &match run.first().copied().flatten() {
            None => format!("_x{n} "),
            Some(v) if n == 1 => format!("{v} "),
            Some(v) => format!("{v}x{} ", n - 1),
        };
    }
    out
}

#[test]
fn hours_go_on_where_a_stretch_ends() {
    let line = |name: &str, all: &[f64]| (name.to_owned(), all.iter().map(|v| Some(*v)).collect());
    let r = Recorded {
        step: 30,
        load: 1,
        lines: vec![line("a_total{}", &[0.0, 5.0, 7.0, 9.0]), line("b{}", &[1.0, 2.0, 3.0, 4.0])],
    };
    let all = r.hours(8, 1);
    assert_eq!(notation(&all[0].1), "0 5 7 9x1 11 13x1 ");
    assert_eq!(notation(&all[1].1), "1 2 3 4 2 3 4 2 ");
    assert_eq!(notation(&[None, None, Some(1.5)]), "_x2 1.5 ");
}
