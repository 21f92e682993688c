//! Python tracebacks without their last line: it names the error, and a `tail`, a `grep` or a lost line took it away.

use std::collections::HashMap;

/// Processes that are followed at the same time.
const MAX_PROCESSES: usize = 256;

/// A traceback that is cut behind its head was one, too.
const HEAD: &str = "Traceback (most recent call last):";

/// The last frame of each process behind which no exception stands.
#[derive(Debug, Default)]
pub(super) struct CutTraces {
    by_process: HashMap<String, (u64, String)>,
}

impl CutTraces {
    /// One line of a process, without its prefix.
    pub(super) fn line(&mut self, process: &str, message: &str, number: u64, raw: &str) {
        if is_frame(message) || message.trim_start().starts_with(HEAD) {
            if let Some(last) = self.by_process.get_mut(process) {
                *last = (number, raw.to_owned());
            } else if self.by_process.len() < MAX_PROCESSES {
                self.by_process.insert(process.to_owned(), (number, raw.to_owned()));
            }
        } else if !self.by_process.is_empty() && may_end(message) {
            self.by_process.remove(process);
        }
    }

    /// The first of them in the log.
    pub(super) fn first(self) -> Option<(u64, String)> {
        self.by_process.into_values().min()
    }
}

/// `  File "x.py", line 3, in run`; the fault handler writes no comma before "in" and no exception behind its frames.
fn is_frame(message: &str) -> bool {
    let line = message.trim_start();
    line.starts_with("File \"") && line.contains("\", line ") && line.contains(", in ")
}

/// An exception in any wording: `package.Name: message`, `Name`, `Name(…)`.
fn may_end(message: &str) -> bool {
    if message.starts_with(char::is_whitespace) {
        return false;
    }
    let name = message.split([':', '(']).next().unwrap_or_default().trim_end();
    let last = name.rsplit('.').next().unwrap_or_default();
    !name.contains(char::is_whitespace) && last.starts_with(|c: char| c.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(lines: &[&str]) -> Option<u64> {
        let mut traces = CutTraces::default();
        for (i, line) in lines.iter().enumerate() {
            traces.line("", line, i as u64 + 1, line);
        }
        traces.first().map(|(line, _)| line)
    }

    const FRAME: &str = "  File \"/vllm/v1/engine/core.py\", line 845, in run_engine_core";

    #[test]
    fn a_traceback_that_lost_its_exception_is_cut() {
        assert_eq!(
            cut(&["Traceback (most recent call last):", FRAME, "    engine_core.run_busy_loop()"]),
            Some(2)
        );
        assert_eq!(cut(&[FRAME, "AsyncLLM output_handler failed."]), Some(1));
        assert_eq!(cut(&[HEAD, "AsyncLLM output_handler failed."]), Some(1));
    }

    #[test]
    fn one_with_its_exception_is_not() {
        for end in [
            "torch.OutOfMemoryError: CUDA out of memory.",
            "KeyError",
            "triton.runtime.errors.OutOfResources: x",
        ] {
            assert_eq!(cut(&[FRAME, "    run()", end]), None, "{end}");
        }
    }

    #[test]
    fn the_fault_handler_s_frames_have_no_exception() {
        assert_eq!(cut(&["Fatal Python error: Aborted", "  File \"/a.py\", line 3 in run"]), None);
    }
}
