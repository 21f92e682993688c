//! Driving the server with a shape, once or several times.

use std::time::Duration;

use dualplane_gate::document::{Load, Measure, Run};
use dualplane_measure::{About, Api, Calibration, Progress, Target, Work, about, calibrate};
use dualplane_shape::Shape;

use super::{Bench, death, play, search, store};
use crate::args::{ApiKind, LoadPattern, MeasureArgs};
use crate::commands::Failure;
use crate::{output, secret};

/// Seconds after the end in which answers may still come.
const DRAIN: f64 = 30.0;

pub(super) fn target(args: &MeasureArgs, url: &str) -> Result<Target, Failure> {
    let api = match args.api {
        ApiKind::Chat => Api::Chat,
        ApiKind::Completions => Api::Completions,
    };
    let made = Target::new(url, api, args.model.as_deref().unwrap_or_default(), secret::ENGINE.read()?);
    let mut target = made.map_err(|e| Failure::Flag { flag: "--target", why: e.to_string() })?;
    target.exact = !args.plain;
    target.timeout = Duration::from_secs_f64(args.request_timeout.max(0.1));
    Ok(target)
}

/// What every run of the measurement has in common.
pub(super) struct Common {
    pub(super) shape: Shape,
    pub(super) calibration: Calibration,
    pub(super) about: About,
}

pub(super) fn all(
    bench: &mut Bench<'_>,
    target: &mut Target,
    shape: &Shape,
    m: &mut Measure,
) -> Result<(), Failure> {
    let about = about(target, bench.args.metrics.as_deref());
    if target.model.is_empty() {
        target.model = about.model.clone().ok_or_else(|| Failure::Online {
            what: format!("{}/v1/models", target.base()),
            why: match &about.silent {
                Some(why) => format!("{why}. Is the server up?"),
                None => "lists no model: name one with --model".into(),
            },
        })?;
    }
    m.subject.engine.clone_from(&about.engine);
    m.subject.engine_version.clone_from(&about.version);
    m.subject.model = Some(target.model.clone());
    let calibration = counted(bench, target)?;
    let common = Common { shape: shape.clone(), calibration, about };
    if bench.args.search {
        return search::search(bench, target, &common, m);
    }
    for i in 1..=bench.args.runs {
        let run = one(bench, target, &common, &i.to_string(), bench.args.concurrency)?;
        let over = run.cut_short;
        m.runs.push(run);
        if over {
            break;
        }
    }
    Ok(())
}

fn counted(bench: &Bench<'_>, target: &Target) -> Result<Calibration, Failure> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::Runtime)?;
    let local = tokio::task::LocalSet::new();
    let asked = local.block_on(&runtime, calibrate(target, bench.clock));
    let found = asked.map_err(|why| Failure::Online { what: target.base(), why })?;
    if found.is_none() {
        output::note("the server does not count tokens: one word is taken for one token");
    }
    Ok(found.unwrap_or_default())
}

/// One run.
pub(super) fn one(
    bench: &mut Bench<'_>,
    target: &mut Target,
    common: &Common,
    name: &str,
    closed: Option<u64>,
) -> Result<Run, Failure> {
    let args = bench.args;
    let rate = args.rate.or(common.shape.arrival_per_second).filter(|_| closed.is_none());
    let mode = match (args.pattern, rate) {
        (LoadPattern::Steady, Some(_)) => "open",
        (LoadPattern::Steady, None) => "closed",
        (LoadPattern::Ramp, _) => "ramp",
        (LoadPattern::Burst, _) => "burst",
        (LoadPattern::LongPrompts, _) => "long-spike",
        (LoadPattern::CancelStorm, _) => "cancel-storm",
        (LoadPattern::Soak, _) => "soak",
    };
    let at_once = if rate.is_some() { None } else { closed.or(common.shape.concurrency).or(Some(1)) };
    let load = Load {
        mode: mode.into(),
        concurrency: at_once.map(|n| n as u32),
        rate,
        seconds: Some(args.duration),
        requests: args.requests,
        warmup_seconds: Some(args.warmup),
        seed: Some(args.seed),
    };
    let mut gather = bench.gather(name, load, common.about.kv_tokens);
    if let Some(at) = bench.ready.take() {
        gather.ready(at);
        bench.take(&mut gather);
    } else {
        // What was read between two runs is of none of them.
        while bench.reads.readings.try_recv().is_ok() {}
    }
    let work = Work {
        shape: common.shape.clone(),
        seed: args.seed,
        play: play(args),
        closed: at_once,
        requests: args.requests,
        warmup: args.warmup.min(args.duration / 2.0),
        seconds: args.duration,
        drain: DRAIN,
        longest: args.longest.or_else(|| common.about.longest.map(|n| n.saturating_sub(16).max(2))),
        calibration: common.calibration,
    };
    let began = bench.now();
    let mut progress = output::Progress::new();
    let mut tell = |p: Progress| progress.line(&words(name, &p));
    let own = std::mem::replace(target, self::target(args, &target.base())?);
    own_model(target, &own);
    let (mut gather, own, ended) = dualplane_measure::drive(
        own,
        &work,
        gather,
        bench.clock,
        &mut bench.reads.readings,
        &bench.asked.stop,
        &mut tell,
    )
    .map_err(|why| Failure::Flag { flag: "--shape", why })?;
    *target = own;
    progress.clear();
    let failed = gather.so_far().1 > 0;
    let dies = ended.early || failed && bench.ends_soon(&mut gather, || target.refuses());
    if dies && !bench.stopped() {
        gather.died(death::judge(bench)?);
    }
    store::planes(bench, &mut gather, began, ended.at)?;
    let mut run = gather.finish(ended.at, dies);
    if run.load.warmup_seconds.is_some() {
        run.load.warmup_seconds = Some(work.warmup);
    }
    if ended.cut > 0 {
        output::note(&format!(
            "{} requests were longer than the {} tokens that the server takes, and were cut to that",
            ended.cut,
            work.longest.unwrap_or_default()
        ));
    }
    if ended.held_back > 0 {
        output::note(&format!("{} requests were not sent: too many were under way", ended.held_back));
    }
    if rate.is_some() && ended.late_p99 > 0.05 {
        output::note(&format!(
            "one request in a hundred was sent {:.0} ms late or more: this machine is too busy to drive at this rate",
            ended.late_p99 * 1000.0
        ));
    }
    Ok(run)
}

fn own_model(target: &mut Target, own: &Target) {
    target.model.clone_from(&own.model);
}

fn words(name: &str, p: &Progress) -> String {
    let left = (p.seconds - p.at).max(0.0);
    let ttft = p.ttft_p99.map_or_else(String::new, |t| format!(", first token p99 {:.0} ms", t * 1000.0));
    let failed = if p.failed > 0 { format!(", {} failed", p.failed) } else { String::new() };
    let left = if left > 120.0 { format!("{:.0} min", left / 60.0) } else { format!("{left:.0} s") };
    format!("run {name}: {left} left, {} under way, {} answered{failed}{ttft}", p.open, p.done)
}
