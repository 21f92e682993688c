//! `dualplane dev cuts DIR`: takes evidence away from labelled incidents, and counts the verdicts that its rest does not
//! carry: an all-clear where memory failed, the other plane, memory where it was something else.

mod draw;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use dualplane_base::{Class, Confidence, Plane};
use dualplane_core::knowledge::Knowledge;
use dualplane_core::verdict::Verdict;
use dualplane_core::verdict::rules::{self, Ruled, Ruling, Stage};
use dualplane_report as report;

use self::draw::Cut;
use super::label::{self, Labelled, Truth, is_failure};
use super::{DevError, Outcome, percent};
use crate::chance::Rng;

const SEED: u64 = 14;
const MAX_ALL_CLEAR: f64 = 1.0;
const MAX_OTHER_PLANE: f64 = 0.5;
/// Where the cut takes the object away that shows whose a kernel's record or a counter is, it is judged by itself.
const MAX_ALARM: f64 = 7.0;

/// What is asked.
#[derive(Debug, Clone, clap::Args)]
pub struct CutsArgs {
    /// Directory of incidents, each with a truth.json
    pub dir: PathBuf,
    /// Draws per incident and kind of cut
    #[arg(long, default_value_t = 10)]
    pub draws: u32,
    /// Seed of the draws
    #[arg(long, default_value_t = SEED)]
    pub seed: u64,
    /// Maximum percentage of memory failures that a cut turns into not_memory
    #[arg(long, default_value_t = MAX_ALL_CLEAR)]
    pub max_all_clear: f64,
    /// Maximum percentage of memory failures that a cut moves to another plane
    #[arg(long, default_value_t = MAX_OTHER_PLANE)]
    pub max_other_plane: f64,
    /// Maximum percentage of other failures that a cut turns into a memory failure
    #[arg(long, default_value_t = MAX_ALARM)]
    pub max_alarm: f64,
    /// Also print each wrong verdict
    #[arg(short, long)]
    pub verbose: bool,
}

impl CutsArgs {
    /// With the seed and bounds that the command has.
    #[must_use]
    pub fn of(dir: PathBuf, draws: u32) -> Self {
        let seed = SEED;
        let (max_all_clear, max_other_plane, max_alarm) = (MAX_ALL_CLEAR, MAX_OTHER_PLANE, MAX_ALARM);
        Self { dir, draws, seed, max_all_clear, max_other_plane, max_alarm, verbose: false }
    }
}

/// What a cut made of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wrong {
    /// A failure, called not memory.
    AllClear,
    /// The same, of a pod whose status says that it lives: it is right that nothing ended, and the failed request or child
    /// stands in what was taken away. Within the same bound.
    Alive,
    /// A failure, moved to another plane.
    OtherPlane,
    /// The same, to a plane that failed as well, later: the first error stands in what was taken away. No bound.
    LaterStep,
    /// Another failure, called one of memory or hardware.
    Alarm,
    /// The same, by an error that is in the evidence and that the server survived: what ended it stands in what was taken
    /// away. No bound.
    Survived,
}

/// What the whole evidence says.
struct Whole {
    /// The pod runs and is ready.
    lives: bool,
    /// Planes of all steps.
    planes: Vec<Plane>,
}

impl Whole {
    fn of(v: &Verdict) -> Self {
        let ready = |r: &Ruled| r.rule == "stays_ready" && !matches!(r.ruling, Ruling::NotMet(_));
        let planes = v.sequence.iter().map(|s| s.class.plane()).collect();
        Self { lives: v.trace.iter().any(ready), planes }
    }
}

#[derive(Default)]
struct Tally {
    /// Cuts of incidents whose label is a failure of memory or hardware.
    failures: usize,
    /// Of those: still a failure of the same plane.
    named: usize,
    /// Cuts of incidents whose label is not_memory.
    others: usize,
    /// Of those: still not_memory.
    cleared: usize,
    wrong: BTreeMap<Wrong, usize>,
    /// Of the later steps: those that were named with high confidence.
    sure: usize,
}

pub(crate) fn run(args: &CutsArgs) -> Result<Outcome, DevError> {
    let knowledge = Knowledge::embedded()?;
    let incidents = label::read(&args.dir, &knowledge)?;
    let judged = |name: &str, files| {
        let reports = report::triage_all(name, files, Vec::new(), &knowledge);
        reports.into_iter().next().map(|r| r.verdict)
    };
    let whole: Vec<Option<Whole>> =
        incidents.iter().map(|i| Some(Whole::of(&judged(&i.name, i.incident.files.clone())?))).collect();
    let mut out = String::new();
    let mut all = Tally::default();
    let mut rules: BTreeMap<(Wrong, &'static str), usize> = BTreeMap::new();
    for cut in Cut::ALL {
        let mut tally = Tally::default();
        for draw in 0..args.draws {
            for (Labelled { name, truth, incident }, whole) in incidents.iter().zip(&whole) {
                let Some(left) = cut.of(&incident.files, &mut Rng::of(args.seed, name, draw)) else {
                    continue;
                };
                let shown = args.verbose.then(|| describe(&left));
                let Some((v, whole)) = judged(name, left).zip(whole.as_ref()) else { continue };
                let Some(wrong) = tally.add(truth, whole, &v) else { continue };
                *rules.entry((wrong, v.decided_by)).or_default() += 1;
                if let Some(left) = shown {
                    let _ = writeln!(
                        out,
                        "{wrong:?} by {}: {name} ({}) got {} ({})\n{left}",
                        v.decided_by,
                        truth.class,
                        v.class,
                        dualplane_base::text::shorten(&v.summary, 120)
                    );
                }
            }
        }
        let _ = writeln!(out, "{}:\n{}", cut.title(), tally.show());
        all.take(&tally);
    }
    for ((wrong, rule), n) in rules {
        let _ = writeln!(out, "{n:>5}  {wrong:?} by {rule}");
    }
    let good = all.failures > 0
        && all.share(Wrong::AllClear) + all.share(Wrong::Alive) <= args.max_all_clear
        && all.share(Wrong::OtherPlane) <= args.max_other_plane
        && all.share(Wrong::Alarm) <= args.max_alarm;
    let _ = writeln!(out, "all cuts:\n{}", all.show());
    let _ = writeln!(out, "{}", if good { "within bounds" } else { "BEYOND BOUNDS" });
    Ok(Outcome { text: out, good })
}

impl Tally {
    fn add(&mut self, truth: &Truth, whole: &Whole, v: &Verdict) -> Option<Wrong> {
        let wrong = if is_failure(truth.class) {
            self.failures += 1;
            let plane = v.class.plane();
            self.named += usize::from(plane == truth.plane);
            let moved = plane != truth.plane && plane != Plane::None;
            match v.class {
                Class::NotMemory if whole.lives => Some(Wrong::Alive),
                Class::NotMemory => Some(Wrong::AllClear),
                _ if moved && whole.planes.contains(&plane) => Some(Wrong::LaterStep),
                _ => moved.then_some(Wrong::OtherPlane),
            }
        } else if truth.class == Class::NotMemory {
            self.others += 1;
            self.cleared += usize::from(v.class == Class::NotMemory);
            let survived = rules::rule(v.decided_by).is_some_and(|r| r.stage == Stage::Symptom);
            match is_failure(v.class) {
                true if survived => Some(Wrong::Survived),
                called => called.then_some(Wrong::Alarm),
            }
        } else {
            None
        };
        if let Some(wrong) = wrong {
            self.sure += usize::from(wrong == Wrong::LaterStep && v.confidence == Confidence::High);
            *self.wrong.entry(wrong).or_default() += 1;
        }
        wrong
    }

    fn take(&mut self, other: &Self) {
        self.failures += other.failures;
        self.named += other.named;
        self.others += other.others;
        self.cleared += other.cleared;
        self.sure += other.sure;
        for (wrong, n) in &other.wrong {
            *self.wrong.entry(*wrong).or_default() += n;
        }
    }

    fn count(&self, wrong: Wrong) -> usize {
        self.wrong.get(&wrong).copied().unwrap_or(0)
    }

    fn share(&self, wrong: Wrong) -> f64 {
        let whole = if matches!(wrong, Wrong::Alarm | Wrong::Survived) { self.others } else { self.failures };
        if whole == 0 { 0.0 } else { percent(self.count(wrong), whole) }
    }

    fn show(&self) -> String {
        let mut out = String::new();
        let mut row = |what: &str, n: usize, whole: usize| {
            let _ = writeln!(out, "  {what:<36} {n:>6}/{whole}  {:>6.2} %", percent(n, whole));
        };
        row("failures: the plane still named", self.named, self.failures);
        row("failures called not_memory", self.count(Wrong::AllClear), self.failures);
        row("  of a pod that lives", self.count(Wrong::Alive), self.failures);
        let both = |a: Wrong, b: Wrong| self.count(a) + self.count(b);
        row("  both", both(Wrong::AllClear, Wrong::Alive), self.failures);
        row("failures moved to another plane", self.count(Wrong::OtherPlane), self.failures);
        row("  to that of a later step", self.count(Wrong::LaterStep), self.failures);
        row("    with high confidence", self.sure, self.failures);
        row("  both", both(Wrong::OtherPlane, Wrong::LaterStep), self.failures);
        row("not_memory still said", self.cleared, self.others);
        row("not_memory called a failure", self.count(Wrong::Alarm), self.others);
        row("  by an error that was survived", self.count(Wrong::Survived), self.others);
        out
    }
}

/// What was left, for a person who wants to see why.
fn describe(files: &[dualplane_core::evidence::RawFile]) -> String {
    let mut out = String::new();
    for f in files {
        let text = String::from_utf8_lossy(&f.bytes);
        let lines: Vec<&str> = text.lines().collect();
        let _ = writeln!(out, "    {} ({} lines)", f.name, lines.len());
        if !f.name.ends_with(".json") {
            let last = lines.len().saturating_sub(2);
            for line in lines.iter().enumerate().filter(|(i, _)| *i < 2 || *i >= last).map(|(_, l)| l) {
                let line = dualplane_base::text::shorten(line, 140);
                let _ = writeln!(out, "      | {}", dualplane_base::text::printable(&line));
            }
        }
    }
    out
}
