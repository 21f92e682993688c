//! Bodies on their way: what is sent to a server, and what is followed of its answer while it passes.

use std::error::Error;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use dualplane_admission::template::Texts;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use memchr::memmem;
use tokio::time::Sleep;

use crate::access::Entry;
use crate::ask::Api;
use crate::config::Checked;
use crate::exchange::{Arriving, Failed};
use crate::forward::UnderWay;
use crate::held::{Permit, Room};
use crate::refuse::Reply;
use crate::state::State;
use crate::watch;

/// Any error of a body.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Bytes at the end of an answer that is no stream, where its counts of tokens stand.
const TAIL: usize = 2048;
/// How long the rest of a body that is refused may come, and between two parts of it.
const LINGER: Duration = Duration::from_secs(2);
const FLOWS: Duration = Duration::from_millis(100);
/// Events between two looks at how long an output is.
const EVENTS: u64 = 32;

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

/// The body of an answer.
pub enum Answer {
    /// Of the guard itself.
    Whole(Full<Bytes>),
    /// Of a server.
    Followed(Box<Followed>),
}

/// An answer of a server while it passes: nothing of it is kept but counts.
pub struct Followed {
    body: Arriving,
    state: Arc<State>,
    permit: Option<Permit>,
    server: usize,
    entry: Option<Box<Entry>>,
    asked: Option<Asked>,
    streams: bool,
    ok: bool,
    events: u64,
    told_at: u64,
    tail: Vec<u8>,
    usage: Usage,
    over: bool,
    under_way: Option<UnderWay>,
}

/// What is remembered of the request.
#[derive(Debug, Clone)]
pub struct Asked {
    /// What it asked for.
    pub api: Api,
    /// Model, for what is learnt of its tokens.
    pub model: String,
    /// Its text; `None` where more than text went into its prompt.
    pub text: Option<Told>,
    /// The answer is asked for in parts.
    pub stream: bool,
}

/// The text of a prompt, to learn from what the server counts of it.
#[derive(Debug, Clone, Copy)]
pub struct Told {
    /// Bytes.
    pub bytes: u64,
    /// Messages.
    pub messages: u64,
    /// As a tokenizer counted it.
    pub texts: Option<Texts>,
}

/// What all names of such counts have, and what stands around it in those of a prompt and of an output. Bodies are searched
/// once, and a chunk of a stream that counts nothing costs that search alone.
const WORD: &str = "tokens";
const PROMPT: [(&str, &str); 3] = [("\"prompt_", ""), ("\"input_", ""), ("\"", "_evaluated")];
const OUTPUT: [(&str, &str); 3] = [("\"completion_", ""), ("\"output_", ""), ("\"", "_predicted")];
static TOKENS: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new(WORD));

/// Tokens as the server counted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Usage {
    prompt: Option<u64>,
    output: Option<u64>,
}

impl Usage {
    /// The last number of each stands: a stream counts up.
    fn look(&mut self, text: &[u8]) {
        for at in TOKENS.find_iter(text) {
            let (before, behind) = text.split_at(at);
            let named = |(begin, end): &(&str, &str)| {
                // Most of these words are told by what stands before them.
                let behind =
                    behind.strip_prefix(WORD.as_bytes()).filter(|_| before.ends_with(begin.as_bytes()))?;
                number(behind.strip_prefix(end.as_bytes())?.strip_prefix(b"\"")?)
            };
            if let Some(n) = PROMPT.iter().find_map(named) {
                self.prompt = Some(n);
            } else if let Some(n) = OUTPUT.iter().find_map(named) {
                self.output = Some(n);
            }
        }
    }
}

/// The number behind a key.
fn number(text: &[u8]) -> Option<u64> {
    let rest = text.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    let digits = rest.iter().take(12).take_while(|b| b.is_ascii_digit()).count();
    std::str::from_utf8(rest.get(..digits)?).ok()?.parse().ok()
}

impl Answer {
    /// Of the guard itself.
    #[must_use]
    pub fn whole(bytes: Bytes) -> Self {
        Self::Whole(Full::new(bytes))
    }

    /// Of a server.
    #[must_use]
    pub fn followed(
        body: Arriving,
        state: &Arc<State>,
        permit: Option<Permit>,
        server: usize,
        entry: Option<Entry>,
        asked: Option<Asked>,
        (streams, ok): (bool, bool),
    ) -> Self {
        Self::Followed(Box::new(Followed {
            body,
            state: Arc::clone(state),
            permit,
            server,
            // There only where lines are written.
            entry: entry.map(Box::new),
            asked,
            streams,
            ok,
            events: 0,
            told_at: 0,
            tail: Vec::new(),
            usage: Usage::default(),
            over: false,
            under_way: None,
        }))
    }

    /// It comes in events, nobody knows how many, and all of its request was taken.
    pub(crate) fn is_stream(&self) -> bool {
        matches!(self, Self::Followed(f) if f.streams && f.body.is_sent() && f.body.size_hint().exact().is_none())
    }

    /// The request is counted as under way until this is over; an answer of the guard itself is over at once.
    pub(crate) fn until_its_end(&mut self, under_way: UnderWay) {
        if let Self::Followed(f) = self {
            f.under_way = Some(under_way);
        }
    }
}

impl Followed {
    fn pass(&mut self, data: &[u8]) {
        let Some(asked) = &self.asked else { return };
        if !asked.api.generates() && asked.text.is_none() {
            return;
        }
        if self.streams {
            let starts = u64::from(data.starts_with(b"data:"));
            self.events += starts + memmem::find_iter(data, b"\ndata:").count() as u64;
            self.usage.look(data);
            if self.events >= self.told_at + EVENTS {
                self.told_at = self.events;
                if let Some(permit) = &self.permit {
                    permit.progress(self.events);
                }
            }
        } else {
            let keep = TAIL.saturating_sub(data.len().min(TAIL));
            let drop = self.tail.len().saturating_sub(keep);
            self.tail.drain(..drop);
            self.tail.extend_from_slice(data.get(data.len().saturating_sub(TAIL)..).unwrap_or_default());
        }
    }

    fn finish(&mut self) {
        if self.over {
            return;
        }
        self.over = true;
        self.under_way = None;
        let tail = std::mem::take(&mut self.tail);
        self.usage.look(&tail);
        // Where it does not count itself, each event but the last is a token or more.
        let events = self.events.checked_sub(1).filter(|_| self.streams);
        let output = self.usage.output.or(events).filter(|_| self.ok);
        // What failed is given back without a lesson, when it is dropped.
        let permit = self.permit.take();
        if self.ok {
            let now = self.state.now();
            let mut gate = self.state.gate();
            if let Some(permit) = permit {
                permit.done(&mut gate, now, output);
            }
            if let (Some(asked), Some(prompt)) = (&self.asked, self.usage.prompt) {
                gate.counted(&asked.model, asked.text.as_ref(), prompt, output.unwrap_or(0));
            }
        }
        if let Some(entry) = self.entry.take() {
            self.state.record(&entry.tokens(self.usage.prompt, output));
        }
    }

    /// The server went away in the middle. A stream's reader gets an event that says so; for other answers nothing can be
    /// said any more, and the connection is closed so that nobody takes half of it for all.
    fn broke(&mut self, e: Failed) -> Option<Result<Frame<Bytes>, BoxError>> {
        self.over = true;
        self.under_way = None;
        drop(self.permit.take());
        let death = watch::look_after_death(&self.state, self.server, false);
        if let Some(entry) = self.entry.take() {
            self.state.record(&entry.code("server_died"));
        }
        if !self.streams {
            return Some(Err(e.into()));
        }
        let name = self.state.target(self.server).map_or_else(String::new, |t| t.name.clone());
        let reply = Reply::broke_off(&name, death);
        let api = self.asked.as_ref().map(|a| a.api);
        self.state.endings.count(api, reply.status, reply.code);
        Some(Ok(Frame::data(Bytes::from(format!("\n\ndata: {}\n\n", reply.body())))))
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.get_mut() {
            Self::Whole(whole) => {
                Pin::new(whole).poll_frame(cx).map_err(|never: std::convert::Infallible| match never {})
            }
            Self::Followed(f) if f.over => Poll::Ready(None),
            Self::Followed(f) => match Pin::new(&mut f.body).poll_frame(cx) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(None) => {
                    f.finish();
                    Poll::Ready(None)
                }
                Poll::Ready(Some(Ok(frame))) => {
                    if let Some(data) = frame.data_ref() {
                        f.pass(data);
                    }
                    // The connection asks no more when this was the last.
                    if f.body.is_end_stream() {
                        f.finish();
                    }
                    Poll::Ready(Some(Ok(frame)))
                }
                Poll::Ready(Some(Err(e))) => Poll::Ready(f.broke(e)),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(whole) => whole.is_end_stream(),
            Self::Followed(f) => f.over || f.body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(whole) => whole.size_hint(),
            Self::Followed(f) => f.body.size_hint(),
        }
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        if self.body.is_end_stream() {
            self.finish();
            return;
        }
        // The caller went away: dropping the body closes the connection to the server, which so learns of it.
        self.over = true;
        self.state.gate().counters.cancelled += 1;
        if let Some(entry) = self.entry.take() {
            self.state.record(&entry.code("cancelled"));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_tokens_are_found_at_the_end() {
        let mut u = Usage::default();
        u.look(br#"{"choices":[{"text":"\"completion_tokens\": 9"}],"usage":{"prompt_tokens": 12,"total_tokens":15,"completion_tokens":3}}"#);
        assert_eq!(u, Usage { prompt: Some(12), output: Some(3) });
        let mut u = Usage::default();
        u.look(br#"{"usage":{"input_tokens":4,"output_tokens":"x"}}"#);
        assert_eq!(u, Usage { prompt: Some(4), output: None });
        // Details of a count are no count, and the last of a stream stands.
        for part in [
            r#"data: {"usage":{"input_tokens":25,"output_tokens":1,"prompt_tokens_details":{"cached_tokens":9}}}"#,
            r#"data: {"delta":"tokens","output_tokens": 15,"completion_tokens_details":3,"total_tokens":40}"#,
        ] {
            u.look(part.as_bytes());
        }
        assert_eq!(u, Usage { prompt: Some(25), output: Some(15) });
        u.look(br#"{"tokens_evaluated" : 8, "tokens_predicted":3,"tokens_cached":1}"#);
        assert_eq!(u, Usage { prompt: Some(8), output: Some(3) });
    }
}
