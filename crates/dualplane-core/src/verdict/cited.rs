//! Evidence as it is cited: what it proves, and where it stands.
//!
//! The sentences are made where reports are rendered; code that must know what a citation proves asks for its [`Proof`].

use super::proof::{Log, Proof};
use crate::facts::{Hit, Place};

/// A proof with the place that carries it.
#[derive(Debug, Clone)]
pub struct Cited {
    /// What it proves.
    pub proof: Proof,
    /// Where; none where it is computed, or absent.
    pub place: Option<Place>,
}

/// Two are the same if they tell the same of the same place, whichever signature found it.
impl PartialEq for Cited {
    fn eq(&self, other: &Self) -> bool {
        self.place == other.place && self.proof.tells_the_same(&other.proof)
    }
}

impl Cited {
    /// A proof with a place.
    #[must_use]
    pub fn at(proof: impl Into<Proof>, place: &Place) -> Self {
        Self { proof: proof.into(), place: Some(place.clone()) }
    }

    /// A proof that stands nowhere: computed or absent.
    #[must_use]
    pub fn plain(proof: impl Into<Proof>) -> Self {
        Self { proof: proof.into(), place: None }
    }

    /// What else may stand behind a line or an event, as its entry of knowledge says.
    pub(super) fn is_doubt(&self) -> bool {
        matches!(self.proof, Proof::Log(Log::Doubt(_)))
    }

    /// What a signature knows, as it is quoted.
    #[must_use]
    pub fn of(text: impl Into<String>, hit: &Hit) -> Self {
        Self::at(Proof::Line { signature: hit.id.clone(), text: text.into() }, &hit.place)
    }

    /// A quoted line that no signature knows.
    #[must_use]
    pub fn quote(text: impl Into<String>, place: &Place) -> Self {
        Self::at(Proof::Quote(text.into()), place)
    }
}
