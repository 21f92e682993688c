//! Where a model's facts come from: a directory, a `config.json`, a GGUF file, the catalogue, or Hugging Face.

mod gguf;
mod hub;
mod local;

use std::path::Path;

use dualplane_plan::catalogue;
use dualplane_plan::engines::llama_cpp::name_and_quant;
use dualplane_plan::host::Checkpoint;
use dualplane_plan::model::ModelFiles;
use dualplane_plan::{Model, Named, Speculation};

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
    let (texts, source) = texts(id, online)?;
    let model = Model::read(&texts.model())?;
    Ok(Named { id: id.into(), source, model, gguf: None, files: texts.files })
}

/// Reads a drafter that is served beside another model.
pub(crate) fn drafter(id: &str, method: Speculation, online: bool) -> Result<Model, Failure> {
    Ok(Model::read_drafter(&texts(id, online)?.0.model(), method)?)
}

/// The files of a model, and where they come from.
fn texts(id: &str, online: bool) -> Result<(Texts, String), Failure> {
    let path = Path::new(id);
    if path.is_dir() || path.extension().is_some_and(|e| e == "json") {
        return Ok((local::read(path)?, format!("{}", path.display())));
    }
    if online {
        return hub::read(id);
    }
    // A GGUF that is not here may be of a model that is known: its name or repository tells.
    let (bare, _) = name_and_quant(id);
    let Some(entry) = catalogue::find(id).or_else(|| catalogue::find(&bare)) else {
        return Err(Failure::NoModel { id: id.into(), near: catalogue::near(id, 4) });
    };
    let texts = Texts {
        config: entry.config.into(),
        hf_quant_config: entry.hf_quant_config.map(Into::into),
        ..Texts::default()
    };
    Ok((texts, format!("catalogue, {}: {}", entry.id, entry.source)))
}

impl Texts {
    fn model(&self) -> ModelFiles<'_> {
        ModelFiles {
            config: &self.config,
            hf_quant_config: self.hf_quant_config.as_deref(),
            safetensors_index: self.safetensors_index.as_deref(),
        }
    }
}
