//! `dualplane dev advice DIR`: how much of what is advised can be carried out: computed settings, and patches for them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use dualplane_base::{Class, Plane};
use dualplane_core::knowledge::Knowledge;
use dualplane_report::{self as report, Report};

use super::label::{self, Labelled};
use super::{DevError, Outcome, percent};

/// What is asked.
#[derive(Debug, clap::Args)]
pub struct AdviceArgs {
    /// Directory of incidents, each with a truth.json
    pub dir: PathBuf,
    /// Minimum percentage of incidents of the GPU plane with a patch, among those with a pod and a computed setting
    #[arg(long, default_value_t = 80.0)]
    pub min_patch: f64,
    /// Also print each of these incidents without a patch
    #[arg(short, long)]
    pub verbose: bool,
}

/// Incidents of one class.
#[derive(Default)]
struct Row {
    cases: usize,
    /// A number was computed for a setting.
    computed: usize,
    /// That, and the evidence holds the pod.
    with_pod: usize,
    /// That, and the pod names its owner.
    owned: usize,
    /// Of `with_pod`, those with a patch.
    patched: usize,
    /// Of `owned`, those with a patch.
    owned_patched: usize,
}

pub(crate) fn run(args: &AdviceArgs) -> Result<Outcome, DevError> {
    let knowledge = Knowledge::embedded()?;
    let mut rows: BTreeMap<Class, Row> = BTreeMap::new();
    let mut without = String::new();
    for Labelled { name, incident, .. } in label::read(&args.dir, &knowledge)? {
        for r in report::triage_all(&name, incident.files, incident.gaps, &knowledge).iter().take(1) {
            if !rows.entry(r.verdict.class).or_default().add(r) {
                let _ = writeln!(without, "  {name}: {}", why(r));
            }
        }
    }
    let mut out = format!(
        "{:<22} {:>9} {:>9} {:>9} {:>9} {:>9}\n",
        "class", "incidents", "computed", "with pod", "owned", "patch"
    );
    for (class, r) in &rows {
        let _ = writeln!(
            out,
            "{:<22} {:>9} {:>9} {:>9} {:>9} {:>9}",
            class.to_string(),
            r.cases,
            r.computed,
            r.with_pod,
            r.owned,
            r.patched
        );
    }
    if args.verbose && !without.is_empty() {
        let _ = writeln!(out, "computed, with a pod, and no patch:\n{}", without.trim_end());
    }
    let gpu = || rows.iter().filter(|(c, _)| c.plane() == Plane::Gpu).map(|(_, r)| r);
    let sum = |of: fn(&Row) -> usize| gpu().map(of).sum::<usize>();
    let (patched, with_pod) = (sum(|r| r.patched), sum(|r| r.with_pod));
    let good = percent(patched, with_pod) >= args.min_patch;
    let _ = writeln!(
        out,
        "GPU plane, a patch where there is a pod and a computed setting: {:.2} %  ({patched}/{with_pod}, bound {} %)",
        percent(patched, with_pod),
        args.min_patch
    );
    let (patched, owned) = (sum(|r| r.owned_patched), sum(|r| r.owned));
    let _ = writeln!(out, "  of these with an owner: {patched}/{owned}");
    let _ = writeln!(out, "{}", if good { "within bounds" } else { "BELOW BOUNDS" });
    Ok(Outcome { text: out, good })
}

impl Row {
    /// Counts a report; `false` where it computes a setting for a pod and has no patch for it.
    fn add(&mut self, r: &Report) -> bool {
        self.cases += 1;
        let mut turned = r.actions.iter().filter(|a| !a.changes.is_empty()).peekable();
        if turned.peek().is_none() {
            return true;
        }
        self.computed += 1;
        let subject = &r.verdict.subject;
        let Some(pod) = subject.pod_of(&r.bundle) else { return true };
        // A cut-out of a pod may lack its arguments.
        let mut dead = pod.containers.iter().filter(|c| Some(&c.name) == subject.container.as_ref());
        if !dead.any(|c| c.invocation.is_some()) {
            return true;
        }
        self.with_pod += 1;
        let patch = turned.any(|a| a.patch.is_some());
        self.patched += usize::from(patch);
        if pod.owner.is_some() {
            self.owned += 1;
            self.owned_patched += usize::from(patch);
        }
        patch
    }
}

/// What the actions themselves say of it.
fn why(r: &Report) -> &str {
    let lines = r.actions.iter().filter(|a| !a.changes.is_empty()).flat_map(|a| &a.arithmetic);
    lines.map(String::as_str).find(|l| l.starts_with("no patch")).unwrap_or("it is so already")
}
