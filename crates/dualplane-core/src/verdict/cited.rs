//! Evidence as it is told: a sentence, where it stands, and what it proves.
//!
//! The sentence is for people and may be worded anew at any time. Code that must know what a citation proves asks for its
//! [`Proof`].

use serde::Serialize;

use crate::facts::{Hit, Place};

/// What a citation proves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// A line, an event or a status text that a signature knows; the sentence quotes it.
    Line {
        /// Id of the signature.
        signature: String,
    },
    /// A line that no signature knows; the sentence quotes it.
    Quote,
    /// The limit of a whole pod stands above that of its container, and what it holds is not at hand.
    PodLimitAbove,
    /// In words only: what is computed, counted or absent.
    Said,
}

/// A sentence with the place that carries it.
#[derive(Debug, Clone, Eq, Serialize)]
pub struct Cited {
    /// What the evidence says.
    pub text: String,
    /// Where.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// What it proves.
    #[serde(skip)]
    pub proof: Proof,
}

/// Two are the same if they tell the same of the same place, whichever signature found it.
impl PartialEq for Cited {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.place == other.place
    }
}

impl Cited {
    /// A sentence with a place.
    #[must_use]
    pub fn at(text: impl Into<String>, place: &Place) -> Self {
        Self { text: text.into(), place: Some(place.clone()), proof: Proof::Said }
    }

    /// A sentence about what is absent or computed.
    #[must_use]
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), place: None, proof: Proof::Said }
    }

    /// The same, proving this.
    #[must_use]
    pub fn proving(self, proof: Proof) -> Self {
        Self { proof, ..self }
    }

    /// A sentence that quotes what a signature knows.
    #[must_use]
    pub fn of(text: impl Into<String>, hit: &Hit) -> Self {
        Self {
            text: text.into(),
            place: Some(hit.place.clone()),
            proof: Proof::Line { signature: hit.id.clone() },
        }
    }

    /// A quoted line that no signature knows.
    #[must_use]
    pub fn quote(text: impl Into<String>, place: &Place) -> Self {
        Self { text: text.into(), place: Some(place.clone()), proof: Proof::Quote }
    }
}
