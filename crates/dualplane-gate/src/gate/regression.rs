//! Checks against a baseline: a figure fails where it is worse by more than is tolerated, and not by chance.

use dualplane_base::text::counted;
use dualplane_stats::compare::{self, Difference, From};

use super::figure::{Figure, Unit};
use super::identity::Differs;
use super::policy::{Policy, Regression};
use super::{Check, Named, Outcome, absolute, runs, without_cards};
use crate::show;

/// With fewer runs on both sides together, the noise between runs is not known.
const ENOUGH_RUNS: usize = 4;
/// A server without cards that got less than this share of the baseline's processor time was held up by others, or waits.
const AS_BUSY: f64 = 0.9;

pub(super) fn checks(
    policy: &Policy,
    r: &Regression,
    candidate: &[Named],
    baseline: &[Named],
    refused: &[Differs],
    seed: u64,
) -> Vec<Check> {
    let mut out = Vec::new();
    if let Some(least) = policy.runs.baseline {
        out.push(absolute::enough_runs("runs.baseline", least, baseline));
    }
    if baseline.is_empty() || !refused.is_empty() {
        let found = match refused.is_empty() {
            true => "no baseline was given: --baseline FILE".to_owned(),
            false => format!("not compared: {}", refusal(refused)),
        };
        for figure in r.tolerance.keys() {
            out.push(check(*figure, asked(r, *figure), Outcome::NotShown, found.clone(), None, candidate));
        }
        return out;
    }
    for figure in r.tolerance.keys() {
        out.push(one(r, *figure, candidate, baseline, seed));
    }
    out
}

/// In what baseline and candidate differ, as a sentence's end.
pub(crate) fn refusal(differs: &[Differs]) -> String {
    let said = |v: &Option<String>| {
        let text = v.as_deref().unwrap_or("nothing");
        dualplane_base::text::shorten(&dualplane_base::text::printable(text), 80).into_owned()
    };
    let all: Vec<String> = differs
        .iter()
        .map(|d| {
            format!(
                "{} differs, the baseline says {} and the candidate {}",
                d.field.as_str(),
                said(&d.one),
                said(&d.other)
            )
        })
        .collect();
    all.join("; ")
}

fn asked(r: &Regression, figure: Figure) -> String {
    let tolerance = r.tolerance.get(&figure).copied().unwrap_or_default();
    let way = if figure.more_is_better() { "less" } else { "more" };
    format!("{}: at most {} {way} than the baseline", figure.title(), show::share(tolerance))
}

fn check(
    figure: Figure,
    asked: String,
    outcome: Outcome,
    found: String,
    difference: Option<Difference>,
    files: &[Named],
) -> Check {
    let file = files.first().map(|f| f.file.clone());
    Check { id: format!("regression.{}", figure.as_str()), outcome, asked, found, difference, file }
}

fn one(r: &Regression, figure: Figure, candidate: &[Named], baseline: &[Named], seed: u64) -> Check {
    let asked = asked(r, figure);
    let tolerance = r.tolerance.get(&figure).copied().unwrap_or_default();
    let say = |outcome, found, difference| check(figure, asked, outcome, found, difference, candidate);
    let (b, c) = (values(figure, baseline), values(figure, candidate));
    if figure.of_vram() && b.is_empty() && c.is_empty() && without_cards(candidate) {
        return say(Outcome::NotApplicable, "the server had no card".to_owned(), None);
    }
    for (who, values, files) in [("baseline", &b, baseline), ("candidate", &c, candidate)] {
        let n = runs(files).count();
        if values.len() < n {
            let found =
                format!("{} of {} of the {who} without it", n - values.len(), counted(n as u64, "run"));
            return say(Outcome::NotShown, found, None);
        }
    }
    let Some(d) = difference(r, figure, candidate, baseline, (&b, &c), seed) else {
        let found =
            "one run on each side, and no windows that tell its noise: measure several runs".to_owned();
        return say(Outcome::NotShown, found, None);
    };
    // From here on, more is worse.
    let (worse, sure, most) =
        if figure.more_is_better() { (-d.relative, -d.high, -d.low) } else { (d.relative, d.low, d.high) };
    let found = words(figure, &d);
    // Memory is the same in every run of a build; time is not: a single run may have met a busy machine.
    let lone = b.len().min(c.len()) == 1 && figure.unit() != Unit::Bytes;
    if worse > tolerance && sure > 0.0 && lone {
        say(
            Outcome::NotShown,
            format!("{found}; a single run may have met a busy machine: measure more runs"),
            Some(d),
        )
    } else if worse > tolerance && sure > 0.0 {
        let time = matches!(figure.unit(), Unit::Seconds | Unit::Rate);
        match starved(candidate, baseline).filter(|_| time) {
            Some(why) => say(Outcome::NotShown, format!("{found}; {why}"), Some(d)),
            None => say(Outcome::Fail, found, Some(d)),
        }
    } else if worse > tolerance {
        say(Outcome::NotShown, format!("{found}; that may be chance: measure more runs of both"), Some(d))
    } else if most > tolerance && r.certain {
        let found =
            format!("{found}; {} worse are not ruled out: measure more runs of both", show::share(most));
        say(Outcome::NotShown, found, Some(d))
    } else {
        say(Outcome::Pass, found, Some(d))
    }
}

/// Why times cannot be compared, where the processors are all that the server computes on: they were not as much its own.
fn starved(candidate: &[Named], baseline: &[Named]) -> Option<String> {
    let cores = |files: &[Named]| {
        let all: Vec<f64> = runs(files).filter_map(|(_, r)| r.used.as_ref()?.cpu_cores).collect();
        mean(&all).filter(|_| without_cards(files))
    };
    let (was, now) = (cores(baseline)?, cores(candidate)?);
    (now < was * AS_BUSY).then(|| {
        format!(
            "it got {} processors instead of {}: a busy machine, or a build that waits; measure both in turns",
            show::number(now),
            show::number(was)
        )
    })
}

fn values(figure: Figure, files: &[Named]) -> Vec<f64> {
    runs(files).filter_map(|(_, r)| figure.of(r)).collect()
}

fn difference(
    r: &Regression,
    figure: Figure,
    candidate: &[Named],
    baseline: &[Named],
    (b, c): (&[f64], &[f64]),
    seed: u64,
) -> Option<Difference> {
    let by_runs = || compare::repeats(b, c, r.confidence);
    if b.len() + c.len() >= ENOUGH_RUNS {
        return by_runs();
    }
    let windows = |files| -> Vec<f64> {
        runs(files)
            .flat_map(|(_, r): (&Named, _)| r.windows.iter())
            .filter_map(|w| figure.within(w))
            .collect()
    };
    let (wb, wc) = (windows(baseline), windows(candidate));
    // The figures of the runs are what is compared; the windows tell their noise.
    let noise = compare::windows(&wb, &wc, r.confidence, seed);
    let (mean_b, mean_c) = (mean(b)?, mean(c)?);
    let by_windows = noise.filter(|_| mean_b > 0.0).map(|d| {
        let relative = mean_c / mean_b - 1.0;
        let shift = relative - d.relative;
        Difference {
            baseline: mean_b,
            candidate: mean_c,
            relative,
            low: d.low + shift,
            high: d.high + shift,
            ..d
        }
    });
    by_windows.or_else(by_runs)
}

fn mean(v: &[f64]) -> Option<f64> {
    (!v.is_empty()).then(|| v.iter().sum::<f64>() / v.len() as f64)
}

fn words(figure: Figure, d: &Difference) -> String {
    let value = |v: f64| match figure.unit() {
        Unit::Bytes => dualplane_base::units::Bytes::from_f64(v).to_string(),
        Unit::Seconds => show::seconds(v),
        Unit::Share => show::share(v),
        Unit::Rate => format!("{}/s", show::number(v)),
        Unit::Plain => show::number(v),
    };
    let of = match d.from {
        From::Repeats => format!("{} and {} runs", d.n_baseline, d.n_candidate),
        From::Windows => "windows of one run each, which do not show what differs between runs".to_owned(),
    };
    format!(
        "{} instead of {}: {} ({} to {}, effect size {:+.2}; {of})",
        value(d.candidate),
        value(d.baseline),
        show::signed(d.relative),
        show::signed(d.low),
        show::signed(d.high),
        d.delta
    )
}
