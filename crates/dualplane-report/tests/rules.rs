//! The rules of the verdict over all incidents: none is without an example, and each precedence has its reason.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    missing_docs,
    clippy::disallowed_methods,
    clippy::disallowed_types
)]

use std::collections::{BTreeMap, BTreeSet};

mod common;

use common::{incidents, root};
use dualplane_core::knowledge::Knowledge;
use dualplane_core::verdict::rules::{Ruling, TABLE, rule};
use dualplane_core::verdict::weighing::WEIGHING;
use dualplane_report::{self as report, Report};

fn reports() -> Vec<Report> {
    let knowledge = Knowledge::embedded().unwrap();
    let one = |(name, files): (String, _)| report::triage_all(&name, files, Vec::new(), &knowledge);
    incidents().into_iter().flat_map(one).collect()
}

#[test]
fn each_rule_has_an_incident_and_each_precedence_a_reason() {
    let mut used: BTreeSet<&str> = BTreeSet::new();
    let mut unsaid: BTreeMap<(&str, &str), String> = BTreeMap::new();
    for r in reports() {
        let v = &r.verdict;
        used.insert(v.decided_by);
        used.extend(v.weighed.iter().copied());
        let decided = rule(v.decided_by).unwrap();
        assert!(decided.classes.contains(&v.class), "{}: {} decides for {}", r.name, decided.id, v.class);
        for asked in &v.trace {
            if let Ruling::LostTo(winner) = asked.ruling
                && rule(winner).unwrap().goes_before(rule(asked.rule).unwrap()).is_none()
            {
                unsaid.insert((winner, asked.rule), r.name.clone());
            }
        }
    }
    assert!(unsaid.is_empty(), "goes before, and does not say why: {unsaid:#?}");
    let all = TABLE.iter().map(|r| r.id).chain(WEIGHING.iter().map(|w| w.id));
    let without: Vec<&str> = all.filter(|id| !used.contains(id)).collect();
    assert!(without.is_empty(), "no incident in testdata/incidents exercises {without:?}");
}

/// `EXPECTORATE=overwrite cargo test -p dualplane-report --test rules` writes the page anew.
#[test]
fn the_page_of_rules_is_the_table() {
    expectorate::assert_contents(root().join("docs/rules.md"), &report::rules::markdown());
}
