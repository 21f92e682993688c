//! `dualplane rehearse`: requests against a plan, by the engine's scheduler, without an engine.

mod flags;
mod incident;
mod requests;

use dualplane_base::order::Order as _;
use std::fs;
use std::path::Path;

use dualplane_base::Class;
use dualplane_plan::card::Placed;
use dualplane_plan::{Answer, Calibration, EngineKind, Plan, PlanError, Verdict, answer as plan_of};
use dualplane_rehearse::answer::{Holds, PaceSource, Rehearsed, Variant, answer, limits, variants};
use dualplane_rehearse::pace;
use dualplane_rehearse::planned::{Planned, settings};
use dualplane_rehearse::report::{HostBuffers, Load, Pace, Rehearsal, json, svg, text};
use dualplane_rehearse::{Request, StepTime};

use self::incident::{Fix, Told};
use super::Failure;
use super::plan::{Question, memory};
use crate::args::{RehearseArgs, RehearseFormat};
use crate::exit::{self, Code};
use crate::output;

/// RAM of one token of a request that waits, in the API server and in the engine's process, in bytes (`docs/rehearse.md`).
const WAITING_TOKEN: u64 = 95;
/// The same of llama.cpp: a token of a task is a 32-bit number (`llama_token` in include/llama.h).
const LLAMA_TOKEN: u64 = 4;
/// A log that is read for its statistics.
const MAX_LOG: u64 = 1 << 28;

/// One launch with its plan.
struct Launched {
    answer: Answer,
    planned: Planned,
}

pub(crate) fn run(args: &RehearseArgs) -> Result<Code, Failure> {
    let report = report(args)?;
    let shown = match args.output {
        RehearseFormat::Text => text(&report, output::style(args.color, false)),
        RehearseFormat::Json => json(&report)?,
        RehearseFormat::Svg => svg(&report),
    };
    output::write(&shown)?;
    Ok(match (args.exit_code, report.launch.holds) {
        (false, _) | (true, Holds::Yes) => exit::OK,
        (true, Holds::Uncertain) => exit::of_plan(Verdict::Uncertain, None),
        (true, Holds::No) => exit::of_class(Class::KvCacheCapacity),
    })
}

/// All that is reported.
pub(super) fn report(args: &RehearseArgs) -> Result<Rehearsal, Failure> {
    let mut q = question(args)?;
    if let Some(size) = &args.available_kv {
        q.line.launch.available_kv_bytes = Some(memory("--available-kv", size)?);
    }
    let (_, known) = super::plan::residual(&q, &args.launch, Some(&q.placed))?;
    let told = args.incident.as_deref().map(incident::read).transpose()?;
    let mut fixes = told.as_ref().map(|t| t.fixes.clone()).unwrap_or_default();
    let mut missing = Vec::new();
    let (launched, began) = begin(&q, args, known.as_ref(), &mut fixes, &mut missing)?;
    let (drawn, source, seed) = requests::asked(args, told.as_ref(), launched.planned.replicas)?;
    let step = step_time(args, told.as_ref(), &launched.answer, &mut missing)?;
    missing.extend(told.into_iter().flat_map(|t| t.notes));
    let mut bar = output::Progress::new();
    let mut here = rehearsed(&launched.planned, &shown(began.as_ref()), &drawn, &step, &mut bar)?;
    here.advice = began.map(|f| f.title);
    let mut proposals = Vec::new();
    if !args.with.is_empty() && q.line.launch.engine != EngineKind::Vllm {
        let why = "only flags of vLLM are replaced; give the command itself with the other flags".into();
        return Err(Failure::Flag { flag: "--with", why });
    }
    for with in &args.with {
        let words = flags::split(with)?;
        let mut line = q.line.clone();
        flags::replace(&mut line, &words)?;
        let other = launch(&q.with(line), args, &words, known.as_ref())?;
        proposals.push(rehearsed(&other.planned, &words, &drawn, &step, &mut bar)?);
    }
    for fix in fixes {
        match fixed(&q, args, &fix, known.as_ref()) {
            Ok(other) => {
                let mut found = rehearsed(&other.planned, &shown(Some(&fix)), &drawn, &step, &mut bar)?;
                found.advice = Some(fix.title);
                proposals.push(found);
            }
            Err(e) => missing.push(format!("triage advises: {}; the plan of it: {e}", fix.title)),
        }
    }
    let limits = (!args.no_search).then(|| {
        bar.line("looks for the largest safe load");
        limits(
            &launched.planned.settings,
            &drawn,
            &step.time,
            here.outcome.preemptions > 0 || here.outcome.broken_off > 0,
        )
    });
    bar.clear();
    let a = &launched.answer;
    let l = &a.line.launch;
    let engine = match (l.version_known, l.engine) {
        (true, _) => format!("{} {}", l.engine, l.version),
        (false, EngineKind::Vllm) => format!("{} {} (assumed)", l.engine, l.version),
        // llama.cpp counts builds, and nothing of a rehearsal follows from one.
        (false, _) => l.engine.to_string(),
    };
    let host = host(a, &here);
    Ok(Rehearsal {
        model: a.model.clone(),
        engine,
        gpu: if a.gpus == 1 { a.gpu.name.clone() } else { format!("{} × {}", a.gpus, a.gpu.name) },
        replicas: launched.planned.replicas,
        load: Load::of(source, seed, &drawn),
        step_time: step,
        launch: here,
        proposals,
        limits,
        host,
        missing,
    })
}

/// The launch that is asked about.
fn question(args: &RehearseArgs) -> Result<Question, Failure> {
    let mut launch = args.launch.clone();
    // A launch that is given stands; else it is the incident's.
    if launch.command.is_empty() && launch.model().is_none() && launch.manifest.is_none() {
        launch.from_incident = args.incident.clone().or(launch.from_incident);
    }
    let open = Question::of_model(&launch, None)?;
    let Some(placed) = open.placed.clone() else {
        let why = "name the GPU, for example --gpu H100-80GB or --gpu-memory 79.18GiB".into();
        return Err(Failure::Flag { flag: "--gpu", why });
    };
    Ok(Question { line: open.line, named: open.named, placed, log: open.log })
}

/// Its plan, and what the scheduler is told; `with` are flags that replace some of the command.
fn launch(
    q: &Question<Placed>,
    args: &RehearseArgs,
    with: &[String],
    known: Option<&Calibration>,
) -> Result<Launched, Failure> {
    let given = q.line.launch.available_kv_bytes.is_some() || q.line.launch.kv_cache_memory_bytes.is_some();
    let answer = plan_of(&q.named, &q.line, &q.placed, known.filter(|_| !given))?;
    let plan: &Plan = answer.plan.as_ref().map_err(|e| Failure::from(e.clone()))?;
    if answer.verdict() == Verdict::Refused {
        let what = format!("a rehearsal of what does not start: {}", answer.message());
        return Err(PlanError::unsupported(what).into());
    }
    let words = [args.launch.command.as_slice(), with].concat();
    let planned = settings(plan, &q.line, &flags::asked(&words)?)?;
    Ok(Launched { answer, planned })
}

/// The launch as it died; where it does not even start, with the first fix that does.
fn begin(
    q: &Question,
    args: &RehearseArgs,
    known: Option<&Calibration>,
    fixes: &mut Vec<Fix>,
    missing: &mut Vec<String>,
) -> Result<(Launched, Option<Fix>), Failure> {
    let first = match launch(q, args, &[], known) {
        Ok(launched) => return Ok((launched, None)),
        Err(e) => e,
    };
    for (i, fix) in fixes.iter().enumerate() {
        if let Ok(launched) = fixed(q, args, fix, known) {
            missing.push(format!(
                "this is with {}, which triage advises: as it was launched, it is not rehearsed ({first})",
                shown(Some(fix)).join(" ")
            ));
            let fix = fixes.remove(i);
            return Ok((launched, Some(fix)));
        }
    }
    Err(first)
}

/// The launch with a fix.
fn fixed(
    q: &Question,
    args: &RehearseArgs,
    fix: &Fix,
    known: Option<&Calibration>,
) -> Result<Launched, Failure> {
    let mut line = q.line.clone();
    flags::take_out(&mut line, &fix.without)?;
    flags::replace(&mut line, &fix.set)?;
    launch(&q.with(line), args, &fix.set, known)
}

/// Flags as they are shown: those that are set, then those that are taken out.
fn shown(fix: Option<&Fix>) -> Vec<String> {
    let Some(fix) = fix else { return Vec::new() };
    let without = fix.without.iter().flat_map(|f| ["without".to_owned(), f.clone()]);
    fix.set.iter().cloned().chain(without).collect()
}

fn rehearsed(
    planned: &Planned,
    flags: &[String],
    requests: &[Request],
    step: &Pace,
    bar: &mut output::Progress,
) -> Result<Rehearsed, Failure> {
    let all = variants(planned, &step.time, step.source);
    let parts = all.len();
    bar.line(&format!("rehearses {} requests, {parts} times", requests.len()));
    // None depends on another, and each is bound to one processor.
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(parts);
    let played = std::thread::scope(|scope| {
        let mut lots: Vec<Vec<(usize, Variant)>> = vec![Vec::new(); threads];
        for (i, v) in all.into_iter().enumerate() {
            if let Some(lot) = lots.get_mut(i % threads) {
                lot.push((i, v));
            }
        }
        let play = |lot: Vec<(usize, Variant)>| {
            lot.into_iter().map(|(i, v)| (i, v.play(requests), v)).collect::<Vec<_>>()
        };
        let running: Vec<_> = lots.into_iter().map(|lot| scope.spawn(move || play(lot))).collect();
        running.into_iter().filter_map(|t| t.join().ok()).flatten().collect::<Vec<_>>()
    });
    let mut played = played;
    played.order_by_key(|(i, ..)| *i);
    let whole = played.len() == parts;
    let played = played.into_iter().map(|(_, o, v)| (v, o)).collect();
    answer(planned, flags, played)
        .filter(|_| whole)
        .ok_or_else(|| Failure::from(PlanError::unsupported("a rehearsal that broke off; please report it")))
}

/// The time of a step: as given, as a server printed, or by the card.
fn step_time(
    args: &RehearseArgs,
    told: Option<&Told>,
    a: &Answer,
    missing: &mut Vec<String>,
) -> Result<Pace, Failure> {
    if let Some(text) = &args.step_time {
        return Ok(Pace { source: PaceSource::Given, time: flags::step_time(text)? });
    }
    if let Some(path) = &args.step_time_from {
        return Ok(Pace { source: PaceSource::Measured, time: from_log(path)? });
    }
    if let Some(time) = told.and_then(Told::step_time) {
        return Ok(Pace { source: PaceSource::Measured, time });
    }
    let better = match a.line.launch.engine {
        EngineKind::Vllm => {
            "--step-time-from LOG takes it from the statistics of a server that runs this model (vLLM prints them each ten seconds)"
        }
        _ => "--step-time gives it",
    };
    missing.push(format!("the time of a step is estimated; {better}"));
    let plan: &Plan = a.plan.as_ref().map_err(|e| Failure::from(e.clone()))?;
    let kv = &plan.gpu.kv_cache;
    let per_token = kv.bytes_per_block / kv.block_size.max(1);
    let card = pace::card(&a.gpu.name).ok_or_else(|| Failure::Flag {
        flag: "--step-time",
        why: format!(
            "how long a step takes on {} is not known; give it, or --step-time-from with the log of a server that runs",
            a.gpu.name
        ),
    })?;
    let time = pace::estimate(&card, plan.gpu.weights_bytes.expected, per_token);
    Ok(Pace { source: PaceSource::Estimated, time })
}

fn from_log(path: &Path) -> Result<StepTime, Failure> {
    let failed = |source| Failure::Unreadable { path: path.to_owned(), source };
    if fs::metadata(path).map_err(failed)?.len() > MAX_LOG {
        let why = format!("{}: it is too large; give the part with the load", path.display());
        return Err(Failure::Flag { flag: "--step-time-from", why });
    }
    let bytes = fs::read(path).map_err(failed)?;
    let lines = pace::seen(&String::from_utf8_lossy(&bytes));
    pace::measured(&lines).ok_or_else(|| Failure::Flag {
        flag: "--step-time-from",
        why: format!(
            "{}: {} lines of statistics are too few under load; at least 5 in a row with running requests are needed \
             (`Avg generation throughput: …, Running: …`)",
            path.display(),
            lines.len()
        ),
    })
}

fn host(a: &Answer, x: &Rehearsed) -> HostBuffers {
    let offload = match a.line.launch.engine {
        EngineKind::Vllm => {
            a.line.launch.kv_offload_bytes / a.line.launch.tp.saturating_mul(a.line.launch.pp).max(1)
        }
        _ => 0,
    };
    HostBuffers {
        steady_bytes: Some(a.host.plan.steady_bytes.expected).filter(|b| *b > 0),
        queue_bytes: x.outcome.queue_tokens.saturating_mul(match a.line.launch.engine {
            EngineKind::LlamaCpp => LLAMA_TOKEN,
            _ => WAITING_TOKEN,
        }),
        offload_bytes: offload,
        offload_filled_bytes: x.outcome.stored_blocks.saturating_mul(x.bytes_per_block).min(offload),
    }
}
