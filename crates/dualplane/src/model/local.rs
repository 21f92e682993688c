//! A model's folder on this machine.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use dualplane_plan::host::Checkpoint;

use super::Texts;
use crate::commands::Failure;

/// The index of the largest checkpoints has some 10 MiB; a file that is larger is no configuration.
const MAX_FILE: u64 = 64 << 20;
/// No folder of weights holds more files.
const MAX_ENTRIES: usize = 10_000;

/// Reads a folder, or a `config.json` with what stands beside it.
pub(super) fn read(path: &Path) -> Result<Texts, Failure> {
    let (config, dir) = if path.is_dir() {
        (path.join("config.json"), path.to_owned())
    } else {
        (path.to_owned(), path.parent().unwrap_or(Path::new("")).to_owned())
    };
    let beside = |name: &str| -> Result<Option<String>, Failure> {
        let file = dir.join(name);
        if file.is_file() { text(&file).map(Some) } else { Ok(None) }
    };
    // A file that is not called config.json may stand in a folder of other models' files, where `x_config.json` has its
    // `x_hf_quant_config.json`.
    let name = config.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let own = name == "config.json";
    let quant = match name.strip_suffix("config.json") {
        Some(start) => beside(&format!("{start}hf_quant_config.json"))?,
        None => None,
    };
    Ok(Texts {
        config: text(&config)?,
        hf_quant_config: quant,
        safetensors_index: if own { beside("model.safetensors.index.json")? } else { None },
        files: if own { weights(&dir) } else { Checkpoint::default() },
        named: false,
    })
}

fn text(path: &Path) -> Result<String, Failure> {
    let failed = |source| Failure::Unreadable { path: path.to_owned(), source };
    let mut out = String::new();
    let file = fs::File::open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(Failure::NotAFile { path: path.to_owned(), what: "not a regular file" });
    }
    let read = file.take(MAX_FILE + 1).read_to_string(&mut out).map_err(failed)?;
    if read as u64 > MAX_FILE {
        return Err(failed(io::Error::other(format!("it is larger than {} MiB", MAX_FILE >> 20))));
    }
    Ok(out)
}

/// Sizes of the weight files; links of a download cache are followed for their size only.
fn weights(dir: &Path) -> Checkpoint {
    let here = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    let Ok(entries) = fs::read_dir(here) else { return Checkpoint::default() };
    let files: Vec<PathBuf> = entries.take(MAX_ENTRIES).filter_map(|e| Some(e.ok()?.path())).collect();
    let sizes = |ending: &str| -> Vec<u64> {
        files
            .iter()
            .filter(|f| f.extension().is_some_and(|e| e == ending))
            .filter_map(|f| fs::metadata(f).ok())
            .map(|m| m.len())
            .collect()
    };
    let safetensors = sizes("safetensors");
    let (found, bin) = if safetensors.is_empty() { (sizes("bin"), true) } else { (safetensors, false) };
    match found.iter().max() {
        Some(largest) => Checkpoint {
            bytes: Some(found.iter().fold(0, |a, b| a.saturating_add(*b))),
            largest_file: Some(*largest),
            bin,
        },
        None => Checkpoint::default(),
    }
}
