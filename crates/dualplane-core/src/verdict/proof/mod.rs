//! What citations prove, as values: numbers, ids and quoted evidence, no sentences. Those are made where reports are
//! rendered, one function a domain.

/// What a citation proves.
#[derive(Debug, Clone, PartialEq)]
pub enum Proof {
    /// A line, an event or a status text that a signature knows.
    Line {
        /// Id of the signature.
        signature: String,
        /// The line, shortened.
        text: String,
    },
    /// A line that no signature knows.
    Quote(String),
    /// The limit of a whole pod stands above that of its container, and what it holds is not at hand.
    PodLimitAbove,
    /// In words, until it has a value of its own.
    Said(String),
}

impl Proof {
    /// Text of the evidence itself, where it is quoted.
    #[must_use]
    pub fn quoted(&self) -> Option<&str> {
        match self {
            Self::Line { text, .. } | Self::Quote(text) => Some(text),
            _ => None,
        }
    }

    /// The signature that knows the quoted line.
    #[must_use]
    pub fn signature(&self) -> Option<&str> {
        match self {
            Self::Line { signature, .. } => Some(signature),
            _ => None,
        }
    }

    /// One and the same line may be known to several signatures.
    pub(super) fn tells_the_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Line { text: a, .. } | Self::Quote(a), Self::Line { text: b, .. } | Self::Quote(b)) => {
                a == b
            }
            _ => self == other,
        }
    }
}

impl From<String> for Proof {
    fn from(words: String) -> Self {
        Self::Said(words)
    }
}

impl From<&str> for Proof {
    fn from(words: &str) -> Self {
        Self::Said(words.to_owned())
    }
}
