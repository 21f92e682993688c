//! What a bundle tells of the requests before a death, and of the time of a step.

use std::path::{Path, PathBuf};

use dualplane_base::Plane;
use dualplane_core::change::Change;
use dualplane_core::knowledge::Knowledge;
use dualplane_profile::{Options, Profiler};
use dualplane_rehearse::StepTime;
use dualplane_rehearse::pace::{self, Seen};
use dualplane_report as report;
use dualplane_report::actions::{Action, Stage};
use dualplane_shape::{LONG, Shape};

use super::{Failure, flags};

/// More fixes of one report are not rehearsed.
const FIXES: usize = 4;

/// What the report of a death advises, as far as it is flags of the engine.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fix {
    /// In its words.
    pub(super) title: String,
    /// Flags and their values.
    pub(super) set: Vec<String>,
    /// Flags that are taken out.
    pub(super) without: Vec<String>,
}

/// What was found.
pub(super) struct Told {
    /// The shape of the requests; else why there is none.
    pub(super) shape: Result<Shape, String>,
    /// Remarks on how sure it is.
    pub(super) notes: Vec<String>,
    /// The engine's statistics, each of ten seconds.
    statistics: Vec<Seen>,
    /// The fixes that triage computes.
    pub(super) fixes: Vec<Fix>,
}

/// Reads a bundle, a directory or an archive.
pub(super) fn read(path: &Path) -> Result<Told, Failure> {
    let knowledge = Knowledge::embedded()?;
    let paths: [PathBuf; 1] = [path.to_owned()];
    let incidents = dualplane_input::read(&paths, &dualplane_input::Sieve::new(&knowledge))?;
    let incident = incidents.into_iter().next();
    let (name, files, gaps) = incident.map(|i| (i.name, i.files, i.gaps)).unwrap_or_default();
    if files.is_empty() {
        return Err(Failure::NoEvidence(path.display().to_string()));
    }
    let mut profiler = Profiler::new(LONG);
    let (mut statistics, mut notes) = (Vec::new(), Vec::new());
    for f in &files {
        statistics.extend(pace::seen(&String::from_utf8_lossy(&f.bytes)));
        profiler.begin(f.name.rsplit('/').next().unwrap_or(&f.name));
        profiler.feed(&f.bytes);
        profiler.feed(b"\n");
        if f.sifted.is_some() {
            notes.push(format!("{} is large: lines of single requests may be left out of it", f.name));
        }
    }
    let reports = report::triage_with(&name, files, gaps, &knowledge, None);
    // Before what triage advises: a load that holds in the KV cache is no proof of the other plane.
    if reports.iter().any(|r| r.verdict.class.plane() == Plane::Host) {
        notes.insert(0, "this death was of host RAM: whether the KV cache and the queue hold says nothing of whether host RAM would have".to_owned());
    }
    let (fixes, left) = fixes(reports.iter().flat_map(|r| &r.actions));
    notes.extend(left);
    let mut told = Told { shape: Err(String::new()), notes, statistics, fixes };
    match profiler.shape(&Options::default()) {
        Ok((mut shape, more)) => {
            told.notes.extend(more);
            if shape.arrival_per_second.is_none() {
                shape.arrival_per_second = told.rate(&shape);
            }
            told.shape = Ok(shape);
        }
        Err(why) => told.shape = Err(why.to_string()),
    }
    Ok(told)
}

/// The fixes that a rehearsal can try, and what is said of the others.
fn fixes<'a>(actions: impl Iterator<Item = &'a Action>) -> (Vec<Fix>, Vec<String>) {
    let (mut fixes, mut left) = (Vec::<Fix>::new(), Vec::new());
    for action in actions.filter(|a| a.stage == Stage::Fix) {
        match fix(action) {
            Some(f)
                if fixes.len() < FIXES && !fixes.iter().any(|x| x.set == f.set && x.without == f.without) =>
            {
                fixes.push(f);
            }
            Some(_) => {}
            None => left.push(format!("triage advises, and it is not rehearsed: {}", action.title)),
        }
    }
    (fixes, left)
}

/// The flags of a fix; none where it changes anything else, or what a rehearsal does not heed.
fn fix(action: &Action) -> Option<Fix> {
    let mut fix = Fix { title: action.title.clone(), set: Vec::new(), without: Vec::new() };
    for change in &action.changes {
        let Change::Setting(s) = change else { return None };
        let flag = s.names.iter().find(|n| n.starts_with('-') && flags::is_replaced(n))?;
        match &s.value {
            Some(value) => fix.set.extend([flag.clone(), value.clone()]),
            None => fix.without.push(flag.clone()),
        }
    }
    (!action.changes.is_empty()).then_some(fix)
}

impl Told {
    /// The time of a step, where the server printed its statistics under load.
    pub(super) fn step_time(&self) -> Option<StepTime> {
        pace::measured(&self.statistics)
    }

    /// Requests a second in the busiest ten seconds: tokens of prompts by their mean length.
    fn rate(&mut self, shape: &Shape) -> Option<f64> {
        let cells = shape.cells().ok()?;
        let (sum, all) = cells.iter().fold((0.0, 0.0), |(s, n), c| (s + c.input * c.share, n + c.share));
        let mean = if all > 0.0 { sum / all } else { 0.0 };
        let busiest = self.statistics.iter().map(|s| s.prompt).fold(0.0, f64::max);
        if mean < 1.0 || busiest <= 0.0 {
            return None;
        }
        let rate = busiest / mean;
        self.notes.push(format!(
            "{rate:.2} requests a second are the busiest ten seconds of the log: {busiest:.0} tokens of prompts a second, of \
             {mean:.0} on average"
        ));
        Some(rate)
    }
}
