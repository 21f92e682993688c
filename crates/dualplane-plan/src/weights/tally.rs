//! Adding up tensors by class, each in the layout that its quantisation gives it.

use super::allocator::Allocator;
use crate::arith::{ceil_div, floor_div, mul, round_up};
use crate::gpu::Gpu;
use crate::launch::Settled;
use crate::launch::{Launch, Lora};
use crate::model::quant::Quantization;
use crate::model::{LinearScheme, Model};
use crate::outcome::{PlanError, TensorClass};
use dualplane_base::Version;

/// What one rank is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rank {
    pub(super) tp: u64,
    /// Ranks that share the experts; 1: experts are cut like other weights.
    pub(super) ep: u64,
    pub(super) redundant: u64,
    /// Bytes of one element of an unquantised weight.
    pub(super) element: u64,
    pub(super) sm: u32,
    pub(super) version: Version,
    pub(super) lora: Option<Lora>,
}

impl Rank {
    pub(crate) fn new(launch: &Launch, gpu: &Gpu, settled: &Settled) -> Self {
        let ep = if launch.expert_parallel { mul([launch.tp, launch.dp]) } else { 1 };
        Self {
            tp: launch.tp,
            ep,
            redundant: launch.redundant_experts,
            element: settled.dtype.bytes(),
            sm: gpu.sm(),
            version: launch.version,
            lora: launch.lora,
        }
    }
}

/// Bytes of one rank of one pipeline stage.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Stage {
    by_class: [u64; 10],
    /// What torch's allocator adds by rounding large tensors.
    rounding: u64,
    /// Slots of LoRA adapters.
    lora: u64,
    /// The checkpoint's own drafter, without what it shares with the model.
    drafter: u64,
    /// The part of the tensors whose shapes are not known and were estimated.
    guessed: u64,
    /// The part of the tensors that depends on what a step may hold.
    workspace: u64,
    /// The part of the experts that fills the tiles of vLLM's kernels.
    padding: u64,
}

impl Stage {
    pub(crate) fn get(&self, class: TensorClass) -> u64 {
        self.by_class.get(class as usize).copied().unwrap_or(0)
    }

    pub(crate) const fn rounding(&self) -> u64 {
        self.rounding
    }

    pub(crate) const fn lora(&self) -> u64 {
        self.lora
    }

    pub(crate) const fn drafter(&self) -> u64 {
        self.drafter
    }

    pub(crate) const fn workspace(&self) -> u64 {
        self.workspace
    }

    pub(crate) const fn padding(&self) -> u64 {
        self.padding
    }

    pub(crate) const fn guessed(&self) -> u64 {
        self.guessed
    }

    pub(super) fn with_workspace(mut self, workspace: u64) -> Self {
        self.workspace = workspace;
        self
    }

    pub(super) fn with_drafter(mut self, drafter: u64) -> Self {
        self.drafter = drafter;
        self
    }

    /// The sum of the model's own tensors.
    pub(crate) fn total(&self) -> u64 {
        self.by_class.iter().fold(0, |a, b| a.saturating_add(*b))
    }
}

/// The sum so far.
pub(super) struct Tally<'a> {
    pub(super) model: &'a Model,
    pub(super) rank: Rank,
    /// Layer that is being added.
    pub(super) layer: u64,
    /// Prefix of layers in the checkpoint.
    prefix: &'static str,
    stage: Stage,
    allocator: Allocator,
    error: Option<PlanError>,
}

impl<'a> Tally<'a> {
    /// Adds the layers of another part of the checkpoint, which names them otherwise.
    pub(super) const fn named(mut self, prefix: &'static str) -> Self {
        self.prefix = prefix;
        self
    }

    pub(super) fn new(model: &'a Model, rank: Rank) -> Self {
        Self {
            model,
            rank,
            layer: 0,
            prefix: model.traits.layers,
            stage: Stage::default(),
            allocator: Allocator::default(),
            error: None,
        }
    }

    /// The sum so far.
    pub(super) fn total(&self) -> u64 {
        self.stage.total()
    }

    pub(super) fn finish(self) -> Result<Stage, PlanError> {
        match self.error {
            Some(e) => Err(e),
            None => Ok(Stage { rounding: self.allocator.charged(), ..self.stage }),
        }
    }

    /// A dimension cut into this many parts; the first one that cannot be is remembered as the error.
    pub(super) fn cut(&mut self, n: u64, what: &str) -> u64 {
        let tp = self.rank.tp;
        if !n.is_multiple_of(tp) && self.error.is_none() {
            self.error = Some(PlanError::contradiction(
                "--tensor-parallel-size",
                format!("{what} {n} is not divisible by {tp}"),
            ));
        }
        floor_div(n, tp)
    }

    pub(super) fn reject(&mut self, error: PlanError) {
        self.error.get_or_insert(error);
    }

    pub(super) fn add<const N: usize>(&mut self, class: TensorClass, factors: [u64; N]) {
        if let Some(sum) = self.stage.by_class.get_mut(class as usize) {
            *sum = sum.saturating_add(mul(factors));
        }
    }

    /// Tensors of a class that are counted by an estimate of their shapes.
    pub(super) fn guess(&mut self, class: TensorClass, bytes: u64) {
        self.add(class, [bytes]);
        self.stage.guessed = self.stage.guessed.saturating_add(bytes);
    }

    /// Experts that are counted already, but only because vLLM's kernels take whole tiles.
    pub(super) fn pads(&mut self, bytes: u64) {
        self.stage.padding = self.stage.padding.saturating_add(bytes);
    }

    /// As much more may be wrong with what was estimated.
    pub(super) fn doubt(&mut self, bytes: u64) {
        self.stage.guessed = self.stage.guessed.saturating_add(bytes);
    }

    /// Tensors that are allocated on their own.
    pub(super) fn allocated(&mut self, bytes: u64, count: u64) {
        self.allocator.take(bytes, count);
    }

    fn quant(&self) -> Option<&'a Quantization> {
        self.model.quantization.as_ref()
    }

    /// Name of a module of the current layer, as the checkpoint writes it.
    pub(super) fn name(&self, module: &str) -> String {
        format!("{}.{}.{module}", self.prefix, self.layer)
    }

    /// A scheme by module, or none where the release does not know it: 0.20.2 builds 4-bit modules of mixed checkpoints
    /// as if they were plain.
    fn known(&self, scheme: LinearScheme) -> LinearScheme {
        let four_bits = matches!(scheme, LinearScheme::Nvfp4 { .. });
        if four_bits && self.rank.version < Version(0, 22, 0) { LinearScheme::Plain } else { scheme }
    }

    /// How a linear is stored.
    pub(super) fn scheme(&self, module: &str, parts: &[&str]) -> LinearScheme {
        let Some(q) = self.quant() else { return LinearScheme::Plain };
        let full = |part: &str| match (module.is_empty(), part.is_empty()) {
            (_, true) => self.name(module),
            (true, _) => self.name(part),
            _ => self.name(&format!("{module}.{part}")),
        };
        let Some(first) = parts.first() else { return q.default };
        let name = full(first);
        if let Some(scheme) = q.by_module.get(&name) {
            return self.known(*scheme);
        }
        if q.ignored.matches(&name) { LinearScheme::Plain } else { q.default }
    }

    /// How the routed experts of a layer are stored.
    pub(super) fn expert_scheme(&self, module: &str) -> LinearScheme {
        let Some(q) = self.quant() else { return LinearScheme::Plain };
        let name = self.name(module);
        if let Some(scheme) = q.by_module.get(&name) {
            return self.known(*scheme);
        }
        if q.ignored.matches(&name) || q.ignored.matches(&format!("{name}.0.gate_proj")) {
            LinearScheme::Plain
        } else {
            q.experts
        }
    }

    /// A linear of one rank: outputs of each part that is fused into it, inputs.
    pub(super) fn linear(
        &mut self,
        class: TensorClass,
        module: &str,
        parts: &[(&str, u64)],
        inputs: u64,
        bias: bool,
    ) {
        let names: Vec<&str> = parts.iter().map(|(n, _)| *n).collect();
        let scheme = self.scheme(module, &names);
        let outputs: Vec<u64> = parts.iter().map(|(_, o)| *o).collect();
        let bytes = self.stored(scheme, &outputs, inputs);
        self.add(class, [bytes]);
        self.allocated(bytes, 1);
        self.adapters(&outputs, inputs, 1);
        if bias {
            let total = outputs.iter().fold(0, |a: u64, b| a.saturating_add(*b));
            self.add(class, [total, self.rank.element]);
        }
    }

    /// Slots of adapters for linears of these shapes: a down and an up projection for each fused part.
    ///
    /// vLLM lora/layers/base_linear.py `create_lora_weights`: 16 bits, the full rank for each slot.
    pub(super) fn adapters(&mut self, outputs: &[u64], inputs: u64, count: u64) {
        let Some(lora) = self.rank.lora else { return };
        let down = if lora.fully_sharded { ceil_div(lora.max_rank, self.rank.tp) } else { lora.max_rank };
        let one = outputs.iter().fold(0, |sum: u64, out| {
            sum.saturating_add(mul([down, inputs])).saturating_add(mul([lora.max_rank, *out]))
        });
        self.stage.lora = self.stage.lora.saturating_add(mul([lora.max_loras, one, 2, count]));
    }

    /// Bytes of a linear as the kernels of this card keep it.
    fn stored(&self, scheme: LinearScheme, outputs: &[u64], inputs: u64) -> u64 {
        let LinearScheme::Fp8Block { columns, .. } = scheme else {
            return matrix(scheme, outputs, inputs, self.rank.element);
        };
        let out = outputs.iter().fold(0, |a: u64, b| a.saturating_add(*b));
        let groups = ceil_div(inputs, columns);
        match self.rank.sm / 10 {
            // Marlin spreads scales over rows, in 16 bits.
            7 | 8 => mul([out, inputs]).saturating_add(mul([groups, out, self.rank.element])),
            // DeepGEMM keeps one byte a row and four groups a word.
            10 => mul([out, inputs]).saturating_add(mul([round_up(groups, 4), out])),
            _ => matrix(scheme, outputs, inputs, self.rank.element),
        }
    }

    /// vLLM quantization/utils/fp8_utils.py `validate_fp8_block_shape`: what is cut must stay whole tiles.
    pub(super) fn whole_tiles(&mut self, module: &str, part: &str, inputs: Option<u64>, outputs: &[u64]) {
        let LinearScheme::Fp8Block { rows, columns } = self.scheme(module, &[part]) else { return };
        if self.rank.tp == 1 {
            return;
        }
        let bad_input = inputs.filter(|i| !i.is_multiple_of(columns));
        let bad_output = outputs.iter().find(|o| !o.is_multiple_of(rows));
        if let Some(n) = bad_input {
            self.reject(PlanError::contradiction(
                "--tensor-parallel-size",
                format!(
                    "Weight input_size_per_partition = {n} is not divisible by weight quantization block_k = {columns}."
                ),
            ));
        } else if let Some(n) = bad_output {
            self.reject(PlanError::contradiction(
                "--tensor-parallel-size",
                format!("Weight output_partition_size = {n} is not divisible by weight quantization block_n = {rows}."),
            ));
        }
    }

    /// A linear that is never quantised.
    pub(super) fn plain(&mut self, class: TensorClass, outputs: u64, inputs: u64) {
        self.add(class, [outputs, inputs, self.rank.element]);
    }

    /// The output head over words of `width`. One that is the embedding has no weight of its own, but keeps the scales that the
    /// checkpoint packs it with (vLLM layers/vocab_parallel_embedding.py `tie_weights`).
    pub(super) fn head(&mut self, rows: u64, width: u64, own: bool) {
        let scheme = match self.quant() {
            Some(q) => match q.by_module.get("lm_head") {
                Some(s) => self.known(*s),
                None if q.head && !q.ignored.matches("lm_head") => q.default,
                None => LinearScheme::Plain,
            },
            None => LinearScheme::Plain,
        };
        let whole = matrix(scheme, &[rows], width, self.rank.element);
        let bytes = match scheme {
            _ if own => whole,
            LinearScheme::Nvfp4 { .. } => whole.saturating_sub(ceil_div(mul([rows, width]), 2)),
            _ => return,
        };
        self.add(TensorClass::LmHead, [bytes]);
        self.allocated(bytes, 1);
    }
}

/// Bytes of a weight with its scales: outputs of each fused part, inputs, bytes of an unquantised element.
pub(super) fn matrix(scheme: LinearScheme, outputs: &[u64], inputs: u64, element: u64) -> u64 {
    let out = outputs.iter().fold(0, |a: u64, b| a.saturating_add(*b));
    let parts = outputs.len() as u64;
    let n = mul([out, inputs]);
    match scheme {
        LinearScheme::Plain => mul([n, element]),
        LinearScheme::Fp8Tensor { static_input } => {
            n.saturating_add(mul([parts, if static_input { 8 } else { 4 }]))
        }
        LinearScheme::Fp8Channel | LinearScheme::Int8Channel => n.saturating_add(mul([out, 4])),
        LinearScheme::Fp8Block { rows, columns } => {
            let tiles = outputs.iter().fold(0, |a: u64, o| a.saturating_add(ceil_div(*o, rows)));
            n.saturating_add(mul([tiles, ceil_div(inputs, columns), 4]))
        }
        LinearScheme::IntGroup { bits, group, zeros, order } => {
            let groups = if group == 0 { 1 } else { ceil_div(inputs, group) };
            let weights = ceil_div(mul([n, bits]), 8);
            let scales = mul([groups, out, element]);
            let zeros = if zeros { ceil_div(mul([groups, out, bits]), 8) } else { 0 };
            let order = if order { mul([inputs, 4]) } else { 0 };
            weights.saturating_add(scales).saturating_add(zeros).saturating_add(order)
        }
        LinearScheme::Nvfp4 { group } => ceil_div(n, 2)
            .saturating_add(mul([out, floor_div(inputs, group)]))
            .saturating_add(mul([parts, 8])),
        LinearScheme::Mxfp4 => ceil_div(n, 2).saturating_add(mul([out, ceil_div(inputs, 32)])),
        // bitsandbytes pads each weight to whole blocks of 64.
        LinearScheme::Nf4 => round_up(n, 64) / 2 + mul([ceil_div(n, 64), 4]),
    }
}
