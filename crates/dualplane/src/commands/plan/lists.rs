//! `--list-models`, `--list-gpus`, `--list-engines`.

use dualplane_core::knowledge::KnowledgeError;
use dualplane_plan::report::plan as report;
use dualplane_plan::{card, catalogue};

use super::Failure;
use crate::args::PlanArgs;
use crate::output;

/// The list that was asked for.
pub(super) fn asked(args: &PlanArgs) -> Result<Option<String>, Failure> {
    let style = output::style(args.color, args.verbose);
    if let Some(pattern) = &args.list_models {
        let found = catalogue::list(pattern);
        if found.is_empty() {
            return Err(Failure::NoModel { id: pattern.clone(), near: catalogue::near(pattern, 4) });
        }
        return Ok(Some(report::models_text(&found, style)));
    }
    if args.list_gpus {
        let cards = card::embedded().map_err(KnowledgeError::from)?;
        return Ok(Some(report::cards_text(&cards, style)));
    }
    Ok(args.list_engines.then(|| report::engines_text(style)))
}
