//! A span for each request, for OpenTelemetry: OTLP over HTTP in JSON, without anything of a prompt.
//!
//! A thread of its own sends them in batches, so that a collector that is slow or away holds up no request; what it does not take
//! in time is counted.

use std::hash::{BuildHasher as _, RandomState};
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use dualplane_client::{agent, is_here};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use serde_json::{Value, json};

use crate::config::TracesConfig;
use crate::page::Labels;

/// Where a request stands in its trace: W3C Trace Context.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// Path of OTLP over HTTP, behind an endpoint that has none.
const PATH: &str = "/v1/traces";
/// Spans that wait to be sent: some 4 MiB.
const QUEUE: usize = 4096;
/// Spans of one message, and how long its first waits for others.
const BATCH: usize = 512;
const EACH: Duration = Duration::from_secs(1);
/// For one message.
const WITHIN: Duration = Duration::from_secs(5);
const CONNECT: Duration = Duration::from_secs(2);
/// Waits before a message is sent again; after the last it is given up.
const AGAIN: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(4), Duration::from_secs(16)];
/// Of what is read of an answer.
const ANSWER: u64 = 64 << 10;

/// A request's place in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    trace: u128,
    /// The caller's span.
    parent: Option<u64>,
    span: u64,
    sampled: bool,
}

impl Place {
    /// The caller's trace goes on, by the caller's own choice of whether it is kept; a new one is kept with this probability.
    #[must_use]
    pub fn of(headers: &HeaderMap, share: f64) -> Self {
        let mut given = headers.get_all(TRACEPARENT).iter();
        let caller = given.next().filter(|_| given.next().is_none());
        if let Some((trace, parent, sampled)) = caller.and_then(|v| parse(v.as_bytes())) {
            return Self { trace, parent: Some(parent), span: id(), sampled };
        }
        let low = id();
        // The same choice as OpenTelemetry's TraceIdRatioBased makes from the same id.
        let sampled = ((low >> 1) as f64) < share * (1_u64 << 63) as f64;
        Self { trace: (u128::from(id()) << 64) | u128::from(low), parent: None, span: id(), sampled }
    }

    /// Tells the server where its part of the trace belongs. A trace's state without its trace means nothing.
    pub fn tell(&self, headers: &mut HeaderMap) {
        let text = format!("00-{:032x}-{:016x}-{:02x}", self.trace, self.span, u8::from(self.sampled));
        if let Ok(value) = HeaderValue::from_str(&text) {
            headers.insert(TRACEPARENT, value);
        }
        if self.parent.is_none() {
            headers.remove("tracestate");
        }
    }

    /// Whether its spans are kept.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.sampled
    }

    /// Of the trace, as people look it up.
    #[must_use]
    pub fn trace(&self) -> String {
        format!("{:032x}", self.trace)
    }
}

/// Trace, span and whether it is kept, of a header. A later version may say more behind what this one says.
fn parse(value: &[u8]) -> Option<(u128, u64, bool)> {
    let number = |from: usize, to: usize| {
        let digits = value.get(from..to)?;
        let lower = digits.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        u128::from_str_radix(std::str::from_utf8(digits).ok().filter(|_| lower)?, 16).ok()
    };
    let dashes = [2, 35, 52].iter().all(|at| value.get(*at) == Some(&b'-'));
    let version = number(0, 2)?;
    let ends = if version == 0 { value.len() == 55 } else { matches!(value.get(55), None | Some(b'-')) };
    let (trace, span) = (number(3, 35)?, u64::try_from(number(36, 52)?).ok()?);
    let flags = number(53, 55)?;
    (dashes && ends && version != 0xff && trace != 0 && span != 0).then_some((trace, span, flags & 1 == 1))
}

/// A number that nobody else has; not zero.
fn id() -> u64 {
    // Each has other keys, which come from the kernel.
    RandomState::new().hash_one(0_u8).max(1)
}

/// What is told of one request.
#[derive(Debug, Clone)]
pub struct Span {
    /// Where it stands.
    pub place: Place,
    /// `POST /v1/chat/completions`, or the method alone where the path is anybody's.
    pub name: String,
    /// Nanoseconds since 1970.
    pub began: u64,
    /// Nanoseconds that it took.
    pub took: u64,
    /// Nanoseconds until it was admitted.
    pub admitted: Option<u64>,
    /// What was not as it should be.
    pub error: Option<&'static str>,
    /// What is known of it: names of OpenTelemetry's conventions, and ours.
    pub known: Vec<(&'static str, Value)>,
}

impl Span {
    fn json(&self) -> Value {
        let at = |ns: u64| self.began.saturating_add(ns).to_string();
        let events = self.admitted.map(|ns| json!({"timeUnixNano": at(ns), "name": "admitted"}));
        json!({
            "traceId": self.place.trace(), "spanId": format!("{:016x}", self.place.span),
            "parentSpanId": self.place.parent.map_or_else(String::new, |p| format!("{p:016x}")),
            "name": self.name,
            // SPAN_KIND_SERVER.
            "kind": 2,
            "startTimeUnixNano": at(0), "endTimeUnixNano": at(self.took),
            "attributes": attributes(&self.known),
            "events": events.as_slice(),
            // STATUS_CODE_ERROR, or that nobody says anything of it.
            "status": self.error.map_or_else(|| json!({}), |e| json!({"code": 2, "message": e})),
        })
    }
}

/// OTLP writes 64-bit numbers as text.
fn attributes(known: &[(&'static str, Value)]) -> Vec<Value> {
    let value = |v: &Value| match v {
        Value::Number(n) => json!({"intValue": n.to_string()}),
        Value::Bool(b) => json!({"boolValue": b}),
        Value::String(s) => json!({"stringValue": s}),
        other => json!({"stringValue": other.to_string()}),
    };
    known.iter().map(|(k, v)| json!({"key": k, "value": value(v)})).collect()
}

/// Where spans go.
#[derive(Debug, Clone)]
pub struct Collector {
    url: String,
    token: Option<PathBuf>,
}

impl Collector {
    /// Of what was said.
    ///
    /// # Errors
    /// The key, and what would be right.
    pub fn of(said: &TracesConfig) -> Result<Self, (&'static str, String)> {
        let wrong = |why: &str| Err(("traces.endpoint", format!("{} {why}", said.endpoint)));
        let Ok(uri) = said.endpoint.parse::<Uri>() else {
            return wrong("is no URL such as http://otel-collector:4318");
        };
        let (Some(scheme @ ("http" | "https")), Some(host)) = (uri.scheme_str(), uri.host()) else {
            return wrong("has no http:// or https:// and a host, as http://otel-collector:4318 has");
        };
        if !(0.0..=1.0).contains(&said.share) {
            return Err(("traces.share", "is not a share from 0 to 1".to_owned()));
        }
        if let Some(file) = &said.token {
            if scheme == "http" && !is_here(host) {
                return wrong("would carry the token of traces.token in the clear; use https://");
            }
            std::fs::read_to_string(file)
                .map_err(|e| ("traces.token", format!("cannot read {}: {e}", file.display())))?;
        }
        let path = if uri.path() == "/" && uri.query().is_none() { PATH } else { "" };
        let url = if path.is_empty() { &said.endpoint } else { said.endpoint.trim_end_matches('/') };
        Ok(Self { url: format!("{url}{path}"), token: said.token.clone() })
    }

    /// Whether it took them; an error says whether another try may help.
    fn take(&self, body: &[u8]) -> Result<(), (bool, String)> {
        let mut request = agent(WITHIN, CONNECT, ureq::tls::TlsConfig::default())
            .post(&self.url)
            .header("content-type", "application/json");
        if let Some(file) = &self.token {
            let token = std::fs::read_to_string(file).map_err(|e| (true, e.to_string()))?;
            request = request.header("authorization", format!("Bearer {}", token.trim()));
        }
        let answer = request.send(body).map_err(|e| (true, e.to_string()))?;
        let status = answer.status();
        // Read to its end, it leaves the connection in order.
        let _ = answer.into_body().into_reader().take(ANSWER).read_to_end(&mut Vec::new());
        match status.as_u16() {
            200..300 => Ok(()),
            code @ (429 | 502..=504) => Err((true, format!("it answers {code}"))),
            code => Err((false, format!("it answers {code}"))),
        }
    }
}

/// Takes spans.
#[derive(Debug)]
pub struct Traces {
    spans: SyncSender<Span>,
    lost: Arc<AtomicU64>,
    /// Share of the traces that begin here.
    pub share: f64,
    /// Ends with this.
    _alive: SyncSender<()>,
}

/// Ends when all spans are sent, or given up.
#[derive(Debug)]
pub struct Sending(Receiver<()>);

impl Sending {
    /// Waits for that. Whoever holds [`Traces`] is gone.
    pub fn wait(&self, most: Duration) {
        // It ends with its thread.
        let _ = self.0.recv_timeout(most);
    }
}

impl Traces {
    /// Starts a sender.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(
        to: Collector,
        share: f64,
        labels: &Labels,
        say: Arc<dyn Fn(&str) + Send + Sync>,
    ) -> std::io::Result<(Self, Sending)> {
        let (spans, queue) = sync_channel(QUEUE);
        let (ends, ended) = sync_channel(0);
        let (alive, over) = sync_channel(0);
        let lost = Arc::new(AtomicU64::new(0));
        let mut resource = vec![
            ("service.name", Value::from("dualplane-guard")),
            ("service.version", env!("CARGO_PKG_VERSION").into()),
        ];
        resource.extend(labels.0.iter().map(|(name, value)| {
            let name = match *name {
                "node" => "k8s.node.name",
                "namespace" => "k8s.namespace.name",
                "pod" => "k8s.pod.name",
                other => other,
            };
            (name, value.as_str().into())
        }));
        let counts = Arc::clone(&lost);
        std::thread::Builder::new().name("traces".into()).spawn(move || {
            let mut well = true;
            while let Some(batch) = next(&queue) {
                let sent = send(&to, &message(&resource, &batch), &over);
                if let Err(why) = &sent {
                    counts.fetch_add(batch.len() as u64, Ordering::Relaxed);
                    // Once for each time that it goes away.
                    if well {
                        say(&format!("traces: {} does not take spans: {why}", to.url));
                    }
                }
                well = sent.is_ok();
            }
            drop(ends);
        })?;
        Ok((Self { spans, lost, share, _alive: alive }, Sending(ended)))
    }

    /// Takes one, or counts it.
    pub fn take(&self, span: Span) {
        if self.spans.try_send(span).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Spans that nobody took.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

/// What goes together; `None` when nothing more will come.
fn next(queue: &Receiver<Span>) -> Option<Vec<Span>> {
    let mut batch = vec![queue.recv().ok()?];
    let until = Instant::now() + EACH;
    while batch.len() < BATCH {
        match queue.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(span) => batch.push(span),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    Some(batch)
}

fn message(resource: &[(&'static str, Value)], batch: &[Span]) -> Vec<u8> {
    let spans: Vec<Value> = batch.iter().map(Span::json).collect();
    let scope = json!({"name": "dualplane-guard", "version": env!("CARGO_PKG_VERSION")});
    json!({"resourceSpans": [{"resource": {"attributes": attributes(resource)}, "scopeSpans": [{"scope": scope, "spans": spans}]}]})
        .to_string()
        .into_bytes()
}

/// `over` ends when nobody has spans any more: then it waits no longer.
fn send(to: &Collector, body: &[u8], over: &Receiver<()>) -> Result<(), String> {
    let mut waits = AGAIN.iter();
    loop {
        match (to.take(body), waits.next()) {
            (Ok(()), _) => return Ok(()),
            (Err((true, _)), Some(wait)) => {
                if over.recv_timeout(*wait) == Err(RecvTimeoutError::Disconnected) {
                    return to.take(body).map_err(|(_, why)| why);
                }
            }
            (Err((_, why)), _) => return Err(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn with(value: &str) -> HeaderMap {
        let mut h = HeaderMap::new();
        h.insert(TRACEPARENT, HeaderValue::from_str(value).unwrap());
        h
    }

    const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_caller_s_trace_goes_on() {
        let p = Place::of(&with(CALLER), 0.0);
        assert!(p.is_kept() && p.trace() == "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(p.parent, Some(0x00f0_67aa_0ba9_02b7));
        assert!(!Place::of(&with(&CALLER.replace("-01", "-00")), 1.0).is_kept(), "the caller chose");
        assert_eq!(
            Place::of(&with(&format!("cc{}-more", &CALLER[2..])), 1.0).trace,
            p.trace,
            "a later version"
        );
        let (mut down, state) = (HeaderMap::new(), HeaderName::from_static("tracestate"));
        down.insert(&state, HeaderValue::from_static("a=1"));
        p.tell(&mut down);
        let told = Place::of(&down, 0.0);
        assert!(
            (told.trace, told.parent) == (p.trace, Some(p.span))
                && told.is_kept()
                && down.contains_key(&state)
        );
        Place::of(&HeaderMap::new(), 1.0).tell(&mut down);
        assert!(!down.contains_key(&state));
    }

    #[test]
    fn what_is_no_place_begins_a_new_trace() {
        for bad in [
            "",
            "00",
            &CALLER.to_uppercase(),
            &CALLER[..54],
            &format!("{CALLER}-"),
            &format!("{CALLER}0"),
            &format!("ff{}", &CALLER[2..]),
            &format!("cc{}more", &CALLER[2..]),
            &CALLER.replace("00f067aa0ba902b7", "0000000000000000"),
            &CALLER.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &CALLER.replace("-01", "-0g"),
            &CALLER.replace('-', "_"),
        ] {
            let p = Place::of(&with(bad), 1.0);
            assert!(p.parent.is_none() && p.trace != 0 && p.is_kept(), "{bad}");
        }
        let mut twice = with(CALLER);
        twice.append(TRACEPARENT, HeaderValue::from_static("00-1-2-3"));
        assert!(Place::of(&twice, 1.0).parent.is_none());
    }

    #[test]
    fn new_traces_are_kept_by_their_share() {
        let kept = |share| (0..4000).filter(|_| Place::of(&HeaderMap::new(), share).is_kept()).count();
        assert_eq!((kept(0.0), kept(1.0)), (0, 4000));
        // Five standard deviations.
        assert!((842..=1158).contains(&kept(0.25)), "{}", kept(0.25));
        let all: std::collections::BTreeSet<u128> =
            (0..4000).map(|_| Place::of(&HeaderMap::new(), 1.0).trace).collect();
        assert_eq!(all.len(), 4000);
    }

    proptest! {
        #[test]
        fn no_header_ends_it(value in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Some((trace, span, _)) = parse(&value) {
                prop_assert!(trace != 0 && span != 0 && value.len() >= 55);
            }
        }
    }

    #[test]
    fn an_endpoint_is_checked_and_gets_its_path() {
        let of = |endpoint: &str| TracesConfig { endpoint: endpoint.into(), share: 1.0, token: None };
        for (endpoint, url) in [
            ("http://c:4318", "http://c:4318/v1/traces"),
            ("https://c/", "https://c/v1/traces"),
            ("http://c/otlp/v1/traces", "http://c/otlp/v1/traces"),
        ] {
            assert_eq!(Collector::of(&of(endpoint)).unwrap().url, url);
        }
        for bad in ["", "c:4318", "grpc://c:4317", "http://", "http://a b"] {
            assert_eq!(Collector::of(&of(bad)).unwrap_err().0, "traces.endpoint", "{bad}");
        }
        assert_eq!(
            Collector::of(&TracesConfig { share: 1.5, ..of("http://c") }).unwrap_err().0,
            "traces.share"
        );
        let token = |endpoint: &str, file: &str| TracesConfig { token: Some(file.into()), ..of(endpoint) };
        assert_eq!(Collector::of(&token("https://c", "/no/such")).unwrap_err().0, "traces.token");
        assert!(Collector::of(&token("http://c", "/dev/null")).unwrap_err().1.contains("in the clear"));
        assert!(Collector::of(&token("http://127.0.0.1:4318", "/dev/null")).is_ok());
    }
}
