//! Nothing is at hand but what a person writes: "my pod keeps getting OOMKilled".

use super::{Beats, Judged, Rule, Stage, decided, unmet};
use crate::facts::Place;
use crate::verdict::case::Case;
use crate::verdict::proof::Status;
use crate::verdict::{Cited, Class, Confidence, Phase};

/// More lines than a message has.
const MESSAGE: u64 = 200;

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "quoted_words",
    stage: Stage::Unexplained,
    classes: &[Class::HostOomKilled, Class::CudaOomRuntime],
    when: "a message says that a container was OOMKilled or that CUDA ran out of memory, and there is no \
    status, event or log",
    near_miss: "a message that denies, supposes or asks it, or names both planes",
    beats: &[
        Beats::rule("death_line", "the message says what the process died of"),
        Beats::rule("failure_wrapper", "the message says what the process died of"),
        Beats::stage(Stage::Nothing, "the message says that something died"),
    ],
    source: "own; the words are those of the kubelet and of PyTorch",
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let b = case.bundle;
    let quote = b.quotes.first().ok_or_else(|| unmet("no message names a memory failure"))?;
    if b.quotes.iter().any(|q| q.gpu != quote.gpu) {
        return Err(unmet("the message names both planes"));
    }
    let lines: u64 = case.facts.logs.iter().map(|l| l.lines).sum();
    if !b.pods.is_empty() || !b.events.is_empty() || lines > MESSAGE || case.end_phase() != Phase::Unknown {
        return Err(unmet("there is evidence besides the message"));
    }
    let place = Place { file: quote.file.clone(), line: Some(quote.line) };
    let supports = vec![Cited::quote(crate::text::shorten(&quote.text, 240), &place)];
    let (class, what) = match quote.gpu {
        true => (Class::CudaOomRuntime, "CUDA ran out of memory"),
        false => (Class::HostOomKilled, "a container was OOMKilled"),
    };
    let summary = format!("a message says that {what}; this rests on quoted words only");
    let mut d = decided(class, Phase::Unknown, Confidence::Low, summary, supports);
    d.against.push(Cited::plain(Status::Unconfirmed));
    Ok(d)
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{file, holds, judged, near_miss, pod};
    use crate::verdict::{Class, Confidence};

    #[test]
    fn words_alone_are_a_guess() {
        for (text, class) in [
            ("my pod keeps getting OOMKilled after some minutes\n", Class::HostOomKilled),
            ("getting CUDA out of memory on my A100\n", Class::CudaOomRuntime),
        ] {
            holds(&RULE, &[file("message.txt", text)]);
            let v = judged(&[file("message.txt", text)]);
            assert_eq!((v.class, v.confidence), (class, Confidence::Low));
        }
    }

    #[test]
    fn a_denial_or_a_question_is_none() {
        for text in [
            "the pod was not OOMKilled\n",
            "docker shows that OOMKilled is false, and the exit code is 137\n",
            "How do I avoid OOMKilled?\n",
            "OOMKilled or CUDA out of memory?\n",
        ] {
            let v = judged(&[file("message.txt", text)]);
            assert_ne!(v.decided_by, RULE.id, "{text}");
        }
    }

    #[test]
    fn a_status_speaks_for_itself() {
        near_miss(&RULE, "killed", &[pod(137, "Error"), file("message.txt", "it gets OOMKilled\n")]);
    }
}
