//! Where a model's facts come from: a directory, a `config.json`, a GGUF file, the catalogue, or Hugging Face.

mod gguf;
mod hub;
mod local;

use std::path::Path;

use dualplane_core::plan::catalogue;
use dualplane_core::plan::engines::llama_cpp::name_and_quant;
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
    if gguf::is(path) {
        return gguf::read(id, path);
    }
    if path.is_dir() || path.extension().is_some_and(|e| e == "json") {
        return named(id, &format!("{}", path.display()), &local::read(path)?);
    }
    if online {
        let (texts, address) = hub::read(id)?;
        return named(id, &address, &texts);
    }
    // A GGUF that is not here may be of a model that is known: its name or repository tells.
    let (bare, _) = name_and_quant(id);
    let Some(entry) = catalogue::find(id).or_else(|| catalogue::find(&bare)) else {
        return Err(Failure::NoModel { id: id.into(), near: catalogue::near(id, 4) });
    };
    let files =
        ModelFiles { config: entry.config, hf_quant_config: entry.hf_quant_config, safetensors_index: None };
    let source = format!("catalogue, {}: {}", entry.id, entry.source);
    Ok(Named { id: id.into(), source, model: Model::read(&files)?, gguf: None, files: Checkpoint::default() })
}

fn named(id: &str, source: &str, texts: &Texts) -> Result<Named, Failure> {
    let files = ModelFiles {
        config: &texts.config,
        hf_quant_config: texts.hf_quant_config.as_deref(),
        safetensors_index: texts.safetensors_index.as_deref(),
    };
    let model = Model::read(&files)?;
    Ok(Named { id: id.into(), source: source.into(), model, gguf: None, files: texts.files })
}
