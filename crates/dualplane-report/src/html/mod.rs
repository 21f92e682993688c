//! Reports as one page that a browser opens: both planes on one clock, the first error with its cascade folded, causes and
//! what to change. Nothing is loaded from elsewhere and nothing runs, so a ticket or a wiki can hold it.

mod plot;

use std::fmt::Write as _;

use super::headline::{Headline, headline};
use super::{Report, about, budget, changes, handover, memory, runbook};
use crate::actions::{Action, Stage};
use crate::words::{Cause, Citation};
use dualplane_base::text::{counted, markup, name};
use dualplane_base::{Class, Plane};
use dualplane_core::verdict::Step;
use dualplane_core::verdict::timeline::timeline;

const STYLE: &str = include_str!("style.css");

/// The page of one report or of several.
#[must_use]
pub fn html(reports: &[Report]) -> String {
    let title = match reports {
        [one] => format!("{}: {}", one.name, one.verdict.class.title()),
        all => counted(all.len(), "incident"),
    };
    let title = markup(&title);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <title>{title}</title><style>{STYLE}{}</style></head><body>\n",
        dualplane_base::plot::STYLE
    );
    if reports.len() > 1 {
        let _ = writeln!(out, "<h1>{title}</h1><nav><ol>");
        for (i, r) in reports.iter().enumerate() {
            let v = &r.verdict;
            let _ = writeln!(
                out,
                "<li class=\"{}\"><a href=\"#incident-{i}\">{}</a> <span class=\"badge\">{}</span> {}</li>",
                plane_word(r),
                markup(&r.name),
                v.class,
                markup(&v.summary)
            );
        }
        out.push_str("</ol></nav>\n");
    }
    for (i, r) in reports.iter().enumerate() {
        incident(r, i, &mut out);
    }
    let _ = writeln!(
        out,
        "<footer class=\"soft\">dualplane {}</footer></body></html>",
        env!("CARGO_PKG_VERSION")
    );
    out
}

fn plane_word(r: &Report) -> &'static str {
    match (r.verdict.class, headline(r).plane) {
        (Class::NotMemory, _) => "none",
        (_, Plane::Host) => "host",
        (_, Plane::Gpu) => "gpu",
        (_, Plane::Hardware) => "hardware",
        _ => "unknown",
    }
}

fn incident(r: &Report, index: usize, out: &mut String) {
    let v = &r.verdict;
    let plane = plane_word(r);
    let Headline { badge, class, .. } = headline(r);
    let _ = writeln!(
        out,
        "<article id=\"incident-{index}\" class=\"{plane}\"><p><span class=\"badge\">{badge} · {class}</span> <span class=\"soft\">phase {}, confidence {} · {}</span></p><h1>{}</h1>",
        v.phase,
        v.confidence,
        markup(&r.name),
        markup(v.summary.trim_end_matches('.'))
    );
    subject(r, out);
    if let Some(p) = &v.pressure {
        list("Memory against its limits", memory::readings(p), out);
        if let Some((bound, what)) = memory::focus(p) {
            let _ = write!(out, "<p>{}</p><ol>", markup(bound));
            what.iter().for_each(|w| {
                let _ = write!(out, "<li>{}</li>", markup(w));
            });
            out.push_str("</ol>");
        }
    }
    plot::pictures(&timeline(&r.bundle, &r.facts, v), out);
    if let Some(t) = &v.trigger {
        let line = t.place.line.map_or_else(String::new, |l| format!(":{l}"));
        let at = t.stamp.map_or_else(String::new, |s| format!(" · {}", s.show()));
        let _ = writeln!(
            out,
            "<h2>First error</h2><p class=\"soft\">{}{line}{}</p><pre class=\"line\">{}</pre>",
            markup(&t.place.file),
            markup(&at),
            markup(&t.text)
        );
    }
    sequence(r, out);
    let others = v
        .others
        .iter()
        .map(|o| format!("{}: {} ({}), {}", name(&o.container), o.class, o.confidence, o.summary));
    list("Other containers of the pod that failed", others, out);
    causes(r, out);
    list("Expected memory", budget::lines(&r.budget, v).into_iter(), out);
    suspects(r, out);
    for rollout in r.bundle.rollouts.iter().filter(|r| !r.changes.is_empty()) {
        let _ = write!(out, "<h2>Changed before</h2><p>{}</p><ul>", markup(&changes::headline(r, rollout)));
        for c in &rollout.changes {
            let _ = write!(out, "<li>{}</li>", markup(&changes::change(c)));
        }
        out.push_str("</ul>\n");
    }
    for stage in Stage::ALL {
        stage_of(r, stage, out);
    }
    missing(r, out);
    list("Hand-over", handover::points(r).into_iter(), out);
    let undo = handover::undo(r);
    if !undo.is_empty() {
        out.push_str("<h2>Take back afterwards</h2><p>Of these, what was done:</p>");
        undo.iter().for_each(|c| command(c, out));
    }
    let _ = writeln!(
        out,
        "<p>Runbook: <a href=\"{}\">{}</a>, or <code>{}</code></p></article>",
        markup(&runbook::link(v.class)),
        v.class,
        markup(&runbook::command(v.class))
    );
}

fn list(title: &str, lines: impl Iterator<Item = String>, out: &mut String) {
    let mut lines = lines.peekable();
    if lines.peek().is_none() {
        return;
    }
    let _ = write!(out, "<h2>{}</h2><ul>", markup(title));
    for line in lines {
        let _ = write!(out, "<li>{}</li>", markup(&line));
    }
    out.push_str("</ul>\n");
}

/// A click selects all of it.
fn command(text: &str, out: &mut String) {
    let _ = write!(out, "<pre class=\"do\">{}</pre>", markup(text));
}

fn subject(r: &Report, out: &mut String) {
    out.push_str("<dl>");
    for (key, value) in about::rows(r) {
        let _ = write!(out, "<dt>{key}</dt><dd>{}</dd>", markup(&value));
    }
    out.push_str("</dl>\n");
}

fn sequence(r: &Report, out: &mut String) {
    let v = &r.verdict;
    let (followed, beside): (Vec<&Step>, Vec<&Step>) = v.sequence.iter().skip(1).partition(|s| s.follows);
    list("Before or beside it", beside.iter().map(|s| format!("{}: {}", s.class, s.what)), out);
    if followed.is_empty() && v.cascade.is_empty() {
        return;
    }
    let heading = if v.trigger.is_some() { "What followed" } else { "What else it printed" };
    let total: u64 = v.cascade.iter().map(|c| c.count).sum();
    let _ = write!(out, "<h2>{heading}</h2>");
    if !followed.is_empty() {
        out.push_str("<ol>");
        for s in followed {
            let _ = write!(out, "<li>{}: {}</li>", s.class, markup(&s.what));
        }
        out.push_str("</ol>");
    }
    if !v.cascade.is_empty() {
        let _ = write!(
            out,
            "<details><summary>{} of {}</summary>",
            counted(total, "line"),
            counted(v.cascade.len(), "kind")
        );
        for c in &v.cascade {
            let line = c.first.line.map_or_else(String::new, |l| format!(":{l}"));
            let _ = write!(
                out,
                "<p>{}× {} <span class=\"soft\">{}{line}</span></p><pre>{}</pre>",
                c.count,
                markup(&c.meaning),
                markup(&c.first.file),
                markup(&c.text)
            );
        }
        out.push_str("</details>");
    }
    out.push('\n');
}

fn causes(r: &Report, out: &mut String) {
    let (kept, rejected): (Vec<&Cause>, Vec<&Cause>) = r.causes.iter().partition(|c| !c.rejected);
    let each = |causes: &[&Cause], out: &mut String| {
        out.push_str("<ol>");
        for c in causes {
            let _ = write!(
                out,
                "<li><b>{}</b> <span class=\"soft\">{}, {}</span><ul>",
                markup(&c.title),
                c.class,
                c.confidence
            );
            cites(&c.supports, "for", out);
            cites(&c.against, "against", out);
            out.push_str("</ul></li>");
        }
        out.push_str("</ol>");
    };
    out.push_str("<h2>Why</h2>");
    each(&kept, out);
    if !rejected.is_empty() {
        let _ = write!(out, "<details><summary>{} ruled out</summary>", counted(rejected.len(), "cause"));
        each(&rejected, out);
        out.push_str("</details>");
    }
    out.push('\n');
}

fn cites(cites: &[Citation], class: &str, out: &mut String) {
    for c in cites {
        let at = c.place.as_ref().map_or_else(String::new, |p| {
            let line = p.line.map_or_else(String::new, |l| format!(":{l}"));
            format!(" <span class=\"soft\">{}{line}</span>", markup(&p.file))
        });
        let _ = write!(out, "<li class=\"{class}\">{}{at}</li>", markup(&c.text));
    }
}

fn suspects(r: &Report, out: &mut String) {
    if r.budget.suspects.is_empty() {
        return;
    }
    out.push_str("<h2>Suspects</h2><ol>");
    for s in &r.budget.suspects {
        let size = s.bytes.map_or_else(String::new, |b| format!(" ({b})"));
        let _ = write!(out, "<li>{}{size}<ul>", markup(&s.what));
        for b in &s.because {
            let _ = write!(out, "<li class=\"for\">{}</li>", markup(b));
        }
        out.push_str("</ul></li>");
    }
    out.push_str("</ol>\n");
}

fn stage_of(r: &Report, stage: Stage, out: &mut String) {
    let mut of_stage = r.actions.iter().filter(|a| a.stage == stage).peekable();
    if of_stage.peek().is_none() {
        return;
    }
    let _ = write!(out, "<h2>{}</h2><ul>", markup(stage.title()));
    for a in of_stage {
        action(a, out);
    }
    out.push_str("</ul>\n");
}

fn action(a: &Action, out: &mut String) {
    let _ = write!(out, "<li>{}", markup(&a.title));
    for because in &a.arithmetic {
        let _ = write!(out, "<br><span class=\"soft\">= {}</span>", markup(because));
    }
    a.commands.iter().for_each(|c| command(c, out));
    if let Some(patch) = &a.patch {
        out.push_str("<details><summary>patch</summary>");
        command(patch, out);
        out.push_str("</details>");
    }
    out.push_str("</li>");
}

fn missing(r: &Report, out: &mut String) {
    if r.verdict.missing.is_empty() {
        return;
    }
    out.push_str("<h2>Missing</h2><ul>");
    for gap in &r.verdict.missing {
        let _ = write!(out, "<li>{}: {}", markup(&gap.what), markup(&gap.why));
        if let Some(c) = &gap.command {
            command(c, out);
        }
        out.push_str("</li>");
    }
    out.push_str("</ul>\n");
}
