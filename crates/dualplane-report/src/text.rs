//! One screen for a tired person at 3 am: plane, first line, why, what to change; `-v` for every citation.

use super::Report;
use super::headline::{Headline, headline};
use super::{about, budget, changes, memory};
use crate::actions::{Action, Stage};
use crate::page::Page;
use crate::runbook;
use crate::words::{Cause, Citation};
use dualplane_base::style::{Style, hard_wrap, wrap};
use dualplane_base::text::{counted, name, printable, shorten, without_kubelet_time};
use dualplane_core::verdict::rules::UNDER_PRESSURE;
use dualplane_core::verdict::{Step, Trigger};

/// Without `-v`: citations of a cause, actions of a stage, commands of an action.
const FEW: usize = 3;
/// Without `-v`: causes, kinds of fallout, missing things.
const FEWER: usize = 2;
/// Without `-v`: fields that a roll-out changed.
const MANY: usize = 8;

/// Renders one report.
#[must_use]
pub fn text(report: &Report, style: Style) -> String {
    let mut w = Page::new(style);
    w.head(report);
    w.memory_now(report);
    w.trigger(report);
    w.sequence(report);
    w.others(report);
    // What binds a server that lives is told with its memory; the causes only repeat it.
    if style.verbose || report.verdict.decided_by != UNDER_PRESSURE {
        w.causes(report);
    }
    w.budget(report);
    w.changes(report);
    w.actions(report);
    w.missing(report);
    w.footer(report);
    w.finish()
}

impl Page {
    fn head(&mut self, r: &Report) {
        let v = &r.verdict;
        let Headline { plane, badge, class } = headline(r);
        let head = format!(
            "{}  {}  {}",
            self.style.plane(plane, &badge),
            self.style.bold(class),
            self.style.dim(&format!("phase {}, confidence {}", v.phase, v.confidence))
        );
        self.line(&head);
        self.wrapped(&v.summary, "  ", "  ");
        let s = &v.subject;
        let mut about = Vec::new();
        about.extend(about::pod(r).map(|pod| format!("pod {pod}")));
        if let Some(c) = &s.container {
            about.push(format!("container {}", name(c)));
        }
        if let Some(n) = &s.node {
            about.push(format!("node {}", name(n)));
        }
        about.extend(about::engine(r));
        if let Some(d) = &s.death {
            about.push(d.short());
        }
        if let Some(n) = s.restarts.filter(|n| *n > 0) {
            // Of a loop it matters which death this is.
            let at = s.death.as_ref().and_then(|d| d.finished);
            about.extend(at.map(|at| format!("ended {}", at.show())));
            about.push(counted(n, "restart"));
        }
        if !about.is_empty() {
            let t = wrap(&printable(&about.join(" · ")), self.style.width, "  ", "  ");
            let t = self.style.dim(&t);
            self.line(&t);
        }
    }

    fn memory_now(&mut self, r: &Report) {
        let Some(p) = &r.verdict.pressure else { return };
        self.heading("Memory against its limits");
        for line in memory::readings(p) {
            self.wrapped(&line, "  ", "    ");
        }
        if let Some((bound, list)) = memory::focus(p) {
            self.line(&format!("  {bound}"));
            for (i, what) in list.iter().enumerate() {
                self.wrapped(what, &format!("    {}. ", i + 1), "       ");
            }
        }
    }

    fn trigger(&mut self, r: &Report) {
        let Some(t) = &r.verdict.trigger else { return };
        self.heading("First error");
        let at = place(t);
        let at = self.style.dim(&at);
        self.line(&format!("  {at}"));
        let max = if self.style.verbose { usize::MAX } else { self.style.width.saturating_mul(3) };
        let shown = printable(&shorten(without_kubelet_time(t.text.trim_end()), max)).into_owned();
        // Blanks of a quoted line stay as they are: it is cut by columns, not at words.
        let shown = hard_wrap(&shown, self.style.width.saturating_sub(4), "  > ", "    ");
        self.line(&shown);
    }

    /// What the launch should take beside what it held, and what may have made the difference.
    fn budget(&mut self, r: &Report) {
        let lines = budget::lines(&r.budget, &r.verdict);
        if !lines.is_empty() {
            self.heading("Expected memory");
        }
        for line in lines {
            self.wrapped(&line, "  ", "    ");
        }
        let suspects = &r.budget.suspects;
        if suspects.is_empty() {
            return;
        }
        self.heading("Suspects");
        let shown = if self.style.verbose { suspects.len() } else { FEW };
        for (i, s) in suspects.iter().take(shown).enumerate() {
            let size = s.bytes.map(|b| format!(" [{b}]")).unwrap_or_default();
            self.wrapped(&format!("{}{size}", s.what), &format!("  {}. ", i + 1), "     ");
            for b in &s.because {
                self.wrapped(b, "     + ", "       ");
            }
        }
    }

    fn sequence(&mut self, r: &Report) {
        let v = &r.verdict;
        let (followed, beside): (Vec<&Step>, Vec<&Step>) = v.sequence.iter().skip(1).partition(|s| s.follows);
        let said = |s: &Step| {
            let at = s.trigger.as_ref().map(|t| format!(" ({})", place(t))).unwrap_or_default();
            format!("{}: {}{at}", s.class, s.what)
        };
        if !beside.is_empty() {
            self.heading("Before or beside it");
        }
        for step in beside {
            self.wrapped(&said(step), "  · ", "    ");
        }
        if !followed.is_empty() || !v.cascade.is_empty() {
            // Without a first error nothing followed of one.
            self.heading(if r.verdict.trigger.is_some() { "What followed" } else { "What else it printed" });
        }
        for step in followed {
            self.wrapped(&said(step), "  → ", "    ");
        }
        let total: u64 = v.cascade.iter().map(|c| c.count).sum();
        for c in v.cascade.iter().take(self.limit(FEWER)) {
            let times = if c.count == 1 { String::new() } else { format!("{}× ", c.count) };
            let line = c.first.line.map_or(String::new(), |l| format!(":{l}"));
            self.wrapped(&format!("{times}{} [{}{line}]", c.meaning, c.first.file), "  · ", "    ");
        }
        if v.cascade.len() > self.limit(FEWER) {
            let t = self.style.dim(&format!(
                "    {} of {} in total; -v lists them",
                counted(total, "fallout line"),
                counted(v.cascade.len(), "kind")
            ));
            self.line(&t);
        }
    }

    fn others(&mut self, r: &Report) {
        let others = &r.verdict.others;
        if others.is_empty() {
            return;
        }
        self.heading("Other containers of the pod that failed");
        for o in others {
            let line = format!("{}: {} ({}), {}", name(&o.container), o.class, o.confidence, o.summary);
            self.wrapped(&printable(&line), "  · ", "    ");
        }
    }

    fn causes(&mut self, r: &Report) {
        self.heading("Why");
        let (kept, rejected): (Vec<&Cause>, Vec<&Cause>) = r.causes.iter().partition(|c| !c.rejected);
        for (i, c) in kept.iter().take(self.limit(FEWER)).enumerate() {
            self.wrapped(&format!("{} [{}]", c.title, c.confidence), &format!("  {}. ", i + 1), "     ");
            self.cites(&c.supports, "+", true);
            self.cites(&c.against, "-", false);
        }
        for c in rejected.iter().take(self.limit(1)) {
            let text = c.against.iter().map(|a| a.text.as_str()).collect::<Vec<_>>().join("; ");
            // What was ruled out beneath the same class is told by its own name.
            let what = if c.class == r.verdict.class { c.title.clone() } else { c.class.to_string() };
            self.wrapped(&format!("not {what}: {text}"), "  ✗ ", "    ");
        }
    }

    fn changes(&mut self, r: &Report) {
        for rollout in r.bundle.rollouts.iter().filter(|r| !r.changes.is_empty()) {
            self.heading("Changed before");
            self.wrapped(&changes::headline(r, rollout), "  ", "    ");
            for c in rollout.changes.iter().take(self.limit(MANY)) {
                self.wrapped(&changes::change(c), "  · ", "    ");
            }
            if rollout.changes.len() > self.limit(MANY) {
                let t = self.style.dim(&format!("    {} more with -v", rollout.changes.len() - MANY));
                self.line(&t);
            }
        }
    }

    fn cites(&mut self, cites: &[Citation], sign: &str, good: bool) {
        let sign = if good { self.style.good(sign) } else { self.style.bad(sign) };
        let max = self.limit(200);
        for c in cites.iter().take(self.limit(FEW)) {
            let at = c.place.as_ref().map_or(String::new(), |p| match p.line {
                Some(l) => format!(" [{}:{l}]", p.file),
                None => format!(" [{}]", p.file),
            });
            let body = format!("{}{at}", shorten(without_kubelet_time(&c.text), max));
            let t = wrap(&printable(&body), self.style.width, "       ", "       ");
            // The sign may carry colour codes, which take no columns: it goes in after wrapping.
            self.line(&format!("     {sign} {}", t.trim_start()));
        }
    }

    fn actions(&mut self, r: &Report) {
        for stage in Stage::ALL {
            let of_stage: Vec<&Action> = r.actions.iter().filter(|a| a.stage == stage).collect();
            // One screen: what comes after the night is in -v and in the hand-over note.
            let later = stage == Stage::Prevent && !self.style.verbose;
            if of_stage.is_empty() || later {
                continue;
            }
            self.heading(stage.title());
            for a in of_stage.iter().take(self.limit(FEW)) {
                self.wrapped(&a.title, "  • ", "    ");
                for because in a.arithmetic.iter().take(self.limit(FEW)) {
                    let t = wrap(&printable(because), self.style.width, "      = ", "        ");
                    let t = self.style.dim(&t);
                    self.line(&t);
                }
                for command in
                    a.commands.iter().take(self.limit(if stage == Stage::Verify { 1 } else { FEW }))
                {
                    // Commands are never wrapped: they are copied.
                    let command = printable(command).into_owned();
                    self.line(&format!("      $ {command}"));
                }
                if let Some(patch) = a.patch.as_ref().filter(|_| self.style.verbose) {
                    for line in patch.lines() {
                        let line = printable(line).into_owned();
                        self.line(&format!("      | {line}"));
                    }
                }
            }
            if of_stage.len() > self.limit(FEW) {
                let t = self.style.dim(&format!("    {} more with -v", of_stage.len() - FEW));
                self.line(&t);
            }
        }
    }

    fn footer(&mut self, r: &Report) {
        self.out.push('\n');
        let t = self.style.dim(&format!("Runbook: {}", runbook::command(r.verdict.class)));
        self.line(&t);
        if !self.style.verbose {
            let t = wrap(&footer_text(r), self.style.width, "", "");
            let t = self.style.dim(&t);
            self.line(&t);
        }
    }

    fn missing(&mut self, r: &Report) {
        let missing = &r.verdict.missing;
        if missing.is_empty() {
            return;
        }
        self.heading("Missing");
        for gap in missing.iter().take(self.limit(FEWER)) {
            self.wrapped(&format!("{}: {}", gap.what, gap.why), "  ? ", "    ");
            if let Some(c) = &gap.command {
                let c = printable(c).into_owned();
                self.line(&format!("      $ {c}"));
            }
        }
        if missing.len() > self.limit(FEWER) {
            let t = self.style.dim(&format!("    {} more with -v", missing.len() - FEWER));
            self.line(&t);
        }
    }
}

fn footer_text(report: &Report) -> String {
    let cites: usize = report.causes.iter().map(|c| c.supports.len() + c.against.len()).sum();
    format!(
        "-v: {}, {} and patches; -o markdown: hand-over note; -o json: for programs",
        counted(cites, "citation"),
        counted(report.actions.len(), "action")
    )
}

fn place(t: &Trigger) -> String {
    let line = t.place.line.map_or(String::new(), |l| format!(":{l}"));
    let time = t.stamp.map_or(String::new(), |s| format!("  {}", s.show()));
    printable(&format!("{}{line}{time}", t.place.file)).into_owned()
}
