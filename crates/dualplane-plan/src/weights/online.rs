//! `--quantization`: a method that the engine applies while it loads, or the name of the checkpoint's own.

use std::borrow::Cow;

use crate::launch::Launch;
use crate::model::quant::Patterns;
use crate::model::{LinearScheme, Model, QuantMethod, Quantization};
use crate::outcome::PlanError;

/// The model as the launch serves it: quantised at load where the flag asks for it.
pub(crate) fn as_served<'m>(model: &'m Model, launch: &Launch) -> Result<Cow<'m, Model>, PlanError> {
    Ok(match online(model, launch)? {
        Some(q) => Cow::Owned(Model { quantization: Some(q), ..model.clone() }),
        None => Cow::Borrowed(model),
    })
}

/// The quantisation that the flag adds to a plain checkpoint.
fn online(model: &Model, launch: &Launch) -> Result<Option<Quantization>, PlanError> {
    let Some(asked) = launch.quantization.as_deref() else { return Ok(None) };
    let flag = "--quantization";
    if let Some(own) = &model.quantization {
        let own = own.method.as_str();
        // The engine replaces a method by a faster kernel's name for the same format.
        let same = asked == own || asked.starts_with(own) || own.starts_with(asked);
        return if same {
            Ok(None)
        } else {
            Err(PlanError::contradiction(
                flag,
                format!(
                    "Quantization method specified in the model config ({own}) does not match the quantization method \
                     specified in the `quantization` argument ({asked})."
                ),
            ))
        };
    }
    let made = |method, scheme| Quantization {
        method,
        default: scheme,
        experts: scheme,
        ignored: Patterns::default(),
        by_module: std::collections::HashMap::new(),
        head: false,
    };
    match asked {
        "fp8" => Ok(Some(made(QuantMethod::Fp8, LinearScheme::Fp8Tensor { static_input: false }))),
        "bitsandbytes" => Ok(Some(made(QuantMethod::Bitsandbytes, LinearScheme::Nf4))),
        "awq" | "awq_marlin" | "gptq" | "gptq_marlin" | "modelopt" | "modelopt_fp4"
        | "compressed-tensors" => Err(PlanError::contradiction(
            flag,
            format!(
                "the checkpoint does not declare {asked} \
            quantisation"
            ),
        )),
        other => Err(PlanError::unsupported(format!("--quantization {other}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ModelFiles;
    use crate::{Gpu, plan};

    const PLAIN: &str = r#"{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096,
        "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 32, "intermediate_size": 14336,
        "vocab_size": 128256, "max_position_embeddings": 131072, "torch_dtype": "bfloat16"}"#;

    #[test]
    fn eight_bits_halve_the_linears() {
        let model = Model::read(&ModelFiles { config: PLAIN, ..ModelFiles::default() }).unwrap();
        let gpu = Gpu {
            name: "H100".into(),
            device_name: "H100".into(),
            total_bytes: 80 << 30,
            capability: (9, 0),
            host_use: None,
        };
        let weights = |quantization: Option<&str>| {
            let launch = Launch { quantization: quantization.map(str::to_owned), ..Launch::default() };
            plan(&model, &launch, &gpu).map(|p| p.gpu.weights_bytes.expected)
        };
        // 6.98e9 parameters in linears: 13.0 GiB of the 14.99 in 16 bits.
        let (plain, fp8, nf4) =
            (weights(None).unwrap(), weights(Some("fp8")).unwrap(), weights(Some("bitsandbytes")).unwrap());
        assert!((plain - fp8).abs_diff(6_979_321_856) < 4 << 20, "{}", plain - fp8);
        assert!(nf4 < fp8);
        assert!(matches!(weights(Some("awq")), Err(PlanError::Contradiction { .. })));
    }
}
