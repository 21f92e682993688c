//! Requests and limits with their reasons, beside what is set and what KRR would say.

use dualplane_base::text::counted;
use dualplane_base::units::{Bytes, GIB, MIB};

use crate::phases::{self, Sizes};
use crate::record::{Container, Gauge, Instance, Owner};

/// KRR's rule: the most of the working set over two weeks, and this much of it on top; requests equal limits.
/// Source: robusta-dev/krr, strategy `simple`, defaults `memory_buffer_percentage` and `history_duration`.
pub const KRR_BUFFER: f64 = 0.15;
/// As plans keep.
const HEADROOM: f64 = 0.10;
/// Fewer starts than these, or a shorter record, have not shown their worst.
const STARTS: usize = 3;
const DAYS: f64 = 7.0;
/// What a start that reached its limit would have taken is not known: half as much again is tried next.
const NEXT_TRY: f64 = 1.5;
/// A peak this close to the limit was cut off by it.
const AT_LIMIT: f64 = 0.98;
/// cAdvisor tells of no limit as of one beyond all memory.
const NO_LIMIT: u64 = 1 << 50;
const DAY_MS: f64 = 86_400_000.0;
const HOUR_MS: f64 = 3_600_000.0;
/// A rise counts where a straight line explains this much of it,
const STRAIGHT: f64 = 0.8;
/// and it takes this share of what is held in a day.
const RISE: f64 = 0.05;

/// What was found and what follows from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Sizing {
    /// Whose; the pod is one of several where replicas were put together.
    pub owner: Owner,
    /// Starts that were seen.
    pub starts: usize,
    /// Time that is covered, days.
    pub days: f64,
    /// Seconds between two samples.
    pub step_s: f64,
    /// Host RAM that cannot be taken back, or the working set where `exact` is false.
    pub ram: Sizes,
    /// Whether page cache is out of it.
    pub exact: bool,
    /// The longest start, seconds; none where nothing tells a start's end.
    pub start_seconds: Option<f64>,
    /// VRAM.
    pub vram: Sizes,
    /// The most of anonymous memory, of tmpfs, and of page cache.
    pub parts: Parts,
    /// The most of `/dev/shm`.
    pub dev_shm: Option<Bytes>,
    /// The kernel's own peak, with page cache.
    pub kernel_peak: Option<Bytes>,
    /// What is set now.
    pub limit_now: Option<Bytes>,
    /// What is asked for now.
    pub request_now: Option<Bytes>,
    /// The most of the working set, 15 % on top.
    pub krr: Option<Bytes>,
    /// What to set; none where nothing was measured.
    pub limit: Option<Bytes>,
    /// Whether it is only the next size to try: the kernel cut the peak off.
    pub at_least: bool,
    /// Share on top of the peak.
    pub headroom: f64,
    /// Whether the container's name is known; else `owner` holds another word for it.
    pub named: bool,
    /// Processors to ask for, thousandths of a core.
    pub cpu_request: Option<u64>,
    /// Why, a sentence each.
    pub why: Vec<String>,
    /// What to heed, a sentence each.
    pub beware: Vec<String>,
}

/// One start, for the limit: what it held, and whether something ended or bounded it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Seen {
    /// The most that samples show.
    pub(crate) peak: f64,
    /// The most that the kernel counted beyond all that can have been page cache.
    pub(crate) unseen: Option<f64>,
    /// Its own limit; that of today may be another one.
    pub(crate) limit: Option<f64>,
    /// The kernel killed in it or before it, within the same limit.
    pub(crate) killed: bool,
}

/// Parts of host RAM at their most, each at its own time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parts {
    /// Anonymous memory.
    pub anon: Option<Bytes>,
    /// tmpfs, shared and pinned memory.
    pub shmem: Option<Bytes>,
    /// Page cache of files.
    pub file: Option<Bytes>,
    /// Locked and pinned memory, in part the same pages.
    pub pinned: Option<Bytes>,
}

/// Sizes one container over all its starts.
#[must_use]
pub fn size(c: &Container) -> Sizing {
    let held: Vec<phases::Held> = c.instances.iter().map(phases::held).collect();
    let ends: Vec<Option<i64>> =
        c.instances.iter().map(|i| phases::end_of_start(i).map(|(at, _)| at)).collect();
    let ram = phases::largest(held.iter().zip(&ends).map(|(h, e)| phases::sizes(&h.points, *e)));
    let vram =
        phases::largest(c.instances.iter().zip(&ends).map(|(i, e)| phases::sizes(i.of(Gauge::Vram), *e)));
    let most = |g: Gauge| {
        let all = c.instances.iter().filter_map(|i| i.most(g));
        all.reduce(f64::max).map(Bytes::from_f64).filter(|b| b.0 > 0)
    };
    let last = |g: Gauge| {
        let newest = c.instances.iter().rev().find_map(|i| i.of(g).last());
        newest.map(|(_, v)| Bytes::from_f64(*v)).filter(|b| b.0 > 0)
    };
    let covered: i64 = c.instances.iter().map(|i| i.to - i.from).sum();
    let mut s = Sizing {
        owner: c.owner.clone(),
        starts: c.instances.len(),
        days: covered as f64 / DAY_MS,
        step_s: c.step as f64 / 1000.0,
        ram,
        exact: held.iter().all(|h| h.exact),
        start_seconds: c
            .instances
            .iter()
            .zip(&ends)
            .filter_map(|(i, e)| Some((e.as_ref()? - i.from) as f64 / 1000.0))
            .reduce(f64::max),
        vram,
        parts: Parts {
            anon: most(Gauge::Anon),
            shmem: held.iter().filter_map(|h| h.shmem).reduce(f64::max).map(Bytes::from_f64),
            file: c.instances.iter().filter_map(most_file).reduce(f64::max).map(Bytes::from_f64),
            pinned: most(Gauge::Locked),
        },
        dev_shm: most(Gauge::DevShm),
        kernel_peak: most(Gauge::Peak),
        limit_now: last(Gauge::Limit).filter(|b| b.0 < NO_LIMIT),
        request_now: last(Gauge::Request),
        krr: most(Gauge::WorkingSet).map(|b| b.scale(1.0 + KRR_BUFFER)),
        limit: None,
        at_least: false,
        headroom: 0.0,
        named: true,
        cpu_request: cpu(&c.instances),
        why: Vec::new(),
        beware: Vec::new(),
    };
    let seen: Vec<Seen> = c.instances.iter().zip(&held).filter_map(|(i, h)| seen(i, h)).collect();
    limit(&mut s, &seen);
    rises(&mut s, &held, &ends);
    s
}

/// Page cache of files at its most.
fn most_file(i: &Instance) -> Option<f64> {
    let (inactive, active) = (i.most(Gauge::InactiveFile), i.most(Gauge::ActiveFile));
    match (inactive, active) {
        (Some(a), Some(b)) => Some(a + b),
        _ => Some((i.most(Gauge::Cache)? - i.most(Gauge::Shmem)?).max(0.0)),
    }
}

/// What one start tells of the limit.
fn seen(i: &Instance, held: &phases::Held) -> Option<Seen> {
    let any = |g: Gauge| i.most(g).is_some_and(|n| n > 0.0);
    Some(Seen {
        peak: held.points.iter().map(|(_, v)| *v).reduce(f64::max)?,
        unseen: i.most(Gauge::Peak).zip(most_file(i)).map(|(peak, file)| peak - file),
        limit: i.of(Gauge::Limit).last().map(|(_, v)| *v).filter(|l| *l > 0.0 && *l < NO_LIMIT as f64),
        killed: any(Gauge::OomKills) || any(Gauge::OomEnded),
    })
}

/// The limit from what each start held. Sets what to set, whether it is only a next try, and why.
pub(crate) fn limit(s: &mut Sizing, seen: &[Seen]) {
    let Some(peak) = s.ram.peak.filter(|p| p.0 > 0) else { return };
    let mut base = peak;
    // What the kernel counted beyond all that can have been page cache was held between two samples.
    let unseen = seen.iter().filter_map(|i| i.unseen).reduce(f64::max);
    if let Some(unseen) = unseen.map(Bytes::from_f64).filter(|u| *u > base.scale(1.02)) {
        s.why.push(format!(
            "the kernel's own peak, less all page cache that was seen, is {unseen}: between two samples, {:.0} s apart, it held \
             more than the {peak} that they show",
            s.step_s
        ));
        base = unseen;
    }
    headroom(s, base, seen);
    let mut wanted = base.scale(1.0 + s.headroom);
    if let Some(cut) = cut_off(s.limit_now, seen) {
        s.at_least = true;
        wanted = wanted.max(cut.scale(NEXT_TRY));
        s.beware.push(format!(
            "the limit of {cut} cut its peak off: what it would have taken is not known. {} is the next size to measure; \
             `dualplane plan` computes what the model needs",
            round(wanted)
        ));
    }
    s.limit = Some(round(wanted));
    if !s.exact {
        s.beware.push(
            "the working set was measured, which holds page cache that was read lately: without tmpfs and lists of files, \
             the limit may be larger than needed"
                .to_owned(),
        );
    }
    if let (Some(krr), Some(limit), true) = (s.krr, s.limit, s.exact) {
        if krr > limit.scale(1.1) {
            s.why.push(format!(
                "KRR's rule says {krr}: its working set counts page cache, which the kernel takes back"
            ));
        } else if krr < limit.scale(0.9) && base > peak {
            s.why.push(format!("KRR's rule says {krr}: it sees samples only"));
        }
    }
}

/// The largest limit, as large as that of today or larger, that ended a start or kept it from taking more. A start under a smaller
/// one says nothing of today's.
fn cut_off(now: Option<Bytes>, seen: &[Seen]) -> Option<Bytes> {
    let now = now.map(|b| b.0 as f64);
    let cut = seen.iter().filter_map(|i| {
        let limit = i.limit.or(now)?;
        let most = i.peak.max(i.unseen.unwrap_or(0.0));
        let today = now.is_none_or(|n| limit >= n * AT_LIMIT);
        (today && (i.killed || most >= limit * AT_LIMIT)).then_some(limit)
    });
    cut.reduce(f64::max).map(Bytes::from_f64)
}

/// The share on top of `base`, and why.
fn headroom(s: &mut Sizing, base: Bytes, seen: &[Seen]) {
    let most = seen.iter().map(|i| i.peak).fold(0.0, f64::max);
    let least = seen.iter().map(|i| i.peak).fold(f64::INFINITY, f64::min);
    let spread = if seen.len() > 1 && most > 0.0 { ((most - least) / most).min(0.5) } else { 0.0 };
    let few = s.starts < STARTS || s.days < DAYS;
    s.headroom = if few { KRR_BUFFER } else { HEADROOM };
    let why = if few {
        format!(
            "{:.0} % on top of {base}: {} in {} have not shown the worst",
            s.headroom * 100.0,
            counted(s.starts as u64, "start"),
            lasted(s.days)
        )
    } else {
        format!("{:.0} % on top of {base}, as plans keep", s.headroom * 100.0)
    };
    s.why.push(why);
    if spread > s.headroom {
        s.headroom = spread;
        s.why.push(format!(
            "{:.0} % instead: the peaks of its starts differ by as much, from {} to {}",
            spread * 100.0,
            Bytes::from_f64(least),
            Bytes::from_f64(most)
        ));
    }
}

/// A time in days, in words.
pub(crate) fn lasted(days: f64) -> String {
    match days {
        d if d >= 1.0 => format!("{d:.1} days"),
        d if d >= 1.0 / 24.0 => format!("{:.1} hours", d * 24.0),
        d => format!("{:.0} minutes", d * 1440.0),
    }
}

/// A round figure: 256 MiB below 4 GiB, else half a GiB.
fn round(b: Bytes) -> Bytes {
    b.round_up_to(if b.0 < 4 * GIB { 256 * MIB } else { GIB / 2 })
}

/// The 95th percentile of the use of processors.
fn cpu(all: &[Instance]) -> Option<u64> {
    let rate = |pair: &[(i64, f64)]| {
        let [(a, x), (b, y)] = pair else { return None };
        let seconds = (b - a) as f64 / 1000.0;
        (seconds > 0.0 && y >= x).then(|| (y - x) / seconds)
    };
    most_cores(all.iter().flat_map(|i| i.of(Gauge::Cpu).windows(2)).filter_map(rate).collect())
}

/// The 95th percentile of cores, in thousandths, in steps of a tenth of a core.
pub(crate) fn most_cores(mut rates: Vec<f64>) -> Option<u64> {
    rates.sort_by(f64::total_cmp);
    let at = rates.len().saturating_mul(95) / 100;
    let cores = rates.get(at.min(rates.len().saturating_sub(1)))?;
    Some(((cores * 10.0).ceil().max(1.0) * 100.0) as u64)
}

/// Memory that grows for as long as it serves.
fn rises(s: &mut Sizing, held: &[phases::Held], ends: &[Option<i64>]) {
    for (h, end) in held.iter().zip(ends) {
        let serving: Vec<(f64, f64)> = h
            .points
            .iter()
            .filter(|(at, _)| end.is_none_or(|e| *at > e))
            .map(|(at, v)| (*at as f64 / HOUR_MS, *v))
            .collect();
        let Some((slope, straight)) = line(&serving) else { continue };
        let (Some((_, now)), Some((from, _)), Some((to, _))) =
            (serving.last(), serving.first(), serving.last())
        else {
            continue;
        };
        if to - from < 1.0 || straight < STRAIGHT || slope * 24.0 < now * RISE {
            continue;
        }
        let text = grows(s.limit, slope, *now);
        s.beware.push(text);
        return;
    }
}

/// That it grows by so many bytes an hour, and how long a limit lasts.
pub(crate) fn grows(limit: Option<Bytes>, slope: f64, now: f64) -> String {
    let mut text = format!(
        "it grows by {} an hour while it serves: no limit is enough for long",
        Bytes::from_f64(slope)
    );
    if let Some(limit) = limit {
        text.push_str(&format!("; {limit} lasts {:.0} h more", (limit.0 as f64 - now) / slope));
    }
    text
}

/// Slope of a straight line through points, and the share of the variance that it explains.
fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let n = points.len() as f64;
    if points.len() < 10 {
        return None;
    }
    let (mx, my) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let sxx: f64 = points.iter().map(|p| (p.0 - mx).powi(2)).sum();
    let syy: f64 = points.iter().map(|p| (p.1 - my).powi(2)).sum();
    let sxy: f64 = points.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum();
    (sxx > 0.0 && syy > 0.0).then(|| (sxy / sxx, sxy * sxy / (sxx * syy)))
}
