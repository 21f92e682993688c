//! Why: the causes with what speaks for each and against it, and those that are ruled out.

use super::Section;
use crate::text::T;
use crate::verdict::{Cause, Cited, Verdict};
use dualplane_base::text::counted;
use maud::{Markup, html};

pub(super) fn section(v: &Verdict, print: bool) -> Option<Section> {
    if v.causes.is_empty() {
        return None;
    }
    let (kept, rejected): (Vec<&Cause>, Vec<&Cause>) = v.causes.iter().partition(|c| !c.rejected);
    let body = html! {
        (list(&kept))
        @if !rejected.is_empty() {
            details.fold open[print] {
                summary { (counted(rejected.len(), "cause")) " ruled out" }
                (list(&rejected))
            }
        }
    };
    Some(Section("why", "Why", body))
}

fn list(causes: &[&Cause]) -> Markup {
    html! {
        ol.causes {
            @for c in causes {
                li {
                    p { b { (T(&c.title)) } " " span.soft { (T(&c.class)) ", confidence " (T(&c.confidence)) } }
                    @if !c.supports.is_empty() || !c.against.is_empty() {
                        ul.cites { (cites(&c.supports, "for")) (cites(&c.against, "against")) }
                    }
                }
            }
        }
    }
}

fn cites(cites: &[Cited], class: &'static str) -> Markup {
    html! {
        @for c in cites {
            li class=(class) {
                span.off { (class) ": " } (T(&c.text))
                @if let Some(p) = &c.place { " " span.soft { (T(&p.at())) } }
            }
        }
    }
}
