//! `dualplane knowledge check DIR`: holds a team's own entries to the rules of `knowledge/`.

use std::fmt::Write as _;
use std::path::Path;

use dualplane_base::text::counted;
use dualplane_core::knowledge;

use super::Failure;
use crate::exit::{self, Code};
use crate::{output, own_knowledge};

pub(crate) fn check(dir: &Path) -> Result<Code, Failure> {
    let own = own_knowledge::read(dir)?;
    let mut problems = knowledge::check(&own.knowledge, &own.examples);
    problems.extend(knowledge::check_heads(&own.knowledge, &own.heads));
    let mut out = String::new();
    for p in &problems {
        // Writing into a String cannot fail.
        let _ = writeln!(
            out,
            "{}: {}",
            dualplane_base::text::printable(&p.id),
            dualplane_base::text::printable(&p.what)
        );
    }
    let _ = writeln!(
        out,
        "checked {}, found {}",
        counted(own.examples.len(), "signature"),
        counted(problems.len(), "problem")
    );
    output::write(&out)?;
    Ok(if problems.is_empty() { exit::OK } else { exit::BELOW_BOUND })
}
