//! Reading incidents.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use dualplane_incidents::{Cursor, Filter, Incident, is_id};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Serialize;

use super::{json, reading, tagged};
use crate::app::{App, unpack};
use crate::auth::Caller;
use crate::problem::Problem;
use crate::store::{self, Page};

/// Incidents of a page unless asked otherwise, and at most.
const PAGE: usize = 50;
const MAX_PAGE: usize = 500;
/// Version of the list.
pub(crate) const LIST: &str = "dualplane.fleet-incidents/v1";

/// A page of a list.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Incidents {
    /// `dualplane.fleet-incidents/v1`.
    schema: &'static str,
    /// The newest first; each cause once unless `each=true` or a filter asks for single deaths.
    items: Vec<Incident>,
    /// Give this as `after` for the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Reads a query of a list: filter, place and size.
///
/// # Errors
///
/// Where it holds what no list has.
pub fn page(query: Option<&str>, caller: &Caller) -> Result<Page, Problem> {
    let scope = reading(caller)?;
    let (filter, rest) = Filter::parse_with(query.unwrap_or(""), &["after", "limit"])
        .map_err(|e| Problem::bad(e.to_string()))?;
    let after = match rest.get("after").filter(|t| !t.is_empty()) {
        None => None,
        Some(text) => Some(
            Cursor::parse(text)
                .ok_or_else(|| Problem::bad("after: give what `next` of the page before said"))?,
        ),
    };
    let limit = match rest.get("limit").filter(|t| !t.is_empty()) {
        None => PAGE,
        Some(text) => match text.parse() {
            Ok(n) if (1..=MAX_PAGE).contains(&n) => n,
            _ => return Err(Problem::bad(format!("limit: give a number from 1 to {MAX_PAGE}"))),
        },
    };
    Ok(Page { filter, scope, after, limit })
}

/// A page of a list, and the place of the next.
///
/// # Errors
///
/// Where the store does not answer.
pub async fn select(app: &App, mut page: Page) -> Result<(Vec<Incident>, Option<Cursor>), Problem> {
    let limit = page.limit;
    page.limit += 1;
    let mut items = store::list(&*app.store, &page).await?;
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(Cursor::behind);
    Ok((items, next))
}

/// Incidents, the newest first. Every key of the filter may stand several times: its values are alternatives.
#[utoipa::path(
    get,
    operation_id = "list_incidents",
    path = "/v1/incidents",
    params(
        ("class" = Option<Vec<String>>, Query, description = "Class; so are plane, phase, confidence, cluster, namespace, owner, pod, container, node, image, model, engine, engine_version, gpu, gpu_name, driver and xid"),
        ("since" = Option<String>, Query, description = "Died at this time or later, RFC 3339"),
        ("until" = Option<String>, Query, description = "Died before this time"),
        ("q" = Option<String>, Query, description = "Words of summary, trigger, pod, node, model or image"),
        ("loop" = Option<String>, Query, description = "A loop_key"),
        ("cause" = Option<String>, Query, description = "A cause_key"),
        ("each" = Option<bool>, Query, description = "Every death instead of each cause once"),
        ("after" = Option<String>, Query, description = "What next said"),
        ("limit" = Option<u32>, Query, description = "1 to 500, otherwise 50"),
    ),
    responses(
        (status = 200, description = "A page", body = Incidents),
        (status = 304, description = "As the ETag of If-None-Match"),
        (status = 400, description = "A filter that there is not", body = Problem),
    )
)]
pub async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let page = page(query.as_deref(), &caller)?;
    let (items, next) = select(&app, page).await?;
    Ok(json(&headers, &Incidents { schema: LIST, items, next: next.map(|c| c.to_string()) }))
}

/// The incident, where the caller may see it.
///
/// # Errors
///
/// Where it is not there or in a namespace of others: both look the same.
pub async fn seen(app: &App, caller: &Caller, id: &str) -> Result<Incident, Problem> {
    let scope = reading(caller)?;
    if !is_id(id) {
        return Err(Problem::missing());
    }
    let found = store::get(&*app.store, id).await?;
    found.filter(|i| scope.allows(&i.cluster, &i.namespace)).ok_or_else(Problem::missing)
}

/// One incident.
#[utoipa::path(
    get,
    operation_id = "read_incident",
    path = "/v1/incidents/{id}",
    params(("id" = String, Path, description = "Its name")),
    responses((status = 200, description = "The incident", body = Incident), (status = 404, description = "Not there, or not the caller's to see", body = Problem))
)]
pub async fn one(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    Ok(json(&headers, &seen(&app, &caller, &id).await?))
}

/// Its report, as `triage -o json` wrote it.
///
/// # Errors
///
/// Where it is not there or not the caller's to see.
pub async fn report_of(app: &App, caller: &Caller, id: &str) -> Result<Vec<u8>, Problem> {
    seen(app, caller, id).await?;
    let packed = store::report(&*app.store, id).await?.ok_or_else(Problem::missing)?;
    let broken =
        || Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the report in the database cannot be read");
    unpack(&packed).ok_or_else(broken)
}

/// The report of triage: `dualplane.verdict/v2`.
#[utoipa::path(
    get,
    operation_id = "read_report",
    path = "/v1/incidents/{id}/report",
    params(("id" = String, Path, description = "Its name")),
    responses((status = 200, description = "As docs/verdict.schema.json"), (status = 404, description = "Not there, or not the caller's to see", body = Problem))
)]
pub async fn report(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    Ok(tagged(&headers, "application/json", report_of(&app, &caller, &id).await?))
}

/// The bundle, as it was sent.
#[utoipa::path(
    get,
    operation_id = "read_bundle",
    path = "/v1/incidents/{id}/bundle",
    params(("id" = String, Path, description = "Name of the incident")),
    responses((status = 200, description = "An archive that triage reads"), (status = 404, description = "Not there, or not the caller's to see", body = Problem))
)]
pub async fn bundle(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    seen(&app, &caller, &id).await?;
    let none = || Problem::new(StatusCode::NOT_FOUND, "this incident came without a bundle");
    let row = store::bundle(&*app.store, &id).await?.ok_or_else(none)?;
    let away = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::NotFound => none(),
        _ => Problem::later(StatusCode::SERVICE_UNAVAILABLE, 30, e.to_string()),
    };
    let path = app.bundles.here(&id, &row.sha256).await.map_err(away)?;
    let file = tokio::fs::File::open(path).await.map_err(away)?;
    let pieces = futures_util::stream::try_unfold(file, |mut file| async move {
        let mut buffer = vec![0; 64 << 10];
        let n = tokio::io::AsyncReadExt::read(&mut file, &mut buffer).await?;
        buffer.truncate(n);
        Ok::<_, std::io::Error>((n > 0).then(|| (bytes::Bytes::from(buffer), file)))
    });
    let mut response = Response::new(Body::from_stream(pieces));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(row.size));
    if let Ok(name) = HeaderValue::from_str(&format!("attachment; filename=\"{id}.tar.gz\"")) {
        headers.insert(header::CONTENT_DISPOSITION, name);
    }
    Ok(response)
}
