//! Checks that need no baseline: headroom, stability, what the load covered, and what clients saw.

use dualplane_base::text::counted;
use dualplane_base::units::Bytes;

use super::policy::Policy;
use super::{Check, Named, Outcome, runs, without_cards};
use crate::document::{Distribution, PlaneFigures, Run};
use crate::show;

/// All that the policy asks for.
pub(super) fn checks(policy: &Policy, candidate: &[Named]) -> Vec<Check> {
    let mut out = Vec::new();
    enough(policy, candidate, &mut out);
    headroom(policy, candidate, &mut out);
    stability(policy, candidate, &mut out);
    worst_case(policy, candidate, &mut out);
    slo(policy, candidate, &mut out);
    out
}

/// A check of a value of each run: the worst of them decides, and one that is missing shows nothing.
struct Worst<'a> {
    id: &'a str,
    asked: String,
    /// How to get what is missing.
    missing: &'a str,
}

impl Worst<'_> {
    /// `bad` is larger for what is worse; `holds` decides on it, and `found` says it.
    fn of(
        self,
        files: &[Named],
        bad: impl Fn(&Named, &Run) -> Option<f64>,
        holds: impl Fn(f64) -> bool,
        found: impl Fn(f64) -> String,
    ) -> Check {
        let all: Vec<(&Named, &Run, Option<f64>)> = runs(files).map(|(f, r)| (f, r, bad(f, r))).collect();
        let worst = all.iter().filter_map(|(f, r, v)| Some((f, r, (*v)?))).max_by(|a, b| a.2.total_cmp(&b.2));
        let without = all.iter().filter(|(_, _, v)| v.is_none()).count();
        let (outcome, text, file) = match worst {
            Some((f, r, v)) if !holds(v) => {
                (Outcome::Fail, format!("{} in run {}", found(v), r.name), Some(f.file.clone()))
            }
            Some((f, _, v)) if without == 0 => (Outcome::Pass, found(v), Some(f.file.clone())),
            Some((_, _, v)) => {
                let text = format!(
                    "{}, and {} without it: {}",
                    found(v),
                    counted(without as u64, "run"),
                    self.missing
                );
                (Outcome::NotShown, text, None)
            }
            None => (Outcome::NotShown, format!("no run holds it: {}", self.missing), None),
        };
        Check { id: self.id.to_owned(), outcome, asked: self.asked, found: text, difference: None, file }
    }
}

fn enough(policy: &Policy, files: &[Named], out: &mut Vec<Check>) {
    if let Some(least) = policy.runs.candidate {
        out.push(enough_runs("runs.candidate", least, files));
    }
    if let Some(least) = policy.runs.seconds {
        let w = Worst {
            id: "runs.seconds",
            asked: format!("each run measures at least {}", show::seconds(least)),
            missing: "measure longer",
        };
        // A run that was cut short measured what it did, and may have missed its end.
        let bad = |_: &Named, r: &Run| Some(-r.measured_seconds);
        let mut check =
            w.of(files, bad, |v| -v >= least, |v| format!("the shortest is {}", show::seconds(-v)));
        if check.outcome == Outcome::Fail {
            check.outcome = Outcome::NotShown;
        }
        out.push(check);
    }
}

/// Too few runs show too little.
pub(super) fn enough_runs(id: &str, least: u32, files: &[Named]) -> Check {
    let n = runs(files).count();
    Check {
        id: id.to_owned(),
        outcome: if n >= least as usize { Outcome::Pass } else { Outcome::NotShown },
        asked: format!("at least {}", counted(u64::from(least), "run")),
        found: counted(n as u64, "run"),
        difference: None,
        file: files.first().map(|f| f.file.clone()),
    }
}

fn none_without_cards(files: &[Named], check: Check) -> Check {
    if check.outcome == Outcome::NotShown && without_cards(files) {
        let found = "the server had no card".to_owned();
        return Check { outcome: Outcome::NotApplicable, found, ..check };
    }
    check
}

fn headroom(policy: &Policy, files: &[Named], out: &mut Vec<Check>) {
    let h = &policy.headroom;
    let limit_of = |f: &Named, p: &PlaneFigures| p.limit_bytes.or(f.measure.hardware.memory_limit_bytes);
    if let Some(free) = h.host {
        let limit = |f: &Named, r: &Run| {
            let own = r.host.as_ref().and_then(|p| limit_of(f, p)).or(f.measure.hardware.memory_limit_bytes);
            h.host_limit.map(|m| m.0.0).or(own)
        };
        let w = Worst {
            id: "headroom.host",
            asked: format!("at least {} of the memory limit stay free at the peak", show::share(free)),
            missing: "measure in a container with a memory limit, or name the limit as headroom.host_limit",
        };
        let used = |f: &Named, r: &Run| share(r.host.as_ref()?.peak_bytes?, limit(f, r)?);
        let most =
            runs(files).filter_map(|(f, r)| Some((used(f, r)?, r.host.as_ref()?.peak_bytes?, limit(f, r)?)));
        let most = most.max_by(|a, b| a.0.total_cmp(&b.0));
        out.push(w.of(files, used, |v| 1.0 - v >= free, |v| free_words(v, most)));
    }
    if let Some(free) = h.vram {
        let limit = |r: &Run| r.vram.as_ref().and_then(|p| p.limit_bytes);
        let w = Worst {
            id: "headroom.vram",
            asked: format!("at least {} of the cards' memory stay free at the peak", show::share(free)),
            missing: "measure where the cards' memory can be read (NVML, DCGM's exporter)",
        };
        let used = |_: &Named, r: &Run| share(r.vram.as_ref()?.peak_bytes?, limit(r)?);
        let most =
            runs(files).filter_map(|(f, r)| Some((used(f, r)?, r.vram.as_ref()?.peak_bytes?, limit(r)?)));
        let most = most.max_by(|a, b| a.0.total_cmp(&b.0));
        out.push(none_without_cards(files, w.of(files, used, |v| 1.0 - v >= free, |v| free_words(v, most))));
    }
    if let Some(free) = h.kv {
        let w = Worst {
            id: "headroom.kv",
            asked: format!("at least {} of the KV cache stay free", show::share(free)),
            missing: "measure with the engine's own metrics",
        };
        let used = |_: &Named, r: &Run| r.kv.as_ref()?.high_water_share;
        out.push(w.of(
            files,
            used,
            |v| 1.0 - v >= free,
            |v| format!("{} free at its fullest", show::share(1.0 - v)),
        ));
    }
}

fn share(used: u64, limit: u64) -> Option<f64> {
    (limit > 0).then(|| used as f64 / limit as f64)
}

fn free_words(used: f64, most: Option<(f64, u64, u64)>) -> String {
    let of = most.map(|(_, peak, limit)| format!(": a peak of {} of {}", Bytes(peak), Bytes(limit)));
    let free = if used <= 1.0 {
        format!("{} free", show::share(1.0 - used))
    } else {
        "more than all of it".to_owned()
    };
    format!("{free}{}", of.unwrap_or_default())
}

fn stability(policy: &Policy, files: &[Named], out: &mut Vec<Check>) {
    let s = &policy.stability;
    if let Some(most) = s.restarts {
        let w = Worst {
            id: "stability.restarts",
            asked: match most {
                0 => "no restart".to_owned(),
                n => format!("at most {}", counted(u64::from(n), "restart")),
            },
            missing: "measure where the server's end is seen: a pod, a process that measure starts, or its cgroup",
        };
        let all: u64 = runs(files).filter_map(|(_, r)| r.restarts.as_ref()).map(|r| r.len() as u64).sum();
        let why: Vec<String> = runs(files)
            .flat_map(|(_, r)| r.restarts.iter().flatten())
            .map(|r| r.class.clone().unwrap_or_else(|| "no verdict".to_owned()))
            .collect();
        let bad = |_: &Named, r: &Run| r.restarts.as_ref().map(|l| l.len() as f64);
        // All runs together count, not the worst of them.
        let found = |_: f64| match why.first() {
            None => "none".to_owned(),
            Some(_) => format!("{}: {}", counted(all, "restart"), why.join(", ")),
        };
        out.push(w.of(files, bad, |_| all <= u64::from(most), found));
    }
    if let Some(allowed) = &s.xids_allowed {
        let w = Worst {
            id: "stability.xids",
            asked: match allowed.is_empty() {
                true => "no Xid".to_owned(),
                false => format!("no Xid but {}", numbers(allowed)),
            },
            missing: "measure where the kernel's log can be read",
        };
        let others = |r: &Run| {
            let all = r.gpu_faults.as_ref()?.xids.as_ref()?;
            Some(all.iter().copied().filter(|x| !allowed.contains(x)).collect::<Vec<u32>>())
        };
        let seen: Vec<u32> = runs(files).filter_map(|(_, r)| others(r)).flatten().collect();
        let bad = |_: &Named, r: &Run| others(r).map(|o| o.len() as f64);
        let found = |n: f64| if n > 0.0 { format!("Xid {}", numbers(&seen)) } else { "none".to_owned() };
        out.push(none_without_cards(files, w.of(files, bad, |n| n < 1.0, found)));
    }
    if let Some(most) = s.ecc_uncorrected {
        let w = Worst {
            id: "stability.ecc",
            asked: format!("at most {}", counted(most, "uncorrected memory error")),
            missing: "measure where the cards' counters can be read (NVML)",
        };
        let bad = |_: &Named, r: &Run| r.gpu_faults.as_ref()?.ecc_uncorrected.map(|n| n as f64);
        let found = |n: f64| counted(n as u64, "uncorrected memory error");
        out.push(none_without_cards(files, w.of(files, bad, |n| n <= most as f64, found)));
    }
    if let Some(most) = s.preemptions {
        let w = Worst {
            id: "stability.preemptions",
            asked: format!("at most {}", counted(most, "preemption")),
            missing: "measure with the engine's own metrics",
        };
        let all: u64 = runs(files).filter_map(|(_, r)| r.kv.as_ref()?.preemptions).sum();
        let bad = |_: &Named, r: &Run| r.kv.as_ref()?.preemptions.map(|n| n as f64);
        out.push(w.of(files, bad, |_| all <= most, |_| counted(all, "preemption")));
    }
    if let Some(most) = s.drift_per_hour {
        drift("stability.drift_host", most.0, files, |r| r.host.as_ref(), out);
        let mut own = Vec::new();
        drift("stability.drift_vram", most.0, files, |r| r.vram.as_ref(), &mut own);
        out.extend(own.into_iter().map(|c| none_without_cards(files, c)));
    }
}

fn numbers(all: &[u32]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Growth that the estimator calls so, and more than is tolerated. A run in which page cache is counted shows nothing where it
/// grows: the cache may.
fn drift<'a>(
    id: &str,
    most: Bytes,
    files: &'a [Named],
    plane: impl Fn(&'a Run) -> Option<&'a PlaneFigures>,
    out: &mut Vec<Check>,
) {
    let asked = format!("grows by at most {most} an hour while it serves");
    let check =
        |outcome, found, file| Check { id: id.to_owned(), outcome, asked, found, difference: None, file };
    let (mut worst, mut clear, mut unsure, mut missing) =
        (None::<(&Named, &Run, f64)>, None::<f64>, 0_u64, 0_u64);
    for (f, r) in runs(files) {
        let Some((p, d)) = plane(r).and_then(|p| Some((p, p.drift?))) else {
            missing += 1;
            continue;
        };
        let grows = d.grows && d.bytes_per_hour > most.0 as f64;
        if grows && p.without_page_cache == Some(false) {
            unsure += 1;
        } else if grows && worst.is_none_or(|(_, _, w)| d.bytes_per_hour > w) {
            worst = Some((f, r, d.bytes_per_hour));
        } else if !grows {
            // What is not ruled out is not shown to be clean; one long run that rules it out speaks for its build.
            clear = Some(clear.map_or(d.high_bytes_per_hour, |c: f64| c.min(d.high_bytes_per_hour)));
        }
    }
    let by_hour = |v: f64| Bytes::from_f64(v.max(0.0)).to_string();
    out.push(match (worst, clear) {
        (Some((f, r, v)), _) => {
            let limit = plane(r).and_then(|p| Some(p.limit_bytes?.saturating_sub(p.peak_bytes?)));
            let until = limit.map(|left| format!("; {} of limit are left for {:.0} h", Bytes(left), left as f64 / v));
            let found = format!("grows by {} an hour in run {}{}", by_hour(v), r.name, until.unwrap_or_default());
            check(Outcome::Fail, found, Some(f.file.clone()))
        }
        (None, _) if unsure > 0 => {
            let found = "it grows, and page cache is counted in it: measure where memory.stat of the container can be read";
            check(Outcome::NotShown, found.to_owned(), None)
        }
        (None, Some(high)) if high <= most.0 as f64 => {
            check(Outcome::Pass, format!("at most {} an hour", by_hour(high)), None)
        }
        (None, Some(high)) => {
            let found = format!("up to {} an hour are not ruled out: measure one run longer", by_hour(high));
            check(Outcome::NotShown, found, None)
        }
        (None, None) => {
            let found = format!("{} without it: measure for some minutes at least", counted(missing, "run"));
            check(Outcome::NotShown, found, None)
        }
    });
}

fn worst_case(policy: &Policy, files: &[Named], out: &mut Vec<Check>) {
    let w = &policy.worst_case;
    let mut covers = |id: &str, what: &str, least: Option<f64>, most: Option<f64>, missing: &str| {
        let Some(least) = least else { return };
        let (outcome, found) = match most {
            Some(m) if m >= least => (Outcome::Pass, format!("{} {what}", show::number(m))),
            Some(m) => (Outcome::NotShown, format!("{} {what} only: {missing}", show::number(m))),
            None => (Outcome::NotShown, format!("the report does not say: {missing}")),
        };
        let asked = format!("at least {} {what}", show::number(least));
        out.push(Check { id: id.to_owned(), outcome, asked, found, difference: None, file: None });
    };
    let shapes = || files.iter().filter_map(|f| f.measure.shape.as_ref());
    let most = |v: Option<u64>| v.map(|v| v as f64);
    let inputs = most(shapes().filter_map(|s| s.longest_input_tokens).max());
    let outputs = most(shapes().filter_map(|s| s.longest_output_tokens).max());
    let missing = "measure with a shape that holds such requests";
    covers("worst_case.input_tokens", "tokens of input", most(w.input_tokens), inputs, missing);
    covers("worst_case.output_tokens", "tokens of output", most(w.output_tokens), outputs, missing);
    let at_a_time = runs(files).filter_map(|(_, r)| r.load.concurrency).max().map(f64::from);
    let missing = "measure with more of them";
    covers(
        "worst_case.concurrency",
        "requests at the same time",
        w.concurrency.map(f64::from),
        at_a_time,
        missing,
    );
    let rate = runs(files).filter_map(|(_, r)| r.load.rate).reduce(f64::max);
    covers("worst_case.rate", "requests a second", w.rate, rate, missing);
    for mode in &w.modes {
        let used = runs(files).find(|(_, r)| r.load.mode == *mode);
        out.push(Check {
            id: format!("worst_case.mode.{mode}"),
            outcome: if used.is_some() { Outcome::Pass } else { Outcome::NotShown },
            asked: format!("a run with a load of `{mode}`"),
            found: used
                .map_or_else(|| "no run has it: measure one".to_owned(), |(_, r)| format!("run {}", r.name)),
            difference: None,
            file: used.map(|(f, _)| f.file.clone()),
        });
    }
}

fn slo(policy: &Policy, files: &[Named], out: &mut Vec<Check>) {
    let s = &policy.slo;
    type Get = fn(&Run) -> Option<&Distribution>;
    let times: [(&str, &str, Option<f64>, Get); 3] = [
        ("slo.ttft_p99", "to the first token", s.ttft_p99, |r| r.ttft.as_ref()),
        ("slo.itl_p99", "between two tokens", s.itl_p99, |r| r.itl.as_ref()),
        ("slo.e2e_p99", "of a request", s.e2e_p99, |r| r.e2e.as_ref()),
    ];
    for (id, what, most, get) in times {
        let Some(most) = most else { continue };
        let w = Worst {
            id,
            asked: format!("p99 {what} is at most {}", show::seconds(most)),
            missing: "measure with a load",
        };
        out.push(w.of(files, |_, r| get(r).map(|d| d.p99), |v| v <= most, show::seconds));
    }
    if let Some(most) = s.errors {
        let w = Worst {
            id: "slo.errors",
            asked: format!("at most {} of requests fail", show::share(most)),
            missing: "measure with a load",
        };
        let bad = |_: &Named, r: &Run| {
            let q = r.requests.as_ref().filter(|q| q.sent > 0)?;
            Some(q.failures() as f64 / q.sent as f64)
        };
        let reasons: Vec<String> = runs(files)
            .filter_map(|(_, r)| r.requests.as_ref()?.failed.first())
            .map(|f| f.reason.clone())
            .take(1)
            .collect();
        let found = |v: f64| match (v > 0.0, reasons.first()) {
            (true, Some(reason)) => format!("{} fail, {reason} first", show::share(v)),
            (true, None) => format!("{} fail", show::share(v)),
            _ => "none fail".to_owned(),
        };
        out.push(w.of(files, bad, |v| v <= most, found));
    }
    if let Some(least) = s.good {
        let w = Worst {
            id: "slo.good",
            asked: format!("at least {} of requests are good", show::share(least)),
            missing: "measure with an SLO (--slo)",
        };
        let bad = |_: &Named, r: &Run| {
            let q = r.requests.as_ref()?;
            let counted = q.sent.saturating_sub(q.cancelled);
            (counted > 0).then_some(-(q.good? as f64) / counted as f64)
        };
        out.push(w.of(files, bad, |v| -v >= least, |v| format!("{} are good", show::share(-v))));
    }
    if let Some(least) = s.goodput {
        let w = Worst {
            id: "slo.goodput",
            asked: format!("at least {} good requests a second", show::number(least)),
            missing: "measure with an SLO (--slo)",
        };
        let bad = |_: &Named, r: &Run| r.throughput.as_ref()?.good_requests_per_second.map(|v| -v);
        out.push(w.of(
            files,
            bad,
            |v| -v >= least,
            |v| format!("{} good requests a second", show::number(-v)),
        ));
    }
}
