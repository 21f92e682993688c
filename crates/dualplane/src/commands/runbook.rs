//! `dualplane runbook [CLASS]`: the page of a class, or the list of all.

use std::fmt::Write as _;

use dualplane_base::Class;
use dualplane_report::runbook;

use super::Failure;
use crate::args::RunbookArgs;
use crate::exit::{self, Code};
use crate::output;

pub(crate) fn run(args: &RunbookArgs) -> Result<Code, Failure> {
    match args.class {
        Some(class) => output::write(runbook::page(class))?,
        None => output::write(&list())?,
    }
    Ok(exit::OK)
}

fn list() -> String {
    let width = Class::ALL.iter().map(|c| c.as_str().len()).max().unwrap_or(0);
    let mut out = String::new();
    for class in Class::ALL {
        let _ = writeln!(out, "{:width$}  {}", class.as_str(), class.title());
    }
    out
}
