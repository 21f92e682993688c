//! The first words: which memory, what happened, to whom, when, how often.

use super::Death;
use crate::shell::Frame;
use crate::text::{T, Told, ago, instant};
use crate::verdict::Verdict;
use dualplane_base::{Class, Plane};
use dualplane_incidents::{Filter, Incident, Pressure, encode};
use maud::{Markup, html};

/// The class of the colours of a plane.
pub(crate) fn plane_word(i: &Incident) -> &'static str {
    match i.pressure {
        Some(Pressure::Gpu) => "gpu",
        Some(Pressure::Host | Pressure::Both) => "host",
        None => word(i.class, i.plane),
    }
}

/// The same of a class and its plane.
pub(crate) fn word(class: Class, plane: Plane) -> &'static str {
    match (class, plane) {
        (Class::NotMemory, _) => "none",
        (_, Plane::Host) => "host",
        (_, Plane::Gpu) => "gpu",
        (_, Plane::Hardware) => "hardware",
        (_, Plane::None) => "unknown",
    }
}

/// The plane as people say it. Nothing is unknown of a server that lives at its limit but whether it will die.
pub(crate) fn plane_name(i: &Incident) -> &'static str {
    if let Some(p) = i.pressure {
        return p.title();
    }
    match plane_word(i) {
        "host" => "Host RAM",
        "gpu" => "VRAM",
        "hardware" => "Hardware",
        "none" => "Not memory",
        _ => "Unknown",
    }
}

/// The class, where something ended.
pub(crate) fn class_word(i: &Incident) -> &'static str {
    if i.pressure.is_some() { "no death" } else { i.class.as_str() }
}

/// `serve/llm-0`, or what else names it.
pub(crate) fn workload(i: &Incident) -> String {
    let named = |namespace: &str, name: &str| {
        if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
    };
    match (i.pod.as_str(), i.owner.as_str()) {
        ("", "") => i.id.clone(),
        ("", owner) => named(&i.namespace, owner),
        (pod, _) => named(&i.namespace, pod),
    }
}

pub(super) fn head(frame: &Frame<'_>, death: &Death<'_>, v: &Verdict) -> Markup {
    let i = death.incident;
    let id = encode(&i.id);
    let at = i.died_at.ms();
    let subject = &v.subject;
    let mut facts: Vec<(&str, String)> = vec![
        ("cluster", i.cluster.clone()),
        ("namespace", i.namespace.clone()),
        ("workload", i.owner.clone()),
        ("pod", i.pod.clone()),
        ("container", i.container.clone()),
        ("node", i.node.clone()),
        ("model", i.model.clone()),
        ("engine", format!("{} {}", i.engine, i.engine_version).trim().to_owned()),
        ("image", i.image.clone()),
    ];
    let end = [
        subject.exit_code.map(|c| format!("exit {c}")),
        subject.reason.clone(),
        subject.restarts.map(|n| dualplane_base::text::counted(n, "restart")),
    ];
    facts.push(("end", end.into_iter().flatten().collect::<Vec<_>>().join(", ")));
    html! {
        p.crumbs { a href=(T(&frame.to("/"))) { "Incidents" } span aria-hidden="true" { " / " } (T(&workload(i))) }
        header.verdict {
            p.kind {
                span.badge.big { (plane_name(i)) }
                " " code { (class_word(i)) }
                " " span.soft { "phase " (i.phase) " · confidence " (i.confidence) }
            }
            h1 { (T(summary(i))) }
            p.when {
                time datetime=(Told(instant(at))) { (Told(instant(at))) }
                " · " (ago(frame.now_ms, at))
                @if i.occurrences > 1 {
                    " · " a href=(T(&frame.list(&Filter { cause_key: Some(i.cause_key.clone()), ..Filter::default() }))) {
                        (i.occurrences) " times of this cause"
                    }
                }
            }
            @if let Some(first) = &i.top_action {
                p.first { b { "First: " } (T(first)) " " a href="#do" { "All that there is to do" } }
            }
            ul.tools {
                li { a href=(T(&frame.to(&format!("/incidents/{id}.md")))) download { "Hand-over (Markdown)" } }
                li { a href=(T(&frame.to(&format!("/incidents/{id}?print")))) { "Print view" } }
                @if let Some(bundle) = death.bundle {
                    li { a href=(T(&frame.to(bundle))) download { "Bundle" } }
                }
                @if death.rehearsed {
                    li { a href=(T(&frame.to(&format!("/incidents/{id}/rehearsal")))) { "Would the fix have held?" } }
                }
            }
        }
        dl.facts {
            @for (key, value) in facts.iter().filter(|(_, v)| !v.is_empty()) {
                div { dt { (key) } dd { (T(value)) } }
            }
        }
    }
}

/// The sentence of this death, or that of its class.
pub(crate) fn summary(i: &Incident) -> &str {
    let own = i.summary.trim().trim_end_matches('.');
    if own.is_empty() { &i.title } else { own }
}
