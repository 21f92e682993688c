//! The health of cards: Xids and ECC errors of each, in the deaths of pods that had it.

use crate::incident::{plane_word, summary, workload};
use crate::shell::{Frame, Room};
use crate::text::{T, Told, ago, minute};
use dualplane_base::text::counted;
use dualplane_incidents::{Dimension, Filter, GpuHealth, Incident, encode};
use maud::{Markup, html};

/// What an Xid means, by its number; the knowledge of the caller.
pub type Meaning<'a> = &'a dyn Fn(u32) -> Option<String>;

/// All cards, those with faults first.
#[must_use]
pub fn page(frame: &Frame<'_>, gpus: &[GpuHealth], meaning: Meaning<'_>) -> String {
    let faulty = gpus.iter().filter(|g| g.faults > 0).count();
    let main = html! {
        div.top {
            h1 { "GPUs" }
            p.soft { (counted(gpus.len(), "card")) " in incidents, " (faulty) " with a fault as the cause of one" }
        }
        @if gpus.is_empty() {
            div.empty {
                p { b { "No incident names a card by its UUID." } }
                p { "The agent names those that the kubelet gave to a pod; " code { "nvidia-smi -L" } " in a bundle does as well." }
            }
        } @else {
            table.cards {
                caption.off { "Cards, those with faults first" }
                thead {
                    tr {
                        th scope="col" { "Card" } th scope="col" { "Node" } th scope="col" { "Xids" }
                        th.num scope="col" { "ECC, uncorrected" } th.num scope="col" { "Faults" } th.num scope="col" { "Incidents" } th scope="col" { "Last" }
                    }
                }
                tbody { @for g in gpus { (row(frame, g, meaning)) } }
            }
        }
    };
    frame.page("GPUs", Room::Gpus, &[], &main)
}

fn deaths(uuid: &str) -> Filter {
    Filter { each: true, ..Filter::default() }.with(Dimension::Gpu, uuid)
}

fn row(frame: &Frame<'_>, g: &GpuHealth, meaning: Meaning<'_>) -> Markup {
    html! {
        tr class=[(g.faults > 0).then_some("hardware")] {
            th scope="row" {
                a href=(T(&frame.to(&format!("/gpus/{}", encode(&g.uuid))))) { (T(&g.uuid)) }
                span.soft {
                    (T(g.name.as_deref().unwrap_or("kind not told")))
                    @if let Some(d) = &g.driver { ", driver " (T(d)) }
                }
            }
            td data-label="Node" { @if g.node.is_empty() { "–" } @else { a href=(T(&frame.list(&Filter::default().with(Dimension::Node, &g.node)))) { (T(&g.node)) } } }
            td data-label="Xids" { (xids(frame, g, meaning)) }
            td.num data-label="ECC, uncorrected" { @match g.ecc_uncorrected { Some(n) => (n), None => span.soft { "not read" } } }
            td.num data-label="Faults" { (g.faults) }
            td.num data-label="Incidents" { a href=(T(&frame.list(&deaths(&g.uuid)))) { (g.incidents) } }
            td data-label="Last" { (ago(frame.now_ms, g.last_at.ms())) }
        }
    }
}

fn xids(frame: &Frame<'_>, g: &GpuHealth, meaning: Meaning<'_>) -> Markup {
    html! {
        @if g.xids.is_empty() { span.soft { "none seen" } }
        @else {
            ul.xids {
                @for (code, n) in &g.xids {
                    li {
                        a href=(T(&frame.list(&deaths(&g.uuid).with(Dimension::Xid, &code.to_string())))) { "Xid " (code) }
                        @if *n > 1 { " ×" (n) }
                        @if let Some(m) = meaning(*code) { span.soft { (T(&m)) } }
                    }
                }
            }
        }
    }
}

/// One card with its history, the newest death first.
#[must_use]
pub fn card(frame: &Frame<'_>, g: &GpuHealth, history: &[Incident], meaning: Meaning<'_>) -> String {
    let main = html! {
        p.crumbs { a href=(T(&frame.to("/gpus"))) { "GPUs" } span aria-hidden="true" { " / " } (T(&g.uuid)) }
        h1 { (T(g.name.as_deref().unwrap_or("Card"))) " " code { (T(&g.uuid)) } }
        dl.facts {
            @if !g.node.is_empty() { div { dt { "node, at last" } dd { (T(&g.node)) } } }
            @if let Some(d) = &g.driver { div { dt { "driver, at last" } dd { (T(d)) } } }
            div { dt { "incidents of its pods" } dd { (g.incidents) } }
            div { dt { "of these by its fault" } dd { (g.faults) } }
            div { dt { "ECC errors, uncorrected" } dd { @match g.ecc_uncorrected { Some(n) => (n), None => "not read" } } }
        }
        section aria-labelledby="xids-title" { h2 #xids-title { "Xids" } (xids(frame, g, meaning)) }
        section aria-labelledby="history-title" {
            h2 #history-title { "History" }
            table.incidents {
                thead { tr { th scope="col" { "Died" } th scope="col" { "Xids" } th.num scope="col" { "ECC" } th scope="col" { "What happened" } } }
                tbody {
                    @for i in history {
                        tr class=(plane_word(i)) {
                            td.when data-label="Died" { (Told(minute(i.died_at.ms()))) span.soft { (ago(frame.now_ms, i.died_at.ms())) } }
                            td data-label="Xids" {
                                @let codes: Vec<String> = i.xids.iter().map(|x| x.code.to_string()).collect();
                                @if codes.is_empty() { "–" } @else { (codes.join(", ")) }
                            }
                            td.num data-label="ECC" {
                                @match i.gpus.iter().find(|c| c.uuid == g.uuid).and_then(|c| c.ecc_uncorrected) { Some(n) => (n), None => "–" }
                            }
                            th.what scope="row" { a href=(T(&frame.incident(&i.id))) { (T(&workload(i))) } span.sum { (T(summary(i))) } }
                        }
                    }
                }
            }
            p { a href=(T(&frame.list(&deaths(&g.uuid)))) { "All of them in the list" } }
        }
    };
    frame.page(&format!("GPU {}", g.uuid), Room::Gpus, &[], &main)
}
