//! Xid events as candidates: cleanup and information end nothing.

use std::collections::BTreeMap;

use super::{Candidate, From, end_phase};
use crate::facts::{Facts, XidEvent};
use crate::knowledge::{Knowledge, XidKind};
use crate::verdict::{Cited, Class, Confidence};

pub(super) fn collect(facts: &Facts, knowledge: &Knowledge, all: &mut Vec<Candidate>) {
    let kind = |x: &XidEvent| knowledge.xid(x.code).map(|k| k.kind);
    let ends = |x: &&XidEvent| {
        x.caused_by.is_none() && !x.nonfatal && !matches!(kind(x), Some(XidKind::Cleanup | XidKind::Info))
    };
    // A 45 that names its cause is that Xid's evidence where its own line is lost.
    let lost = |x: &&XidEvent| {
        x.caused_by.is_some_and(|c| {
            let hard = knowledge.xid(c).is_none_or(|k| !matches!(k.kind, XidKind::Cleanup | XidKind::Info));
            hard && !facts.xids.iter().any(|o| o.code == c && !o.nonfatal)
        })
    };
    if let Some(x) = facts.xids.iter().find(lost).filter(|_| !facts.xids.iter().any(|x| ends(&x))) {
        let code = x.caused_by.unwrap_or(x.code);
        // The driver may call the event itself not fatal; that it tore channels down shows otherwise.
        let x = facts.xids.iter().find(|o| o.code == code).unwrap_or(x);
        let name = knowledge.xid(code).map_or("not in the catalogue", |k| k.name.as_str());
        let mut c = Candidate::new(
            Class::XidHardware,
            From::Kernel,
            format!(
                "the driver cleaned up channels of the GPU at {} because of an Xid {code}: {name}",
                x.pci
            ),
            format!("xid.{}", x.code),
        )
        .at(&x.place, &x.text, x.stamp);
        c.confidence = Confidence::Medium;
        c.phase = end_phase(facts);
        c.supports = vec![Cited::at(format!("an Xid 45 says \"caused by previous Xid {code}\""), &x.place)];
        c.against = if x.code == code {
            Vec::new()
        } else {
            vec![Cited::plain(format!("the line of Xid {code} itself is not in the evidence"))]
        };
        all.push(c);
    }
    // A flood of one code must not hide the first of another.
    const KEPT_PER_CODE: u32 = 16;
    let mut of_code: BTreeMap<u32, u32> = BTreeMap::new();
    for x in facts.xids.iter().filter(ends) {
        let n = of_code.entry(x.code).or_insert(0);
        *n += 1;
        if *n > KEPT_PER_CODE {
            continue;
        }
        let known = knowledge.xid(x.code);
        let name = known.map_or("not in the catalogue", |k| k.name.as_str());
        let application = known.is_some_and(|k| k.kind == XidKind::Application);
        let mut supports = vec![Cited::at(format!("Xid {} on {}: {name}", x.code, x.pci), &x.place)];
        for other in facts.xids.iter().filter(|o| o.pci == x.pci && o.place != x.place).take(5) {
            let name = knowledge.xid(other.code).map_or("", |k| k.name.as_str());
            supports.push(Cited::at(format!("Xid {} {name}", other.code), &other.place));
        }
        let mut c = Candidate::new(
            Class::XidHardware,
            From::Kernel,
            format!("the GPU at {} reported Xid {}: {name}", x.pci, x.code),
            format!("xid.{}", x.code),
        )
        .at(&x.place, &x.text, x.stamp);
        c.confidence = match (known.is_some(), application) {
            (true, false) => Confidence::High,
            (true, true) => Confidence::Medium,
            (false, _) => Confidence::Low,
        };
        c.phase = end_phase(facts);
        c.supports = supports;
        c.against = if application {
            vec![Cited::plain(
                "this Xid is most often caused by the program (an illegal access in a kernel), not by worn hardware",
            )]
        } else {
            Vec::new()
        };
        all.push(c);
    }
}
