//! How the settings and the name of a checkpoint tell that its weights have less than 16 bits.

use super::Engine;

/// Words of names and settings of such checkpoints.
const WORDS: &[&str] = &[
    "awq",
    "gptq",
    "fp8",
    "int8",
    "int4",
    "w4a16",
    "w8a8",
    "nvfp4",
    "mxfp4",
    "bnb",
    "4bit",
    "8bit",
    "gguf",
    "q4_",
    "q5_",
    "q6_",
    "q8_",
    "-fp4",
    "marlin",
    "compressed-tensors",
    "bitsandbytes",
];

/// A setting says so: `--quantization fp8`.
#[must_use]
pub fn by_setting(e: &Engine) -> Option<String> {
    let flag = e.flag(&["quantization", "quantize", "quant"]);
    flag.filter(|v| !matches!(*v, "" | "None" | "none")).map(|v| format!("--quantization {v}"))
}

/// The name of the model says so, as it was given, as `also` has it, or as the log prints it.
#[must_use]
pub fn by_name(e: &Engine, also: Option<&str>) -> Option<String> {
    let given = e.flag(&["model", "model-path", "model-id"]);
    let names = given.into_iter().chain(also).chain(e.model.as_deref());
    let is = |name: &&str| {
        let lower = name.to_ascii_lowercase();
        WORDS.iter().any(|w| lower.contains(w))
    };
    names.into_iter().find(is).map(str::to_owned)
}
