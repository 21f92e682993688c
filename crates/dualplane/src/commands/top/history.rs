//! The minutes before `top` was started, from the ring of the node's agent: trends begin full instead of empty.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use dualplane_agent::ring::{ContainerWindow, Window, look};
use dualplane_node::cgroup::Limit;
use dualplane_node::clock::{Moment, boot_id};
use dualplane_node::sample::RecordKind;

use super::model::{MAX_POINTS, Trend};

/// Trends by the path of the container's cgroup, a point each `interval` until now. Empty where no agent runs, or its
/// state may not be read: then trends begin now.
pub(super) fn read(state: &Path, proc_root: &Path, interval: Duration) -> HashMap<String, Trend> {
    let to = Moment::now();
    let interval = interval.max(Duration::from_millis(200));
    let span = interval.saturating_mul(u32::try_from(MAX_POINTS).unwrap_or(u32::MAX));
    let from = Moment(to.0.saturating_sub(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)));
    let Some(boot) = boot_id(proc_root) else { return HashMap::new() };
    let Ok(window) = look(&state.join("ring"), &boot, from, to, &|_| true) else { return HashMap::new() };
    trends(&window, from, interval)
}

fn trends(window: &Window, from: Moment, interval: Duration) -> HashMap<String, Trend> {
    let place = |at: Moment| {
        let place = at.since(from).as_nanos() / interval.as_nanos().max(1);
        usize::try_from(place).unwrap_or(usize::MAX).min(MAX_POINTS - 1)
    };
    // What is left out at the beginning was not recorded.
    let begin = window.rounds.iter().map(|r| place(r.at)).min().unwrap_or(MAX_POINTS);
    let mut vram = vram(window, &place);
    let mut out = HashMap::new();
    for (path, c) in &window.containers {
        let host = filled(host(c, &place), begin);
        let vram = filled(vram.remove(path.as_str()).unwrap_or_default(), begin);
        out.insert(path.clone(), Trend { host: host.into(), vram: vram.into() });
    }
    out
}

/// Points by place; a place without a record has the value before it.
fn filled(points: HashMap<usize, f64>, begin: usize) -> Vec<Option<f64>> {
    let mut last = None;
    (begin..MAX_POINTS)
        .map(|place| {
            last = points.get(&place).copied().or(last);
            last
        })
        .collect()
}

/// Shares of the limit, as the screen shows them: of the working set, where it was read.
fn host(c: &ContainerWindow, place: &dyn Fn(Moment) -> usize) -> HashMap<usize, f64> {
    let mut out = HashMap::new();
    let (mut limit, mut inactive) = (None, None);
    for r in c.records.iter().filter(|r| r.kind == RecordKind::Container) {
        let Some(m) = r.memory() else { continue };
        limit = m.limit.and_then(Limit::bytes).or(limit);
        inactive = m.inactive_file.or(inactive);
        if let (Some(used), Some(limit)) = (m.current, limit.filter(|l| l.0 > 0)) {
            let used = used.saturating_sub(inactive.unwrap_or_default()).0;
            out.insert(place(r.at), used as f64 / limit.0 as f64);
        }
    }
    out
}

/// Shares of the cards on which a container's processes are, by its path.
fn vram<'w>(window: &'w Window, place: &dyn Fn(Moment) -> usize) -> HashMap<&'w str, HashMap<usize, f64>> {
    let mut used: HashMap<&str, HashMap<usize, HashMap<usize, u64>>> = HashMap::new();
    let mut totals: HashMap<usize, u64> = HashMap::new();
    for (card, g) in window.gpus.iter().enumerate() {
        let total = g.readings.iter().rev().find_map(|r| r.reading()?.total);
        totals.extend(total.map(|t| (card, t.0)));
        // Of several readings of one place the last counts, over all processes of one moment.
        let mut moment: HashMap<(&str, usize), (Moment, u64)> = HashMap::new();
        for p in &g.processes {
            let (Some(path), Some(bytes)) = (p.container.as_deref(), p.used) else { continue };
            let entry = moment.entry((path, place(p.at))).or_insert((p.at, 0));
            *entry = if entry.0 == p.at { (p.at, entry.1 + bytes.0) } else { (p.at, bytes.0) };
        }
        for ((path, at), (_, bytes)) in moment {
            used.entry(path).or_default().entry(at).or_default().insert(card, bytes);
        }
    }
    let share = |cards: &HashMap<usize, u64>| {
        let total: u64 = cards.keys().filter_map(|c| totals.get(c)).sum();
        (total > 0).then(|| cards.values().sum::<u64>() as f64 / total as f64)
    };
    let of = |(path, places): (&'w str, HashMap<usize, HashMap<usize, u64>>)| {
        (path, places.iter().filter_map(|(at, cards)| Some((*at, share(cards)?))).collect())
    };
    used.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dualplane_base::process::Process;
    use dualplane_base::units::Bytes;
    use dualplane_node::cgroup::{Depth, Group, Kind, Memory};
    use dualplane_node::sample::Record;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_trend_begins_with_what_was_recorded() {
        let memory = |used: u64| Memory {
            current: Some(Bytes(used)),
            inactive_file: Some(Bytes(10)),
            limit: Some(Limit::At(Bytes(100))),
            ..Memory::default()
        };
        let at = |s: u64| Moment(s * SECOND);
        let records =
            [(297, 30), (299, 60)].map(|(s, used)| Record::container(1, at(s), Depth::Full, &memory(used)));
        let mut window = Window::default();
        let c = ContainerWindow {
            group: Group {
                kind: Kind::Container,
                identity: Process { path: "/kubepods/a".into(), ..Process::default() },
            },
            named: None,
            engine: None,
            gone: None,
            records: records.to_vec(),
        };
        window.containers.insert("/kubepods/a".into(), c);
        window.rounds = [296, 297, 298, 299]
            .map(|s| Record::round(s, 0, Default::default(), Default::default(), None))
            .to_vec();
        for (r, s) in window.rounds.iter_mut().zip([296, 297, 298, 299]) {
            r.at = at(s);
        }
        let trends = trends(&window, Moment(0), Duration::from_secs(1));
        let host: Vec<Option<f64>> = trends["/kubepods/a"].host.iter().copied().collect();
        assert_eq!(host, [None, Some(0.2), Some(0.2), Some(0.5)], "what no round saw is kept as it was");
        assert!(read(Path::new("/nonexistent"), Path::new("/proc"), Duration::from_secs(1)).is_empty());
    }
}
