//! The plan: memory of a card divided, stage by stage, and what the engine would print.

use crate::arith::mul;
use crate::drafter;
use crate::engines::vllm::pool::{self, Blocks};
use crate::engines::vllm::prepare::Prepared;
use crate::gpu::Gpu;
use crate::launch::Launch;
use crate::model::{Attention, Family, Model, NAMED_QUANTIZATION};
use crate::outcome::{GpuPlan, KvGroup, KvPlan, Plan, PlanError, Resolved, TensorClass, Verdict};
use crate::quantity::{Plane, Quantity, Term, Unknown};
use crate::weights::Stage;
use dualplane_base::Version;

/// Share by which real weights differ from the sum of tensors: allocator rounding, small kernels' buffers.
pub(crate) const WEIGHTS_BAND: f64 = 0.004;

/// Share by which the weights of an architecture that is not known may differ from those of a plain decoder of its config.
const GUESSED_WEIGHTS: f64 = 0.3;
/// The same of an encoder that is not known.
const GUESSED_ENCODER: f64 = 0.5;
/// Factor by which the bytes of a token may differ.
const GUESSED_TOKEN: f64 = 2.0;
/// … by which they may be more where the layers keep states beside keys and values, as keys of the config say: the engine gives
/// each state pages of the cache, in blocks of as few tokens as a convolution sees. Up to nine times as much was seen of Inkling
/// (0.33.0 models/inkling/nvidia/sconv_swa_attn.py, asked for random configs).
const GUESSED_STATES: f64 = 10.0;

/// Factors by which the tokens of a cache may be fewer and more than planned.
fn spread(model: &Model) -> (f64, f64) {
    let says_states = |key: &String| ["conv", "ssm", "mamba", "recurrent"].iter().any(|w| key.contains(w));
    match &model.estimated {
        None => (1.0, 1.0),
        Some(_) if model.unknown_keys.iter().any(says_states) => (GUESSED_STATES, GUESSED_TOKEN),
        Some(_) => (GUESSED_TOKEN, GUESSED_TOKEN),
    }
}

/// What is taken from a stage before the cache.
struct Taken {
    weights: Quantity,
    activation: Term,
    graphs: Term,
    rest: Term,
    available: Quantity,
}

impl Prepared {
    /// The whole plan.
    pub(crate) fn plan(&self, model: &Model, launch: &Launch, gpu: &Gpu) -> Result<Plan, PlanError> {
        let changed = super::cpu::launch(launch, model, gpu);
        let launch = changed.as_ref();
        let requested = (gpu.total_bytes as f64 * self.settled.utilisation).ceil() as u64;
        let taken: Vec<Taken> =
            (0..self.stages.len()).map(|stage| self.taken(model, launch, gpu, requested, stage)).collect();
        let given = launch.available_kv_bytes.or(launch.kv_cache_memory_bytes).map(Quantity::exact);
        let available: Vec<Quantity> = taken.iter().map(|t| given.unwrap_or(t.available)).collect();
        let bound = |f: fn(&Quantity) -> u64, factor: f64| -> Vec<u64> {
            self.bytes_per_block
                .iter()
                .zip(&available)
                .map(|(bytes, a)| {
                    let pool =
                        launch.num_gpu_blocks_override.map_or_else(|| f(a), |n| n.saturating_mul(*bytes));
                    (pool as f64 * factor) as u64
                })
                .collect()
        };
        let pool = self.pool();
        // Where the bytes of a token are not sure, so many fewer or more tokens are as if the pool were that size.
        let (fewer, more) = spread(model);
        let fit = self.settled.fit_len;
        let expected = pool.cut(&bound(|q| q.expected, 1.0), fit);
        let low = pool.cut(&bound(|q| q.low, 1.0 / fewer), fit);
        let high = pool.cut(&bound(|q| q.high, more), fit);
        let verdict = match (&low.refusal, &high.refusal) {
            (None, _) => Verdict::Fits,
            (Some(_), Some(_)) => Verdict::Refused,
            (Some(_), None) => Verdict::Uncertain,
        };
        // The card is looked at before anything else.
        let start = pool::check(launch, gpu, requested, self.settled.utilisation);
        let (verdict, refusal, open) = match start {
            Some(s) if s.refusal.is_some() => (s.verdict, s.refusal, s.unknown),
            Some(s) if s.verdict == Verdict::Uncertain && verdict == Verdict::Fits => {
                (s.verdict, None, s.unknown)
            }
            Some(s) => (verdict, expected.refusal.clone(), s.unknown),
            None => (verdict, expected.refusal.clone(), None),
        };
        let tightest = self.tightest(&available);
        let empty = || PlanError::unsupported("a launch without a pipeline stage");
        let t = taken.get(tightest).ok_or_else(empty)?;
        let kv = self.kv_plan(available.get(tightest).copied().unwrap_or_default(), &low, &expected, &high);
        let separate = drafter::counted(model, launch).is_some();
        let mut terms = self.weight_terms(tightest, separate);
        terms.extend([t.activation.clone(), t.graphs.clone(), t.rest.clone()]);
        Ok(Plan {
            resolved: self.resolved(model),
            gpu: GpuPlan {
                total_bytes: gpu.total_bytes,
                requested_bytes: requested,
                weights_bytes: t.weights,
                weights_by_class: self.weights_by_class(tightest),
                activation_bytes: t.activation.quantity,
                cuda_graph_bytes: t.graphs.quantity,
                non_torch_bytes: t.rest.quantity,
                kv_cache: kv,
                tightest_stage: tightest as u64,
            },
            host: None,
            verdict,
            refusal,
            printed: None,
            estimated: model.estimated.is_some(),
            terms,
            unknown: self.unknown(model, launch, given.is_some()).into_iter().chain(open).collect(),
        })
    }

    fn taken(&self, model: &Model, launch: &Launch, gpu: &Gpu, requested: u64, stage: usize) -> Taken {
        let parts =
            self.stages.get(stage).map_or([0; 4], |s| [s.total(), s.rounding(), s.lora(), s.drafter()]);
        let bytes = parts.into_iter().fold(0, u64::saturating_add).saturating_sub(launch.cpu_offload_bytes);
        let weights = self.weights(model, launch, stage, bytes);
        let last = stage + 1 == self.stages.len();
        let activation = pool::activation(model, launch, &self.settled, last);
        let graphs = pool::cuda_graphs(model, launch, bytes);
        let mut rest = pool::non_torch(model, launch, &self.settled, last, gpu.total_bytes);
        let held = pool::held(launch, gpu);
        let (activation, graphs) = if gpu.is_cpu() {
            let [none, no_graphs, process] = super::cpu::terms();
            rest = process;
            (none, no_graphs)
        } else {
            (activation, graphs)
        };
        if held > 0 {
            rest.quantity = rest.quantity + Quantity::exact(held);
            rest.formula =
                format!("{} + {held} B used by other processes, which this version counts too", rest.formula);
        }
        let sum: Quantity = [weights, activation.quantity, graphs.quantity, rest.quantity].into_iter().sum();
        Taken { weights, activation, graphs, rest, available: Quantity::exact(requested).minus(sum) }
    }

    /// Weights with what is not sure of them.
    fn weights(&self, model: &Model, launch: &Launch, stage: usize, bytes: u64) -> Quantity {
        if model.estimated.is_none() {
            let guessed = self.stages.get(stage).map_or(0, Stage::guessed);
            let named = if model.quantized_by_name { NAMED_QUANTIZATION } else { WEIGHTS_BAND };
            let half = guessed as f64 * GUESSED_ENCODER + bytes as f64 * named;
            return Quantity::around(bytes, half as u64);
        }
        let band = Quantity::within(bytes, GUESSED_WEIGHTS);
        Quantity { high: band.high.saturating_add(self.kept_whole(model, launch, stage)), ..band }
    }

    /// What a class that is not known may keep on each rank beside that: the embedding, which others split (Inkling, vLLM 0.33.0
    /// models/inkling/nvidia/model.py), and for each layer that selects tokens a table of its own, which others share (seen of
    /// HYV4).
    fn kept_whole(&self, model: &Model, launch: &Launch, stage: usize) -> u64 {
        let embedding = self.stages.get(stage).map_or(0, |s| s.get(TensorClass::Embeddings));
        let own = model.layers.iter().zip(&self.stage_of).filter(|(_, of)| **of == stage as u64);
        let selecting = own
            .filter_map(|(l, _)| match l.attention {
                Attention::Mla(m) => m.indexer,
                _ => None,
            })
            .fold(0_u64, |sum, i| sum.saturating_add(mul([self.settled.max_num_batched_tokens, i.top_k, 4])));
        embedding.saturating_mul(launch.tp.saturating_sub(1)).saturating_add(selecting)
    }

    /// The stage with the fewest blocks.
    fn tightest(&self, available: &[Quantity]) -> usize {
        self.bytes_per_block
            .iter()
            .zip(available)
            .enumerate()
            .filter(|(_, (bytes, _))| **bytes > 0)
            .min_by_key(|(i, (bytes, a))| (a.expected / **bytes, usize::MAX - i))
            .map_or(0, |(i, _)| i)
    }

    /// Bytes of the weights of one rank of a stage, by class.
    #[must_use]
    pub fn weights_by_class(&self, stage: usize) -> Vec<(TensorClass, u64)> {
        let Some(s) = self.stages.get(stage) else { return Vec::new() };
        TensorClass::ALL.iter().map(|c| (*c, s.get(*c))).filter(|(_, b)| *b > 0).collect()
    }

    fn weight_terms(&self, stage: usize, separate: bool) -> Vec<Term> {
        let mut terms = self.class_terms(stage);
        let Some(s) = self.stages.get(stage) else { return terms };
        let mut add = |name: &str, bytes: u64, formula: &str, source: &str| {
            if bytes > 0 {
                terms.push(Term {
                    name: name.into(),
                    plane: Plane::Gpu,
                    quantity: Quantity::exact(bytes),
                    formula: formula.into(),
                    source: source.into(),
                });
            }
        };
        add(
            "weights.allocator",
            s.rounding(),
            "unused rest of an allocator block, up to 1 MiB for each tensor above 1 MiB",
            "torch c10/cuda/CUDACachingAllocator.cpp",
        );
        add(
            "weights.lora",
            s.lora(),
            "slots x rank x (inputs + outputs) x 2 B over all linears",
            "vLLM lora/layers/base_linear.py",
        );
        let (formula, source) = if separate {
            (
                "the draft model's layers, projection and head; it shares the main model's embedding \
                unless it is a complete model",
                "shapes of the drafter's config.json; vLLM model_executor/models/llama_eagle.py, llama_eagle3.py",
            )
        } else {
            (
                "one copy of the model's last layer per multi-token prediction layer, plus its projection",
                "vLLM model_executor/models/deepseek_mtp.py, qwen3_5_mtp.py",
            )
        };
        add("weights.drafter", s.drafter(), formula, source);
        terms
    }

    fn class_terms(&self, stage: usize) -> Vec<Term> {
        self.weights_by_class(stage)
            .into_iter()
            .map(|(class, bytes)| Term {
                name: format!("weights.{}", class.as_str()),
                plane: Plane::Gpu,
                quantity: Quantity::within(bytes, WEIGHTS_BAND),
                formula: format!("sum of the tensors of pipeline stage {stage}, per rank"),
                source: "tensor shapes from config.json, sharded as in vLLM model_executor".into(),
            })
            .collect()
    }

    fn resolved(&self, model: &Model) -> Resolved {
        let s = &self.settled;
        Resolved {
            architecture: model.architecture.clone(),
            dtype: s.dtype.as_str().into(),
            quantization: self.quantization.map(|q| q.as_str().into()),
            kv_cache_dtype: s.kv_dtype.clone(),
            attention_backend: s.backend.name.into(),
            max_num_seqs: s.max_num_seqs,
            max_num_batched_tokens: s.max_num_batched_tokens,
            max_in_flight_tokens: s.in_flight,
            prefix_caching: s.prefix_caching,
        }
    }

    fn kv_plan(&self, available: Quantity, low: &Blocks, expected: &Blocks, high: &Blocks) -> KvPlan {
        let pool = self.pool();
        let need = crate::engines::vllm::kv::Need { len: expected.len, ..pool.need };
        let hundredths = |b: &Blocks| (b.concurrency * 100.0).round_ties_even() as u64;
        let groups = self.groups.groups.iter().filter_map(|g| {
            let first = g.first()?;
            Some(KvGroup {
                layers: g.members.len() as u64,
                kind: first.kind.as_str().into(),
                block_size: first.block,
                page_bytes: if g.is_mixed() { g.bytes(false, |_| true) } else { first.page },
                blocks_per_request: g.blocks_printed(&need),
                window: first.kind.window(),
            })
        });
        KvPlan {
            available_bytes: available,
            blocks: Quantity::band(low.blocks, expected.blocks, high.blocks),
            tokens: Quantity::band(low.tokens, expected.tokens, high.tokens),
            max_concurrency_hundredths: Quantity::band(
                hundredths(low),
                hundredths(expected),
                hundredths(high),
            ),
            bytes_per_block: self.bytes_per_block.iter().copied().max().unwrap_or(0),
            block_size: self.block_size,
            needed_bytes: pool.needed_bytes(),
            max_model_len: expected.len,
            padding_layers: self.groups.padding,
            groups: groups.collect(),
        }
    }

    fn unknown(&self, model: &Model, launch: &Launch, pool_given: bool) -> Vec<Unknown> {
        let mut out = Vec::new();
        if !launch.version_known {
            out.push(Unknown {
                what: format!("the engine version; assumed {} {}", launch.engine, launch.version),
                settle: "--engine-version, or an image with a version tag".into(),
            });
        }
        if !pool_given {
            out.push(Unknown {
                what: "the exact size of activations, CUDA graphs and memory outside PyTorch \
                (estimated)"
                    .into(),
                settle: "start once, then use --from-log with the log, or --available-kv with the printed \
                size"
                    .into(),
            });
        }
        out.extend(model.unread());
        if let Some(what) = &model.estimated {
            let (fewer, more) = spread(model);
            let tokens = if fewer > more {
                format!(
                    "KV tokens up to {fewer} times fewer or {more} times more, as its layers keep states, too"
                )
            } else {
                format!("KV cache within a factor of {more}")
            };
            let whole = (0..self.stages.len()).map(|s| self.kept_whole(model, launch, s)).max().unwrap_or(0);
            let more = match whole >> 20 {
                0 => String::new(),
                mib => format!(" or up to {mib} MiB more where ranks or layers do not share tables"),
            };
            out.push(Unknown {
                what: format!(
                    "{what}: estimated as a plain decoder of this config, weights within {:.0} %{more}, {tokens}",
                    GUESSED_WEIGHTS * 100.0
                ),
                settle: "start once, then use --from-log with the log".into(),
            });
        }
        if let (Some(e), true) = (&model.encoder, self.stages.iter().any(|s| s.guessed() > 0)) {
            out.push(Unknown {
                what: format!(
                    "the weights of the encoder {}: estimated within {:.0} %",
                    e.family,
                    GUESSED_ENCODER * 100.0
                ),
                settle: "--language-model-only, which omits it, or a start-up's log with --from-log".into(),
            });
        }
        out.extend(drafter::unknown(model, launch));
        if let Some(what) = older_layout(model, launch) {
            out.push(Unknown {
                what: what.into(),
                settle: "the start-up line `Model loading took`, or version 0.33.0 or later".into(),
            });
        }
        out
    }
}

/// Layouts that are known for 0.33.0 and were other ones in 0.20.2; when they changed between is not known.
fn older_layout(model: &Model, launch: &Launch) -> Option<&'static str> {
    if launch.version >= Version(0, 33, 0) {
        None
    } else if model.family == Family::GptOss && model.quantization.is_some() {
        Some(
            "extra memory of the FP4 expert kernels in this version: 0.20.2 used 5 to 7 % more than the \
            weights",
        )
    } else if model.layers.iter().any(|l| matches!(l.attention, Attention::Mla(m) if m.indexer.is_some())) {
        Some("sparse attention workspaces in this version: 0.20.2 used 0.2 to 0.3 % more than the weights")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ModelFiles;

    #[test]
    fn a_layout_that_is_not_known_is_said() {
        let config = include_str!("../../../../../testdata/plan/configs/openai--gpt-oss-20b_config.json");
        let model = Model::read(&ModelFiles { config, ..ModelFiles::default() }).unwrap();
        let at = |version| older_layout(&model, &Launch { version, ..Launch::default() });
        assert!(at(Version(0, 20, 2)).is_some_and(|w| w.contains("FP4")));
        assert_eq!(at(Version(0, 33, 0)), None);
    }
}
