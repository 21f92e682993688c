//! `--list-models`, `--list-gpus`, `--list-engines`.

use dualplane_base::near::near;
use dualplane_core::knowledge::KnowledgeError;
use dualplane_plan::report::plan as report;
use dualplane_plan::{EngineKind, card, catalogue};

use super::Failure;
use crate::args::PlanArgs;
use crate::output;

/// The list that was asked for.
pub(super) fn asked(args: &PlanArgs) -> Result<Option<String>, Failure> {
    let style = output::style(args.color, args.verbose);
    if let Some(pattern) = &args.list_models {
        let found = catalogue::list(pattern);
        if found.is_empty() {
            return Err(none(
                "--list-models",
                "model of the catalogue",
                pattern,
                &catalogue::near(pattern, 4),
            ));
        }
        return Ok(Some(report::models_text(&found, style)));
    }
    if let Some(pattern) = &args.list_gpus {
        let cards = card::embedded().map_err(KnowledgeError::from)?;
        let (found, machines) = card::list(&cards, pattern);
        if found.is_empty() && machines.is_empty() {
            let names = cards.iter().map(|c| c.id.as_str()).chain(card::machines().map(|(n, ..)| n));
            return Err(none("--list-gpus", "GPU or machine", pattern, &near(pattern, names)));
        }
        return Ok(Some(report::cards_text(&found, &machines, style)));
    }
    let Some(pattern) = &args.list_engines else { return Ok(None) };
    let text = report::engines_text(pattern, style);
    let names = EngineKind::ALL.map(|e| e.to_string());
    let near = near(pattern, names.iter().map(String::as_str));
    text.map(Some).ok_or_else(|| none("--list-engines", "engine", pattern, &near))
}

/// What a person is told who asked for something that no list holds.
fn none(flag: &'static str, what: &str, pattern: &str, near: &[&str]) -> Failure {
    let pattern = dualplane_base::text::printable(pattern);
    let hint = match near {
        [] => format!("{flag} alone lists all"),
        _ => format!("did you mean {}?", near.join(", ")),
    };
    Failure::Flag { flag, why: format!("no {what} is called `{pattern}`; {hint}") }
}
