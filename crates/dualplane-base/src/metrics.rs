//! Prometheus text exposition: one sample per line, with its place so that a verdict can quote it.

use std::collections::HashMap;

use serde::Serialize;

use crate::text::printable;
use crate::time::Stamp;

/// One sample.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sample {
    /// Metric name.
    pub name: String,
    /// Labels in the order of the text.
    pub labels: Vec<(String, String)>,
    /// Value.
    pub value: f64,
    /// When it was taken, where the source tells.
    pub stamp: Option<Stamp>,
    /// File.
    pub file: String,
    /// Line, from 1.
    pub line: u64,
    /// The line itself. An answer of the HTTP API has no line for a sample; it is written as one.
    pub text: String,
}

impl Sample {
    /// The value of a label.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// What the sample is about: `pod`, `namespace`, `container`.
    ///
    /// Prometheus without `honor_labels` gives these to the exporter's own pod and renames the exporter's to `exported_…`.
    #[must_use]
    pub fn about(&self, key: &str) -> Option<&str> {
        self.label(&format!("exported_{key}")).or_else(|| self.label(key)).filter(|v| !v.is_empty())
    }
}

/// Writes a label as pages for Prometheus have it. Controls become visible and the value is cut at 256 characters (a pod's
/// name has 253 at most), so that a name cannot break the line, fill the page or reach a terminal that shows it.
pub fn push_label(out: &mut String, key: &str, value: &str) {
    out.push_str(key);
    out.push_str("=\"");
    for c in printable(value).chars().take(256) {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// The last sample before an end, where samples and end have times; else the first. Behind the end it is of the next life.
#[must_use]
pub fn last_before<'a>(
    samples: impl Iterator<Item = &'a Sample> + Clone,
    end: Option<Stamp>,
) -> Option<&'a Sample> {
    let in_time = |s: &&Sample| s.stamp.zip(end).and_then(|(s, e)| s.reaches(e)) != Some(false);
    let mut best: Option<&Sample> = None;
    for s in samples.clone().filter(in_time) {
        let later =
            |b: &Sample| b.stamp.zip(s.stamp).and_then(|(b, s)| b.ms_until(s)).is_some_and(|ms| ms > 0);
        if best.is_none_or(later) {
            best = Some(s);
        }
    }
    best.or_else(|| samples.clone().next())
}

/// Samples by series (the same name and labels), series and samples in the order of the text.
#[must_use]
pub fn by_series<'a>(samples: impl Iterator<Item = &'a Sample>) -> Vec<Vec<&'a Sample>> {
    type Key<'a> = (&'a str, &'a [(String, String)]);
    let mut at: HashMap<Key<'_>, usize> = HashMap::new();
    let mut out: Vec<Vec<&Sample>> = Vec::new();
    for s in samples {
        let i = *at.entry((s.name.as_str(), s.labels.as_slice())).or_insert(out.len());
        match out.get_mut(i) {
            Some(series) => series.push(s),
            None => out.push(vec![s]),
        }
    }
    out
}

/// At most this many samples of one file are kept: a whole node's exposition has some tens of thousands.
pub const MAX_SAMPLES: usize = 200_000;
/// Of one name, so that a flood of one does not hide another that comes later.
pub const MAX_OF_NAME: usize = 50_000;

/// Reads the samples of a text and counts those beyond the bounds; lines that are none are skipped.
#[must_use]
pub fn parse(text: &str, file: &str) -> (Vec<Sample>, usize) {
    let mut out = Vec::new();
    let mut dropped = 0;
    let mut names: HashMap<&str, usize> = HashMap::new();
    for (i, line) in text.lines().enumerate() {
        let Some((name, labels, value, stamp)) = sample(line) else { continue };
        let of_name = names.entry(name).or_insert(0);
        *of_name += 1;
        if out.len() >= MAX_SAMPLES || *of_name > MAX_OF_NAME {
            dropped += 1;
            continue;
        }
        out.push(Sample {
            name: name.to_owned(),
            labels,
            value,
            stamp,
            file: file.to_owned(),
            line: i as u64 + 1,
            text: line.to_owned(),
        });
    }
    (out, dropped)
}

/// Name, labels, value, time.
pub type Parsed<'a> = (&'a str, Vec<(String, String)>, f64, Option<Stamp>);

/// One line: name, labels, value, time. `None` for a comment and for what is no sample.
#[must_use]
pub fn sample(line: &str) -> Option<Parsed<'_>> {
    let line = line.trim();
    if line.starts_with('#') {
        return None;
    }
    let end = line.find(['{', ' ', '\t'])?;
    let (name, rest) = line.split_at_checked(end)?;
    if name.is_empty() {
        return None;
    }
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(body) => labels(body)?,
        None => (Vec::new(), rest),
    };
    let mut words = rest.split_whitespace();
    let value: f64 = words.next()?.parse().ok()?;
    let stamp = words.next().and_then(time_of);
    Some((name, labels, value, stamp))
}

/// Prometheus text has milliseconds, OpenMetrics seconds with a fraction or without. 10^11 tells them apart: as
/// milliseconds it lies in 1973, as seconds in the year 5138.
fn time_of(word: &str) -> Option<Stamp> {
    const LEAST_MS: f64 = 1e11;
    let number: f64 = word.parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0)?;
    Some(at_ms(if number < LEAST_MS { number * 1000.0 } else { number }))
}

/// An instant by milliseconds since 1970.
#[must_use]
pub fn at_ms(ms: f64) -> Stamp {
    Stamp::Wall { ms: ms.round() as i64, zoned: true, year: true }
}

/// Label pairs up to the closing brace; quoted values may hold braces, commas and escapes.
fn labels(mut body: &str) -> Option<(Vec<(String, String)>, &str)> {
    let mut out = Vec::new();
    loop {
        body = body.trim_start_matches([',', ' ']);
        if let Some(rest) = body.strip_prefix('}') {
            return Some((out, rest));
        }
        let (key, rest) = body.split_once('=')?;
        let rest = rest.trim_start().strip_prefix('"')?;
        let mut value = String::new();
        let mut chars = rest.char_indices();
        let close = loop {
            match chars.next()? {
                (i, '"') => break i,
                (_, '\\') => match chars.next()?.1 {
                    'n' => value.push('\n'),
                    c => value.push(c),
                },
                (_, c) => value.push(c),
            }
        };
        out.push((key.trim().to_owned(), value));
        body = rest.get(close + 1..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_before_an_end() {
        let at = |ms: f64, value: f64| Sample {
            name: "m".into(),
            labels: Vec::new(),
            value,
            stamp: Some(at_ms(ms)),
            file: String::new(),
            line: 1,
            text: String::new(),
        };
        let all = [at(1e12, 0.0), at(1e12 + 9_000.0, 1.0), at(1e12 + 60_000.0, 0.2)];
        let value = |end| last_before(all.iter(), end).map(|s| s.value);
        assert_eq!(value(Some(at_ms(1e12 + 8_500.0))), Some(1.0), "a second is rounding");
        assert_eq!(value(Some(at_ms(1e12 + 5_000.0))), Some(0.0));
        assert_eq!(value(None), Some(0.2));
        assert_eq!(value(Some(at_ms(1e12 - 9_000.0))), Some(0.0), "none is before it: the first, as ever");
        assert_eq!(last_before([].iter(), None), None);
    }

    #[test]
    fn samples() {
        let text = "# HELP x y\nvllm:kv_cache_usage_perc{model_name=\"a,}b\\\"c\"} 0.9977\nplain 3e9 1700000000\nbroken{a=\"b 1\n";
        let (got, dropped) = parse(text, "m");
        assert_eq!(dropped, 0);
        assert_eq!(got.len(), 2);
        assert_eq!(got[0].label("model_name"), Some("a,}b\"c"));
        assert_eq!((got[0].line, got[1].value), (2, 3e9));
        assert_eq!(
            (got[0].stamp, got[1].stamp.map(Stamp::show).as_deref()),
            (None, Some("2023-11-14T22:13:20Z"))
        );
        let (ms, _) = parse("a_b 1 1700000000000\na_b 1 1700000000.250 # {x=\"y\"} 1\n", "m");
        let shown: Vec<_> = ms.iter().filter_map(|s| s.stamp.map(Stamp::show)).collect();
        assert_eq!(shown, ["2023-11-14T22:13:20Z", "2023-11-14T22:13:20.250Z"]);
    }

    #[test]
    fn a_flood_of_one_name_does_not_hide_another() {
        let mut text = "container_memory_working_set_bytes{pod=\"p\"} 1\n".repeat(MAX_SAMPLES + 1);
        text.push_str("vllm:kv_cache_usage_perc 0.99\n");
        let (got, dropped) = parse(&text, "m");
        assert_eq!(got.last().map(|s| s.name.as_str()), Some("vllm:kv_cache_usage_perc"));
        assert_eq!((got.len(), dropped), (MAX_OF_NAME + 1, MAX_SAMPLES + 1 - MAX_OF_NAME));
    }
}
