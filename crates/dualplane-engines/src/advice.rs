//! An engine's levers and what helps it, as its head says them.

use serde::Deserialize;

use dualplane_base::Phase;

/// Levers by what they move. The first of a list is named in advice, with its dashes; the others are read, too. A name
/// without dashes is a variable of the environment or a setting of a file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Flags {
    /// Share of the whole card's memory.
    pub share: Vec<String>,
    /// Over how many GPUs the weights are split.
    pub tensor_parallel: Vec<String>,
    /// The longest request.
    pub length: Vec<String>,
    /// Requests at a time.
    pub batch: Vec<String>,
    /// Layers on the GPU.
    pub layers: Vec<String>,
    /// Tokens of one step on the GPU, which set the size of a compute buffer.
    pub micro_batch: Vec<String>,
    /// Makes the KV cache smaller, with its value.
    pub kv_type: Option<String>,
    /// Settings that give the KV cache its size: while one of them does, the share moves nothing. The stronger one first.
    pub pool: Vec<PoolSize>,
}

/// A setting that gives the KV cache its size.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolSize {
    /// Its names.
    pub names: Vec<String>,
    /// What it counts.
    pub unit: PoolUnit,
    /// The most that the pool may have: it counts where the pool that the log prints is as large.
    #[serde(default)]
    pub at_most: bool,
}

/// What the size of a KV cache is given in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PoolUnit {
    /// Bytes of a rank.
    Bytes,
    /// Blocks of tokens.
    Blocks,
    /// Tokens.
    Tokens,
}

/// A chart that deploys an engine: which of its values become which setting.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chart {
    /// Label of its pods.
    pub label: String,
    /// How the label's value begins.
    #[serde(default)]
    pub begins: String,
    /// Settings with a value of their own, and its path. `{}` stands for the label's value.
    #[serde(default)]
    pub values: Vec<(String, String)>,
    /// Where other flags stand.
    #[serde(default)]
    pub flags: String,
    /// Where variables stand.
    #[serde(default)]
    pub env: String,
    /// Where the limit of memory stands.
    pub memory: String,
}

impl Chart {
    /// Path of a setting among the values; `None` where the chart has no place for it, or the labels are of another.
    pub fn path<'l>(
        &self,
        name: &str,
        mut labels: impl Iterator<Item = (&'l str, &'l str)>,
    ) -> Option<String> {
        let (_, of) = labels.find(|(k, v)| *k == self.label && v.starts_with(self.begins.as_str()))?;
        let own = self.values.iter().find(|(n, _)| n == name).map(|(_, path)| path);
        let path = own.unwrap_or(match name {
            "memory" => &self.memory,
            n if n.starts_with('-') => &self.flags,
            _ => &self.env,
        });
        (!path.is_empty()).then(|| path.replace("{}", of))
    }
}

/// The lever on the size of one step.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// As in [`Flags`].
    pub flags: Vec<String>,
    /// What it halves.
    pub moves: String,
    /// Messages that print its value.
    #[serde(default)]
    pub printed: Vec<Numbers>,
    /// Where a printed value comes from, in words.
    #[serde(default)]
    pub printed_words: String,
    /// Where a flag's value comes from, in words.
    #[serde(default)]
    pub flag_words: String,
}

/// A number of a message.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Numbers {
    /// Id of the signature, or its beginning up to a dot.
    pub signature: String,
    /// Named group.
    pub group: String,
}

impl Numbers {
    /// Whether a hit of this id carries it.
    #[must_use]
    pub fn is_of(&self, id: &str) -> bool {
        id == self.signature || (self.signature.ends_with('.') && id.starts_with(&self.signature))
    }
}

/// Messages that carry numbers which advice computes with.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Printed {
    /// Bytes of the weights.
    pub weights: Vec<Numbers>,
    /// What the start-up log says of a pool that holds the longest request.
    pub pool_words: Option<String>,
    /// The name under which the log prints the share.
    pub share_words: Option<String>,
    /// The model that is loaded.
    pub model: Vec<Numbers>,
    /// Settings, all in one line.
    pub settings: Vec<Settings>,
}

/// A line that prints the settings of a server as Python does: `{'a': 1}`, `Name(a=1)` or `a=1, b=2`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Id of the signature.
    pub signature: String,
    /// What stands before the settings.
    pub after: String,
    /// The keys that are flags, where not all are: a key, or key and flag where they differ.
    #[serde(default)]
    pub keys: Vec<(String, String)>,
}

/// What helps, in this order.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Advice {
    /// Loading ran out of VRAM.
    pub load: Vec<Counsel>,
    /// A step ran out of VRAM.
    pub runtime: Vec<Counsel>,
    /// The KV cache cannot hold one request, and the message may print no sizes.
    pub pool_start: Vec<Counsel>,
    /// The KV cache cannot hold the traffic.
    pub pool: Vec<Counsel>,
    /// A model was loaded again beside its old copy.
    pub reload: Vec<Counsel>,
}

/// One piece of advice: a lever whose value is computed, or a sentence.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Counsel {
    /// What is computed.
    pub lever: Option<Lever>,
    /// What is said.
    pub say: Option<String>,
    /// It is the second choice of two.
    pub or: bool,
    /// Only in this phase.
    pub phase: Option<Phase>,
    /// Only where the first error is a signature whose id begins so.
    pub of: Option<String>,
    /// Only for a checkpoint that is not quantised yet.
    pub unquantised: bool,
}

/// What code computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lever {
    /// Twice the GPUs.
    TensorParallel,
    /// Half a step.
    Step,
    /// As many layers as fit.
    Layers,
    /// A share above what the weights take.
    ShareAboveWeights,
    /// As many copies of a model as fit; its sentence is said where that cannot be told.
    Instances,
}

/// Copies of a model on one card.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instances {
    /// The message that tells of one, with the groups `model` and `device`.
    pub signature: String,
    /// Where their number is set; `{}` stands for the model.
    pub setting: String,
}

/// Pinned host memory that an engine takes at its start, whatever it serves.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinnedPool {
    /// Its flag, in bytes.
    pub flag: String,
    /// Its size where no flag says one.
    pub default: u64,
}

/// An engine without a GPU: what it would hold in VRAM is in host RAM.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OnCpu {
    /// A setting that the log prints, and its value there.
    pub setting: (String, String),
    /// The variable that gives the size of the KV cache in whole GiB.
    pub pool: String,
}

/// Host memory that an engine takes beside its heap.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HostPool {
    /// What it is.
    pub name: String,
    /// As in [`Flags`].
    pub flags: Vec<String>,
    /// Unit of a flag's value.
    pub unit: String,
    /// The same in words, where they say more.
    pub unit_words: Option<String>,
    /// The value is for each GPU.
    pub per_gpu: bool,
    /// How a flag's value becomes the size; `{value}` and `{ranks}` are filled in.
    pub arithmetic: String,
    /// It may grow up to this, and need not.
    pub bound: bool,
    /// Messages that print its size: each rank its own, or a bound again and again.
    pub printed: Vec<Numbers>,
}
