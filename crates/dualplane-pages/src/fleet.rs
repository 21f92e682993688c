//! The fleet: what dies most, and which model, image, node, card or driver it is tied to.

use std::collections::BTreeMap;

use crate::days::days;
use crate::incident::{class_word, plane_name, plane_word, summary, word, workload};
use crate::shell::{Frame, Room};
use crate::text::{T, ago};
use dualplane_base::Class;
use dualplane_incidents::{Dimension, Filter, Fleet, Share, Worst};
use maud::{Markup, html};

/// Causes and values that are shown.
const WORST: usize = 25;
const VALUES: usize = 8;
const TIES: &[Dimension] = &[
    Dimension::Model,
    Dimension::Image,
    Dimension::EngineVersion,
    Dimension::Node,
    Dimension::GpuName,
    Dimension::Driver,
    Dimension::Namespace,
    Dimension::Cluster,
];

/// The page of a span of time, which `span` names.
#[must_use]
pub fn page(frame: &Frame<'_>, fleet: &Fleet, span: &str) -> String {
    let main = html! {
        div.top {
            h1 { "Fleet" }
            p.soft { (T(span)) }
        }
        p.live hidden data-events=[frame.events.map(|e| frame.to(e))] role="status" {}
        dl.figures {
            div { dt { "incidents" } dd { (fleet.incidents) } }
            div { dt { "causes" } dd { (fleet.causes) } }
            @for (plane, name) in [("host", "of host RAM"), ("gpu", "of VRAM"), ("hardware", "of hardware")] {
                div class=(plane) { dt { (name) } dd { (of_plane(&fleet.by_class, plane)) } }
            }
        }
        (days(&fleet.days, frame.now_ms))
        @if fleet.worst.is_empty() { div.empty { p { b { "No incident has been received in this time." } } } }
        @else {
            section aria-labelledby="worst-title" {
                h2 #worst-title { "Worst first" }
                ol.worst { @for w in fleet.worst.iter().take(WORST) { (worst(frame, w)) } }
            }
        }
        div.tied { @for d in TIES {
            @if let Some(shares) = fleet.by.get(d.as_str()).filter(|s| !s.is_empty()) {
                (ties(frame, *d, shares, fleet.other.get(d.as_str()).copied().unwrap_or_default()))
            }
        } }
    };
    frame.page("Fleet", Room::Fleet, if frame.events.is_some() { &["live.js"] } else { &[] }, &main)
}

fn class_of(text: &str) -> Class {
    Class::ALL.iter().copied().find(|c| c.as_str() == text).unwrap_or(Class::Unknown)
}

fn of_plane(by_class: &BTreeMap<String, u64>, plane: &str) -> u64 {
    let of = by_class.iter().filter(|(c, _)| class_of(c).plane().as_str() == plane);
    of.map(|(_, n)| *n).fold(0, u64::saturating_add)
}

fn worst(frame: &Frame<'_>, w: &Worst) -> Markup {
    let i = &w.latest;
    let all = Filter { cause_key: Some(w.cause_key.clone()), ..Filter::default() };
    html! {
        li class=(plane_word(i)) {
            a.many href=(T(&frame.list(&all))) { b { (w.occurrences) } span.soft { @if w.occurrences == 1 { "time" } @else { "times" } } }
            div {
                p {
                    a href=(T(&frame.incident(&i.id))) { (T(&workload(i))) }
                    " " span.badge { (plane_name(i)) } " " code { (class_word(i)) }
                }
                p { (T(summary(i))) }
                @if let Some(first) = &i.top_action { p.first { b { "First: " } (T(first)) } }
                p.soft { "last " (ago(frame.now_ms, i.died_at.ms())) @if w.occurrences > 1 { ", first known " (ago(frame.now_ms, w.first_at.ms())) } }
            }
        }
    }
}

fn ties(frame: &Frame<'_>, d: Dimension, shares: &[Share], rest: u64) -> Markup {
    let most = shares.iter().map(|s| s.count).max().unwrap_or(1).max(1);
    let hidden = shares.iter().skip(VALUES).map(|s| s.count).fold(rest, u64::saturating_add);
    html! {
        section.ties aria-labelledby={ (d.as_str()) "-title" } {
            h2 id={ (d.as_str()) "-title" } { "By " (d.title()) }
            table {
                thead { tr { th scope="col" { (d.title()) } th scope="col" { "By class" } th.num scope="col" { "Times" } } }
                tbody {
                    @for s in shares.iter().take(VALUES) {
                        tr {
                            th scope="row" { a href=(T(&frame.list(&Filter { each: true, ..Filter::default() }.with(d, &s.value)))) { (T(&s.value)) } }
                            td { (stack(s, most)) }
                            td.num data-label="Times" { (s.count) }
                        }
                    }
                }
            }
            @if hidden > 0 { p.soft { "and " (hidden) " of others" } }
        }
    }
}

/// Classes side by side, in the colours of their planes.
fn stack(s: &Share, most: u64) -> Markup {
    const WIDTH: f64 = 400.0;
    let mut classes: Vec<(Class, u64)> = s.by_class.iter().map(|(c, n)| (class_of(c), *n)).collect();
    classes.sort();
    let told: Vec<String> = classes.iter().map(|(c, n)| format!("{n} {c}")).collect();
    let told = told.join(", ");
    let mut at = 0.0;
    let mut parts: Vec<(&'static str, f64, f64, String)> = Vec::new();
    for (class, n) in classes {
        let width = n as f64 / most as f64 * WIDTH;
        parts.push((word(class, class.plane()), at, width, format!("{n} {class}")));
        at += width;
    }
    html! {
        svg.stack viewBox={ "0 0 " (WIDTH) " 14" } preserveAspectRatio="none" role="img" aria-label=(told) {
            @for (plane, x, width, title) in &parts {
                rect class=(plane) x={ (format!("{x:.1}")) } y="1" width={ (format!("{:.1}", (width - 1.0).max(1.0))) } height="12" { title { (title) } }
            }
        }
        span.soft { (told) }
    }
}
