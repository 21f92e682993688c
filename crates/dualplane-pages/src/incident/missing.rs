//! What is not in the evidence, and the command that would get it.

use super::{Section, actions::command};
use crate::text::T;
use crate::verdict::Verdict;
use maud::html;

pub(super) fn section(v: &Verdict) -> Option<Section> {
    (!v.missing.is_empty()).then(|| {
        let body = html! {
            ul {
                @for gap in &v.missing {
                    li {
                        p { b { (T(&gap.what)) } ": " (T(&gap.why)) }
                        @if let Some(c) = &gap.command { (command(c)) }
                    }
                }
            }
        };
        Section("missing", "Missing evidence", body)
    })
}
