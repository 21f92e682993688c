//! `--why-not CLASS`: which evidence spoke against a class, or was missing for it.

use super::proof::{Gpu, Kernel, Status, Vram, Weighed, Xid};
use super::rules::{self, Ruling};
use super::{Cited, Class, Plane, Verdict};
use crate::evidence::Bundle;
use crate::facts::{Facts, Place};
use crate::knowledge::Knowledge;

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
        return vec![Cited::plain(Weighed::IsVerdict(class))];
    }
    if let Some(i) = v.sequence.iter().position(|s| s.class == class) {
        let what = v.sequence.get(i).map(|s| s.what.clone()).unwrap_or_default();
        out.push(Cited::plain(Weighed::CameLater { first: v.class, what }));
    }
    for c in v.causes.iter().filter(|c| c.class == class && c.rejected) {
        out.extend(c.against.iter().cloned());
    }
    out.push(Cited::plain(Weighed::DecidedBy(class)));
    let known = knowledge.signatures().iter().filter(|s| s.class == Some(class)).count();
    let hits: Vec<_> = facts.hits.iter().filter(|h| h.class == Some(class)).collect();
    if known > 0 && hits.is_empty() {
        let lines: u64 = facts.logs.iter().map(|l| l.total()).sum();
        let logs = facts.logs.len();
        out.push(Cited::plain(Weighed::NoSignature { signatures: known, lines, logs }));
    }
    for h in hits.iter().take(3) {
        out.push(Cited::at(Weighed::NotTheCause { signature: h.id.clone(), mark: h.mark }, &h.place));
    }
    match class.plane() {
        Plane::Host => host(class, bundle, facts, v, &mut out),
        Plane::Gpu => gpu(class, facts, v, &mut out),
        Plane::Hardware if facts.xids.is_empty() => out.push(Cited::plain(Xid::None)),
        Plane::Hardware => {
            for x in facts.xids.iter().take(3) {
                out.push(Cited::at(Xid::Consequence(x.code), &x.place));
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
        let proof = match &asked.ruling {
            // Of a rule of several classes, which decided for another one.
            Ruling::Held => Weighed::RuleHolds { rule: rule.id, class: v.class },
            Ruling::NotMet(why) => Weighed::RuleNotMet { rule: rule.id, why: why.clone() },
            Ruling::LostTo(winner) => {
                let because = rules::rule(winner).and_then(|w| w.goes_before(rule));
                Weighed::RuleLost { rule: rule.id, winner, because }
            }
        };
        out.push(Cited::plain(proof));
    }
}

fn host(class: Class, bundle: &Bundle, facts: &Facts, v: &Verdict, out: &mut Vec<Cited>) {
    let kernel_log = facts.logs.iter().any(|l| l.kernel);
    if facts.ooms.is_empty() {
        out.push(Cited::plain(if kernel_log { Kernel::NoOomRecord } else { Kernel::NoLog }));
    }
    if let Some(o) = v.subject.kill_of(facts) {
        out.push(Cited::at(Kernel::Scope { cgroup: o.oom_memcg.is_some() }, &o.place));
    }
    let end = v.subject.death.as_ref().filter(|d| d.not_oom_killed());
    if let Some(end) = end.filter(|_| class == Class::HostOomKilled) {
        let proof = Status::EndedNotOomKilled(Box::new(end.clone()));
        out.push(Cited::at(proof, &Place { file: v.subject.file(bundle), line: None }));
    }
}

fn gpu(class: Class, facts: &Facts, v: &Verdict, out: &mut Vec<Cited>) {
    let oom = v.trigger.as_ref().and_then(|t| t.vram().map(|o| (o, &t.place)));
    if class == Class::MigSliceTooSmall && facts.mig.is_none() {
        out.push(Cited::plain(Gpu::NoMig));
    }
    let Some((oom, place)) = oom else { return };
    match class {
        Class::Fragmentation => {
            if let (Some(idle), Some(requested), Some(allocated), Some(total)) =
                (oom.reserved_unallocated(), oom.requested, oom.allocated, oom.total)
            {
                out.push(Cited::at(Vram::IdleAndRequested { idle, requested, allocated, total }, place));
            }
        }
        Class::GpuCapacityConflict => {
            if let (Some(others), Some(total)) = (oom.others(), oom.total) {
                out.push(Cited::at(Vram::HeldByOthers { others, total }, place));
            }
        }
        _ => {}
    }
}
