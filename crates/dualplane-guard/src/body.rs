//! The body of a request: read whole within bounds, or passed on with a cap.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use http_body_util::BodyExt as _;
use hyper::body::{Body, Bytes, Incoming};
use tokio::time::Sleep;

use crate::config::Checked;
use crate::held::Room;
use crate::refuse::Reply;
use crate::state::State;

/// How long the rest of a body that is refused may come, and between two parts of it.
const LINGER: Duration = Duration::from_secs(2);
const FLOWS: Duration = Duration::from_millis(100);

/// The body of a request on its way to a server.
pub enum Sent {
    /// It was read.
    Whole(Bytes),
    /// It passes.
    Passing(Box<Passing>),
}

/// A body that passes with a cap.
pub struct Passing {
    body: Incoming,
    left: u64,
    idle: Duration,
    timer: Pin<Box<Sleep>>,
}

impl Sent {
    /// One that passes, of at most so many bytes, with at most so long between two parts.
    #[must_use]
    pub fn passing(body: Incoming, most: u64, idle: Duration) -> Self {
        Self::Passing(Box::new(Passing { body, left: most, idle, timer: Box::pin(tokio::time::sleep(idle)) }))
    }

    /// Bytes of it, where that is known.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        match self {
            Self::Whole(bytes) => Some(bytes.len() as u64),
            Self::Passing(p) => p.body.size_hint().exact(),
        }
    }
}

impl Passing {
    /// The next part; `None` at its end. What is no data is left out.
    pub(crate) fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, String>>> {
        loop {
            let frame = match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Pending => {
                    std::task::ready!(self.timer.as_mut().poll(cx));
                    return Poll::Ready(Some(Err("the body stopped coming".into())));
                }
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(Err(e))) => return Poll::Ready(Some(Err(e.to_string()))),
                Poll::Ready(Some(Ok(frame))) => frame,
            };
            let Ok(data) = frame.into_data() else { continue };
            let Some(left) = self.left.checked_sub(data.len() as u64) else {
                return Poll::Ready(Some(Err("the body is larger than limits.body".into())));
            };
            self.left = left;
            self.timer.as_mut().reset(tokio::time::Instant::now() + self.idle);
            if !data.is_empty() {
                return Poll::Ready(Some(Ok(data)));
            }
        }
    }
}

/// Why a body was not read.
pub enum Unread {
    /// Say this.
    Reply(Reply),
    /// Its caller went away.
    Gone,
}

/// Reads a whole body within bounds, and the room that it takes.
///
/// # Errors
/// It is too large, too slow, there is no room, or its caller went away.
pub async fn read_whole(
    state: &Arc<State>,
    config: &Checked,
    mut body: Incoming,
) -> Result<(Bytes, Room), Unread> {
    let read = read_within(state, config, &mut body).await;
    if let Err(Unread::Reply(_)) = &read {
        Box::pin(drain(body, config.body)).await;
    }
    read
}

/// Lets the rest of a body that is refused pass by while it flows, up to so many bytes: whoever still sends hears of a closed
/// connection and not why.
pub async fn drain<B: Body<Data = Bytes> + Unpin>(mut body: B, most: u64) {
    let (mut left, until) = (most, Instant::now() + LINGER);
    while let Ok(Some(Ok(frame))) = tokio::time::timeout(FLOWS, body.frame()).await {
        match left.checked_sub(frame.data_ref().map_or(0, |d| d.len() as u64)) {
            Some(rest) if Instant::now() < until => left = rest,
            _ => return,
        }
    }
}

async fn read_within(
    state: &Arc<State>,
    config: &Checked,
    body: &mut Incoming,
) -> Result<(Bytes, Room), Unread> {
    let limits = &config.config.limits;
    let too_large = |n: u64| {
        let message = format!("the body has {n} bytes, and limits.body allows {}", config.body);
        Unread::Reply(Reply::new(413, "body_too_large", message))
    };
    let no_room = || {
        let message = "the guard holds as many bytes of bodies as limits.buffered allows";
        Unread::Reply(Reply { retry_after: Some(1), ..Reply::new(429, "bodies_full", message) })
    };
    let declared = body.size_hint().exact();
    if let Some(n) = declared.filter(|n| *n > config.body) {
        return Err(too_large(n));
    }
    // What is declared is believed when it is there: a thousand callers that send nothing must not fill the room.
    let mut room = state.room(config.buffered);
    let mut all: Vec<u8> = Vec::new();
    let mut first: Option<Bytes> = None;
    let until = Instant::now() + Duration::from_secs(limits.body_seconds);
    let idle = Duration::from_secs(limits.body_idle_seconds);
    loop {
        let wait = idle.min(until.saturating_duration_since(Instant::now()));
        let frame = match tokio::time::timeout(wait, body.frame()).await {
            Err(_) => {
                return Err(Unread::Reply(Reply::new(408, "body_too_slow", "the body did not come in time")));
            }
            Ok(None) => break,
            Ok(Some(Err(_))) => return Err(Unread::Gone),
            Ok(Some(Ok(frame))) => frame,
        };
        let Ok(data) = frame.into_data() else { continue };
        let held = (all.len() + first.as_ref().map_or(0, Bytes::len) + data.len()) as u64;
        if held > config.body {
            return Err(too_large(held));
        }
        if !room.grow(held) {
            return Err(no_room());
        }
        // Most bodies come in one part, which needs no copy.
        match first.take() {
            None if all.is_empty() => first = Some(data),
            part => {
                if let Some(part) = part {
                    all.extend_from_slice(&part);
                }
                all.extend_from_slice(&data);
            }
        }
    }
    let bytes = first.unwrap_or_else(|| Bytes::from(all));
    Ok((bytes, room))
}
