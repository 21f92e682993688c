//! Lines of a text report, as verdicts and plans write them.

use super::style::{Style, wrap};
use crate::text::printable;

pub(super) struct Writer {
    pub(super) style: Style,
    pub(super) out: String,
}

impl Writer {
    pub(super) fn new(style: Style) -> Self {
        Self { style, out: String::new() }
    }

    pub(super) fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }

    pub(super) fn wrapped(&mut self, text: &str, first: &str, next: &str) {
        let t = wrap(&printable(text), self.style.width, first, next);
        self.line(&t);
    }

    pub(super) fn heading(&mut self, text: &str) {
        self.out.push('\n');
        let t = self.style.bold(text);
        self.line(&t);
    }

    /// So many of a list, or all with `-v`.
    pub(super) fn limit(&self, n: usize) -> usize {
        if self.style.verbose { usize::MAX } else { n }
    }
}
