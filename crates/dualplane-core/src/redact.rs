//! Masks secrets and what users wrote in lines that a report quotes. The rules are data: `knowledge/redaction.toml`.

use std::borrow::Cow;
use std::sync::OnceLock;

use regex::Regex;
use serde::Deserialize;

use crate::knowledge::{Knowledge, Mark};
use crate::report::Report;
use crate::verdict::{Cause, Cited, Trigger};

/// One rule.
#[derive(Debug, Deserialize)]
pub struct Redaction {
    /// Stable id.
    pub id: String,
    /// Any of these must stand in the text.
    pub literals: Vec<String>,
    /// Its group `secret` is masked.
    pub pattern: String,
    /// A value that matches this is no secret (a number, `None`).
    #[serde(default)]
    pub unless_value: Option<String>,
    #[serde(skip)]
    regex: OnceLock<Option<(Regex, Option<Regex>)>>,
}

impl Redaction {
    fn regex(&self) -> Option<&(Regex, Option<Regex>)> {
        self.regex
            .get_or_init(|| {
                let unless = match &self.unless_value {
                    Some(p) => Some(Regex::new(p).ok()?),
                    None => None,
                };
                Some((Regex::new(&self.pattern).ok()?, unless))
            })
            .as_ref()
    }

    /// The text with this rule's secrets masked.
    fn mask<'t>(&self, text: Cow<'t, str>) -> Cow<'t, str> {
        if !self.literals.iter().any(|l| text.contains(l.as_str())) {
            return text;
        }
        let Some((regex, unless)) = self.regex() else { return text };
        let mut out = String::new();
        let mut from = 0;
        for groups in regex.captures_iter(&text) {
            let Some(secret) = groups.name("secret") else { continue };
            if unless.as_ref().is_some_and(|u| u.is_match(secret.as_str())) {
                continue;
            }
            out.push_str(text.get(from..secret.start()).unwrap_or_default());
            out.push_str("[redacted:");
            out.push_str(&self.id);
            out.push(']');
            from = secret.end();
        }
        if from == 0 {
            return text;
        }
        out.push_str(text.get(from..).unwrap_or_default());
        Cow::Owned(out)
    }
}

/// A line with secrets and user text masked.
#[must_use]
pub fn line<'t>(text: &'t str, knowledge: &Knowledge) -> Cow<'t, str> {
    let mut text = Cow::Borrowed(text);
    let user = knowledge
        .matches(&text, |_| false)
        .iter()
        .filter(|m| knowledge.signature(m.id).is_some_and(|s| s.mark == Mark::UserText))
        .map(|m| m.end)
        .min();
    if let Some(head) = user.and_then(|end| text.get(..end)).filter(|h| h.len() < text.len()) {
        text = Cow::Owned(format!("{head}[redacted:user_text]"));
    }
    for rule in knowledge.redactions() {
        text = rule.mask(text);
    }
    text
}

/// Masks all quoted lines of a report in place.
pub fn report(report: &mut Report, knowledge: &Knowledge) {
    let mask = |text: &mut String| {
        if let Cow::Owned(masked) = line(text, knowledge) {
            *text = masked;
        }
    };
    let v = &mut report.verdict;
    let trigger = |t: &mut Option<Trigger>| {
        if let Some(t) = t {
            mask(&mut t.text);
        }
    };
    let cites = |c: &mut Vec<Cited>| c.iter_mut().for_each(|c| mask(&mut c.text));
    trigger(&mut v.trigger);
    mask(&mut v.summary);
    for s in &mut v.sequence {
        mask(&mut s.what);
        trigger(&mut s.trigger);
    }
    for c in &mut v.cascade {
        mask(&mut c.text);
    }
    for Cause { title, supports, against, .. } in &mut v.causes {
        mask(title);
        cites(supports);
        cites(against);
    }
    for a in &mut report.actions {
        mask(&mut a.title);
        a.arithmetic.iter_mut().for_each(mask);
    }
}

/// Placeholder until the branch lands.
#[derive(Debug)]
pub struct Redactor<'k> {
    knowledge: &'k Knowledge,
    counts: std::collections::BTreeMap<String, u64>,
}

impl<'k> Redactor<'k> {
    /// x
    #[must_use]
    pub fn new(knowledge: &'k Knowledge) -> Self {
        Self { knowledge, counts: std::collections::BTreeMap::new() }
    }
    /// x
    pub fn text<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        let _ = self.knowledge;
        Cow::Borrowed(text)
    }
    /// x
    pub fn json(&mut self, _value: &mut serde_json::Value) {}
    /// x
    #[must_use]
    pub fn counts(&self) -> &std::collections::BTreeMap<String, u64> {
        &self.counts
    }
}
