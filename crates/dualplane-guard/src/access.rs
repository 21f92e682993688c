//! One line a request, without anything of its prompt: JSON, to standard output or a file.
//!
//! A writer of its own takes the lines, so that a slow disk holds up no request; what it cannot take is counted.

use std::io::Write;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::Instant;

use serde_json::json;

use crate::state::State;

/// Lines that may wait for the disk.
const QUEUE: usize = 4096;
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
    prompt: Option<u64>,
    output: Option<u64>,
}

impl Entry {
    /// Of a request that came.
    #[must_use]
    pub fn new(id: &str, method: &str, path: &str) -> Self {
        Self {
            began: Instant::now(),
            id: id.to_owned(),
            method: method.chars().take(16).collect(),
            path: path.chars().take(PATH).collect(),
            tenant: String::new(),
            api: "other",
            server: None,
            status: 0,
            code: "",
            waited: 0,
            kv: 0,
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
            "prompt_tokens": self.prompt, "output_tokens": self.output,
        })
        .to_string()
    }
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
