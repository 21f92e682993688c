//! The report: to standard output, and to files by their ending.

use std::fs;

use dualplane_gate::document::{self, Measure};
use dualplane_runs::render;

use crate::args::{MeasureArgs, MeasureFormat};
use crate::commands::Failure;
use crate::output;

/// The form that a file's ending says; told before anything is measured.
fn form(path: &std::path::Path) -> Result<MeasureFormat, Failure> {
    match path.extension().and_then(|e| e.to_str()) {
        Some("json") => Ok(MeasureFormat::Json),
        Some("html" | "htm") => Ok(MeasureFormat::Html),
        Some("md") => Ok(MeasureFormat::Markdown),
        Some("txt") => Ok(MeasureFormat::Text),
        _ => {
            let why = format!("{}: the ending says the form: .json, .html, .md or .txt", path.display());
            Err(Failure::Flag { flag: "--out", why })
        }
    }
}

/// Whether the report can be written where it should be: an hour of measuring must not end in an error.
pub(super) fn check(args: &MeasureArgs) -> Result<(), Failure> {
    for path in &args.out {
        form(path)?;
        let failed = |source| Failure::Unwritable { path: path.clone(), source };
        fs::OpenOptions::new().append(true).create(true).open(path).map_err(failed)?;
    }
    Ok(())
}

pub(super) fn write(args: &MeasureArgs, m: &Measure) -> Result<(), Failure> {
    let of = |format: MeasureFormat, style| -> Result<String, Failure> {
        Ok(match format {
            MeasureFormat::Text => render::text(m, style),
            MeasureFormat::Json => document::write(m)?,
            MeasureFormat::Markdown => render::markdown(m),
            MeasureFormat::Html => render::html(m),
        })
    };
    let plain = dualplane_base::style::Style { colour: false, verbose: true, width: 100 };
    for path in &args.out {
        let format = form(path)?;
        fs::write(path, of(format, plain)?)
            .map_err(|source| Failure::Unwritable { path: path.clone(), source })?;
        output::note(&format!("wrote {}", path.display()));
    }
    output::write(&of(args.output, output::style(args.color, false))?)
}
