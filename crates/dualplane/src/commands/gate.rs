//! `dualplane gate`: reports of `measure` held against a policy. Files are read here; `dualplane-gate` judges values.

use std::path::{Path, PathBuf};

use dualplane_base::json::{escape_controls, pretty};
use dualplane_gate::gate::{Gate, Named, Outcome, POLICY_SCHEMA, Policy, TEMPLATE, judge};
use dualplane_gate::{document, report};

use super::Failure;
use crate::args::{GateArgs, GateFormat};
use crate::document::other;
use crate::exit::{self, Code};
use crate::output;

/// A report of an hour by the second takes a few MiB.
const MAX_FILE: u64 = 64 << 20;
/// Reports of one side.
const MAX_FILES: usize = 1000;

pub(super) fn run(args: &GateArgs) -> Result<Code, Failure> {
    let Some(policy) = args.policy.as_deref().filter(|_| !args.init) else {
        output::write(TEMPLATE)?;
        return Ok(exit::OK);
    };
    let policy = read_policy(policy)?;
    let candidate = reports(&args.candidate)?;
    let baseline = reports(&args.baseline)?;
    once(&candidate, &baseline)?;
    let gate = judge(&policy, &candidate, &baseline, args.seed)
        .map_err(|e| Failure::Flag { flag: "gate", why: e.to_string() })?;
    output::write(&written(&gate, args)?)?;
    Ok(code(&gate))
}

fn written(gate: &Gate, args: &GateArgs) -> Result<String, Failure> {
    Ok(match args.output {
        GateFormat::Text => report::text(gate, output::style(args.color, false)),
        GateFormat::Json => pretty(&report::json(gate))?,
        GateFormat::Markdown => report::markdown(gate),
        GateFormat::Junit => report::junit(gate, jiff::Timestamp::now()),
        GateFormat::Sarif => {
            let value = report::sarif(gate, env!("CARGO_PKG_VERSION"));
            escape_controls(&pretty(&value)?)
        }
    })
}

const fn code(gate: &Gate) -> Code {
    match gate.outcome {
        Outcome::Fail => exit::GATE_FAILS,
        Outcome::NotShown => exit::GATE_NOT_SHOWN,
        Outcome::Pass | Outcome::NotApplicable => exit::OK,
    }
}

fn read_policy(path: &Path) -> Result<Policy, Failure> {
    let text = small(path)?;
    let fault = |why: String| Failure::NotRead {
        path: path.into(),
        why,
        hint: "`dualplane gate --init` prints a policy with every key and what it is for",
    };
    if let Some(what) = other(path, &text, "gate-policy") {
        return Err(fault(format!("it is no policy: {what}")));
    }
    let policy: Policy = toml::from_str(&text).map_err(|e| fault(e.to_string().trim_end().to_owned()))?;
    if policy.schema != POLICY_SCHEMA {
        return Err(fault(format!("its schema is not `{POLICY_SCHEMA}`")));
    }
    match policy.fault() {
        Some(why) => Err(fault(why)),
        None => Ok(policy),
    }
}

/// Reports by their files, folders taken apart.
pub(super) fn reports(paths: &[PathBuf]) -> Result<Vec<Named>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let unreadable = |source| Failure::Unreadable { path: path.clone(), source };
        let mut inside = Vec::new();
        for entry in std::fs::read_dir(path).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?.path();
            if entry.extension().is_some_and(|e| e == "json") {
                inside.push(entry);
            }
        }
        if inside.is_empty() {
            return Err(Failure::NoEvidence(format!("{}: no report, NAME.json, is in it", path.display())));
        }
        inside.sort();
        files.extend(inside);
    }
    if files.len() > MAX_FILES {
        let why = format!("{} reports were given; {MAX_FILES} are read at most", files.len());
        return Err(Failure::Flag { flag: "gate", why });
    }
    files.iter().map(|path| one(path)).collect()
}

/// A report that counts twice looks like more runs than were measured, and one on both sides differs from nothing.
fn once(candidate: &[Named], baseline: &[Named]) -> Result<(), Failure> {
    let mut seen = std::collections::HashMap::new();
    let sides =
        candidate.iter().map(|n| (n, "--candidate")).chain(baseline.iter().map(|n| (n, "--baseline")));
    for (report, side) in sides {
        let path = std::fs::canonicalize(&report.file).unwrap_or_else(|_| report.file.clone().into());
        if let Some(before) = seen.insert(path, side) {
            let what =
                if before == side { "is given twice".to_owned() } else { format!("is in {before} too") };
            return Err(Failure::Flag { flag: side, why: format!("{} {what}", report.file) });
        }
    }
    Ok(())
}

/// A report.
pub(super) fn one(path: &Path) -> Result<Named, Failure> {
    let measure = document::read(&small(path)?).map_err(|e| Failure::NotRead {
        path: path.into(),
        why: e.to_string(),
        hint: "give what `dualplane measure -o json` wrote, or a report by docs/measure.schema.json",
    })?;
    Ok(Named { file: path.to_string_lossy().into_owned(), measure })
}

fn small(path: &Path) -> Result<String, Failure> {
    let unreadable = |source| Failure::Unreadable { path: path.into(), source };
    let about = std::fs::metadata(path).map_err(unreadable)?;
    if !about.is_file() {
        // Reading anything else could wait for ever.
        let what = if about.is_dir() { "a directory" } else { "no regular file" };
        let hint = "name a file, in which its content is";
        return Err(Failure::NotRead { path: path.into(), why: format!("it is {what}"), hint });
    }
    if about.len() > MAX_FILE {
        let why = format!("it is larger than {} MiB", MAX_FILE >> 20);
        return Err(Failure::NotRead {
            path: path.into(),
            why,
            hint: "measure with a longer step, or in several files",
        });
    }
    std::fs::read_to_string(path).map_err(unreadable)
}
