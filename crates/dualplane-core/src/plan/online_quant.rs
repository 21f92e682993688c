//! `--quantization` against what the checkpoint is: the same, quantised while it loads, or a contradiction.

use serde_json::{Value, json};

use super::launch::Launch;
use super::model::{Model, ModelFiles};
use super::outcome::PlanError;
use super::quantity::Unknown;

/// The model as it stands on the GPU after loading; `None`: as its checkpoint is.
///
/// # Errors
/// [`PlanError::Contradiction`] where the checkpoint lacks what the method needs, [`PlanError::Unsupported`] for methods
/// whose sizes are not known.
pub(crate) fn effective(model: &Model, launch: &Launch) -> Result<Option<Model>, PlanError> {
    let Some(method) = launch.quantization.as_deref() else { return Ok(None) };
    if model.quantization.is_some() {
        // Kernels have names of their own (`awq_marlin`); the engine rejects another method than the checkpoint's.
        return Ok(None);
    }
    let block = match method {
        "fp8" => json!({"quant_method": "fp8", "activation_scheme": "dynamic"}),
        "bitsandbytes" => json!({"quant_method": "bitsandbytes", "load_in_4bit": true}),
        "awq" | "awq_marlin" | "gptq" | "gptq_marlin" | "compressed-tensors" | "modelopt"
        | "modelopt_fp4" | "fbgemm_fp8" => {
            return Err(PlanError::contradiction(
                "--quantization",
                format!(
                    "{method} needs a checkpoint of that format; this one has no quantisation configuration"
                ),
            ));
        }
        other => return Err(PlanError::unsupported(format!("--quantization {other}"))),
    };
    let mut config = model.config.clone();
    if let Some(map) = config.as_object_mut() {
        map.insert("quantization_config".into(), block);
    }
    let text = Value::to_string(&config);
    let mut quantised = Model::read(&ModelFiles { config: &text, ..ModelFiles::default() })?;
    quantised.checkpoint_bytes = model.checkpoint_bytes;
    Ok(Some(quantised))
}

/// What quantising while loading leaves open.
pub(crate) fn open(launch: &Launch) -> Unknown {
    Unknown {
        what: format!(
            "the peak while --quantization {} loads: the 16-bit weights of a layer, in older versions of the whole model, must fit first",
            launch.quantization.as_deref().unwrap_or_default()
        ),
        settle: "start once, or use a checkpoint that is quantised already".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{TensorClass, catalogue};

    fn model(id: &str) -> Model {
        let e = catalogue::find(id).unwrap();
        Model::read(&ModelFiles {
            config: e.config,
            hf_quant_config: e.hf_quant_config,
            ..ModelFiles::default()
        })
        .unwrap()
    }

    #[test]
    fn linears_halve_and_embeddings_stay() {
        let m = model("Qwen/Qwen3-8B");
        let launch = Launch { quantization: Some("fp8".into()), ..Launch::default() };
        let q = effective(&m, &launch).unwrap().unwrap();
        let gpu = crate::plan::Gpu {
            name: "g".into(),
            device_name: "g".into(),
            total_bytes: 80 << 30,
            capability: (9, 0),
        };
        let of = |m: &Model, class: TensorClass| {
            let p = crate::plan::plan(m, &Launch::default(), &gpu).unwrap();
            p.gpu.weights_by_class.iter().find(|(c, _)| *c == class).map(|(_, b)| *b).unwrap()
        };
        let (full, half) = (of(&m, TensorClass::Mlp), of(&q, TensorClass::Mlp));
        assert!(half * 2 >= full && half * 2 < full + full / 1000);
        assert_eq!(of(&m, TensorClass::Embeddings), of(&q, TensorClass::Embeddings));
    }

    #[test]
    fn a_format_that_the_checkpoint_lacks_is_a_contradiction() {
        let m = model("Qwen/Qwen3-8B");
        let with =
            |method: &str| effective(&m, &Launch { quantization: Some(method.into()), ..Launch::default() });
        assert!(matches!(with("awq"), Err(PlanError::Contradiction { .. })));
        assert!(matches!(with("quip"), Err(PlanError::Unsupported { .. })));
        let fp8 = model("Qwen/Qwen3-32B-FP8");
        let launch = Launch { quantization: Some("fp8".into()), ..Launch::default() };
        assert!(effective(&fp8, &launch).unwrap().is_none());
    }
}
