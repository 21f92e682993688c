//! One request to an OpenAI-compatible server over a kept connection, and when its tokens came.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use dualplane_runs::{Outcome, State};
use dualplane_wire::tls::Encrypted;
use dualplane_wire::{Answer, Broken, Unreached, Wire};
use serde::Deserialize;
use tokio::time::timeout;

/// To connect: a server that is this slow to take a connection is gone or full.
const CONNECT: Duration = Duration::from_secs(10);
/// Of a line of a stream; a token's line has some hundred bytes.
const MAX_LINE: usize = 1 << 20;
/// Connections that wait for their next use.
const MAX_IDLE: usize = 4_096;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// `/v1/chat/completions`.
    Chat,
    /// `/v1/completions`.
    Completions,
}

/// A URL that cannot be driven.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// It is no URL of a server.
    #[error("{0} is not a URL such as http://10.0.0.7:8000")]
    NoUrl(String),
    /// No connection to it can be encrypted.
    #[error("{0} is no host that a certificate could name")]
    Host(String),
    /// It holds a password.
    #[error("a password in a URL is seen by others; name a file with the key in DUALPLANE_ENGINE_TOKEN_FILE")]
    Password,
}

/// A server.
pub struct Target {
    host: String,
    port: u16,
    authority: String,
    path: String,
    /// What is asked.
    pub api: Api,
    /// Its model.
    pub model: String,
    /// Fields that only engines know (`ignore_eos`, `min_tokens`): answers get exactly as long as the shape says.
    pub exact: bool,
    /// Most seconds of a request.
    pub timeout: Duration,
    key: Option<String>,
    pub(crate) encrypted: Option<Encrypted>,
    idle: RefCell<Vec<Wire>>,
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target")
            .field("at", &self.authority)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// A piece of a streamed answer: only what counts.
#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<Choice>,
    usage: Option<Usage>,
    #[serde(default)]
    error: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Option<Delta>,
    text: Option<String>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<String>,
    #[serde(alias = "reasoning")]
    reasoning_content: Option<String>,
}

/// Tokens as the server counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Usage {
    #[serde(default)]
    pub(crate) prompt_tokens: u64,
    #[serde(default)]
    pub(crate) completion_tokens: u64,
}

/// What is to be asked.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) prompt: String,
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) cancel_after: Option<u64>,
}

/// What a stream said so far.
#[derive(Default)]
struct Heard {
    first: Option<f64>,
    last: Option<f64>,
    chunks: u64,
    usage: Option<Usage>,
    ended: bool,
    broken: bool,
}

impl Target {
    /// A server at `http://HOST:PORT` or `https://HOST`; `/v1` behind it is as good.
    ///
    /// # Errors
    /// The URL is none that can be driven.
    pub fn new(url: &str, api: Api, model: &str, key: Option<String>) -> Result<Self, TargetError> {
        let wrong = || TargetError::NoUrl(dualplane_base::text::printable(url).into_owned());
        let uri: http::Uri = url.parse().map_err(|_| wrong())?;
        let encrypts = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(wrong()),
        };
        let authority = uri.authority().ok_or_else(wrong)?;
        if authority.as_str().contains('@') {
            return Err(TargetError::Password);
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let none = || TargetError::Host(dualplane_base::text::printable(&host).into_owned());
        let encrypted = if encrypts { Some(Encrypted::to(&host).ok_or_else(none)?) } else { None };
        let path = uri.path().trim_end_matches('/');
        let path = path.strip_suffix("/v1").unwrap_or(path);
        Ok(Self {
            host,
            port: authority.port_u16().unwrap_or(if encrypts { 443 } else { 80 }),
            authority: authority.as_str().to_owned(),
            path: path.to_owned(),
            api,
            model: model.to_owned(),
            exact: true,
            timeout: Duration::from_secs(600),
            key,
            encrypted,
            idle: RefCell::new(Vec::new()),
        })
    }

    /// `http://HOST:PORT`, with the path before `/v1`.
    #[must_use]
    pub fn base(&self) -> String {
        let scheme = if self.encrypted.is_some() { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority, self.path)
    }

    /// Whether nobody listens there. A port that does not answer in time is no such one.
    #[must_use]
    pub fn refuses(&self) -> bool {
        use std::net::ToSocketAddrs as _;
        let refused = |a| {
            let tried = std::net::TcpStream::connect_timeout(&a, Duration::from_secs(1));
            tried.is_err_and(|e| e.kind() == std::io::ErrorKind::ConnectionRefused)
        };
        (self.host.as_str(), self.port).to_socket_addrs().is_ok_and(|mut all| all.all(refused))
    }

    /// The key of the server, for who asks its other pages.
    pub(crate) fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    fn body(&self, ask: &Ask) -> Vec<u8> {
        let mut body = serde_json::Map::new();
        body.insert("model".into(), self.model.as_str().into());
        match self.api {
            Api::Chat => {
                let message = serde_json::json!([{ "role": "user", "content": ask.prompt }]);
                body.insert("messages".into(), message);
            }
            Api::Completions => {
                body.insert("prompt".into(), ask.prompt.as_str().into());
            }
        }
        body.insert("max_tokens".into(), ask.output.into());
        if self.exact {
            body.insert("ignore_eos".into(), true.into());
            body.insert("min_tokens".into(), ask.output.into());
        }
        body.insert("stream".into(), true.into());
        body.insert("stream_options".into(), serde_json::json!({ "include_usage": true }));
        serde_json::to_vec(&body).unwrap_or_default()
    }

    /// The request as it is sent.
    fn request(&self, body: &[u8]) -> Vec<u8> {
        let path = match self.api {
            Api::Chat => "/v1/chat/completions",
            Api::Completions => "/v1/completions",
        };
        let key = self.key.as_deref().filter(|k| k.bytes().all(|b| b.is_ascii_graphic() || b == b' '));
        let key = key.map_or_else(String::new, |k| format!("authorization: Bearer {k}\r\n"));
        let head = format!(
            "POST {}{path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\naccept: text/event-stream\r\n\
             user-agent: dualplane/{}\r\n{key}content-length: {}\r\n\r\n",
            self.path,
            self.authority,
            env!("CARGO_PKG_VERSION"),
            body.len()
        );
        let mut all = Vec::with_capacity(head.len() + body.len());
        all.extend_from_slice(head.as_bytes());
        all.extend_from_slice(body);
        all
    }

    async fn connection(&self) -> Result<Wire, Unreached> {
        loop {
            let kept = self.idle.borrow_mut().pop();
            let Some(mut kept) = kept else { break };
            // One that the server closed meanwhile is not used.
            if kept.is_idle() {
                return Ok(kept);
            }
        }
        Wire::connect(&self.host, self.port, self.encrypted.as_ref(), CONNECT).await
    }

    /// Sends a request and reads its answer; times are seconds since `clock`.
    pub(crate) async fn send(&self, ask: &Ask, due: f64, clock: Instant) -> (Outcome, Option<Usage>) {
        let request = self.request(&self.body(ask));
        let sent = clock.elapsed().as_secs_f64();
        let mut heard = Heard::default();
        let state = match timeout(self.timeout, self.answer(request, ask, &mut heard, clock)).await {
            Ok(Ok(state)) => state,
            Ok(Err(state)) => state,
            Err(_) => State::Failed("timeout"),
        };
        let now = clock.elapsed().as_secs_f64();
        let usage = heard.usage.filter(|u| u.completion_tokens > 0 || u.prompt_tokens > 0);
        let outcome = Outcome {
            due,
            sent,
            first: heard.first,
            end: if state == State::Done { heard.last.unwrap_or(now) } else { now },
            input: usage.map_or(ask.input, |u| u.prompt_tokens),
            output: usage.map_or(heard.chunks, |u| u.completion_tokens),
            state,
        };
        (outcome, usage)
    }

    async fn answer(
        &self,
        request: Vec<u8>,
        ask: &Ask,
        heard: &mut Heard,
        clock: Instant,
    ) -> Result<State, State> {
        // Boxed: a connection is there already in most cases, and making one takes much room.
        let mut wire = Box::pin(self.connection()).await.map_err(|e| State::Failed(e.word()))?;
        wire.send(&request).await.map_err(|e| State::Failed(e.word()))?;
        drop(request);
        let (mut answer, mut rest) = (Answer::default(), Vec::new());
        loop {
            let more = wire
                .more(&mut answer, |data| take(data, &mut rest, heard, clock.elapsed().as_secs_f64()))
                .await
                .map_err(|e| State::Failed(e.word()))?;
            if let Some(status) = answer.status().filter(|s| *s != 200) {
                return Err(State::Status(status));
            }
            if heard.broken {
                return Err(State::Failed("error in stream"));
            }
            if ask.cancel_after.is_some_and(|n| heard.chunks > n) {
                // The connection goes with it: that is how a server notices.
                return Ok(State::Cancelled);
            }
            if !more {
                break;
            }
        }
        if !heard.ended {
            return Err(State::Failed(Broken::CutOff.word()));
        }
        if answer.keeps() && self.idle.borrow().len() < MAX_IDLE {
            self.idle.borrow_mut().push(wire);
        }
        Ok(State::Done)
    }
}

/// Takes bytes of a stream of events in.
fn take(data: &[u8], rest: &mut Vec<u8>, heard: &mut Heard, now: f64) {
    let mut bytes = data;
    while let Some(at) = bytes.iter().position(|b| *b == b'\n') {
        let (line, tail) = bytes.split_at(at);
        bytes = tail.get(1..).unwrap_or_default();
        if rest.is_empty() {
            event(line, heard, now);
        } else {
            rest.extend_from_slice(line);
            event(rest, heard, now);
            rest.clear();
        }
    }
    if rest.len() + bytes.len() <= MAX_LINE {
        rest.extend_from_slice(bytes);
    }
}

fn event(line: &[u8], heard: &mut Heard, now: f64) {
    let Some(data) = line.strip_prefix(b"data:") else { return };
    let data = data.trim_ascii();
    if data == b"[DONE]" {
        heard.ended = true;
        return;
    }
    let Ok(chunk) = serde_json::from_slice::<Chunk>(data) else { return };
    heard.broken |= chunk.error.is_some();
    heard.usage = chunk.usage.or(heard.usage);
    for choice in &chunk.choices {
        heard.ended |= choice.finish_reason.is_some();
        let of_delta = choice.delta.as_ref().map(|d| [d.content.as_deref(), d.reasoning_content.as_deref()]);
        let texts = of_delta.into_iter().flatten().chain([choice.text.as_deref()]).flatten();
        if texts.into_iter().any(|t| !t.is_empty()) {
            heard.chunks += 1;
            heard.first.get_or_insert(now);
            heard.last = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_read_wherever_it_is_cut() {
        let stream = b"data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\r\n\r\n: ping\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"b\"},\"finish_reason\":\"length\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";
        for cut in 0..stream.len() {
            let (mut heard, mut rest) = (Heard::default(), Vec::new());
            take(&stream[..cut], &mut rest, &mut heard, 1.0);
            take(&stream[cut..], &mut rest, &mut heard, 2.0);
            assert!(heard.ended && !heard.broken && heard.chunks == 2, "{cut}");
            assert_eq!(heard.usage, Some(Usage { prompt_tokens: 9, completion_tokens: 2 }));
        }
        let (mut heard, mut rest) = (Heard::default(), Vec::new());
        take(b"data: {\"error\":{\"message\":\"no\"}}\n\n", &mut rest, &mut heard, 1.0);
        assert!(heard.broken && heard.first.is_none());
    }

    #[test]
    fn urls_are_checked() {
        let of = |url: &str| Target::new(url, Api::Chat, "m", None).map(|t| t.base());
        assert_eq!(of("http://127.0.0.1:8000/v1/").unwrap(), "http://127.0.0.1:8000");
        assert_eq!(of("http://gw/llm/v1").unwrap(), "http://gw/llm");
        assert_eq!(of("https://gw/llm/v1").unwrap(), "https://gw/llm");
        assert_eq!(of("https://[::1]:8443").unwrap(), "https://[::1]:8443");
        assert_eq!(of("http://u:p@x").unwrap_err(), TargetError::Password);
        assert!(of("localhost:8000").is_err() && of("").is_err());
    }
}
