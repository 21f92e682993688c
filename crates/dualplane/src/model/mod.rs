//! Where a model's facts come from: a directory, a `config.json`, the catalogue, or Hugging Face.

mod hub;
mod local;

use std::path::Path;

use dualplane_core::plan::catalogue;
use dualplane_core::plan::host::Checkpoint;
use dualplane_core::plan::model::ModelFiles;
use dualplane_core::plan::{Model, Named};

use crate::commands::Failure;

/// The texts of a model's files.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    config: String,
    hf_quant_config: Option<String>,
    safetensors_index: Option<String>,
    files: Checkpoint,
}

/// Reads the model that `id` names.
pub(crate) fn load(id: &str, online: bool) -> Result<Named, Failure> {
    let path = Path::new(id);
    if path.is_dir() || path.extension().is_some_and(|e| e == "json") {
        return named(id, &format!("{}", path.display()), &local::read(path)?);
    }
    if online {
        let (texts, address) = hub::read(id)?;
        return named(id, &address, &texts);
    }
    let Some(entry) = catalogue::find(id) else {
        return Err(Failure::NoModel { id: id.into(), near: catalogue::near(id, 4) });
    };
    let files =
        ModelFiles { config: entry.config, hf_quant_config: entry.hf_quant_config, safetensors_index: None };
    let source = format!("catalogue, {}: {}", entry.id, entry.source);
    Ok(Named { id: id.into(), source, model: Model::read(&files)?, files: Checkpoint::default() })
}

fn named(id: &str, source: &str, texts: &Texts) -> Result<Named, Failure> {
    let files = ModelFiles {
        config: &texts.config,
        hf_quant_config: texts.hf_quant_config.as_deref(),
        safetensors_index: texts.safetensors_index.as_deref(),
    };
    Ok(Named { id: id.into(), source: source.into(), model: Model::read(&files)?, files: texts.files })
}
