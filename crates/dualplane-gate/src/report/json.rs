//! The answer as `dualplane.gate/v1`.

use dualplane_stats::compare::{Difference, From};
use serde_json::{Value, json};

use super::word;
use crate::gate::{Differs, Gate};

/// The id of the form.
pub const SCHEMA: &str = "dualplane.gate/v1";

/// The answer as a value.
#[must_use]
pub fn json(g: &Gate) -> Value {
    let differs = |all: &[Differs]| -> Vec<Value> {
        all.iter().map(|d| json!({"field": d.field, "baseline": d.one, "candidate": d.other})).collect()
    };
    let checks: Vec<Value> = g
        .checks
        .iter()
        .map(|c| {
            json!({
                "id": c.id,
                "outcome": word(c.outcome),
                "asked": c.asked,
                "found": c.found,
                "file": c.file,
                "difference": c.difference.as_ref().map(difference),
            })
        })
        .collect();
    json!({
        "schema": SCHEMA,
        "outcome": word(g.outcome),
        "candidate": g.candidate,
        "baseline": g.baseline,
        "released": differs(&g.released),
        "refused": differs(&g.refused),
        "checks": checks,
    })
}

fn difference(d: &Difference) -> Value {
    json!({
        "baseline": d.baseline,
        "candidate": d.candidate,
        "relative": d.relative,
        "low": d.low,
        "high": d.high,
        "confidence": d.confidence,
        "effect_size": d.delta,
        "n_baseline": d.n_baseline,
        "n_candidate": d.n_candidate,
        "from": match d.from { From::Repeats => "repeats", From::Windows => "windows" },
    })
}
