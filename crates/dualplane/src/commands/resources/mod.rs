//! `dualplane resources`: requests and limits from what was measured.

#[cfg(feature = "live")]
mod prometheus;

use std::path::{Path, PathBuf};

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
        return Err(Failure::NoSeries(args.targets.join(", ")));
    }
    let text = match args.output {
        ResourcesFormat::Text => emit::text(&sizes, output::style(args.color, false)),
        ResourcesFormat::Json => pretty(&emit::json(&sizes))?,
        ResourcesFormat::Yaml => emit::yaml(&sizes),
        ResourcesFormat::Patch => pretty(&emit::patch(&sizes))?,
        ResourcesFormat::Values => emit::values(&sizes),
        #[cfg(feature = "live")]
        ResourcesFormat::Keda => prometheus::keda(args, &sizes)?,
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

/// A word as kubectl takes it, where no file has that name.
fn is_workload(path: &Path) -> bool {
    let kinds = ["deploy", "sts", "ds", "lws", "pod"];
    !path.exists()
        && path.parent().and_then(Path::to_str).is_some_and(|p| kinds.iter().any(|k| p.starts_with(k)))
}

/// Series of bundles and of saved answers.
fn of_files(targets: &[String]) -> Result<Vec<Series>, Failure> {
    let knowledge = Knowledge::embedded()?;
    let paths: Vec<PathBuf> = targets.iter().map(PathBuf::from).collect();
    if let Some(workload) = paths.iter().find(|p| is_workload(p)) {
        let why = format!(
            "{} is no file; for a workload, give the URL of the Prometheus that scrapes it",
            workload.display()
        );
        return Err(Failure::Flag { flag: "--prometheus", why });
    }
    let incidents = dualplane_input::read(&paths, &Sieve::new(&knowledge))?;
    let files = incidents.iter().flat_map(|i| &i.files);
    // What is no JSON, and JSON that is no answer, holds no series.
    let answers = files.filter_map(|f| serde_json::from_slice(&f.bytes).ok());
    Ok(joined(answers.map(|a: serde_json::Value| read(&a))))
}
