//! Sentences of the kubelet and its kin that stand alone in a paste: an alert, a chat or a web page shows the message of an
//! event, and neither its reason nor its object.

use super::{Facts, Hit, Place};
use crate::evidence::{Bundle, sentences};
use crate::knowledge::Knowledge;

/// Runs the signatures of events over lines that nobody logged.
pub(super) fn read(bundle: &Bundle, knowledge: &Knowledge, facts: &mut Facts) {
    for log in &bundle.logs {
        // Somebody who asks does not report.
        for (number, line) in sentences(log).into_iter().filter(|(_, l)| !l.trim_end().ends_with('?')) {
            let place = Place { file: log.name.clone(), line: Some(number) };
            for m in knowledge.matches(line, |_| false) {
                let Some(s) = knowledge.signature(m.id).filter(|s| s.of_objects()) else { continue };
                if line.get(..m.at).is_some_and(opens) {
                    facts.object_hits.push(Hit::of(s, m, &place, line.trim(), None));
                }
            }
        }
    }
}

/// What may stand before the known words: marks of a list or a quote, a label, the subject, and what each layer puts before
/// the words of the one below (`failed to create shim task: OCI runtime create failed: …`). A tale that quotes them is longer.
fn opens(before: &str) -> bool {
    const CLAUSE: usize = 64;
    before.split(": ").all(|clause| clause.trim().len() <= CLAUSE)
}

#[cfg(test)]
mod tests {
    use super::opens;

    #[test]
    fn a_label_or_a_mark_may_stand_before_it() {
        for before in [
            "",
            "  > ",
            "- **",
            "Message: ",
            "Reason: Evicted. Message: Pod ",
            "failed to create shim task: runc create failed: ",
        ] {
            assert!(opens(before), "{before}");
        }
        assert!(!opens(
            "what does it mean when the kubelet says of a pod of ours that was restarted last night "
        ));
    }
}
