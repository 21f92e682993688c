//! Recognises engines: by an image's name, a command, a process.

use super::{Descriptor, Engines, Kind};
use crate::command_line::{plain, program_words};

/// Characters of a process's name that the kernel keeps.
const COMM: usize = 15;
/// What runs servers that are written in Python, by the names of their processes.
const INTERPRETERS: [&str; 2] = ["python", "pt_main"];

/// An engine by its image, and what runs it there.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    /// The engine; a host where the name tells no engine in it.
    pub engine: &'a Descriptor,
    /// What listens: the host where one is named.
    pub server: &'a Descriptor,
    /// The tag tells the version of this engine and of nothing else.
    pub alone: bool,
}

/// Commands that prepare a start: what they name is a folder, a package or a file.
const PREPARING: [&str; 16] = [
    "cd", "export", "set", "echo", "mkdir", "cp", "mv", "rm", "ln", "ls", "source", ".", "pip", "pip3",
    "git", "apt-get",
];

impl Engines {
    /// The engine that an image carries: the longest word in its name, an engine before what hosts it.
    #[must_use]
    pub fn by_image(&self, image: &str) -> Option<Named<'_>> {
        let image = image.to_ascii_lowercase();
        let length = |d: &Descriptor| {
            d.images.iter().filter(|w| image.contains(w.as_str())).map(String::len).max().unwrap_or(0)
        };
        let longest = |kind: Kind| {
            let of = self.iter().filter(|d| d.kind == kind && length(d) > 0);
            // The first of equals: the order of files is that of names.
            of.reduce(|a, b| if length(b) > length(a) { b } else { a })
        };
        let (engine, host) = (longest(Kind::Engine), longest(Kind::Host));
        let alone = host.is_none() != engine.is_none() && longest(Kind::Helper).is_none();
        Some(Named { engine: engine.or(host)?, server: host.or(engine)?, alone })
    }

    /// The engine that a command starts, and where its arguments begin.
    #[must_use]
    pub fn by_command(&self, words: &[String]) -> Option<(&Descriptor, usize)> {
        (0..words.len()).find_map(|at| {
            let rest = words.get(at..)?;
            let all = self.iter().flat_map(|d| d.launchers.iter().map(move |l| (d, l)));
            let found = all.filter_map(|(d, l)| Some((d, starts(rest, l)?)));
            found.reduce(|a, b| if b.1 > a.1 { b } else { a }).map(|(d, taken)| (d, at + taken))
        })
    }

    /// The engine whose program one of these words names.
    #[must_use]
    pub fn by_program<'w>(&self, words: impl IntoIterator<Item = &'w str>) -> Option<&Descriptor> {
        words.into_iter().find_map(|w| self.iter().find(|d| d.is_named_by(w)))
    }

    /// The command of a script that starts an engine: one that reads like a launch, else one whose program is an engine's.
    #[must_use]
    pub fn started_by(&self, commands: &[Vec<String>]) -> Option<(usize, &Descriptor)> {
        let launch = |c: &Vec<String>| self.by_command(c).map(|(d, _)| d);
        let program = |c: &Vec<String>| {
            let prepares = c.first().is_some_and(|w| PREPARING.contains(&w.as_str()));
            self.by_program(program_words(c)).filter(|_| !prepares)
        };
        let all = || commands.iter().enumerate();
        all()
            .find_map(|(i, c)| Some((i, launch(c)?)))
            .or_else(|| all().find_map(|(i, c)| Some((i, program(c)?))))
    }

    /// A process of this name (as the kernel prints it) serves models, or is what model servers run on.
    #[must_use]
    pub fn serves_models(&self, comm: &str) -> bool {
        let comm = comm.to_lowercase();
        self.iter().any(|d| d.runs_as(&comm)) || interpreted(&comm)
    }

    /// A process of this name may belong to a server of this engine; any engine's where none is known.
    #[must_use]
    pub fn may_own(&self, engine: Option<&Descriptor>, process: &str) -> bool {
        let process = process.to_lowercase();
        let process = process.as_str();
        match engine.filter(|d| d.kind == Kind::Engine && !d.processes.is_empty()) {
            Some(d) if d.native => d.owns(process),
            Some(d) => {
                let hosted = || self.iter().any(|h| h.kind == Kind::Host && h.owns(process));
                d.owns(process) || interpreted(process) || hosted()
            }
            None => interpreted(process) || self.iter().any(|d| d.owns(process)),
        }
    }
}

impl Descriptor {
    /// A word of a command line or a process title names this engine.
    #[must_use]
    pub fn is_named_by(&self, word: &str) -> bool {
        let base = word.rsplit('/').next().unwrap_or(word);
        self.programs.iter().any(|p| {
            base.split_at_checked(p.len()).is_some_and(|(head, rest)| {
                head.eq_ignore_ascii_case(p) && !rest.starts_with(|c: char| c.is_alphanumeric())
            })
        })
    }

    /// The tag of a log line, as [`Self::log_tags`] begin it: behind that stands no letter.
    #[must_use]
    pub fn tags(&self, process: &str) -> bool {
        let begins = |word: &str| {
            self.log_tags.iter().any(|t| {
                word.strip_prefix(t.as_str())
                    .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphabetic()))
            })
        };
        process.split_whitespace().any(begins)
    }

    /// A lever of it bears this name.
    #[must_use]
    pub fn names(&self, lever: &str) -> bool {
        self.levers().any(|n| n == lever)
    }

    /// It has a lever with this flag, in any spelling of it.
    #[must_use]
    pub fn has_flag(&self, flag: &str) -> bool {
        self.levers().any(|n| n.starts_with('-') && plain(n) == plain(flag))
    }

    /// It is this engine, or one that is built on it or on which it is built: their flags are the same.
    #[must_use]
    pub fn is_kin(&self, of: &Self) -> bool {
        let parent = |a: &Self, b: &Self| a.parent.as_ref() == Some(&b.id);
        self.id == of.id || parent(self, of) || parent(of, self)
    }

    /// All names of the setting that bears this one.
    #[must_use]
    pub fn spellings(&self, lever: &str) -> Option<&[String]> {
        let holds = |list: &&Vec<String>| list.iter().any(|n| n == lever);
        self.lists().find(holds).map(Vec::as_slice)
    }

    fn levers(&self) -> impl Iterator<Item = &String> {
        self.lists().flatten()
    }

    fn lists(&self) -> impl Iterator<Item = &Vec<String>> {
        let f = &self.flags;
        let own = [&f.share, &f.tensor_parallel, &f.length, &f.batch, &f.layers, &f.micro_batch];
        let steps = self.step.iter().map(|s| &s.flags);
        let pools = f.pool.iter().map(|p| &p.names);
        own.into_iter().chain(pools).chain(steps).chain(self.host_pool.iter().map(|p| &p.flags))
    }

    /// The name of a process, in small letters, is one of this engine's; the kernel cuts names.
    fn runs_as(&self, process: &str) -> bool {
        let cut = |word: &str| process.len() >= COMM && word.starts_with(process);
        self.processes.iter().any(|w| process.contains(w.as_str()) || cut(w))
    }

    fn owns(&self, process: &str) -> bool {
        self.runs_as(process) || self.helpers.iter().any(|h| process.contains(h.as_str()))
    }
}

fn interpreted(process: &str) -> bool {
    INTERPRETERS.iter().any(|i| process.contains(i))
}

/// How many words of a command a launcher takes, where the command begins with it.
fn starts(words: &[String], launcher: &str) -> Option<usize> {
    let mut taken = 0;
    for want in launcher.split(' ') {
        let word = words.get(taken)?;
        // A launcher with a folder in it is the end of a path.
        let base = if want.contains('/') { word } else { word.rsplit('/').next().unwrap_or(word) };
        let is = match want.strip_suffix('*') {
            Some(head) => base.starts_with(head),
            None if want.contains('/') => base.ends_with(want),
            None => base == want,
        };
        is.then_some(())?;
        taken += 1;
    }
    Some(taken)
}
