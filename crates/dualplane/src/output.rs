//! Writing to standard output and error: colour only on a terminal, a closed pipe is no error.

use std::io::{self, IsTerminal, Write};

use dualplane_base::deprecation::{DEPRECATED, Deprecation};
use dualplane_base::style::Style;

use crate::args::Colour;
use crate::commands::Failure;

/// Columns of text output where the terminal does not tell: a page that fits a pasted ticket.
const DEFAULT_WIDTH: usize = 100;

/// Style for text output.
pub(crate) fn style(colour: Colour, verbose: bool) -> Style {
    let colour = match colour {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto => {
            io::stdout().is_terminal()
                && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
                && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
        }
    };
    Style { colour, verbose, width: columns() }
}

/// Columns to write in: `$COLUMNS`, which shells seldom export, else those of the terminal.
pub(crate) fn columns() -> usize {
    wide(terminal_size::terminal_size_of(io::stdout()))
}

/// Columns of the terminal on standard error, where progress is shown.
pub(crate) fn progress_columns() -> usize {
    wide(terminal_size::terminal_size_of(io::stderr()))
}

fn wide(terminal: Option<(terminal_size::Width, terminal_size::Height)>) -> usize {
    let said = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    let width = said.or(terminal.map(|(w, _)| usize::from(w.0)).filter(|w| *w > 0)).unwrap_or(DEFAULT_WIDTH);
    width.clamp(60, 160)
}

/// Writes to standard output. A reader that went away (`| head`) has what it wanted.
pub(crate) fn write(text: &str) -> Result<(), Failure> {
    deprecated(&crate::deprecated::written(text, DEPRECATED));
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(e) => Err(Failure::Output(e)),
        Ok(()) => Ok(()),
    }
}

/// Prints a failure and what to do about it.
pub(crate) fn error(failure: &Failure) {
    let mut err = io::stderr().lock();
    // A list in an error has lines of its own; everything in them is made safe.
    let text = failure.to_string();
    let lines: Vec<_> = text.lines().map(dualplane_base::text::printable).collect();
    let _ = writeln!(err, "error: {}", lines.join("\n"));
    if let Some(hint) = failure.hint() {
        let _ = writeln!(err, "  {}", dualplane_base::text::printable(&hint));
    }
}

/// Writes a line of the agent's log, which is safe already.
pub(crate) fn log(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Prints a remark that is no failure.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "note: {}", dualplane_base::text::printable(text));
}

/// Says what of what was used goes with a later release.
pub(crate) fn deprecated(found: &[&Deprecation]) {
    for d in found {
        note(&d.to_string());
    }
}

/// A line of progress on standard error, where that is a terminal.
pub(crate) struct Progress {
    terminal: bool,
    last: Option<std::time::Instant>,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self { terminal: io::stderr().is_terminal(), last: None }
    }

    /// So many bytes of a file were read (of a size, where it has one), and so many requests were counted.
    pub(crate) fn bytes(&mut self, done: u64, size: u64, requests: u64) {
        let of = if size > done { format!(" of {} MiB", size >> 20) } else { String::new() };
        self.line(&format!("reads {} MiB{of}, {requests} requests", done >> 20));
    }

    /// Shows a line, a few times in a second.
    pub(crate) fn line(&mut self, text: &str) {
        let soon = self.last.is_some_and(|l| l.elapsed().as_millis() < 250);
        if !self.terminal || soon {
            return;
        }
        self.last = Some(std::time::Instant::now());
        let text = dualplane_base::text::printable(text);
        let line: String = text.chars().take(progress_columns().saturating_sub(1)).collect();
        let _ = write!(io::stderr().lock(), "\r\x1b[K{line}");
    }

    /// Takes the line away.
    pub(crate) fn clear(&self) {
        if self.terminal && self.last.is_some() {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}
