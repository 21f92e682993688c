//! Lists of what is known, and the table of cards for a launch: text and JSON.

use serde::Serialize;

use super::{times, word};
use crate::card::Known;
use crate::catalogue::CatalogueEntry;
use crate::choose::{Choice, Choices};
use crate::report::page::Page;
use crate::version::EngineKind;
use dualplane_base::gpu::Gpu as Card;
use dualplane_base::style::Style;
use dualplane_base::units::{Bytes, thousands};

/// Schema id of the table of cards.
pub const CARDS: &str = "dualplane.cards/v1";

/// Models by id.
#[must_use]
pub fn models_text(found: &[(&str, &CatalogueEntry)], style: Style) -> String {
    let mut w = Page::new(style);
    for (id, e) in found {
        let source = if *id == e.id { e.source.to_owned() } else { format!("as {}", e.id) };
        let dim = w.style.dim(&source);
        w.line(&format!("{id:<56} {dim}"));
    }
    w.line(&format!("{} models; -- vllm serve ID, --model ID, or a config.json of your own", found.len()));
    w.finish()
}

/// Cards and machines.
#[must_use]
pub fn cards_text(cards: &[&Card], machines: &[Known], style: Style) -> String {
    let mut w = Page::new(style);
    for c in cards {
        let size = match (c.torch_total_gib, c.total_mib) {
            (Some(gib), _) => format!("{gib:>7.2} GiB in CUDA"),
            (None, Some(mib)) => format!("{:>7.2} GiB by the driver", mib as f64 / 1024.0),
            (None, None) => "give --gpu-memory".to_owned(),
        };
        let shared = if c.unified_memory { ", shared with the host" } else { "" };
        let capability = c.compute_capability.as_deref().unwrap_or("?");
        w.line(&format!("{:<21} {capability:<8} {size}{shared}", c.id));
        if !c.mig.is_empty() {
            let slices: Vec<&str> = c.mig.iter().map(|m| m.profile.as_str()).collect();
            w.wrapped(&format!("MIG {}", slices.join(" ")), "    ", "    ");
        }
        if style.verbose {
            w.wrapped(&format!("from {}", c.source), "    ", "    ");
        }
    }
    let mut sources: Vec<&str> = machines.iter().map(|(.., source)| *source).collect();
    sources.dedup();
    if !sources.is_empty() && !cards.is_empty() {
        w.line("");
    }
    for source in sources {
        let of = machines.iter().filter(|(.., s)| *s == source);
        let all: Vec<String> = of.map(|(name, card, n, _)| format!("{name} = {n} x {card}")).collect();
        w.wrapped(&format!("Machines of {source}: {}", all.join(", ")), "", "  ");
    }
    w.finish()
}

/// Engines with the releases whose arithmetic was read, those of which a pattern is a part of name or command.
#[must_use]
pub fn engines_text(pattern: &str, style: Style) -> Option<String> {
    let mut w = Page::new(style);
    let want = pattern.trim().to_ascii_lowercase();
    let mut none = true;
    for (engine, oldest, command) in [
        (EngineKind::Vllm, "0.6.0", "vllm serve MODEL"),
        (EngineKind::Sglang, "0.4.3", "python -m sglang.launch_server --model-path MODEL"),
        (EngineKind::TensorrtLlm, "1.0", "trtllm-serve MODEL"),
        (EngineKind::Tgi, "2.0", "text-generation-launcher --model-id MODEL"),
        (EngineKind::LlamaCpp, "early 2026", "llama-server -m FILE.gguf, ollama serve"),
    ] {
        let is = |t: &str| t.to_ascii_lowercase().contains(&want);
        if !is(&engine.to_string()) && !is(command) {
            continue;
        }
        none = false;
        let releases = match engine {
            EngineKind::Tgi => format!("{oldest} to 3.3"),
            EngineKind::LlamaCpp => oldest.to_owned(),
            e => format!("{oldest} to {}", e.newest()),
        };
        w.line(&format!("{:<14} {releases:<18} {command}", engine.to_string()));
    }
    (!none).then(|| w.finish())
}

/// The cards that hold a launch.
#[must_use]
pub fn choices_text(model: &str, engine: &str, c: &Choices, style: Style) -> String {
    let mut w = Page::new(style);
    let head = format!("Cards that hold {model} with {engine}; --gpu NAME plans one");
    w.wrapped(&dualplane_base::text::printable(&head), "", "  ");
    let priced = c.hold.iter().any(|r| r.price.is_some());
    w.line(&format!(
        "  {:<24} {:>12} {:>14} {:>12} {:>12}{}",
        "",
        "weights each",
        "KV tokens",
        "at once",
        "VRAM in all",
        if priced { "   an hour" } else { "" }
    ));
    let most = w.limit(30);
    for r in c.hold.iter().take(most) {
        let price = r.price.map_or_else(String::new, |p| format!(" {p:>9.2}"));
        let unsure = if r.verdict == crate::Verdict::Fits { "" } else { "  uncertain" };
        w.line(&format!(
            "  {:<24} {:>12} {:>14} {:>12} {:>12}{price}{unsure}",
            format!("{} x {}", r.count, r.gpu),
            Bytes(r.weights_bytes).to_string(),
            thousands(r.tokens.expected),
            times(r.concurrency_hundredths.expected),
            Bytes(r.rented_bytes).to_string()
        ));
    }
    if c.hold.len() > most {
        w.line(&format!("  {} more with -v", c.hold.len() - most));
    }
    if !c.never.is_empty() {
        w.wrapped(&format!("not with any number of one machine: {}", c.never.join(", ")), "  ", "    ");
    }
    w.finish()
}

#[derive(Serialize)]
struct CardsV1<'a> {
    schema: &'static str,
    model: &'a str,
    engine: &'a str,
    verdict: &'static str,
    hold: &'a [Choice],
    never: &'a [String],
}

/// The same as JSON.
///
/// # Errors
/// Not on any table: it holds nothing that JSON cannot.
pub fn choices_json(model: &str, engine: &str, c: &Choices) -> Result<String, serde_json::Error> {
    let best = c.hold.first().map_or(crate::Verdict::Refused, |r| r.verdict);
    dualplane_base::json::pretty(&CardsV1 {
        schema: CARDS,
        model,
        engine,
        verdict: word(best),
        hold: &c.hold,
        never: &c.never,
    })
}
