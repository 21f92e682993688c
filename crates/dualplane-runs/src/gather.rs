//! Samples and requests as they come, and the run that they make.

mod later;

use dualplane_base::order::Order as _;
use std::collections::BTreeMap;

use dualplane_gate::document::{
    Drift, Failed, GpuFaults, HostSplit, Kv, Load, PlaneFigures, ProcessMemory, Queue, Requests, Restart,
    Run, Slo, Throughput, Use, Window,
};
use dualplane_stats::drift::{Ask, Sample as Point, drift};

use crate::histo::Histo;
use crate::sample::{Faults, Host, Outcome, Process, Sample, State};
use crate::thin::Thinned;

/// Windows of a run, at most.
const MAX_WINDOWS: f64 = 1_000.0;
/// The least length of a window, seconds.
const WINDOW: f64 = 10.0;
/// Processes that are told.
const PROCESSES: usize = 16;
/// Xids that are kept.
const MAX_XIDS: usize = 1_000;
/// Processes that are kept.
const MAX_PROCESSES: usize = 4_096;

/// What a run is to be.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Setup {
    /// Its name in the document.
    pub name: String,
    /// How the load is made.
    pub load: Load,
    /// What counts as good.
    pub slo: Option<Slo>,
    /// Price of the hardware by the hour.
    pub price_per_hour: Option<f64>,
    /// Tokens that the KV cache holds, where the engine says so.
    pub kv_tokens: Option<u64>,
    /// When it began, RFC 3339.
    pub started_at: Option<String>,
}

/// Mean and most of a gauge.
#[derive(Debug, Clone, Copy, Default)]
struct Gauge {
    n: u64,
    sum: f64,
    most: Option<f64>,
}

impl Gauge {
    /// `counts`: within the measured time; behind it only the most is kept.
    fn add(&mut self, value: Option<f64>, counts: bool) {
        let Some(v) = value.filter(|v| v.is_finite() && *v >= 0.0) else { return };
        self.most = Some(self.most.map_or(v, |m| m.max(v)));
        if counts {
            self.n += 1;
            self.sum += v;
        }
    }

    fn mean(&self) -> Option<f64> {
        (self.n > 0).then(|| self.sum / self.n as f64)
    }

    const fn most(&self) -> Option<f64> {
        self.most
    }
}

/// First and last of a counter, over restarts of who counts.
#[derive(Debug, Clone, Copy, Default)]
struct Counter {
    last: Option<f64>,
    grown: f64,
}

impl Counter {
    fn add(&mut self, value: Option<f64>) {
        if let Some(v) = value.filter(|v| v.is_finite()) {
            self.grown += self.last.map_or(0.0, |l| if v >= l { v - l } else { v });
            self.last = Some(v);
        }
    }

    fn grown(&self) -> Option<f64> {
        self.last.map(|_| self.grown)
    }
}

/// What is counted of a window, or of the whole run.
#[derive(Debug, Clone, Default)]
struct Counts {
    ttft: Histo,
    itl: Histo,
    e2e: Histo,
    succeeded: u64,
    good: u64,
    cancelled: u64,
    failed: BTreeMap<String, u64>,
    input: u64,
    output: u64,
    preemptions: Counter,
    waiting: Gauge,
    running: Gauge,
    kv: Gauge,
    gpu: Gauge,
    cpu: Counter,
    host: Option<u64>,
    vram: Option<u64>,
}

/// Takes a run in.
#[derive(Debug)]
pub struct Gather {
    setup: Setup,
    /// When load began to count.
    from: Option<f64>,
    /// When it was over: what is under way ends behind it.
    until: Option<f64>,
    /// When the server answered first.
    ready: Option<f64>,
    last: f64,
    sent: u64,
    all: Counts,
    window: Counts,
    window_from: f64,
    window_seconds: f64,
    windows: Vec<Window>,
    series: Thinned,
    start_host: Option<u64>,
    start_vram: Option<u64>,
    peak: Option<(u64, Host)>,
    peak_vram: Option<u64>,
    limit: Option<u64>,
    vram_limit: Option<u64>,
    without_cache: bool,
    prefix: (Counter, Counter),
    watts: Gauge,
    processes: BTreeMap<u32, Process>,
    restarts: Option<Vec<Restart>>,
    /// Xids, and counters of corrected errors, of others, and of replaced rows.
    faults: Option<(Vec<u32>, [Counter; 3])>,
}

impl Gather {
    /// An empty run.
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        let planned = setup.load.seconds.unwrap_or(0.0);
        Self {
            window_seconds: (planned / MAX_WINDOWS).ceil().max(WINDOW),
            setup,
            from: None,
            until: None,
            ready: None,
            last: 0.0,
            sent: 0,
            all: Counts::default(),
            window: Counts::default(),
            window_from: 0.0,
            windows: Vec::new(),
            series: Thinned::default(),
            start_host: None,
            start_vram: None,
            peak: None,
            peak_vram: None,
            limit: None,
            vram_limit: None,
            without_cache: true,
            prefix: (Counter::default(), Counter::default()),
            watts: Gauge::default(),
            processes: BTreeMap::new(),
            restarts: None,
            faults: None,
        }
    }

    /// The server answered for the first time, so many seconds after its start.
    pub fn ready(&mut self, at: f64) {
        self.ready.get_or_insert(at);
    }

    /// From now on requests count; samples from here on are of load.
    pub fn counts_from(&mut self, at: f64) {
        if self.from.is_none() {
            self.from = Some(at);
            self.window_from = at;
            self.last = self.last.max(at);
        }
    }

    /// Nothing is sent from now on. What is still under way may end, and counts; but a server that runs empty is no steady
    /// state, no window and no drift.
    pub fn ends(&mut self, at: f64) {
        self.until.get_or_insert(at);
    }

    /// Somebody looks whether the server dies.
    pub fn watched(&mut self) {
        self.restarts.get_or_insert_default();
    }

    /// It died.
    pub fn died(&mut self, restart: Restart) {
        self.restarts.get_or_insert_default().push(restart);
    }

    /// How many requests ended well and badly so far, for a line of progress.
    #[must_use]
    pub fn so_far(&self) -> (u64, u64) {
        (self.all.succeeded, self.all.failed.values().sum())
    }

    /// The time to the first token that 99 of 100 met so far.
    #[must_use]
    pub fn ttft_p99(&self) -> Option<f64> {
        self.all.ttft.at(0.99)
    }

    /// Takes a sample.
    pub fn sample(&mut self, s: Sample) {
        if self.from.is_some() {
            self.roll(s.at);
        }
        let held = self.takes_planes(&s);
        if self.until.is_none_or(|until| s.at <= until) {
            self.window.host = self.window.host.max(held);
        }
        self.window.vram = self.window.vram.max(s.vram);
        if self.from.is_some() {
            let counts = self.until.is_none_or(|until| s.at <= until);
            for c in [&mut self.all, &mut self.window].into_iter().take(1 + usize::from(counts)) {
                c.preemptions.add(s.preemptions);
                c.waiting.add(s.waiting, counts);
                c.running.add(s.running, counts);
                c.kv.add(s.kv, counts);
                c.gpu.add(s.gpu, counts);
                if counts {
                    c.cpu.add(s.cpu_seconds);
                }
            }
            self.watts.add(s.watts, counts);
            self.prefix.0.add(s.prefix.map(|p| p.0));
            self.prefix.1.add(s.prefix.map(|p| p.1));
        }
        self.series.push(s);
    }

    /// Takes both planes of a sample in, as far as they are of the whole run; what is held of host RAM then.
    fn takes_planes(&mut self, s: &Sample) -> Option<u64> {
        let mut all = None;
        if let Some(host) = &s.host {
            if let Some((held, sure)) = host.held() {
                all = Some(held);
                self.without_cache &= sure;
                if self.peak.is_none_or(|(most, _)| held > most) {
                    self.peak = Some((held, *host));
                }
                if self.starts(s.at) {
                    self.start_host = self.start_host.max(Some(held));
                }
            }
            self.limit = host.limit.or(self.limit);
        }
        self.vram_limit = s.vram_total.or(self.vram_limit);
        self.peak_vram = self.peak_vram.max(s.vram);
        if self.starts(s.at) {
            self.start_vram = self.start_vram.max(s.vram);
        }
        all
    }

    /// Takes what processes hold; of each the most is kept.
    pub fn processes(&mut self, all: &[Process]) {
        for p in all {
            let room = self.processes.len() < MAX_PROCESSES;
            match self.processes.get_mut(&p.pid) {
                Some(known) => {
                    known.resident = known.resident.max(p.resident);
                    known.anon = known.anon.max(p.anon);
                    known.vram = known.vram.max(p.vram);
                    known.name.clone_from(&p.name);
                }
                None if room => {
                    self.processes.insert(p.pid, p.clone());
                }
                None => {}
            }
        }
    }

    /// Takes what cards told of errors: what was there before this run is not the run's.
    pub fn faults(&mut self, f: &Faults) {
        let (xids, counters) = self.faults.get_or_insert_default();
        let room = MAX_XIDS.saturating_sub(xids.len());
        xids.extend(f.xids.iter().take(room));
        let all = [f.ecc_corrected, f.ecc_uncorrected, f.remapped];
        for (counter, now) in counters.iter_mut().zip(all) {
            counter.add(now.map(|n| n as f64));
        }
    }

    /// A request was sent; those of the warm-up are not counted.
    pub fn sent(&mut self, at: f64) {
        if self.from.is_some_and(|from| at >= from) {
            self.sent += 1;
        }
    }

    /// Takes what became of a request. Call [`Gather::sent`] for it before.
    pub fn outcome(&mut self, o: &Outcome) {
        let Some(from) = self.from.filter(|from| o.sent >= *from) else { return };
        self.roll(o.end.max(from));
        let good = self.setup.slo.as_ref().is_some_and(|slo| within(slo, o));
        // What ends behind the end stands in the sums, and in no window.
        let windows = usize::from(self.until.is_none_or(|until| o.end <= until));
        for c in [&mut self.all, &mut self.window].into_iter().take(1 + windows) {
            match o.state {
                State::Done => {
                    c.succeeded += 1;
                    c.good += u64::from(good);
                    c.input = c.input.saturating_add(o.input);
                    c.output = c.output.saturating_add(o.output);
                    c.e2e.add(o.whole());
                    if let Some(t) = o.ttft() {
                        c.ttft.add(t);
                    }
                    if let Some(t) = o.itl() {
                        c.itl.add(t);
                    }
                }
                State::Cancelled => {
                    c.cancelled += 1;
                    c.output = c.output.saturating_add(o.output);
                }
                State::Open => {}
                State::Failed(reason) => *c.failed.entry(reason.to_owned()).or_default() += 1,
                State::Status(status) => *c.failed.entry(format!("http {status}")).or_default() += 1,
            }
        }
    }

    /// The server has not answered yet; the warm-up is load already.
    fn starts(&self, at: f64) -> bool {
        self.from.is_none() && self.ready.is_none_or(|ready| at <= ready)
    }

    /// Closes windows that ended before this time.
    fn roll(&mut self, at: f64) {
        let at = at.min(self.until.unwrap_or(f64::INFINITY));
        self.last = self.last.max(at);
        while at >= self.window_from + self.window_seconds && self.windows.len() < 10_000 {
            self.close(self.window_seconds);
        }
    }

    fn close(&mut self, seconds: f64) {
        let w = std::mem::take(&mut self.window);
        // What a counter said at the end of one window is its beginning in the next.
        self.window.preemptions.last = w.preemptions.last;
        self.window.cpu.last = w.cpu.last;
        let whole = |n: f64| n.round() as u64;
        self.windows.push(Window {
            from_seconds: self.window_from,
            seconds,
            host_bytes: w.host,
            vram_bytes: w.vram,
            kv_share: w.kv.most().map(|k| k.min(1.0)),
            preemptions: w.preemptions.grown().map(whole),
            waiting: w.waiting.mean(),
            running: w.running.mean(),
            succeeded: Some(w.succeeded),
            good: self.setup.slo.is_some().then_some(w.good),
            failed: Some(w.failed.values().sum()),
            output_tokens: Some(w.output),
            ttft_p50: w.ttft.at(0.5),
            ttft_p99: w.ttft.at(0.99),
            itl_p50: w.itl.at(0.5),
            itl_p99: w.itl.at(0.99),
            e2e_p50: w.e2e.at(0.5),
            e2e_p99: w.e2e.at(0.99),
            gpu_share: w.gpu.mean().map(|g| g.min(1.0)),
            cpu_cores: w.cpu.grown().map(|s| s / seconds),
        });
        self.window_from += seconds;
    }

    /// The run, ended at this time.
    #[must_use]
    pub fn finish(mut self, at: f64, cut_short: bool) -> Run {
        let from = self.from.unwrap_or(at);
        let seconds = (at - from).max(0.0);
        self.roll(at);
        let rest = at - self.window_from;
        // A piece of a window would look like a slump.
        if self.from.is_some()
            && (rest >= self.window_seconds * 0.5 || (self.windows.is_empty() && rest > 0.0))
        {
            self.close(rest);
        }
        let per = |n: u64| (seconds > 0.0).then(|| n as f64 / seconds);
        let asked = self.setup.slo.is_some();
        let all = &self.all;
        let price = self.setup.price_per_hour.filter(|_| asked && all.good > 0);
        let mut failed: Vec<Failed> = all
            .failed
            .iter()
            .map(|(reason, count)| Failed { reason: reason.clone(), count: *count })
            .collect();
        failed.order_by(|a, b| b.count.cmp(&a.count).then_with(|| a.reason.cmp(&b.reason)));
        let ended = all.succeeded + all.cancelled + failed.iter().map(|f| f.count).sum::<u64>();
        // Who drives says how many there were, also where there were none.
        let any = self.sent > 0 || (self.from.is_some() && self.setup.load.drives());
        Run {
            name: self.setup.name.clone(),
            started_at: self.setup.started_at.clone(),
            load: self.setup.load.clone(),
            start_seconds: self.ready,
            measured_seconds: seconds,
            cut_short,
            host: self.host(from),
            vram: self.vram(from),
            host_split: self.peak.map(|(_, h)| HostSplit {
                anon_bytes: h.anon,
                shmem_bytes: h.shmem,
                file_bytes: h.file.map(|f| f.saturating_sub(h.shmem.unwrap_or(0))),
                pinned_bytes: h.pinned,
                kernel_bytes: h.kernel,
            }),
            processes: self.largest(),
            kv: self.kv(),
            queue: all.waiting.most().or(all.running.most()).map(|_| Queue {
                waiting_peak: all.waiting.most(),
                waiting_mean: all.waiting.mean(),
                running_peak: all.running.most(),
                running_mean: all.running.mean(),
            }),
            ttft: all.ttft.distribution(),
            itl: all.itl.distribution(),
            e2e: all.e2e.distribution(),
            requests: any.then(|| Requests {
                sent: self.sent.max(ended),
                succeeded: all.succeeded,
                good: asked.then_some(all.good),
                failed,
                cancelled: all.cancelled,
            }),
            throughput: any.then(|| Throughput {
                requests_per_second: per(all.succeeded),
                good_requests_per_second: per(all.good).filter(|_| asked),
                input_tokens_per_second: per(all.input),
                output_tokens_per_second: per(all.output),
                cost_per_good_request: price.map(|p| p / 3600.0 * seconds / all.good as f64),
            }),
            used: Some(Use {
                gpu_share: all.gpu.mean().map(|g| g.min(1.0)),
                power_watts: self.watts.mean(),
                cpu_cores: all.cpu.grown().filter(|_| seconds > 0.0).map(|s| s / seconds),
                ..Use::default()
            })
            .filter(|u| *u != Use::default()),
            restarts: self.restarts.clone(),
            gpu_faults: self.faults.take().map(|(xids, counters)| {
                let [corrected, uncorrected, remapped] = counters.map(|c| c.grown().map(|n| n as u64));
                GpuFaults {
                    xids: Some(xids),
                    ecc_uncorrected: uncorrected,
                    ecc_corrected: corrected,
                    rows_remapped: remapped,
                }
            }),
            windows: std::mem::take(&mut self.windows),
            series: self.series.series(),
            ..Run::default()
        }
    }

    fn host(&self, from: f64) -> Option<PlaneFigures> {
        let (peak, _) = self.peak?;
        let held = |s: &Sample| s.host.and_then(|h| h.held()).map(|(n, _)| n);
        Some(PlaneFigures {
            start_up_bytes: self.start_host.filter(|_| self.ready.is_some()),
            steady_bytes: self.median(from, held),
            peak_bytes: Some(peak),
            limit_bytes: self.limit,
            without_page_cache: Some(self.without_cache),
            drift: self.drift(from, held),
        })
    }

    fn vram(&self, from: f64) -> Option<PlaneFigures> {
        self.peak_vram?;
        Some(PlaneFigures {
            start_up_bytes: self.start_vram.filter(|_| self.ready.is_some()),
            steady_bytes: self.median(from, |s| s.vram),
            peak_bytes: self.peak_vram,
            limit_bytes: self.vram_limit,
            without_page_cache: Some(true),
            drift: self.drift(from, |s| s.vram),
        })
    }

    fn median(&self, from: f64, of: impl Fn(&Sample) -> Option<u64>) -> Option<u64> {
        let all = self.measured(from).filter_map(|s| of(s).map(|n| n as f64));
        dualplane_stats::rank::median(all).map(|m| m.round() as u64)
    }

    /// Samples of the measured time.
    fn measured(&self, from: f64) -> impl Iterator<Item = &Sample> {
        let until = self.until.unwrap_or(f64::INFINITY);
        self.series.iter().filter(move |s| s.at >= from && s.at <= until)
    }

    fn drift(&self, from: f64, of: impl Fn(&Sample) -> Option<u64>) -> Option<Drift> {
        let points: Vec<Point> = self
            .measured(from)
            .filter_map(|s| Some(Point { seconds: s.at, value: of(s)? as f64, load: s.running }))
            .collect();
        let d = drift(&points, &Ask::default())?;
        Some(Drift {
            bytes_per_hour: d.per_hour,
            low_bytes_per_hour: d.low,
            high_bytes_per_hour: d.high,
            confidence: d.confidence,
            seconds: d.seconds,
            samples: d.samples as u64,
            grows: d.grows(),
        })
    }

    fn kv(&self) -> Option<Kv> {
        let whole = |n: f64| n.round() as u64;
        let (asked, had) = (self.prefix.0.grown(), self.prefix.1.grown());
        let kv = Kv {
            capacity_tokens: self.setup.kv_tokens,
            high_water_share: self.all.kv.most().map(|k| k.min(1.0)),
            mean_share: self.all.kv.mean().map(|k| k.min(1.0)),
            preemptions: self.all.preemptions.grown().map(whole),
            admission_failures: None,
            prefix_hit_share: asked.zip(had).filter(|(a, _)| *a > 0.0).map(|(a, h)| (h / a).clamp(0.0, 1.0)),
        };
        Some(kv).filter(|k| *k != Kv::default())
    }

    fn largest(&self) -> Vec<ProcessMemory> {
        let mut all: Vec<&Process> = self.processes.values().collect();
        all.order_by_key(|p| (std::cmp::Reverse(p.resident), p.pid));
        let of = |p: &&Process| ProcessMemory {
            name: p.name.clone(),
            peak_bytes: p.resident,
            anon_bytes: p.anon,
            vram_bytes: p.vram,
        };
        all.iter().take(PROCESSES).map(of).collect()
    }
}

/// Whether a request was answered within all bounds that are asked for.
fn within(slo: &Slo, o: &Outcome) -> bool {
    let holds = |bound: Option<f64>, value: Option<f64>| bound.is_none_or(|b| value.is_some_and(|v| v <= b));
    // An answer of one token has no time between two.
    let itl = if o.output > 1 { o.itl() } else { Some(0.0) };
    holds(slo.ttft_seconds, o.ttft())
        && holds(slo.itl_seconds, itl)
        && holds(slo.e2e_seconds, Some(o.whole()))
}
