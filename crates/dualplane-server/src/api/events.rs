//! New incidents as server-sent events. They are read from the store, so that every replica tells of all.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Extension;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use dualplane_incidents::{Filter, Incident, Time};
use futures_util::StreamExt;
use http::{HeaderMap, HeaderValue, header};
use tokio::sync::broadcast::error::RecvError;

use super::reading;
use crate::app::{App, now};
use crate::auth::Caller;
use crate::clock::Place;
use crate::problem::Problem;
use crate::store::{Arrival, Scope, arrivals};

/// Between two looks into the store.
const TICK: Duration = Duration::from_secs(1);
/// A transaction of another replica may come to light this much later than a younger one.
const WINDOW_MS: i64 = 5_000;
/// Between two signs of life.
const ALIVE: Duration = Duration::from_secs(15);
/// Incidents of one look, and those that a caller who comes back is told.
const SOME: i64 = 1_000;

/// Looks for new incidents and tells all who listen, for ever.
pub async fn watch(app: Arc<App>) {
    let mut from = now();
    let mut told: BTreeSet<(Time, String)> = BTreeSet::new();
    let mut place = Place::new(now(), Instant::now());
    loop {
        tokio::time::sleep(TICK).await;
        from = place.look(from, now(), Instant::now());
        if app.events.receiver_count() == 0 {
            from = now();
            continue;
        }
        let start = Time::from_ms(from.ms() - WINDOW_MS);
        let here = Arrival { at: start, id: String::new() };
        // A store that is away is asked again.
        let Ok(new) = arrivals(&*app.store, &here, SOME).await else { continue };
        told.retain(|(at, _)| *at >= start);
        for i in new {
            let newest = i.received_at.max(from);
            if i.received_at >= Time::from_ms(from.ms() - WINDOW_MS)
                && told.insert((i.received_at, i.id.clone()))
            {
                from = newest;
                let _ = app.events.send(Arc::new(i));
            }
        }
    }
}

fn event(i: &Incident) -> Vec<u8> {
    let body = serde_json::to_string(i).unwrap_or_default();
    format!("id: {}~{}\nevent: incident\ndata: {body}\n\n", i.received_at.ms(), i.id).into_bytes()
}

fn place(headers: &HeaderMap) -> Option<Arrival> {
    let text = headers.get("last-event-id")?.to_str().ok()?;
    let (ms, id) = text.split_once('~')?;
    Some(Arrival { at: Time::from_ms(ms.parse().ok()?), id: id.to_owned() })
}

/// New incidents, one event each; with `Last-Event-ID` first those that came since. It takes the filter of the list.
#[utoipa::path(
    get,
    operation_id = "follow_events",
    path = "/v1/events",
    responses(
        (status = 200, description = "text/event-stream: each event `incident` holds one as JSON"),
        (status = 400, description = "A key or value that there is not", body = Problem),
    )
)]
pub async fn events(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let scope = reading(&caller)?;
    let filter = Filter::parse(query.as_deref().unwrap_or("")).map_err(|e| Problem::bad(e.to_string()))?;
    let wanted =
        move |i: &Incident, scope: &Scope| filter.matches(i) && scope.allows(&i.cluster, &i.namespace);
    let news = app.events.subscribe();
    let mut first = b": dualplane\n\n".to_vec();
    if let Some(place) = place(&headers) {
        for i in arrivals(&*app.store, &place, SOME).await? {
            if i.id != place.id && wanted(&i, &scope) {
                first.extend(event(&i));
            }
        }
    }
    let later = futures_util::stream::unfold((news, wanted, scope), |(mut news, wanted, scope)| async move {
        loop {
            match tokio::time::timeout(ALIVE, news.recv()).await {
                Err(_) => return Some((b": alive\n\n".to_vec(), (news, wanted, scope))),
                Ok(Ok(i)) if wanted(&i, &scope) => return Some((event(&i), (news, wanted, scope))),
                Ok(Ok(_)) => {}
                // Who reads too slowly begins anew: the browser comes back with the last id that it has.
                Ok(Err(RecvError::Lagged(_) | RecvError::Closed)) => return None,
            }
        }
    });
    let stream = futures_util::stream::once(std::future::ready(first)).chain(later);
    let mut response = Response::new(Body::from_stream(
        stream.map(|b| Ok::<_, std::convert::Infallible>(bytes::Bytes::from(b))),
    ));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    Ok(response)
}
