//! What plan and rehearsal say of a move: the launch as it is beside the launch with the move, on the card that was measured.

use clap::Parser;
use dualplane_base::units::{Bytes, thousands};
use dualplane_plan::{Answer, Verdict, answer};
use dualplane_rehearse::Outcome;
use dualplane_tune::Proposal;

use super::super::plan::Question;
use super::super::{Failure, rehearse};
use crate::args::{Args, Command, TuneArgs};

/// Where a server was measured, and what came.
#[derive(Debug, Clone, Default)]
pub(super) struct Place {
    /// The card, as its driver calls it or as `--gpu` does.
    pub(super) gpu: Option<String>,
    /// Requests a second.
    pub(super) rate: Option<f64>,
}

/// Adds what is computed of a move; where that cannot be, why.
pub(super) fn add(args: &TuneArgs, place: &Place, before: &[String], p: &mut Proposal) {
    let Some(after) = &p.command else { return };
    let Some(gpu) = &place.gpu else {
        p.computed = vec!["not planned: no card is known; --gpu names it".to_owned()];
        return;
    };
    p.computed = match planned(gpu, before, after) {
        Ok(line) => vec![line],
        Err(e) => vec![format!("not planned: {e}")],
    };
    p.computed.extend(match requests(args) {
        Some(load) => match rehearsed(gpu, &load, place.rate, before, after) {
            Ok(line) => Some(line),
            Err(e) => Some(format!("not rehearsed: {e}")),
        },
        None => None,
    });
}

/// Which requests a rehearsal plays.
fn requests(args: &TuneArgs) -> Option<[String; 2]> {
    let shape = args.shape.as_ref().map(|p| ["--shape".to_owned(), p.display().to_string()]);
    shape.or_else(|| args.traffic.clone().map(|name| ["--traffic".to_owned(), name]))
}

/// The arguments of another command, as its users would type them.
fn command(words: &[&str], more: &[String], line: &[String]) -> Result<Command, Failure> {
    let fixed = ["dualplane"].iter().chain(words).map(|w| (*w).to_owned());
    let all = fixed.chain(more.iter().cloned()).chain(["--".to_owned()]).chain(line.iter().cloned());
    let args = Args::try_parse_from(all).map_err(|e| Failure::Flag {
        flag: "COMMAND",
        why: e.to_string().lines().next().unwrap_or_default().to_owned(),
    })?;
    Ok(args.command)
}

fn plan(gpu: &str, line: &[String]) -> Result<Answer, Failure> {
    let Command::Plan(args) = command(&["plan", "--gpu", gpu], &[], line)? else { return Err(unclear()) };
    let open = Question::of_model(&args.launch, None)?;
    let placed = open.placed.clone().ok_or_else(unclear)?;
    Ok(answer(&open.named, &open.line, &placed, None)?)
}

fn unclear() -> Failure {
    Failure::Flag { flag: "COMMAND", why: "it starts no model that a plan knows".to_owned() }
}

fn planned(gpu: &str, before: &[String], after: &[String]) -> Result<String, Failure> {
    let (was, now) = (plan(gpu, before)?, plan(gpu, after)?);
    if now.verdict() == Verdict::Refused {
        return Ok(format!("plan: it does not start: {}", now.message()));
    }
    let of = |a: &Answer| {
        let plan = a.plan.as_ref().map_err(|e| Failure::from(e.clone()))?;
        let gpu = &plan.gpu;
        let beside = [gpu.activation_bytes, gpu.cuda_graph_bytes, gpu.non_torch_bytes];
        let beside: u64 = beside.iter().map(|q| q.expected).sum();
        Ok::<_, Failure>((gpu.kv_cache.tokens.expected, beside, a.host.plan.steady_bytes.expected))
    };
    let ((kv_was, vram_was, host_was), (kv, vram, host)) = (of(&was)?, of(&now)?);
    Ok(format!(
        "plan: a KV cache of {} tokens instead of {}; beside it and the weights {} of VRAM instead of {}; host RAM of {} while \
         serving instead of {}{}",
        thousands(kv),
        thousands(kv_was),
        Bytes(vram),
        Bytes(vram_was),
        Bytes(host),
        Bytes(host_was),
        if now.verdict() == Verdict::Uncertain { "; whether it starts is uncertain" } else { "" }
    ))
}

fn rehearsed(
    gpu: &str,
    load: &[String],
    rate: Option<f64>,
    before: &[String],
    after: &[String],
) -> Result<String, Failure> {
    let rate = rate.map(|r| ["--rate".to_owned(), r.to_string()]);
    let more: Vec<String> = load.iter().cloned().chain(rate.into_iter().flatten()).collect();
    let play = |line: &[String]| -> Result<Outcome, Failure> {
        let words = ["rehearse", "--gpu", gpu, "--no-search", "--seconds", "300"];
        let Command::Rehearse(args) = command(&words, &more, line)? else { return Err(unclear()) };
        Ok(rehearse::report(&args)?.launch.outcome)
    };
    let (was, now) = (play(before)?, play(after)?);
    let of = |o: &Outcome| {
        format!(
            "the KV cache at most {:.0} % full, {} preempted, {} waiting at most, first token p99 {:.2} s",
            o.peak_usage() * 100.0,
            o.preemptions,
            o.longest_queue,
            o.first_token.p99
        )
    };
    Ok(format!("rehearsed: {}; as launched {}", of(&now), of(&was)))
}
