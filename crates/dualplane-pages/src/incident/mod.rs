//! The page of one death, in the order in which a person at night asks: which memory, what came first, what to do, why.

mod actions;
mod causes;
mod head;
mod log;
mod memory;
mod missing;
mod picture;
mod route;

pub(crate) use actions::{command as typed, id as stage_id};
pub(crate) use head::{class_word, plane_name, plane_word, summary, word, workload};

use crate::scene::Scene;
use crate::shell::{Frame, Room};
use crate::text::{T, Told};
use crate::verdict::Verdict;
use dualplane_incidents::Incident;
use maud::{Markup, html};

/// What is shown of a death.
#[derive(Debug, Clone)]
pub struct Death<'a> {
    /// As the fleet keeps it.
    pub incident: &'a Incident,
    /// Its report, or why it cannot be shown.
    pub verdict: Result<&'a Verdict, &'a str>,
    /// What its bundle shows; absent where no bundle was sent.
    pub scene: Option<&'a Scene>,
    /// Other deaths of the same workload, the newest first.
    pub again: &'a [Incident],
    /// Where its bundle can be had, below the base.
    pub bundle: Option<&'a str>,
    /// Its fix may be rehearsed: there is a bundle, and an engine is known.
    pub rehearsed: bool,
    /// Why what its bundle shows is not shown, where it has one.
    pub away: Option<&'a str>,
}

/// A section: the word in its address, its heading, what stands in it.
struct Section(&'static str, &'static str, Markup);

/// The page. In print all that is folded is open.
#[must_use]
pub fn page(frame: &Frame<'_>, death: &Death<'_>, print: bool) -> String {
    let i = death.incident;
    let empty = Verdict::default();
    let v = death.verdict.unwrap_or(&empty);
    let sections: Vec<Section> = [
        log::section(v, death.scene, print),
        // Above stands why nothing of its bundle is shown.
        picture::section(v, death.scene, print).filter(|_| death.away.is_none()),
        actions::section(v),
        causes::section(v, print),
        memory::section(v),
        changes(v),
        others(v),
        missing::section(v),
        route::section(frame, i),
        again(frame, i, death.again),
    ]
    .into_iter()
    .flatten()
    .collect();
    let main = html! {
        article class={ "incident " (head::plane_word(i)) } {
            (head::head(frame, death, v))
            @if let Err(why) = death.verdict {
                p.notice role="note" { (T(why)) }
            }
            @if let Some(why) = death.away {
                p.notice role="note" { (T(why)) }
            }
            nav.jump aria-label="On this page" {
                ul { @for Section(id, title, _) in &sections { li { a href={ "#" (id) } { (title) } } } }
            }
            @for Section(id, title, body) in &sections {
                section id=(id) aria-labelledby={ (id) "-title" } {
                    h2 id={ (id) "-title" } { (title) }
                    (body)
                }
            }
        }
    };
    let scripts: &[&str] = match death.scene.and_then(|s| s.planes.as_ref()) {
        _ if print => &[],
        Some(_) => &["copy.js", "uPlot.iife.min.js", "planes.js"],
        None => &["copy.js"],
    };
    frame.page(&format!("{}: {}", head::workload(i), i.title), Room::Incidents, scripts, &main)
}

/// What the last roll-out changed.
fn changes(v: &Verdict) -> Option<Section> {
    let first = v.changes.first()?;
    let body = html! {
        p {
            (T(&first.workload)) ": revision " (first.from_revision) " → " (first.to_revision)
            @if let Some(at) = &first.at { ", rolled out " (T(at)) }
        }
        table.diff {
            thead { tr { th scope="col" { "Field" } th scope="col" { "Before" } th scope="col" { "After" } } }
            tbody {
                @for c in &v.changes {
                    tr {
                        th scope="row" {
                            (T(&c.field))
                            @if let Some(container) = &c.container { " " span.soft { (T(container)) } }
                        }
                        td data-label="Before" { @match &c.before { Some(b) => { del { (T(b)) } }, None => { span.soft { "not set" } } } }
                        td data-label="After" { @match &c.after { Some(a) => { ins { (T(a)) } }, None => { span.soft { "not set" } } } }
                    }
                }
            }
        }
    };
    Some(Section("changed", "Changed before", body))
}

fn others(v: &Verdict) -> Option<Section> {
    (!v.others.is_empty()).then(|| {
        let body = html! {
            ul {
                @for o in &v.others {
                    li { b { (T(&o.container)) } ": " (T(&o.summary)) " " span.soft { (T(&o.class)) ", confidence " (T(&o.confidence)) } }
                }
            }
        };
        Section("beside", "Other containers that failed", body)
    })
}

/// The same workload before and since.
fn again(frame: &Frame<'_>, i: &Incident, again: &[Incident]) -> Option<Section> {
    (!again.is_empty()).then(|| {
        let body = html! {
            ol.deaths {
                @for a in again {
                    li class=(head::plane_word(a)) {
                        a href=(T(&frame.incident(&a.id))) { (Told(crate::text::minute(a.died_at.ms()))) }
                        " " span.badge { (head::class_word(a)) } " " (T(&a.summary))
                        @if a.cause_key == i.cause_key { " " span.soft { "the same cause" } }
                    }
                }
            }
        };
        Section("again", "The same workload", body)
    })
}
