//! Places of exports: facts and verdict count the lines of a log in the order of time; a person opens the file, where an
//! export may hold them in another order, or many in one line.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Report;
use dualplane_base::Place;
use dualplane_core::verdict::Cited;

/// Turns the lines that were counted into lines of the files.
pub(super) fn to_file_lines(report: &mut Report) {
    let numbers: BTreeMap<String, Arc<[u64]>> = report
        .bundle
        .logs
        .iter()
        .filter_map(|l| Some((l.name.clone(), Arc::clone(l.numbers.as_ref()?))))
        .collect();
    if numbers.is_empty() {
        return;
    }
    let fix = |place: &mut Place| {
        let of_file = numbers.get(place.file.as_str());
        if let (Some(numbers), Some(line)) = (of_file, place.line) {
            let index = usize::try_from(line).unwrap_or(usize::MAX).saturating_sub(1);
            place.line = numbers.get(index).copied().or(place.line);
        }
    };
    let cited = |all: &mut Vec<Cited>| all.iter_mut().filter_map(|c| c.place.as_mut()).for_each(fix);
    let verdict = &mut report.verdict;
    verdict.trigger.iter_mut().for_each(|t| fix(&mut t.place));
    verdict.sequence.iter_mut().filter_map(|s| s.trigger.as_mut()).for_each(|t| fix(&mut t.place));
    verdict.cascade.iter_mut().for_each(|c| fix(&mut c.first));
    for cause in &mut verdict.causes {
        cited(&mut cause.supports);
        cited(&mut cause.against);
    }
    report.facts.hits.iter_mut().for_each(|h| fix(&mut h.place));
}
