//! `dualplane dev literals`: what a person would give to `grep -F -f` to find the same lines.

use std::collections::BTreeSet;

use dualplane_core::knowledge::Knowledge;

use super::{DevError, Outcome};

pub(crate) fn run() -> Result<Outcome, DevError> {
    let knowledge = Knowledge::embedded()?;
    let logs = knowledge.signatures().iter().filter(|s| !s.of_objects());
    let all: BTreeSet<&str> = logs.flat_map(|s| s.literals.iter()).map(AsRef::as_ref).collect();
    let text: String = all.into_iter().map(|l| format!("{l}\n")).collect();
    Ok(Outcome::of(text))
}
