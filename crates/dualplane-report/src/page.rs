//! A text report in the making; each kind of report writes its sections in a file of its own.

use std::ops::{Deref, DerefMut};

use dualplane_base::style::Style;
use dualplane_base::writer::Writer;

/// What is written so far.
pub(super) struct Page(Writer);

impl Page {
    pub(super) fn new(style: Style) -> Self {
        Self(Writer::new(style))
    }

    /// The whole text.
    pub(super) fn finish(self) -> String {
        self.0.out
    }
}

impl Deref for Page {
    type Target = Writer;

    fn deref(&self) -> &Writer {
        &self.0
    }
}

impl DerefMut for Page {
    fn deref_mut(&mut self) -> &mut Writer {
        &mut self.0
    }
}
