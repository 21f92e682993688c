//! Where no fatal memory error is left: a symptom, something that is not memory, or an honest "unknown".

use super::candidates::{Candidate, Weight, end_phase};
use super::{Cited, Class, Confidence, Decided, Phase, Step, Subject, order, outside};
use crate::evidence::Bundle;
use crate::facts::{Facts, Hit, Place};
use crate::knowledge::Mark;

/// Decides between symptom, not memory and unknown.
pub(super) fn decide(bundle: &Bundle, facts: &Facts, all: &[Candidate], subject: &Subject) -> Decided {
    let symptom = order::symptom(all, facts);
    let survived = symptom.is_some_and(|c| c.survived);
    if let Some(mut d) = outside::ended_from_outside(bundle, facts, subject, survived) {
        if subject.death.as_ref().is_some_and(super::Death::oom_killed) {
            let place = Place { file: subject.file(bundle), line: None };
            d.confidence = Confidence::Medium;
            d.against.push(Cited::at(
                "reason OOMKilled: some process of the container was OOM-killed earlier in its life; the kernel log tells which and when",
                &place,
            ));
        }
        return d;
    }
    if let Some(d) = outside::did_not_start(facts, bundle, subject) {
        return d;
    }
    if let Some(d) = bus_error(bundle, facts, subject) {
        return d;
    }
    if survived && let Some(d) = outside::stopped_in_order(facts) {
        return d;
    }
    // The kernel saw the process crash as its exit code says: that is no pressure that it lived with.
    if let Some(d) = crashed(facts, subject) {
        return d;
    }
    let killed = symptom.is_some_and(|c| lives_with_it(c, subject));
    if let Some(c) = symptom.filter(|_| !killed) {
        return super::from_chain(std::slice::from_ref(c));
    }
    let mut d = other_failure(facts, subject)
        .or_else(|| outside::probe_loop(bundle, facts, subject))
        .or_else(|| unexplained_death(bundle, facts, subject))
        .unwrap_or_else(|| healthy(bundle, facts, subject));
    if let Some(c) = symptom {
        let what = c.what.trim_end_matches('.');
        let what = format!("{what}: an engine goes on with it, and nobody is killed over it");
        d.sequence.push(Step { class: c.class, phase: c.phase, what, trigger: c.trigger() });
    }
    d
}

/// A full KV cache makes requests wait or be put back; no SIGKILL comes of it.
fn lives_with_it(symptom: &Candidate, subject: &Subject) -> bool {
    symptom.class == Class::KvCacheCapacity
        && symptom.weight == Weight::Degraded
        && subject.death.as_ref().is_some_and(|d| d.exit_code == 137)
}

/// The kernel's line about an invalid access, and the exit code of SIGSEGV, SIGILL or SIGFPE (128 + signal).
fn crashed(facts: &Facts, subject: &Subject) -> Option<Decided> {
    let code = subject.death.as_ref().map(|d| d.exit_code).filter(|c| matches!(c, 139 | 132 | 136))?;
    let hit = facts.hits.iter().find(|h| h.mark == Mark::Failure && h.id.starts_with("kernel."))?;
    let supports = vec![
        Cited::at(crate::text::shorten(hit.text.trim(), 240), &hit.place),
        Cited::plain(format!("exit code {code}: signal {}", code - 128)),
    ];
    let phase = end_phase(facts);
    Some(decided(Class::NotMemory, phase, Confidence::High, hit.meaning.clone(), supports))
}

pub(super) fn decided(
    class: Class,
    phase: Phase,
    confidence: Confidence,
    summary: String,
    supports: Vec<Cited>,
) -> Decided {
    Decided {
        class,
        phase,
        confidence,
        trigger: None,
        sequence: vec![Step { class, phase, what: summary.clone(), trigger: None }],
        summary,
        supports,
        against: Vec::new(),
    }
}

/// Exit code 135 is SIGBUS: a mapped page could not be backed, in containers nearly always a full /dev/shm.
fn bus_error(bundle: &Bundle, facts: &Facts, subject: &Subject) -> Option<Decided> {
    let death = subject.death.as_ref().filter(|d| d.exit_code == 135)?;
    let pod = subject.pod_of(bundle)?;
    let container = pod.containers.iter().find(|c| Some(&c.name) == subject.container.as_ref())?;
    let place = Place { file: pod.file.clone(), line: None };
    let mut supports = vec![Cited::at(format!("exit code {} = 128 + SIGBUS (7)", death.exit_code), &place)];
    let has_shm = container.mounts.iter().any(|(_, p)| p == "/dev/shm");
    supports.push(Cited::at(
        if has_shm {
            "a volume is mounted at /dev/shm; compare its size with what the ranks share".to_owned()
        } else {
            "no volume is mounted at /dev/shm, so it has the runtime's default of 64 MiB".to_owned()
        },
        &place,
    ));
    let summary = "the process died of SIGBUS: a shared-memory page could not be backed";
    let confidence = if has_shm { Confidence::Low } else { Confidence::Medium };
    let mut d = decided(Class::HostAllocFailure, end_phase(facts), confidence, summary.into(), supports);
    d.against.push(Cited::plain("a truncated memory-mapped weights file ends in SIGBUS as well"));
    Some(d)
}

/// A cause that is not memory stands in a log.
fn other_failure(facts: &Facts, subject: &Subject) -> Option<Decided> {
    let failure = facts.hits.iter().find(|h| h.mark == Mark::Failure);
    // Behind a known failure a process that "died unexpectedly" died of it; before it, it did not.
    let death = facts.hits.iter().find(|h| h.mark == Mark::Death && !aborted(h));
    let killed = subject.death.as_ref().is_some_and(|d| d.exit_code == 137);
    if let Some(hit) = failure {
        let explains = death.is_none_or(|d| d.place.file != hit.place.file || d.place.line > hit.place.line);
        if explains && (!killed || ends_log(hit, facts)) {
            let supports = vec![Cited::at(crate::text::shorten(hit.text.trim(), 240), &hit.place)];
            return Some(decided(
                Class::NotMemory,
                phase_of(hit.phase, facts),
                Confidence::High,
                hit.meaning.clone(),
                supports,
            ));
        }
    }
    if death.is_some() {
        return None;
    }
    let sglang_kills_itself = facts.engine.is("sglang");
    if killed && !sglang_kills_itself {
        return None;
    }
    let exception = facts.exceptions.first()?;
    let summary = format!(
        "the traceback ends in {}, which is no memory error",
        crate::text::shorten(&exception.message, 160)
    );
    let supports = vec![Cited::at(crate::text::shorten(exception.text.trim(), 240), &exception.place)];
    let mut phase = phase_of(exception.phase, facts);
    // A module that cannot be imported is missed when the program begins.
    if phase == Phase::Unknown && matches!(exception.name.as_str(), "ImportError" | "ModuleNotFoundError") {
        phase = Phase::Load;
    }
    Some(decided(Class::NotMemory, phase, Confidence::Medium, summary, supports))
}

/// SIGABRT (-6, 134) is what a process sends itself; its reason stands elsewhere, also where this line prints first.
fn aborted(hit: &Hit) -> bool {
    ["code", "status", "signal"]
        .iter()
        .any(|g| hit.number(g).is_some_and(|n| n == -6.0 || n == 134.0 || n == 6.0))
}

fn phase_of(own: Phase, facts: &Facts) -> Phase {
    if own == Phase::Unknown { end_phase(facts) } else { own }
}

/// The failure stands near the end of its log: an early failed request does not explain a later SIGKILL.
fn ends_log(hit: &Hit, facts: &Facts) -> bool {
    let log = facts.logs.iter().find(|l| l.file == hit.place.file);
    hit.place.line.is_some_and(|line| log.is_none_or(|l| l.behind(line) <= 200))
}

/// Something died and nothing says why.
fn unexplained_death(bundle: &Bundle, facts: &Facts, subject: &Subject) -> Option<Decided> {
    let phase = end_phase(facts);
    let file = subject.file(bundle);
    let place = Place { file, line: None };
    if let Some(d) = subject.death.as_ref().filter(|d| !d.clean()) {
        let summary = match d.exit_code {
            137 => "exit code 137 is a SIGKILL; without OOMKilled, a kernel line or an event nothing says who sent it".to_owned(),
            143 => {
                let text = "exit code 143 is a SIGTERM: something asked the container to stop, and the OOM killer never sends it";
                return Some(decided(Class::NotMemory, phase, Confidence::Medium, "the container was asked to stop (SIGTERM)".into(), vec![Cited::at(text, &place)]));
            }
            139 => {
                let text = "exit code 139 is a SIGSEGV: a native crash, not memory capacity";
                return Some(decided(Class::NotMemory, phase, Confidence::Medium, "the process crashed (SIGSEGV)".into(), vec![Cited::at(text, &place)]));
            }
            code => format!("the container ended with exit code {code} and the evidence holds no line that says why"),
        };
        let supports = vec![Cited::at(format!("exit code {}, reason {}", d.exit_code, d.reason), &place)];
        return Some(decided(Class::Unknown, phase, Confidence::Low, summary, supports));
    }
    // The kubelet restarts something again and again, and nothing at hand says what it died of.
    let back_off = facts
        .object_hits
        .iter()
        .find(|h| h.mark == Mark::Cascade && h.text.starts_with("Back-off restarting"));
    if let Some(hit) = back_off.filter(|_| !facts.has_life()) {
        let supports = vec![Cited::at(hit.text.clone(), &hit.place)];
        let summary = "a container is restarted again and again, and nothing at hand says how it ends";
        return Some(decided(Class::Unknown, phase, Confidence::Low, summary.into(), supports));
    }
    let death = facts.hits.iter().find(|h| h.mark == Mark::Death);
    let wrapper = facts.hits.iter().find(|h| h.mark == Mark::Cascade && speaks_of_death(h));
    let hit = death.or(wrapper)?;
    let supports = vec![Cited::at(crate::text::shorten(hit.text.trim(), 240), &hit.place)];
    let summary = format!("{} Nothing in the evidence says why", end_sentence(&hit.meaning));
    Some(decided(Class::Unknown, phase_of(hit.phase, facts), Confidence::Low, summary, supports))
}

fn end_sentence(text: &str) -> String {
    let text = text.trim_end_matches('.');
    format!("{text}.")
}

/// Wrappers that only a failure prints, as opposed to notices of an orderly stop.
fn speaks_of_death(hit: &Hit) -> bool {
    ["Error", "error", "failed", "died", "dead", "fatal", "crash", "Exception"]
        .iter()
        .any(|w| hit.text.contains(w))
}

/// Nothing failed, as far as the evidence goes; without any log or object that is no finding.
fn healthy(bundle: &Bundle, facts: &Facts, subject: &Subject) -> Decided {
    let phase = end_phase(facts);
    let told =
        bundle.pods.iter().any(|p| p.containers.iter().any(|c| c.status.is_some()) || p.reason.is_some());
    if !facts.has_life() && !bundle.pods.is_empty() && !told && bundle.events.is_empty() {
        let summary = "the pod's object carries no status, so it says nothing of how it went";
        return decided(Class::Unknown, phase, Confidence::Low, summary.into(), Vec::new());
    }
    let objects = !bundle.pods.is_empty() || !bundle.events.is_empty() || !bundle.metrics.is_empty();
    let snapshots = snapshots(bundle);
    let silent = facts.hits.is_empty() && facts.exceptions.is_empty() && phase == Phase::Unknown;
    let alone = bundle.pods.is_empty() && bundle.events.is_empty() && !facts.logs.iter().any(|l| l.kernel);
    if alone && !snapshots.is_empty() && (silent || !facts.has_life()) {
        let summary =
            "what is at hand shows how memory stood at some moment, not whether or how anything ended";
        return decided(Class::Unknown, phase, Confidence::Low, summary.into(), snapshots);
    }
    let known = facts.hits.iter().any(|h| !matches!(h.mark, Mark::Cascade));
    if !facts.has_life() && !objects {
        return decided(
            Class::Unknown,
            Phase::Unknown,
            Confidence::Low,
            "there is no evidence to judge".into(),
            Vec::new(),
        );
    }
    // An end that nothing here knows is no health.
    let alarm = facts.logs.iter().find_map(|l| {
        let (line, text) = l.alarm.as_ref()?;
        (l.last_ready.is_none_or(|r| r < *line)).then_some((l, *line, text))
    });
    if let Some((log, line, text)) = alarm {
        let place = Place { file: log.file.clone(), line: Some(line) };
        let supports = vec![Cited::at(crate::text::shorten(text.trim(), 240), &place)];
        let summary = "the log tells of a violent end in words that are not known here";
        return decided(Class::Unknown, phase, Confidence::Low, summary.into(), supports);
    }
    let mut supports = Vec::new();
    for log in facts.logs.iter().filter(|l| l.lines > 0).take(4) {
        let what = if log.kernel {
            "kernel lines without an OOM kill or a GPU fault"
        } else {
            "log lines without a memory error or an abnormal end"
        };
        supports.push(Cited::at(
            format!("{} {what}", log.total()),
            &Place { file: log.file.clone(), line: None },
        ));
    }
    for x in facts.xids.iter().take(2) {
        supports.push(Cited::at(
            format!("Xid {} only cleans up or informs; it is a consequence", x.code),
            &x.place,
        ));
    }
    if let Some(s) = subject.death.as_ref().filter(|d| d.clean()) {
        supports.push(Cited::plain(format!("the container ended with exit code {}", s.exit_code)));
    }
    // What was taken for trouble: the phase in which a healthy server speaks of memory.
    let mut spoken = facts.hits.iter().filter(|h| h.mark == Mark::Benign).map(|h| h.phase);
    let phase = spoken.find(|p| *p != Phase::Unknown).filter(|_| subject.death.is_none()).unwrap_or(phase);
    let confidence =
        if known || objects || phase != Phase::Unknown { Confidence::Medium } else { Confidence::Low };
    let summary = "no memory error, GPU fault or abnormal end stands in the evidence";
    decided(Class::NotMemory, phase, confidence, summary.into(), supports)
}

/// What tools and files tell of one moment.
fn snapshots(bundle: &Bundle) -> Vec<Cited> {
    let at = |file: &str, line: u64| Place { file: file.to_owned(), line: Some(line) };
    let mut out = Vec::new();
    for s in bundle.gpus.iter().take(3) {
        let (cards, mig, processes) = (s.gpus.len(), s.mig.len(), s.processes.len());
        let text = format!("{}: {cards} card(s), {mig} MIG instance(s), {processes} process(es)", s.tool);
        out.push(Cited::at(text, &at(&s.file, s.line)));
    }
    if let Some(s) = bundle.metrics.first() {
        let text = format!(
            "{} metric sample(s), without a counter or gauge that tells of an end",
            bundle.metrics.len()
        );
        out.push(Cited::at(text, &at(&s.file, s.line)));
    }
    for c in bundle.cgroups.iter().take(3) {
        let text = match &c.oom_kill {
            Some(k) => format!("memory files of a cgroup; it counts {} OOM kill(s)", k.count),
            None => "memory files of a cgroup, without its counters of OOM kills".to_owned(),
        };
        out.push(Cited::at(text, &Place { file: c.file.clone(), line: None }));
    }
    for m in bundle.machines.iter().take(2) {
        out.push(Cited::at(format!("{}: memory of a machine", m.tool), &at(&m.file, m.line)));
    }
    for t in bundle.tops.iter().take(2) {
        out.push(Cited::at(
            format!("{}: {} has a working set of {}", t.tool, t.pod, t.memory),
            &at(&t.file, t.line),
        ));
    }
    for s in bundle.summaries.iter().take(2) {
        let text =
            format!("memory_summary of device {}, which counts {} failed allocation(s)", s.device, s.ooms);
        out.push(Cited::at(text, &at(&s.file, s.line)));
    }
    out
}
