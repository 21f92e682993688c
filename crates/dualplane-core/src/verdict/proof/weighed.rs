//! How a class was weighed that is not the verdict: what `--why-not` tells.

use crate::knowledge::Mark;
use crate::verdict::Class;

/// What speaks against a class, or would decide for it.
#[derive(Debug, Clone, PartialEq)]
pub enum Weighed {
    /// It is the verdict.
    IsVerdict(Class),
    /// It happened, and this class came first.
    CameLater {
        /// Class that came first.
        first: Class,
        /// What happened, as the step tells it.
        what: String,
    },
    /// What decides for this class.
    DecidedBy(Class),
    /// No signature of it matches.
    NoSignature {
        /// Signatures.
        signatures: usize,
        /// In so many lines.
        lines: u64,
        /// Of so many logs.
        logs: usize,
    },
    /// A signature matches, and its line was not the first cause.
    NotTheCause {
        /// Signature.
        signature: String,
        /// What its line proves.
        mark: Mark,
    },
    /// The rule holds, and makes it another class.
    RuleHolds {
        /// Rule.
        rule: &'static str,
        /// Class that it made.
        class: Class,
    },
    /// The rule does not hold.
    RuleNotMet {
        /// Rule.
        rule: &'static str,
        /// Why, as the rule says.
        why: String,
    },
    /// The rule holds as well, and another goes before it.
    RuleLost {
        /// Rule.
        rule: &'static str,
        /// The other.
        winner: &'static str,
        /// Because of what.
        because: Option<&'static str>,
    },
}

impl Weighed {
    /// Stable id.
    pub(super) fn id(&self) -> &'static str {
        match self {
            Self::IsVerdict(_) => "weighed.is_verdict",
            Self::CameLater { .. } => "weighed.came_later",
            Self::DecidedBy(_) => "weighed.decided_by",
            Self::NoSignature { .. } => "weighed.no_signature",
            Self::NotTheCause { .. } => "weighed.not_the_cause",
            Self::RuleHolds { .. } => "weighed.rule_holds",
            Self::RuleNotMet { .. } => "weighed.rule_not_met",
            Self::RuleLost { .. } => "weighed.rule_lost",
        }
    }
}
