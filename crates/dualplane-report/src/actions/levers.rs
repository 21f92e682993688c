//! An engine's levers by its head: how they are called, where they stand, and what its makers' messages say of them.

use super::Context;
use dualplane_base::units::Bytes;
use dualplane_core::facts::Hit;
use dualplane_engines::{Counsel, Descriptor, Flags, Kind, Numbers};

impl<'a> Context<'a> {
    /// The engine whose levers are named: the incident's, or the one whose message is the first error. Of an engine that is
    /// not known no setting has a name.
    pub(super) fn engine(&self) -> Option<&'a Descriptor> {
        self.facts.engine.head().or_else(|| self.spoke())
    }

    /// The engine whose message is the first error.
    fn spoke(&self) -> Option<&'a Descriptor> {
        let trigger = self.verdict.trigger.as_ref()?;
        let id = self.knowledge.signatures().iter().find(|s| s.id == trigger.signature)?;
        self.knowledge.engines().get(id.engine.as_deref()?)
    }

    /// Whose advice counts first: inside of a host it is the engine that spoke.
    pub(super) fn advisors(&self) -> impl Iterator<Item = &'a Descriptor> {
        let own = self.facts.engine.head();
        let speaks = own.filter(|d| d.kind == Kind::Host).and_then(|_| self.spoke());
        speaks.into_iter().chain(own)
    }

    /// The first name of a lever, as it is written. Inside of a host it is the most used engine's.
    pub(super) fn flag(&self, of: impl Fn(&'a Flags) -> &'a Vec<String>) -> Option<&'a str> {
        let own = self.engine()?;
        let hosted = || self.knowledge.engines().usual().filter(|_| own.kind == Kind::Host);
        of(&own.flags).first().or_else(|| of(&hosted()?.flags).first()).map(String::as_str)
    }

    /// The last number of these messages.
    pub(super) fn printed(&self, numbers: &[Numbers]) -> Option<f64> {
        let of = |h: &Hit| numbers.iter().find_map(|n| h.number(&n.group).filter(|_| n.is_of(&h.id)));
        self.facts.hits.iter().rev().find_map(of)
    }

    /// The weights of a GPU, as the log prints them.
    pub(super) fn weights(&self) -> Option<Bytes> {
        let numbers = &self.engine()?.printed.weights;
        let of = |h: &Hit| numbers.iter().find_map(|n| h.memory(&n.group).filter(|_| n.is_of(&h.id)));
        self.facts.hits.iter().rev().find_map(of)
    }

    /// A piece of advice is for this incident.
    pub(super) fn concerns(&self, c: &Counsel) -> bool {
        let trigger = self.verdict.trigger.as_ref().map_or("", |t| t.signature.as_str());
        c.phase.is_none_or(|p| p == self.verdict.phase)
            && c.of.as_ref().is_none_or(|of| trigger.starts_with(of))
    }
}
