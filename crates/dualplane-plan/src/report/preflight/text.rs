//! A check on one screen; `-v` for every GPU, every holder and the engine's rule.

use super::word;
use crate::preflight::{
    GpuRow, Held, Life, MemoryLimit, Outcome, Pids, Preflight, UnexplainedKind, Where, age, owner,
};
use crate::report::page::Page;
use crate::{EngineKind, Quantity};
use dualplane_base::style::{Style, wrap};
use dualplane_base::text::{printable, shorten};
use dualplane_base::units::Bytes;

/// Without `-v`: rows, holders of a row, things that are not known.
const FEW: usize = 4;
/// Longest name of a card that is shown.
const LONGEST: usize = 60;

/// Renders a check.
#[must_use]
pub fn text(p: &Preflight, style: Style) -> String {
    let mut w = Page::new(style);
    w.checked(p);
    w.findings(p);
    w.devices(p);
    w.ram(p);
    w.would_fit(p);
    w.open(p);
    w.finish()
}

fn amount(q: Quantity) -> String {
    if q.is_exact() {
        Bytes(q.expected).to_string()
    } else {
        format!("{} ({} to {})", Bytes(q.expected), Bytes(q.low), Bytes(q.high))
    }
}

fn or_unknown(b: Option<Bytes>) -> String {
    b.map_or_else(|| "unknown".to_owned(), |b| b.to_string())
}

impl Page {
    fn badge(&self, outcome: Outcome) -> String {
        let said = word(outcome).to_uppercase();
        match outcome {
            Outcome::Go => self.style.good(&said),
            Outcome::CannotFit => self.style.bad(&said),
            Outcome::Wait | Outcome::Unknown => self.style.bold(&said),
        }
    }

    fn checked(&mut self, p: &Preflight) {
        let badge = self.badge(p.outcome);
        let head = match &p.asked {
            Some(a) => {
                let version = match (a.version_known, a.engine) {
                    (true, _) => format!(" {}", a.version),
                    (false, EngineKind::Vllm | EngineKind::Sglang) => format!(" {} (assumed)", a.version),
                    (false, _) => String::new(),
                };
                let engine = self.style.dim(&format!("{}{version}", a.engine));
                let gpus = if a.gpus == 1 { "1 GPU".to_owned() } else { format!("{} GPUs", a.gpus) };
                format!("{badge}  {} on {gpus}  {engine}", self.style.bold(&printable(&a.model)))
            }
            None if p.findings.iter().any(|f| f.plane == Where::Launch) => format!("{badge}  the launch"),
            None => format!("{badge}  this machine, without a launch"),
        };
        self.line(&head);
        if let Some(a) = &p.asked {
            let t = wrap(&printable(&a.rule), self.style.width, "  ", "  ");
            let t = self.style.dim(&t);
            self.line(&t);
        }
        if p.findings.is_empty() {
            self.wrapped(&p.summary(), "  ", "  ");
        }
        if let (Some(a), true) = (&p.asked, self.style.verbose) {
            self.wrapped(&format!("model facts: {}", a.model_source), "  ", "  ");
        }
    }

    fn findings(&mut self, p: &Preflight) {
        for f in &p.findings {
            self.wrapped(&format!("{}: {}", word(f.outcome), f.what), "  ", "    ");
            if let Some(settle) = &f.settle {
                let t = wrap(&printable(settle), self.style.width, "      → ", "        ");
                let t = self.style.dim(&t);
                self.line(&t);
            }
        }
    }

    fn devices(&mut self, p: &Preflight) {
        if p.gpus.is_empty() {
            return;
        }
        let mut about = Vec::new();
        about.extend(p.driver.version.as_ref().map(|v| format!("driver {v}")));
        about.extend(p.driver.cuda.map(|(a, b)| format!("CUDA {a}.{b}")));
        if !p.chosen_by.starts_with("all") {
            about.push(shorten(&p.chosen_by, LONGEST).into_owned());
        }
        self.heading(printable(&format!("GPUs  {}", about.join(", "))).trim_end());
        // Those that it takes, whatever their number; of the others a few.
        let few = self.limit(FEW);
        let others = p.gpus.iter().filter(|r| !r.taken);
        let left = others.clone().count().saturating_sub(few);
        for row in p.gpus.iter().filter(|r| r.taken).chain(others.take(few)) {
            self.device(row);
        }
        if left > 0 {
            self.line(&format!("  {left} more with -v"));
        }
        if let Some(m) = p.gpus.iter().find_map(|r| r.message.as_ref().filter(|_| r.taken)) {
            self.line("  the engine would print:");
            for line in m.lines() {
                self.wrapped(line, "  > ", "    ");
            }
        }
    }

    fn device(&mut self, row: &GpuRow) {
        let name = printable(&shorten(&row.name, LONGEST)).into_owned();
        let known =
            row.card.as_ref().filter(|c| **c != row.name).map_or(String::new(), |c| format!(" ({c})"));
        let unit = if row.mig { format!(" {}", shorten(&row.uuid, 12)) } else { String::new() };
        let not = if row.taken { "" } else { ", not taken" };
        self.line(&format!(
            "  {}{}  {name}{}  {}{not}",
            row.index,
            printable(&unit),
            printable(&known),
            word(row.outcome)
        ));
        let need =
            row.need.filter(|_| row.taken).map_or(String::new(), |n| format!(", {} needed", amount(n)));
        self.wrapped(
            &format!("{} of {} free{need}", or_unknown(row.free), or_unknown(row.total)),
            "     ",
            "     ",
        );
        let few = self.limit(FEW);
        for h in row.holders.iter().take(few) {
            self.wrapped(&held(h), "     · ", "       ");
        }
        if row.holders.len() > few {
            self.line(&format!("     · {} more with -v", row.holders.len() - few));
        }
        if let Some(u) = row.unexplained {
            let what = match u.kind {
                UnexplainedKind::Orphan => "used by no process: an orphaned context",
                UnexplainedKind::NotVisible => "used by processes not visible from this PID namespace",
                UnexplainedKind::Unsure => "unexplained",
            };
            self.wrapped(&format!("{} {what}", u.bytes), "     · ", "       ");
        }
    }

    fn ram(&mut self, p: &Preflight) {
        let h = &p.host;
        self.heading("RAM");
        if let Some(need) = h.need {
            self.line(&format!("  need      {}", amount(need)));
        }
        let limit = match &h.limit {
            MemoryLimit::At { bytes, source, held } => {
                let held = if held.0 > 0 { format!(", {held} of it in use") } else { String::new() };
                format!("{bytes} ({source}){held}")
            }
            MemoryLimit::Unlimited { source } => format!("none ({source})"),
            MemoryLimit::Untold { own: Some(own) } => format!(
                "unknown ({own} is the limit of this \
            container)"
            ),
            MemoryLimit::Untold { own: None } => "not told".into(),
        };
        self.wrapped(&limit, "  limit     ", "            ");
        self.line(&format!(
            "  machine   {} of {} available",
            or_unknown(h.machine_available),
            or_unknown(h.machine_total)
        ));
        let need = h.shm_need.filter(|q| q.high > 0);
        let need = need.map_or(String::new(), |q| format!("; {} to {} needed", Bytes(q.low), Bytes(q.high)));
        let shm = match h.shm {
            Some(s) => format!("{} of {} in use ({}){need}", s.used, s.size, h.shm_source),
            None => format!("unknown ({}){need}", h.shm_source),
        };
        self.wrapped(&shm, "  /dev/shm  ", "            ");
    }

    fn would_fit(&mut self, p: &Preflight) {
        if p.changes.is_empty() {
            return;
        }
        self.heading("One of these changes would make it fit");
        for c in &p.changes {
            let bold = self.style.bold(&printable(&c.change));
            self.line(&format!("  • {bold}"));
            self.wrapped(&format!("= {}", c.because), "      ", "        ");
        }
    }

    fn open(&mut self, p: &Preflight) {
        let hidden = p.pids != Pids::Host && !p.gpus.is_empty();
        if p.unknown.is_empty() && !hidden {
            return;
        }
        self.heading("Unknown");
        let few = self.limit(FEW);
        for u in p.unknown.iter().take(few) {
            self.wrapped(&u.what, "  ? ", "    ");
            if self.style.verbose {
                let t = wrap(&printable(&u.settle), self.style.width, "      settle: ", "        ");
                let t = self.style.dim(&t);
                self.line(&t);
            }
        }
        if p.unknown.len() > few {
            self.line(&format!("  ? {} more with -v", p.unknown.len() - few));
        }
        if hidden {
            self.wrapped(
                "the processes on the GPU: the driver reports host PIDs, and this is another PID \
                namespace; use hostPID: true or --host-proc",
                "  ? ",
                "    ",
            );
        }
    }
}

/// `VLLM::Worker  pid 4711, started 3 h ago, 39.10 GiB, pod serving/old-0 container server`.
fn held(h: &Held) -> String {
    let h = &h.holder;
    let life = match h.life {
        Life::Runs => None,
        Life::Ended => Some("ended but not reaped: an orphan"),
        Life::Gone => Some("no longer exists: an orphaned context"),
        Life::NotVisible => Some("not visible from this PID namespace"),
    };
    let mut parts = vec![format!("pid {}", h.pid)];
    parts.extend(life.map(str::to_owned));
    parts.extend(h.age_seconds.map(|s| format!("started {} ago", age(s))));
    parts.push(h.used.map_or_else(|| "memory unknown".to_owned(), |b| b.to_string()));
    parts.extend(owner(h));
    match h.comm.as_deref().filter(|c| !c.is_empty()) {
        Some(comm) => format!("{comm}  {}", parts.join(", ")),
        None => parts.join(", "),
    }
}
