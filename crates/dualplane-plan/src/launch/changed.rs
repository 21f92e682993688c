//! A flag that was given and that not every release of its engine has.

use dualplane_base::Version;
use serde::Serialize;

/// A flag that was given and that not every release has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// As it was spelled.
    pub flag: String,
    /// The first release that has it, or the first that lacks it.
    pub when: Version,
    /// Whether that release lacks it.
    pub gone: bool,
    /// What does its work.
    pub instead: Option<String>,
}

impl Changed {
    /// Whether a release lacks it.
    #[must_use]
    pub fn lacks(&self, release: Version) -> bool {
        (release >= self.when) == self.gone
    }

    /// What a person is told of it.
    #[must_use]
    pub fn why(&self) -> String {
        let since = if self.gone { "lacks it" } else { "is the first that has it" };
        let instead = match &self.instead {
            Some(i) => format!("; use {i}"),
            None if self.gone => "; leave it out".to_owned(),
            None => String::new(),
        };
        format!("{} {since}{instead}", self.when)
    }
}
