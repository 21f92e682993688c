//! `dualplane dev harvest --name vllm --version 0.33.0 DIR`: every message that a source tree can print and that concerns
//! memory, a fault of the GPU, or the end of a process, as a template with file and line.
//!
//! What is kept are facts: the words of messages and where they stand, never code. `dev coverage` holds the knowledge
//! against them.

mod calls;
mod coverage;
mod decisions;
mod heads;
mod lex;
mod literal;
mod store;
mod template;
mod topics;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

pub use coverage::CoverageArgs;
pub(crate) use coverage::run as coverage;
use lex::Language;
use store::{Harvest, Key};
use topics::Topics;

use crate::{DevError, Outcome};

/// Larger files are generated tables: register names of drivers, models of tokenizers.
const LARGEST: u64 = 2 << 20;
/// Folders whose messages no server prints.
const ELSEWHERE: &[&str] = &[
    "test",
    "tests",
    "testing",
    "test_utils",
    "selftests",
    "mocks",
    "testutil",
    "testdata",
    "docs",
    "doc",
    "examples",
    "example",
    "benchmark",
    "benchmarks",
    "third_party",
    "thirdparty",
    "3rdparty",
    "vendor",
    "node_modules",
    "tutorials",
    "scripts",
    "tools",
    ".git",
    ".github",
    "ci",
    ".buildkite",
];

/// What is asked.
#[derive(Debug, clap::Args)]
pub struct HarvestArgs {
    /// Source tree
    pub dir: PathBuf,
    /// Engine or layer, the name of its file
    #[arg(long)]
    pub name: String,
    /// Version of the tree
    #[arg(long)]
    pub version: String,
    /// Only below these folders of the tree; repeatable
    #[arg(long)]
    pub under: Vec<PathBuf>,
    /// Folder of the harvests
    #[arg(long, default_value = "testdata/harvest")]
    pub into: PathBuf,
    /// Print every template that no other version has
    #[arg(short, long)]
    pub verbose: bool,
}

pub(crate) fn run(args: &HarvestArgs) -> Result<Outcome, DevError> {
    let mut files = Vec::new();
    if args.under.is_empty() {
        walk(&args.dir, &mut files)?;
    }
    for under in &args.under {
        walk(&args.dir.join(under), &mut files)?;
    }
    files.sort();
    let mut found: BTreeMap<Key, String> = BTreeMap::new();
    let (mut read, mut all) = (0_usize, 0_usize);
    for (path, language) in files {
        let Ok(bytes) = std::fs::read(&path) else { continue };
        read += 1;
        let shown = path.strip_prefix(&args.dir).unwrap_or(&path).to_string_lossy().into_owned();
        for message in calls::messages(&String::from_utf8_lossy(&bytes), language) {
            all += 1;
            let severity = message.severity.as_str();
            if Topics::of(&message.template, severity).any() {
                found
                    .entry((severity.to_owned(), message.template))
                    .or_insert_with(|| format!("{shown}:{}", message.line));
            }
        }
    }
    let file = args.into.join(format!("{}.tsv.gz", args.name));
    let mut harvest = Harvest::read(&file)?;
    let others = harvest.versions().iter().any(|v| *v != args.version);
    let kept = found.len();
    let fresh = harvest.replace(&args.version, found);
    let size = harvest.write(&file)?;
    let mut text = format!(
        "{} {}: {read} files, {all} messages, {kept} of memory, faults or ends; {} is {size} bytes\n",
        args.name,
        args.version,
        file.display()
    );
    if others {
        let _ = writeln!(text, "{} of them stand in no other version", fresh.len());
    }
    if args.verbose {
        for (severity, template) in fresh {
            let _ = writeln!(text, "{severity}\t{template}");
        }
    }
    Ok(Outcome::of(text))
}

fn walk(folder: &Path, files: &mut Vec<(PathBuf, Language)>) -> Result<(), DevError> {
    let unreadable = |source| DevError::Unreadable { path: folder.into(), source };
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let kind = entry.file_type().map_err(unreadable)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Links are not followed: a tree may hold a circle of them.
        if kind.is_dir() && !ELSEWHERE.contains(&name.as_str()) {
            walk(&entry.path(), files)?;
        } else if kind.is_file()
            && !name.contains("_test.")
            && !["test_", "selftest_", "mock_"].iter().any(|p| name.starts_with(p))
            && let Some(language) = Language::of(&name)
            && entry.metadata().is_ok_and(|m| m.len() <= LARGEST)
        {
            files.push((entry.path(), language));
        }
    }
    Ok(())
}
