//! What the guard tells of itself: a page for Prometheus and a document for `guard status`.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use dualplane_admission::Code;
use dualplane_admission::server::{Health, Server};
use dualplane_base::deprecation::{DEPRECATED, metric_help};
use dualplane_base::metrics::push_label;
use dualplane_base::text::printable;
use serde::{Deserialize, Serialize};

use crate::prompts::By;
use crate::state::{Counters, State, WAITS};

/// Schema of the status.
pub const SCHEMA: &str = "dualplane.guard/v1";
/// Tenants on a page: each is two series, and callers name them.
const MAX_TENANTS: usize = 200;

/// Where the guard runs: the agent's labels of everything.
#[derive(Debug, Clone, Default)]
pub struct Labels(pub Vec<(&'static str, String)>);

/// Status of the guard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// Seconds since the start.
    pub up_seconds: f64,
    /// Counts only.
    pub shadow: bool,
    /// Takes nothing more.
    pub draining: bool,
    /// Requests that are under way.
    pub under_way: u64,
    /// Bytes of bodies that are held.
    pub buffered_bytes: u64,
    /// The servers.
    pub servers: Vec<ServerStatus>,
    /// Services of a cluster whose pods are servers.
    #[serde(default)]
    pub services: Vec<ServiceStatus>,
    /// Who waits.
    pub pools: Vec<PoolStatus>,
    /// Tenants with something running or waiting.
    pub tenants: Vec<TenantStatus>,
    /// Refusals by code since the start.
    pub refused: std::collections::BTreeMap<String, u64>,
    /// In shadow mode: what would have become of requests.
    pub would: std::collections::BTreeMap<String, u64>,
    /// Models whose servers count prompts otherwise than the tokenizer that was given.
    #[serde(default)]
    pub other_tokenizer: Vec<String>,
}

/// Status of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerStatus {
    /// Name.
    pub name: String,
    /// Engine by its metrics.
    pub engine: Option<String>,
    /// Whether it answers.
    pub up: bool,
    /// What ended it last.
    pub last_death: Option<String>,
    /// Requests that run.
    pub running: u64,
    /// Tokens of its KV cache; null where nobody knows.
    pub kv_tokens: Option<u64>,
    /// Tokens that are given out at most now.
    pub kv_cap: Option<u64>,
    /// Tokens that requests are counted with.
    pub kv_held: u64,
    /// Used share of the KV cache as it says itself.
    pub kv_use: Option<f64>,
    /// Share of the budget that is given out, by the closed loop.
    pub share: f64,
    /// Why it is below 1.
    pub cause: Option<String>,
    /// Host RAM that cannot be reclaimed, bytes.
    pub host_held: Option<u64>,
    /// Its limit.
    pub host_limit: Option<u64>,
    /// Bytes that another request may take.
    pub host_free: Option<u64>,
    /// Why nothing is read of its host RAM.
    pub host_trouble: Option<String>,
}

/// Status of a Service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceStatus {
    /// `NAMESPACE/NAME`.
    pub name: String,
    /// Endpoints that get requests; null while nothing was heard of it.
    pub servers: Option<u64>,
    /// Endpoints that get none now.
    pub idle: u64,
    /// Endpoints without the port that was asked for, or too many.
    pub left_out: u64,
    /// Why this may be out of date.
    pub trouble: Option<String>,
}

/// Status of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolStatus {
    /// Name.
    pub name: String,
    /// Requests that wait.
    pub waiting: u64,
    /// Their tokens.
    pub tokens: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Status of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantStatus {
    /// Name.
    pub name: String,
    /// Requests that run.
    pub running: u64,
    /// Tokens that they are counted with.
    pub kv_held: u64,
    /// Requests that wait.
    pub waiting: u64,
}

/// The status of now.
#[must_use]
pub fn status(state: &State) -> Status {
    let now = state.now();
    let services = state.services().into_iter().map(|(name, s)| ServiceStatus {
        name,
        servers: s.heard.then_some(s.behind.servers.len() as u64),
        idle: s.behind.idle as u64,
        left_out: s.behind.left_out as u64,
        trouble: s.trouble,
    });
    let services = services.collect();
    let gate = state.gate();
    let servers = gate.current.iter().filter_map(|n| {
        let (s, t, seen) = (gate.admission.servers().get(*n)?, gate.targets.get(*n)?, gate.seen.get(*n)?);
        let host = s.host.reading(now);
        Some(ServerStatus {
            name: printable(&t.name).into_owned(),
            engine: seen.engine.map(str::to_owned),
            up: s.health() != Health::Down,
            last_death: seen.last_death().map(|c| c.as_str().to_owned()),
            running: s.running(),
            kv_tokens: s.limits.kv,
            kv_cap: s.cap_now(now),
            kv_held: s.kv_held(),
            kv_use: s.said().kv_use,
            share: s.throttle().share(),
            cause: s.throttle().cause().map(|c| c.word().to_owned()),
            host_held: host.map(|h| h.held),
            host_limit: host.and_then(|h| h.limit),
            host_free: s.host.free(now),
            host_trouble: seen.host_trouble.clone(),
        })
    });
    let pools = gate.admission.pools().map(|(name, waiting, bytes, tokens)| PoolStatus {
        name: printable(name).into_owned(),
        waiting: waiting as u64,
        tokens,
        bytes,
    });
    let tenants = gate.admission.tenants().take(MAX_TENANTS).map(|(name, used, waiting)| TenantStatus {
        name: printable(name).into_owned(),
        running: used.running,
        kv_held: used.kv,
        waiting: waiting as u64,
    });
    let mut refused = std::collections::BTreeMap::new();
    for (e, n) in gate.counters.endings.iter().filter(|(e, _)| !e.code.is_empty()) {
        *refused.entry(e.code.to_owned()).or_insert(0) += n;
    }
    let would = gate.counters.would.iter().map(|(w, n)| ((*w).to_owned(), *n)).collect();
    let other_tokenizer = gate.learnt.mistrusted().map(|m| printable(m).into_owned()).collect();
    Status {
        schema: SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        up_seconds: std::time::Duration::from_millis(now).as_secs_f64(),
        shadow: gate.admission.policy().shadow,
        draining: state.is_draining(),
        under_way: state.under_way.load(Ordering::Relaxed),
        buffered_bytes: state.buffered(),
        servers: servers.collect(),
        services,
        pools: pools.collect(),
        tenants: tenants.collect(),
        refused,
        would,
        other_tokenizer,
    }
}

/// A page that is being written.
struct Page<'l> {
    out: String,
    labels: &'l Labels,
}

impl Page<'_> {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let help = metric_help(name, help, DEPRECATED);
        // Writing into a String cannot fail.
        let _ = writeln!(self.out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        if !value.is_finite() {
            return;
        }
        self.out.push_str(name);
        let own = self.labels.0.iter().map(|(k, v)| (*k, v.as_str()));
        let mut first = true;
        for (k, v) in own.chain(labels.iter().copied()) {
            self.out.push(if first { '{' } else { ',' });
            first = false;
            push_label(&mut self.out, k, v);
        }
        let _ = writeln!(self.out, "{} {value}", if first { "" } else { "}" });
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: f64) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus has floats alone")]
fn real(n: u64) -> f64 {
    n as f64
}

/// The page for Prometheus.
#[must_use]
pub fn metrics(state: &State, labels: &Labels) -> String {
    let (now, s) = (state.now(), status(state));
    let mut page = Page { out: String::with_capacity(8 << 10), labels };
    let gate = state.gate();
    let name = "dualplane_guard_prompts_total";
    page.family(name, "counter", "Prompts by what told their tokens before they were sent.");
    for by in By::ALL {
        page.sample(name, &[("counted_by", by.word())], real(state.counted(by)));
    }
    counters(&mut page, &gate.counters, state.traces.as_ref().map_or(0, crate::traces::Traces::lost));
    servers(&mut page, &s);
    services(&mut page, &s);
    page.family(
        "dualplane_guard_server_budget_steps_down_total",
        "counter",
        "Times the budget was made smaller.",
    );
    for n in &gate.current {
        if let (Some(server), Some(t)) = (gate.admission.servers().get(*n), gate.targets.get(*n)) {
            let server: &Server = server;
            let steps = real(server.throttle().steps());
            page.sample("dualplane_guard_server_budget_steps_down_total", &[("server", &t.name)], steps);
        }
    }
    let expected = gate.admission.expected_wait("", 0, 1);
    drop(gate);
    waiting(&mut page, &s);
    if let Some(ms) = expected {
        let seconds = std::time::Duration::from_millis(ms).as_secs_f64();
        page.one(
            "dualplane_guard_expected_wait_seconds",
            "gauge",
            "How long the next request of a new tenant would wait.",
            seconds,
        );
    }
    page.one(
        "dualplane_guard_requests_under_way",
        "gauge",
        "Requests that are under way.",
        real(s.under_way),
    );
    page.one(
        "dualplane_guard_buffered_bytes",
        "gauge",
        "Bytes of bodies that are held.",
        real(s.buffered_bytes),
    );
    page.one("dualplane_guard_shadow", "gauge", "1 in shadow mode.", f64::from(u8::from(s.shadow)));
    page.one(
        "dualplane_guard_draining",
        "gauge",
        "1 while it takes nothing more.",
        f64::from(u8::from(s.draining)),
    );
    page.one(
        "dualplane_guard_up_seconds",
        "gauge",
        "Seconds since the start.",
        std::time::Duration::from_millis(now).as_secs_f64(),
    );
    page.out
}

fn counters(page: &mut Page<'_>, c: &Counters, spans_lost: u64) {
    let name = "dualplane_guard_requests_total";
    page.family(name, "counter", "Requests by what they asked for and the status of their answer; code is empty where a server answered.");
    for (e, n) in &c.endings {
        let status = e.status.to_string();
        page.sample(name, &[("api", e.api), ("status", &status), ("code", e.code)], real(*n));
    }
    let name = "dualplane_guard_refusals_total";
    page.family(name, "counter", "Requests that admission refused, by code.");
    for code in Code::ALL {
        let n: u64 = c.endings.iter().filter(|(e, _)| e.code == code.word()).map(|(_, n)| *n).sum();
        page.sample(name, &[("code", code.word())], real(n));
    }
    if !c.would.is_empty() {
        let name = "dualplane_guard_shadow_decisions_total";
        page.family(name, "counter", "In shadow mode: what would have become of requests.");
        for (would, n) in &c.would {
            page.sample(name, &[("would", would)], real(*n));
        }
    }
    let name = "dualplane_guard_queue_wait_seconds";
    page.family(name, "histogram", "Time in the queue of requests that were sent.");
    let mut sum = 0;
    for (at, n) in c.waits.iter().enumerate() {
        sum += n;
        let le = WAITS.get(at).map_or_else(
            || "+Inf".to_owned(),
            |ms| (std::time::Duration::from_millis(*ms).as_secs_f64()).to_string(),
        );
        page.sample(&format!("{name}_bucket"), &[("le", &le)], real(sum));
    }
    page.sample(&format!("{name}_sum"), &[], std::time::Duration::from_millis(c.waited).as_secs_f64());
    page.sample(&format!("{name}_count"), &[], real(sum));
    page.one(
        "dualplane_guard_cancelled_total",
        "counter",
        "Requests whose caller went away.",
        real(c.cancelled),
    );
    page.one(
        "dualplane_guard_moved_total",
        "counter",
        "Requests sent to another server, as the first took no connection.",
        real(c.moved),
    );
    page.one(
        "dualplane_guard_access_log_lost_total",
        "counter",
        "Lines that the access log could not take.",
        real(c.log_lost),
    );
    page.one(
        "dualplane_guard_spans_lost_total",
        "counter",
        "Spans that no collector took.",
        real(spans_lost),
    );
    let name = "dualplane_guard_tokens_total";
    page.family(name, "counter", "Tokens as servers counted them.");
    page.sample(name, &[("kind", "prompt")], real(c.tokens.0));
    page.sample(name, &[("kind", "output")], real(c.tokens.1));
    let name = "dualplane_guard_server_deaths_total";
    page.family(name, "counter", "Times that a server went down, by what is known of its end.");
    for ((server, class), n) in &c.deaths {
        page.sample(name, &[("server", server), ("class", class)], real(*n));
    }
}

/// A gauge of a server: its name, its help, its value.
type Gauge = (&'static str, &'static str, fn(&ServerStatus) -> Option<f64>);

const GAUGES: &[Gauge] = &[
    ("dualplane_guard_server_up", "1 while it answers.", |s| Some(f64::from(u8::from(s.up)))),
    ("dualplane_guard_server_running", "Requests that run.", |s| Some(real(s.running))),
    ("dualplane_guard_server_kv_tokens", "Tokens of its KV cache.", |s| s.kv_tokens.map(real)),
    ("dualplane_guard_server_kv_cap_tokens", "Tokens that are given out at most now.", |s| {
        s.kv_cap.map(real)
    }),
    ("dualplane_guard_server_kv_held_tokens", "Tokens that requests are counted with.", |s| {
        Some(real(s.kv_held))
    }),
    ("dualplane_guard_server_kv_use_ratio", "Used share of the KV cache as it says itself.", |s| s.kv_use),
    ("dualplane_guard_server_budget_ratio", "Share of the budget that the closed loop gives out.", |s| {
        Some(s.share)
    }),
    ("dualplane_guard_server_host_held_bytes", "Host RAM that cannot be reclaimed.", |s| {
        s.host_held.map(real)
    }),
    ("dualplane_guard_server_host_limit_bytes", "Limit of its host RAM.", |s| s.host_limit.map(real)),
    ("dualplane_guard_server_host_free_bytes", "Host RAM that another request may take.", |s| {
        s.host_free.map(real)
    }),
];

fn servers(page: &mut Page<'_>, s: &Status) {
    for (name, help, value) in GAUGES {
        page.family(name, "gauge", help);
        for server in &s.servers {
            if let Some(v) = value(server) {
                page.sample(name, &[("server", &server.name)], v);
            }
        }
    }
}

fn services(page: &mut Page<'_>, s: &Status) {
    let name = "dualplane_guard_service_endpoints";
    page.family(
        name,
        "gauge",
        "Endpoints of a Service: those that get requests, and those that get none now.",
    );
    for service in &s.services {
        for (state, n) in [("used", service.servers.unwrap_or(0)), ("idle", service.idle)] {
            page.sample(name, &[("service", &service.name), ("state", state)], real(n));
        }
    }
    let name = "dualplane_guard_service_known";
    page.family(name, "gauge", "1 while the API server tells of the Service; 0: what was known last stays.");
    for service in &s.services {
        let known = service.servers.is_some() && service.trouble.is_none();
        page.sample(name, &[("service", &service.name)], f64::from(u8::from(known)));
    }
}

fn waiting(page: &mut Page<'_>, s: &Status) {
    for (name, help, value) in [
        ("dualplane_guard_queue_requests", "Requests that wait.", (|p| p.waiting) as fn(&PoolStatus) -> u64),
        ("dualplane_guard_queue_tokens", "Tokens that wait: what more replicas would have to hold.", |p| {
            p.tokens
        }),
        ("dualplane_guard_queue_bytes", "Bytes of bodies that wait.", |p| p.bytes),
    ] {
        page.family(name, "gauge", help);
        for pool in &s.pools {
            page.sample(name, &[("pool", &pool.name)], real(value(pool)));
        }
    }
    for (name, help, value) in [
        (
            "dualplane_guard_tenant_running",
            "Requests of a tenant that run.",
            (|t| t.running) as fn(&TenantStatus) -> u64,
        ),
        ("dualplane_guard_tenant_waiting", "Requests of a tenant that wait.", |t| t.waiting),
    ] {
        page.family(name, "gauge", help);
        for tenant in &s.tenants {
            page.sample(name, &[("tenant", &tenant.name)], real(value(tenant)));
        }
    }
}
