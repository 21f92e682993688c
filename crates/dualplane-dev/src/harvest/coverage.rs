//! `dualplane dev coverage`: which of the harvested templates the knowledge decides, by engine and version.
//!
//! A template is *known* where a signature matches it filled with generated values, *benign* where that signature says so
//! or a decision does with its reason, and *unknown* otherwise.

use std::fmt::Write as _;
use std::path::PathBuf;

use dualplane_core::knowledge::{Knowledge, Mark};

use super::decisions::{self, Decision};
use super::store;
use super::template::filled;
use super::topics::Topics;
use crate::{DevError, Outcome, percent};

/// What is asked.
#[derive(Debug, clap::Args)]
pub struct CoverageArgs {
    /// Folder of the harvests
    #[arg(long, default_value = "testdata/harvest")]
    pub harvests: PathBuf,
    /// Only these engines; repeatable
    #[arg(long)]
    pub name: Vec<String>,
    /// Print every template that is unknown
    #[arg(short, long)]
    pub unknown: bool,
    /// Print every template with what decides it
    #[arg(long)]
    pub all: bool,
    /// Minimum percentage of decided templates among those of memory, in each version
    #[arg(long, default_value_t = 100.0)]
    pub min_memory: f64,
    /// Minimum percentage of decided templates among those that end a process, in each version
    #[arg(long, default_value_t = 95.0)]
    pub min_end: f64,
    /// Minimum percentage of decided templates among those of GPU faults, in each version
    #[arg(long, default_value_t = 100.0)]
    pub min_fault: f64,
}

/// What is known of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Known(String),
    Benign(String),
    Unknown,
}

#[derive(Debug, Default, Clone, Copy)]
struct Count {
    known: usize,
    benign: usize,
    unknown: usize,
}

impl Count {
    fn add(&mut self, state: &State) {
        *match state {
            State::Known(_) => &mut self.known,
            State::Benign(_) => &mut self.benign,
            State::Unknown => &mut self.unknown,
        } += 1;
    }

    fn all(self) -> usize {
        self.known + self.benign + self.unknown
    }

    fn decided(self) -> f64 {
        percent(self.known + self.benign, self.all())
    }
}

pub(crate) fn run(args: &CoverageArgs) -> Result<Outcome, DevError> {
    let knowledge = Knowledge::embedded()?;
    let decisions = decisions::all(&args.harvests.join("decisions"))?;
    let mut text = format!(
        "{:<24}{:<14}{:>7}{:>7}{:>8}{:>9}{:>9}{:>8}{:>8}\n",
        "engine", "version", "all", "known", "benign", "unknown", "memory", "fault", "end"
    );
    let mut unknown = String::new();
    let mut good = true;
    for (engine, harvest) in store::all(&args.harvests)? {
        if !args.name.is_empty() && !args.name.contains(&engine) {
            continue;
        }
        let judged: Vec<_> = harvest
            .0
            .iter()
            .map(|((severity, template), row)| {
                let state = judge(&knowledge, &decisions, &engine, severity, template, &row.place);
                if args.all {
                    let _ = writeln!(unknown, "{engine}\t{severity}\t{state:?}\t{template}");
                } else if args.unknown && state == State::Unknown {
                    let topics = Topics::of(template, severity);
                    let marks = [(topics.memory, 'M'), (topics.fault, 'F'), (topics.end, 'E')];
                    let marks: String = marks.iter().filter(|m| m.0).map(|m| m.1).collect();
                    let _ = writeln!(unknown, "{engine}\t{marks}\t{severity}\t{}\t{template}", row.place);
                }
                (Topics::of(template, severity), state, row)
            })
            .collect();
        for version in harvest.versions() {
            let (mut all, mut memory, mut fault, mut end) =
                (Count::default(), Count::default(), Count::default(), Count::default());
            for (topics, state, _) in judged.iter().filter(|(_, _, row)| row.versions.contains(&version)) {
                all.add(state);
                for (is, count) in
                    [(topics.memory, &mut memory), (topics.fault, &mut fault), (topics.end, &mut end)]
                {
                    if is {
                        count.add(state);
                    }
                }
            }
            let held = memory.decided() >= args.min_memory
                && fault.decided() >= args.min_fault
                && end.decided() >= args.min_end;
            good &= held;
            let _ = writeln!(
                text,
                "{engine:<24}{version:<14}{:>7}{:>7}{:>8}{:>9}{:>8.1}%{:>7.1}%{:>7.1}%{}",
                all.all(),
                all.known,
                all.benign,
                all.unknown,
                memory.decided(),
                fault.decided(),
                end.decided(),
                if held { "" } else { "  below" }
            );
        }
    }
    text.push_str(&unknown);
    Ok(Outcome { text, good })
}

fn judge(
    knowledge: &Knowledge,
    decisions: &[Decision],
    engine: &str,
    severity: &str,
    template: &str,
    place: &str,
) -> State {
    for filled in filled(template) {
        // A message of several lines is printed as several.
        for line in filled.split("\\n").flat_map(|line| printed(line, engine, severity, place)) {
            for found in knowledge.matches(&line, |near| place.contains(near)) {
                let Some(signature) = knowledge.signature(found.id) else { continue };
                match signature.mark {
                    Mark::Info | Mark::Phase | Mark::UserText => {}
                    Mark::Benign => return State::Benign(signature.id.to_string()),
                    // Words alone count only where they are asked: for exceptions.
                    _ if signature.of_exceptions() && severity != "raise" => {}
                    _ => return State::Known(signature.id.to_string()),
                }
            }
        }
    }
    let decision = decisions.iter().find(|d| d.covers(engine, severity, template));
    decision.map_or(State::Unknown, |d| State::Benign(format!("{}: {}", d.file, d.reason)))
}

/// A line as it comes out: alone, behind the class of an exception, behind the file and line of what aborts by itself, or
/// behind the prefix of a driver.
fn printed(line: &str, engine: &str, severity: &str, place: &str) -> Vec<String> {
    let mut lines = vec![line.to_owned()];
    if severity == "raise" {
        lines.push(format!("RuntimeError: {line}"));
    }
    lines.push(format!("/src/{place}: {line}"));
    match (severity, place.rsplit_once(':').and_then(|(file, _)| file.rsplit_once('.'))) {
        ("panic", Some((_, "go"))) => lines.push(format!("panic: {line}")),
        ("panic", Some((_, "rs"))) => lines.push(format!("thread 'main' panicked at {place}:5: {line}")),
        ("exit", Some((_, "go"))) => {
            lines.push(format!("time=\"2026-08-22T10:11:12Z\" level=fatal msg=\"{line}\""));
            lines.push(format!("F0822 10:11:12.123456       1 main.go:42] {line}"));
        }
        _ => {}
    }
    for (folder, driver) in [("/amd/", "amdgpu"), ("/xe/", "xe"), ("/i915/", "i915")] {
        if place.contains(folder) {
            lines.push(format!("{driver} 0000:03:00.0: {driver}: {line}"));
            lines.push(format!("{driver} 0000:03:00.0: [drm] *ERROR* {line}"));
            lines.push(format!("[drm:work [{driver}]] *ERROR* {line}"));
        }
    }
    match engine {
        "linux" if severity == "panic" => lines.push(format!("Kernel panic - not syncing: {line}")),
        "nvidia_driver" => {
            lines.extend(["NVRM: ", "NVRM: GPU0 ", "nvidia-uvm: "].map(|p| format!("{p}{line}")))
        }
        "nccl" => lines.push(format!("node-1:30:42 [0] transport.cc:12 NCCL WARN {line}")),
        "tgi" => lines.push(format!("2026-06-02T09:14:55.012Z ERROR text_generation_launcher: {line}")),
        "hami_core" => lines.push(format!("[HAMI-core ERROR (pid:30 thread=140382 allocator.c:53)]: {line}")),
        _ => {}
    }
    lines
}
