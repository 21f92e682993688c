//! A server that went on for a while behind an error: whether it died of it is close, and said to be.

use super::Weighing;
use crate::verdict::candidates::{Candidate, Source, Weight};
use crate::verdict::case::Case;
use crate::verdict::chain::LINKED_MS;
use crate::verdict::proof::{Log, Proof};
use crate::verdict::server_runs::{After, after, of_an_earlier_life, served_nothing_after};
use crate::verdict::{Cited, Class, Confidence, Decided, Plane};

pub(in crate::verdict) const RULE: Weighing = Weighing {
    id: "close_recovery",
    adds: "doubt, where a server answered for a while behind a VRAM error, or was killed long after one; lowers the \
    confidence to medium",
    because: "answers that were under way are written when the engine is gone, and a server that recovers answers as well: \
    between them lie seconds",
    source: "vLLM, SGLang: a front end outlives its engine until it notices",
    apply,
};

fn apply(case: &Case<'_>, decided: &mut Decided) {
    let errors = case.candidates.iter().filter(|c| {
        c.from == Source::Log && c.class.plane() == Plane::Gpu && (c.weight == Weight::Fatal || c.survived)
    });
    let mut doubts: Vec<(&Candidate, Proof)> = Vec::new();
    for c in errors.filter(|c| c.place.is_some() && !of_an_earlier_life(c, case.facts)) {
        let own = decided.trigger.as_ref().is_some_and(|t| Some(&t.place) == c.place.as_ref());
        // Of another error than the one that decides only its survival is in question.
        let decides = own || decided.class.plane() != Plane::Gpu;
        let doubt = match after(c, case.facts) {
            Some(After { lived_on, close: true, lines, ms }) => {
                Some(Log::ServedForAWhile { lines, ms, lived_on }.into())
            }
            Some(_) => None,
            // Whenever the end came, it was of an engine that had said that it is dead.
            None if served_nothing_after(c, case.facts) => None,
            None => long_before(c, case).map(|ms| Log::LongBeforeTheKill { ms }.into()),
        };
        doubts.extend(doubt.filter(|_| decides).map(|d| (c, d)));
    }
    // The latest error is the one whose outcome counts.
    let Some((c, doubt)) = doubts.into_iter().max_by_key(|(c, _)| c.place.clone()) else { return };
    if decided.confidence > Confidence::Medium {
        decided.confidence = Confidence::Medium;
    }
    if let Some(place) = &c.place {
        decided.against.push(Cited::at(doubt, place));
    }
}

/// Around the time that separates two incidents, how long before the kill the error was.
fn long_before(c: &Candidate, case: &Case<'_>) -> Option<i64> {
    const CLOSE: i64 = 3;
    let kill = case.candidates.iter().find(|k| {
        matches!(k.class, Class::HostOomKilled | Class::HostNodeOom) && k.from != Source::Log && !k.untied
    })?;
    let ms = c.stamp.zip(kill.stamp).and_then(|(c, k)| c.ms_until(k))?;
    (LINKED_MS / CLOSE..=LINKED_MS * CLOSE).contains(&ms).then_some(ms)
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::Confidence;
    use crate::verdict::rules::testing::{File, judged, log, pod};

    fn server(answers: usize) -> [File; 2] {
        let answer = "INFO:     10.0.3.4:51234 - \"POST /v1/chat/completions HTTP/1.1\" 200 OK\n";
        let text = format!(
            "INFO:     Application startup complete.\n{answer}ERROR 11-20 10:29:00 [serving_chat.py:1144] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 616.00 MiB. GPU 0 has a total capacity of 79.11 GiB of which 501.19 MiB is free. Including non-PyTorch memory, this process has 78.61 GiB memory in use. Of the allocated memory 76.20 GiB is allocated by PyTorch, and 0.40 GiB is reserved by PyTorch but unallocated.\n{}",
            answer.repeat(answers)
        );
        [log(&text), pod(137, "OOMKilled")]
    }

    #[test]
    fn around_the_edge_it_is_said_and_less_sure() {
        for answers in [10, 20, 21, 40] {
            let v = judged(&server(answers));
            assert!(v.weighed.contains(&RULE.id), "{answers}: {:?}", v.weighed);
            assert!(v.confidence <= Confidence::Medium, "{answers}");
        }
    }

    #[test]
    fn far_from_it_nothing_is_added() {
        for answers in [0, 2, 400] {
            let v = judged(&server(answers));
            assert!(!v.weighed.contains(&RULE.id), "{answers}: {:?}", v.weighed);
            assert_eq!(v.confidence, Confidence::High, "{answers}");
        }
    }
}
