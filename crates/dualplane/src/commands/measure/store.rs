//! Both planes from Prometheus, where nothing of the server can be read from here.
//!
//! The samples are those that were scraped, with their own times: they are asked for when a run is over, once its last scrape
//! is in, and put where they belong on the run's clock.

use dualplane_base::order::Order as _;
use std::time::Duration;

use dualplane_gate::document::Restart;
use dualplane_kube::api::ApiError;
use dualplane_kube::capture::{self, SeriesAccess};
use dualplane_resources::record::{Container, Gauge, Instance, METRICS, containers};
use dualplane_resources::series::{Series, joined, read};
use dualplane_runs::{Gather, Host, Sample};
use jiff::Timestamp;

use super::Bench;
use crate::args::MeasureArgs;
use crate::commands::Failure;
use crate::commands::live::block_on;
use crate::{output, secret};

/// For the scrape that tells of the end: a minute between two, and what a target takes to answer.
const LAST: Duration = Duration::from_secs(75);
/// Between two looks for it.
const EACH: Duration = Duration::from_secs(5);
/// Before a run, where what is told rarely (limits, restarts) stands.
const BEFORE_MS: i64 = 120_000;

/// Whose memory is asked for, and where.
pub(super) struct Store {
    url: String,
    token: Option<String>,
    namespace: String,
    pod: String,
    container: Option<String>,
    /// Where the clock of the measurement begins, milliseconds since 1970.
    zero: i64,
}

fn failed(e: &ApiError) -> Failure {
    Failure::Online { what: "--prometheus".into(), why: e.to_string() }
}

impl Store {
    /// The store that the flags name, once it is known to have the pod.
    pub(super) fn open(args: &MeasureArgs) -> Result<Option<Self>, Failure> {
        let (Some(url), Some(pod)) = (&args.prometheus, &args.pod) else { return Ok(None) };
        if capture::has_password(url) {
            let why = format!(
                "a password in a URL is seen by others; name a file with it in {}",
                secret::PROMETHEUS.file
            );
            return Err(Failure::Flag { flag: "--prometheus", why });
        }
        let token = secret::PROMETHEUS.read()?;
        let mut parts = pod.splitn(3, '/').map(str::to_owned);
        let (namespace, name) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let zero = Timestamp::now().as_millisecond();
        let own = Self { url: url.clone(), token, namespace, pod: name, container: parts.next(), zero };
        let now = own.zero;
        let all = own.ask(now - 10 * BEFORE_MS, now)?;
        own.one(containers(&all))?;
        Ok(Some(own))
    }

    /// The clock of the measurement begins now.
    pub(super) fn begins(&mut self) {
        self.zero = Timestamp::now().as_millisecond();
    }

    /// The only container, or the one that was named.
    fn one(&self, all: Vec<Container>) -> Result<Container, Failure> {
        let why = |why: String| Failure::Online { what: format!("{}/{}", self.namespace, self.pod), why };
        let names: Vec<String> = all.iter().map(|c| c.owner.container.clone()).collect();
        let mut own =
            all.into_iter().filter(|c| self.container.as_ref().is_none_or(|n| *n == c.owner.container));
        match (own.next(), own.next()) {
            (Some(c), None) => Ok(c),
            (Some(_), Some(_)) => Err(why(format!(
                "it has several containers ({}): name one with --pod NAMESPACE/POD/CONTAINER",
                names.join(", ")
            ))),
            (None, _) if names.is_empty() => Err(why(
                "Prometheus has no two samples of its memory in the last 20 minutes \
                 (container_memory_working_set_bytes of cAdvisor, or the agent's). Is the name right, and is it scraped?"
                    .into(),
            )),
            (None, _) => Err(why(format!("Prometheus knows of its containers {}", names.join(", ")))),
        }
    }

    /// Made where a runtime runs.
    fn access(&self) -> Result<SeriesAccess, Failure> {
        capture::store(&self.url, self.token.clone()).map_err(|e| failed(&e))
    }

    fn selector(&self, prefix: &str) -> String {
        format!("{prefix}namespace=\"{}\",{prefix}pod=\"{}\"", self.namespace, self.pod)
    }

    /// All samples of a time, in milliseconds.
    fn ask(&self, from: i64, to: i64) -> Result<Vec<Series>, Failure> {
        let seconds = (to - from).max(1_000) / 1_000 + 1;
        let at = to.div_euclid(1_000) + 1;
        block_on(async {
            let access = self.access()?;
            let mut all = Vec::new();
            for metric in METRICS {
                // Exporters' own labels may stand apart.
                let of = |prefix| format!("{metric}{{{}}}[{seconds}s]", self.selector(prefix));
                for query in [of(""), of("exported_")] {
                    all.push(read(&access.at(&query, at).await.map_err(|e| failed(&e))?));
                }
            }
            Ok(joined(all))
        })
    }

    /// VRAM of all cards that the pod has.
    fn vram_total(&self, at: i64) -> Option<u64> {
        let of = |prefix: &str| {
            let s = self.selector(prefix);
            format!(
                "sum(max by (UUID, gpu, GPU_I_ID) (DCGM_FI_DEV_FB_USED{{{s}}} + DCGM_FI_DEV_FB_FREE{{{s}}})) * 1048576"
            )
        };
        let s = self.selector("");
        let own = format!(
            "sum(max by (UUID) (dualplane_gpu_memory_size_bytes) and on (UUID) dualplane_container_gpu_memory_used_bytes{{{s}}})"
        );
        let query = format!("{own} or {} or {}", of(""), of("exported_"));
        let answer =
            block_on(async { self.access()?.at(&query, at.div_euclid(1_000)).await.map_err(|e| failed(&e)) });
        let value = answer.ok()?.pointer("/data/result/0/value/1")?.as_str()?.parse::<f64>().ok()?;
        (value.is_finite() && value > 0.0).then_some(value as u64)
    }

    /// Seconds on the clock of the measurement.
    fn clock(&self, ms: i64) -> f64 {
        (ms - self.zero) as f64 / 1_000.0
    }

    fn samples(&self, i: &Instance, total: Option<u64>) -> Vec<Sample> {
        let at = |gauge: Gauge, ms: i64| {
            let all = i.of(gauge);
            all.binary_search_by_key(&ms, |(at, _)| *at).ok().and_then(|n| all.get(n)).map(|(_, v)| *v as u64)
        };
        // A limit is told by another exporter, at times of its own: the last one before holds.
        let last = |gauge: Gauge, ms: i64| {
            let all = i.of(gauge);
            let n = all.partition_point(|(at, _)| *at <= ms).max(1) - 1;
            all.get(n).map(|(_, v)| *v as u64).filter(|v| *v > 0)
        };
        let host = i.of(Gauge::WorkingSet).iter().map(|(ms, working_set)| {
            let (cache, inactive, active) =
                (at(Gauge::Cache, *ms), at(Gauge::InactiveFile, *ms), at(Gauge::ActiveFile, *ms));
            // What is page cache and on neither list of files is tmpfs.
            let rest = cache.zip(inactive).zip(active).map(|((c, i), a)| c.saturating_sub(i + a));
            let host = Host {
                working_set: Some(*working_set as u64),
                anon: at(Gauge::Anon, *ms),
                shmem: at(Gauge::Shmem, *ms).or(rest),
                file: cache,
                pinned: at(Gauge::Locked, *ms),
                peak: at(Gauge::Peak, *ms),
                limit: last(Gauge::Limit, *ms),
                ..Host::default()
            };
            Sample { at: self.clock(*ms), host: Some(host), ..Sample::default() }
        });
        let vram = i.of(Gauge::Vram).iter().map(|(ms, used)| Sample {
            at: self.clock(*ms),
            vram: Some(*used as u64),
            vram_total: total,
            ..Sample::default()
        });
        let mut all: Vec<Sample> = host.chain(vram).collect();
        all.order_by(|a, b| a.at.total_cmp(&b.at));
        all
    }
}

/// What ended within this time: a start that follows another, or a kill inside a container that lived on.
fn ends(c: &Container, from: i64, to: i64) -> Vec<Restart> {
    let within = |at: i64| at > from && at <= to;
    let told = |at: i64| Timestamp::from_millisecond(at).ok().map(|t| t.to_string());
    let killed = |at: i64, trigger: Option<String>| Restart {
        at: told(at),
        class: Some("host_oom_killed".into()),
        plane: Some("host".into()),
        trigger,
        ..Restart::default()
    };
    let mut out = Vec::new();
    for (n, i) in c.instances.iter().enumerate() {
        let ended = i.of(Gauge::OomEnded).iter().any(|(_, v)| *v == 1.0);
        if n > 0 && within(i.from) {
            out.push(if ended {
                killed(i.from, None)
            } else {
                Restart { at: told(i.from), ..Restart::default() }
            });
        }
        for pair in i.of(Gauge::OomKills).windows(2) {
            if let [(_, a), (at, b)] = pair
                && b > a
                && within(*at)
            {
                out.push(killed(
                    *at,
                    Some(format!("the kernel counted {:.0} kills in the container", b - a)),
                ));
            }
        }
    }
    out
}

/// Puts what was scraped during a run into it: from `from` to `to` seconds on the clock of the measurement.
pub(super) fn planes(bench: &Bench<'_>, gather: &mut Gather, from: f64, to: f64) -> Result<(), Failure> {
    let Some(store) = &bench.store else { return Ok(()) };
    let ms = |at: f64| store.zero + (at * 1_000.0) as i64;
    let (first, last) = (ms(from), ms(to));
    let mut progress = output::Progress::new();
    let waited = std::time::Instant::now();
    let (container, complete) = loop {
        let now = Timestamp::now().as_millisecond();
        let found = store.one(containers(&store.ask(first - BEFORE_MS, now)?));
        let complete = found.as_ref().is_ok_and(|c| c.instances.iter().any(|i| i.to >= last));
        if complete || waited.elapsed() > LAST || bench.stopped() {
            break (found, complete);
        }
        progress.line(&format!("waits for the scrape behind the run, {} s", waited.elapsed().as_secs()));
        let look = std::time::Instant::now();
        while look.elapsed() < EACH && !bench.stopped() {
            std::thread::park_timeout(Duration::from_millis(100));
        }
    };
    progress.clear();
    let container = match container {
        Ok(container) => container,
        Err(e) => {
            output::note(&format!("no planes of this run: {e}"));
            return Ok(());
        }
    };
    if !complete {
        output::note(
            "Prometheus has no sample from after the run: its last seconds are not in the figures of both planes",
        );
    }
    let total = store.vram_total(last);
    let own = |s: &Sample| s.at >= from - 1.0 && s.at <= to + EACH.as_secs_f64();
    for i in &container.instances {
        let all: Vec<Sample> = store.samples(i, total).into_iter().filter(own).collect();
        gather.planes_later(&all);
    }
    let told = |i: &Instance| !i.of(Gauge::Restarts).is_empty() || !i.of(Gauge::OomKills).is_empty();
    if container.instances.iter().any(told) {
        gather.watched();
    }
    for end in ends(&container, first, last + 1_000) {
        gather.died(end);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use dualplane_resources::record::Owner;
    use std::collections::BTreeMap;

    fn instance(from: i64, to: i64, values: &[(Gauge, &[(i64, f64)])]) -> Instance {
        let values: BTreeMap<Gauge, Vec<(i64, f64)>> = values.iter().map(|(g, v)| (*g, v.to_vec())).collect();
        Instance { from, to, values }
    }

    fn container(instances: Vec<Instance>) -> Container {
        let owner = Owner { namespace: "n".into(), pod: "p".into(), container: "c".into() };
        Container { owner, instances, step: 15_000 }
    }

    #[test]
    fn ends_within_the_run_are_told_and_no_others() {
        let first = instance(0, 60_000, &[(Gauge::OomKills, &[(10_000, 0.0), (40_000, 2.0), (55_000, 2.0)])]);
        let second = instance(70_000, 90_000, &[(Gauge::OomEnded, &[(75_000, 1.0)])]);
        let third = instance(100_000, 120_000, &[]);
        let c = container(vec![first, second, third]);
        let classes = |from, to| ends(&c, from, to).into_iter().map(|r| r.class).collect::<Vec<_>>();
        let killed = Some("host_oom_killed".to_owned());
        assert_eq!(classes(0, 200_000), [killed.clone(), killed.clone(), None]);
        assert_eq!(classes(60_000, 80_000), [killed]);
        assert!(classes(41_000, 69_000).is_empty());
    }
}
