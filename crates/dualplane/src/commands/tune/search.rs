//! A search: a move, a measurement, and going on or back, of a command line or of a workload in a cluster. Each step is in the
//! log before it begins.

use std::path::Path;

use dualplane_base::json::pretty;
use dualplane_tune::{Decision, Levers, Log, Next, Numbers, Proposal, flow, json, next, value};

use super::predict::{self, Place};
use super::{levers, measured, place, read};
use crate::args::TuneArgs;
use crate::commands::Failure;
use crate::commands::live::workload::Workload;
use crate::{files, output};

pub(super) fn run(args: &TuneArgs, path: &Path) -> Result<Log, Failure> {
    let flag = |why: &str| Failure::Flag { flag: "--run", why: why.to_owned() };
    if args.measure.is_none() && args.target.is_none() {
        return Err(flag("how is a step measured? give --target URL, or --measure LINE"));
    }
    let workload = args.to.as_deref().map(|to| Workload::find(args, to)).transpose()?;
    let (begins, levers) = match &workload {
        Some(w) => (w.command().to_vec(), levers(args, Some(w.engine()), &[])?),
        None if args.command.is_empty() => {
            return Err(flag("what is moved? give a command line after --, or --to deploy/NAME"));
        }
        None => (args.command.clone(), levers(args, None, &args.command)?),
    };
    if levers == Levers::default() {
        return Err(flag("the command line starts no engine that dualplane knows: name it with --engine"));
    }
    let mut log = if path.exists() { read(path)? } else { Log::new(&begins) };
    let name = workload.as_ref().map(Workload::name);
    same(path, &mut log, name, &begins)?;
    if let Some(w) = &workload
        && log.stopped.is_none()
    {
        w.confirm()?;
        resume(w, &log)?;
    }
    let mut seen = Place { gpu: args.gpu.clone(), rate: args.rate };
    loop {
        match next(&log, &levers, usize::from(args.steps)) {
            Next::Stop(why) => {
                log.finding = log.best().and_then(|s| s.numbers.as_ref()).map(flow);
                log.stopped = Some(why);
                write(path, &log)?;
                return Ok(log);
            }
            Next::Measure(command, proposal) => {
                let mut proposal = proposal.map(|p| *p);
                if let (Some(p), Some(best)) = (&mut proposal, log.best()) {
                    predict::add(args, &seen, &best.command, p);
                }
                output::note(&format!("step {}: measures {}", log.steps.len(), command.join(" ")));
                log.begin(command.clone(), proposal.clone());
                write(path, &log)?;
                let report = match &workload {
                    Some(w) if !up(w, proposal.as_ref())? => None,
                    _ => measured::step(args, &command)?,
                };
                if let Some(m) = &report {
                    seen = place(args, m);
                }
                let moves = proposal.is_some();
                log.add(command, proposal, report.as_ref().map(Numbers::of), args.seed);
                write(path, &log)?;
                let Some(step) = log.steps.last() else { continue };
                output::note(&format!(
                    "step {}: {}",
                    log.steps.len() - 1,
                    step.why.as_deref().unwrap_or_default()
                ));
                if let Some(w) = &workload
                    && moves
                    && step.decision == Some(Decision::Revert)
                {
                    w.back()?;
                }
            }
        }
    }
}

/// The workload serves with the move, or as it is.
fn up(w: &Workload, proposal: Option<&Proposal>) -> Result<bool, Failure> {
    match proposal {
        Some(p) => w.make(p),
        None => w.settles(),
    }
}

/// A log goes on for what it was begun for, and for nothing else.
fn same(path: &Path, log: &mut Log, name: Option<String>, begins: &[String]) -> Result<(), Failure> {
    let other = |why: String, hint: &'static str| Err(Failure::NotRead { path: path.into(), why, hint });
    if log.steps.is_empty() {
        log.workload = name;
        return Ok(());
    }
    if log.workload != name {
        let of = log.workload.as_deref().unwrap_or("a command line");
        return other(format!("it is of {of}"), "give what it was begun with to go on, or another file");
    }
    // A workload has the moves of the search on its command line; `resume` looks at those.
    if name.is_none() && log.command != begins {
        return other(
            format!("it is of another command line: {}", log.command.join(" ")),
            "give that command line to go on, or another file",
        );
    }
    Ok(())
}

/// Brings a workload to where the log says that it is: the way back of the last move may not have been gone. What somebody
/// else set meanwhile is an error: the numbers of the log do not hold for it.
fn resume(w: &Workload, log: &Log) -> Result<(), Failure> {
    let Some(last) = log.steps.last() else { return Ok(()) };
    let best = log.best().map_or(&log.command, |s| &s.command);
    let open = last.decision.is_none();
    for p in log.steps.iter().filter_map(|s| s.proposal.as_ref()) {
        let (now, was) = (value(w.command(), &p.names), value(best, &p.names));
        if now == was || open && now == value(&last.command, &p.names) {
            continue;
        }
        if last.decision == Some(Decision::Revert) && now == value(&last.command, &p.names) {
            return w.back();
        }
        return Err(Failure::NotChanged {
            why: format!(
                "{} was changed since: {} is {}, and the log knows {}",
                w.name(),
                p.names.first().map_or("a setting", String::as_str),
                now.unwrap_or("not set"),
                was.unwrap_or("none")
            ),
            hint: Some("set it back to go on, or begin with another --log".into()),
        });
    }
    Ok(())
}

fn write(path: &Path, log: &Log) -> Result<(), Failure> {
    let text = pretty(&json(log)?)?;
    files::write_whole(path, text.as_bytes())
        .map_err(|source| Failure::Unwritable { path: path.into(), source })
}
