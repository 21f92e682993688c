//! Prometheus text exposition: one sample per line, with its place so that a verdict can quote it.

use std::collections::HashMap;

use serde::Serialize;

/// One sample.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sample {
    /// Metric name.
    pub name: String,
    /// Labels in the order of the text.
    pub labels: Vec<(String, String)>,
    /// Value.
    pub value: f64,
    /// File.
    pub file: String,
    /// Line, from 1.
    pub line: u64,
    /// The line itself.
    pub text: String,
}

impl Sample {
    /// The value of a label.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }
}

/// At most this many samples of one file are kept: a whole node's exposition has some tens of thousands.
const MAX_SAMPLES: usize = 200_000;
/// Of one name, so that a flood of one does not hide another that comes later.
const MAX_OF_NAME: usize = 50_000;

/// Reads the samples of a text and counts those beyond the bounds; lines that are none are skipped.
#[must_use]
pub fn parse(text: &str, file: &str) -> (Vec<Sample>, usize) {
    let mut out = Vec::new();
    let mut dropped = 0;
    let mut names: HashMap<&str, usize> = HashMap::new();
    for (i, line) in text.lines().enumerate() {
        let Some((name, labels, value)) = sample(line) else { continue };
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
            file: file.to_owned(),
            line: i as u64 + 1,
            text: line.to_owned(),
        });
    }
    (out, dropped)
}

type Parsed<'a> = (&'a str, Vec<(String, String)>, f64);

fn sample(line: &str) -> Option<Parsed<'_>> {
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
    let value: f64 = rest.split_whitespace().next()?.parse().ok()?;
    Some((name, labels, value))
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
    fn samples() {
        let text = "# HELP x y\nvllm:kv_cache_usage_perc{model_name=\"a,}b\\\"c\"} 0.9977\nplain 3e9 1700000000\nbroken{a=\"b 1\n";
        let (got, dropped) = parse(text, "m");
        assert_eq!(dropped, 0);
        assert_eq!(got.len(), 2);
        assert_eq!(got[0].label("model_name"), Some("a,}b\"c"));
        assert_eq!((got[0].line, got[1].value), (2, 3e9));
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
