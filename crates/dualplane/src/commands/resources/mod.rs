//! `dualplane resources`: requests and limits from what was measured.

#[cfg(feature = "live")]
mod prometheus;

use std::path::{Path, PathBuf};

use dualplane_base::json::pretty;
use dualplane_core::knowledge::Knowledge;
use dualplane_input::Sieve;
use dualplane_resources::record::containers;
use dualplane_resources::series::{joined, read};
use dualplane_resources::size::{Sizing, size};
use dualplane_resources::{emit, measured};
use serde_json::Value;

use super::Failure;
use crate::args::{ResourcesArgs, ResourcesFormat};
use crate::exit::{self, Code};
use crate::output;

pub(super) fn run(args: &ResourcesArgs) -> Result<Code, Failure> {
    let mut sizes = sized(args)?;
    sizes.retain(|s| s.limit.is_some() || s.ram.peak.is_some());
    for s in &mut sizes {
        name(s, &args.container, args.output)?;
    }
    sizes.retain(|s| args.container.is_empty() || args.container.contains(&s.owner.container));
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
        ResourcesFormat::Keda | ResourcesFormat::Hpa => prometheus::scaled(args, &sizes)?,
    };
    output::write(&text)?;
    Ok(exit::OK)
}

fn sized(args: &ResourcesArgs) -> Result<Vec<Sizing>, Failure> {
    #[cfg(feature = "live")]
    if let Some(url) = &args.prometheus {
        return Ok(prometheus::measured(args, url)?.iter().map(size).collect());
    }
    of_files(&args.targets)
}

/// A report of `measure` names no container. A patch with a wrong name would add one to the pod.
fn name(s: &mut Sizing, given: &[String], output: ResourcesFormat) -> Result<(), Failure> {
    match given {
        [one] if !s.named => {
            s.owner.container.clone_from(one);
            s.named = true;
        }
        _ if !s.named && matches!(output, ResourcesFormat::Patch) => {
            let why =
                "a report of `measure` names no container, and a patch needs it: add -c NAME".to_owned();
            return Err(Failure::Flag { flag: "--container", why });
        }
        _ => {}
    }
    Ok(())
}

/// A word as kubectl takes it, where no file has that name.
fn is_workload(path: &Path) -> bool {
    let kinds = ["deploy", "sts", "ds", "lws", "pod"];
    !path.exists()
        && path.parent().and_then(Path::to_str).is_some_and(|p| kinds.iter().any(|k| p.starts_with(k)))
}

/// Sizes from bundles, saved answers, and reports of `measure`.
fn of_files(targets: &[String]) -> Result<Vec<Sizing>, Failure> {
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
    let (mut answers, mut reports) = (Vec::new(), Vec::new());
    for file in incidents.iter().flat_map(|i| &i.files) {
        // What is no JSON, and JSON that is no answer, holds no series.
        let Ok(value) = serde_json::from_slice::<Value>(&file.bytes) else { continue };
        match value.get("schema").and_then(Value::as_str) {
            Some(schema) if schema.starts_with("dualplane.measure/") => {
                let why = |e: dualplane_gate::document::ReadError| Failure::OwnKnowledge {
                    path: file.name.clone().into(),
                    why: e.to_string(),
                };
                reports.push(
                    dualplane_gate::document::read(&String::from_utf8_lossy(&file.bytes)).map_err(why)?,
                );
            }
            _ => answers.push(read(&value)),
        }
    }
    let mut out: Vec<Sizing> = containers(&joined(answers)).iter().map(size).collect();
    out.extend(measured::sizes(&reports));
    Ok(out)
}
