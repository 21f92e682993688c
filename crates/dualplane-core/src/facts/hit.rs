//! What a line says: a signature that holds, or an exception that none knows.

use std::collections::BTreeMap;

use super::Place;
use super::vram::{self, VramOom};
use crate::evidence::{Bundle, Event, Role};
use crate::knowledge::{Capture, Mark, Match, Signature};
use crate::time::Stamp;
use crate::units::Bytes;
use dualplane_base::{Class, Phase, Plane};

/// A signature that holds at a place.
#[derive(Debug, Clone)]
pub struct Hit {
    /// Signature id.
    pub id: String,
    /// The engine whose message it is.
    pub engine: Option<String>,
    /// What it proves.
    pub mark: Mark,
    /// Class, where it is a cause.
    pub class: Option<Class>,
    /// Its sentence.
    pub meaning: String,
    /// What else may stand behind a failure.
    pub doubt: Option<String>,
    /// It tells that another rank is gone.
    pub other_rank: bool,
    /// Programs of others print this line, too.
    pub shared: bool,
    /// Where.
    pub place: Place,
    /// The raw line (or the message of an object).
    pub text: String,
    /// When.
    pub stamp: Option<Stamp>,
    /// Which process printed it; empty where the line does not say.
    pub process: String,
    /// Whose log.
    pub role: Role,
    /// It stands in a kernel log (one file may hold one beside a server's).
    pub kernel: bool,
    /// What the server was doing.
    pub phase: Phase,
    /// Named groups.
    pub captures: BTreeMap<String, Capture>,
    /// How often it stands in this file (told by the first hit).
    pub count: u64,
    /// Sizes of a VRAM error, in the line or in those below it.
    pub vram: Option<VramOom>,
}

impl Hit {
    pub(super) fn of(s: &Signature, m: Match, place: &Place, text: &str, stamp: Option<Stamp>) -> Self {
        Self {
            id: s.id.to_string(),
            engine: s.engine.as_deref().map(str::to_owned),
            mark: s.mark,
            class: s.class,
            meaning: s.meaning.to_string(),
            doubt: s.doubt.as_deref().map(str::to_owned),
            other_rank: s.other_rank,
            shared: s.shared,
            place: place.clone(),
            text: text.to_owned(),
            stamp,
            process: String::new(),
            role: Role::Unsaid,
            kernel: false,
            phase: s.phase.unwrap_or(Phase::Unknown),
            captures: m.captures,
            count: 1,
            vram: s.class.filter(|c| c.plane() == Plane::Gpu).and_then(|_| vram::parse(text)),
        }
    }

    /// Somebody asked the server to stop: each engine's own words for it have this name.
    #[must_use]
    pub fn is_stop_request(&self) -> bool {
        self.id.ends_with(".stop_request")
    }

    /// The stop was carried out: the server came to its end by itself.
    #[must_use]
    pub fn is_stop_done(&self) -> bool {
        self.is_stop_request() && self.captures.contains_key("done")
    }

    /// A captured amount of memory.
    #[must_use]
    pub fn memory(&self, group: &str) -> Option<Bytes> {
        match self.captures.get(group)? {
            Capture::Memory(b) => Some(*b),
            _ => None,
        }
    }

    /// A captured number.
    #[must_use]
    pub fn number(&self, group: &str) -> Option<f64> {
        match self.captures.get(group)? {
            Capture::Number(n) => Some(*n),
            Capture::Memory(b) => Some(b.0 as f64),
            Capture::Word(w) => w.trim().parse().ok(),
        }
    }

    /// A captured word.
    #[must_use]
    pub fn word(&self, group: &str) -> Option<String> {
        match self.captures.get(group)? {
            Capture::Word(w) => Some(w.clone()),
            Capture::Number(n) => Some(n.to_string()),
            Capture::Memory(b) => Some(b.to_string()),
        }
    }

    /// The event whose message this is, where it is one's.
    #[must_use]
    pub fn event<'b>(&self, bundle: &'b Bundle) -> Option<&'b Event> {
        let same =
            |e: &&Event| e.message == self.text && e.file == self.place.file && e.line == self.place.line;
        bundle.events.iter().find(same)
    }
}

/// An exception that ended a traceback and that no signature knows.
#[derive(Debug, Clone)]
pub struct Exception {
    /// Its class name.
    pub name: String,
    /// The line without its prefix.
    pub message: String,
    /// The raw line.
    pub text: String,
    /// Where.
    pub place: Place,
    /// What the server was doing.
    pub phase: Phase,
}
