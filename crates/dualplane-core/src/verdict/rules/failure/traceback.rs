//! A traceback that ends in an exception which is no memory error.

use super::{BEATS, Judged, Rule, Stage, death, decided, unmet};
use crate::facts::Exception;
use crate::verdict::case::Case;
use crate::verdict::{Cited, Class, Confidence, Phase};

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "traceback",
    stage: Stage::Failure,
    classes: &[Class::NotMemory],
    when: "a traceback ends in an exception that matches no signature and names its cause, the server did not go on \
    after it, no process is reported dead, and the container did not end with SIGKILL",
    near_miss: "the traceback of one request before a SIGKILL: an exception does not send SIGKILL; an exception that only \
    notices a lost process or connection",
    beats: BEATS,
    source: "CPython traceback format",
    judge,
};

pub(super) fn judge(case: &Case<'_>) -> Judged {
    if case.exit_code() == Some(137) {
        return Err(unmet("the container ended with SIGKILL, which an exception does not send"));
    }
    exception(case)
}

/// The first exception that no signature knows.
pub(super) fn exception(case: &Case<'_>) -> Judged {
    if death(case.facts).is_some() {
        return Err(unmet("a process is reported dead"));
    }
    let exception = case
        .facts
        .exceptions
        .iter()
        .find(|e| !case.outlived(&e.place) && !leaves_open(e))
        .ok_or_else(|| unmet("no traceback ends in an exception that matches no signature"))?;
    let summary = format!(
        "the traceback ends in {}, which is not a memory error",
        crate::text::shorten(&exception.message, 160)
    );
    let supports = vec![Cited::quote(crate::text::shorten(exception.text.trim(), 240), &exception.place)];
    let mut phase = case.phase_or_end(exception.phase);
    // A module that cannot be imported is missed when the program begins.
    if phase == Phase::Unknown && matches!(exception.name.as_str(), "ImportError" | "ModuleNotFoundError") {
        phase = Phase::Load;
    }
    Ok(decided(Class::NotMemory, phase, Confidence::Medium, summary, supports))
}

/// Exceptions that only notice that something else is gone, slow or asked to stop.
const NOTICES: &[&str] = &[
    "BrokenPipeError",
    "BrokenProcessPool",
    "CancelledError",
    "ConnectionAbortedError",
    "ConnectionError",
    "ConnectionRefusedError",
    "ConnectionResetError",
    "EOFError",
    "IncompleteReadError",
    "KeyboardInterrupt",
    "SystemExit",
    "TimeoutError",
];

/// Words of an exception that may stand for a memory error or for a fault of the GPU.
const OPEN: &[&str] = &["CUDA error", "CUDA driver error", "HIP error", "NCCL error", "llocat"];

/// The exception does not say what failed, or that something else did: it explains no end.
fn leaves_open(exception: &Exception) -> bool {
    let name = exception.name.rsplit('.').next().unwrap_or_default();
    NOTICES.contains(&name) || OPEN.iter().any(|w| exception.message.contains(w))
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{holds, log, near_miss, pod};

    const TRACE: &str = "Traceback (most recent call last):\n  File \"/app/serve.py\", line 3, in <module>\n    main()\n  File \"/app/serve.py\", line 2, in main\n    table[key]\nZeroDivisionError: division by zero\n";

    #[test]
    fn an_exception_is_the_end() {
        holds(&RULE, &[pod(1, "Error"), log(TRACE)]);
    }

    #[test]
    fn one_that_only_notices_a_lost_process_is_none() {
        let trace = TRACE.replace("ZeroDivisionError: division by zero", "EOFError");
        near_miss(&RULE, "exit_code", &[pod(1, "Error"), log(&trace)]);
    }

    #[test]
    fn one_that_leaves_open_what_failed_is_none() {
        let open = "RuntimeError: tensor allocation: status=4";
        let trace = TRACE.replace("ZeroDivisionError: division by zero", open);
        near_miss(&RULE, "exit_code", &[pod(1, "Error"), log(&trace)]);
    }

    #[test]
    fn beside_a_sigkill_it_is_not() {
        near_miss(&RULE, "killed", &[pod(137, "Error"), log(TRACE)]);
    }
}
