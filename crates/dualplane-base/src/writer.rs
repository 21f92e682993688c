//! Lines of a text report, as verdicts and plans write them.

use crate::style::{Style, wrap};
use crate::text::printable;

/// A text in the making.
#[derive(Debug)]
pub struct Writer {
    /// Colours and width.
    pub style: Style,
    /// The text so far.
    pub out: String,
}

impl Writer {
    /// An empty one.
    #[must_use]
    pub fn new(style: Style) -> Self {
        Self { style, out: String::new() }
    }

    /// A line as it is.
    pub fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }

    /// A text wrapped at the width, made safe for a terminal.
    pub fn wrapped(&mut self, text: &str, first: &str, next: &str) {
        let t = wrap(&printable(text), self.style.width, first, next);
        self.line(&t);
    }

    /// A heading, behind an empty line.
    pub fn heading(&mut self, text: &str) {
        self.out.push('\n');
        let t = self.style.bold(text);
        self.line(&t);
    }

    /// So many of a list, or all with `-v`.
    #[must_use]
    pub fn limit(&self, n: usize) -> usize {
        if self.style.verbose { usize::MAX } else { n }
    }
}
