//! `dualplane lint PATH...`: rules for manifests of model servers. Files are read here; `dualplane-lint` knows objects only.

mod fixes;
#[cfg(feature = "live")]
mod live;
mod scan;
mod walk;

use std::path::Path;

use dualplane_base::json::pretty;
use dualplane_lint::report::{
    Report, explain, explain_json, github, gitlab, json, junit, sarif, table, text,
};
use dualplane_lint::{Baseline, Finding, Ignores, Linter, Options, Rules, Severity, policy};

#[cfg(not(feature = "live"))]
use self::no_cluster as live;
use super::Failure;
use crate::args::{Emit, FailOn, Least, LintArgs, LintFormat};
use crate::exit::{self, Code};
use crate::{files, output};

/// Exceptions of a checkout.
const IGNORE_FILE: &str = ".dualplane-lint.toml";
/// A file of exceptions or a baseline is small; more is a mistake.
const MAX_FILE: u64 = 16 << 20;

pub(super) fn run(args: &LintArgs) -> Result<Code, Failure> {
    if let Some(id) = &args.explain {
        return explained(id, args);
    }
    if args.list {
        output::write(&table())?;
        return Ok(exit::OK);
    }
    let c = &args.cluster;
    if !args.live && (c.namespace.is_some() || c.context.is_some() || c.kubeconfig.is_some()) {
        let why = "--namespace, --context and --kubeconfig name a cluster, and files have none; add --live to check a cluster";
        return Err(Failure::Flag { flag: "lint", why: why.to_owned() });
    }
    let options = options(args)?;
    if let Some(Emit::Policy) = args.emit {
        let wanted = policy::rules().filter(|r| {
            (options.only.is_empty() || options.only.contains(&r.id))
                && !options.disabled.contains(&r.id)
                && options.least.is_none_or(|l| r.severity >= l)
        });
        output::write(&policy::yaml(&policy::policies(wanted)))?;
        return Ok(exit::OK);
    }
    let ignores = ignores(args)?;
    let baseline = args.baseline.as_deref().map(baseline).transpose()?;
    let linter = Linter::new(&options);
    let held = |f: &Finding| ignores.hold(f) || baseline.as_ref().is_some_and(|b| b.holds(f));
    let mut report =
        if args.live { live::scan(args, &linter, held)? } else { scan::scan(&args.paths, &linter, held)? };
    if linter.dropped() {
        let note = "more than 20,000 servers or autoscalers: the rest are not held against each other; lint namespace by namespace";
        report.notes.push(note.to_owned());
    }
    if report.live.is_none()
        && report.objects == 0
        && report.unread.is_empty()
        && report.other_kinds.is_empty()
        && report.other_documents == 0
        // A hook names the files of a commit, and an empty one among them is nobody's mistake.
        && !args.paths.iter().all(|p| p.is_file())
    {
        let names: Vec<String> = args.paths.iter().map(|p| p.display().to_string()).collect();
        return Err(Failure::NoManifests(names.join(", ")));
    }
    if let Some(path) = &args.write_baseline {
        let text = pretty(&Baseline::of(&report.findings))?;
        files::write_whole(path, text.as_bytes())
            .map_err(|source| Failure::Unwritable { path: path.clone(), source })?;
        output::note(&format!(
            "{} holds {}; pass it with --baseline",
            path.display(),
            dualplane_base::text::counted(report.findings.len(), "finding")
        ));
        return Ok(exit::OK);
    }
    if args.fix {
        return fixes::run(&report, args.write);
    }
    output::write(&shown(&report, args)?)?;
    Ok(code(&report, args.fail_on))
}

fn shown(report: &Report, args: &LintArgs) -> Result<String, Failure> {
    Ok(match args.output {
        LintFormat::Text => text(report, output::style(args.color, false)),
        LintFormat::Json => pretty(&json(report))?,
        LintFormat::Sarif => pretty(&sarif(report, env!("CARGO_PKG_VERSION")))?,
        LintFormat::Github => github(report),
        LintFormat::Gitlab => pretty(&gitlab(report))?,
        LintFormat::Junit => junit(report, jiff::Timestamp::now()),
    })
}

/// What was found decides, then what could not be read.
fn code(report: &Report, fail_on: FailOn) -> Code {
    let fails = match fail_on {
        FailOn::Note => Some(Severity::Note),
        FailOn::Warning => Some(Severity::Warning),
        FailOn::Error => Some(Severity::Error),
        FailOn::Never => None,
    };
    let worst = report.worst.filter(|w| fails.is_some_and(|f| *w >= f));
    match worst {
        Some(Severity::Error) => exit::LINT_ERRORS,
        _ if !report.unread.is_empty() => exit::UNREADABLE,
        Some(_) => exit::LINT_WARNINGS,
        None => exit::OK,
    }
}

fn explained(id: &str, args: &LintArgs) -> Result<Code, Failure> {
    let rule = rule(id)?;
    output::write(&match args.output {
        LintFormat::Json => pretty(&explain_json(rule))?,
        _ => explain(rule, output::style(args.color, false)),
    })?;
    Ok(exit::OK)
}

fn rule(id: &str) -> Result<&'static dualplane_lint::Rule, Failure> {
    let rules = Rules::embedded();
    rules.get(id).ok_or_else(|| {
        let near = rules.near(id);
        let near = match near.is_empty() {
            true => "`dualplane lint --list` lists all".to_owned(),
            false => format!("did you mean {}?", near.join(", ")),
        };
        Failure::Flag { flag: "lint", why: format!("`{id}` is no rule: {near}") }
    })
}

fn options(args: &LintArgs) -> Result<Options, Failure> {
    for id in args.only.iter().chain(&args.disable) {
        rule(id)?;
    }
    if let Some(name) = &args.gpu {
        let cards = dualplane_plan::card::embedded()?;
        dualplane_plan::card::place(&cards, Some(name), None)?;
    }
    let least = match args.severity {
        Least::Note => Severity::Note,
        Least::Warning => Severity::Warning,
        Least::Error => Severity::Error,
    };
    Ok(Options {
        card: args.gpu.clone(),
        // A rule that is asked for by its name is meant.
        least: args.only.is_empty().then_some(least),
        only: args.only.clone(),
        disabled: args.disable.clone(),
    })
}

fn ignores(args: &LintArgs) -> Result<Ignores, Failure> {
    let own = Path::new(IGNORE_FILE);
    let path = match &args.ignore_file {
        Some(path) => path.as_path(),
        None if own.is_file() => own,
        None => return Ok(Ignores::default()),
    };
    let read: Ignores = toml::from_str(&small(path)?)
        .map_err(|e| Failure::OwnKnowledge { path: path.into(), why: e.to_string().trim_end().to_owned() })?;
    match read.problems(|id| Rules::embedded().get(id).is_some()).first() {
        Some(why) => Err(Failure::OwnKnowledge { path: path.into(), why: why.clone() }),
        None => Ok(read),
    }
}

fn baseline(path: &Path) -> Result<Baseline, Failure> {
    Baseline::read(&small(path)?).map_err(|why| Failure::OwnKnowledge { path: path.into(), why })
}

fn small(path: &Path) -> Result<String, Failure> {
    let unreadable = |source| Failure::Unreadable { path: path.into(), source };
    if std::fs::metadata(path).map_err(unreadable)?.len() > MAX_FILE {
        let why = format!("it is larger than {} MiB", MAX_FILE >> 20);
        return Err(Failure::OwnKnowledge { path: path.into(), why });
    }
    std::fs::read_to_string(path).map_err(unreadable)
}

/// This build reads files only.
#[cfg(not(feature = "live"))]
mod no_cluster {
    use dualplane_lint::report::Report;
    use dualplane_lint::{Finding, Linter};

    use crate::args::LintArgs;
    use crate::commands::Failure;

    pub(super) fn scan(_: &LintArgs, _: &Linter, _: impl Fn(&Finding) -> bool) -> Result<Report, Failure> {
        Err(Failure::NotBuilt("lint --live"))
    }
}
