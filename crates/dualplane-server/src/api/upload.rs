//! Sending incidents and bundles. What is answered with success is on the disk.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use dualplane_incidents::{Dimension, Filter, Where, is_sent_id};
use futures_util::StreamExt;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::app::App;
use crate::auth::{Caller, hex, sha256};
use crate::ingest::bundle::Part;
use crate::ingest::keep::{self, KeepError, Sent, Whole};
use crate::problem::Problem;
use crate::store::{self, Put};

/// Bytes of a report with its place.
const BODY: usize = 8 << 20;
/// For the next piece of a body.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a sender sends: a report of `triage -o json`, and what it knows of the place.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Upload {
    /// `dualplane.verdict/v2`.
    #[schema(value_type = Object)]
    report: Value,
    /// Where it happened; what is absent is taken from the report.
    #[serde(default, rename = "where")]
    place: Where,
}

/// What became of it.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Receipt {
    /// Names of the incidents: a bundle may hold several.
    ids: Vec<String>,
    /// `kept`: it is on the disk now; `known`: it was before.
    state: &'static str,
}

fn receipt(ids: Vec<String>, put: Put) -> Response {
    let (status, state) = match put {
        Put::Kept => (StatusCode::CREATED, "kept"),
        _ => (StatusCode::OK, "known"),
    };
    let mut response =
        Response::new(Body::from(serde_json::to_vec(&Receipt { ids, state }).unwrap_or_default()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn sending(caller: &Caller) -> Result<(), Problem> {
    if caller.uploads() { Ok(()) } else { Err(Problem::forbidden("send incidents")) }
}

fn id_is_good(id: &str) -> Result<(), Problem> {
    let rule = "the incident's id may have 1 to 180 letters, digits, '-', '.' and '_' and begins with a letter or digit";
    if is_sent_id(id) { Ok(()) } else { Err(Problem::bad(rule)) }
}

async fn whole(body: Body) -> Result<Vec<u8>, Problem> {
    let large =
        || Problem::new(StatusCode::PAYLOAD_TOO_LARGE, format!("a report has at most {} MiB", BODY >> 20));
    let mut out = Vec::new();
    let mut pieces = body.into_data_stream();
    while let Some(piece) = next(&mut pieces).await? {
        if out.len() + piece.len() > BODY {
            return Err(large());
        }
        out.extend_from_slice(&piece);
    }
    Ok(out)
}

async fn next(pieces: &mut axum::body::BodyDataStream) -> Result<Option<bytes::Bytes>, Problem> {
    match tokio::time::timeout(PATIENCE, pieces.next()).await {
        Err(_) => Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "nothing came for 30 s: send it again")),
        Ok(None) => Ok(None),
        Ok(Some(Err(_))) => Err(Problem::bad("the body ended before it was whole: send it again")),
        Ok(Some(Ok(piece))) => Ok(Some(piece)),
    }
}

/// Keeps an incident. The same again changes nothing, so a sender may repeat it until it is answered.
#[utoipa::path(
    put,
    operation_id = "send_incident",
    path = "/v1/incidents/{id}",
    params(("id" = String, Path, description = "The sender's name for it: letters, digits, '-', '.', '_'")),
    request_body(content = Upload, description = "Report and place; the report alone is taken as well"),
    responses(
        (status = 201, description = "It is on the disk", body = Receipt),
        (status = 200, description = "The same was kept before", body = Receipt),
        (status = 403, description = "Not this namespace", body = Problem),
        (status = 409, description = "Another has this id", body = Problem),
        (status = 422, description = "It is no report", body = Problem),
        (status = 429, description = "Too many; Retry-After says when", body = Problem),
        (status = 503, description = "Not now; Retry-After says when", body = Problem),
    )
)]
pub async fn incident(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, Problem> {
    sending(&caller)?;
    id_is_good(&id)?;
    let bytes = whole(body).await?;
    let no_json = |e: serde_json::Error| Problem::bad(format!("the body is no upload: {e}"));
    let value: Value = serde_json::from_slice(&bytes).map_err(no_json)?;
    let alone =
        value.get("schema").and_then(Value::as_str).is_some_and(|s| s.starts_with("dualplane.verdict"));
    let upload = match alone {
        true => Upload { report: value, place: Where::default() },
        false => serde_json::from_value(value).map_err(no_json)?,
    };
    let sent = Sent { report: &upload.report, place: &upload.place, digest: sha256(&bytes) };
    let (id, put) = sent.keep(&app, &caller, &id).await?;
    Ok(receipt(vec![id], put))
}

/// Where a piece begins, and how long the whole is: `bytes 0-99/1000`.
fn range(headers: &HeaderMap) -> Result<Option<(u64, u64)>, Problem> {
    let Some(value) = headers.get(header::CONTENT_RANGE) else { return Ok(None) };
    let read = || {
        let (span, total) = value.to_str().ok()?.strip_prefix("bytes ")?.split_once('/')?;
        let (from, to) = span.split_once('-')?;
        let (from, to, total): (u64, u64, u64) = (from.parse().ok()?, to.parse().ok()?, total.parse().ok()?);
        (from <= to && to < total).then_some(Some((from, total)))
    };
    read().ok_or_else(|| Problem::bad("Content-Range: write bytes FIRST-LAST/WHOLE, like bytes 0-999/5000"))
}

/// The SHA-256 of the whole, as `Repr-Digest: sha-256=:BASE64:` (RFC 9530), in hex. A bundle in one piece has its length to
/// be held to, so it may come without.
fn wanted_sum(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    if !headers.contains_key("repr-digest") && !headers.contains_key(header::CONTENT_RANGE) {
        return Ok(None);
    }
    let read = || {
        let value = headers.get("repr-digest")?.to_str().ok()?;
        let one = value.split(',').find_map(|d| d.trim().strip_prefix("sha-256=:")?.strip_suffix(':'))?;
        let sum = base64::engine::general_purpose::STANDARD.decode(one).ok()?;
        (sum.len() == 32).then(|| hex(&sum))
    };
    read()
        .map(Some)
        .ok_or_else(|| Problem::bad("send the SHA-256 of the whole bundle: Repr-Digest: sha-256=:BASE64:"))
}

fn offset(mut response: Response, at: u64, whole: bool) -> Response {
    let headers = response.headers_mut();
    headers.insert("upload-offset", HeaderValue::from(at));
    headers.insert("upload-complete", HeaderValue::from_static(if whole { "?1" } else { "?0" }));
    response
}

/// How much of a bundle is there: `Upload-Offset` says where to go on.
#[utoipa::path(
    head,
    operation_id = "look_at_bundle",
    path = "/v1/incidents/{id}/bundle",
    params(("id" = String, Path, description = "Name of the incident")),
    responses((status = 204, description = "Upload-Offset: bytes that are there; Upload-Complete: ?1 where that is all"))
)]
pub async fn bundle_state(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let nothing = || StatusCode::NO_CONTENT.into_response();
    // A sender is told of its own, a reader of what it sees; everything else looks as if it were not there.
    let known = match caller.uploads() {
        true => {
            id_is_good(&id)?;
            let mine = keep::mine(&app, &caller, &id).await?;
            mine.death.filter(|i| keep::may_send(&caller, i).is_ok()).map(|_| mine.name)
        }
        false => super::incidents::seen(&app, &caller, &id).await.ok().map(|i| i.id),
    };
    if let Some(name) = known
        && let Some(row) = store::bundle(&*app.store, &name).await?
    {
        return Ok(offset(nothing(), row.size, true));
    }
    sending(&caller)?;
    let part = app.bundles.part(&caller.name, &id).ok_or_else(busy)?;
    Ok(offset(nothing(), part.len(), false))
}

fn busy() -> Problem {
    Problem::later(
        StatusCode::CONFLICT,
        1,
        "another request is sending this bundle: ask again when it has ended",
    )
}

/// Keeps a bundle, in one piece or in several (`Content-Range`). Where the incident is not known yet, the bundle is judged.
#[utoipa::path(
    put,
    operation_id = "send_bundle",
    path = "/v1/incidents/{id}/bundle",
    params(
        ("id" = String, Path, description = "Name of the incident"),
        ("cluster" = Option<String>, Query, description = "Cluster, where the bundle is judged here"),
        ("namespace" = Option<String>, Query, description = "Namespace, where the bundle is judged here"),
    ),
    request_body(content = String, content_type = "application/octet-stream", description = "An archive that triage reads"),
    responses(
        (status = 201, description = "It is on the disk, and judged", body = Receipt),
        (status = 202, description = "The piece is there; Upload-Offset says where to go on"),
        (status = 409, description = "It does not go on where the last piece ended; Upload-Offset says where", body = Problem),
        (status = 413, description = "It is too large", body = Problem),
        (status = 422, description = "Its SHA-256 is another, or there is no evidence in it", body = Problem),
        (status = 503, description = "Not now; Retry-After says when", body = Problem),
    )
)]
pub async fn bundle(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    sending(&caller)?;
    id_is_good(&id)?;
    let place = place(query.as_deref())?;
    let wanted = wanted_sum(&headers)?;
    let mine = keep::mine(&app, &caller, &id).await?;
    if let Some(i) = &mine.death {
        keep::may_send(&caller, i)?;
        if let Some(row) = store::bundle(&*app.store, &mine.name).await? {
            let same = wanted.as_ref().is_none_or(|s| *s == row.sha256);
            return if same {
                Ok(offset(receipt(vec![mine.name], Put::Known), row.size, true))
            } else {
                Err(KeepError::Taken.into())
            };
        }
    }
    let part = app.bundles.part(&caller.name, &id).ok_or_else(busy)?;
    let (from, total) = match range(&headers)? {
        Some((from, total)) => (from, Some(total)),
        None => {
            part.discard();
            (0, None)
        }
    };
    if total.is_some_and(|t| t > app.max_bundle) {
        return Err(too_large(&app));
    }
    if from != part.len() {
        let problem = Problem::new(
            StatusCode::CONFLICT,
            "this piece does not begin where the last one ended: see Upload-Offset",
        );
        return Ok(offset(problem.into_response(), part.len(), false));
    }
    receive(&app, &part, body, total.unwrap_or(app.max_bundle)).await?;
    if total.is_some_and(|t| part.len() < t) {
        return Ok(offset(StatusCode::ACCEPTED.into_response(), part.len(), false));
    }
    if part.is_empty() {
        return Err(Problem::bad(
            "the bundle is empty: send the .tar.gz that `dualplane capture` or the agent wrote",
        ));
    }
    let sum = part.sum().map_err(KeepError::Disk)?;
    if wanted.is_some_and(|w| w != sum) {
        part.discard();
        let why = "the SHA-256 of what arrived is not that of Repr-Digest: send it again from the start";
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, why));
    }
    let size = part.len();
    let ids = keep::bundle(&app, &caller, &id, mine, Whole { part: &part, sum, place }).await?;
    Ok(offset(receipt(ids, Put::Kept), size, true))
}

fn too_large(app: &App) -> Problem {
    let most = app.max_bundle >> 20;
    Problem::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("a bundle has at most {most} MiB here (--max-bundle-mib)"),
    )
}

async fn receive(app: &App, part: &Part, body: Body, most: u64) -> Result<(), Problem> {
    let mut pieces = body.into_data_stream();
    while let Some(piece) = next(&mut pieces).await? {
        if part.len() + piece.len() as u64 > most {
            part.discard();
            return Err(too_large(app));
        }
        part.append(&piece).map_err(KeepError::Disk)?;
    }
    Ok(())
}

fn place(query: Option<&str>) -> Result<Where, Problem> {
    let filter = Filter::parse(query.unwrap_or("")).map_err(|e| Problem::bad(e.to_string()))?;
    let one = |d| filter.any.get(&d).and_then(|v| v.first().cloned());
    Ok(Where { cluster: one(Dimension::Cluster), namespace: one(Dimension::Namespace), ..Where::default() })
}

/// What an agent's `--send-to URL/v1/agent` sends: `ID.tar.zst`, the bundle, which is judged here, and then `ID.json`, its own
/// summary, which tells nothing beyond.
#[utoipa::path(
    put,
    operation_id = "send_as_agent",
    path = "/v1/agent/{file}",
    params(
        ("file" = String, Path, description = "ID.tar.zst or ID.json"),
        ("cluster" = Option<String>, Query, description = "Cluster"),
    ),
    request_body(content = String, content_type = "application/zstd"),
    responses(
        (status = 201, description = "As for the bundle of an incident", body = Receipt),
        (status = 200, description = "It was kept before", body = Receipt),
    )
)]
pub async fn agent(
    app: State<Arc<App>>,
    caller: Extension<Caller>,
    Path(file): Path<String>,
    query: RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    if let Some(id) = file.strip_suffix(".tar.zst") {
        return bundle(app, caller, Path(id.to_owned()), query, headers, body).await;
    }
    sending(&caller)?;
    let id =
        file.strip_suffix(".json").ok_or_else(|| Problem::bad("an agent sends ID.tar.zst and ID.json"))?;
    id_is_good(id)?;
    whole(body).await?;
    Ok(receipt(vec![id.to_owned()], Put::Known))
}
