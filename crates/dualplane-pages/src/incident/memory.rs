//! What the launch should take by its plan, what it held, and what may have taken the rest.

use super::Section;
use crate::bar::{Bar, bars};
use crate::text::T;
use crate::verdict::{Budget, Pressure, Quantity, Verdict};
use dualplane_base::units::Bytes;
use maud::{Markup, html};

pub(super) fn section(v: &Verdict) -> Option<Section> {
    if v.budget.is_none() && v.pressure.is_none() {
        return None;
    }
    let body = html! {
        @if let Some(p) = &v.pressure { (pressure(p)) }
        @if let Some(b) = &v.budget { (budget(b, v.subject.memory_limit_bytes)) }
    };
    Some(Section("memory", "Memory: plan against reality", body))
}

/// `407.61 GiB (399.56 GiB to 419.96 GiB)`.
pub(crate) fn range(q: &Quantity) -> String {
    if q.low == q.high {
        Bytes(q.expected).to_string()
    } else {
        format!("{} ({} to {})", Bytes(q.expected), Bytes(q.low), Bytes(q.high))
    }
}

/// Where nothing was read of what it held, the limit of the object stands for that of the cgroup.
fn budget(b: &Budget, of_object: Option<u64>) -> Markup {
    let held = b.held.as_ref();
    let holds = held.and_then(|h| h.anon_bytes.map(|a| a.saturating_add(h.shmem_bytes.unwrap_or_default())));
    let limit = held.map(|h| h.limit_bytes).or(of_object).filter(|l| *l > 0);
    let mut rows: Vec<Bar> = Vec::new();
    if let Some(e) = &b.expected {
        rows.push(Bar {
            label: "planned: peak of the load",
            value: e.host.load_peak_bytes.expected,
            class: "plan",
        });
        rows.push(Bar { label: "planned: steady", value: e.host.steady_bytes.expected, class: "plan" });
    }
    rows.extend(holds.map(|value| Bar { label: "held at the end", value, class: "held" }));
    html! {
        @if !rows.is_empty() { (bars("Host RAM of the container", &rows, limit)) }
        dl.rows {
            @if let Some(e) = &b.expected {
                dt { "launch" }
                dd {
                    (T(&e.engine))
                    @if let Some(version) = &e.engine_version { " " (T(version)) }
                    @if let Some(model) = &e.model { ", " (T(model)) }
                    " " span.soft { "by " (T(&e.source)) }
                }
                dt { "planned peak of the load" } dd { (range(&e.host.load_peak_bytes)) }
                dt { "planned steady" } dd { (range(&e.host.steady_bytes)) }
                @if e.host.limit_bytes > 0 { dt { "limit that fits" } dd { (Bytes(e.host.limit_bytes).k8s()) } }
                @if let Some(g) = &e.gpu {
                    dt { "weights on a card" } dd { (range(&g.weights_bytes)) }
                    dt { "KV cache on a card" } dd { (range(&g.kv_cache_bytes)) ", " (g.kv_cache_tokens.expected) " tokens" }
                }
            }
            @if let Some(l) = limit { dt { "limit" } dd { (Bytes(l)) } }
            @if let Some(h) = held {
                @if let Some(a) = h.anon_bytes { dt { "anonymous" } dd { (Bytes(a)) } }
                @if let Some(s) = h.shmem_bytes { dt { "shared and pinned" } dd { (Bytes(s)) } }
                @if let Some(s) = h.ran_seconds { dt { "ran for" } dd { (dualplane_base::time::span(s.saturating_mul(1000))) } }
            }
        }
        @if !b.suspects.is_empty() {
            h3 { "Suspects" }
            ol.causes {
                @for s in &b.suspects {
                    li {
                        p { b { (T(&s.what)) } @if let Some(bytes) = s.bytes { " " span.soft { (Bytes(bytes)) } } }
                        @if !s.because.is_empty() { ul.cites { @for b in &s.because { li.for { (T(b)) } } } }
                    }
                }
            }
        }
    }
}

fn pressure(p: &Pressure) -> Markup {
    html! {
        p {
            @match p.bound_by.as_str() {
                "host" => "Host RAM is near its limit.",
                "gpu" => "VRAM is near its end.",
                "both" => "Both planes are near their limits.",
                _ => "Neither plane is near its limit.",
            }
        }
        ul {
            @for r in &p.readings {
                li {
                    (T(&r.what)) ": " (format!("{:.0} %", r.share * 100.0))
                    @if let (Some(used), Some(limit)) = (r.used_bytes, r.limit_bytes) { " (" (Bytes(used)) " of " (Bytes(limit)) ")" }
                    @if let Some(g) = &r.growth {
                        ", grows " (Bytes(g.bytes_per_hour)) "/h, at the limit in " (dualplane_base::time::span(g.seconds_to_limit.saturating_mul(1000)))
                    }
                    @if let Some(note) = &r.note { " " span.soft { (T(note)) } }
                }
            }
        }
        @if !p.focus.is_empty() {
            p { "Look at, in this order:" }
            ol { @for f in &p.focus { li { (T(f)) } } }
        }
    }
}
