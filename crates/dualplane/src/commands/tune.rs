//! `dualplane tune`: which lever to move, and, with `--run`, moving it. `dualplane-tune` decides on values; here a line of the
//! shell measures each step.

use std::path::Path;
use std::process::{Command, Stdio};

use dualplane_base::json::pretty;
use dualplane_engines::Engines;
use dualplane_gate::document;
use dualplane_tune::{Levers, Log, Next, Numbers, SCHEMA, flow, json, next, propose, text};

use super::{Failure, gate};
use crate::args::{TuneArgs, TuneFormat};
use crate::document::other;
use crate::exit::{self, Code};
use crate::{files, output};

/// A log holds some KiB a step.
const MAX_LOG: u64 = 64 << 20;
/// What a measuring program may write.
const MAX_REPORT: usize = 64 << 20;
const HINT: &str = "give a report of `dualplane measure -o json`; --run measures by itself";

pub(super) fn run(args: &TuneArgs) -> Result<Code, Failure> {
    let log = match (&args.report, &args.log, args.run) {
        (Some(report), _, _) => asked(args, report)?,
        (None, Some(path), true) => search(args, path)?,
        (None, Some(path), false) => read(path)?,
        (None, None, _) => {
            return Err(Failure::Flag { flag: "tune", why: "give a report, or --run".to_owned() });
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
fn asked(args: &TuneArgs, report: &Path) -> Result<Log, Failure> {
    let named = gate::one(report)?;
    let subject = &named.measure.subject;
    let numbers = Numbers::of(&named.measure);
    let levers = levers(args, subject.engine.as_deref(), &subject.command)?;
    let finding = flow(&numbers);
    let proposal = propose(&numbers, &finding, &levers, &subject.command, &[]);
    Ok(Log { finding: Some(finding), proposal, ..Log::new(&subject.command) })
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

fn search(args: &TuneArgs, path: &Path) -> Result<Log, Failure> {
    let mut log = if path.exists() { read(path)? } else { Log::new(&args.command) };
    if log.command != args.command {
        return Err(Failure::NotRead {
            path: path.into(),
            why: format!("it is of another command line: {}", log.command.join(" ")),
            hint: "give that command line to go on, or another file",
        });
    }
    let levers = levers(args, None, &args.command)?;
    if levers == Levers::default() {
        let why = "the command line starts no engine that dualplane knows: name it with --engine".to_owned();
        return Err(Failure::Flag { flag: "--run", why });
    }
    let line = args.measure.as_deref().unwrap_or_default();
    loop {
        match next(&log, &levers, usize::from(args.steps)) {
            Next::Stop(why) => {
                log.finding = log.best().and_then(|s| s.numbers.as_ref()).map(flow);
                log.stopped = Some(why);
                write(path, &log)?;
                return Ok(log);
            }
            Next::Measure(command, proposal) => {
                let proposal = proposal.map(|p| *p);
                output::note(&format!("step {}: measures {}", log.steps.len(), command.join(" ")));
                log.begin(command.clone(), proposal.clone());
                write(path, &log)?;
                let numbers = measure(line, &command)?;
                log.add(command, proposal, numbers, args.seed);
                write(path, &log)?;
                if let Some(step) = log.steps.last() {
                    output::note(&format!(
                        "step {}: {}",
                        log.steps.len() - 1,
                        step.why.as_deref().unwrap_or_default()
                    ));
                }
            }
        }
    }
}

fn write(path: &Path, log: &Log) -> Result<(), Failure> {
    let text = pretty(&json(log)?)?;
    files::write_whole(path, text.as_bytes())
        .map_err(|source| Failure::Unwritable { path: path.into(), source })
}

/// Measures one command line; none where the measuring program fails or no request was answered: the server did not serve.
fn measure(line: &str, command: &[String]) -> Result<Option<Numbers>, Failure> {
    let failed = |why: String| Failure::Flag { flag: "--measure", why };
    let out = Command::new("sh")
        .args(["-c", line])
        .env("SERVER", shell(command))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| failed(format!("the shell cannot be started: {e}")))?;
    if out.stdout.len() > MAX_REPORT {
        return Err(failed(format!("it wrote more than {} MiB", MAX_REPORT >> 20)));
    }
    let text = String::from_utf8_lossy(&out.stdout);
    match document::read(&text) {
        Ok(m) => Ok(Some(Numbers::of(&m))),
        // The shell itself says that there is no such program, or that it must not run it.
        Err(_) if matches!(out.status.code(), Some(126 | 127)) => Err(failed(format!(
            "the shell could not run it (exit code {})",
            out.status.code().unwrap_or_default()
        ))),
        Err(_) if !out.status.success() && text.trim().is_empty() => Ok(None),
        Err(e) => Err(Failure::NotRead {
            path: "--measure".into(),
            why: format!("what it wrote is no report: {e}"),
            hint: HINT,
        }),
    }
}

/// Words as a shell reads them back.
fn shell(words: &[String]) -> String {
    let safe =
        |w: &str| !w.is_empty() && w.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./:=,+@%".contains(&b));
    let quoted = |w: &String| if safe(w) { w.clone() } else { format!("'{}'", w.replace('\'', "'\\''")) };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_from_the_shell() {
        let words: Vec<String> = ["vllm", "a b", "it's", "", "$HOME;`x`"].map(str::to_owned).to_vec();
        let out = Command::new("sh")
            .args(["-c", "eval \"printf '%s\\n' $SERVER\""])
            .env("SERVER", shell(&words))
            .output();
        let text = String::from_utf8(out.unwrap().stdout).unwrap();
        assert_eq!(text.lines().collect::<Vec<_>>(), words);
    }
}
