//! Series that tests are made of: what servers that leak and servers that do not look like.

use crate::drift::Sample;
use crate::random::Random;

pub(crate) const MIB: f64 = 1024.0 * 1024.0;

/// What a clean server's memory does, beside its base.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// Scatter that forgets at once.
    Noise,
    /// Scatter that remembers for a minute or two: buffers that fill and empty.
    Remembering,
    /// Garbage that is collected every 20 s to 4 min, to a base that scatters.
    Saw,
    /// A pool or a page cache that fills within the first minutes, then stays.
    Fills,
    /// Memory that follows the load of a day, at any time of it, with the load known.
    Day,
    /// The same, and memory follows late: by half a minute to two minutes.
    LateDay,
    /// Garbage that is collected over 20 s.
    SlowSaw,
    /// A start: weights are read for up to 5 minutes, then it serves.
    Start,
    /// Blocks of 64 MiB that come and go.
    Steps,
}

pub(crate) const KINDS: [Kind; 9] = [
    Kind::Noise,
    Kind::Remembering,
    Kind::Saw,
    Kind::Fills,
    Kind::Day,
    Kind::LateDay,
    Kind::SlowSaw,
    Kind::Start,
    Kind::Steps,
];

/// A server that holds 6 GiB and leaks so many bytes an hour, by the second.
pub(crate) fn series(kind: Kind, leak_per_hour: f64, minutes: f64, seed: u64) -> Vec<Sample> {
    let mut r = Random::new(seed ^ 0x5EED);
    let base = 6144.0 * MIB;
    let noise = (0.2 + 4.0 * r.unit()) * MIB;
    let period = 20.0 + 220.0 * r.unit();
    let height = (20.0 + 480.0 * r.unit()) * MIB;
    let fills_in = 60.0 + 240.0 * r.unit();
    let fills = (200.0 + 3000.0 * r.unit()) * MIB;
    let phase = std::f64::consts::TAU * r.unit();
    let for_request = (2.0 + 6.0 * r.unit()) * MIB;
    let (mut remembered, mut since, mut length, mut floor, mut steps) = (0.0, 0.0, period, 0.0, 0.0);
    let forgets = 1.0 / (30.0 + 90.0 * r.unit());
    let mut load = 40.0 + 30.0 * phase.sin();
    let mut late = load;
    let mut out = Vec::new();
    for i in 0..(minutes * 60.0) as usize {
        let t = i as f64;
        remembered += -remembered * forgets + (2.0 * forgets).sqrt() * r.normal();
        let day = 40.0 + 30.0 * (std::f64::consts::TAU * t / 86_400.0 + phase).sin();
        load += (day - load) / 20.0 + r.normal();
        late += (load - late) * forgets;
        since += 1.0;
        if since >= length {
            since = 0.0;
            length = period * (0.7 + 0.6 * r.unit());
            floor = r.normal() * 2.0 * MIB;
        }
        if r.unit() < 0.03 {
            steps = (r.below(6) as f64) * 64.0 * MIB;
        }
        let own = match kind {
            Kind::Noise => 0.0,
            Kind::Remembering => remembered * 3.0 * noise,
            Kind::Saw => floor + height * since / period,
            Kind::SlowSaw => height * (since / length).min((length - since).max(0.0) / 20.0),
            Kind::LateDay => late * for_request,
            Kind::Fills => fills * (1.0 - (-t / fills_in).exp()),
            Kind::Day => load * for_request,
            Kind::Start => -base * 0.9 * (1.0 - t / fills_in).max(0.0),
            Kind::Steps => steps,
        };
        let value = base + own + noise * r.normal() + leak_per_hour * t / 3600.0;
        let value = (value / 4096.0).round() * 4096.0;
        let load = matches!(kind, Kind::Day | Kind::LateDay).then_some(load);
        out.push(Sample { seconds: t, value, load });
    }
    out
}
