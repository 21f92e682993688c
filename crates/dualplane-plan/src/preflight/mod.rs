//! Whether a launch fits a machine as it is now: **plan + what was seen → go, wait, cannot fit, or unknown**.
//!
//! [`Seen`] is what the adapters read; [`check`] compares. A fact that is missing leads to [`Outcome::Unknown`], never to
//! [`Outcome::Go`]. Memory that nobody explains is called an orphan only where all processes of the host can be seen.

mod change;
mod choose;
mod holders;
mod host;
mod need;
mod outcome;
mod place;
mod run;
mod seen;
#[cfg(test)]
mod tests;

pub use holders::{age, owner};
pub use need::Ask;
pub use outcome::{
    Asked, Change, Finding, GpuRow, Held, HostRow, Outcome, Preflight, Unexplained, UnexplainedKind, Where,
};
pub use seen::{Card, Driver, Holder, Life, MemoryLimit, Names, Pids, Seen, Shm, Visible};

use self::run::Run;
use crate::PlanError;
use dualplane_base::gpu::Gpu as Known;
use dualplane_base::order::Order as _;

/// What is to be checked.
#[derive(Debug, Clone)]
pub enum Request<'a> {
    /// The machine alone.
    Machine,
    /// A launch.
    Launch(Ask<'a>),
    /// A launch of which a fact is missing: why, and what to do.
    Unclear {
        /// What is missing.
        what: String,
        /// What settles it.
        settle: Option<String>,
    },
}

/// Compares.
///
/// # Errors
/// [`PlanError::Contradiction`] where the engine would reject the command line on this card before it takes memory.
pub fn check(request: &Request<'_>, seen: &Seen, known: &[Known]) -> Result<Preflight, PlanError> {
    let ask = match request {
        Request::Launch(ask) => Some(ask),
        Request::Machine | Request::Unclear { .. } => None,
    };
    let mut run = Run::new(ask, seen, known);
    if let Request::Unclear { what, settle } = request {
        let mut f = Finding::new(Outcome::Unknown, Where::Launch, what.clone());
        f.settle.clone_from(settle);
        run.findings.push(f);
    }
    let (gpus, chosen_by, report) = run.gpus()?;
    let report = match (report, ask) {
        (None, Some(ask)) => run.report_without_gpu(ask),
        (r, _) => r,
    };
    let pod = ask.map(|a| &a.line.host.pod);
    let host = host::compare(seen, report.as_ref().zip(pod), &mut run.findings, &mut run.changes);
    let mut findings = run.findings;
    findings.order_by_key(|f| std::cmp::Reverse(f.outcome));
    run.changes.dedup();
    Ok(Preflight {
        outcome: findings.first().map_or(Outcome::Go, |f| f.outcome),
        asked: ask.map(|a| asked(a)),
        gpus,
        chosen_by,
        driver: seen.driver.clone(),
        pids: seen.pids,
        host,
        findings,
        changes: run.changes,
        unknown: run.unknown,
    })
}

fn asked(ask: &Ask<'_>) -> Asked {
    let launch = &ask.line.launch;
    Asked {
        model: ask.named.id.clone(),
        model_source: ask.named.source.clone(),
        engine: launch.engine,
        version: launch.version,
        version_known: launch.version_known,
        gpus: wanted(ask),
        rule: need::rule(launch),
    }
}

/// GPUs that this pod must have.
fn wanted(ask: &Ask<'_>) -> u64 {
    let all = ask.line.launch.gpus();
    ask.line.host.pod_gpus().filter(|n| *n > 0 && *n < all).unwrap_or(all)
}
