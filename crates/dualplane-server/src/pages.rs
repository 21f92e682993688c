//! The routes of the pages: what is asked for, read from the store, and shown by `dualplane-pages`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, RawQuery, Request, State};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use dualplane_incidents::{Filter, Fleet, GpuHealth, Incident, Time};
use dualplane_pages::incident::Death;
use dualplane_pages::{Frame, POLICY, Scene, Verdict, capacity, fleet, gpus, handover, incident, list};
use http::{HeaderMap, HeaderValue, StatusCode, header};

use crate::api;
use crate::api::incidents::{page as asked, report_of, seen, select};
use crate::app::{App, now};
use crate::auth::Caller;
use crate::problem::Problem;
use crate::store::{self, Page, Span};

/// Other deaths of a workload that its page lists.
const AGAIN: usize = 20;
/// Days that the page of the fleet looks back.
const DAYS: i64 = 30;
/// Deaths of a card's history.
const HISTORY: usize = 100;
/// Bytes of a problem that is shown as a page.
const PROBLEM: usize = 64 << 10;

/// Routes for people.
pub fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(incidents))
        .route("/incidents/{id}", get(one))
        .route("/fleet", get(of_fleet))
        .route("/gpus", get(cards))
        .route("/gpus/{uuid}", get(card))
        .route("/capacity", get(of_capacity))
        .layer(from_fn(shown))
}

/// What pages load. It is the same for everybody: a browser may keep it for ever under its sum.
pub fn assets() -> Router<Arc<App>> {
    Router::new().route("/assets/{sum}/{name}", get(asset))
}

async fn asset(Path((sum, name)): Path<(String, String)>) -> Response {
    let Some(asset) = dualplane_pages::asset(&sum, &name) else {
        return Problem::new(StatusCode::NOT_FOUND, "there is no such file").into_response();
    };
    let mut response = Response::new(Body::from(asset.bytes));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(asset.media_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    response
}

/// Sets the policy of pages, and shows an error as one.
async fn shown(Extension(caller): Extension<Caller>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let is_problem = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|t| t.as_bytes() == b"application/problem+json");
    if is_problem {
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, PROBLEM).await.unwrap_or_default();
        let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let word = |key: &str| value.get(key).and_then(|v| v.as_str()).unwrap_or("").to_owned();
        let page = dualplane_pages::problem(&frame(&caller), &word("title"), &word("detail"));
        response = html(page);
        *response.status_mut() = parts.status;
        if let Some(after) = parts.headers.get(header::RETRY_AFTER) {
            response.headers_mut().insert(header::RETRY_AFTER, after.clone());
        }
    }
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    response
}

fn html(page: String) -> Response {
    let mut response = Response::new(Body::from(page));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response
}

fn frame(caller: &Caller) -> Frame<'_> {
    let local = caller.name == Caller::local().name;
    Frame {
        base: "",
        viewer: (!local).then_some(caller.name.as_str()),
        now_ms: now().ms(),
        events: Some("/v1/events"),
    }
}

/// The list. A filter that cannot be read shows nothing and says why: a list of more would look like an answer.
async fn incidents(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let query = query.unwrap_or_default();
    let after = query.replace(&format!("{}=", list::BEHIND), "after=");
    let scope = api::reading(&caller)?;
    let of_all = store::fleet(&*app.store, &Span { since: None, scope }).await?;
    let wanted = asked(Some(&after), &caller);
    let (page, refused) = match wanted {
        Ok(page) => (Some(page), None),
        Err(problem) => (None, Some(problem)),
    };
    let filter = page.as_ref().map(|p| p.filter.clone()).unwrap_or_default();
    let continued = page.as_ref().is_some_and(|p| p.after.is_some());
    let (found, next) = match page {
        Some(page) => select(&app, page).await?,
        None => (Vec::new(), None),
    };
    let listing = list::Listing {
        filter: &filter,
        refused: refused.as_ref().map(Problem::detail),
        incidents: &found,
        continued,
        next: next.as_ref(),
        fleet: &of_all,
    };
    let mut response = html(list::page(&frame(&caller), &listing));
    if let Some(problem) = &refused {
        *response.status_mut() = StatusCode::from_u16(problem.status()).unwrap_or(StatusCode::BAD_REQUEST);
    }
    Ok(response)
}

/// One incident; with `.md` its hand-over, with `?print` all of it open.
async fn one(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let note = id.strip_suffix(".md");
    let id = note.unwrap_or(&id);
    let i = seen(&app, &caller, id).await?;
    let report: serde_json::Value =
        serde_json::from_slice(&report_of(&app, &caller, id).await?).unwrap_or_default();
    let verdict = Verdict::read(&report);
    if note.is_some() {
        let verdict = verdict.map_err(Problem::bad)?;
        let host = headers.get(header::HOST).and_then(|h| h.to_str().ok()).unwrap_or("");
        let text = handover(&i, &verdict, &format!("//{host}/incidents/{id}"));
        let mut response = Response::new(Body::from(text));
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, HeaderValue::from_static("text/markdown; charset=utf-8"));
        return Ok(response);
    }
    let print = query.as_deref().is_some_and(|q| q.split('&').any(|p| p == "print" || p == "print="));
    let others = Filter { loop_key: Some(i.loop_key.clone()), each: true, ..Filter::default() };
    let page = Page { filter: others, scope: api::reading(&caller)?, after: None, limit: AGAIN };
    let mut again = store::list(&*app.store, &page).await?;
    again.retain(|o| o.id != i.id);
    let bundle = store::bundle(&*app.store, id).await?;
    let scene = scene(&app, &i, bundle.is_some()).await;
    let path = format!("/v1/incidents/{id}/bundle");
    let death = Death {
        incident: &i,
        verdict: verdict.as_ref().map_err(String::as_str),
        scene: scene.as_ref(),
        again: &again,
        bundle: bundle.is_some().then_some(path.as_str()),
    };
    Ok(html(incident::page(&frame(&caller), &death, print)))
}

/// What the bundle shows: kept beside it since it was judged, or judged now, where another version wrote it.
async fn scene(app: &App, i: &Incident, has_bundle: bool) -> Option<Scene> {
    if let Some(kept) = app.bundles.scene(&i.id) {
        return serde_json::from_slice(&kept).ok();
    }
    if !has_bundle {
        return None;
    }
    // Without a picture the page says what the report says.
    let found = app.judge.judge(app.bundles.path(&i.id), dualplane_incidents::Where::default()).await.ok()?;
    let of = |j: &crate::ingest::judge::Judged, key: &str| {
        j.report.pointer(&format!("/subject/{key}")).and_then(|v| v.as_str()).unwrap_or("").to_owned()
    };
    let mine = found.iter().find(|j| of(j, "pod") == i.pod && of(j, "container") == i.container);
    let scene = mine.or_else(|| found.first())?.scene.clone();
    app.bundles.keep_scene(&i.id, &serde_json::to_vec(&scene).ok()?);
    Some(scene)
}

async fn of_fleet(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut span = api::fleet::span(query.as_deref(), &caller)?;
    let since = span.since.unwrap_or_else(|| Time::from_ms(now().ms() - DAYS * 86_400_000));
    span.since = Some(since);
    let shown = store::fleet(&*app.store, &span).await?;
    Ok(html(fleet::page(&frame(&caller), &shown, &format!("since {} in UTC", since.day()))))
}

async fn whole(app: &App, caller: &Caller) -> Result<Fleet, Problem> {
    Ok(store::fleet(&*app.store, &Span { since: None, scope: api::reading(caller)? }).await?)
}

async fn of_capacity(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    Ok(html(capacity::page(&frame(&caller), &whole(&app, &caller).await?)))
}

async fn cards(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    let meaning = |code: u32| app.judge.xid(code);
    Ok(html(gpus::page(&frame(&caller), &whole(&app, &caller).await?.gpus, &meaning)))
}

async fn card(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(uuid): Path<String>,
) -> Result<Response, Problem> {
    let filter = Filter { each: true, ..Filter::default() }.with(dualplane_incidents::Dimension::Gpu, &uuid);
    let page = Page { filter, scope: api::reading(&caller)?, after: None, limit: HISTORY };
    let history = store::list(&*app.store, &page).await?;
    let none = || Problem::new(StatusCode::NOT_FOUND, "no incident that you may see names this card");
    let span = Span { since: None, scope: api::reading(&caller)? };
    let known = store::fleet(&*app.store, &span).await?.gpus.into_iter().find(|g| g.uuid == uuid);
    // Of a card that is not among the worst, the deaths that are listed tell.
    let mut of_history = history.iter().flat_map(GpuHealth::of).filter(|g| g.uuid == uuid);
    let health = match known {
        Some(g) => g,
        None => {
            let mut first = of_history.next().ok_or_else(none)?;
            of_history.for_each(|g| first.add(g));
            first
        }
    };
    let meaning = |code: u32| app.judge.xid(code);
    Ok(html(gpus::card(&frame(&caller), &health, &history, &meaning)))
}
