//! The page for Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use dualplane_admission::Code;
use dualplane_admission::server::Server;
use dualplane_base::deprecation::{DEPRECATED, metric_help};
use dualplane_base::metrics::push_label;

use crate::endings::Ending;
use crate::prompts::By;
use crate::state::{Counters, State, WAITS};
use crate::status::{PoolStatus, ServerStatus, Status, TenantStatus, status};

/// Where the guard runs: the agent's labels of everything.
#[derive(Debug, Clone, Default)]
pub struct Labels(pub Vec<(&'static str, String)>);

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
    counters(
        &mut page,
        &gate.counters,
        &state.endings.all(),
        state.traces.as_ref().map_or(0, crate::traces::Traces::lost),
    );
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

fn counters(page: &mut Page<'_>, c: &Counters, endings: &BTreeMap<Ending, u64>, spans_lost: u64) {
    let name = "dualplane_guard_requests_total";
    page.family(name, "counter", "Requests by what they asked for and the status of their answer; code is empty where a server answered.");
    for (e, n) in endings {
        let status = e.status.to_string();
        page.sample(name, &[("api", e.api), ("status", &status), ("code", e.code)], real(*n));
    }
    let name = "dualplane_guard_refusals_total";
    page.family(name, "counter", "Requests that admission refused, by code.");
    for code in Code::ALL {
        let n: u64 = endings.iter().filter(|(e, _)| e.code == code.word()).map(|(_, n)| *n).sum();
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
