//! How prompts are counted before they are sent: what tells their tokens, how often each did, and what of it was learnt.

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
