//! Settings from a plan: what the engine makes of a launch, as far as its scheduler asks for it.

use dualplane_plan::cli::CommandLine;
use dualplane_plan::{EngineKind, KvGroup, Launch, Plan, PlanError, Version};

use crate::settings::{Cells, Group, Keeps, Policy, Settings};
use crate::slots;

/// Scheduling is asynchronous from here on where nobody says otherwise (vllm/config/vllm.py; read in 0.13.0 and 0.14.0).
const ASYNCHRONOUS: Version = Version(0, 14, 0);
/// A request is admitted only where its whole prompt fits (`scheduler_reserve_full_isl`; read in 0.18.0 and 0.19.1).
const WHOLE_PROMPT: Version = Version(0, 19, 1);
/// Blocks without a name are taken again first (block_pool.py `free_blocks`; read in 0.22.0 and 0.24.0).
const UNNAMED_FIRST: Version = Version(0, 24, 0);
/// The oldest version whose scheduler was read.
const OLDEST: Version = Version(0, 9, 0);

/// What is asked of the scheduler beside what changes memory.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Asked {
    /// `--scheduling-policy priority`.
    pub by_priority: bool,
    /// `--long-prefill-token-threshold`.
    pub long_prefill_token_threshold: u32,
    /// `--watermark`, a share of the blocks.
    pub watermark: f64,
    /// `--context-shift` of llama.cpp.
    pub context_shift: bool,
}

/// Settings, with what is not simulated.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// For the expected number of blocks.
    pub settings: Settings,
    /// The least and the most blocks that are plausible.
    pub blocks: (u32, u32),
    /// Bytes of one block over all layers, of one GPU.
    pub bytes_per_block: u64,
    /// Servers of the same kind that share the requests (`--data-parallel-size`).
    pub replicas: u32,
    /// What differs from the engine.
    pub notes: Vec<String>,
}

/// The settings of a launch.
///
/// # Errors
/// [`PlanError::Unsupported`] for engines and models whose scheduling is not simulated.
pub fn settings(plan: &Plan, line: &CommandLine, asked: &Asked) -> Result<Planned, PlanError> {
    let launch = &line.launch;
    if launch.engine == EngineKind::LlamaCpp {
        return llama_cpp(plan, line, asked);
    }
    if launch.engine != EngineKind::Vllm {
        return Err(PlanError::unsupported(format!(
            "a rehearsal of {0}: the schedulers of vLLM and llama.cpp are simulated, and {0} admits and takes back by other rules; `dualplane plan` \
             says how many tokens its cache holds, `dualplane measure` what a load does to it",
            launch.engine
        )));
    }
    if launch.is_first_engine() || launch.version < OLDEST {
        return Err(PlanError::unsupported(format!(
            "a rehearsal of vLLM {}; the scheduler of {OLDEST} and later is simulated",
            launch.version
        )));
    }
    let mut notes = Vec::new();
    let kv = &plan.gpu.kv_cache;
    let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    let groups: Vec<Group> =
        kv.groups.iter().map(|g| group(g, launch, &mut notes)).collect::<Result<_, _>>()?;
    if groups.is_empty() {
        return Err(PlanError::unsupported("a rehearsal of a model without a KV cache"));
    }
    if launch.speculative.is_some() {
        notes.push(
            "draft tokens are not simulated: requests hold a few slots less, and take more steps".into(),
        );
    }
    if launch.kv_offload_bytes > 0 {
        notes.push(
            "what a KV connector keeps in RAM is counted and not brought back: prompts that stand there would be computed sooner"
                .into(),
        );
    }
    if launch.pp > 1 {
        notes.push(format!("{} pipeline stages are rehearsed as one: steps do not overlap", launch.pp));
    }
    let r = &plan.resolved;
    let stateful = groups.iter().any(|g| matches!(g.keeps, Keeps::Fixed(_)));
    if stateful && r.prefix_caching {
        notes.push("no prefix is found in the cache, because states of this model are cached at points that are not simulated".into());
    }
    let blocks = small(kv.blocks.expected);
    let settings = Settings {
        blocks,
        groups,
        max_num_seqs: small(r.max_num_seqs),
        max_num_batched_tokens: small(r.max_num_batched_tokens),
        max_model_len: small(kv.max_model_len),
        long_prefill_token_threshold: asked.long_prefill_token_threshold,
        chunked_prefill: launch.chunked_prefill.unwrap_or(true),
        whole_prompt_must_fit: launch.version >= WHOLE_PROMPT,
        watermark_blocks: (asked.watermark.clamp(0.0, 1.0) * f64::from(blocks)) as u32,
        prefix_caching: r.prefix_caching,
        unnamed_first: launch.version >= UNNAMED_FIRST,
        policy: if asked.by_priority { Policy::Priority } else { Policy::Fcfs },
        asynchronous: launch.async_scheduling.unwrap_or(launch.version >= ASYNCHRONOUS && launch.pp == 1),
        cells: None,
    };
    Ok(Planned {
        settings,
        blocks: (small(kv.blocks.low), small(kv.blocks.high)),
        bytes_per_block: kv.bytes_per_block,
        replicas: small(launch.dp).max(1),
        notes,
    })
}

/// Of llama.cpp's server: slots, and the cells of one token that they share or have for themselves.
fn llama_cpp(plan: &Plan, line: &CommandLine, asked: &Asked) -> Result<Planned, PlanError> {
    let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    let (ask, kv) = (&line.llama_cpp, &plan.gpu.kv_cache);
    if ask.ollama {
        return Err(PlanError::unsupported(
            "a rehearsal of Ollama: it puts a scheduler of its own before the model; rehearse the llama-server that it could be, or \
             measure it with `dualplane measure`",
        ));
    }
    if !kv.groups.iter().any(|g| g.kind == "full") {
        return Err(PlanError::unsupported("a rehearsal of a model without a KV cache"));
    }
    let slots = small(plan.resolved.max_num_seqs);
    if slots > slots::MOST {
        return Err(PlanError::contradiction(
            "--parallel",
            format!("llama.cpp takes at most {} slots", slots::MOST),
        ));
    }
    let (tokens, context) = (small(kv.tokens.expected), small(kv.max_model_len));
    // As many streams as slots, or one: a cache for each slot is no larger than its context.
    let cells = if tokens > context || slots == 1 { Cells::Own } else { Cells::Shared };
    let mut notes = vec![
        "each prompt is computed whole: what --cache-prompt and --cache-ram spare is not simulated, and first tokens come sooner with \
         it; requests of llama.cpp never share cells"
            .to_owned(),
        "of what the queue holds in RAM its tokens are counted, four bytes each, and not the text of the requests".to_owned(),
    ];
    if asked.context_shift {
        notes.push(
            "--context-shift is not simulated: an answer is cut where its slot's context ends".to_owned(),
        );
    }
    let blocks = tokens.saturating_add(1);
    let settings = Settings {
        max_num_seqs: slots,
        // src/llama-context.cpp: no larger than the context; 2048 by common/common.h.
        max_num_batched_tokens: small(ask.batch.unwrap_or(2048)).min(tokens).max(1),
        max_model_len: context,
        prefix_caching: false,
        asynchronous: false,
        cells: Some(cells),
        ..Settings::plain(blocks, 1)
    };
    Ok(Planned {
        settings,
        blocks: (blocks, blocks),
        bytes_per_block: kv.bytes_per_block,
        replicas: 1,
        notes,
    })
}

fn group(g: &KvGroup, launch: &Launch, notes: &mut Vec<String>) -> Result<Group, PlanError> {
    let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    let window = || {
        g.window
            .map(small)
            .ok_or_else(|| PlanError::unsupported(format!("a rehearsal of layers of kind {}", g.kind)))
    };
    let (keeps, shards) = match g.kind.as_str() {
        "full" | "mla" => (Keeps::All, launch.dcp.saturating_mul(launch.pcp).max(1)),
        "sliding" | "sliding_mla" => (Keeps::Window(window()?), 1),
        "chunked" => (Keeps::Chunk(window()?), 1),
        "state" => (Keeps::Fixed(small(g.blocks_per_request)), 1),
        kind => return Err(PlanError::unsupported(format!("a rehearsal of layers of kind {kind}"))),
    };
    if shards > 1 {
        notes.push(format!("a block holds the tokens of {shards} ranks"));
    }
    Ok(Group { block_size: small(g.block_size.saturating_mul(shards)).max(1), keeps })
}
