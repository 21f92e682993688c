//! The routes of version 1, who may use them, and the document that describes them.

pub mod events;
pub mod fleet;
pub mod incidents;
mod rest;
pub mod upload;

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde::Serialize;
use utoipa::OpenApi;

use crate::app::{App, now};
use crate::auth::{Caller, Refusal, sha256};
use crate::problem::Problem;
use crate::store::{Scope, latest};

/// Whose connection it is.
#[derive(Debug, Clone, Copy)]
pub struct From(pub IpAddr);

/// The document.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "dualplane-server",
        description = "Incidents of a fleet. Errors are application/problem+json. Every caller sees only the namespaces of its token.",
        license(name = "Apache-2.0")
    ),
    paths(
        incidents::list,
        incidents::one,
        incidents::report,
        upload::incident,
        upload::bundle,
        upload::bundle_state,
        upload::agent,
        incidents::bundle,
        fleet::fleet,
        events::events,
    ),
    components(schemas(Problem))
)]
struct Document;

/// The OpenAPI document, made of the code.
#[must_use]
pub fn document() -> String {
    Document::openapi().to_pretty_json().unwrap_or_default()
}

/// All routes.
pub fn router(app: Arc<App>) -> Router {
    let asked = Router::new()
        .route("/v1/incidents", get(incidents::list))
        .route("/v1/incidents/{id}", get(incidents::one).put(upload::incident))
        .route("/v1/incidents/{id}/report", get(incidents::report))
        .route(
            "/v1/incidents/{id}/bundle",
            put(upload::bundle).head(upload::bundle_state).get(incidents::bundle),
        )
        .route("/v1/agent/{file}", put(upload::agent))
        .route("/v1/fleet", get(fleet::fleet))
        .route("/v1/events", get(events::events))
        .merge(crate::pages::router())
        .fallback(missing)
        .method_not_allowed_fallback(not_allowed)
        .layer(from_fn_with_state(Arc::clone(&app), admit));
    let open = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/v1/openapi.json", get(openapi))
        .merge(crate::pages::files())
        .merge(crate::login::router());
    open.merge(asked)
        .layer(from_fn_with_state(Arc::clone(&app), harden))
        .layer(from_fn(rest::pass_by))
        .with_state(app)
}

async fn missing() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "there is no such page: GET /v1/openapi.json lists them")
}

async fn not_allowed() -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "this page has no such method: GET /v1/openapi.json lists them",
    )
}

async fn ready(State(app): State<Arc<App>>) -> Result<&'static str, Problem> {
    // An empty database answers, too.
    let _ = latest(&*app.store, now()).await?;
    Ok("ready\n")
}

async fn openapi() -> Response {
    let mut response = Response::new(Body::from(document()));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Headers of every answer: nothing is guessed, framed or sent on.
async fn harden(State(_): State<Arc<App>>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    let mut set = |name: &'static str, value: &'static str| {
        if !headers.contains_key(name) {
            headers.insert(name, HeaderValue::from_static(value));
        }
    };
    set("x-content-type-options", "nosniff");
    set("referrer-policy", "no-referrer");
    set("content-security-policy", "default-src 'none'; frame-ancestors 'none'");
    set("cache-control", "private, no-cache");
    response
}

/// Who asks is known before anything is done; what changes something or is refused is noted.
async fn admit(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let from = request.extensions().get::<From>().map_or(IpAddr::from([0, 0, 0, 0]), |f| f.0);
    // HTTP/2 has the host in its URI.
    if !request.headers().contains_key(header::HOST)
        && let Some(host) = request.uri().authority().and_then(|a| HeaderValue::from_str(a.as_str()).ok())
    {
        request.headers_mut().insert(header::HOST, host);
    }
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let (who, response) = match app.auth.admit(request.headers(), from, &*app.store).await {
        Ok(caller) => {
            let who = caller.name.clone();
            let reads = matches!(method, Method::GET | Method::HEAD);
            let may = if reads && !path.ends_with("/bundle") { caller.reads() } else { true };
            request.extensions_mut().insert(caller);
            (who, if may { next.run(request).await } else { Problem::forbidden("read").into_response() })
        }
        Err(Refusal::Unknown) => {
            let response = match crate::login::instead(&app, &request) {
                Some(sign_in) => return sign_in,
                None => unknown(&app, &request),
            };
            ("-".to_owned(), response)
        }
        Err(refusal) => ("-".to_owned(), refused(refusal)),
    };
    let status = response.status();
    let denied = matches!(status.as_u16(), 401 | 403 | 421 | 429);
    if let Some(audit) = &app.audit
        && (denied || !matches!(method, Method::GET | Method::HEAD))
    {
        let at = now().to_string();
        audit.note(&at, &who, &from.to_string(), method.as_str(), &path, status.as_u16());
    }
    response
}

/// A browser asks for a password, unless there is a page to sign in at.
fn unknown(app: &App, request: &Request) -> Response {
    let signs_in = app.auth.oidc().is_some_and(crate::auth::oidc::Oidc::signs_in);
    let page = signs_in && !request.headers().contains_key(header::AUTHORIZATION);
    let how =
        if page { "Bearer realm=\"dualplane\"" } else { "Basic realm=\"dualplane\", charset=\"UTF-8\"" };
    let mut response = refused(Refusal::Unknown);
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(how));
    response
}

fn refused(refusal: Refusal) -> Response {
    match refusal {
        Refusal::Unknown => Problem::new(
            StatusCode::UNAUTHORIZED,
            "send a token: `Authorization: Bearer TOKEN`; a browser asks for it as a password, with any user name",
        )
        .into_response(),
        Refusal::TooFast => {
            Problem::later(StatusCode::TOO_MANY_REQUESTS, 1, "too many requests: ask again a little later")
                .into_response()
        }
        Refusal::Away => Problem::later(
            StatusCode::SERVICE_UNAVAILABLE,
            5,
            "the cluster or the issuer does not say whose token this is: send it again",
        )
        .into_response(),
        Refusal::Store => Problem::later(
            StatusCode::SERVICE_UNAVAILABLE,
            5,
            "the database does not say whether this session was ended: send it again",
        )
        .into_response(),
        Refusal::ForeignHost => Problem::new(
            StatusCode::MISDIRECTED_REQUEST,
            "without tokens this server answers to localhost and 127.0.0.1 only: ask it by one of these names",
        )
        .into_response(),
    }
}

/// The caller's namespaces, where it may read.
pub(crate) fn reading(caller: &Caller) -> Result<Scope, Problem> {
    if caller.reads() { Ok(caller.sees.clone()) } else { Err(Problem::forbidden("read")) }
}

/// JSON with an `ETag`; `304` where the caller has the same.
pub(crate) fn json(asked: &HeaderMap, value: &impl Serialize) -> Response {
    let body = serde_json::to_vec(value).unwrap_or_default();
    tagged(asked, "application/json", body)
}

/// Bytes with an `ETag`.
pub(crate) fn tagged(asked: &HeaderMap, kind: &'static str, body: Vec<u8>) -> Response {
    let sum = sha256(&body);
    let tag = format!("\"{}\"", sum.get(..32).unwrap_or(&sum));
    let has = asked.get(header::IF_NONE_MATCH).and_then(|v| v.to_str().ok()).is_some_and(|v| {
        v.split(',').map(|t| t.trim().trim_start_matches("W/")).any(|t| t == tag || t == "*")
    });
    let mut response = Response::new(if has { Body::empty() } else { Body::from(body) });
    if has {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
