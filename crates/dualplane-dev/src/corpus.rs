//! `dualplane dev corpus DIR`: verdicts against labels, with the confusion matrix and every miss.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use dualplane_base::{Class, Phase, Plane};
use dualplane_core::knowledge::Knowledge;
use dualplane_core::verdict::rules::TABLE;
use dualplane_core::verdict::weighing::WEIGHING;
use dualplane_report::{self as report, Report};

use super::label::{self, Labelled, Truth, is_failure};
use super::{DevError, Outcome, percent};

#[derive(Default)]
struct Tally {
    cases: usize,
    class: usize,
    plane_wrong: usize,
    trigger_labelled: usize,
    trigger: usize,
    trigger_spurious: usize,
    phase_labelled: usize,
    phase: usize,
    not_memory_called_memory: usize,
    confusion: BTreeMap<(Class, Class), usize>,
    /// Incidents that each rule decided, or weighed.
    by_rule: BTreeMap<&'static str, usize>,
    misses: String,
}

/// What is asked.
#[derive(Debug, clap::Args)]
pub struct CorpusArgs {
    /// Directory of incidents, each with a truth.json
    pub dir: PathBuf,
    /// Minimum percentage of correct classes
    #[arg(long, default_value_t = 97.0)]
    pub min_class: f64,
    /// Minimum percentage of correct trigger lines, among incidents that have one
    #[arg(long, default_value_t = 97.0)]
    pub min_trigger: f64,
    /// Also print incidents with a wrong phase
    #[arg(short, long)]
    pub verbose: bool,
}

pub(crate) fn run(args: &CorpusArgs) -> Result<Outcome, DevError> {
    let knowledge = Knowledge::embedded()?;
    let mut tally = Tally::default();
    for Labelled { name, truth, incident } in label::read(&args.dir, &knowledge)? {
        let reports = report::triage_all(&name, incident.files, incident.gaps, &knowledge);
        if let Some(r) = reports.first() {
            tally.add(&name, &truth, r, args.verbose);
        }
    }
    let good = tally.good(args);
    Ok(Outcome { text: tally.show(args, good), good })
}

impl Tally {
    fn add(&mut self, name: &str, truth: &Truth, r: &Report, verbose: bool) {
        let v = &r.verdict;
        self.cases += 1;
        for rule in std::iter::once(v.decided_by).chain(v.weighed.iter().copied()) {
            *self.by_rule.entry(rule).or_default() += 1;
        }
        *self.confusion.entry((truth.class, v.class)).or_default() += 1;
        let class_ok = truth.class == v.class;
        self.class += usize::from(class_ok);
        // "none" for a memory case is a miss of the class, not the wrong plane; a plane where there is none is wrong.
        let plane_ok = truth.plane == v.class.plane() || v.class.plane() == Plane::None;
        self.plane_wrong += usize::from(!plane_ok);
        let called = truth.class == Class::NotMemory && is_failure(v.class);
        self.not_memory_called_memory += usize::from(called);
        if let Some(phase) = truth.phase {
            self.phase_labelled += 1;
            self.phase += usize::from(phase == v.phase);
        }
        let text = v.trigger.as_ref().map(|t| t.text.trim_end());
        let file = v.trigger.as_ref().map(|t| t.place.file.as_str());
        let trigger_ok = match &truth.trigger_line {
            Some(line) => {
                self.trigger_labelled += 1;
                let file_ok = truth.trigger_file.as_deref().is_none_or(|f| file == Some(f));
                let ok = text == Some(line.trim_end()) && file_ok;
                self.trigger += usize::from(ok);
                ok
            }
            None => {
                self.trigger_spurious += usize::from(text.is_some());
                text.is_none()
            }
        };
        let phase_ok = truth.phase.is_none_or(|p| p == v.phase);
        if verbose && !phase_ok || !class_ok || !trigger_ok {
            let _ = writeln!(
                self.misses,
                "{name}: wanted {} ({}), got {} ({}, {})",
                truth.class,
                truth.phase.map_or("-", Phase::as_str),
                v.class,
                v.phase,
                v.confidence
            );
            if !trigger_ok {
                let _ = writeln!(self.misses, "  wanted line: {}", short(truth.trigger_line.as_deref()));
                let _ = writeln!(
                    self.misses,
                    "  got line:    {} [{}]",
                    short(text),
                    v.trigger.as_ref().map_or("", |t| t.signature.as_str())
                );
            }
            let _ = writeln!(self.misses, "  {}", dualplane_base::text::shorten(&v.summary, 160));
        }
    }

    fn good(&self, args: &CorpusArgs) -> bool {
        percent(self.class, self.cases) >= args.min_class
            && percent(self.trigger, self.trigger_labelled) >= args.min_trigger
            && self.plane_wrong == 0
            && self.not_memory_called_memory == 0
    }

    fn show(&self, args: &CorpusArgs, good: bool) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "confusion (wanted → got, only where they differ):");
        let wrong: Vec<_> = self.confusion.iter().filter(|((w, g), _)| w != g).collect();
        for ((wanted, got), n) in &wrong {
            let _ = writeln!(out, "  {n:>3}  {wanted:<22} → {got}");
        }
        if wrong.is_empty() {
            let _ = writeln!(out, "  none");
        }
        let _ = writeln!(out, "per class (right/labelled):");
        for class in Class::ALL {
            let labelled: usize =
                self.confusion.iter().filter(|((w, _), _)| w == class).map(|(_, n)| n).sum();
            if labelled > 0 {
                let right = self.confusion.get(&(*class, *class)).copied().unwrap_or(0);
                let _ = writeln!(out, "  {class:<22} {right:>3}/{labelled}");
            }
        }
        let count = |id: &str| self.by_rule.get(id).copied().unwrap_or(0);
        let _ = writeln!(out, "incidents that a rule decided:");
        for rule in TABLE {
            let _ = writeln!(out, "  {:<26} {:>3}", rule.id, count(rule.id));
        }
        let _ = writeln!(out, "incidents to which a weighing rule added:");
        for rule in WEIGHING {
            let _ = writeln!(out, "  {:<26} {:>3}", rule.id, count(rule.id));
        }
        if !self.misses.is_empty() {
            let _ = writeln!(out, "misses:\n{}", self.misses.trim_end());
        }
        let _ = writeln!(
            out,
            "class    {:>6.2} %  ({}/{}, bound {} %)",
            percent(self.class, self.cases),
            self.class,
            self.cases,
            args.min_class
        );
        let _ = writeln!(
            out,
            "trigger  {:>6.2} %  ({}/{}, bound {} %)",
            percent(self.trigger, self.trigger_labelled),
            self.trigger,
            self.trigger_labelled,
            args.min_trigger
        );
        let _ = writeln!(out, "trigger given where the label has none: {}", self.trigger_spurious);
        let _ = writeln!(
            out,
            "phase    {:>6.2} %  ({}/{}, no bound)",
            percent(self.phase, self.phase_labelled),
            self.phase,
            self.phase_labelled
        );
        let _ = writeln!(out, "wrong plane: {} (bound 0)", self.plane_wrong);
        let _ = writeln!(out, "not_memory called memory: {} (bound 0)", self.not_memory_called_memory);
        let _ = writeln!(out, "{}", if good { "within bounds" } else { "BELOW BOUNDS" });
        out
    }
}

fn short(text: Option<&str>) -> String {
    text.map_or_else(
        || "(none)".to_owned(),
        |t| dualplane_base::text::printable(&dualplane_base::text::shorten(t, 150)).into_owned(),
    )
}
