//! The second port: `/metrics`, `/status`, `/livez`, `/readyz`, `/drained`. GET and HEAD only, a request a connection.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dualplane_admission::server::Health;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::page::{self, Labels};
use crate::state::State;

/// Connections at once.
const CONNECTIONS: usize = 64;
/// For the head of a request.
const HEAD: Duration = Duration::from_secs(5);
/// For a whole connection.
const LIFETIME: Duration = Duration::from_secs(30);
/// Of them, those that may wait for `/drained`.
const WAITERS: usize = 4;
/// Until a Service sends a pod nothing more.
const UNHEARD: Duration = Duration::from_secs(5);
/// … and then nothing is under way for so long.
const QUIET: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(100);

/// Serves until it is dropped.
pub async fn serve(listener: TcpListener, state: Arc<State>, labels: Arc<Labels>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let waiters = Arc::new(Semaphore::new(WAITERS));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Descriptors come back when connections end.
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
        let (state, labels, waiters) = (Arc::clone(&state), Arc::clone(&labels), Arc::clone(&waiters));
        tokio::spawn(async move {
            // Of a connection that waits for `/drained`.
            let waits_long = AtomicBool::new(false);
            let service = service_fn(|request| {
                let waits = *request.method() == Method::GET && request.uri().path() == "/drained";
                let place = waits.then(|| waiters.try_acquire());
                let at_once = if waits { None } else { Some(answer(&state, &labels, &request)) };
                let patience = Duration::from_secs(state.config().config.drain_seconds);
                if matches!(place, Some(Ok(_))) {
                    waits_long.store(true, Ordering::Relaxed);
                }
                let state = &state;
                async move {
                    Ok::<_, Infallible>(match (at_once, place) {
                        (Some(answer), _) => answer,
                        (None, Some(Ok(_place))) => drained(state, patience).await,
                        _ => text(StatusCode::SERVICE_UNAVAILABLE, "too many wait for it\n".into()),
                    })
                }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD)
                .max_buf_size(16 << 10)
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), service);
            let mut connection = std::pin::pin!(connection);
            if timeout(LIFETIME, &mut connection).await.is_err() && waits_long.load(Ordering::Relaxed) {
                let patience = Duration::from_secs(state.config().config.drain_seconds);
                let _ = timeout(patience, connection).await;
            }
            drop(place);
        });
    }
}

/// Answers once nothing is under way: for the hook that Kubernetes runs before it ends the server of a pod. A sidecar ends
/// after the server, and so cannot hold up its end by itself. Whoever asks changes nothing.
async fn drained(state: &State, patience: Duration) -> Response<Full<Bytes>> {
    let quiet = async {
        // A pod that is about to end still gets requests until all have heard of it.
        sleep(UNHEARD).await;
        let mut since = None;
        loop {
            let idle = state.under_way.load(Ordering::Relaxed) == 0;
            let now = Instant::now();
            let from = *since.get_or_insert(now);
            if !idle {
                since = None;
            } else if now.duration_since(from) >= QUIET {
                return;
            }
            sleep(LOOK).await;
        }
    };
    let left = timeout(patience, quiet).await.is_err();
    let said = if left { "requests are still under way after drain_seconds\n" } else { "drained\n" };
    text(StatusCode::OK, said.into())
}

fn answer(state: &State, labels: &Labels, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return text(StatusCode::METHOD_NOT_ALLOWED, "GET only\n".into());
    }
    match request.uri().path() {
        "/metrics" => {
            let mut r = text(StatusCode::OK, page::metrics(state, labels));
            let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
            r.headers_mut().insert(CONTENT_TYPE, kind);
            r
        }
        "/status" => {
            let body = serde_json::to_string(&crate::status::status(state)).unwrap_or_default();
            let mut r = text(StatusCode::OK, body);
            r.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            r
        }
        "/livez" => text(StatusCode::OK, "ok\n".into()),
        "/readyz" => {
            let up = state.gate().admission.servers().iter().any(|s| s.health() != Health::Down);
            match (state.is_draining(), up) {
                (false, true) => text(StatusCode::OK, "ok\n".into()),
                (true, _) => text(StatusCode::SERVICE_UNAVAILABLE, "draining\n".into()),
                (false, false) => text(StatusCode::SERVICE_UNAVAILABLE, "no server is up\n".into()),
            }
        }
        _ => text(StatusCode::NOT_FOUND, "/metrics /status /livez /readyz /drained\n".into()),
    }
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut r = Response::new(Full::new(Bytes::from(body)));
    *r.status_mut() = status;
    r.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    r
}
