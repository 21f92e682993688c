//! The second port: `/metrics`, `/status`, `/livez`, `/readyz`. GET and HEAD only, a request a connection.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

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

/// Serves until it is dropped.
pub async fn serve(listener: TcpListener, state: Arc<State>, labels: Arc<Labels>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Descriptors come back when connections end.
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
        let (state, labels) = (Arc::clone(&state), Arc::clone(&labels));
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let answer = answer(&state, &labels, &request);
                async move { Ok::<_, Infallible>(answer) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD)
                .max_buf_size(16 << 10)
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), service);
            let _ = timeout(LIFETIME, connection).await;
            drop(place);
        });
    }
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
            let body = serde_json::to_string(&page::status(state)).unwrap_or_default();
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
        _ => text(StatusCode::NOT_FOUND, "/metrics /status /livez /readyz\n".into()),
    }
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut r = Response::new(Full::new(Bytes::from(body)));
    *r.status_mut() = status;
    r.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    r
}
