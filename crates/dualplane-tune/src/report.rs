//! A finding and a search as lines for people and as `dualplane.tune/v1`.

use dualplane_base::style::{Style, wrap};
use dualplane_base::text::printable;
use serde_json::Value;

use crate::log::{Decision, Log};
use crate::propose::Proposal;

/// The log as a value.
///
/// # Errors
/// None that its types allow; serde's interface has them.
pub fn json(log: &Log) -> Result<Value, serde_json::Error> {
    serde_json::to_value(log)
}

/// The log for people.
#[must_use]
pub fn text(log: &Log, style: Style) -> String {
    let mut out = String::new();
    let mut line = |label: &str, text: &str| {
        let first = format!("{label:<11}");
        out.push_str(&wrap(&printable(text), style.width, &first, "           "));
        out.push('\n');
    };
    if let Some(w) = &log.workload {
        line("workload", w);
    }
    if log.steps.len() > 1 {
        for (i, s) in log.steps.iter().enumerate() {
            let what = s.proposal.as_ref().map_or_else(|| "the start".to_owned(), moved);
            let decision = match s.decision {
                Some(Decision::Keep) => "kept",
                Some(Decision::Revert) => "reverted",
                None => "broken off",
            };
            line(
                &format!("step {i}"),
                &format!("{what}: {decision}; {}", s.why.as_deref().unwrap_or("no result")),
            );
        }
        if let Some(best) = log.best() {
            line("best", &best.command.join(" "));
        }
    }
    if let Some(f) = &log.finding {
        line("branch", f.branch.map_or("not known", |b| b.title()));
        for b in &f.because {
            line("because", b);
        }
        for m in &f.missing {
            line("missing", m);
        }
    }
    match (&log.proposal, &log.stopped) {
        (_, Some(why)) => line("stopped", why),
        (Some(p), None) => proposal(p, &mut line),
        (None, None) => line("move", "none follows from the numbers"),
    }
    for p in &log.others {
        line("or", &format!("{}: {}", p.lever.title(), moved(p)));
    }
    out
}

fn proposal(p: &Proposal, line: &mut impl FnMut(&str, &str)) {
    line("move", &format!("{}: {}", p.lever.title(), moved(p)));
    line("why", &p.why);
    line("predicted", &p.predicted);
    for c in &p.computed {
        line("computed", c);
    }
    line("host RAM", &p.risks_host);
    line("VRAM", &p.risks_vram);
    if let Some(command) = &p.command {
        line("command", &command.join(" "));
    }
}

fn moved(p: &Proposal) -> String {
    match (&p.flag, &p.from) {
        (Some(flag), Some(from)) => format!("{flag} {from} to {}", p.to),
        (Some(flag), None) => format!("{flag} {} (it was not set)", p.to),
        _ => p.to.clone(),
    }
}
