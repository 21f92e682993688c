//! `--why-not CLASS`: which evidence spoke against a class, or was missing for it.

use super::rules::{self, Ruling};
use super::{Cited, Class, Plane, Verdict};
use crate::evidence::{Bundle, Termination};
use crate::facts::{Facts, Place};
use crate::knowledge::{Knowledge, Mark};
use crate::text::counted;

/// Reasons, the strongest first.
#[must_use]
pub fn why_not(
    class: Class,
    bundle: &Bundle,
    facts: &Facts,
    knowledge: &Knowledge,
    v: &Verdict,
) -> Vec<Cited> {
    let mut out = Vec::new();
    if v.class == class {
        return vec![Cited::plain(format!("{class} is the verdict"))];
    }
    if let Some(i) = v.sequence.iter().position(|s| s.class == class) {
        let what = v.sequence.get(i).map_or("", |s| s.what.as_str());
        out.push(Cited::plain(format!("it also happened, but {} came first: {what}", v.class)));
    }
    for c in v.causes.iter().filter(|c| c.class == class && c.rejected) {
        out.extend(c.against.iter().cloned());
    }
    out.push(Cited::plain(format!("decided by: {}", class.decided_by())));
    let known = knowledge.signatures().iter().filter(|s| s.class == Some(class)).count();
    let hits: Vec<_> = facts.hits.iter().filter(|h| h.class == Some(class)).collect();
    if known > 0 && hits.is_empty() {
        let lines: u64 = facts.logs.iter().map(|l| l.total()).sum();
        out.push(Cited::plain(format!(
            "none of its {} matches in {} of {}",
            counted(known, "signature"),
            counted(lines, "line"),
            counted(facts.logs.len(), "log")
        )));
    }
    for h in hits.iter().take(3) {
        let why = match h.mark {
            Mark::Suspect => "the engine has a fallback for it, and nothing failed as a result",
            Mark::Degraded => "the server continues after it, and the evidence shows a more severe error",
            _ => {
                "another error comes first in causal order, or the numbers in the line indicate another \
            class"
            }
        };
        out.push(Cited::at(format!("{}: {why}", h.id), &h.place));
    }
    match class.plane() {
        Plane::Host => host(class, bundle, facts, v, &mut out),
        Plane::Gpu => gpu(class, facts, v, &mut out),
        Plane::Hardware if facts.xids.is_empty() => out.push(Cited::plain("the evidence contains no Xid")),
        Plane::Hardware => {
            for x in facts.xids.iter().take(3) {
                out.push(Cited::at(format!("Xid {} is a consequence or informational", x.code), &x.place));
            }
        }
        Plane::None => {}
    }
    by_rule(class, v, &mut out);
    out
}

/// How the rules went that could have decided for the class, in the order of their table.
fn by_rule(class: Class, v: &Verdict, out: &mut Vec<Cited>) {
    for asked in &v.trace {
        let Some(rule) = rules::rule(asked.rule).filter(|r| r.classes.contains(&class)) else { continue };
        let text = match &asked.ruling {
            // Of a rule of several classes, which decided for another one.
            Ruling::Held => format!("rule {} holds, and makes it {}", rule.id, v.class),
            Ruling::NotMet(why) => format!("rule {} does not hold: {why}", rule.id),
            Ruling::LostTo(winner) => {
                let because = rules::rule(winner).and_then(|w| w.goes_before(rule));
                let because = because.map(|b| format!(": {b}")).unwrap_or_default();
                format!("rule {} also holds, but {winner} takes precedence{because}", rule.id)
            }
        };
        out.push(Cited::plain(text));
    }
}

fn host(class: Class, bundle: &Bundle, facts: &Facts, v: &Verdict, out: &mut Vec<Cited>) {
    let kernel_log = facts.logs.iter().any(|l| l.kernel);
    if facts.ooms.is_empty() {
        out.push(Cited::plain(if kernel_log {
            "the kernel log contains no OOM-killer record"
        } else {
            "the evidence contains no kernel log, which would settle it"
        }));
    }
    if let Some(o) = v.subject.kill_of(facts) {
        let scope = if o.oom_memcg.is_some() { "a cgroup's limit" } else { "the whole node" };
        out.push(Cited::at(format!("this record's scope is {scope}"), &o.place));
    }
    let text = v.subject.death.as_ref().and_then(Termination::not_oom_killed);
    if let Some(text) = text.filter(|_| class == Class::HostOomKilled) {
        out.push(Cited::at(text, &Place { file: v.subject.file(bundle), line: None }));
    }
}

fn gpu(class: Class, facts: &Facts, v: &Verdict, out: &mut Vec<Cited>) {
    let oom = v.trigger.as_ref().and_then(|t| t.vram().map(|o| (o, &t.place)));
    if class == Class::MigSliceTooSmall && facts.mig.is_none() {
        out.push(Cited::plain("the evidence shows no MIG instance"));
    }
    let Some((oom, place)) = oom else { return };
    match class {
        Class::Fragmentation => {
            if let (Some(idle), Some(requested), Some(allocated), Some(total)) =
                (oom.reserved_unallocated(), oom.requested, oom.allocated, oom.total)
            {
                let share = allocated.share_of(total) * 100.0;
                out.push(Cited::at(
                    format!(
                        "reserved but unallocated {idle} versus requested {requested}; \
                tensors use {share:.1} % of the GPU"
                    ),
                    place,
                ));
            }
        }
        Class::GpuCapacityConflict => {
            if let (Some(others), Some(total)) = (oom.others(), oom.total) {
                out.push(Cited::at(format!("other processes use {others} of {total}"), place));
            }
        }
        _ => {}
    }
}
