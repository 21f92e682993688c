//! The ways to sign in and out. Who comes here is nobody yet: the address alone bounds how often.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{RawQuery, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use dualplane_pages::{Frame, POLICY, problem};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use crate::api::From;
use crate::app::{App, now};
use crate::auth::oidc::LoginError;
use crate::ended;
use crate::problem::Problem;

const HTML: &str = "text/html; charset=utf-8";

/// Where somebody signs in.
pub(crate) const PATH: &str = "/login";

/// The routes; there is somebody to sign in at only where an issuer is known.
pub fn router() -> Router<Arc<App>> {
    Router::new().route(PATH, get(begin)).route("/login/callback", get(end)).route("/logout", post(out))
}

/// Where a browser goes that asks for a page and has not said who asks.
pub(crate) fn instead(app: &App, asked: &Request) -> Option<Response> {
    let signs_in = app.auth.oidc().is_some_and(crate::auth::oidc::Oidc::signs_in);
    let headers = asked.headers();
    let page =
        headers.get(header::ACCEPT).and_then(|a| a.to_str().ok()).is_some_and(|a| a.contains("text/html"));
    let bare = asked.method() == Method::GET && !headers.contains_key(header::AUTHORIZATION);
    if !signs_in || !page || !bare {
        return None;
    }
    let to = asked.uri().path_and_query().map_or("/", |p| p.as_str());
    Some(see(&format!("{PATH}?to={}", dualplane_incidents::encode(to)), &[]))
}

fn see(to: &str, cookies: &[String]) -> Response {
    let Ok(to) = HeaderValue::from_str(to) else { return Problem::missing().into_response() };
    let mut response = StatusCode::SEE_OTHER.into_response();
    response.headers_mut().insert(header::LOCATION, to);
    with(response, cookies)
}

fn with(mut response: Response, cookies: &[String]) -> Response {
    for cookie in cookies.iter().filter_map(|c| HeaderValue::from_str(c).ok()) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    // Nothing between keeps who somebody is.
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn page(status: StatusCode, title: &str, what: &str) -> Response {
    let frame = Frame { now_ms: now().ms(), ..Frame::default() };
    let mut response = Response::new(Body::from(problem(&frame, title, what)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(HTML));
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    response
}

fn failed(e: &LoginError) -> Response {
    let status = match e {
        LoginError::Foreign | LoginError::Refused(_) => StatusCode::BAD_REQUEST,
        LoginError::Away(_) => StatusCode::SERVICE_UNAVAILABLE,
        LoginError::Token => StatusCode::FORBIDDEN,
        LoginError::None => StatusCode::NOT_FOUND,
    };
    with(page(status, "Not signed in", &e.to_string()), &[])
}

fn noted(app: &App, request: &Request, who: &str, response: Response) -> Response {
    if let Some(audit) = &app.audit {
        let (at, from) = (now().to_string(), address(request).to_string());
        audit.note(
            &at,
            who,
            &from,
            request.method().as_str(),
            request.uri().path(),
            response.status().as_u16(),
        );
    }
    response
}

fn address(request: &Request) -> IpAddr {
    request.extensions().get::<From>().map_or(IpAddr::from([0, 0, 0, 0]), |f| f.0)
}

fn too_fast(app: &App, request: &Request) -> Option<Response> {
    let again = "too many requests: ask again a little later";
    (!app.auth.stranger(address(request)))
        .then(|| Problem::later(StatusCode::TOO_MANY_REQUESTS, 1, again).into_response())
}

async fn begin(State(app): State<Arc<App>>, RawQuery(query): RawQuery, request: Request) -> Response {
    if let Some(refused) = too_fast(&app, &request) {
        return refused;
    }
    let Some(oidc) = app.auth.oidc() else { return failed(&LoginError::None) };
    match oidc.begin(query.as_deref().unwrap_or("")).await {
        Ok(begun) => see(&begun.to, &[begun.cookie]),
        Err(e) => {
            (app.say)(&format!("sign-in: {e}"));
            failed(&e)
        }
    }
}

async fn end(State(app): State<Arc<App>>, RawQuery(query): RawQuery, request: Request) -> Response {
    if let Some(refused) = too_fast(&app, &request) {
        return refused;
    }
    let Some(oidc) = app.auth.oidc() else { return failed(&LoginError::None) };
    let (who, response) = match oidc.end(query.as_deref().unwrap_or(""), request.headers()).await {
        Ok(signed) => (signed.who, see(&signed.back, &signed.cookies)),
        Err(e) => {
            (app.say)(&format!("sign-in: {e}"));
            ("-".to_owned(), failed(&e))
        }
    };
    noted(&app, &request, &who, response)
}

async fn out(State(app): State<Arc<App>>, headers: HeaderMap, request: Request) -> Response {
    if let Some(refused) = too_fast(&app, &request) {
        return refused;
    }
    let response = match app.auth.oidc().and_then(|o| o.sign_out(&headers)) {
        Some((_, Some(session))) if ended::end(&*app.store, &session).await.is_err() => with(
            page(
                StatusCode::SERVICE_UNAVAILABLE,
                "Not signed out",
                "The database does not answer, so a copy of this session would go on: sign out again in a moment.",
            ),
            &[],
        ),
        Some((cookie, _)) => {
            let told = "You are signed out of this page. The issuer may still know you: sign out there, too, on a machine that is not yours.";
            with(page(StatusCode::OK, "Signed out", told), &[cookie])
        }
        None => with(
            page(StatusCode::FORBIDDEN, "Not signed out", "Sign out by the button of a page of this server."),
            &[],
        ),
    };
    noted(&app, &request, "-", response)
}
