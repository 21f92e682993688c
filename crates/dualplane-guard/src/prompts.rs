//! How prompts are counted before they are sent: what tells their tokens, how often each did, and what of it was learnt.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

use dualplane_admission::template::Template;
use dualplane_admission::tokens::Calibration;

/// What told the tokens of a prompt before it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The server, when asked.
    Server,
    /// The model's tokenizer.
    Tokenizer,
    /// Its bytes, by what servers counted of others.
    Bytes,
}

impl By {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Server, Self::Tokenizer, Self::Bytes];

    /// As metrics say it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Tokenizer => "tokenizer",
            Self::Bytes => "bytes",
        }
    }
}

/// Prompts by how their tokens were counted before they were sent: beside the lock, because each request counts here.
#[derive(Debug, Default)]
pub(crate) struct Prompts {
    server: AtomicU64,
    tokenizer: AtomicU64,
    bytes: AtomicU64,
}

impl Prompts {
    pub(crate) fn of(&self, by: By) -> &AtomicU64 {
        match by {
            By::Server => &self.server,
            By::Tokenizer => &self.tokenizer,
            By::Bytes => &self.bytes,
        }
    }
}

/// What was learnt of how a model counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Learnt {
    pub(crate) bytes: Calibration,
    pub(crate) template: Template,
}

/// Models whose tokens are learnt apart: names come from callers.
const MOST: usize = 64;

/// What was learnt, by model. Those that come when it is full share one place.
#[derive(Debug, Default)]
pub(crate) struct Models(BTreeMap<String, Learnt>);

impl Models {
    fn name<'a>(&self, model: &'a str) -> &'a str {
        let full = self.0.len() >= MOST && !self.0.contains_key(model);
        if full { "" } else { model }
    }

    /// `None`: nothing yet.
    pub(crate) fn of(&self, model: &str) -> Option<&Learnt> {
        self.0.get(self.name(model))
    }

    /// To learn more of it.
    pub(crate) fn of_mut(&mut self, model: &str) -> &mut Learnt {
        let name = self.name(model).to_owned();
        self.0.entry(name).or_default()
    }

    /// Models whose servers count otherwise than the tokenizer that was given.
    pub(crate) fn mistrusted(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, l)| !l.template.is_believed()).map(|(model, _)| model.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_when_it_is_full_is_learnt_together_and_read() {
        let mut models = Models::default();
        let of = |models: &Models, name: &str| models.of(name).map(|l| l.bytes.tokens(1000, 1).high);
        for i in 0..1000 {
            // The first take half a token a byte, the rest a fifth.
            let counted = if i < MOST { 500 } else { 200 };
            for _ in 0..10 {
                models.of_mut(&format!("m{i}")).bytes.learn(1000, 1, counted);
            }
        }
        assert_eq!(models.0.len(), MOST + 1);
        assert_eq!(of(&models, "m0"), of(&models, "m63"));
        assert!(of(&models, "m64") < of(&models, "m0") && of(&models, "m64").is_some());
        assert_eq!(of(&models, "m64"), of(&models, "one that never came"));
    }
}
