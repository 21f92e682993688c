//! What a rule is, and what is known of it after it was asked.

use super::Judged;
use crate::verdict::Class;
use crate::verdict::case::Case;

/// What kind of answer a rule gives; the order is that of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// A memory error or GPU fault that ended something.
    FirstInCause,
    /// Kubernetes or somebody else ended it.
    Outside,
    /// The way it ended names the cause.
    Signal,
    /// An error with which the server went on.
    Symptom,
    /// Another failure than memory.
    Failure,
    /// Something died, and nothing says why.
    Unexplained,
    /// Nothing ended, and memory is about to.
    Pressure,
    /// The server's life went on, or ended in order.
    Life,
    /// Nothing shows how it ended.
    Nothing,
}

impl Stage {
    /// All of them, in order.
    pub const ALL: [Self; 9] = [
        Self::FirstInCause,
        Self::Outside,
        Self::Signal,
        Self::Symptom,
        Self::Failure,
        Self::Unexplained,
        Self::Pressure,
        Self::Life,
        Self::Nothing,
    ];

    /// Stable id.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::FirstInCause => "first_in_cause",
            Self::Outside => "outside",
            Self::Signal => "signal",
            Self::Symptom => "symptom",
            Self::Failure => "failure",
            Self::Unexplained => "unexplained",
            Self::Pressure => "pressure",
            Self::Life => "life",
            Self::Nothing => "nothing",
        }
    }

    /// In words.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::FirstInCause => "the first memory error or GPU fault in causal order",
            Self::Outside => "an external end",
            Self::Signal => "an end that names its cause",
            Self::Symptom => "an error that the server survived",
            Self::Failure => "another failure",
            Self::Unexplained => "an unexplained end",
            Self::Pressure => "a server that lives at its limit",
            Self::Life => "a life that went on",
            Self::Nothing => "an end that nothing shows",
        }
    }
}

/// What a rule goes before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// Every rule of a later stage.
    Stage(Stage),
    /// One rule.
    Rule(&'static str),
}

/// That a rule goes before another where both hold, and because of what in the domain.
#[derive(Debug, Clone, Copy)]
pub struct Beats {
    /// What it goes before.
    pub over: Over,
    /// Because of what.
    pub because: &'static str,
}

impl Beats {
    pub(super) const fn stage(stage: Stage, because: &'static str) -> Self {
        Self { over: Over::Stage(stage), because }
    }

    pub(super) const fn rule(id: &'static str, because: &'static str) -> Self {
        Self { over: Over::Rule(id), because }
    }
}

/// One rule of the verdict.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Stable id, never reused.
    pub id: &'static str,
    /// Kind of answer.
    pub stage: Stage,
    /// Classes that it can decide for.
    pub classes: &'static [Class],
    /// When it holds.
    pub when: &'static str,
    /// What looks like it and is not.
    pub near_miss: &'static str,
    /// What it goes before.
    pub beats: &'static [Beats],
    /// Where the domain knowledge is from.
    pub source: &'static str,
    pub(super) judge: fn(&Case<'_>) -> Judged,
}

impl Rule {
    /// Why it goes before another rule that holds as well; `None` where nothing is said.
    #[must_use]
    pub fn goes_before(&self, other: &Self) -> Option<&'static str> {
        if self.stage == Stage::FirstInCause && other.stage == self.stage {
            return Some("its error came first in causal order");
        }
        let covers = |b: &&Beats| match b.over {
            Over::Stage(s) => s == other.stage,
            Over::Rule(id) => id == other.id,
        };
        self.beats.iter().find(covers).map(|b| b.because)
    }
}

/// How a rule went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ruling {
    /// It decided.
    Held,
    /// What it asks for is not there.
    NotMet(String),
    /// It holds, and this rule goes before it.
    LostTo(&'static str),
}

/// A rule that was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruled {
    /// Which.
    pub rule: &'static str,
    /// How it went.
    pub ruling: Ruling,
}
