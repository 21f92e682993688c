//! The log ends in an orderly stop, and nothing failed since the server answered last.

use super::{Beats, Judged, Rule, Stage, decided, quoted, unmet};
use crate::facts::Place;
use crate::verdict::case::Case;
use crate::verdict::{Class, Confidence};

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "orderly_stop",
    stage: Stage::Signal,
    classes: &[Class::NotMemory],
    when: "the log contains a memory error after which the server answered requests, and it ends with a \
    request to stop",
    near_miss: "a request to stop after another failure",
    beats: &[
        Beats::rule("survived_error", "the server answered well after the error and was then stopped"),
        Beats::stage(Stage::Failure, "nothing failed after the last response"),
        Beats::stage(Stage::Unexplained, "the stop explains the end"),
        Beats::stage(Stage::Life, "the end is explained"),
        Beats::stage(Stage::Nothing, "the end is explained"),
    ],
    source: "uvicorn and engines: messages of a graceful stop (knowledge host.stop_request)",
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    if !case.survived() {
        return Err(unmet("the log contains no memory error that the server survived"));
    }
    let facts = case.facts;
    let log = facts
        .logs
        .iter()
        .find(|l| !l.kernel && l.last_served.is_some())
        .ok_or_else(|| unmet("no log shows an answered request"))?;
    let since = |p: &Place| p.file == log.file && p.line > log.last_served;
    if case.failed_since(log, log.last_served) {
        return Err(unmet("something failed after the last answered request"));
    }
    let stop = facts
        .hits
        .iter()
        .find(|h| since(&h.place) && h.is_stop_request())
        .ok_or_else(|| unmet("there is no request to stop after the last answered request"))?;
    let summary = "the server was stopped gracefully; nothing failed after its last request";
    Ok(decided(Class::NotMemory, case.end_phase(), Confidence::Medium, summary, vec![quoted(stop)]))
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{File, holds, log, near_miss};

    /// A request failed of VRAM at 09:10, others were answered until 10:00.
    fn server(then: &str) -> [File; 1] {
        let oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 616.00 MiB. GPU 0 has a total capacity of 79.11 GiB of which 501.19 MiB is free. Including non-PyTorch memory, this process has 78.61 GiB memory in use. Of the allocated memory 76.20 GiB is allocated by PyTorch, and 0.40 GiB is reserved by PyTorch but unallocated.";
        let answer =
            "(APIServer pid=1) INFO:     10.0.3.4:51234 - \"POST /v1/chat/completions HTTP/1.1\" 200 OK\n";
        let text = format!(
            "(APIServer pid=1) INFO:     Application startup complete.\n{answer}\
             (APIServer pid=1) ERROR 06-18 09:10:00 [serving_chat.py:1144] {oom}\n{}{then}",
            answer.repeat(30)
        );
        [log(&text)]
    }

    const STOP: &str = "(APIServer pid=1) INFO:     Shutting down\n(APIServer pid=1) INFO:     Waiting for application shutdown.\n";

    #[test]
    fn a_request_to_stop_ends_a_server_that_survived() {
        holds(&RULE, &server(STOP));
    }

    #[test]
    fn a_stop_behind_a_failure_is_its_consequence() {
        let failed =
            "OSError: [Errno 28] No space left on device: '/root/.cache/huggingface/hub/model.safetensors'\n";
        near_miss(&RULE, "survived_error", &server(&format!("{failed}{STOP}")));
    }
}
