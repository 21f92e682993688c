//! New incidents as server-sent events. They are read from the store, so that every replica tells of all.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Extension;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use dualplane_incidents::{Filter, Incident, Time};
use futures_util::{Stream, StreamExt};
use http::{HeaderMap, HeaderValue, header};
use tokio::sync::broadcast::Receiver;
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
/// A stream ends after so long, and its reader comes back with the last id that it has: who may no longer read, or has signed out, is
/// told nothing from then on.
const LIFE: Duration = Duration::from_secs(60);
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

/// What is told of `news`, for so long.
fn later(
    news: Receiver<Arc<Incident>>,
    wanted: impl Fn(&Incident) -> bool,
    life: Duration,
) -> impl Stream<Item = Vec<u8>> {
    let over = tokio::time::Instant::now() + life;
    futures_util::stream::unfold((news, wanted), move |(mut news, wanted)| async move {
        loop {
            let now = tokio::time::Instant::now();
            if now >= over {
                return None;
            }
            match tokio::time::timeout_at(over.min(now + ALIVE), news.recv()).await {
                Err(_) => return Some((b": alive\n\n".to_vec(), (news, wanted))),
                Ok(Ok(i)) if wanted(&i) => return Some((event(&i), (news, wanted))),
                Ok(Ok(_)) => {}
                // Who reads too slowly begins anew: the browser comes back with the last id that it has.
                Ok(Err(RecvError::Lagged(_) | RecvError::Closed)) => return None,
            }
        }
    })
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
    let place = place(&headers);
    // An id without data is no event, and a reader comes back with it.
    let from = if place.is_none() { format!("id: {}~\n", now().ms()) } else { String::new() };
    let mut first = format!("retry: 1000\n{from}: dualplane\n\n").into_bytes();
    if let Some(place) = place {
        for i in arrivals(&*app.store, &place, SOME).await? {
            if i.id != place.id && wanted(&i, &scope) {
                first.extend(event(&i));
            }
        }
    }
    let later = later(news, move |i| wanted(i, &scope), LIFE);
    let stream = futures_util::stream::once(std::future::ready(first)).chain(later);
    let mut response = Response::new(Body::from_stream(
        stream.map(|b| Ok::<_, std::convert::Infallible>(bytes::Bytes::from(b))),
    ));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stream_ends_though_nobody_closes_it() {
        let (tell, news) = tokio::sync::broadcast::channel(4);
        let told: Vec<_> = later(news, |_| true, Duration::from_millis(30)).collect().await;
        assert_eq!(told, [b": alive\n\n".to_vec()]);
        drop(tell);
    }
}
