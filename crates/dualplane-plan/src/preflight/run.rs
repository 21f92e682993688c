//! The GPUs of a machine, one after the other, and what follows of all of them together.

use super::change;
use super::choose::{Chosen, choose};
use super::holders;
use super::need::{self, Ask};
use super::outcome::{Change, Finding, GpuRow, Outcome, Where};
use super::place;
use super::seen::{Card, Seen};
use super::wanted;
use crate::card::Placed;
use crate::host::HostReport as Report;
use crate::{PlanError, Unknown, Verdict};
use dualplane_base::gpu::Gpu as Known;
use dualplane_base::units::Bytes;

/// A size that is off by more than one part of so many is another card's: spreads of one card are below 1 %.
const OTHER: u64 = 50;

pub(super) struct Run<'a> {
    ask: Option<&'a Ask<'a>>,
    seen: &'a Seen,
    known: &'a [Known],
    pub(super) findings: Vec<Finding>,
    /// What is so of one card or of several alike, with their names.
    of_gpus: Vec<(Vec<String>, Finding)>,
    pub(super) changes: Vec<Change>,
    pub(super) unknown: Vec<Unknown>,
}

impl<'a> Run<'a> {
    pub(super) fn new(ask: Option<&'a Ask<'a>>, seen: &'a Seen, known: &'a [Known]) -> Self {
        let (findings, of_gpus, changes, unknown) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { ask, seen, known, findings, of_gpus, changes, unknown }
    }

    fn find(&mut self, outcome: Outcome, plane: Where, what: impl Into<String>, settle: &str) {
        let f = Finding::new(outcome, plane, what);
        self.findings.push(if settle.is_empty() { f } else { f.settle(settle) });
    }

    /// The same of several cards is said once.
    fn of_gpu(&mut self, row: &GpuRow, outcome: Outcome, what: String, settle: &str) {
        let mut finding = Finding::new(outcome, Where::Gpu, what);
        if !settle.is_empty() {
            finding = finding.settle(settle);
        }
        match self.of_gpus.iter_mut().find(|(_, f)| *f == finding) {
            Some((names, _)) => names.push(title(row)),
            None => self.of_gpus.push((vec![title(row)], finding)),
        }
    }

    /// A row for each GPU that the server sees, how they were chosen, and the host plane of the plan.
    pub(super) fn gpus(&mut self) -> Result<(Vec<GpuRow>, String, Option<Report>), PlanError> {
        let cards = match &self.seen.gpus {
            Ok(cards) => cards,
            Err(why) => {
                self.find(
                    Outcome::Unknown,
                    Where::Gpu,
                    format!("cannot read any GPU: {why}"),
                    "run it where the driver is available: in a container with its own GPU (resources, or \
                    runtimeClassName nvidia)",
                );
                return Ok((Vec::new(), String::new(), None));
            }
        };
        let chosen = choose(cards, &self.seen.visible);
        if let Some(lost) = &chosen.lost {
            self.unknown.push(Unknown {
                what: format!(
                    "{}: `{lost}` matches no device here, and CUDA ignores the rest of the \
                list",
                    chosen.by
                ),
                settle: "nvidia-smi -L lists the devices".into(),
            });
        }
        let wanted =
            self.ask.map_or(chosen.places.len(), |a| usize::try_from(wanted(a)).unwrap_or(usize::MAX));
        let mut report = None;
        let mut rows = Vec::new();
        for (n, at) in chosen.places.iter().enumerate() {
            let Some(card) = cards.get(*at) else { continue };
            let parent = card.parent.and_then(|p| cards.get(p));
            let (row, of_plan) = self.row(card, parent, n < wanted)?;
            report = report.or(of_plan);
            rows.push(row);
        }
        for (names, mut finding) in std::mem::take(&mut self.of_gpus) {
            finding.what = format!("{}: {}", names.join(", "), finding.what);
            self.findings.push(finding);
        }
        self.mixed(&rows);
        self.count(cards, &chosen, wanted, &rows);
        self.elsewhere(cards, &rows, wanted);
        Ok((rows, chosen.by, report))
    }

    /// One card, with the host plane of the plan for it.
    fn row(
        &mut self,
        card: &Card,
        parent: Option<&Card>,
        taken: bool,
    ) -> Result<(GpuRow, Option<Report>), PlanError> {
        let held = holders::held(card);
        let rest = holders::unexplained(card, self.seen.pids);
        let mut row = GpuRow {
            index: card.index,
            uuid: card.uuid.clone(),
            name: card.name.clone(),
            card: None,
            mig: card.parent.is_some(),
            taken,
            total: card.total.map(|t| t.saturating_sub(card.reserved.unwrap_or_default())),
            free: card.free,
            used: card.used,
            need: None,
            empty: None,
            now: None,
            message: None,
            holders: held,
            unexplained: rest,
            outcome: Outcome::Unknown,
        };
        if card.free.is_none() || card.used.is_none() {
            self.gap(&row, "it does not report its memory, or does not respond".into());
            return Ok((row, None));
        }
        let Some(ask) = self.ask else {
            self.without_launch(&mut row);
            return Ok((row, None));
        };
        let placed = match ask.named_card {
            Some(p) => p.clone(),
            None => match place::of(card, parent, self.known) {
                Ok(p) => p,
                Err(why) => {
                    self.gap(&row, why);
                    return Ok((row, None));
                }
            },
        };
        row.card = Some(placed.gpu.name.clone());
        self.another(&row, &placed);
        if ask.named_card.is_none() {
            row.total = Some(Bytes(placed.gpu.total_bytes));
        }
        let answer = match ask.empty(&placed) {
            Ok(answer) => answer,
            // What a card refuses that nobody takes is no mistake in the command line.
            Err(_) if !taken => return Ok((row, None)),
            Err(e) => return Err(e),
        };
        if taken {
            self.learn(&answer.unknown);
        }
        match ask.fit(&placed, card)? {
            Some(fit) => {
                row.need = Some(fit.need);
                row.empty = Some(fit.empty);
                row.now = fit.now;
                row.message = fit.message.clone().or_else(|| fit.refusal.clone());
                self.judge(&mut row, &placed, &fit);
            }
            None => self.gap(&row, answer.message()),
        }
        Ok((row, Some(answer.host)))
    }

    /// A card that was named, and is not the one that is here.
    fn another(&mut self, row: &GpuRow, placed: &Placed) {
        let (named, here) = (placed.gpu.total_bytes, row.total.map_or(0, |t| t.0));
        if self.ask.is_some_and(|a| a.named_card.is_some())
            && row.taken
            && named.abs_diff(here) > here / OTHER
        {
            self.learn(&[Unknown {
                what: format!(
                    "{} has {}, but was named as {} with {}",
                    title(row),
                    Bytes(here),
                    placed.gpu.name,
                    Bytes(named)
                ),
                settle: "omit --gpu and --gpu-memory: the driver identifies the GPU".into(),
            }]);
        }
    }

    /// What keeps a card from being judged; of a card that is not taken it matters to nobody.
    fn gap(&mut self, row: &GpuRow, what: String) {
        if row.taken {
            self.of_gpu(row, Outcome::Unknown, what, "");
        }
    }

    fn learn(&mut self, unknown: &[Unknown]) {
        for u in unknown {
            if !self.unknown.contains(u) {
                self.unknown.push(u.clone());
            }
        }
    }

    /// Without a launch: an empty card is good.
    fn without_launch(&mut self, row: &mut GpuRow) {
        let idle = row.used.is_some_and(|u| u.0 <= holders::IDLE) && row.holders.is_empty();
        row.outcome = if idle { Outcome::Go } else { Outcome::Wait };
        if !idle {
            let who = holders::sentence(&row.holders, row.unexplained)
                .unwrap_or_else(|| format!("{} are in use", row.used.unwrap_or_default()));
            let settle = holders::settle(&row.holders, row.unexplained, row.index);
            self.of_gpu(row, Outcome::Wait, who, &settle);
        }
    }

    fn judge(&mut self, row: &mut GpuRow, placed: &Placed, fit: &need::Fit) {
        let idle = row.used.is_some_and(|u| u.0 <= holders::IDLE) && row.holders.is_empty();
        row.outcome = match (fit.empty, fit.now) {
            (Verdict::Refused, _) => Outcome::CannotFit,
            (Verdict::Uncertain, _) => Outcome::Unknown,
            (Verdict::Fits, Some(Verdict::Fits)) => Outcome::Go,
            // Nobody is there who could give anything back.
            (Verdict::Fits, _) if idle => Outcome::Unknown,
            (Verdict::Fits, _) => Outcome::Wait,
        };
        if !row.taken {
            return;
        }
        let (free, total) = (row.free.unwrap_or_default(), Bytes(placed.gpu.total_bytes));
        let need = format!("{} to {}", Bytes(fit.need.low), Bytes(fit.need.high));
        let who = || {
            holders::sentence(&row.holders, row.unexplained)
                .unwrap_or_else(|| format!("{} are in use", row.used.unwrap_or_default()))
        };
        let (outcome, what, settle) = match row.outcome {
            Outcome::Go => return,
            Outcome::Wait => (
                Outcome::Wait,
                format!("{free} of {total} are free; the server needs {need}; {}", who()),
                holders::settle(&row.holders, row.unexplained, row.index),
            ),
            Outcome::Unknown => {
                let held = if idle { String::new() } else { format!("; {}", who()) };
                (
                    Outcome::Unknown,
                    format!(
                        "{free} of {total} are free and the server needs {need}; the uncertainty of the \
                        plan is too large to decide{held}"
                    ),
                    "calibrate with one start-up (dualplane plan --from-log, --calibration), or leave \
                    more room"
                        .into(),
                )
            }
            Outcome::CannotFit => {
                let what = match fit.too_little {
                    Some(may_take) => format!(
                        "weights, one step and one full-length request need {need}; of the empty GPU's \
                        {total}, the engine may use {may_take}"
                    ),
                    None => format!("{need} must be free, but the empty GPU has only {total}"),
                };
                (Outcome::CannotFit, what, String::new())
            }
        };
        self.of_gpu(row, outcome, what, &settle);
        if outcome == Outcome::CannotFit {
            self.changes_for(placed, row.mig);
        }
    }

    fn changes_for(&mut self, placed: &Placed, mig: bool) {
        let Some(ask) = self.ask else { return };
        let cards = if mig { 1 } else { self.cards() };
        let mut found = change::flags(ask, &placed.gpu, cards);
        if mig {
            found.extend(change::slice(ask, &placed.gpu.name, placed.gpu.total_bytes, self.known));
        }
        for c in found {
            if !self.changes.contains(&c) {
                self.changes.push(c);
            }
        }
    }

    /// Whole cards that the server sees.
    fn cards(&self) -> u64 {
        let Ok(cards) = &self.seen.gpus else { return 0 };
        choose(cards, &self.seen.visible).places.len() as u64
    }

    /// Too few GPUs, or slices that cannot work together.
    fn count(&mut self, cards: &[Card], chosen: &Chosen, wanted: usize, rows: &[GpuRow]) {
        let Some(ask) = self.ask else {
            if rows.is_empty() {
                self.find(Outcome::Unknown, Where::Gpu, format!("no GPU is visible ({})", chosen.by), "");
            }
            return;
        };
        let launch = &ask.line.launch;
        let ranks = launch.tp.saturating_mul(launch.pp);
        let elsewhere = ask.line.host.ray || ask.line.host.several_nodes;
        if rows.len() < wanted {
            let undivided =
                cards.iter().enumerate().any(|(i, c)| c.mig && !cards.iter().any(|d| d.parent == Some(i)));
            let more = if undivided { "; MIG is enabled, but a GPU has no instance" } else { "" };
            let what =
                format!("the launch uses {wanted} GPUs; visible here: {} ({}){more}", rows.len(), chosen.by);
            if elsewhere {
                self.find(
                    Outcome::Unknown,
                    Where::Gpu,
                    what,
                    "its ranks may run on other nodes: check each node",
                );
            } else {
                self.find(Outcome::CannotFit, Where::Gpu, what, "");
                self.changes.push(Change {
                    change: format!("resources.limits nvidia.com/gpu: {wanted}"),
                    because: format!("tensor × pipeline × data parallel: {wanted} ranks, one GPU each"),
                });
                if let Some(placed) = self.placed(rows, cards) {
                    self.changes_for(&placed, false);
                }
            }
        }
        if ranks > 1 && rows.iter().any(|r| r.taken && r.mig) {
            self.find(
                Outcome::CannotFit,
                Where::Gpu,
                format!(
                    "{ranks} ranks on MIG instances: instances cannot access each other's memory, and \
                CUDA exposes only one to a process"
                ),
                "whole GPUs, or one rank on a larger instance",
            );
            let first = rows.iter().find(|r| r.mig).and_then(|r| r.card.clone());
            let known = self.known;
            self.changes.extend(first.and_then(|card| change::slice(ask, &card, 0, known)));
        }
    }

    fn placed(&self, rows: &[GpuRow], cards: &[Card]) -> Option<Placed> {
        if let Some(p) = self.ask.and_then(|a| a.named_card) {
            return Some(p.clone());
        }
        let row = rows.first()?;
        let card = cards.iter().find(|c| c.uuid == row.uuid)?;
        place::of(card, card.parent.and_then(|p| cards.get(p)), self.known).ok()
    }

    /// Cards of several kinds: CUDA counts the fastest first unless it is told otherwise.
    fn mixed(&mut self, rows: &[GpuRow]) {
        let first = rows.first().map(|r| &r.name);
        let numbered = !self.seen.visible.cuda.as_deref().unwrap_or_default().contains('-');
        if numbered && rows.iter().any(|r| Some(&r.name) != first) {
            self.unknown.push(Unknown {
                what: "the order of different GPU models: CUDA lists the fastest first, the driver sorts \
                by PCI bus"
                    .into(),
                settle: "CUDA_DEVICE_ORDER=PCI_BUS_ID, or UUIDs in CUDA_VISIBLE_DEVICES".into(),
            });
        }
    }

    /// Others that are free while those that it takes are held, and a share that fits beside the holders.
    fn elsewhere(&mut self, cards: &[Card], rows: &[GpuRow], wanted: usize) {
        let Some(ask) = self.ask else { return };
        let taken = || rows.iter().filter(|r| r.taken);
        if !taken().any(|r| r.outcome == Outcome::Wait) || taken().any(|r| r.outcome > Outcome::Wait) {
            return;
        }
        let good: Vec<&str> =
            rows.iter().filter(|r| r.outcome == Outcome::Go).map(|r| r.uuid.as_str()).take(wanted).collect();
        if good.len() == wanted {
            self.changes.push(Change {
                change: format!("CUDA_VISIBLE_DEVICES={}", good.join(",")),
                because: "free now".into(),
            });
        }
        let least = taken().min_by_key(|r| r.free);
        let placed = least.and_then(|r| self.placed(std::slice::from_ref(r), cards));
        if let (Some(free), Some(placed)) = (least.and_then(|r| r.free), placed) {
            self.changes.extend(change::beside(ask, &placed.gpu, free.0));
        }
    }

    /// The host plane where no card is at hand: it does not depend much on one.
    pub(super) fn report_without_gpu(&self, ask: &Ask<'_>) -> Option<Report> {
        let placed = match ask.named_card {
            Some(p) => p.clone(),
            None => crate::card::place(self.known, Some("H100-80GB"), None).ok()?,
        };
        ask.empty(&placed).ok().map(|a| a.host)
    }
}

/// `GPU 0` or `GPU 0 MIG-…`.
fn title(row: &GpuRow) -> String {
    if row.mig { format!("GPU {} {}", row.index, row.uuid) } else { format!("GPU {}", row.index) }
}
