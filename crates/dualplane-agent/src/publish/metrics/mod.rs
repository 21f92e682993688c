//! A view as Prometheus text. `docs/agent.md` holds the table of all families; a test compares.
//!
//! Names follow the conventions of Prometheus: base units, `_total` behind counters. Where nothing was read there is no
//! sample, never a 0. Both planes carry the same labels, so that a query can join them.

mod agent;
mod containers;
mod family;
mod gpus;
mod node;

use dualplane_base::deprecation::DEPRECATED;
pub use family::{Family, Type};
use family::{Labels, Page};

use super::Counts;
use crate::view::View;

/// Media type of the page.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Writes a page behind what is in `out`.
pub fn render(view: &View, counts: &Counts, out: &mut String) {
    let mut page = Page::new(out);
    let node = Labels::default().with("node", &counts.node);
    containers::render(view, &node, &mut page);
    gpus::render(view, &node, &mut page);
    node::render(view, &node, &mut page);
    agent::render(view, counts, &node, &mut page);
}

/// All families, in the order of the page.
pub fn families() -> impl Iterator<Item = &'static Family> {
    containers::families().chain(gpus::families()).chain(node::families()).chain(agent::families())
}

/// The table of the manual, in Markdown.
#[must_use]
pub fn table() -> String {
    let mut out = String::from("| metric | type | labels besides `node` | meaning |\n|---|---|---|---|\n");
    for f in families() {
        let labels =
            if f.labels.is_empty() { String::new() } else { format!("`{}`", f.labels.replace(' ', "`, `")) };
        let help = f.help(DEPRECATED);
        out.push_str(&format!("| `{}` | {} | {labels} | {help} |\n", f.name, f.kind.word()));
    }
    out
}

#[cfg(test)]
mod tests;
