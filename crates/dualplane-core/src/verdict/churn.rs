//! Models that are loaded again beside their old copy: while both are there, the memory of two is needed.
//!
//! An engine's own messages tell it: ids that end in `.model_loading`, `.model_loaded` and `.model_unloaded`.

use super::proof::Proof;
use super::{Cause, Cited, Confidence, Decided, Plane, Trigger};
use crate::facts::{Facts, Hit};
use crate::text::{counted, name, shorten};

/// A model that was loaded again while a copy of it was there.
#[derive(Debug, Clone)]
pub struct Churn<'a> {
    /// The model.
    pub model: String,
    /// How often.
    pub times: u64,
    /// The last such load before the error.
    pub last: &'a Hit,
}

impl Churn<'_> {
    /// In one line.
    #[must_use]
    pub fn sentence(&self) -> String {
        format!(
            "{} was loaded again {} while a copy of it was there",
            name(&self.model),
            counted(self.times, "time")
        )
    }
}

/// The model whose reload came before the first error.
#[must_use]
pub fn churn<'a>(facts: &'a Facts, trigger: &Trigger) -> Option<Churn<'a>> {
    let before = |h: &&Hit| h.place.file == trigger.place.file && h.place.line <= trigger.place.line;
    let hits: Vec<&Hit> = facts.hits.iter().filter(before).collect();
    let of = |end: &'static str, model: &str, to: Option<u64>| {
        let same =
            |h: &&&Hit| h.id.ends_with(end) && h.word("model").as_deref() == Some(model) && h.place.line < to;
        hits.iter().filter(same).count()
    };
    let again = |h: &&&Hit| {
        let Some(model) = h.word("model").filter(|_| h.id.ends_with(".model_loading")) else { return false };
        let to = h.place.line;
        of(".model_loaded", &model, to) > of(".model_unloaded", &model, to)
    };
    let reloads: Vec<&&Hit> = hits.iter().filter(again).collect();
    let last = reloads.last()?;
    let model = last.word("model")?;
    let times = reloads.iter().filter(|h| h.word("model").as_deref() == Some(model.as_str())).count();
    Some(Churn { model, times: times as u64, last })
}

/// As what lies beneath a lack of memory.
pub(super) fn cause(facts: &Facts, decided: &Decided) -> Option<Cause> {
    let trigger =
        decided.trigger.as_ref().filter(|_| matches!(decided.class.plane(), Plane::Host | Plane::Gpu))?;
    let churn = churn(facts, trigger)?;
    let line = Proof::Line {
        signature: churn.last.id.to_string(),
        text: shorten(churn.last.text.trim(), 200).into_owned(),
    };
    Some(Cause {
        class: decided.class,
        title: format!("{}: both need their memory at once", churn.sentence()),
        confidence: Confidence::Medium,
        rejected: false,
        supports: vec![Cited::at(line, &churn.last.place)],
        against: Vec::new(),
    })
}
