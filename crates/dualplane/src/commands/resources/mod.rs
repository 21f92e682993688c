//! `dualplane resources`: requests and limits from what was measured.

#[cfg(feature = "live")]
mod prometheus;

use std::path::PathBuf;

use dualplane_base::json::pretty;
use dualplane_core::knowledge::Knowledge;
use dualplane_input::Sieve;
use dualplane_resources::record::{Container, containers};
use dualplane_resources::series::{Series, joined, read};
use dualplane_resources::{emit, size};

use super::Failure;
use crate::args::{ResourcesArgs, ResourcesFormat};
use crate::exit::{self, Code};
use crate::output;

pub(super) fn run(args: &ResourcesArgs) -> Result<Code, Failure> {
    let mut all = measured(args)?;
    all.retain(|c| args.container.is_empty() || args.container.contains(&c.owner.container));
    let sizes: Vec<size::Sizing> =
        all.iter().map(size::size).filter(|s| s.limit.is_some() || s.ram.peak.is_some()).collect();
    if sizes.is_empty() {
        let what = args.targets.join(", ");
        return Err(Failure::NoEvidence(format!("{what}: no series of a container's memory")));
    }
    let text = match args.output {
        ResourcesFormat::Text => emit::text(&sizes, output::style(args.color, false)),
        ResourcesFormat::Json => pretty(&emit::json(&sizes))?,
        ResourcesFormat::Yaml => emit::yaml(&sizes),
        ResourcesFormat::Patch => pretty(&emit::patch(&sizes))?,
        ResourcesFormat::Values => emit::values(&sizes),
    };
    output::write(&text)?;
    Ok(exit::OK)
}

fn measured(args: &ResourcesArgs) -> Result<Vec<Container>, Failure> {
    #[cfg(feature = "live")]
    if let Some(url) = &args.prometheus {
        return prometheus::measured(args, url);
    }
    Ok(containers(&of_files(&args.targets)?))
}

/// Series of bundles and of saved answers.
fn of_files(targets: &[String]) -> Result<Vec<Series>, Failure> {
    let knowledge = Knowledge::embedded()?;
    let paths: Vec<PathBuf> = targets.iter().map(PathBuf::from).collect();
    let incidents = dualplane_input::read(&paths, &Sieve::new(&knowledge))?;
    let files = incidents.iter().flat_map(|i| &i.files);
    // What is no JSON, and JSON that is no answer, holds no series.
    let answers = files.filter_map(|f| serde_json::from_slice(&f.bytes).ok());
    Ok(joined(answers.map(|a: serde_json::Value| read(&a))))
}
