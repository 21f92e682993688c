//! An answer on its way back: what is followed of it while it passes.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use dualplane_admission::template::Texts;
use http_body_util::Full;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use memchr::memmem;

use crate::access::Entry;
use crate::ask::Api;
use crate::exchange::{Arriving, Failed};
use crate::forward::UnderWay;
use crate::held::Permit;
use crate::refuse::Reply;
use crate::state::State;
use crate::usage::Usage;
use crate::watch;

/// Any error of a body.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Bytes at the end of an answer that is no stream, where its counts of tokens stand.
const TAIL: usize = 2048;
/// Events between two looks at how long an output is.
const EVENTS: u64 = 32;

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
