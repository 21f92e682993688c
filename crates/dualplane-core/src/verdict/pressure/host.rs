//! Host RAM of the containers that run: the working set against the limit, without what the kernel can reclaim.
//!
//! The working set (usage without the inactive page cache) is what the kubelet and `kubectl top` show. It still holds page
//! cache in use, which is dropped before anything is killed: where the cgroup's statistics tell, only anonymous, shared
//! and locked memory is held against the limit.

use dualplane_base::cgroup_path::container_id;
use dualplane_base::order::Order as _;

use super::growth::{self, Point};
use super::living::Living;
use super::thresholds::{HOST_HIGH, HOST_NEAR};
use super::{Level, Reading};
use crate::evidence::Bundle;
use crate::evidence::host_model::{Cgroup, HostMemory};
use crate::evidence::metrics::{Sample, by_series};
use crate::facts::Place;
use crate::text::{counted, name};
use crate::units::Bytes;
use crate::verdict::memory::{Whose, whose};
use crate::verdict::series::{of_pod, only_pod, place};
use crate::verdict::{Plane, Subject};

const WORKING_SET: &str = "container_memory_working_set_bytes";

pub(super) fn readings(bundle: &Bundle, subject: &Subject, living: &[Living]) -> Vec<Reading> {
    let cgroups: Vec<&Cgroup> = bundle
        .cgroups
        .iter()
        .filter(|c| match whose(c, bundle, subject) {
            Whose::Running | Whose::Unsaid | Whose::Pod => true,
            // Without a death it is the instance that runs.
            Whose::Dead => subject.death.is_none(),
            Whose::Other => false,
        })
        .collect();
    let mut out: Vec<Reading> = living
        .iter()
        .filter_map(|c| of_series(bundle, subject, c, living).or_else(|| of_top(bundle, subject, c, living)))
        .collect();
    // A cgroup does not name its container: it speaks for the only one, or for the subject's.
    let own = living.iter().find(|l| l.name == subject.container).or(living.first());
    let of_cgroup = own.and_then(|c| {
        let here = out.iter().position(|r| living.len() == 1 || is_of(r, c));
        let mut read = cgroups.iter().filter_map(|g| of_cgroup(g, c.limit));
        Some((here, read.next()?))
    });
    match of_cgroup {
        Some((Some(at), held)) => {
            if let Some(r) = out.get_mut(at) {
                corrected(r, &held);
            }
        }
        Some((None, held)) => out.push(held.reading),
        None => {}
    }
    if out.is_empty() && living.iter().all(|l| l.limit.is_none()) {
        out.extend(of_machine(bundle, subject));
    }
    out
}

/// Without a limit of its own a container is bound by its node.
fn of_machine(bundle: &Bundle, subject: &Subject) -> Option<Reading> {
    let here = |m: &&HostMemory| m.node.as_ref().zip(subject.node.as_ref()).is_none_or(|(a, b)| a == b);
    let of = |m: &HostMemory| {
        let total = m.total.filter(|t| t.0 > 0)?;
        Some((total.saturating_sub(m.available?), total, Place { file: m.file.clone(), line: Some(m.line) }))
    };
    let (used, total, place) = bundle.machines.iter().filter(here).find_map(of)?;
    let share = used.share_of(total);
    Some(Reading {
        plane: Plane::Host,
        level: level(share),
        what: "RAM of the machine".to_owned(),
        container: None,
        bytes: Some((used, total)),
        share,
        stamp: None,
        place,
        note: Some("no memory limit of the container is known".to_owned()),
        growth: None,
    })
}

fn is_of(r: &Reading, c: &Living) -> bool {
    c.name.is_some() && r.container == c.name
}

fn level(share: f64) -> Level {
    match share {
        s if s >= HOST_HIGH => Level::High,
        s if s >= HOST_NEAR => Level::Near,
        _ => Level::Normal,
    }
}

fn what(c: &Living) -> String {
    let of = c.name.as_ref().map(|n| format!(" of container {}", name(n))).unwrap_or_default();
    format!("working set{of}")
}

/// The latest sample of the container's working set, and how it grew.
fn of_series(bundle: &Bundle, subject: &Subject, c: &Living, living: &[Living]) -> Option<Reading> {
    let only = only_pod(bundle, WORKING_SET);
    let ours = |s: &&Sample| of_pod(s, subject, only) && s.value.is_finite() && c.covers(s.stamp);
    let of_container = |s: &&Sample| {
        let container = s.about("container").filter(|n| *n != "POD");
        ours(s) && container.is_some_and(|n| c.name.as_deref().is_none_or(|own| own == n))
    };
    // cAdvisor that does not reach the runtime names no container: what it tells of the pod is then of its only one.
    let of_sum = |s: &&Sample| {
        ours(s) && s.about("container").is_none() && s.label("id").is_none_or(|id| container_id(id).is_none())
    };
    let sets = || bundle.metrics.iter().filter(|s| s.name == WORKING_SET);
    let named = sets().any(|s| ours(&s) && s.about("container").is_some_and(|n| n != "POD"));
    let mine = |s: &&Sample| if named || living.len() > 1 { of_container(s) } else { of_sum(s) };
    let mut series = by_series(sets().filter(mine));
    // Without an object the container with the largest use is meant.
    series.order_by(|a, b| last(b).total_cmp(&last(a)));
    let mut series = series.into_iter().next()?;
    if series.iter().all(|s| s.stamp.is_some()) {
        let since = series.first().and_then(|s| s.stamp);
        series.order_by_key(|s| since.zip(s.stamp).and_then(|(a, b)| a.ms_until(b)));
    }
    let latest = *series.last()?;
    let told = bundle.metrics.iter().filter(mine).find(|s| {
        let same = s.about("container") == latest.about("container");
        let limit = s.name == "container_spec_memory_limit_bytes"
            || s.name == "kube_pod_container_resource_limits" && s.label("resource") == Some("memory");
        same && limit && s.value > 0.0
    });
    let limit = told.map(|s| Bytes::from_f64(s.value)).or(c.limit).filter(|l| l.0 > 0)?;
    let used = Bytes::from_f64(latest.value);
    let points: Vec<Point> =
        series.iter().filter_map(|s| Some((s.stamp?, Bytes::from_f64(s.value), place(s)))).collect();
    let name = latest.about("container").map(str::to_owned).or_else(|| c.name.clone());
    let named = Living { name, ..c.clone() };
    let share = used.share_of(limit);
    let reading = Reading {
        plane: Plane::Host,
        level: level(share),
        what: what(&named),
        container: named.name,
        bytes: Some((used, limit)),
        share,
        stamp: latest.stamp,
        place: place(latest),
        note: None,
        growth: growth::of(&points, limit),
    };
    Some(reading.foreseen())
}

fn last(series: &[&Sample]) -> f64 {
    series.last().map_or(0.0, |s| s.value)
}

/// What `kubectl top pod` shows of it.
fn of_top(bundle: &Bundle, subject: &Subject, c: &Living, living: &[Living]) -> Option<Reading> {
    let pod = subject.pod.as_deref().or_else(|| {
        let first = bundle.tops.first()?;
        bundle.tops.iter().all(|t| t.pod == first.pod).then_some(first.pod.as_str())
    })?;
    let same = |t: &&crate::evidence::host_model::TopRow| {
        t.pod == pod
            && t.namespace.as_ref().zip(subject.namespace.as_ref()).is_none_or(|(a, b)| a == b)
            && match (&t.container, &c.name) {
                (Some(said), Some(own)) => said == own,
                // A row of the whole pod is of its only container.
                (None, _) => living.len() == 1,
                (Some(_), None) => true,
            }
    };
    let rows: Vec<_> = bundle.tops.iter().filter(same).collect();
    let row = *rows.last()?;
    let limit = c.limit.filter(|l| l.0 > 0)?;
    let share = row.memory.share_of(limit);
    // A tool that was called again and again; others count the same memory in their own way.
    let rows: Vec<_> = rows.into_iter().filter(|r| r.tool == row.tool).collect();
    let first = rows.first().map(|r| r.memory).filter(|f| rows.len() > 1 && *f < row.memory);
    let note =
        first.map(|f| format!("{f} in the first of {} without a time", counted(rows.len(), "printout")));
    let named = Living { name: row.container.clone().or_else(|| c.name.clone()), ..c.clone() };
    Some(Reading {
        plane: Plane::Host,
        level: level(share),
        what: what(&named),
        container: named.name,
        bytes: Some((row.memory, limit)),
        share,
        stamp: None,
        place: Place { file: row.file.clone(), line: Some(row.line) },
        note,
        growth: None,
    })
}

/// What a cgroup holds.
struct Held {
    reading: Reading,
    /// What the kernel cannot give back, where the statistics tell.
    kept: Option<Bytes>,
}

fn of_cgroup(g: &Cgroup, limit: Option<Bytes>) -> Option<Held> {
    let limit = g.limit.as_ref().map(|l| l.bytes).or(limit).filter(|l| l.0 > 0)?;
    let zero = Bytes(0);
    let of = |r: &Option<crate::evidence::host_model::Reading>| r.as_ref().map(|r| r.bytes);
    let (anon, shmem) = (of(&g.anon), of(&g.shmem).unwrap_or(zero));
    // tmpfs and shared memory count as page cache, and locked pages may; neither can be dropped.
    let locked = of(&g.unevictable).unwrap_or(zero).max(shmem);
    let cache = of(&g.file_pages).map(|f| f.saturating_sub(locked));
    let kept = match (of(&g.current), cache, anon) {
        (Some(current), Some(cache), _) => Some(current.saturating_sub(cache)),
        (_, _, Some(anon)) => Some(anon.saturating_add(locked)),
        _ => None,
    };
    let at = g.current.as_ref().or(g.anon.as_ref())?;
    let used = kept.or(of(&g.current))?;
    let share = used.share_of(limit);
    let note = match (kept, cache) {
        (Some(_), Some(cache)) if cache.0 > 0 => {
            Some(format!("beside it {cache} of page cache, which the kernel reclaims before it kills"))
        }
        (Some(_), _) => None,
        _ => Some("with page cache, which the kernel reclaims first: memory.stat tells how much".to_owned()),
    };
    // Page cache fills every limit in time: without the statistics a full cgroup proves nothing.
    let level = if kept.is_some() { level(share) } else { level(share).min(Level::Near) };
    let what = if kept.is_some() { "memory that cannot be reclaimed" } else { "cgroup's memory" };
    let reading = Reading {
        plane: Plane::Host,
        level,
        what: what.to_owned(),
        container: None,
        bytes: Some((used, limit)),
        share,
        stamp: None,
        place: at.place.clone(),
        note,
        growth: None,
    };
    Some(Held { reading, kept })
}

/// A working set at the limit that is mostly page cache in use is no pressure.
fn corrected(r: &mut Reading, held: &Held) {
    let Some((kept, (_, limit))) = held.kept.zip(r.bytes) else { return };
    let by_cache = level(kept.share_of(limit));
    if by_cache < r.level && !r.growth.as_ref().is_some_and(|g| g.is_pressing(r.share)) {
        r.level = by_cache;
        r.note = Some(format!(
            "only {kept} of it cannot be reclaimed; the rest is page cache in use, which the kernel drops before it kills"
        ));
    }
}
