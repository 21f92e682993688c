//! What a rule answers: what it decides, or why it does not hold.

use std::borrow::Cow;

use crate::facts::Hit;
use crate::verdict::candidates::Candidate;
use crate::verdict::{Cited, Class, Confidence, Decided, Phase, Step};

/// A rule's answer.
pub(in crate::verdict) type Judged = Result<Decided, Unmet>;

/// Why a rule does not decide.
#[derive(Debug)]
pub(in crate::verdict) enum Unmet {
    /// What it asks for is not there.
    NotMet(Cow<'static, str>),
    /// Its error is part of the chain, and that of another rule came first in cause.
    LostTo(&'static str),
}

pub(in crate::verdict) fn unmet(why: impl Into<Cow<'static, str>>) -> Unmet {
    Unmet::NotMet(why.into())
}

/// A verdict without a line as its trigger.
pub(in crate::verdict) fn decided(
    class: Class,
    phase: Phase,
    confidence: Confidence,
    summary: impl Into<String>,
    supports: Vec<Cited>,
) -> Decided {
    let summary = summary.into();
    Decided {
        by: "",
        class,
        phase,
        confidence,
        trigger: None,
        sequence: vec![Step { class, phase, what: summary.clone(), trigger: None, follows: true }],
        summary,
        supports,
        against: Vec::new(),
    }
}

/// A verdict whose steps are those of the chain.
pub(in crate::verdict) fn from_chain(first: &Candidate, rest: &[Candidate]) -> Decided {
    let step = |c: &Candidate| Step {
        class: c.class,
        phase: c.phase,
        what: c.what.clone(),
        trigger: c.trigger(),
        follows: !c.untied,
    };
    Decided {
        by: "",
        class: first.class,
        phase: first.phase,
        confidence: first.confidence,
        trigger: first.trigger(),
        summary: first.what.clone(),
        sequence: std::iter::once(first).chain(rest).map(step).collect(),
        supports: first.supports.clone(),
        against: first.against.clone(),
    }
}

/// The line itself as evidence.
pub(in crate::verdict) fn quoted(hit: &Hit) -> Cited {
    Cited::of(crate::text::shorten(hit.text.trim(), 240), hit)
}
