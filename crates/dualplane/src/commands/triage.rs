//! `dualplane triage TARGET…`

use std::fmt::Write as _;

use dualplane_core::knowledge::Knowledge;
use dualplane_core::redact;
use dualplane_core::report::{self, Report};
use dualplane_core::verdict::{self, Class};

use super::Failure;
use crate::args::{Format, TriageArgs};
use crate::exit::{self, Code};
use crate::{output, own_knowledge, target};

pub(crate) fn run(args: &TriageArgs) -> Result<Code, Failure> {
    let knowledge = own_knowledge::load(args.knowledge.as_deref())?;
    let incidents = target::read(&args.targets, &target::Sieve::new(&knowledge))?;
    let mut reports: Vec<Report> = Vec::new();
    for incident in incidents {
        reports.extend(report::triage_all(&incident.name, incident.files, incident.gaps, &knowledge));
    }
    if !args.show_secrets {
        for r in &mut reports {
            redact::report(r, &knowledge);
        }
    }
    let names: Vec<String> = args.targets.iter().map(|t| t.display().to_string()).collect();
    if reports.iter().all(|r| r.files.is_empty()) {
        for gap in reports.iter().flat_map(|r| &r.verdict.missing).filter(|g| g.command.is_none()) {
            output::note(&format!("{}: {}", gap.what, gap.why));
        }
        return Err(Failure::NoEvidence(names.join(", ")));
    }
    if let Some(word) = &args.why_not {
        let class = why_not_class(word)?;
        let text = join(&reports, |r| why_not(r, class, &knowledge));
        output::write(&text)?;
        return Ok(exit::OK);
    }
    let style = output::style(args.color, args.verbose);
    let text = match args.output {
        Format::Json => report::json::render(&reports)?,
        Format::Text => join(&reports, |r| report::text(r, style)),
        Format::Markdown => join(&reports, report::markdown),
    };
    output::write(&text)?;
    let worst = reports.iter().map(|r| exit::of_class(r.verdict.class)).max_by_key(|c| c.0);
    Ok(if args.exit_code { worst.unwrap_or(exit::OK) } else { exit::OK })
}

/// Several reports under their names, with a line between them.
fn join(reports: &[Report], render: impl Fn(&Report) -> String) -> String {
    let mut out = String::new();
    for (i, r) in reports.iter().enumerate() {
        if reports.len() > 1 {
            let name = dualplane_core::text::printable(&r.name).into_owned();
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

fn why_not(r: &Report, class: Class, knowledge: &Knowledge) -> String {
    let mut out =
        format!("{}: verdict {}, not {class}:\n", dualplane_core::text::printable(&r.name), r.verdict.class);
    for c in verdict::why_not(class, &r.bundle, &r.facts, knowledge, &r.verdict) {
        let at = c.place.map_or(String::new(), |p| match p.line {
            Some(l) => format!(" [{}:{l}]", p.file),
            None => format!(" [{}]", p.file),
        });
        // Writing into a String cannot fail.
        let _ = writeln!(out, "  - {}", dualplane_core::text::printable(&format!("{}{at}", c.text)));
    }
    out
}
