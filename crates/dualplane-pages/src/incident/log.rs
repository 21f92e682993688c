//! The first error where it stood in its log, with what followed folded.

use super::Section;
use crate::scene::{Excerpt, Kind, Row, Scene};
use crate::text::T;
use crate::verdict::Verdict;
use dualplane_base::text::counted;
use maud::{Markup, html};

/// Lines behind the first error that are shown before the fold.
const OPEN: usize = 3;

pub(super) fn section(v: &Verdict, scene: Option<&Scene>, print: bool) -> Option<Section> {
    let trigger = v.trigger.as_ref();
    if trigger.is_none() && v.cascade.is_empty() {
        return None;
    }
    let body = html! {
        @if let Some(t) = trigger {
            p.soft {
                "first in cause: " (T(&t.at()))
                @if let Some(time) = &t.time { " · " (T(time)) }
            }
            @match scene.and_then(|s| s.log.as_ref()) {
                Some(log) => (excerpt(log, print)),
                None => pre.log tabindex="0" { code { span.row.first { (T(&t.text)) } } },
            }
        }
        (followed(v, print))
    };
    Some(Section("first", if trigger.is_some() { "First error" } else { "What it printed" }, body))
}

fn excerpt(log: &Excerpt, print: bool) -> Markup {
    let at = log.rows.iter().position(|r| r.kind == Kind::First).unwrap_or_default();
    let open = at.saturating_add(OPEN + 1).min(log.rows.len());
    let (shown, folded) = log.rows.split_at(open);
    html! {
        pre.log tabindex="0" aria-label={ "Lines of " (T(&log.file)) } { code { @for r in shown { (row(r)) } } }
        @if !folded.is_empty() {
            details.fold open[print] {
                summary {
                    "The next " (counted(folded.len(), "line"))
                    @if log.behind > 0 { " of " (log.behind.saturating_add(folded.len() as u64)) }
                }
                pre.log tabindex="0" aria-label={ "More lines of " (T(&log.file)) } { code { @for r in folded { (row(r)) } } }
            }
        }
    }
}

fn row(r: &Row) -> Markup {
    let class = match r.kind {
        Kind::First => "row first",
        Kind::Follows => "row follows",
        Kind::Plain => "row",
    };
    html! {
        span class=(class) {
            span.no { (r.number) } (T(&r.text))
            @if !r.meaning.is_empty() { span.means { (T(&r.meaning)) } }
        }
    }
}

/// What only noticed the failure, by its kind.
fn followed(v: &Verdict, print: bool) -> Markup {
    let steps: Vec<_> = v.sequence.iter().skip(1).collect();
    let total: u64 = v.cascade.iter().map(|c| c.count).fold(0, u64::saturating_add);
    html! {
        @if !steps.is_empty() {
            h3 { "In order" }
            ol.steps {
                @for s in v.sequence.iter() {
                    li {
                        code { (T(&s.class)) } " " (T(&s.what))
                        @if let Some(t) = &s.trigger { " " span.soft { (T(&t.at())) } }
                    }
                }
            }
        }
        @if !v.cascade.is_empty() {
            details.fold open[print] {
                summary { "What only followed: " (counted(total, "line")) " of " (counted(v.cascade.len(), "kind")) }
                ul.cascade {
                    @for c in &v.cascade {
                        li {
                            b { (c.count) "×" } " " (T(&c.meaning)) " " span.soft { (T(&c.first.at())) }
                            pre.log tabindex="0" { code { span.row.follows { (T(&c.text)) } } }
                        }
                    }
                }
            }
        }
    }
}
