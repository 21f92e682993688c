//! The pages for people: what `dualplane-pages` shows of the store, for whoever may see it. Errors are pages as well.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};
use dualplane_incidents::{Cursor, Dimension, Filter, GpuHealth, Incident, Time};
use dualplane_pages::incident::Death;
use dualplane_pages::{
    Frame, POLICY, Verdict, asset, capacity, fleet, gpus, handover, incident, list, problem, rehearsal,
};
use http::{HeaderMap, HeaderValue, StatusCode, header};

use crate::api::fleet::span;
use crate::api::incidents::{report_of, seen, select};
use crate::api::{reading, tagged};
use crate::app::{App, now};
use crate::auth::Caller;
use crate::problem::Problem;
use crate::rehearse;
use crate::store::{self, Page, Span};

const HTML: &str = "text/html; charset=utf-8";
const DAY_MS: i64 = 86_400_000;
/// What figures are of, unless a query says otherwise.
const DAYS: i64 = 30;
/// Incidents of a page, those of the same workload beside one, and the history of a card.
const SHOWN: usize = 50;
const AGAIN: usize = 10;
const HISTORY: usize = 100;

/// The pages; who asks is known before.
pub fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(index))
        .route("/incidents/{id}", get(one))
        .route("/incidents/{id}/rehearsal", get(rehearsed))
        .route("/fleet", get(whole))
        .route("/gpus", get(cards))
        .route("/gpus/{uuid}", get(card))
        .route("/capacity", get(room))
}

/// What pages load; it says nothing of anybody.
pub fn files() -> Router<Arc<App>> {
    Router::new().route("/assets/{sum}/{name}", get(file))
}

async fn file(Path((sum, name)): Path<(String, String)>) -> Result<Response, Problem> {
    let found =
        asset(&sum, &name).ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "there is no such file"))?;
    let mut response = Response::new(Body::from(found.bytes));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(found.media_type));
    // The address holds the sum of the bytes.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    Ok(response)
}

fn frame(caller: &Caller) -> Frame<'_> {
    // Without tokens there is nobody to name.
    let viewer = Some(caller.name.as_str()).filter(|n| *n != "local");
    let sign_out = caller.by_session.then_some("/logout");
    Frame { base: "", viewer, now_ms: now().ms(), events: Some("/v1/events"), sign_out }
}

/// A page, or its error as a page.
fn shown(asked: &HeaderMap, caller: &Caller, made: Result<String, Problem>) -> Response {
    let (status, page) = match made {
        Ok(page) => (StatusCode::OK, page),
        Err(p) => {
            let status = StatusCode::from_u16(p.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let title = status.canonical_reason().unwrap_or("Error");
            (status, problem(&frame(caller), title, p.detail()))
        }
    };
    let mut response = tagged(asked, HTML, page.into_bytes());
    if status != StatusCode::OK {
        *response.status_mut() = status;
    }
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    response
}

fn recently() -> Time {
    Time::from_ms(now().ms() - DAYS * DAY_MS)
}

/// The last days in the caller's namespaces.
fn recent(caller: &Caller) -> Result<Span, Problem> {
    Ok(Span { since: Some(recently()), scope: reading(caller)? })
}

async fn index(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let made = listing(&app, &caller, query.as_deref().unwrap_or("")).await;
    shown(&headers, &caller, made)
}

/// A filter that is misread would show an all-clear: the page says what is wrong with it and lists nothing.
async fn listing(app: &App, caller: &Caller, query: &str) -> Result<String, Problem> {
    let scope = reading(caller)?;
    let counts = store::counted(&*app.store, &recent(caller)?).await?;
    let read =
        Filter::parse_with(query, &[list::BEHIND]).map_err(|e| e.to_string()).and_then(|(filter, rest)| {
            let place = rest.get(list::BEHIND).filter(|t| !t.is_empty());
            match place.map(|t| Cursor::parse(t)) {
                Some(None) => Err("this place in the list cannot be read: begin anew".to_owned()),
                after => Ok((filter, after.flatten())),
            }
        });
    let (filter, after, refused) = match read {
        Ok((filter, after)) => (filter, after, None),
        Err(why) => (Filter::default(), None, Some(why)),
    };
    let continued = after.is_some();
    let (incidents, next) = match &refused {
        Some(_) => (Vec::new(), None),
        None => select(app, Page { filter: filter.clone(), scope, after, limit: SHOWN }).await?,
    };
    let listing = list::Listing {
        filter: &filter,
        refused: refused.as_deref(),
        incidents: &incidents,
        continued,
        next: next.as_ref(),
        fleet: &counts,
    };
    Ok(list::page(&frame(caller), &listing))
}

async fn one(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    // A name may end like a file: the incident of that name comes first.
    let note = id.strip_suffix(".md");
    if let Some(bare) = note
        && seen(&app, &caller, &id).await.is_err()
    {
        return match written(&app, &caller, bare, &headers).await {
            Ok(text) => {
                let mut response = tagged(&headers, "text/markdown; charset=utf-8", text.into_bytes());
                if let Ok(name) = HeaderValue::from_str(&format!("attachment; filename=\"{bare}.md\"")) {
                    response.headers_mut().insert(header::CONTENT_DISPOSITION, name);
                }
                response
            }
            Err(p) => shown(&headers, &caller, Err(p)),
        };
    }
    let print = query.is_some_and(|q| q.split('&').any(|p| p == "print" || p.starts_with("print=")));
    let made = page(&app, &caller, &id, print).await;
    shown(&headers, &caller, made)
}

async fn verdict(
    app: &App,
    caller: &Caller,
    id: &str,
) -> Result<(serde_json::Value, Result<Verdict, String>), Problem> {
    let report = report_of(app, caller, id).await?;
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap_or_default();
    let verdict = Verdict::read(&report);
    Ok((report, verdict))
}

async fn page(app: &App, caller: &Caller, id: &str, print: bool) -> Result<String, Problem> {
    let found = seen(app, caller, id).await?;
    let (report, verdict) = verdict(app, caller, id).await?;
    let bundle = store::bundle(&*app.store, id).await?;
    let mut away = None;
    let scene = match &bundle {
        Some(row) => match app.bundles.here(id, &row.sha256).await {
            Ok(path) => app.judge.scene(path, &row.sha256, &report).await,
            Err(e) => {
                away = Some(format!(
                    "The pictures and the log of this incident are in its bundle, which cannot be had now: {e}."
                ));
                None
            }
        },
        None => None,
    };
    let same = Filter { loop_key: Some(found.loop_key.clone()), each: true, ..Filter::default() };
    let same = Page { filter: same, scope: reading(caller)?, after: None, limit: AGAIN + 1 };
    let again: Vec<Incident> =
        select(app, same).await?.0.into_iter().filter(|i| i.id != id).take(AGAIN).collect();
    let address = format!("/v1/incidents/{id}/bundle");
    let death = Death {
        incident: &found,
        verdict: verdict.as_ref().map_err(String::as_str),
        scene: scene.as_deref(),
        again: &again,
        bundle: bundle.is_some().then_some(address.as_str()),
        rehearsed: bundle.is_some() && !found.engine.is_empty(),
        away: away.as_deref(),
    };
    Ok(incident::page(&frame(caller), &death, print))
}

async fn rehearsed(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let made = rehearsal_of(&app, &caller, &id, query.as_deref().unwrap_or("")).await;
    shown(&headers, &caller, made)
}

async fn rehearsal_of(app: &App, caller: &Caller, id: &str, query: &str) -> Result<String, Problem> {
    let found = seen(app, caller, id).await?;
    let card = found.gpus.iter().find_map(|g| g.name.as_deref());
    let (asked, refused) = match rehearse::asked(query, card) {
        Ok(asked) => (asked, None),
        Err(why) => (rehearsal::Asked::default(), Some(why)),
    };
    let answer = match (refused, store::bundle(&*app.store, id).await?) {
        (Some(why), _) => Err(why),
        (None, None) => Err("a rehearsal needs the bundle of this incident, and none was sent".to_owned()),
        (None, Some(row)) => match app.bundles.here(id, &row.sha256).await {
            Ok(path) => app.rehearse.play(&path, &row.sha256, &asked).await,
            Err(e) => Err(format!("the bundle of this incident cannot be had now: {e}")),
        },
    };
    let answer = answer.as_ref().map(String::as_str).map_err(String::as_str);
    Ok(rehearsal::page(&frame(caller), &found, &asked, &rehearse::typed(&asked), answer))
}

async fn written(app: &App, caller: &Caller, id: &str, headers: &HeaderMap) -> Result<String, Problem> {
    let found = seen(app, caller, id).await?;
    let (_, verdict) = verdict(app, caller, id).await?;
    let verdict = verdict.map_err(|e| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, e))?;
    let host = headers.get(header::HOST).and_then(|h| h.to_str().ok()).unwrap_or("localhost");
    // Beyond this machine there is TLS, here or in a proxy.
    let scheme = if crate::config::is_local_host(host) { "http" } else { "https" };
    Ok(handover(&found, &verdict, &format!("{scheme}://{host}/incidents/{id}")))
}

async fn whole(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let made = async {
        let mut asked = span(query.as_deref(), &caller)?;
        let told = match asked.since {
            Some(since) => format!("since {}", since.day()),
            None => {
                asked.since = Some(recently());
                format!("the last {DAYS} days")
            }
        };
        Ok(fleet::page(&frame(&caller), &store::fleet(&*app.store, &asked).await?, &told))
    };
    let made = made.await;
    shown(&headers, &caller, made)
}

async fn cards(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Response {
    let made = async {
        let fleet = store::cards(&*app.store, &recent(&caller)?).await?;
        Ok(gpus::page(&frame(&caller), &fleet.gpus, &|code| app.judge.xid(code)))
    };
    let made = made.await;
    shown(&headers, &caller, made)
}

async fn card(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(uuid): Path<String>,
    headers: HeaderMap,
) -> Response {
    let made = async {
        let filter = Filter { each: true, ..Filter::default() }.with(Dimension::Gpu, &uuid);
        let asked = Page { filter, scope: reading(&caller)?, after: None, limit: HISTORY };
        let (history, _) = select(&app, asked).await?;
        let mine = history.iter().flat_map(GpuHealth::of).filter(|g| g.uuid == uuid);
        let health = mine.reduce(|mut all, g| {
            all.add(g);
            all
        });
        let none = || Problem::new(StatusCode::NOT_FOUND, "no incident that you may see names this card");
        let health = health.ok_or_else(none)?;
        Ok(gpus::card(&frame(&caller), &health, &history, &|code| app.judge.xid(code)))
    };
    let made = made.await;
    shown(&headers, &caller, made)
}

async fn room(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Response {
    let made = async {
        let fleet = store::worst(&*app.store, &recent(&caller)?).await?;
        Ok(capacity::page(&frame(&caller), &fleet))
    };
    let made = made.await;
    shown(&headers, &caller, made)
}
