//! Xid events as candidates: cleanup and information end nothing.

use super::{Candidate, Source, end_phase};
use crate::evidence::Bundle;
use crate::facts::{Facts, XidEvent};
use crate::knowledge::{Knowledge, XidKind};
use crate::verdict::proof;
use crate::verdict::rules::first;
use crate::verdict::{Cited, Class, Confidence, Subject, identity};

pub(super) fn collect(
    bundle: &Bundle,
    facts: &Facts,
    knowledge: &Knowledge,
    subject: &Subject,
    all: &mut Vec<Candidate>,
) {
    let own = identity::own_gpus(bundle, facts, subject);
    let xids: Vec<&XidEvent> =
        facts.xids.iter().filter(|x| identity::not_ours(x, &own, bundle, facts, subject).is_none()).collect();
    let kind = |x: &XidEvent| knowledge.xid(x.code).map(|k| k.kind);
    let ends = |x: &&XidEvent| {
        x.caused_by.is_none() && !x.nonfatal && !matches!(kind(x), Some(XidKind::Cleanup | XidKind::Info))
    };
    // A 45 that names its cause is that Xid's evidence where its own line is lost.
    let lost = |x: &&XidEvent| {
        x.caused_by.is_some_and(|c| {
            let hard = knowledge.xid(c).is_none_or(|k| !matches!(k.kind, XidKind::Cleanup | XidKind::Info));
            hard && !xids.iter().any(|o| o.code == c && !o.nonfatal)
        })
    };
    if let Some(x) = xids.iter().copied().find(lost).filter(|_| !xids.iter().any(ends)) {
        let code = x.caused_by.unwrap_or(x.code);
        // The driver may call the event itself not fatal; that it tore channels down shows otherwise.
        let x = xids.iter().copied().find(|o| o.code == code).unwrap_or(x);
        let name = knowledge.xid(code).map_or("not in the catalogue", |k| k.name.as_str());
        let mut c = Candidate::new(
            first::xid_behind_cleanup::ID,
            Class::XidHardware,
            Source::Kernel,
            format!("the driver cleaned up channels of the GPU at {} because of Xid {code}: {name}", x.pci),
            format!("xid.{}", x.code),
        )
        .at(&x.place, &x.text, x.stamp);
        c.confidence = Confidence::Medium;
        c.phase = end_phase(facts);
        c.supports = vec![Cited::at(proof::Xid::CausedCleanup(code), &x.place)];
        c.against = if x.code == code { Vec::new() } else { vec![Cited::plain(proof::Xid::NoLine(code))] };
        all.push(c);
    }
    for x in xids.iter().copied().filter(ends) {
        let known = knowledge.xid(x.code);
        let name = known.map_or("not in the catalogue", |k| k.name.as_str());
        let application = known.is_some_and(|k| k.kind == XidKind::Application);
        let event =
            proof::Xid::Event { code: x.code, pci: x.pci.clone(), name: known.map(|k| k.name.clone()) };
        let mut supports = vec![Cited::at(event, &x.place)];
        let mut told = vec![x.code];
        for other in xids.iter().filter(|o| o.pci == x.pci) {
            if told.len() < 6 && !told.contains(&other.code) {
                told.push(other.code);
                let name = knowledge.xid(other.code).map(|k| k.name.clone());
                supports.push(Cited::at(proof::Xid::Further { code: other.code, name }, &other.place));
            }
        }
        let mut c = Candidate::new(
            first::xid::ID,
            Class::XidHardware,
            Source::Kernel,
            format!("the GPU at {} reported Xid {}: {name}", x.pci, x.code),
            format!("xid.{}", x.code),
        )
        .at(&x.place, &x.text, x.stamp);
        c.gpu = Some((x.pci.clone(), known.is_some_and(|k| k.leads)));
        c.confidence = match (known.is_some(), application) {
            (true, false) => Confidence::High,
            (true, true) => Confidence::Medium,
            (false, _) => Confidence::Low,
        };
        c.phase = end_phase(facts);
        c.supports = supports;
        c.against = if application { vec![Cited::plain(proof::Xid::OftenByProgram)] } else { Vec::new() };
        all.push(c);
    }
}
