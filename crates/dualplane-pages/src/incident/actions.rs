//! What to do, by stage: each with its arithmetic, and with commands that can be copied.

use super::Section;
use crate::text::T;
use crate::verdict::{Action, Verdict};
use dualplane_report::actions::Stage;
use maud::{Markup, html};

/// A command, or a patch: a click selects all of it, and a module adds a button that copies.
pub(crate) fn command(text: &str) -> Markup {
    html! { div.do { pre tabindex="0" { code { (T(text)) } } } }
}

/// The word of a stage in a report.
pub(crate) fn id(stage: Stage) -> &'static str {
    match stage {
        Stage::StopTheBleeding => "stop_the_bleeding",
        Stage::Fix => "fix",
        Stage::Verify => "verify",
        Stage::Prevent => "prevent",
        Stage::Avoid => "avoid",
    }
}

pub(super) fn section(v: &Verdict) -> Option<Section> {
    if v.actions.is_empty() {
        return None;
    }
    let body = html! {
        @for stage in Stage::ALL {
            @let of: Vec<&Action> = v.actions.iter().filter(|a| a.stage == id(stage)).collect();
            @if !of.is_empty() {
                div class={ "stage " (id(stage)) } {
                    h3 { (stage.title()) }
                    ul { @for a in of { (action(a)) } }
                }
            }
        }
    };
    Some(Section("do", "What to do", body))
}

fn action(a: &Action) -> Markup {
    html! {
        li {
            p { (T(&a.title)) }
            @if !a.arithmetic.is_empty() {
                ul.sum { @for s in &a.arithmetic { li { (T(s)) } } }
            }
            @for c in &a.commands { (command(c)) }
            @if let Some(patch) = &a.patch {
                details.fold { summary { "Patch of the manifest" } (command(patch)) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stage_has_the_word_of_the_report() {
        for stage in Stage::ALL {
            assert_eq!(serde_json::to_value(stage).unwrap(), id(stage));
        }
    }
}
