//! What `apply` and `rollback` have in common: show a change, ask, and make it.

use std::fmt::Write as _;
use std::io::{self, BufRead, IsTerminal, Write};

use dualplane_base::text::printable;
use dualplane_core::change::{self, Mark, ObjectRef};
use dualplane_core::knowledge::Knowledge;
use dualplane_kube::api::{Api, ApiError};
use dualplane_kube::apply::{self, ApplyError, Preview};

use crate::commands::Failure;

/// `deployment/x in namespace n of context c`.
pub(crate) fn place(object: &ObjectRef, api: &Api) -> String {
    let namespace = object.namespace.as_ref().map_or(String::new(), |n| format!(" in namespace {n}"));
    let of = match &api.identity().context {
        Some(context) => format!(" of context {context}"),
        None => format!(" of {}", api.server()),
    };
    format!("{object}{namespace}{of}")
}

/// Opens what is shown of one object, with an empty line behind that of another.
pub(crate) fn heading(text: &mut String, object: &ObjectRef, api: &Api) {
    let above = if text.is_empty() { "" } else { "\n" };
    // Writing into a String cannot fail.
    let _ = writeln!(text, "{above}{} ({})", printable(&place(object, api)), printable(api.server()));
}

/// The diff, and what the change does to the pods.
pub(crate) async fn text(api: &Api, shown: &Preview, knowledge: &Knowledge, colour: bool) -> String {
    let mut out = String::new();
    for (mark, line) in change::diff_lines(&shown.live, &shown.after, knowledge) {
        let (on, off) = match mark {
            Mark::Removed if colour => ("\u{1b}[31m", "\u{1b}[0m"),
            Mark::Added if colour => ("\u{1b}[32m", "\u{1b}[0m"),
            _ => ("", ""),
        };
        // Writing into a String cannot fail.
        let _ = writeln!(out, "{on}{}{line}{off}", mark.sign());
    }
    let budgets = match &shown.object.namespace {
        Some(namespace) => apply::budgets(api, namespace).await,
        None => Vec::new(),
    };
    let edits = change::edits(&shown.live, &shown.after);
    // The answer of a dry run has no status worth reading.
    let mut after = shown.after.clone();
    if let (Some(after), Some(status)) = (after.as_object_mut(), shown.live.get("status")) {
        after.insert("status".into(), status.clone());
    }
    out.push('\n');
    for sentence in change::rollout(&after, &edits, &budgets) {
        let _ = writeln!(out, "{}", printable(&sentence));
    }
    out
}

/// Asks on a terminal; where there is none, `--yes` must have answered.
pub(crate) fn confirm(question: &str, yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    let not = |why: &str, hint: &str| Err(Failure::NotChanged { why: why.into(), hint: Some(hint.into()) });
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return not(
            "cannot ask for confirmation without a terminal, and --yes was not given",
            "review the diff and run the command again with --yes",
        );
    }
    let _ = write!(io::stderr().lock(), "{} [y/N] ", printable(question));
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    if read.is_ok() && ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()) {
        return Ok(());
    }
    not("not confirmed", "answer y to make the change")
}

/// A fault before anything was sent, or the server's refusal of a dry run.
pub(crate) fn refused(fault: ApiError) -> Failure {
    let hint = match &fault {
        ApiError::Forbidden { permission, .. } if !permission.is_empty() => Some(format!(
            "ask for permission to {permission}; the role dualplane-apply in deploy/rbac.yaml lists \
            everything that apply needs"
        )),
        _ => None,
    };
    match fault {
        ApiError::Forbidden { .. } | ApiError::Status { .. } => {
            Failure::NotChanged { why: format!("the API server rejected this change: {fault}"), hint }
        }
        other => Failure::Cluster(other),
    }
}

/// Why a change that was sent was not made.
pub(crate) fn not_done(e: ApplyError) -> Failure {
    match e {
        ApplyError::Refused(fault) => match refused(fault) {
            Failure::Cluster(fault) => {
                Failure::NotChanged { why: format!("nothing was changed: {fault}"), hint: None }
            }
            failure => failure,
        },
        ApplyError::Moved => Failure::NotChanged {
            why: "the object changed after it was shown; nothing was changed".into(),
            hint: Some("run the command again to see the current difference".into()),
        },
        ApplyError::Unknown(fault) => Failure::Unclear(format!(
            "no response arrived, and the object does not show whether the change was made: {fault}"
        )),
    }
}
