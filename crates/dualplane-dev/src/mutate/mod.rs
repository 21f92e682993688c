//! `dualplane dev mutate SEEDS...`: configs of every architecture, changed at random, planned here and by the engine's own
//! code. Prints by architecture how many are answered, how many are right, and how many are wrong in silence.

mod ask;
mod draw;
mod figures;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use self::ask::Asked;
use self::figures::Figures;
use super::{DevError, Outcome};
use crate::chance::Rng;

/// What is asked.
#[derive(Debug, clap::Args)]
pub struct MutateArgs {
    /// Directories of *config.json files, or files with one config or kept answer per line
    #[arg(required_unless_present = "kept")]
    pub seeds: Vec<PathBuf>,
    /// Number of mutants
    #[arg(long, default_value_t = 200)]
    pub count: u32,
    /// Seed of the draws, and by its remainder of nine the card: H100, A100, B200, L40S, T4, A100 with 40 GB, L4, H200,
    /// RTX 5090
    #[arg(long, default_value_t = 16)]
    pub seed: u64,
    /// Directory for configs, requests and answers; answers that are there are not asked again
    #[arg(long, default_value = "target/mutants")]
    pub work: PathBuf,
    /// Command of the oracle: requests in, answers out; without it only kept answers are compared
    #[arg(long)]
    pub oracle: Option<String>,
    /// Compare the answers of this file, whose rows hold their config, and draw nothing
    #[arg(long)]
    pub kept: Option<PathBuf>,
    /// Only architectures whose name contains this text
    #[arg(long)]
    pub only: Option<String>,
    /// Write rows that are missed, with their configs, to this file
    #[arg(long)]
    pub keep: Option<PathBuf>,
    /// Write the compared rows to this file, each with what was planned, as other tools read them
    #[arg(long)]
    pub rows: Option<PathBuf>,
    /// Minimum percentage of answers of the engine with the KV cache within 1 %
    #[arg(long, default_value_t = 95.0)]
    pub min_kv: f64,
    /// Minimum percentage of answers of the engine with weights within 1 %
    #[arg(long, default_value_t = 90.0)]
    pub min_weights: f64,
    /// Most rows that are wrong although nothing says that they are estimated, starts that the engine rejects among them
    #[arg(long)]
    pub max_silent: Option<usize>,
    /// Number of misses to print
    #[arg(long, default_value_t = 20)]
    pub misses: usize,
}

/// A config with what the engine said of it.
struct Row {
    config: Value,
    answer: Value,
}

pub(crate) fn run(args: &MutateArgs) -> Result<Outcome, DevError> {
    let rows = match &args.kept {
        Some(file) => kept(file)?,
        None => drawn(args)?,
    };
    let mut figures = Figures::default();
    let mut missed = String::new();
    let mut all = String::new();
    for row in &rows {
        if args.only.as_ref().is_some_and(|o| !architecture(&row.config).contains(o)) {
            continue;
        }
        let (is_missed, planned) = figures.add(row, architecture(&row.config));
        let mut line = figures::trimmed(&row.answer);
        line.insert("config".into(), row.config.clone());
        if is_missed {
            let _ = writeln!(missed, "{}", Value::Object(line.clone()));
        }
        line.insert("planned".into(), planned);
        let _ = writeln!(all, "{}", Value::Object(line));
    }
    for (file, text) in [(&args.keep, missed), (&args.rows, all)] {
        if let Some(file) = file {
            write(file, &text)?;
        }
    }
    Ok(Outcome { text: figures.show(args.misses), good: figures.good(args) })
}

fn write(file: &Path, text: &str) -> Result<(), DevError> {
    fs::write(file, text).map_err(|source| DevError::Unreadable { path: file.into(), source })
}

fn architecture(config: &Value) -> &str {
    config.pointer("/architectures/0").and_then(Value::as_str).unwrap_or_default()
}

/// Rows of a file, each with its config.
fn kept(file: &Path) -> Result<Vec<Row>, DevError> {
    let text = super::read(file)?;
    let rows: Result<Vec<Row>, DevError> = text
        .lines()
        .filter(|l| !l.trim().is_empty())
        .map(|line| {
            let answer: Value = serde_json::from_str(line)?;
            let config = answer.get("config").cloned().unwrap_or_default();
            Ok(Row { config, answer })
        })
        .collect();
    let rows = rows?;
    if rows.is_empty() { Err(DevError::NoLabels(file.into())) } else { Ok(rows) }
}

/// Mutants of the seeds, as many of each architecture, with the answers that are there.
fn drawn(args: &MutateArgs) -> Result<Vec<Row>, DevError> {
    let mut seeds = Vec::new();
    for path in &args.seeds {
        seeds.extend(seeds_of(path)?);
    }
    seeds.retain(|s| args.only.as_ref().is_none_or(|o| architecture(s).contains(o)));
    let configs = args.work.join("configs");
    fs::create_dir_all(&configs).map_err(|source| DevError::Unreadable { path: configs.clone(), source })?;
    let mut asked = Vec::new();
    for (draw, seed) in (0..args.count).zip(seeds.iter().cycle()) {
        let name = architecture(seed);
        let mut rng = Rng::of(args.seed, name, draw);
        let config = draw::config(seed, &mut rng);
        let id = format!("{name}#{}.{draw}", args.seed);
        let file = configs.join(format!("{name}-{}-{draw}_config.json", args.seed));
        write(&file, &config.to_string())?;
        let mut request: Map<String, Value> = draw::request(args.seed, &mut rng);
        request.insert("id".into(), json!(id));
        request.insert("config".into(), json!(file));
        asked.push(Asked { id, config, request });
    }
    let answers = ask::answers(&args.work, &asked, args.oracle.as_deref())?;
    let row = |a: Asked| Some(Row { answer: answers.get(&a.id)?.clone(), config: a.config });
    Ok(asked.into_iter().filter_map(row).collect())
}

/// The configs of a directory, or of a file with one a line.
fn seeds_of(path: &Path) -> Result<Vec<Value>, DevError> {
    if path.is_file() {
        let text = super::read(path)?;
        let rows: Result<Vec<Value>, _> =
            text.lines().filter(|l| !l.trim().is_empty()).map(config_of).collect();
        // A kept answer holds its config.
        let config = |row: Value| row.get("config").filter(|c| c.is_object()).cloned().unwrap_or(row);
        return Ok(rows?.into_iter().map(config).collect());
    }
    let listed = fs::read_dir(path).map_err(|source| DevError::Unreadable { path: path.into(), source })?;
    let mut files: Vec<PathBuf> = listed.filter_map(|e| Some(e.ok()?.path())).collect();
    let is_config = |f: &PathBuf| {
        let name = f.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.ends_with("config.json") && !name.ends_with("hf_quant_config.json")
    };
    files.retain(is_config);
    files.sort();
    files.iter().map(|f| config_of(&super::read(f)?)).collect()
}

/// Python writes infinities and NaN, which JSON has not; a number as good as without end is taken for one by the engine, too.
fn config_of(text: &str) -> Result<Value, DevError> {
    let read = serde_json::from_str(text).or_else(|_| {
        let words = [("-Infinity", "-1e308"), ("Infinity", "1e308"), ("NaN", "0.0")];
        serde_json::from_str(&words.iter().fold(text.to_owned(), |t, (word, n)| t.replace(word, n)))
    });
    Ok(read?)
}
