//! One log signature: which line, what it proves, which numbers it carries.

use std::borrow::Cow;
use std::collections::BTreeMap;

use regex_automata::util::captures::Captures;
use serde::{Deserialize, Deserializer};

use super::level::Level;
use super::pattern::Pattern;
use dualplane_base::{Class, Phase};

/// Index of a signature in [`super::Knowledge::signatures`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SigId(pub(super) u32);

impl SigId {
    pub(crate) fn number(self) -> u32 {
        self.0
    }

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a line proves. The meanings are in `knowledge/README.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// Names or is the cause.
    Fatal,
    /// A memory error with which the server goes on.
    Degraded,
    /// An allocation failed and the engine has a fall-back.
    Suspect,
    /// A cause that is not memory.
    Failure,
    /// One request was refused for a reason of its own; nothing ended.
    Refused,
    /// A process died and the line does not say why.
    Death,
    /// Somebody else noticing.
    Cascade,
    /// Memory words in the log of a healthy process.
    Benign,
    /// Numbers without a judgement.
    Info,
    /// The process enters a phase, or a traceback frame belongs to one.
    Phase,
    /// What follows was written by a user.
    UserText,
}

/// Whether a phase mark speaks for the log from here on or only for one traceback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// From this line on.
    #[default]
    Log,
    /// Only for the error that ends this traceback.
    Frame,
}

/// Which host memory was refused, where it is not the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostMemory {
    /// A segment in /dev/shm.
    Shared,
    /// Pages that the GPU driver or a network card locks.
    Pinned,
}

/// Words of an entry: the embedded ones are part of the program, a team's own were read.
pub type Text = Cow<'static, str>;
/// Several of them.
pub type Texts = Cow<'static, [Text]>;

/// One entry of `knowledge/`. Those that are embedded are packed: a field that is added here has to be added to `packing.rs`
/// and `embedded.rs`.
#[derive(Debug, Clone, Deserialize)]
pub struct Signature {
    /// Stable id, `<file>.<name>`.
    pub id: Text,
    /// The engine that prints it, where the file names one.
    #[serde(default)]
    pub engine: Option<Text>,
    /// File below `knowledge/`, without extension.
    #[serde(default)]
    pub file: Text,
    /// What the line proves.
    pub mark: Mark,
    /// Class of the verdict, where the line is a cause.
    #[serde(default)]
    pub class: Option<Class>,
    /// For refusals of host memory: which kind, where the message does not say it in plain words.
    #[serde(default)]
    pub host_memory: Option<HostMemory>,
    /// Phase that the line itself tells.
    #[serde(default)]
    pub phase: Option<Phase>,
    /// For phase marks.
    #[serde(default)]
    pub scope: Scope,
    /// Any of these must stand in the line.
    pub literals: Texts,
    /// For a pattern without regard to case: small letters of which some stand in each line that it finds. They are looked for
    /// before it is compiled.
    #[serde(default)]
    pub words: Texts,
    /// And this must match, where given.
    #[serde(default)]
    pub pattern: Option<Text>,
    /// Units of named groups.
    #[serde(default, deserialize_with = "pairs")]
    pub units: Cow<'static, [(Text, Text)]>,
    /// Any of these must stand in the line or shortly before it.
    #[serde(default)]
    pub context: Texts,
    /// None of these may stand in the line.
    #[serde(default)]
    pub unless: Texts,
    /// Two groups whose values must differ: a "before" and an "after".
    #[serde(default)]
    pub changed: Option<[Text; 2]>,
    /// Two groups whose values must be the same.
    #[serde(default)]
    pub unchanged: Option<[Text; 2]>,
    /// For user text: it ends before the last of these in the line; without it, it reaches to the line's end.
    #[serde(default)]
    pub until: Option<Text>,
    /// Versions in which the line was seen.
    pub versions: Text,
    /// One sentence for the person on call.
    pub meaning: Text,
    /// What else may stand behind it, and what would show that: for failures, and for ends that are only announced.
    #[serde(default)]
    pub doubt: Option<Text>,
    /// For failures: the program logs this end at a level below errors, too.
    #[serde(default)]
    pub any_level: bool,
    /// For cascades: another rank is gone, which may have run in another pod, where the cause is.
    #[serde(default)]
    pub other_rank: bool,
    /// Of an engine's: programs of others print this line, too, so it does not tell whose log it is.
    #[serde(default)]
    pub shared: bool,
    /// Where it was read.
    pub source: Text,
    #[serde(skip)]
    pub(super) compiled: Pattern,
}

fn pairs<'de, D: Deserializer<'de>>(from: D) -> Result<Cow<'static, [(Text, Text)]>, D::Error> {
    Ok(Cow::Owned(BTreeMap::<Text, Text>::deserialize(from)?.into_iter().collect()))
}

impl Signature {
    /// The unit of a named group.
    #[must_use]
    pub fn unit(&self, group: &str) -> Option<&str> {
        self.units.iter().find(|(name, _)| name == group).map(|(_, unit)| unit.as_ref())
    }

    /// Events and status messages have their own file: those wordings in a container's log are quotes.
    #[must_use]
    pub fn of_objects(&self) -> bool {
        self.file == "kubelet"
    }

    /// Entries that judge by wording alone: only for the exception that ends a traceback and that nothing explains.
    #[must_use]
    pub fn of_exceptions(&self) -> bool {
        self.file == "runtime/generic"
    }

    /// Its `context` made it hold: it says more than one that holds for the words alone.
    #[must_use]
    pub fn by_context(&self) -> bool {
        !self.context.is_empty()
    }

    /// A line of this level is not what it means: the logger that printed it says that the process goes on.
    #[must_use]
    pub(crate) fn unlike(&self, level: Option<Level>) -> bool {
        // The kernel has levels of its own, and says of a kill that it is a warning.
        self.mark == Mark::Failure && !self.any_level && self.file != "kernel" && level == Some(Level::Quiet)
    }

    /// The first place of a line where the pattern stands; `None` also where there is none or it does not compile (a test
    /// excludes the latter).
    pub(crate) fn captures(&self, line: &str) -> Option<Captures> {
        self.compiled.captures(self.pattern.as_deref()?, &self.words, line.as_bytes())
    }
}
