//! What a container holds while it starts, while it serves, and at most: both planes.

use crate::record::{Gauge, Instance};
use dualplane_base::units::Bytes;

/// VRAM at this share of its later median: weights and pool are there.
const FILLED: f64 = 0.95;

/// How the end of a start was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The kubelet called the container ready.
    Ready,
    /// VRAM reached what it then kept.
    VramFilled,
}

/// Memory that the kernel cannot take back, over time: anonymous memory and tmpfs. Where these are not told, the working set,
/// which also holds page cache that was read lately.
#[derive(Debug, Clone, PartialEq)]
pub struct Held {
    /// By time, bytes.
    pub points: Vec<(i64, f64)>,
    /// Without page cache.
    pub exact: bool,
    /// The most of tmpfs, shared and pinned memory, bytes.
    pub shmem: Option<f64>,
}

/// Start-up, steady state and peak of one plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sizes {
    /// Most while it started; none where nothing tells the start's end.
    pub start_up: Option<Bytes>,
    /// Median after that; of all samples where nothing tells the start's end, and none where it never ended.
    pub steady: Option<Bytes>,
    /// Most of all.
    pub peak: Option<Bytes>,
}

/// The end of the start, in milliseconds, and how it was told. None where it never came or nothing tells it.
#[must_use]
pub fn end_of_start(i: &Instance) -> Option<(i64, Ended)> {
    let ready = i.of(Gauge::Ready);
    // What began ready is older than the record: its start was not seen.
    if let Some((at, _)) = ready.iter().find(|(at, v)| *v > 0.0 && *at >= i.from) {
        return Some((*at, Ended::Ready));
    }
    if !ready.is_empty() {
        return None;
    }
    let vram = i.of(Gauge::Vram);
    let later = median(vram.get(vram.len() / 2..)?.iter().map(|(_, v)| *v))?;
    let filled = vram.iter().find(|(_, v)| *v >= later * FILLED && later > 0.0)?;
    (filled.0 > i.from).then_some((filled.0, Ended::VramFilled))
}

/// What the container holds of host RAM.
#[must_use]
pub fn held(i: &Instance) -> Held {
    let anon = i.of(Gauge::Anon);
    let shmem = i.of(Gauge::Shmem);
    let at = |points: &[(i64, f64)], time: i64| {
        let found = points.binary_search_by_key(&time, |(t, _)| *t).ok()?;
        points.get(found).map(|(_, v)| *v)
    };
    // cAdvisor has no tmpfs: it is what of the cache is on no list of files.
    let tmpfs = |time: i64| {
        at(shmem, time).or_else(|| {
            let cache = at(i.of(Gauge::Cache), time)?;
            let files = at(i.of(Gauge::InactiveFile), time)? + at(i.of(Gauge::ActiveFile), time)?;
            Some((cache - files).max(0.0))
        })
    };
    let parts: Vec<(i64, f64, f64)> =
        anon.iter().filter_map(|(time, a)| Some((*time, *a, tmpfs(*time)?))).collect();
    let exact: Vec<(i64, f64)> = parts.iter().map(|(time, anon, tmpfs)| (*time, anon + tmpfs)).collect();
    let shmem = i.most(Gauge::Shmem).or_else(|| parts.iter().map(|p| p.2).reduce(f64::max));
    let enough = exact.len().saturating_mul(2) >= i.of(Gauge::WorkingSet).len();
    match exact.is_empty() || !enough {
        false => Held { points: exact, exact: true, shmem },
        true => Held { points: i.of(Gauge::WorkingSet).to_vec(), exact: false, shmem },
    }
}

/// Sizes of one plane over its values.
#[must_use]
pub fn sizes(points: &[(i64, f64)], end: Option<i64>) -> Sizes {
    let peak = points.iter().map(|(_, v)| *v).reduce(f64::max);
    let before = |e: i64| points.iter().filter(move |(at, _)| *at <= e).map(|(_, v)| *v).reduce(f64::max);
    let steady = median(points.iter().filter(|(at, _)| end.is_none_or(|e| *at > e)).map(|(_, v)| *v));
    let bytes = |v: Option<f64>| v.map(Bytes::from_f64);
    Sizes { start_up: bytes(end.and_then(before)), steady: bytes(steady), peak: bytes(peak) }
}

/// The larger of each.
#[must_use]
pub fn largest(all: impl IntoIterator<Item = Sizes>) -> Sizes {
    all.into_iter().fold(Sizes::default(), |a, b| Sizes {
        start_up: a.start_up.max(b.start_up),
        steady: a.steady.max(b.steady),
        peak: a.peak.max(b.peak),
    })
}

pub(crate) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut all: Vec<f64> = values.collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance(of: &[(Gauge, &[f64])]) -> Instance {
        let points = |v: &[f64]| v.iter().enumerate().map(|(i, v)| (i as i64 * 1000, *v)).collect::<Vec<_>>();
        let values = of.iter().map(|(g, v)| (*g, points(v))).collect();
        Instance { from: 0, to: 9000, values }
    }

    #[test]
    fn page_cache_is_not_held_and_tmpfs_is() {
        let i = instance(&[
            (Gauge::WorkingSet, &[5.0, 9.0]),
            (Gauge::Anon, &[3.0, 4.0]),
            (Gauge::Cache, &[4.0, 7.0]),
            (Gauge::InactiveFile, &[1.0, 1.0]),
            (Gauge::ActiveFile, &[1.0, 4.0]),
        ]);
        assert_eq!(held(&i), Held { points: vec![(0, 5.0), (1000, 6.0)], exact: true, shmem: Some(2.0) });
        let i = instance(&[(Gauge::WorkingSet, &[5.0, 9.0]), (Gauge::Anon, &[3.0, 4.0])]);
        assert_eq!(held(&i), Held { points: vec![(0, 5.0), (1000, 9.0)], exact: false, shmem: None });
    }

    #[test]
    fn a_start_ends_when_it_is_ready_or_its_vram_is_full() {
        let i = instance(&[(Gauge::Ready, &[0.0, 0.0, 1.0]), (Gauge::Vram, &[0.0, 9.0, 9.0])]);
        assert_eq!(end_of_start(&i), Some((2000, Ended::Ready)));
        let i = instance(&[(Gauge::Ready, &[0.0, 0.0]), (Gauge::Vram, &[0.0, 9.0])]);
        assert_eq!(end_of_start(&i), None, "it never was ready");
        let i = instance(&[(Gauge::Vram, &[0.0, 5.0, 9.0, 9.0, 9.0, 9.0])]);
        assert_eq!(end_of_start(&i), Some((2000, Ended::VramFilled)));
        let i = instance(&[(Gauge::Vram, &[9.0, 9.0])]);
        assert_eq!(end_of_start(&i), None, "the record begins later than the start");
        let ram = [(0, 1.0), (1000, 8.0), (2000, 6.0), (3000, 4.0), (4000, 5.0)];
        let s = sizes(&ram, Some(2000));
        assert_eq!((s.start_up, s.steady, s.peak), (Some(Bytes(8)), Some(Bytes(5)), Some(Bytes(8))));
    }
}
