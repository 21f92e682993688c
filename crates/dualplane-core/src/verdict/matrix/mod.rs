//! Why VRAM was short, as a matrix of five rows: the weights, the KV cache, settings at the edge, the sharding, and what
//! schedules the pod. Each row says what speaks for it and what against it; the one with the most evidence comes first.

mod edge;
mod kv;
mod scene;
mod scheduling;
mod sharding;
mod weights;

use super::case::Case;
use super::pressure::Bound;
use super::rules::UNDER_PRESSURE;
use super::{Cause, Cited, Class, Confidence, Decided, Plane};
use dualplane_base::order::Order as _;
use scene::Scene;

/// A row with its evidence, each piece with its weight.
#[derive(Debug)]
struct Row {
    title: &'static str,
    supports: Vec<(u8, Cited)>,
    against: Vec<(u8, Cited)>,
}

/// It alone decides between rows.
const STRONG: u8 = 3;
/// It is as it would be if the row held.
const FITTING: u8 = 2;
/// It makes the row possible.
const WEAK: u8 = 1;

impl Row {
    fn new(title: &'static str) -> Self {
        Self { title, supports: Vec::new(), against: Vec::new() }
    }

    fn speaks(&mut self, weight: u8, cited: Cited) {
        self.supports.push((weight, cited));
    }

    fn speaks_against(&mut self, weight: u8, cited: Cited) {
        self.against.push((weight, cited));
    }

    fn score(&self) -> i32 {
        let sum = |all: &[(u8, Cited)]| all.iter().map(|(w, _)| i32::from(*w)).sum::<i32>();
        sum(&self.supports) - sum(&self.against)
    }

    /// More speaks for it than against it, and not only what makes it possible.
    fn holds(&self) -> bool {
        self.score() > 0 && self.supports.iter().any(|(w, _)| *w > WEAK)
    }

    fn cause(self, class: Class) -> Cause {
        let holds = self.holds();
        let sure = holds && self.score() >= i32::from(STRONG);
        let cited = |all: Vec<(u8, Cited)>| all.into_iter().map(|(_, c)| c).collect();
        Cause {
            class,
            title: self.title.to_owned(),
            confidence: if sure { Confidence::Medium } else { Confidence::Low },
            rejected: !holds,
            supports: cited(self.supports),
            against: cited(self.against),
        }
    }
}

/// The rows that the evidence tells of: those that hold, the likeliest first, then those that it speaks against.
pub(super) fn causes(case: &Case<'_>, decided: &Decided) -> Vec<Cause> {
    let short = case.pressure.as_ref().is_some_and(|p| matches!(p.bound, Bound::Gpu | Bound::Both));
    let living = decided.by == UNDER_PRESSURE && short;
    if decided.class.plane() != Plane::Gpu && !living {
        return Vec::new();
    }
    ranked(&Scene::of(case, decided)).into_iter().map(|row| row.cause(decided.class)).collect()
}

fn ranked(scene: &Scene) -> Vec<Row> {
    // Of as much evidence, cards that are left out go first: they are a mistake, the others a choice.
    let rows = [sharding::row, weights::row, kv::row, edge::row, scheduling::row];
    let mut out: Vec<Row> = rows.iter().map(|row| row(scene)).filter(tells).collect();
    out.order_by_key(|r| (!r.holds(), -r.score()));
    out
}

/// What speaks for a row only by making it possible says nothing.
fn tells(row: &Row) -> bool {
    row.holds() || !row.against.is_empty()
}

#[cfg(test)]
mod tests;
