//! The figures that the reading rests on, each with its place.

use super::counters::{Rise, rise};
use crate::evidence::metrics::{Sample, by_series};
use crate::facts::Place;
use crate::knowledge::metrics::Metrics;
use crate::verdict::case::Case;
use crate::verdict::proof::Busy;
use crate::verdict::series::{of_container, of_pod, only_pod, place};
use crate::verdict::{Cited, gpus, pressure};

/// Mean use of the busiest card, of 1.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Usage {
    pub(super) gpu: String,
    pub(super) mean: f64,
    pub(super) samples: usize,
    pub(super) place: Place,
}

/// Waiting requests at the first and at the last sample.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Queue {
    pub(super) first: f64,
    pub(super) last: f64,
    pub(super) place: Place,
}

/// A figure of both halves of a time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Halves<B> {
    pub(super) before: B,
    pub(super) after: f64,
    pub(super) place: Place,
}

/// Requests that failed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Failed {
    pub(super) name: String,
    pub(super) count: f64,
    pub(super) place: Place,
}

/// Requests that run, and as many as may.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Admitted {
    pub(super) running: f64,
    pub(super) most: f64,
    pub(super) place: Place,
}

/// What is told; `None` where it is not.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Signals {
    pub(super) usage: Option<Usage>,
    pub(super) queue: Option<Queue>,
    pub(super) first_token: Option<Halves<Option<f64>>>,
    pub(super) generated: Option<Halves<f64>>,
    pub(super) failed: Option<Failed>,
    pub(super) throttled: Option<(f64, Place)>,
    pub(super) storage: Option<(f64, Place)>,
    pub(super) dropped: Option<(f64, Place)>,
    pub(super) admitted: Option<Admitted>,
}

impl Signals {
    /// All of them as citations, the use of the card first.
    pub(super) fn cited(&self) -> Vec<Cited> {
        let mut out = Vec::new();
        if let Some(u) = &self.usage {
            let proof = Busy::Use { gpu: u.gpu.clone(), mean: u.mean, samples: u.samples };
            out.push(Cited::at(proof, &u.place));
        }
        if let Some(q) = self.queue.as_ref().filter(|q| q.last >= 1.0) {
            out.push(Cited::at(Busy::Queue { first: q.first, last: q.last }, &q.place));
        }
        if let Some(t) = &self.first_token {
            out.push(Cited::at(Busy::FirstToken { before: t.before, after: t.after }, &t.place));
        }
        if let Some(f) = &self.failed {
            out.push(Cited::at(Busy::Failed { name: f.name.clone(), count: f.count }, &f.place));
        }
        if let Some(g) = &self.generated {
            out.push(Cited::at(Busy::Generated { before: g.before, after: g.after }, &g.place));
        }
        let mut share = |told: &Option<(f64, Place)>, proof: fn(f64) -> Busy| {
            if let Some((value, place)) = told {
                out.push(Cited::at(proof(*value), place));
            }
        };
        share(&self.throttled, Busy::Throttled);
        share(&self.storage, Busy::Storage);
        share(&self.dropped.clone().filter(|(n, _)| *n >= 1.0), Busy::Dropped);
        if let Some(a) = self.admitted.as_ref().filter(|a| a.running >= a.most) {
            out.push(Cited::at(Busy::Admitted { running: a.running, most: a.most }, &a.place));
        }
        out
    }
}

/// Use of a card in percent, and as a share.
const PERCENT: &[&str] = &["DCGM_FI_DEV_GPU_UTIL", "amd_gpu_gfx_activity"];
const SHARE: &[&str] = &["DCGM_FI_PROF_GR_ENGINE_ACTIVE"];
/// Counters of HTTP requests by status, and the label of the status.
const HTTP: &[(&str, &str)] = &[
    ("http_requests_total", "status"),
    ("istio_requests_total", "response_code"),
    ("nginx_ingress_controller_requests", "status"),
];
const DROPPED: &[&str] =
    &["container_network_receive_packets_dropped_total", "container_network_transmit_packets_dropped_total"];

/// Samples that may be the subject's.
struct Own<'a, 'c> {
    case: &'c Case<'a>,
    living: &'c [pressure::Living],
}

impl<'a> Own<'a, '_> {
    fn samples(&self, names: &[&str]) -> Vec<&'a Sample> {
        let bundle = self.case.bundle;
        let only = names.iter().find_map(|n| only_pod(bundle, n));
        let own = self.living.iter().find(|l| l.name == self.case.subject.container).or(self.living.first());
        let of = |s: &&Sample| {
            names.contains(&s.name.as_str())
                && s.value.is_finite()
                && s.value >= 0.0
                && (s.about("pod").is_none() || of_pod(s, &self.case.subject, only))
                && own.is_none_or(|l| l.covers(s.stamp))
        };
        bundle.metrics.iter().filter(of).collect()
    }

    /// The same of its container alone, where samples name one.
    fn of_container(&self, name: &str) -> Vec<&'a Sample> {
        let all = self.samples(&[name]);
        all.into_iter()
            .filter(|s| s.about("container").is_none() || of_container(s, &self.case.subject))
            .collect()
    }

    fn rise(&self, name: &str) -> Option<Rise<'a>> {
        rise(self.of_container(name).into_iter())
    }
}

pub(super) fn of(case: &Case<'_>, living: &[pressure::Living]) -> Signals {
    let own = Own { case, living };
    let engines: Vec<&Metrics> = case.facts.engine.all.iter().filter_map(|d| d.metrics.as_ref()).collect();
    let gauge = |names: Vec<&str>| {
        let all = own.samples(&names);
        Some((*all.first()?, *all.last()?, all))
    };
    let queue = gauge(engines.iter().flat_map(|m| m.waiting_names()).collect()).map(|(_, _, all)| {
        // Several ranks wait for the same card: the longest queue.
        let longest = by_series(all.into_iter()).into_iter().filter_map(|s| Some((*s.first()?, *s.last()?)));
        longest.max_by(|a, b| a.1.value.total_cmp(&b.1.value))
    });
    let batch = case.facts.engine.head().map(|d| d.flags.batch.as_slice()).unwrap_or_default();
    let most = case.facts.engine.lever_number(batch).filter(|m| *m >= 1.0);
    let running = gauge(engines.iter().flat_map(|m| m.running_names()).collect());
    Signals {
        usage: usage(&own),
        queue: queue.flatten().map(|(first, last)| Queue {
            first: first.value,
            last: last.value,
            place: place(last),
        }),
        first_token: first_token(&own, &engines),
        generated: generated(&own, &engines),
        failed: failed(&own, &engines),
        throttled: ratio(
            own.rise("container_cpu_cfs_throttled_periods_total"),
            own.rise("container_cpu_cfs_periods_total"),
        ),
        storage: own.rise("container_pressure_io_waiting_seconds_total").and_then(|r| {
            let ms = r.ms.filter(|ms| *ms > 0)?;
            Some((r.by * 1000.0 / ms as f64, place(r.last)))
        }),
        // The network is the pod's: these samples name no container, or its sandbox.
        dropped: rise(own.samples(DROPPED).into_iter()).map(|r| (r.by, place(r.last))),
        admitted: most.zip(running).map(|(most, (_, last, _))| Admitted {
            running: last.value,
            most,
            place: place(last),
        }),
    }
}

/// Of DCGM's gauges those of the pod's cards; without pod labels only a single card can be ours. Else what `nvidia-smi` prints.
fn usage(own: &Own<'_, '_>) -> Option<Usage> {
    let of_names = |names: &'static [&'static str], whole: f64| {
        let all = own.samples(names);
        let labelled = all.iter().any(|s| s.about("pod").is_some());
        let cards = by_series(all.into_iter().filter(|s| !labelled || s.about("pod").is_some()));
        let alone = cards.len() == 1 || labelled;
        let mean = |s: &Vec<&Sample>| s.iter().map(|s| s.value).sum::<f64>() / s.len() as f64 / whole;
        let busiest = cards.iter().max_by(|a, b| mean(a).total_cmp(&mean(b))).filter(|_| alone)?;
        let last = busiest.last()?;
        let gpu = last.label("gpu").or_else(|| last.label("UUID")).unwrap_or("0").to_owned();
        Some(Usage { gpu, mean: mean(busiest), samples: busiest.len(), place: place(last) })
    };
    of_names(PERCENT, 100.0).or_else(|| of_names(SHARE, 1.0)).or_else(|| printed(own))
}

/// Every row of the one card that the evidence shows.
fn printed(own: &Own<'_, '_>) -> Option<Usage> {
    let (_, card) = gpus::own_card(own.case.bundle)?;
    let rows: Vec<(f64, Place)> = own
        .case
        .bundle
        .gpus
        .iter()
        .flat_map(|s| s.gpus.iter().map(move |g| (s, g)))
        .filter(|(_, g)| g.index == card.index)
        .filter_map(|(s, g)| Some((f64::from(g.busy?) / 100.0, gpus::place(&s.file, g.line))))
        .collect();
    let (_, at) = rows.last()?;
    let mean = rows.iter().map(|(v, _)| v).sum::<f64>() / rows.len() as f64;
    let gpu = card.index.map_or_else(|| card.label(), |i| i.to_string());
    Some(Usage { gpu, mean, samples: rows.len(), place: at.clone() })
}

fn first_token(own: &Own<'_, '_>, engines: &[&Metrics]) -> Option<Halves<Option<f64>>> {
    engines.iter().find_map(|m| {
        let [count, sum, ..] = m.rate_names();
        let (count, sum) = (own.rise(&count?)?, own.rise(&sum?)?);
        if count.by < 1.0 {
            return None;
        }
        let place = place(sum.last);
        let halves = count.first_half.zip(sum.first_half).and_then(|((n, _), (s, _))| {
            let (after_n, after_s) = (count.by - n, sum.by - s);
            (n >= 1.0 && after_n >= 1.0).then(|| (s / n, after_s / after_n))
        });
        Some(match halves {
            Some((before, after)) => Halves { before: Some(before), after, place },
            None => Halves { before: None, after: sum.by / count.by, place },
        })
    })
}

fn generated(own: &Own<'_, '_>, engines: &[&Metrics]) -> Option<Halves<f64>> {
    engines.iter().find_map(|m| {
        let [.., tokens] = m.rate_names();
        let rise = own.rise(&tokens?)?;
        let (before, after) = rise.rates()?;
        Some(Halves { before, after, place: place(rise.last) })
    })
}

/// Answers with a server's error, or the engine's own counter. A counter that never rose tells that nothing failed.
fn failed(own: &Own<'_, '_>, engines: &[&Metrics]) -> Option<Failed> {
    let of = |name: &str, all: Vec<&Sample>| {
        let at = all.last().copied();
        let rise = rise(all.into_iter());
        let name = name.to_owned();
        match (rise, at) {
            (Some(r), _) => Some(Failed { name, count: r.by, place: place(r.last) }),
            // One sample tells a count since the start.
            (None, Some(s)) if s.value < 1.0 => Some(Failed { name, count: 0.0, place: place(s) }),
            _ => None,
        }
    };
    let http = HTTP.iter().find_map(|(name, label)| {
        let all = own.samples(&[name]);
        let known = all.iter().find(|s| s.label(label).is_some()).copied()?;
        let bad: Vec<&Sample> =
            all.into_iter().filter(|s| s.label(label).is_some_and(|v| v.starts_with('5'))).collect();
        if bad.is_empty() {
            return Some(Failed { name: (*name).to_owned(), count: 0.0, place: place(known) });
        }
        of(name, bad)
    });
    let counters: Vec<&str> = engines.iter().flat_map(|m| m.failed_names()).collect();
    let own_counter = counters.iter().find_map(|n| of(n, own.samples(&[n])));
    // The one that failed counts.
    match (http, own_counter) {
        (Some(a), Some(b)) => Some(if b.count > a.count { b } else { a }),
        (a, b) => a.or(b),
    }
}

fn ratio(part: Option<Rise<'_>>, whole: Option<Rise<'_>>) -> Option<(f64, Place)> {
    let (part, whole) = part.zip(whole)?;
    (whole.by > 0.0).then(|| (part.by / whole.by, place(part.last)))
}
