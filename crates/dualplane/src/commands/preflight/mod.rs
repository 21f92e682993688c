//! `dualplane preflight`: whether a launch fits this machine as it is now; once, or until it does.

mod gpus;
mod holders;
mod host;

use std::time::{Duration, Instant};

use dualplane_base::units::Bytes;
use dualplane_core::knowledge::KnowledgeError;
use dualplane_plan::card;
use dualplane_plan::card::Placed;
use dualplane_plan::preflight::{Ask, Outcome, Preflight, Request, Seen, Visible, check};
use dualplane_plan::report::preflight as report;
use dualplane_plan::{Calibration, PlanError};

use self::gpus::Driver;
use self::host::Limits;
use super::Failure;
use super::plan::{Question, residual};
use crate::args::{CheckFormat, LaunchArgs, PreflightArgs};
use crate::exit::{self, Code};
use crate::output;

/// Between two looks, at most: a server that ends frees its memory within seconds.
const BETWEEN: Duration = Duration::from_secs(2);
/// … and at least.
const BETWEEN_LEAST: Duration = Duration::from_millis(50);

pub(crate) fn run(args: &PreflightArgs) -> Result<Code, Failure> {
    let mut subject = Subject::read(args)?;
    let limits = Limits::read(args.memory_limit.as_deref(), subject.pod())?;
    subject.limited(limits.told());
    let mut driver = Driver::open(args.gpu_table.as_deref())?;
    let known = card::embedded().map_err(KnowledgeError::from)?;
    let started = Instant::now();
    let mut said = String::new();
    let result = loop {
        let (devices, told, lasting) = driver.look(args.host_proc.as_deref());
        let machine = host::machine(args.host_proc.as_deref());
        let seen = Seen {
            gpus: devices,
            driver: told,
            pids: holders::pids(args.host_proc.as_deref()),
            visible: visible(args),
            kubernetes: limits.kubernetes,
            limit: limits.now(),
            machine_total: machine.total,
            machine_available: machine.available,
            shm: host::shm(),
        };
        let result = check(&subject.request(), &seen, &known)?;
        let Some(left) = args.wait.and_then(|w| w.checked_sub(started.elapsed())).filter(|l| !l.is_zero())
        else {
            break result;
        };
        if !may_pass(&result, &seen, lasting) {
            break result;
        }
        let summary = result.summary();
        if summary != said {
            output::note(&format!("waiting: {summary}"));
            said = summary;
        }
        let between = args.wait.unwrap_or_default() / 20;
        std::thread::park_timeout(between.clamp(BETWEEN_LEAST, BETWEEN).min(left));
    };
    let text = match args.output {
        CheckFormat::Text => report::text(&result, output::style(args.color, args.verbose)),
        CheckFormat::Json => report::json(&result)?,
    };
    output::write(&text)?;
    Ok(exit::of_preflight(result.outcome, args.allow_unknown))
}

/// Whether another look may find something else: memory is given back, and a driver may come up.
fn may_pass(result: &Preflight, seen: &Seen, lasting: bool) -> bool {
    match result.outcome {
        Outcome::Wait => true,
        Outcome::Unknown => result.asked.is_some() && seen.gpus.is_err() && !lasting,
        Outcome::Go | Outcome::CannotFit => false,
    }
}

fn visible(args: &PreflightArgs) -> Visible {
    let of = |name: &str| std::env::var(name).ok();
    Visible {
        asked: args.gpus.clone(),
        cuda: of("CUDA_VISIBLE_DEVICES"),
        nvidia: of("NVIDIA_VISIBLE_DEVICES"),
    }
}

/// What is checked, read once.
enum Subject {
    Machine,
    Launch {
        question: Box<Question<Option<Placed>>>,
        named_card: Option<Placed>,
        calibration: Option<Box<Calibration>>,
    },
    Unclear {
        what: String,
        settle: Option<String>,
    },
}

impl Subject {
    fn read(args: &PreflightArgs) -> Result<Self, Failure> {
        let l = &args.launch;
        let evidence = l.manifest.is_some() || l.from_incident.is_some() || l.from_log.is_some();
        let about = [&l.model, &l.named, &l.quant, &l.drafter, &l.engine_version, &l.gpu, &l.gpu_memory];
        if l.command.is_empty() && !evidence && about.iter().all(|o| o.is_none()) {
            return Ok(Self::Machine);
        }
        // The engine tells of flags that it does not have; a check that runs before it must not end a pod that would start.
        let l = &LaunchArgs { allow_unknown_flags: true, ..l.clone() };
        let question = match Question::without_card(l) {
            Ok(q) => q,
            // Facts that are missing, not mistakes in what was given.
            Err(
                f @ (Failure::NoModel { .. }
                | Failure::Online { .. }
                | Failure::Plan(PlanError::Unsupported { .. } | PlanError::Missing { .. })),
            ) => {
                return Ok(Self::Unclear { what: f.to_string(), settle: f.hint() });
            }
            Err(f) => return Err(f),
        };
        let (_, calibration) = residual(&question, l, question.placed.as_ref())?;
        // The label of a manifest's node is told; the driver knows.
        let named = l.gpu.is_some() || l.gpu_memory.is_some();
        let named_card = question.placed.clone().filter(|_| named);
        Ok(Self::Launch { question: Box::new(question), named_card, calibration: calibration.map(Box::new) })
    }

    fn pod(&self) -> Option<&dualplane_plan::PodAsk> {
        match self {
            Self::Launch { question, .. } => Some(&question.line.host.pod).filter(|p| p.known),
            Self::Machine | Self::Unclear { .. } => None,
        }
    }

    /// A part of the plan follows the limit: Ray's object store.
    fn limited(&mut self, limit: Option<Bytes>) {
        if let (Self::Launch { question, .. }, Some(limit)) = (self, limit) {
            question.line.host.pod.limit = Some(limit);
        }
    }

    fn request(&self) -> Request<'_> {
        match self {
            Self::Machine => Request::Machine,
            Self::Unclear { what, settle } => Request::Unclear { what: what.clone(), settle: settle.clone() },
            Self::Launch { question, named_card, calibration } => Request::Launch(Ask {
                named: &question.named,
                line: &question.line,
                calibration: calibration.as_deref(),
                named_card: named_card.as_ref(),
            }),
        }
    }
}
