//! Samples over time, thinned out: a run of days is kept as a run of an hour is, and no peak is lost.

use dualplane_gate::document::{Line, Series};

use crate::sample::{Host, Sample};

/// Samples that are kept at most.
const MOST: usize = 3_600;

/// Seconds between two samples, and some more.
const SPAN: f64 = 1.5;

/// Samples by time.
#[derive(Debug, Clone)]
pub(crate) struct Thinned {
    all: Vec<Sample>,
    /// Samples that one of these stands for.
    each: u32,
    open: u32,
}

impl Default for Thinned {
    fn default() -> Self {
        Self { all: Vec::new(), each: 1, open: 0 }
    }
}

impl Thinned {
    pub(crate) fn push(&mut self, sample: Sample) {
        let begins = self.open == 0;
        self.open = (self.open + 1) % self.each;
        match self.all.last_mut().filter(|_| !begins) {
            Some(last) => *last = most(last, &sample),
            None => self.all.push(sample),
        }
        if self.all.len() > MOST {
            let half = self.all.chunks(2).filter_map(|pair| match pair {
                [a, b] => Some(most(a, b)),
                [a] => Some(*a),
                _ => None,
            });
            self.all = half.collect();
            self.each = self.each.saturating_mul(2);
            self.open = 0;
        }
    }

    /// Puts a sample of an earlier moment where it belongs: to the one that stands for this moment, else between two.
    pub(crate) fn place(&mut self, sample: Sample) {
        let next = self.all.partition_point(|s| s.at <= sample.at);
        let near = |s: &Sample| sample.at - s.at <= SPAN * f64::from(self.each);
        let before = next.checked_sub(1).and_then(|i| self.all.get(i)).filter(|s| near(s));
        let Some(own) = before.map(|b| most(b, &sample)) else {
            if self.all.len() < MOST {
                self.all.insert(next, sample);
            }
            return;
        };
        if let Some(place) = next.checked_sub(1).and_then(|i| self.all.get_mut(i)) {
            *place = own;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Sample> {
        self.all.iter()
    }

    /// The document's series; none of no samples.
    pub(crate) fn series(&self) -> Option<Series> {
        if self.all.is_empty() {
            return None;
        }
        let host =
            |f: fn(&Host) -> Option<u64>| move |s: &Sample| s.host.as_ref().and_then(f).map(|n| n as f64);
        let rate: Vec<Option<f64>> = std::iter::once(None)
            .chain(self.all.windows(2).map(|w| match w {
                [a, b] => Some(((b.sent? - a.sent?) / (b.at - a.at)).max(0.0)).filter(|r| r.is_finite()),
                _ => None,
            }))
            .collect();
        let lines = [
            self.line("host", "bytes", host(|h| h.held().map(|(n, _)| n))),
            self.line("host.anon", "bytes", host(|h| h.anon)),
            self.line("host.shmem", "bytes", host(|h| h.shmem)),
            self.line("host.file", "bytes", host(|h| h.file)),
            self.line("host.limit", "bytes", host(|h| h.limit)),
            self.line("vram", "bytes", |s| s.vram.map(|n| n as f64)),
            self.line("vram.limit", "bytes", |s| s.vram_total.map(|n| n as f64)),
            self.line("kv", "share", |s| s.kv),
            self.line("running", "requests", |s| s.running),
            self.line("waiting", "requests", |s| s.waiting),
            self.line("gpu", "share", |s| s.gpu),
            Line { name: "rate".into(), unit: "1/s".into(), values: rate },
        ];
        let told = |l: &Line| l.values.iter().any(Option::is_some);
        Some(Series {
            seconds: self.all.iter().map(|s| s.at).collect(),
            lines: lines.into_iter().filter(told).collect(),
        })
    }

    fn line(&self, name: &str, unit: &str, of: impl Fn(&Sample) -> Option<f64>) -> Line {
        let values = self.all.iter().map(|s| of(s).filter(|v| v.is_finite())).collect();
        Line { name: name.into(), unit: unit.into(), values }
    }
}

/// Two samples as one: the time of the first, the most of each.
fn most(a: &Sample, b: &Sample) -> Sample {
    let bytes = |a: Option<u64>, b: Option<u64>| a.max(b);
    let number = |a: Option<f64>, b: Option<f64>| match (a, b) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (a, b) => a.or(b),
    };
    // The parts of host RAM belong together: those of the fuller moment.
    let held = |s: &Sample| s.host.and_then(|h| h.held()).map(|(n, _)| n);
    let host = if held(b) > held(a) { b.host } else { a.host.or(b.host) };
    Sample {
        at: a.at,
        host,
        vram: bytes(a.vram, b.vram),
        vram_total: bytes(a.vram_total, b.vram_total),
        gpu: number(a.gpu, b.gpu),
        watts: number(a.watts, b.watts),
        kv: number(a.kv, b.kv),
        running: number(a.running, b.running),
        waiting: number(a.waiting, b.waiting),
        preemptions: number(a.preemptions, b.preemptions),
        cpu_seconds: number(a.cpu_seconds, b.cpu_seconds),
        prefix: b.prefix.or(a.prefix),
        sent: a.sent.or(b.sent),
    }
}
