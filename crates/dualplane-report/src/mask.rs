//! Secrets and user text are masked in what a report quotes.

use std::borrow::Cow;

use super::Report;
use crate::words::{Cause, Citation};
use dualplane_core::knowledge::Knowledge;
use dualplane_core::redact;
use dualplane_core::verdict::Trigger;

/// Masks all quoted lines of a report in place.
pub fn mask(report: &mut Report, knowledge: &Knowledge) {
    let mask = |text: &mut String| {
        if let Cow::Owned(masked) = redact::line(text, knowledge) {
            *text = masked;
        }
    };
    let v = &mut report.verdict;
    let trigger = |t: &mut Option<Trigger>| {
        if let Some(t) = t {
            mask(&mut t.text);
        }
    };
    let cites = |c: &mut Vec<Citation>| c.iter_mut().for_each(|c| mask(&mut c.text));
    trigger(&mut v.trigger);
    mask(&mut v.summary);
    for s in &mut v.sequence {
        mask(&mut s.what);
        trigger(&mut s.trigger);
    }
    for o in &mut v.others {
        mask(&mut o.summary);
    }
    for c in &mut v.cascade {
        mask(&mut c.text);
    }
    for Cause { title, supports, against, .. } in &mut report.causes {
        mask(title);
        cites(supports);
        cites(against);
    }
    let budget = &mut report.budget;
    if let Some(model) = budget.expected.as_mut().and_then(|e| e.launch.line.model.as_mut()) {
        mask(model);
    }
    for s in &mut budget.suspects {
        mask(&mut s.what);
        s.because.iter_mut().for_each(mask);
    }
    for a in &mut report.actions {
        mask(&mut a.title);
        a.arithmetic.iter_mut().for_each(mask);
    }
}
