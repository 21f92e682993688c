//! The way from a request to the driver, as far as it is known: each step is a link to all deaths that share it.

use super::Section;
use crate::shell::Frame;
use crate::text::T;
use dualplane_base::text::counted;
use dualplane_incidents::{Dimension, Filter, Incident};
use maud::html;

/// Cards that are named one by one.
const CARDS: usize = 8;

pub(super) fn section(frame: &Frame<'_>, i: &Incident) -> Option<Section> {
    let link = |dimension: Dimension, value: &str| frame.list(&Filter::default().with(dimension, value));
    let steps = [
        ("model", Dimension::Model, i.model.as_str()),
        ("workload", Dimension::Owner, i.owner.as_str()),
        ("pod", Dimension::Pod, i.pod.as_str()),
        ("container", Dimension::Container, i.container.as_str()),
        ("node", Dimension::Node, i.node.as_str()),
    ];
    let known = steps.iter().filter(|(_, _, v)| !v.is_empty()).count();
    if known < 2 {
        return None;
    }
    let body = html! {
        ol.route {
            @for (what, dimension, value) in steps.iter().filter(|(_, _, v)| !v.is_empty()) {
                li {
                    span.soft { (what) }
                    a href=(T(&link(*dimension, value))) { (T(value)) }
                }
            }
            @if !i.gpus.is_empty() { li {
                span.soft { (if i.gpus.len() == 1 { "card" } else { "cards" }) }
                @for g in i.gpus.iter().take(CARDS) { div {
                    @if g.uuid.is_empty() { b { (T(g.name.as_deref().unwrap_or("a card"))) } }
                    @else {
                        a href=(T(&link(Dimension::Gpu, &g.uuid))) { (T(&g.uuid)) }
                        @if let Some(name) = &g.name { " " (T(name)) }
                    }
                    @if let Some(driver) = &g.driver {
                        " " a href=(T(&link(Dimension::Driver, driver))) { "driver " (T(driver)) }
                    }
                } }
                @if i.gpus.len() > CARDS { span.soft { "and " (counted(i.gpus.len() - CARDS, "card")) " more" } }
            } }
        }
        @if i.gpus.is_empty() { p.soft { "No evidence names the cards of this pod." } }
    };
    Some(Section("route", "From the request to the driver", body))
}
