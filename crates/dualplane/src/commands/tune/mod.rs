//! `dualplane tune`: which lever to move, and, with `--run`, moving it. `dualplane-tune` decides on values; here steps are
//! measured, and moves are planned and rehearsed.

mod measured;
mod predict;
mod search;

use std::path::Path;

use dualplane_base::json::pretty;
use dualplane_engines::Engines;
use dualplane_gate::document::Measure;
use dualplane_tune::{Levers, Log, Numbers, SCHEMA, flow, json, proposals, text};

use self::predict::Place;

use super::{Failure, gate};
use crate::args::{TuneArgs, TuneFormat};
use crate::document::other;
use crate::exit::{self, Code};
use crate::output;

/// A log holds some KiB a step.
const MAX_LOG: u64 = 64 << 20;

pub(super) fn run(args: &TuneArgs) -> Result<Code, Failure> {
    let log = match (&args.report, &args.log, args.run) {
        _ if args.live.is_some() => {
            let url = args.live.as_deref().unwrap_or_default();
            asked(args, &measured::live(args, url)?)?
        }
        (Some(report), _, _) => asked(args, &gate::one(report)?.measure)?,
        (None, Some(path), true) => search::run(args, path)?,
        (None, Some(path), false) => read(path)?,
        (None, None, _) => {
            return Err(Failure::Flag {
                flag: "tune",
                why: "give a report, --live URL, or --run".to_owned(),
            });
        }
    };
    let out = match args.output {
        TuneFormat::Text => text(&log, output::style(args.color, false)),
        TuneFormat::Json => pretty(&json(&log)?)?,
    };
    output::write(&out)?;
    Ok(exit::OK)
}

/// One answer from one report.
fn asked(args: &TuneArgs, m: &Measure) -> Result<Log, Failure> {
    let subject = &m.subject;
    let numbers = Numbers::of(m);
    let levers = levers(args, subject.engine.as_deref(), &subject.command)?;
    let mut finding = flow(&numbers);
    if levers == Levers::default() {
        finding.missing.push("which engine it is, for the names of its settings: --engine NAME".to_owned());
    }
    let place = place(args, m);
    let mut moves = proposals(&numbers, &finding, &levers, &subject.command).into_iter();
    let mut proposal = moves.next();
    if let Some(p) = &mut proposal {
        predict::add(args, &place, &subject.command, p);
    }
    Ok(Log { finding: Some(finding), proposal, others: moves.collect(), ..Log::new(&subject.command) })
}

fn place(args: &TuneArgs, m: &Measure) -> Place {
    let card = m.hardware.gpus.as_ref().and_then(|g| g.first()).map(|g| g.name.clone());
    Place {
        gpu: args.gpu.clone().or(card),
        rate: args.rate.or_else(|| m.runs.iter().find_map(|r| r.load.rate)),
    }
}

/// Settings of the engine that is named, of the report's, or of the one that the command line starts.
fn levers(args: &TuneArgs, engine: Option<&str>, command: &[String]) -> Result<Levers, Failure> {
    let engines = Engines::embedded();
    if let Some(name) = &args.engine {
        let engine = engines.get(name).ok_or_else(|| Failure::Flag {
            flag: "--engine",
            why: format!("`{name}` is no engine that dualplane knows, such as vllm, sglang or llama_cpp"),
        })?;
        return Ok(Levers::of(engine));
    }
    let by_name = engine.and_then(|e| engines.get(&e.to_lowercase().replace(['-', '.'], "_")));
    let found = by_name.or_else(|| engines.by_command(command).map(|(engine, _)| engine));
    Ok(found.map(Levers::of).unwrap_or_default())
}

fn read(path: &Path) -> Result<Log, Failure> {
    let unreadable = |source| Failure::Unreadable { path: path.into(), source };
    let fault = |why: String| Failure::NotRead {
        path: path.into(),
        why,
        hint: "give the file that --run --log wrote",
    };
    if std::fs::metadata(path).map_err(unreadable)?.len() > MAX_LOG {
        return Err(fault(format!("it is larger than {} MiB", MAX_LOG >> 20)));
    }
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    if let Some(what) = other(path, &text, "tune") {
        return Err(fault(format!("it is no log of tune: {what}")));
    }
    let log: Log = serde_json::from_str(&text).map_err(|e| fault(e.to_string()))?;
    if log.schema != SCHEMA {
        return Err(fault(format!("its schema is not {SCHEMA}")));
    }
    Ok(log)
}
