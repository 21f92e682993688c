//! Whether head and embedding are one tensor: two configurations may say it, and the engine asks one of them.

use serde_json::Value;

use super::family::{self, Head, Tie, Traits};

/// The answer of a model whose wrapper is `config` and whose language model has the configuration `text` and these traits.
pub(super) fn tied(architecture: &str, traits: &Traits, config: &Value, text: &Value) -> bool {
    let own = family::traits(architecture).unwrap_or(&family::GUESS);
    // A wrapper whose code never asks makes its own head.
    if own.inner && own.head == Head::Always {
        return false;
    }
    let says = |of: &Value| of.get("tie_word_embeddings").and_then(Value::as_bool);
    // A configuration that says nothing means what its class in transformers sets.
    match own.tie_of {
        Tie::Wrapper => says(config).unwrap_or(own.tied),
        Tie::LanguageModel => says(text).unwrap_or(traits.tied),
        Tie::Either => match (says(config), says(text)) {
            (None, None) => traits.tied,
            (outer, inner) => outer == Some(true) || inner == Some(true),
        },
        Tie::First => says(config).or_else(|| says(text)).unwrap_or(traits.tied),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::model::{Model, ModelFiles};
    use crate::{Gpu, Launch, TensorClass};

    /// What vLLM 0.33.0 built for one config of each wrapper: a config without the key, and for each pair of what wrapper and
    /// language model say whether there was a head.
    const TIES: &str = include_str!("../../../../testdata/plan/ties.jsonl");

    fn set(object: &mut Value, said: &Value) {
        if said.is_boolean() {
            object["tie_word_embeddings"] = said.clone();
        }
    }

    #[test]
    fn a_wrapper_ties_its_head_as_the_engine_does() {
        let (mut rows, mut heads) = (0, 0);
        for row in TIES.lines().map(|l| serde_json::from_str::<Value>(l).unwrap()) {
            for asked in row["answers"].as_array().unwrap() {
                let mut config = row["config"].clone();
                set(&mut config, &asked["wrapper"]);
                set(&mut config["text_config"], &asked["text"]);
                let text = config.to_string();
                let model = Model::read(&ModelFiles { config: &text, ..ModelFiles::default() }).unwrap();
                let launch = Launch { trust_remote_code: true, ..Launch::default() };
                let gpu = Gpu {
                    name: "H100".into(),
                    device_name: "NVIDIA H100 80GB HBM3".into(),
                    total_bytes: 85_029_615_042,
                    capability: (9, 0),
                    host_use: None,
                };
                let plan = crate::plan(&model, &launch, &gpu).unwrap();
                let head = plan.gpu.weights_by_class.iter().any(|(c, b)| *c == TensorClass::LmHead && *b > 0);
                assert_eq!(json!(head), asked["head"], "{}: {asked}", config["architectures"]);
                rows += 1;
                heads += u32::from(head);
            }
        }
        assert!(rows > 100 && heads > 30 && heads < rows - 30, "{rows} {heads}");
    }
}
