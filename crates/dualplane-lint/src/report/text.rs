//! Findings as lines for people.

use dualplane_base::style::{Style, wrap};
use dualplane_base::text::{counted, printable};

use super::Report;
use crate::finding::{Finding, Severity};

/// Kinds without rules that are named.
const KINDS: usize = 6;

/// The report as text.
#[must_use]
pub fn text(report: &Report, style: Style) -> String {
    let mut out = String::new();
    for u in &report.unread {
        let why = match report.live {
            Some(_) => format!("{} were not checked: {}", u.file.trim_start_matches("live/"), u.why),
            None => format!("{}:{}: document {} was not checked: {}", u.file, u.line, u.document, u.why),
        };
        out.push_str(&wrap(&printable(&why), style.width, "", "  "));
        out.push('\n');
    }
    if report.more_unread > 0 {
        out.push_str(&format!("{} more were not checked\n", counted(report.more_unread, "document")));
    }
    if !report.unread.is_empty() && !report.findings.is_empty() {
        out.push('\n');
    }
    for f in &report.findings {
        one(f, report.live.is_some(), style, &mut out);
    }
    for note in report.remarks() {
        out.push_str(&wrap(&printable(&note), style.width, "", "  "));
        out.push('\n');
    }
    out.push_str(&summary(report));
    out
}

fn one(f: &Finding, live: bool, style: Style, out: &mut String) {
    let severity = match f.severity {
        Severity::Error => style.bad("error"),
        Severity::Warning => style.bold("warning"),
        Severity::Note => "note".to_owned(),
    };
    let head = if live { String::new() } else { format!("{}:{}: ", f.source.file, f.at) };
    out.push_str(&format!(
        "{}{severity}: {}  {}\n",
        printable(&head),
        printable(&f.subject()),
        style.dim(&format!("[{}]", f.rule))
    ));
    out.push_str(&wrap(&printable(&f.message), style.width, "  ", "  "));
    out.push('\n');
    out.push_str(&wrap(&printable(&f.fix), style.width, "  fix: ", "       "));
    out.push_str("\n\n");
}

fn summary(r: &Report) -> String {
    let all = |s: Severity| r.all.get(&s).copied().unwrap_or(0);
    let mut out = format!(
        "checked {} in {}, found {}, {} and {}\n",
        counted(r.objects, "object"),
        r.live.clone().unwrap_or_else(|| counted(r.files, "file")),
        counted(all(Severity::Error), "error"),
        counted(all(Severity::Warning), "warning"),
        counted(all(Severity::Note), "note"),
    );
    if r.more > 0 {
        out.push_str(&format!("{} more are not listed\n", counted(r.more, "finding")));
    }
    if r.suppressed > 0 {
        let noun = counted(r.suppressed, "finding");
        let are = if r.suppressed == 1 { "is" } else { "are" };
        out.push_str(&format!("{noun} {are} suppressed by annotations, exceptions or the baseline\n"));
    }
    if !r.other_kinds.is_empty() {
        let shown: Vec<String> =
            r.other_kinds.iter().take(KINDS).map(|(k, n)| format!("{} ({n})", printable(k))).collect();
        let more = r.other_kinds.len().saturating_sub(KINDS);
        let more = if more > 0 { format!(" and {more} more kinds") } else { String::new() };
        out.push_str(&format!("no rule looks at {}{more}\n", shown.join(", ")));
    }
    if r.other_documents > 0 {
        out.push_str(
            &format!("{} hold no Kubernetes object\n", counted(r.other_documents, "document"))
                .replace("1 document hold ", "1 document holds "),
        );
    }
    out
}
