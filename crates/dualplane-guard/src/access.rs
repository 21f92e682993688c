//! One line a request, without anything of its prompt: JSON, to standard output or a file.
//!
//! A writer of its own takes the lines, so that a slow disk holds up no request; what it cannot take is counted.

use std::io::Write;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::state::State;
use crate::traces::{Place, Span};

/// Lines that may wait for the disk.
const QUEUE: usize = 4096;
/// Of a path that is none of ours.
const OTHER: &str = "other";
/// Longest path that is written. It has no query: that may hold a key.
const PATH: usize = 200;

/// Where lines go.
#[derive(Debug, Default)]
pub struct AccessLog {
    lines: Option<SyncSender<String>>,
}

/// What is written of one request.
#[derive(Debug, Clone)]
pub struct Entry {
    began: Instant,
    place: Option<Place>,
    id: String,
    method: String,
    path: String,
    tenant: String,
    api: &'static str,
    server: Option<String>,
    status: u16,
    code: &'static str,
    waited: u64,
    kv: u64,
    admitted: Option<Instant>,
    prompt: Option<u64>,
    output: Option<u64>,
}

impl Entry {
    /// Of a request that came.
    #[must_use]
    pub fn new(id: &str, method: &str, path: &str, place: Option<Place>) -> Self {
        Self {
            began: Instant::now(),
            place,
            id: id.to_owned(),
            method: method.chars().take(16).collect(),
            path: path.chars().take(PATH).collect(),
            tenant: String::new(),
            api: OTHER,
            server: None,
            status: 0,
            code: "",
            waited: 0,
            kv: 0,
            admitted: None,
            prompt: None,
            output: None,
        }
    }

    /// Whose it is and what it asks for.
    pub fn asked(&mut self, tenant: &str, api: &'static str) {
        tenant.clone_into(&mut self.tenant);
        self.api = api;
    }

    /// What it is counted with and how long it waited.
    pub fn admitted(&mut self, kv: u64, waited: u64) {
        self.kv = kv;
        self.waited = waited;
        self.admitted = Some(Instant::now());
    }

    /// Who answers, and how.
    pub fn answered(&mut self, server: Option<&str>, status: u16) {
        self.server = server.map(str::to_owned);
        self.status = status;
    }

    /// Why the guard answered itself, or why the answer is not whole.
    #[must_use]
    pub fn code(mut self, code: &'static str) -> Self {
        self.code = code;
        self
    }

    /// What the server counted.
    #[must_use]
    pub fn tokens(mut self, prompt: Option<u64>, output: Option<u64>) -> Self {
        self.prompt = prompt;
        self.output = output;
        self
    }

    fn line(&self) -> String {
        let seconds = self.began.elapsed().as_secs_f64();
        json!({
            "time": now(), "id": self.id, "method": self.method, "path": self.path, "api": self.api,
            "tenant": self.tenant, "server": self.server, "status": self.status, "code": self.code,
            "seconds": (seconds * 1e4).round() / 1e4, "waited_ms": self.waited, "kv_tokens": self.kv,
            "prompt_tokens": self.prompt, "output_tokens": self.output, "trace": self.place.map(|p| p.trace()),
        })
        .to_string()
    }

    /// The span of a request that ended now; `None` where its trace is not kept.
    pub(crate) fn span(&self) -> Option<Span> {
        let place = self.place.filter(Place::is_kept)?;
        let took = ns(self.began.elapsed());
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        // A path that is none of ours is anybody's choice: too many names.
        let name = if self.api == OTHER { String::new() } else { format!(" {}", self.path) };
        let mut known = vec![
            ("http.request.method", self.method.as_str().into()),
            ("url.path", self.path.as_str().into()),
            ("http.response.status_code", self.status.into()),
            ("dualplane.request_id", self.id.as_str().into()),
            ("dualplane.api", self.api.into()),
        ];
        let mut tell = |name, value: Value| known.push((name, value));
        if !self.tenant.is_empty() {
            tell("dualplane.tenant", self.tenant.as_str().into());
        }
        if let Some(server) = &self.server {
            tell("dualplane.server", server.as_str().into());
        }
        if !self.code.is_empty() {
            tell("dualplane.code", self.code.into());
        }
        if self.kv > 0 {
            tell("dualplane.kv_tokens", self.kv.into());
            tell("dualplane.waited_ms", self.waited.into());
        }
        for (name, tokens) in
            [("gen_ai.usage.input_tokens", self.prompt), ("gen_ai.usage.output_tokens", self.output)]
        {
            if let Some(tokens) = tokens {
                tell(name, tokens.into());
            }
        }
        Some(Span {
            place,
            name: format!("{}{name}", self.method),
            began: ns(since).saturating_sub(took),
            took,
            admitted: self.admitted.map(|at| ns(at.saturating_duration_since(self.began))),
            // Who is told to come again, or went away, is no failure of the guard.
            error: (self.status >= 500 || self.code == "server_died").then_some(match self.code {
                "" => "the server failed",
                code => code,
            }),
            known,
        })
    }
}

fn ns(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)
}

/// Seconds since 1970.
fn now() -> f64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0.0, |d| (d.as_secs_f64() * 1e3).round() / 1e3)
}

impl AccessLog {
    /// No lines.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// To a writer.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn to(mut writer: Box<dyn Write + Send>) -> std::io::Result<Self> {
        let (lines, queue) = sync_channel::<String>(QUEUE);
        std::thread::Builder::new().name("access-log".into()).spawn(move || {
            while let Ok(line) = queue.recv() {
                // A disk that is full loses lines; it must not end what serves.
                let _ = writer.write_all(line.as_bytes());
                // All that wait go with one flush.
                while let Ok(line) = queue.try_recv() {
                    let _ = writer.write_all(line.as_bytes());
                }
                let _ = writer.flush();
            }
        })?;
        Ok(Self { lines: Some(lines) })
    }

    /// Whether there are lines at all.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.lines.is_some()
    }

    /// Writes one.
    pub(crate) fn write(&self, state: &State, entry: &Entry) {
        let Some(lines) = &self.lines else { return };
        if let Err(TrySendError::Full(_)) = lines.try_send(entry.line() + "\n") {
            state.gate().counters.log_lost += 1;
        }
    }
}
