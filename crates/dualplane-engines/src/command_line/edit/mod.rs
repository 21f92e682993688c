//! Sets one flag of a command line and leaves every other byte as it stands.
//!
//! A flag may stand in `command` or `args`, in a shell's text, or in a variable that either of them uses; a setting may be
//! a variable itself. Each word is read with the place where it is written, so that a change is made there: comments,
//! variables, quotes and `&&` of a start script survive it.

mod place;
mod read;
mod script;
#[cfg(test)]
mod tests;

use crate::{Descriptor, Engines};
use read::{Commands, Word};

/// What a container starts with, as its object says it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Invocation {
    /// Image.
    pub image: String,
    /// `command`: it takes the place of the image's entrypoint.
    pub command: Vec<String>,
    /// `args`.
    pub args: Vec<String>,
    /// `env`, in its order.
    pub env: Vec<Variable>,
    /// Names of what `envFrom` takes variables from.
    pub env_from: Vec<String>,
}

/// A variable of a container's environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Name.
    pub name: String,
    /// Value; `None` where it comes from another object.
    pub value: Option<String>,
}

/// Which of a container's lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// `command`.
    Command,
    /// `args`.
    Args,
    /// `env`.
    Env,
}

/// What a setting is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To<'v> {
    /// This value.
    Value(&'v str),
    /// There, without a value.
    On,
    /// Not there.
    Absent,
}

/// A changed invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// What the container is to start with.
    pub invocation: Invocation,
    /// The name under which the setting is given there.
    pub name: String,
    /// Its value before; `None` where it was not there.
    pub was: Option<String>,
    /// Variables in the command whose values are not known here, in order: one of them may hold the same flag.
    pub hidden: Vec<String>,
}

/// Why a setting cannot be changed here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unchanged {
    /// The image's own entrypoint takes the arguments, and nothing tells that it is the server.
    #[error(
        "the pod has no command of its own, and the entrypoint of image {0} is not known to take server flags"
    )]
    Entrypoint(String),
    /// No command is the engine's.
    #[error("the pod's command does not show where {0} is started")]
    NoServer(String),
    /// A text that is not read.
    #[error("the pod's start script cannot be read (a here-document or an open quote)")]
    Script,
    /// It is set in a file or over the API.
    #[error("{0} is set in a file or over the API, not on the command line")]
    Setting(String),
    /// A file decides, whatever the command line says.
    #[error("the file behind {0} overrides the command line: set it there")]
    File(String),
    /// A word that may mean the flag.
    #[error("{0} on the command line may mean the same flag: correct it by hand")]
    Unclear(String),
    /// The list that would be replaced was masked.
    #[error("the evidence shows the list only with masked values")]
    Masked,
}

impl Invocation {
    /// A variable with a value of its own: where it stands, and the value. The last of a name counts.
    fn variable(&self, name: &str) -> Option<(usize, &str)> {
        let (at, found) = self.env.iter().enumerate().rfind(|(_, v)| v.name == name)?;
        Some((at, found.value.as_deref()?))
    }

    /// The value of a setting by any of its names; `None` where it is not there, or not told.
    #[must_use]
    pub fn value(&self, names: &[String], engines: &Engines) -> Option<String> {
        let commands = read::commands(self)?;
        place::find(self, &commands, names, engines).map(|f| f.value)
    }

    /// Whether a setting that is not seen may be there all the same: in a variable whose value stands elsewhere, or in a
    /// file of settings.
    #[must_use]
    pub fn may_hide(&self, names: &[String], engine: &Descriptor) -> bool {
        let Some(commands) = read::commands(self) else { return true };
        let mut words = commands.all.iter().flatten();
        let mut files = engine.overriding_files.iter().chain(&engine.settings_files);
        let elsewhere = |v: &Variable| v.value.is_none() && names.contains(&v.name);
        self.env.iter().any(elsewhere)
            || commands.all.iter().any(|c| !read::hidden(self, c).is_empty())
            || words.any(|w| files.clone().any(|f| place::is_flag(&w.text, f)))
            || files.next().is_none() && !self.env_from.is_empty() && names.iter().any(|n| is_variable(n))
    }

    /// Whether the command line shows that this engine takes its flags: it is started there, or in an image whose
    /// entrypoint starts it.
    #[must_use]
    pub fn starts(&self, engine: &Descriptor, engines: &Engines) -> bool {
        read::commands(self).is_some_and(|c| place::server(self, &c, engine, engines).is_some())
    }

    /// The engine that it starts, and the words of that command as they are written; `None` where no engine is seen.
    #[must_use]
    pub fn launch<'e>(&self, engines: &'e Engines) -> Option<(&'e Descriptor, Vec<String>)> {
        let commands = read::commands(self)?;
        let named = engines.started_by(&place::texts(&commands)).map(|(_, engine)| engine);
        let engine = named.or_else(|| engines.by_image(&self.image).map(|named| named.engine))?;
        let at = place::server(self, &commands, engine, engines)?;
        Some((engine, commands.all.get(at)?.iter().map(|w| w.text.clone()).collect()))
    }
}

/// Sets an engine's setting, which bears any of these names, as its head spells them.
///
/// # Errors
/// See [`Unchanged`].
pub fn set(
    invocation: &Invocation,
    names: &[String],
    to: To<'_>,
    engine: &Descriptor,
    engines: &Engines,
) -> Result<Edited, Unchanged> {
    let commands = read::commands(invocation).ok_or(Unchanged::Script)?;
    let words = commands.all.iter().flatten();
    if let Some(file) =
        words.clone().find(|w| engine.overriding_files.iter().any(|f| place::is_flag(&w.text, f)))
    {
        return Err(Unchanged::File(place::flag_of(&file.text).to_owned()));
    }
    let found = place::find(invocation, &commands, names, engines);
    let was = found.as_ref().map(|f| f.value.clone());
    let hidden: Vec<String> = commands.all.iter().flat_map(|c| read::hidden(invocation, c)).collect();
    let mut out = invocation.clone();
    let name = match (found, to) {
        (Some(found), To::Absent) => {
            let name = found.name.clone();
            place::remove(&mut out, &found);
            // One that stood before it would count now.
            return match set(&out, names, to, engine, engines) {
                Ok(again) => masked(invocation, Edited { name, was, ..again }),
                Err(why) => Err(why),
            };
        }
        (Some(found), To::Value(value)) => {
            if found.value != value {
                place::replace(&mut out, &found, value)?;
            }
            found.name
        }
        (Some(found), To::On) => found.name,
        (None, To::Absent) => names.first().cloned().unwrap_or_default(),
        (None, to) => add(&mut out, &commands, names, to, engine, engines)?,
    };
    masked(invocation, Edited { invocation: out, name, was, hidden })
}

/// Adds what is not there: a flag where the engine is started, else a variable.
fn add(
    invocation: &mut Invocation,
    commands: &Commands,
    names: &[String],
    to: To<'_>,
    engine: &Descriptor,
    engines: &Engines,
) -> Result<String, Unchanged> {
    let flag = names.iter().find(|n| n.starts_with('-'));
    let variable = names.iter().find(|n| is_variable(n));
    let refused = match flag {
        Some(flag) => match place::server(invocation, commands, engine, engines) {
            Some(words) => {
                let own = commands.all.get(words).map(Vec::as_slice).unwrap_or_default();
                if let Some(word) = own.iter().find(|w| place::abbreviates(&w.text, names)) {
                    return Err(Unchanged::Unclear(word.text.clone()));
                }
                place::append(invocation, own, commands.scripted, flag, to);
                return Ok(flag.clone());
            }
            None if invocation.command.is_empty() => Unchanged::Entrypoint(invocation.image.clone()),
            None => Unchanged::NoServer(engine.name.clone()),
        },
        None => Unchanged::Setting(names.first().cloned().unwrap_or_default()),
    };
    match (variable, to) {
        (Some(name), To::Value(value)) => {
            place::variable(invocation, name, value);
            Ok(name.clone())
        }
        _ => Err(refused),
    }
}

/// A name that is a variable of the environment.
fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
}

/// A list goes to the API as a whole: one with masked values would replace the true ones.
fn masked(before: &Invocation, out: Edited) -> Result<Edited, Unchanged> {
    let mask = |text: &String| text.contains("[redacted:");
    let lists = [(&before.command, &out.invocation.command), (&before.args, &out.invocation.args)];
    let list = lists.into_iter().any(|(b, a)| b != a && a.iter().any(mask));
    let variable =
        out.invocation.env.iter().any(|v| !before.env.contains(v) && v.value.as_ref().is_some_and(mask));
    if list || variable { Err(Unchanged::Masked) } else { Ok(out) }
}

/// Where a word's value is written: in the variable that it came out of, as long as nothing else uses that.
fn value_spot<'w>(invocation: &Invocation, word: &'w Word) -> &'w read::Spot {
    match &word.value_of {
        Some((spot, name)) if word.shared || read::uses(invocation, name) == 1 => spot,
        _ => &word.spot,
    }
}
