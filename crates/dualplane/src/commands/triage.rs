//! `dualplane triage TARGET…`

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
#[cfg(feature = "live")]
use std::sync::mpsc::{Receiver, sync_channel};

use dualplane_base::Class;
use dualplane_core::evidence::Bundle;
#[cfg(feature = "live")]
use dualplane_core::facts::NodeLogs;
use dualplane_core::knowledge::Knowledge;
use dualplane_core::{redact, verdict};
use dualplane_input::{InputError, Sieve};
#[cfg(feature = "live")]
use dualplane_kube::capture::Captured;
use dualplane_plan::Named;
use dualplane_report::{self as report, Report};

use super::Failure;
use super::live::pods::{self, PodSelection};
#[cfg(feature = "live")]
use super::live::{block_on, connect};
use crate::args::{Format, TriageArgs};
use crate::exit::{self, Code};
use crate::{model, output, own_knowledge};

pub(crate) fn run(args: &TriageArgs) -> Result<Code, Failure> {
    let knowledge = own_knowledge::load(args.knowledge.as_deref())?;
    let model = args.model.as_deref().map(|id| model::load(id, false, &Default::default())).transpose()?;
    let live = if is_local(args) { None } else { pods::wanted(&args.targets, &args.select)? };
    let mut reports = match &live {
        Some(wanted) => match of_cluster(args, wanted, &knowledge, model.as_ref()) {
            // That nothing died is an answer.
            Err(Failure::NoneFailed(why)) => return none_failed(args, &why),
            reports => reports?,
        },
        None => of_files(args, &knowledge, model.as_ref())?,
    };
    if !args.show_secrets {
        for r in &mut reports {
            report::mask(r, &knowledge);
        }
    }
    if reports.iter().all(|r| r.files.is_empty()) {
        for gap in reports.iter().flat_map(|r| &r.verdict.missing).filter(|g| g.command.is_none()) {
            output::note(&format!("{}: {}", gap.what, gap.why));
        }
        return Err(Failure::NoEvidence(args.targets.join(", ")));
    }
    if let Some(word) = &args.why_not {
        let class = why_not_class(word)?;
        let text = join(&reports, |r| why_not(r, class, &knowledge, args.show_secrets));
        output::write(&text)?;
        return Ok(exit::OK);
    }
    let style = output::style(args.color, args.verbose);
    let text = match args.output {
        Format::Json => report::json::render(&reports)?,
        // A screen for each of sixty pods is no help: first which, then each by its name.
        Format::Text if live.is_some() && reports.len() > 1 && !args.verbose => {
            report::overview(&reports, style)
        }
        Format::Text => join(&reports, |r| report::text(r, style)),
        Format::Markdown => join(&reports, report::markdown),
        Format::Html => report::html(&reports),
    };
    output::write(&text)?;
    let worst = reports.iter().map(|r| exit::of_verdict(&r.verdict)).max_by_key(|c| c.0);
    Ok(if args.exit_code { worst.unwrap_or(exit::OK) } else { exit::OK })
}

/// A path that is there is what was meant, whatever it is called.
fn is_local(args: &TriageArgs) -> bool {
    args.targets.first().is_some_and(|t| t == "-" || Path::new(t).exists())
}

fn none_failed(args: &TriageArgs, why: &str) -> Result<Code, Failure> {
    output::note(why);
    if args.output == Format::Json {
        output::write(&report::json::render(&[])?)?;
    }
    Ok(exit::OK)
}

fn of_files(args: &TriageArgs, knowledge: &Knowledge, model: Option<&Named>) -> Result<Vec<Report>, Failure> {
    let targets: Vec<PathBuf> = args.targets.iter().map(PathBuf::from).collect();
    let mut reports = Vec::new();
    let read = dualplane_input::read(&targets, &Sieve::new(knowledge)).map_err(|e| match e {
        InputError::Unreadable { path, source } if source.kind() == io::ErrorKind::NotFound => {
            let hint = pods::meant(&path.to_string_lossy());
            Failure::NoTarget { path, source, hint }
        }
        other => other.into(),
    })?;
    for incident in read {
        reports.extend(report::triage_with(&incident.name, incident.files, incident.gaps, knowledge, model));
    }
    Ok(reports)
}

/// Pods that were read and wait for their verdict; each holds some MiB.
#[cfg(feature = "live")]
const WAITING: usize = 24;

/// The reports of pods in the order in which they come.
#[cfg(feature = "live")]
fn judge_each(
    args: &TriageArgs,
    pods: Receiver<Captured>,
    knowledge: &Knowledge,
    model: Option<&Named>,
) -> Vec<Report> {
    // Pods of one node bring the same kernel log.
    let mut shared = NodeLogs::default();
    let mut reports = Vec::new();
    for pod in pods {
        let mut of_pod =
            report::triage_shared(&pod.name, pod.files, Vec::new(), knowledge, model, &mut shared);
        // What counts is quoted by now; the evidence of three hundred pods need not be held. `--why-not` looks again, and
        // a page draws it.
        if args.why_not.is_none() && args.output != Format::Html {
            of_pod.iter_mut().for_each(let_go);
        }
        reports.extend(of_pod);
    }
    reports
}

/// What a bundle of the pod would say, from the cluster itself.
#[cfg(feature = "live")]
fn of_cluster(
    args: &TriageArgs,
    wanted: &PodSelection,
    knowledge: &Knowledge,
    model: Option<&Named>,
) -> Result<Vec<Report>, Failure> {
    let work = |tools: &pods::CaptureTools<'_>| {
        // What has come is judged while the next pods' logs come.
        std::thread::scope(|scope| {
            let (captured, taken) = sync_channel::<Captured>(WAITING);
            let judge = scope.spawn(move || judge_each(args, taken, knowledge, model));
            let read = block_on(async {
                let options = pods::options(&args.stores)?;
                let api = connect(&args.cluster).await?;
                let found = pods::find(&api, wanted).await?;
                let pods = pods::to_judge(&api, wanted, found)?;
                pods::capture(&api, pods, &options, tools, |c| {
                    // Whoever judges is gone only where it failed, which `join` tells.
                    let _ = captured.send(c);
                    Ok(())
                })
                .await
            });
            drop(captured);
            let reports = judge.join();
            read?;
            Ok(reports.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    };
    pods::with_tools(Some(knowledge), work)
}

#[cfg(not(feature = "live"))]
fn of_cluster(
    _: &TriageArgs,
    wanted: &PodSelection,
    _: &Knowledge,
    _: Option<&Named>,
) -> Result<Vec<Report>, Failure> {
    match *wanted {}
}

/// Leaves what is shown: the verdict, what it cites, and what changed.
fn let_go(report: &mut Report) {
    let mut left = Bundle::default();
    left.rollouts = std::mem::take(&mut report.bundle.rollouts);
    report.bundle = left;
}

/// Several reports under their names, with a line between them.
fn join(reports: &[Report], render: impl Fn(&Report) -> String) -> String {
    let mut out = String::new();
    for (i, r) in reports.iter().enumerate() {
        if reports.len() > 1 {
            let name = dualplane_base::text::printable(&r.name).into_owned();
            // Writing into a String cannot fail.
            let _ = writeln!(out, "{}── {name} ──", if i > 0 { "\n" } else { "" });
        }
        out.push_str(&render(r));
    }
    out
}

fn why_not_class(word: &str) -> Result<Class, Failure> {
    let wanted = word.replace('-', "_");
    Class::ALL.iter().find(|c| c.as_str() == wanted).copied().ok_or_else(|| Failure::NotKnown {
        word: word.to_owned(),
        near: Class::ALL.iter().map(|c| c.as_str().to_owned()).collect(),
    })
}

fn why_not(r: &Report, class: Class, knowledge: &Knowledge, show_secrets: bool) -> String {
    let mut out =
        format!("{}: verdict {}, not {class}:\n", dualplane_base::text::printable(&r.name), r.verdict.class);
    for c in verdict::why_not(class, &r.bundle, &r.facts, knowledge, &r.verdict) {
        let report::words::Citation { text, place, .. } = report::words::citation(&c);
        let text = if show_secrets { text } else { redact::line(&text, knowledge).into_owned() };
        let at = place.map_or(String::new(), |p| match p.line {
            Some(l) => format!(" [{}:{l}]", p.file),
            None => format!(" [{}]", p.file),
        });
        // Writing into a String cannot fail.
        let _ = writeln!(out, "  - {}", dualplane_base::text::printable(&format!("{text}{at}")));
    }
    out
}
