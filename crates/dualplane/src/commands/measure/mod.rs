//! `dualplane measure`: drives a server, or runs a load tool, and reads both planes meanwhile.

mod about;
mod death;
mod drive;
mod search;
mod signals;
mod store;
mod write;

use std::time::{Duration, Instant, SystemTime};

use dualplane_base::hash::fnv1a;
use dualplane_gate::document::{Load, Measure, Run, Shape as Named, Tool};
use dualplane_measure::planes::{self, Ask, Reading, Reads, Whose};
use dualplane_measure::server::{Server, since_boot};
use dualplane_measure::{Target, tool, wait_ready};
use dualplane_runs::{Gather, Setup};
use dualplane_shape::Shape;
use jiff::Timestamp;

use super::Failure;
use crate::args::{LoadPattern, MeasureArgs};
use crate::exit::{self, Code};
use crate::{output, secret};

/// For a server at which requests failed to end …
const ENDS: Duration = Duration::from_secs(5);
/// … and for one that refuses connections.
const GONE: Duration = Duration::from_secs(20);

/// The server that is measured, and all that watches it.
pub(super) struct Bench<'a> {
    args: &'a MeasureArgs,
    clock: Instant,
    /// Microseconds after boot at which all this began.
    boot_us: u64,
    server: Option<Server>,
    reads: Reads,
    asked: signals::Asked,
    log: Option<std::path::PathBuf>,
    ready: Option<f64>,
    store: Option<store::Store>,
}

pub(super) fn run(args: &MeasureArgs) -> Result<Code, Failure> {
    write::check(args)?;
    let started = Timestamp::now();
    let shape = shape(args)?;
    let mut target = args.target.as_deref().map(|url| drive::target(args, url)).transpose()?;
    let (mut bench, hardware) = Bench::start(args, target.as_ref())?;
    let tool_name =
        Tool { name: "dualplane".into(), version: env!("CARGO_PKG_VERSION").into(), load_tool: None };
    let mut m = Measure::new(tool_name);
    m.started_at = Some(started.to_string());
    m.hardware = hardware;
    m.slo = args.slo.clone();
    m.cost = args.price.clone();
    m.subject.build = args.build.clone();
    m.shape = shape.as_ref().filter(|_| args.command.is_empty()).map(|s| named(args, s));
    if (args.serve.is_some() || args.wait.is_some())
        && let Some(target) = &target
        && let Some(run) = bench.wait(target)?
    {
        m.runs.push(run);
    } else if args.command.is_empty() {
        let (Some(target), Some(shape)) = (target.as_mut(), &shape) else {
            return Err(Failure::Flag {
                flag: "--shape",
                why: "which requests? give --shape FILE or --traffic NAME".into(),
            });
        };
        drive::all(&mut bench, target, shape, &mut m)?;
    } else {
        let run = bench.tool(&mut m)?;
        m.runs.push(run);
    }
    about::subject(&mut m, args, bench.pid());
    m.hardware.memory_limit_bytes = m.runs.iter().find_map(|r| r.host.as_ref().and_then(|h| h.limit_bytes));
    m.ended_at = Some(Timestamp::now().to_string());
    let stopped = bench.stopped();
    drop(bench);
    write::write(args, &m)?;
    Ok(if stopped { exit::INTERRUPTED } else { exit::OK })
}

fn shape(args: &MeasureArgs) -> Result<Option<Shape>, Failure> {
    match (&args.shape, &args.traffic) {
        (Some(path), _) => super::plan::shape::read(path).map(Some),
        (None, Some(name)) => Ok(dualplane_shape::named(name)),
        (None, None) => Ok(None),
    }
}

fn named(args: &MeasureArgs, shape: &Shape) -> Named {
    let cells = shape.cells().unwrap_or_default();
    let text = shape.json().unwrap_or_default();
    // Which requests were sent is told apart by it.
    let hash = fnv1a(text.bytes());
    Named {
        name: shape.name.clone(),
        source: Some(shape.source.clone()).filter(|s| !s.is_empty()),
        digest: Some(format!("fnv64:{hash:016x}-{}", args.seed)),
        longest_input_tokens: Some(dualplane_shape::quantile(&cells, |c| c.input, 1.0)),
        longest_output_tokens: Some(dualplane_shape::quantile(&cells, |c| c.output, 1.0)),
    }
}

impl<'a> Bench<'a> {
    fn start(
        args: &'a MeasureArgs,
        target: Option<&Target>,
    ) -> Result<(Self, dualplane_gate::document::Hardware), Failure> {
        let asked = signals::Asked::listen()?;
        let proc_root = std::path::PathBuf::from("/proc");
        let mut gpus = about::gpus(args)?;
        let hardware = about::hardware(&proc_root, gpus.as_mut());
        let mut store = store::Store::open(args)?;
        let clock = Instant::now();
        if let Some(store) = &mut store {
            store.begins();
        }
        let boot_us = since_boot(&proc_root);
        let (mut server, mut log) = (None, args.log.clone());
        if let Some(line) = &args.serve {
            let path = log.clone().unwrap_or_else(|| {
                std::env::temp_dir().join(format!("dualplane-measure-{}.log", std::process::id()))
            });
            let made = Server::start(line, &path, asked.hurry.clone())
                .map_err(|source| Failure::Unwritable { path: path.clone(), source })?;
            output::note(&format!("the server's log: {}", path.display()));
            server = Some(made);
            log = Some(path);
        }
        let metrics = args.metrics.clone().or_else(|| Some(format!("{}/metrics", target?.base())));
        let agent = args.agent.as_ref().zip(args.pod.as_deref()).map(|(url, pod)| Ask::new(url, pod));
        let whose = Whose {
            pid: server.as_ref().map(Server::pid).or(args.pid),
            cgroup: args.cgroup.clone(),
            cgroups: "/sys/fs/cgroup".into(),
            proc_root,
            metrics,
            key: secret::ENGINE.read()?,
            agent,
            gpus,
        };
        let reads = planes::start(whose, clock);
        Ok((Self { args, clock, boot_us, server, reads, asked, log, ready: None, store }, hardware))
    }

    fn now(&self) -> f64 {
        self.clock.elapsed().as_secs_f64()
    }

    fn pid(&self) -> Option<u32> {
        self.server.as_ref().map(Server::pid).or(self.args.pid)
    }

    fn watches(&self) -> bool {
        self.pid().is_some()
    }

    fn stopped(&self) -> bool {
        self.asked.stops()
    }

    fn gather(&self, name: &str, load: Load, kv_tokens: Option<u64>) -> Gather {
        let mut gather = Gather::new(Setup {
            name: name.to_owned(),
            load,
            slo: self.args.slo.clone(),
            price_per_hour: self.args.price.as_ref().map(|p| p.per_hour),
            kv_tokens,
            started_at: Some(Timestamp::now().to_string()),
        });
        if self.watches() {
            gather.watched();
        }
        gather
    }

    /// Waits until the server answers. A run where one that was started here died before.
    fn wait(&mut self, target: &Target) -> Result<Option<Run>, Failure> {
        let mut progress = output::Progress::new();
        let (clock, asked) = (self.clock, self.asked.clone());
        let most = Duration::from_secs_f64(self.args.wait.unwrap_or(self.args.start_timeout));
        let server = &mut self.server;
        let answer = wait_ready(target, most, || {
            progress.line(&format!("waits for the server, {:.0} s", clock.elapsed().as_secs_f64()));
            asked.stops() || server.as_mut().is_some_and(Server::ended)
        });
        progress.clear();
        if answer.is_ok() {
            // Of one that runs already, nobody saw the start.
            self.ready = self.server.is_some().then(|| self.now());
            return Ok(None);
        }
        let mut gather = self.gather("start", Load { mode: "none".into(), ..Load::default() }, None);
        self.take(&mut gather);
        let dead = self.server.as_mut().is_some_and(Server::ended);
        if !dead && !self.stopped() {
            let why = answer.err().unwrap_or_default();
            let what = if self.args.serve.is_some() { "--serve" } else { "--wait" };
            return Err(Failure::Online { what: what.into(), why });
        }
        if dead {
            gather.died(death::judge(self)?);
        }
        Ok(Some(gather.finish(self.now(), true)))
    }

    /// Takes what was read so far; whether the server is dead.
    fn take(&self, gather: &mut Gather) -> bool {
        let mut dead = false;
        while let Ok(reading) = self.reads.readings.try_recv() {
            match reading {
                Reading::Sample(s) => gather.sample(*s),
                Reading::Processes(p) => gather.processes(&p),
                Reading::Faults(f) => gather.faults(&f),
                Reading::Dead => dead = true,
            }
        }
        dead
    }

    /// Whether a server at which requests failed is on its way out: of one whose worker was killed the rest ends seconds later,
    /// which may be after the last request. One that refuses connections is waited for longer.
    fn ends_soon(&self, gather: &mut Gather, refuses: impl Fn() -> bool) -> bool {
        let began = Instant::now();
        while self.watches() && !self.stopped() {
            if self.take(gather) {
                return true;
            }
            let waited = began.elapsed();
            if waited > GONE || waited > ENDS && !refuses() {
                break;
            }
            std::thread::park_timeout(Duration::from_millis(100));
        }
        false
    }

    /// Runs the load tool of others.
    fn tool(&mut self, m: &mut Measure) -> Result<Run, Failure> {
        let words = &self.args.command;
        let since = SystemTime::now();
        let load = Load { mode: "tool".into(), ..Load::default() };
        let mut gather = self.gather("1", load, None);
        if let Some(at) = self.ready {
            gather.ready(at);
            self.take(&mut gather);
        }
        let from = self.now();
        let program = words.first().cloned().unwrap_or_default();
        let failed = |source| Failure::Unreadable { path: program.clone().into(), source };
        let mut child = tool::run(words).map_err(failed)?;
        gather.counts_from(from);
        let mut dead = false;
        let mut told = false;
        let status = loop {
            dead |= self.take(&mut gather);
            // The terminal tells the tool as well, which then writes what it has; who else asks tells us alone.
            if self.asked.hurries() {
                let _ = child.kill();
            } else if self.asked.alone.load(std::sync::atomic::Ordering::Relaxed) && !told {
                told = true;
                tool::ask_to_end(&child);
            }
            match child.try_wait() {
                Ok(Some(status)) => break Some(status),
                Ok(None) => {}
                Err(_) => break None,
            }
            // Both planes come meanwhile, and the tool ends when it ends.
            std::thread::park_timeout(Duration::from_millis(100));
        };
        dead |= self.take(&mut gather);
        // A tool that failed may have met a server that is about to end.
        if dead || !status.is_some_and(|s| s.success()) && self.ends_soon(&mut gather, || false) {
            dead = true;
            gather.died(death::judge(self)?);
        }
        let end = self.now();
        store::planes(self, &mut gather, from, end)?;
        let mut run = gather.finish(end, dead || self.stopped());
        if let Some(status) = status.filter(|s| !s.success()) {
            output::note(&format!("{program} ended with {status}"));
        }
        match tool::results(words, self.args.results.as_deref(), since) {
            Some((path, r)) => {
                output::note(&format!("read the results of {} in {}", r.tool, path.display()));
                about::results(m, &mut run, r);
            }
            None => output::note(
                "found no result file of the load tool: name it with --results (guidellm --output-path, aiperf --artifact-dir, \
                 vllm bench serve --save-result, k6 --summary-export, locust --csv)",
            ),
        }
        Ok(run)
    }
}

/// The pattern of a load of this length.
fn play(args: &MeasureArgs) -> dualplane_shape::Play {
    use dualplane_shape::Pattern;
    let every = 60.0_f64.min(args.duration / 5.0).max(1.0);
    let pattern = match args.pattern {
        LoadPattern::Steady | LoadPattern::Soak => Pattern::Steady,
        LoadPattern::Ramp => Pattern::Ramp { from: 0.1, to: 2.0 },
        LoadPattern::Burst => Pattern::Burst { factor: 4.0, every, lasts: every / 10.0 },
        LoadPattern::LongPrompts => Pattern::LongPrompts { tokens: None },
        LoadPattern::CancelStorm => Pattern::CancelStorm { share: 0.9 },
    };
    dualplane_shape::Play { pattern, seconds: Some(args.duration), rate: args.rate }
}
