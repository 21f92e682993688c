//! A verdict that is of no plane tells the memory errors that were survived before.

use super::Weighing;
use crate::verdict::case::Case;
use crate::verdict::server_runs::of_an_earlier_life;
use crate::verdict::{Class, Decided, Step};

pub(in crate::verdict) const RULE: Weighing = Weighing {
    id: "survived_errors",
    adds: "a step for each memory error that the server survived, together with the verdict not_memory or unknown",
    because: "readers of the log find these lines first and must see that they did not end the server",
    source: "own",
    apply,
};

fn apply(case: &Case<'_>, decided: &mut Decided) {
    if !matches!(decided.class, Class::NotMemory | Class::Unknown) {
        return;
    }
    for c in case.candidates.iter().filter(|c| c.survived || of_an_earlier_life(c, case.facts)) {
        if !decided.sequence.iter().any(|s| s.class == c.class) {
            decided.sequence.push(Step {
                class: c.class,
                phase: c.phase,
                what: format!("{} (the server kept serving afterwards)", c.what),
                trigger: c.trigger(),
                follows: false,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{File, adds_nothing, judged, log};

    fn server(error: &str) -> [File; 1] {
        let answer = "INFO:     10.0.3.4:51234 - \"POST /v1/chat/completions HTTP/1.1\" 200 OK\n";
        let text = format!(
            "INFO:     Application startup complete.\n{answer}{error}{}INFO:     Shutting down\n",
            answer.repeat(30)
        );
        [log(&text)]
    }

    #[test]
    fn an_error_that_the_server_survived_is_a_step() {
        let v = judged(&server(
            "ERROR 06-18 09:10:00 [serving_chat.py:1144] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 616.00 MiB. GPU 0 has a total capacity of 79.11 GiB of which 501.19 MiB is free. Including non-PyTorch memory, this process has 78.61 GiB memory in use. Of the allocated memory 76.20 GiB is allocated by PyTorch, and 0.40 GiB is reserved by PyTorch but unallocated.\n",
        ));
        assert!(v.weighed.contains(&RULE.id), "{:?}", v.weighed);
        let step = v.sequence.iter().find(|s| s.class == crate::verdict::Class::CudaOomRuntime).unwrap();
        assert!(step.what.contains("kept serving"), "{}", step.what);
    }

    #[test]
    fn a_sigkill_that_nobody_explains_is_not_of_an_error_that_was_survived() {
        let [log] = server(
            "ERROR 06-18 09:10:00 [core.py:700] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 616.00 MiB. GPU 0 has a total capacity of 79.11 GiB of which 501.19 MiB is free. Including non-PyTorch memory, this process has 78.61 GiB memory in use. Of the allocated memory 76.20 GiB is allocated by PyTorch, and 0.40 GiB is reserved by PyTorch but unallocated.\n",
        );
        let log = (log.0, log.1.replace("INFO:     Shutting down\n", ""));
        let v = judged(&[log, crate::verdict::rules::testing::pod(137, "Error")]);
        assert_eq!((v.class, v.decided_by), (crate::verdict::Class::Unknown, "killed"));
        assert!(v.weighed.contains(&RULE.id), "{:?}", v.weighed);
    }

    #[test]
    fn the_error_that_decides_is_no_step_beside() {
        adds_nothing(
            &RULE,
            "vram_unsized",
            &[log(
                "INFO 11-20 10:05:12 [model_runner.py:1108] Starting to load model m...\ntorch.OutOfMemoryError: CUDA out of memory.\n",
            )],
        );
    }
}
