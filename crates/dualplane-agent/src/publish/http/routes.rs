//! Requests to answers.

use std::net::IpAddr;

use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};

use super::body::Content;
use super::shared::{Access, Shared};
use crate::incident::{BUNDLE_SUFFIX, folder, list};
use crate::publish::metrics;

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

const INDEX: &str = "dualplane agent\n\n\
    /metrics              host RAM, VRAM, verdicts and the agent's own cost, as Prometheus text\n\
    /livez                200 while the agent is sampling\n\
    /readyz               503 while something that it needs does not work\n\
    /healthz              as /livez, with what does not work\n\
    /incidents            summaries, oldest first\n\
    /incidents/ID         one summary\n\
    /incidents/ID/bundle  its evidence: dualplane triage FILE\n";

type Answer = Response<Content>;

/// The answer to a request. Its body is never read.
pub(super) fn answer<B>(state: &Shared, peer: IpAddr, request: &Request<B>) -> Answer {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refused = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n".into());
        refused.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    let mut path = request.uri().path().trim_start_matches('/').split('/');
    match (path.next().unwrap_or_default(), path.next(), path.next(), path.next()) {
        ("", None, ..) => text(StatusCode::OK, INDEX.into()),
        ("metrics", None, ..) => match state.page() {
            Some(page) => with_type(StatusCode::OK, metrics::CONTENT_TYPE, Content::Whole(Some(page))),
            None => text(StatusCode::SERVICE_UNAVAILABLE, "no round yet\n".into()),
        },
        ("livez", None, ..) => health(state.health(), ""),
        ("healthz", None, ..) => health(state.health(), &state.faults()),
        ("readyz", None, ..) => health(state.readiness(), ""),
        ("incidents", rest @ (None | Some(_)), what, None) => {
            if !may_see(state.options.access, peer) {
                let why = "incidents contain logs and are not served to other hosts: use \
                --serve-incidents or kubectl port-forward\n";
                return text(StatusCode::FORBIDDEN, why.into());
            }
            incidents(state, rest.filter(|r| !r.is_empty()), what)
        }
        _ => not_here(),
    }
}

fn health(how: Result<String, String>, more: &str) -> Answer {
    match how {
        Ok(how) => text(StatusCode::OK, how + more),
        Err(why) => text(StatusCode::SERVICE_UNAVAILABLE, why + more),
    }
}

fn may_see(access: Access, peer: IpAddr) -> bool {
    match access {
        Access::Never => false,
        Access::Loopback => peer.is_loopback(),
        Access::Everybody => true,
    }
}

fn incidents(state: &Shared, id: Option<&str>, what: Option<&str>) -> Answer {
    let dir = &state.options.incidents;
    match (id, what) {
        (None, None) => match list(dir) {
            Ok((all, _)) => json(&all),
            Err(e) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{}: {e}\n", dir.display())),
        },
        (Some(id), None) => folder::summary(dir, id).map_or_else(not_here, |s| json(&s)),
        (Some(id), Some("bundle")) => {
            let Some((file, size)) = folder::bundle(dir, id) else { return not_here() };
            let mut answer = with_type(StatusCode::OK, "application/zstd", Content::Rest(file, size));
            // An id has no character that would have to be quoted.
            let name = format!("attachment; filename=\"{id}{BUNDLE_SUFFIX}\"");
            if let Ok(value) = HeaderValue::try_from(name) {
                answer.headers_mut().insert(header::CONTENT_DISPOSITION, value);
            }
            answer
        }
        _ => not_here(),
    }
}

fn json(value: &impl serde::Serialize) -> Answer {
    match serde_json::to_vec(value) {
        Ok(mut bytes) => {
            bytes.push(b'\n');
            with_type(StatusCode::OK, JSON, Content::Whole(Some(bytes.into())))
        }
        Err(e) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{e}\n")),
    }
}

fn not_here() -> Answer {
    text(StatusCode::NOT_FOUND, "not found; / lists the endpoints\n".into())
}

fn text(status: StatusCode, body: String) -> Answer {
    with_type(status, TEXT, Content::Whole(Some(body.into())))
}

fn with_type(status: StatusCode, kind: &'static str, content: Content) -> Answer {
    let mut answer = Response::new(content);
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}
