//! The runbook of each class: the pages of `docs/runbooks/`, which the program carries, because a node on fire may have no
//! way out to the internet.

use dualplane_base::Class;
use dualplane_base::packed::Block;

/// Where the manual of this version lies.
const MANUAL: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/v", env!("CARGO_PKG_VERSION"), "/docs");

/// What `build.rs` writes between two pages.
const BETWEEN: char = '\u{1e}';

/// All pages, one behind the other.
static PAGES: Block = include!(concat!(env!("OUT_DIR"), "/runbooks.rs"));

/// The page of a class, in Markdown.
#[must_use]
pub fn page(class: Class) -> &'static str {
    let head = format!("# {class}:");
    PAGES.text().split(BETWEEN).find(|page| page.starts_with(&head)).unwrap_or_default()
}

/// Where the same page can be read with a browser, as it was in this version.
#[must_use]
pub fn link(class: Class) -> String {
    format!("{MANUAL}/runbooks/{class}.md")
}

/// The command that prints it.
#[must_use]
pub fn command(class: Class) -> String {
    format!("dualplane runbook {class}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another class' page would tell the other plane's fix.
    #[test]
    fn each_class_has_its_own_page() {
        assert!(PAGES.is_whole());
        assert_eq!(PAGES.text().split(BETWEEN).count(), Class::ALL.len(), "a page of no class");
        for class in Class::ALL {
            assert!(page(*class).starts_with(&format!("# {class}:")), "{class}");
            assert!(link(*class).ends_with(&format!("docs/runbooks/{class}.md")));
        }
    }
}
