//! The list of incidents. Every filter is a link, so that a view can be sent to somebody; the form works without scripts.

use crate::days::days;
use crate::incident::{class_word, plane_name, plane_word, summary, workload};
use crate::shell::{Frame, Room};
use crate::text::{T, Told, ago, instant, minute};
use dualplane_incidents::{Cursor, Dimension, Filter, Fleet, Incident, Share, encode};
use maud::{Markup, html};

/// Values of a dimension that are offered.
const OFFERED: usize = 10;
/// What one filters by, the most asked first.
const OFFERS: &[Dimension] = &[
    Dimension::Namespace,
    Dimension::Model,
    Dimension::Engine,
    Dimension::Node,
    Dimension::GpuName,
    Dimension::Image,
    Dimension::Cluster,
    Dimension::Driver,
    Dimension::Xid,
];

/// The word in the query behind which a list goes on.
pub const BEHIND: &str = "behind";

/// A page of the list.
#[derive(Debug, Clone)]
pub struct Listing<'a> {
    /// What is asked for.
    pub filter: &'a Filter,
    /// Why the query that was given is no filter; the list is then empty.
    pub refused: Option<&'a str>,
    /// What it shows, the newest first.
    pub incidents: &'a [Incident],
    /// It is not the first page.
    pub continued: bool,
    /// Where the next page begins; absent on the last.
    pub next: Option<&'a Cursor>,
    /// Counts of what can be asked for.
    pub fleet: &'a Fleet,
}

/// The page.
#[must_use]
pub fn page(frame: &Frame<'_>, l: &Listing<'_>) -> String {
    let main = html! {
        div.top {
            h1 { "Incidents" }
            (search(frame, l.filter))
        }
        @if let Some(why) = l.refused {
            p.notice role="alert" { (T(why)) ". " a href=(T(&frame.to("/"))) { "Show all incidents" } }
        }
        (days(&l.fleet.days, frame.now_ms))
        div.split {
            aside.facets #filters aria-label="Filters" { (facets(frame, l)) }
            div.found {
                a.to-filters href="#filters" { "Filters" }
                (chosen(frame, l.filter))
                p.live hidden data-events=[frame.events.map(|e| frame.to(e))] role="status" {}
                (table(frame, l))
                (pager(frame, l))
            }
        }
    };
    frame.page("Incidents", Room::Incidents, if frame.events.is_some() { &["live.js"] } else { &[] }, &main)
}

/// The form keeps what is chosen beside the words.
fn search(frame: &Frame<'_>, filter: &Filter) -> Markup {
    html! {
        form.search role="search" action=(T(&frame.to("/"))) method="get" {
            @for (dimension, values) in &filter.any {
                @for v in values { input type="hidden" name=(dimension.as_str()) value=(T(v)); }
            }
            @for (name, value) in [("loop", &filter.loop_key), ("cause", &filter.cause_key)] {
                @if let Some(v) = value { input type="hidden" name=(name) value=(T(v)); }
            }
            @for (name, value) in [("since", filter.since), ("until", filter.until)] {
                @if let Some(v) = value { input type="hidden" name=(name) value=(v.to_string()); }
            }
            @if filter.each { input type="hidden" name="each" value="true"; }
            label for="q" { span.off { "Search" } }
            input #q type="search" name="q" placeholder="pod, node, model, image, words of the error" value=[filter.text.as_deref().map(T)];
            button { "Search" }
        }
    }
}

/// What narrows the list now; a click takes it away.
fn chosen(frame: &Frame<'_>, f: &Filter) -> Markup {
    let mut chips: Vec<(String, Filter)> = Vec::new();
    for (d, values) in &f.any {
        chips.extend(values.iter().map(|v| (format!("{}: {}", d.title(), said(*d, v)), f.without(*d, v))));
    }
    let mut chip = |what: &str, value: Option<String>, without: Filter| {
        chips.extend(value.map(|v| (format!("{what} {v}"), without)));
    };
    chip("one workload:", f.loop_key.clone(), Filter { loop_key: None, ..f.clone() });
    chip("one cause:", f.cause_key.clone(), Filter { cause_key: None, ..f.clone() });
    chip("since", f.since.map(|t| t.to_string()), Filter { since: None, ..f.clone() });
    chip("before", f.until.map(|t| t.to_string()), Filter { until: None, ..f.clone() });
    chip("words:", f.text.clone(), Filter { text: None, ..f.clone() });
    let causes = Filter { each: false, ..f.clone() };
    html! {
        ul.chips {
            @for (what, without) in &chips {
                li { a.chip href=(T(&frame.list(without))) { (T(what)) span aria-hidden="true" { " ×" } span.off { " (remove this filter)" } } }
            }
            @if chips.len() > 1 { li { a href=(T(&frame.to("/"))) { "Clear all" } } }
            // Where each incident is shown anyhow there is nothing to choose.
            @if f.collapses() { li { a href=(T(&frame.list(&Filter { each: true, ..f.clone() }))) { "Show every incident" } } }
            @else if causes.collapses() { li { a href=(T(&frame.list(&causes))) { "Show each cause once" } } }
        }
    }
}

/// A value as people say it.
fn said(d: Dimension, value: &str) -> &str {
    match (d, value) {
        (Dimension::Plane, "host") => "Host RAM",
        (Dimension::Plane, "gpu") => "VRAM",
        (Dimension::Plane, "none") => "neither",
        _ => value,
    }
}

fn facets(frame: &Frame<'_>, l: &Listing<'_>) -> Markup {
    let classes: Vec<(&str, u64)> = l.fleet.by_class.iter().map(|(c, n)| (c.as_str(), *n)).collect();
    let shares = |d: Dimension| -> Vec<(&str, u64)> {
        let all = l.fleet.by.get(d.as_str()).map(Vec::as_slice).unwrap_or_default();
        all.iter().map(|s: &Share| (s.value.as_str(), s.count)).collect()
    };
    html! {
        (facet(frame, l.filter, Dimension::Plane, shares(Dimension::Plane)))
        (facet(frame, l.filter, Dimension::Class, classes))
        @for d in OFFERS { (facet(frame, l.filter, *d, shares(*d))) }
        p.soft { "Numbers are of the last 30 days." }
    }
}

fn facet(frame: &Frame<'_>, filter: &Filter, d: Dimension, mut values: Vec<(&str, u64)>) -> Markup {
    if values.is_empty() {
        return html! {};
    }
    values.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let is_chosen = filter.any.contains_key(&d);
    let open = is_chosen || matches!(d, Dimension::Plane | Dimension::Class);
    html! {
        details open[open] {
            summary { (d.title()) }
            ul {
                @for (value, count) in values.into_iter().take(OFFERED) {
                    @let on = filter.has(d, value);
                    @let next = if on { filter.without(d, value) } else { filter.with(d, value) };
                    li { a href=(T(&frame.list(&next))) aria-current=[on.then_some("true")] { span { (T(said(d, value))) } span.count { (count) } } }
                }
            }
        }
    }
}

fn table(frame: &Frame<'_>, l: &Listing<'_>) -> Markup {
    if l.incidents.is_empty() {
        return html! {
            div.empty {
                @if l.refused.is_some() {}
                @else if l.filter.is_empty() && !l.continued {
                    p { b { "No incident has been received yet." } }
                    p { "Send one: " code { "dualplane triage pod/NAME -n NAMESPACE -o json" } " gives a report, and the agent sends what it records." }
                } @else {
                    p { b { "No incident matches." } " " a href=(T(&frame.to("/"))) { "Show all incidents" } }
                }
            }
        };
    }
    html! {
        table.incidents {
            caption.off { "Incidents, the newest first" }
            thead {
                tr { th scope="col" { "Died" } th scope="col" { "Memory" } th scope="col" { "What happened" } th.num scope="col" { "Times" } }
            }
            tbody { @for i in l.incidents { (row(frame, i)) } }
        }
    }
}

fn row(frame: &Frame<'_>, i: &Incident) -> Markup {
    let at = i.died_at.ms();
    let about = [&i.cluster, &i.node, &i.model].map(String::as_str);
    let about: Vec<&str> = about.into_iter().filter(|a| !a.is_empty()).collect();
    html! {
        tr class=(plane_word(i)) {
            td.when data-label="Died" {
                time datetime=(Told(instant(at))) title=(Told(instant(at))) { (Told(minute(at))) }
                span.soft { (ago(frame.now_ms, at)) }
            }
            td.plane { span.badge { (plane_name(i)) } code { (class_word(i)) } }
            th.what scope="row" {
                a href=(T(&frame.incident(&i.id))) { (T(&workload(i))) }
                span.sum { (T(summary(i))) }
                @if !about.is_empty() { span.soft { (T(&about.join(" · "))) } }
            }
            td.num data-label="Times" {
                @if i.occurrences > 1 {
                    a href=(T(&frame.list(&Filter { cause_key: Some(i.cause_key.clone()), ..Filter::default() }))) {
                        (i.occurrences) span.off { " incidents of this cause" }
                    }
                } @else { "1" }
            }
        }
    }
}

fn pager(frame: &Frame<'_>, l: &Listing<'_>) -> Markup {
    html! {
        @if l.continued || l.next.is_some() {
            nav.pager aria-label="Pages of the list" {
                @if l.continued { a href=(T(&frame.list(l.filter))) rel="first" { "Newest" } }
                @if let Some(cursor) = l.next {
                    @let query = l.filter.to_query();
                    @let joint = if query.is_empty() { "" } else { "&" };
                    a href=(T(&frame.to(&format!("/?{query}{joint}{BEHIND}={}", encode(&cursor.to_string()))))) rel="next" { "Older" }
                }
            }
        }
    }
}
