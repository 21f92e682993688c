//! The GPU plane of llama.cpp: tensors by layer, a KV cache that is allocated whole, and one compute buffer a card.

mod as_model;
mod compute;
mod facts;
pub mod ggml;
pub mod gguf;
mod kv;
mod names;
mod place;
mod recipe;
mod show;

pub use gguf::Gguf;
pub use names::{name_and_quant, names_gguf};

use super::super::gpu::Gpu;
use super::super::launch::MaxModelLen;
use super::super::launch::{CommandLine, Split};
use super::super::model::Model;
use super::super::outcome::{GpuPlan, KvGroup, KvPlan, Plan, PlanError, Resolved, TensorClass, Verdict};
use super::super::quantity::{Plane, Quantity, Term, Unknown};
use facts::Facts;
use kv::{Cells, Types};
use place::{Placement, Weights};

/// `--fit-target`: what fitting leaves free on each card (common/arg.cpp).
pub(super) const FIT_TARGET: u64 = 1 << 30;
/// `--fit-ctx`: the context that fitting does not go below.
const FIT_CONTEXT: u64 = 4096;

/// Terms of the host plane begin with this; the host plane takes them over.
pub(crate) const HOST: &str = "llama_cpp.";

const LOAD: &str = "llama.cpp src/llama-model.cpp load_tensors; ggml/src/ggml-cuda/ggml-cuda.cu for padding";
const CACHE: &str = "llama.cpp src/llama-kv-cache.cpp, src/llama-kv-cache-iswa.cpp";

/// Everything of a launch that was settled, and what it takes.
struct Layout {
    cells: Cells,
    place: Placement,
    weights: Weights,
    cards: Vec<Card>,
}

/// What one card holds.
#[derive(Default)]
struct Card {
    weights: Quantity,
    cache: u64,
    state: u64,
    compute: compute::Buffer,
}

impl Card {
    fn total(&self) -> Quantity {
        self.weights
            + Quantity::exact(self.cache.saturating_add(self.state))
            + self.compute.quantity
            + compute::context()
    }
}

/// Bytes that one device holds, as the log lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Buffers {
    /// Tensors of the model.
    pub weights: u64,
    /// KV cache and states.
    pub cache: u64,
    /// Compute buffer.
    pub compute: Quantity,
}

/// Buffers of each card, and of RAM.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllBuffers {
    /// One for each card.
    pub cards: Vec<Buffers>,
    /// Without a compute buffer.
    pub ram: Buffers,
}

/// What each device of a launch holds.
///
/// # Errors
/// As [`plan`].
pub fn buffers(
    model: &Model,
    file: Option<&Gguf>,
    line: &CommandLine,
    gpu: &Gpu,
) -> Result<AllBuffers, PlanError> {
    let (facts, types, layout, _) = settled(model, file, line, gpu)?;
    let of = |c: &Card| Buffers {
        weights: c.weights.expected,
        cache: c.cache.saturating_add(c.state),
        compute: c.compute.quantity,
    };
    Ok(AllBuffers {
        cards: layout.cards.iter().map(of).collect(),
        ram: Buffers {
            weights: layout.weights.ram,
            cache: show::cache_in_ram(&facts, types, line, &layout),
            compute: Quantity::default(),
        },
    })
}

/// Plans a launch of llama.cpp.
///
/// # Errors
/// As [`super::super::plan`].
pub fn plan(model: &Model, file: Option<&Gguf>, line: &CommandLine, gpu: &Gpu) -> Result<Plan, PlanError> {
    let (facts, types, layout, unknown) = settled(model, file, line, gpu)?;
    Ok(assemble(&facts, types, line, gpu, &layout, unknown))
}

type Settled = (Facts, Types, Layout, Vec<Unknown>);

fn settled(model: &Model, file: Option<&Gguf>, line: &CommandLine, gpu: &Gpu) -> Result<Settled, PlanError> {
    let ask = &line.llama_cpp;
    let facts = match (file, &line.launch.quantization) {
        (Some(g), _) => Facts::of_file(g)?,
        (None, Some(quant)) => Facts::of_config(model, quant)?,
        (None, None) => {
            return Err(PlanError::missing(
                "how llama.cpp's weights are quantised is not said",
                "give the path of the .gguf file, or --quant Q4_K_M",
            ));
        }
    };
    if matches!(ask.split, Split::Row | Split::Tensor) {
        return Err(PlanError::unsupported(
            "--split-mode row and tensor: only splitting by layer is supported",
        ));
    }
    let types = Types::of(ask)?;
    let cards = if ask.split == Split::None { 1 } else { line.launch.pp.clamp(1, 64) as usize };
    let (layout, unknown) = settle(&facts, types, line, gpu, cards)?;
    Ok((facts, types, layout, unknown))
}

fn lay(facts: &Facts, types: Types, line: &CommandLine, cards: usize, context: u64, layers: u64) -> Layout {
    let ask = &line.llama_cpp;
    let cells = Cells::new(facts, ask, line.launch.max_num_seqs, context);
    let place = Placement::new(facts.layers.len() as u64, layers, cards, ask);
    let weights = place::weights(facts, &place, cards);
    let mut out: Vec<Card> = weights
        .cards
        .iter()
        .enumerate()
        .map(|(at, classes)| {
            let on_card = (0..facts.layers.len() as u64).any(|il| place.card(il) == Some(at));
            let sum: u64 = classes.iter().fold(0, |a, (_, b)| a.saturating_add(*b));
            let off = |share: f64| (sum as f64 * share) as u64;
            Card {
                weights: Quantity::band(
                    sum.saturating_sub(off(facts.off.0)),
                    sum,
                    sum.saturating_add(off(facts.off.1)),
                ),
                compute: compute::buffer(facts, ask, &cells, cards, weights.largest_in_ram, on_card),
                ..Card::default()
            }
        })
        .collect();
    for (il, layer) in facts.layers.iter().enumerate() {
        if let Some(card) = place.card(il as u64).filter(|_| !ask.kv_in_ram).and_then(|c| out.get_mut(c)) {
            card.cache = card.cache.saturating_add(types.bytes(layer, &cells));
            card.state = card.state.saturating_add(kv::state(layer, &cells));
        }
    }
    Layout { cells, place, weights, cards: out }
}

/// Settles what the flags leave open: everything on the cards and the model's own context, lowered until it fits.
///
/// Source: common/fit.cpp: only what is not given is lowered, the context before the layers.
fn settle(
    facts: &Facts,
    types: Types,
    line: &CommandLine,
    gpu: &Gpu,
    cards: usize,
) -> Result<(Layout, Vec<Unknown>), PlanError> {
    let ask = &line.llama_cpp;
    let all = facts.layers.len() as u64 + 1;
    let given = match line.launch.max_model_len {
        MaxModelLen::Tokens(n) => Some(n),
        _ => None,
    };
    let own = match (ask.ollama, facts.context) {
        (true, own) => ollama_context(gpu, cards).min(if own > 0 { own } else { u64::MAX }),
        (false, 0) => FIT_CONTEXT,
        (false, own) => own,
    };
    let context = given.unwrap_or(own);
    let layers = ask.gpu_layers.unwrap_or(all);
    let lay = |context, layers| lay(facts, types, line, cards, context, layers);
    let mut layout = lay(context, layers);
    let mut unknown = facts.unknown.clone();
    let target = ask.fit_target.unwrap_or(FIT_TARGET);
    let room =
        |l: &Layout| l.cards.iter().all(|c| c.total().expected.saturating_add(target) <= gpu.total_bytes);
    if ask.no_fit || room(&layout) || (given.is_some() && ask.gpu_layers.is_some()) {
        return Ok((layout, unknown));
    }
    let mut context = context;
    if given.is_none() {
        let floor = ask.fit_context.unwrap_or(FIT_CONTEXT).min(context);
        context = largest(floor, context, 256, |n| room(&lay(n, layers)));
        layout = lay(context, layers);
    }
    let mut on = layers;
    if ask.gpu_layers.is_none() && !room(&layout) {
        on = largest(0, all, 1, |n| room(&lay(context, n)));
        layout = lay(context, on);
    }
    unknown.insert(
        0,
        Unknown {
            what: format!(
                "the choice of --fit: with expected sizes, {on} of {all} layers on GPUs and a context of \
                {context} tokens, leaving {} MiB free; older builds have no --fit and fail",
                target >> 20
            ),
            settle: "set --n-gpu-layers and --ctx-size; --fit does not lower explicit values".into(),
        },
    );
    Ok((layout, unknown))
}

/// The context that Ollama takes by the memory of all cards, where none is set (server/routes.go).
const fn ollama_context(gpu: &Gpu, cards: usize) -> u64 {
    match gpu.total_bytes.saturating_mul(cards as u64) >> 30 {
        0..23 => 4096,
        23..47 => 32_768,
        _ => 262_144,
    }
}

/// The largest of `low..=high` in steps that is good, where smaller ones are better; `low` where none is.
fn largest(low: u64, high: u64, step: u64, good: impl Fn(u64) -> bool) -> u64 {
    let (mut yes, mut no) = (0, high.saturating_sub(low) / step + 1);
    while no - yes > 1 {
        let mid = yes + (no - yes) / 2;
        if good(low + mid * step) {
            yes = mid;
        } else {
            no = mid;
        }
    }
    low + yes * step
}

fn assemble(
    facts: &Facts,
    types: Types,
    line: &CommandLine,
    gpu: &Gpu,
    l: &Layout,
    mut unknown: Vec<Unknown>,
) -> Plan {
    let empty = Card::default();
    let (at, card) = l
        .cards
        .iter()
        .enumerate()
        .max_by_key(|(i, c)| (c.total().expected, usize::MAX - i))
        .unwrap_or((0, &empty));
    let total = card.total();
    let verdict = if total.high <= gpu.total_bytes {
        Verdict::Fits
    } else if total.low > gpu.total_bytes {
        Verdict::Refused
    } else {
        Verdict::Uncertain
    };
    let layers_in_ram = (facts.layers.len() as u64 + 1).saturating_sub(l.place.offloaded());
    if layers_in_ram > 0 && line.host.mapped && !line.host.locked {
        unknown.push(Unknown {
            what: format!(
                "the speed of {layers_in_ram} layers in RAM: {} of the file are memory-mapped \
                (reclaimable) and read for every token",
                dualplane_base::units::Bytes(l.weights.ram)
            ),
            settle: "keep limits.memory above the sum of the steady memory and these bytes".into(),
        });
    }
    unknown.push(Unknown {
        what: "the exact size of the CUDA context and the compute buffer (estimated)".into(),
        settle: "start once: the log prints every buffer, nvidia-smi shows the rest".into(),
    });
    if !line.launch.version_known {
        unknown.push(Unknown {
            what: "the build; assumed the defaults of early 2026 (four slots sharing one cache, automatic \
            flash attention, the output as the last layer)"
                .into(),
            settle: "set --parallel, --flash-attn and --n-gpu-layers".into(),
        });
    }
    let classes = l.weights.cards.get(at).cloned().unwrap_or_default();
    let terms = terms(facts, types, line, l, at, card, &classes);
    let cache = card.cache.saturating_add(card.state);
    let kv_plan = kv_plan(facts, types, l, cache);
    let q = &line.launch.quantization;
    Plan {
        resolved: Resolved {
            architecture: facts.architecture.clone(),
            dtype: q.clone().unwrap_or_else(|| "from the file".into()),
            quantization: q.clone(),
            kv_cache_dtype: format!("{}/{}", types.k.name, types.v.name),
            attention_backend: if line.llama_cpp.flash_attention == Some(false) {
                "no flash attention".into()
            } else {
                "flash attention".into()
            },
            max_num_seqs: l.cells.slots,
            max_num_batched_tokens: l.cells.ubatch,
            max_in_flight_tokens: l.cells.ubatch,
            prefix_caching: true,
        },
        gpu: GpuPlan {
            total_bytes: gpu.total_bytes,
            requested_bytes: total.expected.min(gpu.total_bytes),
            weights_bytes: card.weights,
            weights_by_class: classes,
            activation_bytes: card.compute.quantity,
            cuda_graph_bytes: Quantity::default(),
            non_torch_bytes: compute::context(),
            kv_cache: kv_plan,
            tightest_stage: at as u64,
        },
        host: None,
        verdict,
        refusal: show::refusal(gpu, card, at, total, verdict),
        printed: Some(show::printed(facts, types, line, l)),
        estimated: false,
        terms,
        unknown,
    }
}

fn kv_plan(facts: &Facts, types: Types, l: &Layout, cache: u64) -> KvPlan {
    let c = &l.cells;
    let group = |kind: &str, cells: u64, keep: &dyn Fn(&facts::Cached) -> bool| {
        let of: Vec<_> = facts.layers.iter().filter(|l| keep(l)).collect();
        let page = of.first().map_or(0, |l| types.k.row(l.k).saturating_add(types.v.row(l.v)));
        KvGroup {
            layers: of.len() as u64,
            kind: kind.into(),
            block_size: 1,
            page_bytes: page,
            blocks_per_request: cells,
            window: None,
        }
    };
    let mut groups = vec![
        group("full", c.full, &|l| l.k > 0 && !l.window),
        group("sliding", c.window, &|l| l.k > 0 && l.window),
        group("state", 1, &|l| l.state > 0),
    ];
    groups.retain(|g| g.layers > 0);
    let tokens = c.tokens();
    let all: u64 = facts.layers.iter().fold(0, |a, l| a.saturating_add(types.bytes(l, c)));
    KvPlan {
        available_bytes: Quantity::exact(cache),
        blocks: Quantity::exact(tokens),
        tokens: Quantity::exact(tokens),
        max_concurrency_hundredths: Quantity::exact(tokens.saturating_mul(100) / c.slot_context.max(1)),
        bytes_per_block: all / tokens.max(1),
        block_size: 1,
        needed_bytes: all / c.streams.max(1),
        max_model_len: c.slot_context,
        padding_layers: 0,
        groups,
    }
}

fn terms(
    facts: &Facts,
    types: Types,
    line: &CommandLine,
    l: &Layout,
    at: usize,
    card: &Card,
    classes: &[(TensorClass, u64)],
) -> Vec<Term> {
    let gpu = |name: &str, quantity: Quantity, formula: String, source: &str| Term {
        name: name.into(),
        plane: Plane::Gpu,
        quantity,
        formula,
        source: source.into(),
    };
    let c = &l.cells;
    let of = if facts.off == (0.0, 0.0) { "from the file" } else { "from the recipe" };
    let mut out: Vec<Term> = classes
        .iter()
        .map(|(class, bytes)| {
            let off = |share: f64| (*bytes as f64 * share) as u64;
            let band = Quantity::band(
                bytes.saturating_sub(off(facts.off.0)),
                *bytes,
                bytes.saturating_add(off(facts.off.1)),
            );
            let formula = format!(
                "tensors {of} on GPU {at}, {} of {} layers on GPUs",
                l.place.offloaded(),
                facts.layers.len() + 1
            );
            gpu(&format!("weights.{}", class.as_str()), band, formula, LOAD)
        })
        .collect();
    let layers = facts.layers.iter().enumerate();
    let on = layers.filter(|(il, _)| l.place.card(*il as u64) == Some(at)).count();
    out.push(gpu(
        "kv_cache",
        Quantity::exact(card.cache),
        format!(
            "{on} layers × {} cells (windows {}) × {} streams × (row of {} + row of {})",
            c.full, c.window, c.streams, types.k.name, types.v.name
        ),
        CACHE,
    ));
    if card.state > 0 {
        let formula = format!("states of 32-bit numbers for {} slots", c.slots);
        out.push(gpu(
            "kv_cache.state",
            Quantity::exact(card.state),
            formula,
            "llama.cpp src/llama-memory-recurrent.cpp",
        ));
    }
    out.push(gpu("compute_buffer", card.compute.quantity, card.compute.formula.clone(), compute::SOURCE));
    out.push(gpu(
        "cuda_context",
        compute::context(),
        "CUDA context, cuBLAS and temporary pools".into(),
        "estimate; not a llama.cpp buffer, so its log does not print it",
    ));
    out.extend(show::host_terms(facts, types, line, l));
    out
}

#[cfg(test)]
mod tests;
