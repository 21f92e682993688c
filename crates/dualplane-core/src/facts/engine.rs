//! Which engine, which version, which flags: from images, banners and command lines.

use std::collections::BTreeMap;

use super::Facts;
use crate::evidence::{Bundle, Container};
use crate::knowledge::{Engines, Knowledge};
use dualplane_base::version;
use dualplane_engines::{Descriptor, Kind, OnCpu, command_line as cmd};

/// A flag as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// Name with dashes, without leading dashes.
    pub name: String,
    /// Value; empty for a switch.
    pub value: String,
    /// Where it stands.
    pub file: String,
}

/// The engine of an incident.
#[derive(Debug, Clone, Default)]
pub struct Engine {
    /// Id of its head in `knowledge/engines`.
    pub name: Option<String>,
    /// Version, where printed.
    pub version: Option<String>,
    /// Flags from the container's arguments.
    pub flags: Vec<Flag>,
    /// Settings that the log prints at the start: what was served, where a command is the next start's.
    pub printed: Vec<Flag>,
    /// The model that the log names.
    pub model: Option<String>,
    /// Ranks of which lines are at hand, where no setting tells how many there are.
    pub seen_ranks: u64,
    /// Environment values that matter for memory.
    pub env: Vec<(String, String)>,
    /// All engines that are known.
    pub all: Engines,
}

impl Engine {
    /// What is known of this engine.
    #[must_use]
    pub fn head(&self) -> Option<&Descriptor> {
        self.all.get(self.name.as_deref()?)
    }

    /// As its makers write it: what people read. Programs get the id.
    #[must_use]
    pub fn display_name(&self) -> Option<&str> {
        self.head().map(|d| d.name.as_str()).or(self.name.as_deref())
    }

    /// It serves without a GPU, as its log says: its KV cache is in host RAM.
    #[must_use]
    pub fn on_cpu(&self) -> Option<&OnCpu> {
        let on_cpu = self.head()?.on_cpu.as_ref()?;
        let (setting, value) = &on_cpu.setting;
        self.printed.iter().any(|f| f.name == *setting && f.value == *value).then_some(on_cpu)
    }

    /// A flag by any of its names.
    #[must_use]
    pub fn flag(&self, names: &[&str]) -> Option<&str> {
        self.known().find(|f| names.contains(&f.name.as_str())).map(|f| f.value.as_str())
    }

    /// Flags of both sources; the first of a name counts.
    fn known(&self) -> impl Iterator<Item = &Flag> {
        self.printed.iter().rev().chain(self.flags.iter().rev())
    }

    /// A flag as a number.
    #[must_use]
    pub fn number(&self, names: &[&str]) -> Option<f64> {
        self.flag(names)?.parse().ok()
    }

    /// A lever by any of its names, as heads spell them: a flag, else a variable of the environment.
    #[must_use]
    pub fn lever(&self, names: &[String]) -> Option<&str> {
        let plain: Vec<String> = names.iter().map(|n| cmd::plain(n)).collect();
        let flag = self.known().find(|f| plain.contains(&f.name)).map(|f| f.value.as_str());
        flag.or_else(|| self.env.iter().rev().find(|(k, _)| names.contains(k)).map(|(_, v)| v.as_str()))
    }

    /// A lever as a number.
    #[must_use]
    pub fn lever_number(&self, names: &[String]) -> Option<f64> {
        self.lever(names)?.trim().parse().ok()
    }

    /// Over how many GPUs the weights are split, at least one.
    #[must_use]
    pub fn ranks(&self) -> f64 {
        let names = self.head().or_else(|| self.all.usual()).map(|d| d.flags.tensor_parallel.as_slice());
        self.lever_number(names.unwrap_or_default()).unwrap_or(self.seen_ranks as f64).max(1.0)
    }

    /// Whether a setting says how many ranks there are.
    #[must_use]
    pub fn ranks_are_given(&self) -> bool {
        let names = self.head().or_else(|| self.all.usual()).map(|d| d.flags.tensor_parallel.as_slice());
        self.lever_number(names.unwrap_or_default()).is_some()
    }

    /// Whether this engine is the one.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        self.name.as_deref() == Some(name)
    }
}

pub(super) fn engine(bundle: &Bundle, facts: &Facts, knowledge: &Knowledge) -> Engine {
    let all = knowledge.engines();
    let mut engine = Engine { all: all.clone(), ..Engine::default() };
    let containers: Vec<(&str, &Container)> =
        bundle.pods.iter().flat_map(|p| p.containers.iter().map(|c| (p.file.as_str(), c))).collect();
    let mut by_words = Vec::new();
    for (file, c) in &containers {
        let (flags, named) = command(c, file, all);
        engine.flags.extend(flags);
        engine.env.extend(c.env.iter().filter(|(k, _)| matters(k, all)).cloned());
        by_words.push(named);
    }
    // Lines vote: an engine's own messages outnumber those of what it runs on.
    let mut votes: BTreeMap<&str, u64> = BTreeMap::new();
    // Where a log holds several runs, the last one's lines count: another server may have run before.
    let is_last = |h: &&super::Hit| {
        let log = facts.logs.iter().find(|l| l.file == h.place.file);
        log.and_then(|l| l.run_ended).is_none_or(|end| h.place.line > Some(end))
    };
    let of_engine = |h: &&super::Hit| h.engine.as_deref().is_some_and(|e| all.get(e).is_some());
    let some_last = facts.hits.iter().filter(of_engine).any(|h| is_last(&h));
    for hit in facts.hits.iter().filter(|h| !some_last || is_last(h)) {
        let head = hit.engine.as_deref().and_then(|e| all.get(e));
        if let Some(d) = head.filter(|d| d.kind != Kind::Helper && !hit.shared) {
            *votes.entry(&d.id).or_default() += hit.count.min(20);
        }
    }
    if votes.is_empty() {
        // An error of a runtime alone, in the frame of an engine's log.
        for hit in facts.hits.iter().filter(|h| !h.process.is_empty()) {
            if let Some(d) = all.iter().find(|d| d.tags(&hit.process)) {
                *votes.entry(&d.id).or_default() += 1;
            }
        }
    }
    // What hosts engines counts only where no engine proper speaks.
    let hosts = |id: &str| all.get(id).is_some_and(|d| d.kind == Kind::Host);
    let proper = votes.iter().filter(|(e, _)| !hosts(e)).max_by_key(|(_, n)| **n);
    let most = proper.or_else(|| votes.iter().max_by_key(|(_, n)| **n)).map(|(e, _)| *e);
    // A derived engine prints its parent's lines, and more of them: one line of its own tells that it is not the parent.
    let child =
        votes.keys().find(|id| most.is_some() && all.get(id).and_then(|d| d.parent.as_deref()) == most);
    engine.name = child.copied().or(most).map(str::to_owned);
    let own = |h: &&super::Hit| {
        let id = h.engine.as_deref().and_then(|e| all.get(e)).map(|d| d.id.as_str());
        id.is_some() && id == engine.name.as_deref()
    };
    engine.version = facts
        .hits
        .iter()
        .filter(own)
        .filter_map(|h| h.word("version"))
        .find(|v| v.trim_start_matches(['v', 'b']).starts_with(|c: char| c.is_ascii_digit()));
    if let Some(head) = engine.head().cloned() {
        let last = facts.hits.iter().filter(|h| !some_last || is_last(h));
        engine.printed = super::settings::printed(&head, last.clone());
        if !head.flags.tensor_parallel.is_empty() {
            engine.seen_ranks = last.clone().filter_map(rank_of).max().map_or(0, |r| r.saturating_add(1));
        }
        engine.model = last
            .filter_map(|h| head.printed.model.iter().find(|n| n.is_of(&h.id)).and_then(|n| h.word(&n.group)))
            .next_back();
    }
    for ((_, c), by_words) in containers.iter().zip(by_words) {
        let by_image = all.by_image(&c.image);
        let Some(found) = by_image.map(|n| n.engine).or(by_words) else { continue };
        engine.name.get_or_insert_with(|| found.id.clone());
        let of_it = by_image.is_some_and(|n| n.alone) && engine.name.as_deref() == Some(&found.id);
        if engine.version.is_none() && of_it {
            engine.version = tag_version(&c.image);
        }
    }
    engine
}

/// The rank whose line it is, or whose card it names: each rank of a server has the next.
fn rank_of(hit: &super::Hit) -> Option<u64> {
    let number = |word: &str| {
        let rest = hit.process.split_once(word)?.1.trim_start_matches('=');
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    let card = hit.vram.as_ref().and_then(|v| v.gpu).map(u64::from);
    // No server has more cards than this; a larger number is none's index.
    [number("TP"), number("rank"), card].into_iter().flatten().filter(|r| *r < 64).max()
}

/// Whose command a container runs, with its flags. Beside the engine's own command a script has others, whose flags are
/// theirs.
fn command<'k>(c: &Container, file: &str, all: &'k Engines) -> (Vec<Flag>, Option<&'k Descriptor>) {
    let commands = cmd::split(&c.args, &c.env);
    let own = all.started_by(&commands).and_then(|(at, d)| Some((commands.get(at)?, d)));
    let flags = match own {
        Some((words, _)) => flags(words, file),
        None => commands.iter().flat_map(|words| flags(words, file)).collect(),
    };
    (flags, own.map(|(_, d)| d))
}

fn flags(words: &[String], file: &str) -> Vec<Flag> {
    let one = |g: cmd::Given| {
        let value = g.values.first().map(|v| v.trim_matches(['"', '\'']).to_owned()).unwrap_or_default();
        let name = g.path.map(|p| format!("{}.{p}", g.name)).unwrap_or(g.name);
        Flag { name, value, file: file.to_owned() }
    };
    cmd::flags(words, &[]).flags.into_iter().map(one).collect()
}

/// Environment values that matter for memory: the allocators', and those that heads name as levers.
fn matters(name: &str, all: &Engines) -> bool {
    name.contains("ALLOC_CONF") || name.contains("MEM") || all.iter().any(|d| d.names(name))
}

/// `vllm/vllm-openai:v0.11.2` → `0.11.2`; tags like `latest` or `nightly` tell nothing.
fn tag_version(image: &str) -> Option<String> {
    let version = version::tag(image)?.trim_start_matches('v').split(['-', '_', '+']).next()?;
    (version.starts_with(|c: char| c.is_ascii_digit()) && version.contains('.')).then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(args: &[&str]) -> (Engine, Option<String>) {
        let all = Engines::embedded();
        let c = Container { args: args.iter().map(|a| (*a).to_owned()).collect(), ..Container::default() };
        let (flags, named) = command(&c, "pod.json", all);
        (Engine { flags, all: all.clone(), ..Engine::default() }, named.map(|d| d.id.clone()))
    }

    #[test]
    fn flags_of_all_spellings() {
        let (e, named) = of(&[
            "serve",
            "m",
            "--max_model_len=4096",
            "--tp",
            "2",
            "-c",
            "131072",
            "--enforce-eager",
            "--x",
            "-1",
        ]);
        assert_eq!(named, None);
        assert_eq!(e.number(&["max-model-len"]), Some(4096.0));
        assert_eq!(e.flag(&["tensor-parallel-size", "tp"]), Some("2"));
        assert_eq!(e.flag(&["enforce-eager"]), Some(""));
        assert_eq!(e.flag(&["x"]), Some("-1"));
        assert_eq!(e.ranks(), 2.0);
    }

    #[test]
    fn a_script_s_other_commands_have_flags_of_their_own() {
        let (e, named) = of(&[
            "bash",
            "-c",
            "pip install --upgrade x --port 1; vllm serve m --max-num-seqs '16' \\\n --port 9000",
        ]);
        assert_eq!((named.as_deref(), e.number(&["max-num-seqs"])), (Some("vllm"), Some(16.0)));
        assert_eq!(e.flags.iter().filter(|f| f.name == "port").count(), 1);
        assert_eq!(of(&["text-embeddings-router", "--model-id", "m"]).1.as_deref(), Some("tei"));
        assert_eq!(of(&["python3", "train.py", "--name", "vllm"]).1, None);
    }

    #[test]
    fn versions_of_tags() {
        assert_eq!(tag_version("vllm/vllm-openai:v0.11.2").as_deref(), Some("0.11.2"));
        assert_eq!(tag_version("lmsysorg/sglang:v0.5.8-cu126").as_deref(), Some("0.5.8"));
        assert_eq!(tag_version("localhost:5000/vllm"), None);
        assert_eq!(tag_version("rocm/vllm-dev:nightly"), None);
    }
}
