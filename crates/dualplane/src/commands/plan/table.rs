//! Without a GPU: the cards that hold the launch, and how many of each.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use dualplane_core::knowledge::KnowledgeError;
use dualplane_plan::card::{self, Placed, machine};
use dualplane_plan::choose::choices;
use dualplane_plan::report::plan as report;

use super::{Failure, Question};
use crate::args::{PlanArgs, PlanFormat};
use crate::exit::{self, Code};
use crate::output;

/// A price list has one line a card.
const MAX_FILE: u64 = 1 << 20;

pub(super) fn run(args: &PlanArgs, q: &Question<Option<Placed>>) -> Result<Code, Failure> {
    if args.emit.is_some() || args.free_gpu_memory.is_some() || args.available_kv.is_some() {
        return Err(Failure::Flag {
            flag: "--gpu",
            why: "name the GPU, for example --gpu H100-80GB or --gpu-memory 79.18GiB".into(),
        });
    }
    let prices = args.prices.as_deref().map(read).transpose()?.unwrap_or_default();
    let cards = card::embedded().map_err(KnowledgeError::from)?;
    let found = choices(&q.named, &q.line, &cards, &|id| prices.get(id).copied())?;
    let l = &q.line.launch;
    let assumed = if l.version_known { "" } else { " (assumed)" };
    let engine = format!("{} {}{assumed}", l.engine, l.version);
    let text = match args.output {
        PlanFormat::Json => report::choices_json(&q.named.id, &engine, &found)?,
        _ => report::choices_text(&q.named.id, &engine, &found, output::style(args.color, args.verbose)),
    };
    output::write(&text)?;
    let first = found.hold.first().map_or(dualplane_plan::Verdict::Refused, |c| c.verdict);
    Ok(if args.exit_code { exit::of_plan(first, None) } else { exit::OK })
}

/// `H100-80GB = 2.49`, by any name of the card.
fn read(path: &Path) -> Result<BTreeMap<String, f64>, Failure> {
    let failed = |source| Failure::Unreadable { path: path.to_owned(), source };
    let wrong = |why: String| Failure::Flag { flag: "--prices", why: format!("{}: {why}", path.display()) };
    if fs::metadata(path).map_err(failed)?.len() > MAX_FILE {
        return Err(wrong("it is too large to be a list of prices".into()));
    }
    let text = fs::read_to_string(path).map_err(failed)?;
    let listed: BTreeMap<String, toml::Value> = toml::from_str(&text).map_err(|e| {
        let at =
            e.span().and_then(|s| text.get(..s.start)).map_or(1, |before| before.matches('\n').count() + 1);
        wrong(format!("line {at}: {}; write a card a line, such as `H100-80GB = 2.49`", e.message()))
    })?;
    let cards = card::embedded().map_err(KnowledgeError::from)?;
    let mut out = BTreeMap::new();
    for (name, price) in listed {
        let price = price.as_float().or_else(|| price.as_integer().map(|n| n as f64));
        let price = price.filter(|p| p.is_finite() && *p >= 0.0);
        let price = price.ok_or_else(|| wrong(format!("the price of {name} is not a number")))?;
        let m = machine(&name);
        let id = card::place_roughly(&cards, Some(&m.card), None).map_err(|e| wrong(e.to_string()))?.gpu.name;
        // A machine's price is that of all its cards.
        out.insert(id, price / m.count.unwrap_or(1) as f64);
    }
    Ok(out)
}
