//! Where what the agent knows goes: `/metrics`, folders, URLs, Events.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dualplane_agent::health::{Health, Level, line_of};
use dualplane_agent::publish::{
    Access as Seen, Counts, Deliveries, Directory, EventSink, Method, Options, Server, Shared, Sink, Tally,
    Verdicts, Web, WebConfig, read_headers,
};
use dualplane_agent::recorder::{Recorder, incidents_dir};
use dualplane_core::knowledge::Knowledge;
use dualplane_kube::access::Access;
use dualplane_node::clock::Moment;

use crate::args::{AgentArgs, Listen, SendMethod};
use crate::commands::Failure;
use crate::output;

/// Rounds are a second apart; after so long something hangs.
const STALE: Duration = Duration::from_secs(15);
/// Between two views for `/metrics`: Prometheus asks every 15 to 60 s.
const VIEW: Duration = Duration::from_secs(1);

/// All of them.
pub(super) struct Outlets {
    node: String,
    health: Arc<Health>,
    shared: Arc<Shared>,
    server: Option<Server>,
    deliveries: Deliveries,
    shown: Option<Moment>,
    kept: u64,
    round_time: Duration,
    rounds: u64,
    tally: Option<Tally>,
    /// What the incidents were at some revision of their folder's index.
    verdicts: (Option<u64>, Arc<Verdicts>),
}

impl Outlets {
    pub(super) fn open(
        args: &AgentArgs,
        node: &str,
        access: Option<&Access>,
        health: &Arc<Health>,
    ) -> Result<Self, Failure> {
        let incidents = incidents_dir(&args.state);
        let seen = if args.serve_incidents { Seen::Everybody } else { Seen::Loopback };
        let options =
            Options { incidents: incidents.clone(), access: seen, stale: STALE, health: Arc::clone(health) };
        let shared = Arc::new(Shared::new(options));
        let server = match args.listen {
            Listen::None => None,
            Listen::At(address) => Some(
                Server::start(address, Arc::clone(&shared))
                    .map_err(|e| Failure::Flag { flag: "--listen", why: e.to_string() })?,
            ),
        };
        let state = |e: std::io::Error| Failure::NoState { path: args.state.clone(), why: e.to_string() };
        std::fs::create_dir_all(&incidents).map_err(state)?;
        let deliveries =
            Deliveries::start(&args.state.join("delivered"), &incidents, sinks(args, access)?, health)
                .map_err(state)?;
        Ok(Self {
            node: node.to_owned(),
            health: Arc::clone(health),
            shared,
            server,
            deliveries,
            shown: None,
            kept: 0,
            round_time: Duration::ZERO,
            rounds: 0,
            tally: None,
            verdicts: (None, Arc::default()),
        })
    }

    /// Says what is recorded, where it is kept and where it answers.
    pub(super) fn announce(&self, r: &Recorder, state: &Path) {
        let view = r.view();
        let line = line_of(Level::Info, "start")
            .with("version", env!("CARGO_PKG_VERSION"))
            .with("node", &self.node)
            .with("containers", &view.containers.len().to_string())
            .with("gpus", &view.gpus.len().to_string())
            .with_some("no_gpus", view.gpu_gap.as_ref().map(ToString::to_string).as_deref())
            .with("state", &state.display().to_string())
            .with_some("metrics", self.server.as_ref().map(metrics_url).as_deref());
        self.health.say(line);
        self.write_lines();
    }

    /// Writes what happened since the last time.
    fn write_lines(&self) {
        for line in self.health.take_lines() {
            output::log(&line.to_string());
        }
    }

    /// The last words.
    pub(super) fn stopped(&self) {
        self.health.say(line_of(Level::Info, "stop").with("node", &self.node));
        self.write_lines();
    }

    /// Behind each step of the recorder.
    pub(super) fn after(&mut self, r: &Recorder) {
        self.write_lines();
        let counts = r.counts();
        if counts.rounds != self.rounds {
            self.rounds = counts.rounds;
            self.round_time += Duration::from_nanos(counts.round_ns);
        }
        let kept = r.shared().counts();
        let changed = kept.kept + kept.settled;
        if changed != self.kept {
            self.kept = changed;
            self.deliveries.wake();
        }
        let now = Moment::now();
        if self.server.is_none() || self.shown.is_some_and(|at| now.since(at) < VIEW) {
            return;
        }
        // While a bundle is written the page stays as it was.
        let Some(counts) = self.counts(r) else { return };
        self.shown = Some(now);
        self.shared.publish(Arc::new(r.view().clone()), Arc::new(counts));
    }

    fn counts(&mut self, r: &Recorder) -> Option<Counts> {
        let (counts, ring) = (r.counts(), r.ring());
        let shared = r.shared();
        let kept = shared.counts();
        let store = shared.try_store()?;
        let mut out = Counts {
            node: self.node.clone(),
            store: store.counts(),
            round_time: self.round_time,
            gpu_late: r.gpu_late(),
            ring_bytes: Some(ring.bytes),
            ring_span: ring.oldest.map(|o| r.view().at.since(o)),
            kernel_lost: counts.kernel_lost,
            lost: [
                ("bundle", kept.lost),
                ("verdict", kept.unjudged),
                ("later_death", counts.skipped),
                ("queue", counts.overrun),
                ("ring_record", ring.dropped_records),
            ]
            .into(),
            sinks: self.deliveries.counts(),
            ..Counts::default()
        };
        if self.verdicts.0 != Some(store.revision()) {
            let tally = self.tally.get_or_insert_with(|| Tally::new(store.all()));
            self.verdicts = (Some(store.revision()), Arc::new(tally.look(store.all().rev())));
        }
        out.verdicts = Arc::clone(&self.verdicts.1);
        Some(out)
    }
}

fn metrics_url(server: &Server) -> String {
    format!("http://{}/metrics", server.address())
}

/// Headers of a file. They are not given as flags: any user of the machine sees those.
fn headers(path: &Path) -> Result<Vec<(String, String)>, Failure> {
    let text =
        fs::read_to_string(path).map_err(|source| Failure::Unreadable { path: path.to_owned(), source })?;
    read_headers(&text)
        .map_err(|e| Failure::Flag { flag: "--send-headers", why: format!("{}: {e}", path.display()) })
}

fn sinks(args: &AgentArgs, access: Option<&Access>) -> Result<Vec<Box<dyn Sink>>, Failure> {
    let mut out: Vec<Box<dyn Sink>> = Vec::new();
    for dir in &args.copy_to {
        out.push(Box::new(Directory::new(dir)));
    }
    let headers = args.send_headers.as_deref().map(headers).transpose()?.unwrap_or_default();
    for url in &args.send_to {
        let config = WebConfig {
            method: match args.send_method {
                SendMethod::Put => Method::Put,
                SendMethod::Post => Method::Post,
            },
            url: url.clone(),
            token: args.send_token.clone(),
            ca: args.send_ca.clone(),
            headers: headers.clone(),
            token_in_clear: args.send_token_in_clear,
        };
        let web = Web::new(config).map_err(|e| Failure::Flag { flag: "--send-to", why: e.to_string() })?;
        out.push(Box::new(web));
    }
    if let Some(access) = access {
        let events =
            EventSink::new(access.clone(), Arc::new(Knowledge::embedded()?)).map_err(Failure::Runtime)?;
        out.push(Box::new(events));
    }
    Ok(out)
}
