//! What is asked: the launch, its model and its card, from a command, a manifest, an incident or a log.

use std::path::{Path, PathBuf};

use dualplane_base::units::Bytes;
use dualplane_core::evidence::Bundle;
use dualplane_core::facts;
use dualplane_core::knowledge::{Knowledge, KnowledgeError};
use dualplane_engines::Engines;
use dualplane_plan::card::{self, Placed};
use dualplane_plan::cli::{self, CommandLine};
use dualplane_plan::engines::llama_cpp::name_and_quant;
use dualplane_plan::{EngineKind, Model, Named, PlanError, Speculation, Version};
use dualplane_report::planned::manifest::{self, Workload};
use dualplane_report::planned::startlog::{self, StartLog};

use super::super::Failure;
use super::memory;
use crate::args::LaunchArgs;
use crate::model;

/// Everything that an answer needs; the card may be left open where cards are what is asked for.
pub(crate) struct Question<P = Placed> {
    pub(crate) line: CommandLine,
    pub(crate) named: Named,
    pub(crate) placed: P,
    /// A start-up of the same server, where one was given.
    pub(crate) log: Option<StartLog>,
}

/// What was found about the launch before the model is read.
#[derive(Default)]
struct Found {
    line: Option<CommandLine>,
    workload: Option<Workload>,
    log: Option<StartLog>,
    /// Whether there is no command: a model, with flags at most.
    alone: bool,
}

impl Question {
    /// The same with another launch.
    pub(crate) fn with(&self, line: CommandLine) -> Self {
        Self { line, named: self.named.clone(), placed: self.placed.clone(), log: None }
    }
}

impl Question<Option<Placed>> {
    pub(crate) fn without_card(args: &LaunchArgs) -> Result<Self, Failure> {
        Self::ask(args, None, false)
    }

    /// The same for a newcomer: a model that needs no look-up, and one without a command is served by the engine that most
    /// people use, with its defaults.
    pub(crate) fn of_model(args: &LaunchArgs, model: Option<Named>) -> Result<Self, Failure> {
        Self::ask(args, model, true)
    }

    fn ask(args: &LaunchArgs, model: Option<Named>, alone: bool) -> Result<Self, Failure> {
        let mut found = Found::default();
        // Signatures are needed for evidence only, and take longer to read than a plan.
        let evidence = args.from_incident.is_some() || args.manifest.is_some() || args.from_log.is_some();
        let knowledge = evidence.then(Knowledge::embedded).transpose()?;
        if let Some(k) = &knowledge {
            found.evidence(args, k)?;
        }
        let given = args.model().is_some() || (alone && model.is_some());
        let named = match args.command.first() {
            Some(first) => first.starts_with('-') && given,
            None => alone && given,
        };
        if !evidence && named {
            found.line = Some(cli::alone(args.model(), &args.command)?);
            found.alone = true;
        } else if !args.command.is_empty() {
            // Flags alone are the most used engine's, where the workload says the rest.
            let usual = found.workload.as_ref().and_then(|_| Engines::embedded().usual());
            let image = usual.map(|d| d.id.as_str());
            found.line = Some(cli::parse(&args.command, &[], image)?);
        }
        found.flags(args)?;
        found.ask(args, model)
    }
}

impl Found {
    fn evidence(&mut self, args: &LaunchArgs, knowledge: &Knowledge) -> Result<(), Failure> {
        if let Some(path) = &args.from_incident {
            self.incident(path, knowledge)?;
        }
        if let Some(path) = &args.manifest {
            self.workload = Some(manifest::workload(&bundle(path, knowledge)?)?);
        }
        if let Some(path) = &args.from_log {
            self.log = Some(log(&bundle(path, knowledge)?, knowledge)?);
        }
        Ok(())
    }

    fn incident(&mut self, path: &Path, knowledge: &Knowledge) -> Result<(), Failure> {
        let bundle = bundle(path, knowledge)?;
        let workload = manifest::workload(&bundle);
        match log(&bundle, knowledge) {
            Ok(log) => self.log = Some(log),
            // Without a workload the log is all there is.
            Err(e) if workload.is_err() => return Err(e),
            Err(_) => {}
        }
        self.workload = match workload {
            Ok(w) => Some(w),
            Err(e @ PlanError::Contradiction { .. }) => return Err(e.into()),
            Err(_) => None,
        };
        Ok(())
    }

    /// A flag that the engine does not have ends its start; where our table may lack one, only a slip of letters is told.
    fn flags(&self, args: &LaunchArgs) -> Result<(), Failure> {
        let Some(line) = self
            .line
            .as_ref()
            .or_else(|| self.workload.as_ref().filter(|_| args.manifest.is_some()).map(|w| &w.line))
        else {
            return Ok(());
        };
        let engine = line.launch.engine;
        for flag in line.unknown_flags.iter().filter(|_| !args.allow_unknown_flags) {
            let near = cli::nearest(engine, flag);
            if near.is_none() && !cli::knows_all_flags(engine) {
                continue;
            }
            let near = near.into_iter().chain(cli::alike(engine, flag)).collect::<Vec<_>>();
            let hint = match near.as_slice() {
                [] => ";".to_owned(),
                [one, ..] => format!("; did you mean {one}?"),
            };
            let why = format!("{engine} has no such flag{hint} --allow-unknown-flags plans without it");
            return Err(PlanError::contradiction(flag.clone(), why).into());
        }
        Ok(())
    }

    fn ask(self, args: &LaunchArgs, model: Option<Named>) -> Result<Question<Option<Placed>>, Failure> {
        let Self { line, workload, mut log, alone } = self;
        let grouped = workload.as_ref().is_some_and(|w| w.grouped);
        let (mig, label) = workload.as_ref().map_or((None, None), |w| (w.mig.clone(), w.card.clone()));
        let version = args
            .engine_version
            .as_ref()
            .map(|v| {
                Version::parse(v).ok_or_else(|| Failure::Flag {
                    flag: "--engine-version",
                    why: format!("`{v}` is not a version"),
                })
            })
            .transpose()?
            .or_else(|| known(log.as_ref().map(|l| &l.line)));
        let from_log = log.as_ref().map(|l| l.line.clone());
        // What a log tells was taken by the engine that wrote it.
        let typed = line.is_some() || (workload.is_some() && args.manifest.is_some());
        let mut line =
            line.or_else(|| workload.map(|w| w.line)).or_else(|| from_log.clone()).ok_or_else(|| {
                Failure::Flag {
                    flag: "COMMAND",
                    why: "nothing to plan: give the engine's command after `--`, or use --manifest, \
                --from-incident or --from-log"
                        .into(),
                }
            })?;
        if let Some(v) = version {
            for l in std::iter::once(&mut line).chain(log.as_mut().map(|l| &mut l.line)) {
                l.launch.version = v;
                l.launch.version_known = true;
            }
        }
        if typed && !args.allow_unknown_flags {
            of_release(&line)?;
        }
        visible(&line, grouped)?;
        let id = args
            .model()
            .map(str::to_owned)
            .or_else(|| line.model.clone().filter(|m| !m.trim().is_empty()))
            .or_else(|| from_log.and_then(|l| l.model));
        let id = id.or_else(|| model.as_ref().map(|m| m.id.clone())).ok_or_else(|| Failure::Flag {
            flag: "--model",
            why: "neither the command nor the log names a model: give its directory, config.json or ID"
                .into(),
        })?;
        quantisation(&mut line, args.quant.as_deref(), &id);
        let mut named = match model {
            Some(named) => Named { id, ..named },
            None => model::load(&id, args.online, &line.overrides)?,
        };
        named.model.drafter = drafter(args, &line)?.map(Box::new);
        let total = args.gpu_memory.as_ref().map(|s| memory("--gpu-memory", s)).transpose()?.map(Bytes);
        let name = card(args.gpu.as_deref(), label, mig);
        // The log of a start-up prints the total only where the card is not asked for by name.
        let printed = log.as_ref().and_then(|l| l.printed.total).map(Bytes);
        let known = name.is_some() || total.is_some() || printed.is_some();
        let placed = known
            .then(|| {
                let meant = name.as_deref().map(card::machine);
                if let Some(n) = meant.as_ref().and_then(|m| m.count) {
                    if alone {
                        cut(&mut line, n, name.as_deref().unwrap_or_default());
                    }
                    enough(&line, n, name.as_deref().unwrap_or_default())?;
                }
                let name = meant.map(|m| m.card);
                card::place_roughly(
                    &card::embedded().map_err(KnowledgeError::from)?,
                    name.as_deref(),
                    total.or(printed),
                )
                .map_err(Failure::from)
            })
            .transpose()?;
        Ok(Question { line, named, placed, log })
    }
}

/// What a GGUF is quantised to: `--quant`, or what its own name says before what is usual.
fn quantisation(line: &mut CommandLine, asked: Option<&str>, id: &str) {
    let llama_cpp = line.launch.engine == EngineKind::LlamaCpp;
    let own = || llama_cpp.then(|| name_and_quant(id).1).flatten();
    let open = line.launch.quantization.is_none() || line.llama_cpp.usual_quantization;
    if let Some(quant) = asked.map(str::to_owned).or_else(|| own().filter(|_| open)) {
        line.launch.quantization = Some(quant);
        line.llama_cpp.usual_quantization = false;
    }
}

/// A flag that the release of the launch has no more, or not yet, ends its start.
fn of_release(line: &CommandLine) -> Result<(), Failure> {
    let Some(flag) = line.lacking() else { return Ok(()) };
    let l = &line.launch;
    let taken =
        if l.version_known { "" } else { ", the newest known and taken for want of --engine-version," };
    let why = format!(
        "{} {}{taken} has no such flag: {}; --allow-unknown-flags plans with it",
        l.engine,
        l.version,
        flag.why()
    );
    Err(PlanError::contradiction(flag.flag.clone(), why).into())
}

/// More ranks than GPUs in one pod, and nothing that joins pods: vLLM refuses it before it loads (config/parallel.py).
fn visible(line: &CommandLine, grouped: bool) -> Result<(), Failure> {
    let l = &line.launch;
    let world = l.tp.saturating_mul(l.pp);
    let joined = grouped || line.host.ray || line.host.nodes > 1;
    let Some(have) = line.host.pod_gpus().filter(|n| *n < world && !joined) else { return Ok(()) };
    if !matches!(l.engine, EngineKind::Vllm | EngineKind::Sglang) {
        return Ok(());
    }
    let why = format!(
        "World size ({world}) is larger than the number of available GPUs ({have}) in this node; ask for {world} GPUs, use \
         fewer ranks, or --nnodes or Ray where several pods serve one model"
    );
    Err(PlanError::contradiction("--tensor-parallel-size", why).into())
}

/// `2xA100` beside a model, alone or with flags that say nothing of ranks, means a server over both.
fn cut(line: &mut CommandLine, have: u64, name: &str) {
    if have > 1 && matches!(line.launch.engine, EngineKind::Vllm) && !line.says_ranks {
        line.launch.tp = have;
        crate::output::note(&format!("{name}: planned with --tensor-parallel-size {have}"));
    }
}

/// A machine with fewer GPUs than one pod takes; of more, those that the launch leaves alone are told.
fn enough(line: &CommandLine, have: u64, name: &str) -> Result<(), Failure> {
    let need = line.gpus_of_pod();
    if need < have && matches!(line.launch.engine, EngineKind::Vllm | EngineKind::Sglang) {
        crate::output::note(&format!(
            "{name} has {have} GPUs, and the launch takes {need}: the model is cut over more with --tensor-parallel-size"
        ));
    }
    if need <= have {
        return Ok(());
    }
    let why = format!(
        "{name} has {have} GPUs, and each pod of the command takes {need}; use --nnodes, or fewer ranks"
    );
    Err(Failure::Flag { flag: "--gpu", why })
}

/// The drafter that the command names, or `--drafter`. What the command names may be a path of another machine, and is
/// then said in the answer.
fn drafter(args: &LaunchArgs, line: &CommandLine) -> Result<Option<Model>, Failure> {
    let Some(s) = &line.launch.speculative else { return Ok(None) };
    if !matches!(s.method, Speculation::Eagle | Speculation::Eagle3 | Speculation::DraftModel) {
        return Ok(None);
    }
    match (&args.drafter, &s.model) {
        (Some(id), _) => model::drafter(id, s.method, args.online).map(Some),
        (None, Some(id)) if args.online => model::drafter(id, s.method, true).map(Some),
        (None, Some(id)) => Ok(model::drafter(id, s.method, false).ok()),
        (None, None) => Ok(None),
    }
}

/// The name of the card, with the slice that the pod asks for.
fn card(asked: Option<&str>, label: Option<String>, mig: Option<String>) -> Option<String> {
    let base = asked.map(str::to_owned).or(label)?;
    match mig {
        Some(profile) if !base.contains(':') && !base.contains("-MIG-") => Some(format!("{base}:{profile}")),
        _ => Some(base),
    }
}

fn known(line: Option<&CommandLine>) -> Option<Version> {
    line.filter(|l| l.launch.version_known).map(|l| l.launch.version)
}

fn bundle(path: &Path, knowledge: &Knowledge) -> Result<Bundle, Failure> {
    let paths: [PathBuf; 1] = [path.to_owned()];
    let incidents = dualplane_input::read(&paths, &dualplane_input::Sieve::new(knowledge))?;
    let files: Vec<_> = incidents.into_iter().next().map(|i| i.files).unwrap_or_default();
    if files.is_empty() {
        return Err(Failure::NoEvidence(path.display().to_string()));
    }
    Ok(Bundle::from_files(files))
}

fn log(bundle: &Bundle, knowledge: &Knowledge) -> Result<StartLog, Failure> {
    let facts = facts::extract(bundle, knowledge);
    Ok(startlog::read(&facts)?)
}
