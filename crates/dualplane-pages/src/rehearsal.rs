//! Would the fix have held? What `dualplane rehearse` answers of the bundle of a death, with the load that the reader chooses.

use crate::incident::{typed, workload};
use crate::shell::{Frame, Room};
use crate::text::T;
use dualplane_base::Plane;
use dualplane_incidents::Incident;
use maud::{Markup, html};

/// Loads that have a name, beside the requests of the bundle (`docs/rehearse.md`).
pub const TRAFFIC: &[&str] = &["chat", "code", "rag", "long", "batch", "agents"];

/// What is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    /// The card.
    pub gpu: String,
    /// One of [`TRAFFIC`]; empty: the requests of the bundle.
    pub traffic: String,
    /// Requests a second; empty: those of the load.
    pub rate: String,
}

/// The page. `answer`: the text of a rehearsal, or why there is none.
#[must_use]
pub fn page(
    frame: &Frame<'_>,
    i: &Incident,
    asked: &Asked,
    command: &str,
    answer: Result<&str, &str>,
) -> String {
    let main = html! {
        p.crumbs {
            a href=(T(&frame.to("/"))) { "Incidents" } span aria-hidden="true" { " / " }
            a href=(T(&frame.incident(&i.id))) { (T(&workload(i))) } span aria-hidden="true" { " / " } "Rehearsal"
        }
        h1 { "Would the fix have held?" }
        p.soft {
            "The launch of this death and each fix that triage computes, played through the engine's scheduler with requests: "
            "what the KV cache would have held, who would have waited, who would have been preempted."
        }
        @if i.plane == Plane::Host {
            p.notice role="note" {
                "This death was of host RAM. Whether the KV cache and the queue hold says nothing of whether host RAM would have."
            }
        }
        (form(frame, i, asked))
        @match answer {
            Ok(text) => { pre.rehearsal tabindex="0" { (T(text)) } }
            Err(why) => { p.notice role="note" { (T(why)) } }
        }
        p.soft { "The same in a terminal, with the bundle of this incident:" }
        (typed(command))
    };
    frame.page(&format!("Rehearsal: {}", workload(i)), Room::Incidents, &["copy.js"], &main)
}

fn form(frame: &Frame<'_>, i: &Incident, asked: &Asked) -> Markup {
    html! {
        form.ask method="get" action=(T(&format!("{}/rehearsal", frame.incident(&i.id)))) {
            label { "Card " input name="gpu" value=(T(&asked.gpu)) placeholder="H100-80GB" maxlength="80"; }
            label {
                "Requests "
                select name="traffic" {
                    option value="" selected[asked.traffic.is_empty()] { "of the bundle" }
                    @for t in TRAFFIC { option value=(t) selected[asked.traffic == *t] { (t) } }
                }
            }
            label { "a second " input name="rate" value=(T(&asked.rate)) inputmode="decimal" size="6" maxlength="12"; }
            button { "Rehearse" }
        }
    }
}
