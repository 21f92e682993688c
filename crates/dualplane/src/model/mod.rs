//! Where a model's facts come from: a directory, a `config.json`, a GGUF file, the catalogue, or Hugging Face.

mod gguf;
#[cfg(feature = "live")]
mod hub;
mod local;

use std::path::Path;

use serde_json::{Map, Value};

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
    /// Its quantisation is told by its name only.
    named: bool,
}

/// Reads the model that `id` names.
///
/// `overrides` stand in the configuration before it is read, as `--hf-overrides` puts them.
pub(crate) fn load(id: &str, online: bool, overrides: &Map<String, Value>) -> Result<Named, Failure> {
    let path = Path::new(id);
    if gguf::is(path) {
        return gguf::read(id, path);
    }
    let (mut texts, source) = texts(id, online)?;
    if !overrides.is_empty() {
        let mut config: Value = serde_json::from_str(&texts.config).map_err(|e| Failure::Flag {
            flag: "--hf-overrides",
            why: format!("the configuration is not JSON: {e}"),
        })?;
        merge(&mut config, &Value::Object(overrides.clone()));
        texts.config = config.to_string();
    }
    let mut model = Model::read(&texts.model())?;
    names(overrides, &mut model.overridden);
    if texts.named {
        model.quantized_as_named();
    }
    Ok(Named { id: id.into(), source, model, gguf: None, files: texts.files })
}

/// The keys that overrides set, those of configurations within the configuration too.
fn names(overrides: &Map<String, Value>, out: &mut Vec<String>) {
    for (key, value) in overrides {
        match value.as_object().filter(|_| key.ends_with("_config")) {
            Some(inner) => names(inner, out),
            None => out.push(key.clone()),
        }
    }
}

/// Configurations within the configuration are merged, all else is replaced, objects too (vLLM config/model.py
/// `_apply_dict_overrides`). `rope_scaling` is the older name of `rope_parameters`: one sets the other.
fn merge(into: &mut Value, from: &Value) {
    let (Value::Object(into), Value::Object(from)) = (into, from) else { return };
    for (key, value) in from {
        if matches!(key.as_str(), "rope_scaling" | "rope_parameters") {
            into.retain(|k, _| k != "rope_scaling" && k != "rope_parameters");
        }
        let nested = key.ends_with("_config") && key != "quantization_config" && value.is_object();
        match into.get_mut(key).filter(|own| nested && own.is_object()) {
            Some(own) => merge(own, value),
            None => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
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
        #[cfg(feature = "live")]
        return hub::read(id);
        #[cfg(not(feature = "live"))]
        return Err(Failure::NotBuilt("--online"));
    }
    // A revision of a model that is known has its shape, but for what nobody has seen.
    let (id, revision) = match id.split_once('@') {
        Some((name, revision)) if !name.is_empty() && !revision.is_empty() => (name, Some(revision)),
        _ => (id, None),
    };
    // A GGUF that is not here may be of a model that is known: its name or repository tells.
    let (bare, _) = name_and_quant(id);
    let entry = catalogue::find(id).or_else(|| catalogue::find(&bare));
    if let Some(s) = catalogue::as_named(id, entry) {
        let texts = Texts {
            config: s.config,
            hf_quant_config: s.hf_quant_config.map(Into::into),
            named: true,
            ..Texts::default()
        };
        let source = format!(
            "{} of the catalogue, quantised as its name says: {}; its files were not read",
            s.base.id, s.scheme
        );
        return Ok((texts, source));
    }
    let Some(entry) = entry else {
        return Err(Failure::NoModel { id: id.into(), near: catalogue::near(id, 4) });
    };
    let texts = Texts {
        config: entry.config().into(),
        hf_quant_config: entry.hf_quant_config().map(Into::into),
        named: catalogue::is_copy(id, entry),
        ..Texts::default()
    };
    let of = revision.map_or_else(String::new, |r| format!("; revision {r} was not read"));
    Ok((texts, format!("catalogue, {}: {}{of}", entry.id, entry.source)))
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn overrides_replace_what_is_no_configuration_of_its_own() {
        let mut config = json!({"a": 1, "rope_parameters": {"rope_theta": 1e6, "rope_type": "default"},
            "text_config": {"head_dim": 64, "layers": 2}, "quantization_config": {"bits": 4, "group_size": 128}});
        let from = json!({"rope_scaling": {"rope_type": "yarn"}, "text_config": {"layers": 3}, "b": {"c": 1},
            "quantization_config": {"bits": 8}});
        merge(&mut config, &from);
        let want = json!({"a": 1, "rope_scaling": {"rope_type": "yarn"}, "text_config": {"head_dim": 64, "layers": 3},
            "quantization_config": {"bits": 8}, "b": {"c": 1}});
        assert_eq!(config, want);
    }
}
