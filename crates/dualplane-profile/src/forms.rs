//! Lines of engines that tell of requests: `knowledge/requests.toml`.

use std::sync::OnceLock;

use aho_corasick::AhoCorasick;
use regex::Regex;
use serde::Deserialize;

use crate::tally::{Seen, mark};

/// What a line of a form is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum What {
    /// All of a request.
    Request,
    /// A part of one; the last one ends it.
    Part,
    /// The last part.
    Last,
    /// What the server does at this time.
    Stats,
    /// A request came; of its length nothing is said.
    Arrival,
}

/// A form of lines.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Form {
    /// Which engine or program prints it.
    #[cfg_attr(not(test), allow(dead_code))]
    pub(crate) of: String,
    pub(crate) what: What,
    /// A part of the line that all lines of it have.
    pub(crate) literal: String,
    pub(crate) pattern: String,
    /// Lines of it, and what they tell.
    #[cfg_attr(not(test), allow(dead_code))]
    #[serde(default)]
    pub(crate) examples: Vec<Example>,
    /// Where it was read.
    #[cfg_attr(not(test), allow(dead_code))]
    pub(crate) source: String,
}

/// A line and what it tells.
#[cfg_attr(not(test), allow(dead_code))]
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Example {
    pub(crate) line: String,
    #[serde(default)]
    pub(crate) input: Option<u64>,
    #[serde(default)]
    pub(crate) output: Option<u64>,
    #[serde(default)]
    pub(crate) cached: Option<u64>,
    #[serde(default)]
    pub(crate) seconds: Option<f64>,
    #[serde(default)]
    pub(crate) running: Option<f64>,
    #[serde(default)]
    pub(crate) hit_percent: Option<f64>,
    #[serde(default)]
    pub(crate) cancelled: bool,
}

/// Names of an engine's histograms.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Names {
    pub(crate) of: String,
    pub(crate) input: String,
    pub(crate) output: String,
    /// Of whole requests, in seconds.
    #[serde(default)]
    pub(crate) seconds: Option<String>,
    /// Counters of tokens of prompts, all of them and those that were cached.
    #[serde(default)]
    pub(crate) prefix: Option<[String; 2]>,
    #[serde(default)]
    pub(crate) running: Option<String>,
    #[cfg_attr(not(test), allow(dead_code))]
    pub(crate) source: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    form: Vec<Form>,
    metrics: Vec<Names>,
}

pub(crate) struct Forms {
    pub(crate) all: Vec<Form>,
    pub(crate) metrics: Vec<Names>,
    patterns: Vec<Option<Regex>>,
    literals: Option<AhoCorasick>,
}

/// What a line of a form told.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Told {
    pub(crate) seen: Seen,
    /// A number for the request that it is of.
    pub(crate) id: Option<u64>,
    pub(crate) running: Option<f64>,
    pub(crate) hit_percent: Option<f64>,
    /// Tokens of prompts, and of these those that were cached.
    pub(crate) prefill: Option<(u64, u64)>,
}

pub(crate) fn forms() -> &'static Forms {
    static ALL: OnceLock<Forms> = OnceLock::new();
    ALL.get_or_init(|| {
        let text = include_str!(concat!(env!("OUT_DIR"), "/requests.json"));
        // Tests read the file and compile all patterns: without it, lines are read by their keys alone.
        let file: File = serde_json::from_str(text).unwrap_or(File { form: Vec::new(), metrics: Vec::new() });
        let patterns = file.form.iter().map(|f| Regex::new(&f.pattern).ok()).collect();
        let literals = AhoCorasick::new(file.form.iter().map(|f| f.literal.as_bytes())).ok();
        Forms { all: file.form, metrics: file.metrics, patterns, literals }
    })
}

impl Forms {
    /// The form of a line, and what it tells.
    pub(crate) fn read(&self, line: &[u8]) -> Option<(What, Told)> {
        let literals = self.literals.as_ref()?;
        // The first form in the file whose literal is there and whose pattern holds.
        let mut near: Vec<usize> =
            literals.find_overlapping_iter(line).map(|m| m.pattern().as_usize()).take(64).collect();
        near.sort_unstable();
        near.dedup();
        if near.is_empty() {
            return None;
        }
        let text = String::from_utf8_lossy(line);
        near.into_iter().find_map(|i| {
            let (form, pattern) = (self.all.get(i)?, self.patterns.get(i)?.as_ref()?);
            Some((form.what, told(pattern, &text)?))
        })
    }
}

fn told(pattern: &Regex, line: &str) -> Option<Told> {
    let found = pattern.captures(line)?;
    let number =
        |name: &str| found.name(name)?.as_str().parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
    let tokens = |name: &str| number(name).map(|n| n as u64);
    // A list of token ids: as many as there are commas, and one.
    let listed = |name: &str| {
        let list = found.name(name)?.as_str();
        if list.trim().is_empty() { Some(0) } else { Some(list.matches(',').count() as u64 + 1) }
    };
    let mut seen = Seen {
        input: tokens("input").or_else(|| listed("input_ids")),
        output: tokens("output").or_else(|| listed("output_ids")),
        cached: tokens("cached"),
        seconds: number("seconds").or_else(|| number("ms").map(|ms| ms / 1000.0)),
        most_output: tokens("most_output"),
        cancelled: found.name("cancelled").is_some(),
        failed: number("status").is_some_and(|s| s >= 400.0 && s != 499.0),
        ..Seen::default()
    };
    seen.cancelled |= number("status") == Some(499.0);
    // Time of all tokens over time of one.
    if let (None, Some(all), Some(one)) = (seen.output, number("all_s"), number("each_ms")) {
        seen.output = (one > 0.0).then(|| (all * 1000.0 / one).round() as u64);
    }
    let prefill = tokens("new_tokens").zip(tokens("cached_part")).map(|(new, cached)| (new + cached, cached));
    Some(Told {
        seen,
        id: found.name("id").map(|id| mark(id.as_str().as_bytes())),
        running: number("running"),
        hit_percent: number("hit_percent"),
        prefill,
    })
}
