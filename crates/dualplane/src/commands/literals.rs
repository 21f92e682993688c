//! `dualplane dev literals`: what a person would give to `grep -F -f` to find the same lines.

use std::collections::BTreeSet;

use dualplane_core::knowledge::Knowledge;

use super::Failure;
use crate::exit::{self, Code};
use crate::output;

pub(crate) fn run() -> Result<Code, Failure> {
    let knowledge = Knowledge::embedded()?;
    let logs = knowledge.signatures().iter().filter(|s| !s.of_objects());
    let all: BTreeSet<&str> = logs.flat_map(|s| &s.literals).map(String::as_str).collect();
    let text: String = all.into_iter().map(|l| format!("{l}\n")).collect();
    output::write(&text)?;
    Ok(exit::OK)
}
