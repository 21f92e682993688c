//! How near a pool is after calibration from another start-up of the same machine.

use dualplane_base::units::GIB;
use dualplane_plan::{Calibration, Gpu, Launch, Plan};

use super::Table;
use super::row::{Row, text};

/// A start-up whose flags, card and pool are known.
pub(super) struct Start {
    id: String,
    model: String,
    source: String,
    plan: Plan,
    launch: Launch,
    gpu: Gpu,
    /// As printed, in GiB.
    pool: f64,
}

impl Start {
    pub(super) fn new(row: &Row, id: &str, plan: &Plan, launch: &Launch, gpu: &Gpu, pool: f64) -> Self {
        Self {
            id: id.to_owned(),
            model: text(row, "model").to_owned(),
            source: text(row, "source_url").to_owned(),
            plan: plan.clone(),
            launch: launch.clone(),
            gpu: gpu.clone(),
            pool,
        }
    }

    fn bytes(&self) -> u64 {
        (self.pool * GIB as f64) as u64
    }
}

/// Each start-up predicted from each other one that may calibrate it, and what may be of another machine.
pub(super) fn tables(starts: &[Start]) -> (Table, Vec<String>) {
    let mut table = Table::default();
    let mut apart = Vec::new();
    for from in starts {
        let residual = Calibration::of(&from.plan, &from.launch, &from.gpu, from.bytes(), None);
        for to in starts.iter().filter(|s| s.id != from.id && s.model == from.model) {
            let same_total = to.gpu.total_bytes == from.gpu.total_bytes;
            if !same_total || residual.unfit(&to.plan, &to.launch, &to.gpu).is_some() {
                continue;
            }
            let got = residual.pool(&to.plan).expected as f64 / GIB as f64;
            let off = (got / to.pool - 1.0) * 100.0;
            let line = format!(
                "{}: {} GiB, {got:.2} with the residual of {} ({off:+.2} %)",
                to.id, to.pool, from.id
            );
            // Two cards of one size are one machine only where they are named, or told of in one place.
            if to.source == from.source || !to.gpu.name.is_empty() {
                table.mark(off.abs() <= 2.0, || line);
            } else {
                apart.push(format!("{line}; the card is not named, and the sources differ"));
            }
        }
    }
    (table, apart)
}
