//! Typed view of `knowledge/`: what is known about lines, Xids and cards, as data embedded in the binary.
//!
//! Adding a message is adding an entry to a file of `knowledge/`; see its README. One test walks every example.

mod check;
pub mod document;
mod embedded;
mod gate;
mod level;
mod literals;
mod matcher;
mod packing;
mod pattern;
mod redaction;
mod signature;
mod spoken;
mod words;
mod xid;

pub use check::{Problem, check, check_heads};
pub use document::Examples;
pub use dualplane_base::gpu::{Gpu, MigProfile};
pub use dualplane_engines::{Engines, HeadExamples, metrics};
pub(crate) use gate::{Gate, Owner};
pub(crate) use level::{Level, level, level_of_record};
pub use matcher::{Capture, Known, Match};
pub(crate) use redaction::Names;
pub use redaction::{HarmlessName, Redaction, SecretName, UserField};
pub use signature::{HostMemory, Mark, Scope, SigId, Signature, Text, Texts};
pub(crate) use words::Said;
pub use xid::{Xid, XidKind};

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

use spoken::is_spoken_of;

/// Knowledge that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum KnowledgeError {
    /// The text is not what the schema asks for.
    #[error("knowledge does not parse: {0}")]
    Parse(#[from] serde_json::Error),
}

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    signature: Vec<Signature>,
    #[serde(default)]
    xid: Vec<Xid>,
    #[serde(default)]
    gpu: Vec<Gpu>,
    #[serde(default)]
    redaction: Vec<Redaction>,
    #[serde(default)]
    secret_name: Vec<SecretName>,
    #[serde(default)]
    harmless_name: Vec<HarmlessName>,
    #[serde(default)]
    user_field: Vec<UserField>,
    /// Heads of a team's own engines; the embedded ones stand apart.
    #[serde(default)]
    engine: Vec<dualplane_engines::Descriptor>,
}

/// Everything in `knowledge/`, ready to match.
#[derive(Debug)]
pub struct Knowledge {
    signatures: Cow<'static, [Signature]>,
    matcher: matcher::Matcher,
    xids: Vec<Xid>,
    gpus: Vec<Gpu>,
    redactions: Vec<Redaction>,
    names: Names,
    gate: OnceLock<Option<Gate>>,
    engines: Engines,
}

impl Knowledge {
    /// The knowledge that was embedded when this crate was built.
    ///
    /// # Errors
    /// When the embedded text does not parse, which the tests of this crate exclude.
    // A function of its own, so that `bench/knowledge.sh` can count what it costs.
    #[inline(never)]
    pub fn embedded() -> Result<Self, KnowledgeError> {
        let doc = serde_json::from_str(embedded::DOCUMENT.text())?;
        Ok(Self::from_document(doc, Cow::Borrowed(embedded::signatures())))
    }

    fn from_document(doc: Document, signatures: Cow<'static, [Signature]>) -> Self {
        let matcher = matcher::Matcher::new(&signatures);
        Self {
            signatures,
            matcher,
            xids: doc.xid,
            gpus: doc.gpu,
            redactions: doc.redaction,
            names: Names { secret: doc.secret_name, harmless: doc.harmless_name, fields: doc.user_field },
            gate: OnceLock::new(),
            engines: Engines::embedded().with(doc.engine),
        }
    }

    /// The embedded knowledge with entries of a team's own: an entry whose id (or code) is known replaces it.
    ///
    /// # Errors
    /// When the text does not follow the schema.
    pub fn extended(text: &str) -> Result<Self, KnowledgeError> {
        let mut all: Document = serde_json::from_str(embedded::DOCUMENT.text())?;
        let own: Document = serde_json::from_str(text)?;
        let known = embedded::signatures().iter().filter(|s| own.signature.iter().all(|o| o.id != s.id));
        let mut signatures: Vec<Signature> = known.cloned().collect();
        signatures.extend(own.signature);
        all.xid.retain(|x| own.xid.iter().all(|o| o.code != x.code));
        all.gpu.retain(|g| own.gpu.iter().all(|o| o.id != g.id));
        all.xid.extend(own.xid);
        all.gpu.extend(own.gpu);
        all.redaction.retain(|r| own.redaction.iter().all(|o| o.id != r.id));
        all.redaction.extend(own.redaction);
        all.secret_name.retain(|r| own.secret_name.iter().all(|o| o.id != r.id));
        all.secret_name.extend(own.secret_name);
        all.harmless_name.retain(|r| own.harmless_name.iter().all(|o| o.id != r.id));
        all.harmless_name.extend(own.harmless_name);
        all.user_field.retain(|r| own.user_field.iter().all(|o| o.id != r.id));
        all.user_field.extend(own.user_field);
        all.engine = own.engine;
        Ok(Self::from_document(all, signatures.into()))
    }

    /// All signatures, in the order of their files.
    #[must_use]
    pub fn signatures(&self) -> &[Signature] {
        &self.signatures
    }

    /// One signature by the id that a match carries.
    #[must_use]
    pub fn signature(&self, id: SigId) -> Option<&Signature> {
        self.signatures.get(id.index())
    }

    /// One signature by its written id.
    #[must_use]
    pub fn signature_of(&self, id: &str) -> Option<&Signature> {
        self.signatures.iter().find(|s| s.id == id)
    }

    /// All signatures that hold for one line; `context` says whether a literal stood nearby.
    pub fn matches(&self, text: &str, context: impl Fn(&str) -> bool) -> Vec<Match> {
        self.known(text, context).matches
    }

    /// The same, with what a user's text in the line holds.
    pub fn known(&self, text: &str, context: impl Fn(&str) -> bool) -> Known {
        self.matcher.known(&self.signatures, text, context)
    }

    /// What the words of a message say that no entry knows, as the entry of that meaning; and whether they tell of an act.
    pub(crate) fn read(&self, text: &str) -> Option<(Said, Match, bool)> {
        let words::Reading { said, at, end, act } =
            words::read(text).filter(|r| !is_spoken_of(text, r.at))?;
        let number = self.signatures.iter().position(|s| s.id == said.entry())?;
        let id = SigId(u32::try_from(number).ok()?);
        Some((said, Match { id, at, end, captures: BTreeMap::new() }, act))
    }

    /// What is known of an Xid code.
    #[must_use]
    pub fn xid(&self, code: u32) -> Option<&Xid> {
        self.xids.iter().find(|x| x.code == code)
    }

    /// All known Xids.
    #[must_use]
    pub fn xids(&self) -> &[Xid] {
        &self.xids
    }

    /// The card that a product name or catalogue id means, forgiving about case, dashes and vendor words.
    #[must_use]
    pub fn gpu(&self, name: &str) -> Option<&Gpu> {
        dualplane_base::gpu::find(&self.gpus, name)
    }

    /// Secrets that are known by their shape.
    #[must_use]
    pub fn redactions(&self) -> &[Redaction] {
        &self.redactions
    }

    /// Names that hold secrets, and those that only look so.
    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// The literals of all that is masked; built when something is masked first.
    pub(crate) fn gate(&self) -> Option<&Gate> {
        self.gate.get_or_init(|| Gate::new(&self.redactions, &self.names, &self.signatures)).as_ref()
    }

    /// All known engines.
    #[must_use]
    pub fn engines(&self) -> &Engines {
        &self.engines
    }

    /// All known cards.
    #[must_use]
    pub fn gpus(&self) -> &[Gpu] {
        &self.gpus
    }
}
