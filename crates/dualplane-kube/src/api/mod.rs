//! Requests to the API server: bounded in number, size and time, friendly when it asks to wait.

mod error;
mod list;
pub mod path;
mod tail;

pub use error::ApiError;
pub use list::Listed;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use kube_client::client::Body;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::access::chain;

/// Requests in flight at once. `kubectl` sends one after another; API servers give a client some tens.
const IN_FLIGHT: usize = 6;
/// For a request with its repetitions, unless the caller says otherwise.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Of one answer that is held whole. Objects of etcd are at most 1.5 MiB; kubelet metrics of a full node are some MiB.
pub const MAX_BODY: usize = 32 << 20;
/// Of a refusal: a Status object, or a page of a proxy.
const MAX_REFUSAL: usize = 1 << 20;
/// Waits where the server names no time, doubled each time.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// For a slot, before the request's own time begins: what waits behind ten slow logs is late, not unanswered.
const QUEUE: Duration = Duration::from_secs(120);
/// The server may ask for more; then the source is a gap rather than a standstill.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// A cluster.
pub struct Api {
    client: kube_client::Client,
    server: String,
    namespace: String,
    timeout: Duration,
    /// `--request-timeout`, where it was given.
    asked: Option<Duration>,
    slots: Semaphore,
    waits: AtomicU64,
    identity: Identity,
    tails: tail::Tails,
}

/// As whom, in the kubeconfig's words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// Context of the kubeconfig.
    pub context: Option<String>,
    /// Its user, or who is impersonated by them.
    pub user: Option<String>,
}

/// How an answer came.
struct Streamed {
    bytes: u64,
    /// To its end.
    whole: bool,
}

/// What a change sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchType {
    /// `application/strategic-merge-patch+json`.
    Strategic,
    /// `application/merge-patch+json`, for kinds without strategic merge (custom resources).
    Merge,
    /// `application/json-patch+json`.
    Json,
}

impl PatchType {
    /// As the header says it.
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::Merge => "application/merge-patch+json",
            Self::Json => "application/json-patch+json",
        }
    }
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api")
            .field("server", &self.server)
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

impl Api {
    pub(crate) fn new(
        client: kube_client::Client,
        server: String,
        namespace: String,
        timeout: Option<Duration>,
    ) -> Self {
        let (asked, timeout) = (timeout, timeout.unwrap_or(TIMEOUT));
        let slots = Semaphore::new(IN_FLIGHT);
        Self {
            client,
            server,
            namespace,
            timeout,
            asked,
            slots,
            waits: AtomicU64::new(0),
            identity: Identity::default(),
            tails: tail::Tails::default(),
        }
    }

    pub(crate) fn known_as(mut self, identity: Identity) -> Self {
        self.identity = identity;
        self
    }

    /// Context and user.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The namespace of `-n` or of the context.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// URL of the API server.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// How often the server asked to wait (429, 503).
    #[must_use]
    pub fn waits(&self) -> u64 {
        self.waits.load(Ordering::Relaxed)
    }

    /// An answer that is held whole, at most [`MAX_BODY`].
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn get(&self, path: &str) -> Result<Vec<u8>, ApiError> {
        self.get_bounded(path, self.timeout, MAX_BODY).await
    }

    /// The same with a time of its own, which `--request-timeout` may shorten.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn get_within(&self, path: &str, time: Duration) -> Result<Vec<u8>, ApiError> {
        self.get_bounded(path, time, MAX_BODY).await
    }

    /// The same with a bound of its own: what a pod answers is not the API server's word, and may be of any size.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn get_bounded(&self, path: &str, time: Duration, bound: usize) -> Result<Vec<u8>, ApiError> {
        let time = self.asked.map_or(time, |asked| asked.min(time));
        let request = || Request::get(path).header(header::ACCEPT, "application/json, */*;q=0.8");
        self.whole(path, time, bound, || request().body(Body::from(Vec::new()))).await
    }

    /// An object.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn object(&self, path: &str) -> Result<Value, ApiError> {
        parse(path, &self.get(path).await?)
    }

    /// An answer as it comes: chunks go to `sink`; how many bytes came. `--request-timeout` replaces `time`.
    ///
    /// # Errors
    /// See [`ApiError`]. What came before a break was handed on; the caller says so.
    pub async fn stream(
        &self,
        path: &str,
        time: Duration,
        mut sink: impl FnMut(&[u8]),
    ) -> Result<u64, ApiError> {
        let all = |chunk: &[u8]| {
            sink(chunk);
            true
        };
        Ok(self.streamed(path, time, None, all).await?.bytes)
    }

    /// The same for as long as `sink` wants more. `true` where the answer came to its end.
    ///
    /// # Errors
    /// As [`Api::stream`].
    pub async fn stream_while(
        &self,
        path: &str,
        time: Duration,
        sink: impl FnMut(&[u8]) -> bool,
    ) -> Result<bool, ApiError> {
        Ok(self.streamed(path, time, None, sink).await?.whole)
    }

    async fn streamed(
        &self,
        path: &str,
        time: Duration,
        tail: Option<u64>,
        mut sink: impl FnMut(&[u8]) -> bool,
    ) -> Result<Streamed, ApiError> {
        let _slot = self.slot(path).await?;
        let deadline = Instant::now() + self.asked.unwrap_or(time);
        let request = || {
            let mut request = Request::get(path);
            if let Some(bytes) = tail {
                request = request.header(header::RANGE, format!("bytes=-{bytes}"));
            }
            request.body(Body::from(Vec::new()))
        };
        let mut body = self.send(path, deadline, request).await?.into_body();
        let mut bytes = 0;
        loop {
            let frame =
                timeout_at(deadline, body.frame()).await.map_err(|_| ApiError::TimedOut(path.to_owned()))?;
            let Some(frame) = frame else { return Ok(Streamed { bytes, whole: true }) };
            let frame = frame.map_err(|e| ApiError::Interrupted { path: path.to_owned(), why: chain(&e) })?;
            if let Some(data) = frame.data_ref() {
                bytes += data.len() as u64;
                if !sink(data) {
                    return Ok(Streamed { bytes, whole: false });
                }
            }
        }
    }

    /// Changes an object. Only `apply/` sends it, and `event.rs` to its own Events.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub(crate) async fn patch(&self, path: &str, kind: PatchType, patch: &Value) -> Result<Value, ApiError> {
        let text = serde_json::to_string(patch)
            .map_err(|e| ApiError::InvalidResponse { path: path.to_owned(), why: e.to_string() })?;
        self.write(Method::PATCH, path, kind.content_type(), as_go_writes(&text).into_bytes()).await
    }

    /// Makes an object. Only `event.rs` sends it, and `review.rs` its questions, which the API server does not keep.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub(crate) async fn post(&self, path: &str, object: &Value) -> Result<Value, ApiError> {
        let bytes = serde_json::to_vec(object)
            .map_err(|e| ApiError::InvalidResponse { path: path.to_owned(), why: e.to_string() })?;
        self.write(Method::POST, path, "application/json", bytes).await
    }

    async fn write(&self, method: Method, path: &str, kind: &str, bytes: Vec<u8>) -> Result<Value, ApiError> {
        let answer = self
            .whole(path, self.timeout, MAX_BODY, || {
                Request::builder()
                    .method(method.clone())
                    .uri(path)
                    .header(header::CONTENT_TYPE, kind)
                    .header(header::ACCEPT, "application/json")
                    .body(Body::from(bytes.clone()))
            })
            .await?;
        parse(path, &answer)
    }

    async fn whole(
        &self,
        path: &str,
        time: Duration,
        bound: usize,
        request: impl Fn() -> http::Result<Request<Body>>,
    ) -> Result<Vec<u8>, ApiError> {
        let _slot = self.slot(path).await?;
        let deadline = Instant::now() + time;
        let answer = self.send(path, deadline, request).await?;
        timeout_at(deadline, held(path, answer.into_body(), bound))
            .await
            .map_err(|_| ApiError::TimedOut(path.to_owned()))?
    }

    async fn slot(&self, path: &str) -> Result<tokio::sync::SemaphorePermit<'_>, ApiError> {
        // The semaphore is never closed, so only the time can end this.
        timeout(QUEUE, self.slots.acquire())
            .await
            .ok()
            .and_then(Result::ok)
            .ok_or_else(|| ApiError::TimedOut(path.to_owned()))
    }

    /// Sends until there is an answer that is worth reading, or the time is up.
    async fn send(
        &self,
        path: &str,
        deadline: Instant,
        request: impl Fn() -> http::Result<Request<Body>>,
    ) -> Result<Response<Body>, ApiError> {
        let mut wait = FIRST_WAIT;
        loop {
            let request = request()
                .map_err(|e| ApiError::InvalidResponse { path: path.to_owned(), why: e.to_string() })?;
            let read = request.method() == Method::GET;
            let answer = timeout_at(deadline, self.client.send(request))
                .await
                .map_err(|_| ApiError::TimedOut(path.to_owned()))?;
            let answer = match answer {
                Ok(answer) => answer,
                Err(e) => return Err(ApiError::of_client(&self.server, path, &e)),
            };
            let status = answer.status();
            if status.is_success() {
                return Ok(answer);
            }
            let asked = retry_after(&answer);
            // 503 and 504 may come after a change was made: that is looked up, not sent again.
            let busy = status == StatusCode::TOO_MANY_REQUESTS
                || read
                    && matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT)
                    && asked.is_some();
            if busy {
                self.waits.fetch_add(1, Ordering::Relaxed);
                // What it asks for is what it gets. A server that names no time, or 0 s, is asked ever less often.
                let pause = asked.filter(|a| !a.is_zero()).unwrap_or(wait);
                if pause > MAX_WAIT || Instant::now() + pause >= deadline {
                    return Err(ApiError::Busy { path: path.to_owned(), after: asked });
                }
                sleep(pause).await;
                wait = (wait * 2).min(MAX_WAIT);
                continue;
            }
            let body = timeout_at(deadline, held(path, answer.into_body(), MAX_REFUSAL))
                .await
                .ok()
                .and_then(Result::ok);
            return Err(ApiError::of_status(path, status, &body.unwrap_or_default()));
        }
    }
}

/// A body as a whole, up to the bound.
async fn held(path: &str, mut body: Body, bound: usize) -> Result<Vec<u8>, ApiError> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|e| ApiError::Interrupted { path: path.to_owned(), why: chain(&e) })?;
        if let Some(data) = frame.data_ref() {
            if bytes.len() + data.len() > bound {
                return Err(ApiError::TooLarge { path: path.to_owned(), bound });
            }
            bytes.extend_from_slice(data);
        }
    }
    Ok(bytes)
}

fn retry_after(answer: &Response<Body>) -> Option<Duration> {
    let seconds = answer.headers().get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// An object out of an answer.
pub(crate) fn parse(path: &str, bytes: &[u8]) -> Result<Value, ApiError> {
    serde_json::from_slice(bytes)
        .map_err(|e| ApiError::InvalidResponse { path: path.to_owned(), why: format!("not JSON: {e}") })
}
/// JSON with the escapes that Go's encoder uses. The API server compares the value of a JSON patch's `test` with the object
/// byte by byte, and finds `2>&1` unequal to itself where it is written otherwise (evanphx/json-patch).
fn as_go_writes(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        // These stand in strings only.
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_written_as_the_server_compares_it() {
        let patch = serde_json::json!({"value": "a <b && c 2>&1 \u{2028} \"é\""});
        let text = as_go_writes(&patch.to_string());
        assert_eq!(text, r#"{"value":"a \u003cb \u0026\u0026 c 2\u003e\u00261 \u2028 \"é\""}"#);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), patch);
    }
}
