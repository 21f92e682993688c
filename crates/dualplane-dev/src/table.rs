//! One table of figures of a developer command: how many of how many, and what missed.

#[derive(Default)]
pub(super) struct Table {
    pub(super) of: usize,
    pub(super) right: usize,
    pub(super) misses: Vec<String>,
}

impl Table {
    pub(super) fn mark(&mut self, right: bool, miss: impl FnOnce() -> String) {
        self.of += 1;
        self.right += usize::from(right);
        if !right {
            self.misses.push(miss());
        }
    }

    pub(super) fn percent(&self) -> f64 {
        if self.of == 0 { 100.0 } else { self.right as f64 * 100.0 / self.of as f64 }
    }
}
