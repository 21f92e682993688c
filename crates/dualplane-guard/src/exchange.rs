//! One request to a server and its answer, over a connection that is theirs until both are whole.
//!
//! It runs in the task of its caller, without one of its own and without a channel between: whoever drops it closes the
//! connection, which is how the server learns that its caller went away.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use dualplane_wire::{Answer, Broken, Sink, Unreached, Wire};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use hyper::body::{Body, Bytes, Frame, SizeHint};

use crate::body::{Passing, Sent};
use crate::clients::{Clients, Peer};
use crate::form;

/// A body of so many bytes goes in one write with its head.
const ONE_WRITE: usize = 64 << 10;

/// Why there is no answer, or no whole one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failed {
    /// Nothing was sent.
    #[error(transparent)]
    Unreached(#[from] Unreached),
    /// The caller's body ended before its end.
    #[error("{0}")]
    Body(String),
    /// The server broke off, or sent no HTTP.
    #[error(transparent)]
    Broken(#[from] Broken),
}

/// A request as it is written.
pub struct Outgoing {
    to: Peer,
    method: Method,
    /// As far as it does not depend on the body.
    head: Vec<u8>,
    body: Sent,
}

impl Outgoing {
    /// One without headers. `path` is that of the server and the caller's own, which were both checked.
    pub(crate) fn new(to: Peer, method: &Method, path: [&str; 2], body: Sent) -> Self {
        let mut head = Vec::with_capacity(512);
        for word in [method.as_str(), " ", path[0], path[1], " HTTP/1.1\r\n"] {
            head.extend_from_slice(word.as_bytes());
        }
        Self { to, method: method.clone(), head, body }
    }

    /// A header.
    pub(crate) fn line(&mut self, name: &str, value: &[u8]) {
        form::line(&mut self.head, name, value);
    }

    /// Where it goes, as `Host` has it.
    pub(crate) fn with_own_host(mut self) -> Self {
        form::line(&mut self.head, "host", self.to.name().as_bytes());
        self
    }
}

/// Sends a request, and waits for the head of the answer.
pub(crate) async fn send(clients: &Arc<Clients>, request: Outgoing) -> Result<Response<Arriving>, Failed> {
    let Outgoing { to, method, head, body } = request;
    let mut wire = clients.connection(&to).await?;
    let mut answer = if method == Method::HEAD { Answer::to_head() } else { Answer::default() };
    let mut sending = Some(Sending::new(&method, head, body));
    let mut heard = Heard::default();
    let mut sent = true;
    poll_fn(|cx| {
        if let Some(s) = &mut sending {
            match s.poll(&mut wire, cx) {
                Poll::Pending => {}
                Poll::Ready(Ok(())) => sending = None,
                Poll::Ready(Err(Unsent::Body(why))) => return Poll::Ready(Err(Failed::Body(why))),
                // It may have said why before it closed.
                Poll::Ready(Err(Unsent::Closed)) => {
                    sending = None;
                    sent = false;
                }
            }
        }
        while heard.head.is_none() {
            match wire.poll_more(cx, &mut answer, &mut heard) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(e)) => return Poll::Ready(Err(e.into())),
                Poll::Ready(Ok(false)) if heard.head.is_none() => {
                    return Poll::Ready(Err(Broken::CutOff.into()));
                }
                Poll::Ready(Ok(_)) => {}
            }
        }
        Poll::Ready(Ok(()))
    })
    .await?;
    let (status, headers) = heard.head.take().ok_or(Broken::NoHttp)?;
    let first = heard.part();
    let mut arriving = Arriving {
        first,
        trailers: heard.trailers.take(),
        answer,
        wire: Some(wire),
        sending: sending.map(Box::new),
        sent,
        streams: is_stream(&headers),
        home: Some((Arc::clone(clients), to)),
    };
    arriving.settle();
    let mut response = Response::new(arriving);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(response)
}

/// Whether an answer comes in events.
pub(crate) fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|t| t.to_str().ok()).unwrap_or_default();
    kind.starts_with("text/event-stream")
}

/// What was read at once.
#[derive(Default)]
struct Heard {
    head: Option<(StatusCode, HeaderMap)>,
    body: Vec<u8>,
    trailers: Option<Box<HeaderMap>>,
}

impl Heard {
    fn part(&mut self) -> Option<Bytes> {
        (!self.body.is_empty()).then(|| Bytes::from(std::mem::take(&mut self.body).into_boxed_slice()))
    }
}

impl Sink for Heard {
    fn head(&mut self, head: &httparse::Response<'_, '_>) -> Result<(), Broken> {
        let status = StatusCode::from_u16(head.code.unwrap_or(0)).map_err(|_| Broken::NoHttp)?;
        let mut headers = HeaderMap::with_capacity(head.headers.len() + 1);
        // All values in one piece of memory: most heads have six and more.
        let mut values = Vec::with_capacity(head.headers.iter().map(|h| h.value.len()).sum());
        for h in head.headers.iter() {
            values.extend_from_slice(h.value);
        }
        let mut values = Bytes::from(values);
        for h in head.headers.iter() {
            let name = HeaderName::from_bytes(h.name.as_bytes()).map_err(|_| Broken::NoHttp)?;
            let value = HeaderValue::from_maybe_shared(values.split_to(h.value.len()));
            headers.append(name, value.map_err(|_| Broken::NoHttp)?);
        }
        self.head = Some((status, headers));
        Ok(())
    }

    fn body(&mut self, part: &[u8]) {
        self.body.extend_from_slice(part);
    }

    fn trailer(&mut self, name: &[u8], value: &[u8]) {
        // A line that is none says nothing; those that frame a body must not come behind it (RFC 9110, 6.5.1).
        let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) else {
            return;
        };
        if name != CONTENT_LENGTH && name != TRANSFER_ENCODING && name != HOST {
            self.trailers.get_or_insert_default().append(name, value);
        }
    }
}

enum Unsent {
    Body(String),
    Closed,
}

/// A request on its way.
struct Sending {
    /// What is to be written next, and how much of it is.
    head: Vec<u8>,
    data: Bytes,
    written: usize,
    /// What comes behind, until it ends.
    body: Option<Box<Passing>>,
    chunked: bool,
    /// Bytes of a body whose length was said, that are still to come.
    left: u64,
}

impl Sending {
    fn new(method: &Method, mut head: Vec<u8>, body: Sent) -> Self {
        let length = body.length();
        let empties = [Method::GET, Method::HEAD, Method::DELETE, Method::OPTIONS, Method::TRACE];
        match length {
            None => form::line(&mut head, "transfer-encoding", b"chunked"),
            Some(0) if empties.contains(method) => {}
            Some(n) => form::line(&mut head, "content-length", n.to_string().as_bytes()),
        }
        head.extend_from_slice(b"\r\n");
        let mut data = Bytes::new();
        let body = match body {
            Sent::Whole(bytes) => {
                if bytes.len() <= ONE_WRITE {
                    head.extend_from_slice(&bytes);
                } else {
                    data = bytes;
                }
                None
            }
            Sent::Passing(passing) => Some(passing),
        };
        Self { head, data, written: 0, body, chunked: length.is_none(), left: length.unwrap_or(0) }
    }

    fn poll(&mut self, wire: &mut Wire, cx: &mut Context<'_>) -> Poll<Result<(), Unsent>> {
        loop {
            while let Some(rest) = self.rest() {
                match wire.poll_write(cx, rest) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok(n)) if n > 0 => self.written += n,
                    Poll::Ready(_) => return Poll::Ready(Err(Unsent::Closed)),
                }
            }
            self.head.clear();
            self.data = Bytes::new();
            self.written = 0;
            let Some(body) = &mut self.body else {
                return wire.poll_flush(cx).map_err(|_| Unsent::Closed);
            };
            match body.poll_part(cx) {
                Poll::Pending => {
                    // What there is must not wait for what comes.
                    let _ = wire.poll_flush(cx);
                    return Poll::Pending;
                }
                Poll::Ready(Some(Err(e))) => return Poll::Ready(Err(Unsent::Body(e))),
                Poll::Ready(Some(Ok(data))) => self.part(data)?,
                Poll::Ready(None) => {
                    self.body = None;
                    if self.left > 0 {
                        return Poll::Ready(Err(Unsent::Body("it is shorter than it said".into())));
                    }
                    if self.chunked {
                        self.head.extend_from_slice(form::LAST_CHUNK);
                    }
                }
            }
        }
    }

    fn rest(&self) -> Option<&[u8]> {
        let of_head = self.head.get(self.written..).filter(|r| !r.is_empty());
        of_head
            .or_else(|| self.data.get(self.written.checked_sub(self.head.len())?..).filter(|r| !r.is_empty()))
    }

    /// The next part of a body.
    fn part(&mut self, data: Bytes) -> Result<(), Unsent> {
        if self.chunked {
            form::chunk(&mut self.head, &data);
            return Ok(());
        }
        let n = data.len() as u64;
        self.left =
            self.left.checked_sub(n).ok_or_else(|| Unsent::Body("it is longer than it said".into()))?;
        self.data = data;
        Ok(())
    }
}

/// The body of an answer, as it comes.
pub struct Arriving {
    /// What came with its head.
    first: Option<Bytes>,
    trailers: Option<Box<HeaderMap>>,
    answer: Answer,
    /// `None`: nothing more comes.
    wire: Option<Wire>,
    /// What is left of the request.
    sending: Option<Box<Sending>>,
    /// All of the request was taken.
    sent: bool,
    /// It comes in events.
    streams: bool,
    home: Option<(Arc<Clients>, Peer)>,
}

impl Arriving {
    /// Gives the connection back where both are whole.
    fn settle(&mut self) {
        if !self.answer.is_whole() {
            return;
        }
        let (wire, home) = (self.wire.take(), self.home.take());
        let sent = self.is_sent();
        if let (Some(wire), Some((clients, to))) = (wire, home)
            && sent
            && self.answer.keeps()
        {
            clients.keep(to, wire, self.streams);
        }
    }

    /// All of the request was taken.
    pub(crate) fn is_sent(&self) -> bool {
        self.sent && self.sending.is_none()
    }

    fn next(&mut self) -> Option<Frame<Bytes>> {
        if let Some(data) = self.first.take() {
            return Some(Frame::data(data));
        }
        // They come last.
        let trailers = if self.wire.is_none() { self.trailers.take() } else { None };
        trailers.map(|t| Frame::trailers(*t))
    }
}

impl Body for Arriving {
    type Data = Bytes;
    type Error = Failed;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Failed>>> {
        let this = self.get_mut();
        loop {
            if let Some(frame) = this.next() {
                return Poll::Ready(Some(Ok(frame)));
            }
            let Some(wire) = &mut this.wire else { return Poll::Ready(None) };
            if let Some(s) = &mut this.sending {
                match s.poll(wire, cx) {
                    Poll::Pending => {}
                    Poll::Ready(Ok(())) => this.sending = None,
                    Poll::Ready(Err(_)) => {
                        // Its answer began; what it says stands.
                        this.sending = None;
                        this.sent = false;
                    }
                }
            }
            let mut heard = Heard::default();
            match wire.poll_more(cx, &mut this.answer, &mut heard) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(e)) => {
                    this.wire = None;
                    return Poll::Ready(Some(Err(e.into())));
                }
                Poll::Ready(Ok(_)) => {
                    this.first = heard.part();
                    this.trailers = heard.trailers.take().or(this.trailers.take());
                    this.settle();
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.wire.is_none() && self.first.is_none() && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        // Trailers need chunks.
        let left = self.answer.left().filter(|_| self.trailers.is_none());
        left.map_or_else(SizeHint::default, |left| {
            SizeHint::with_exact(left.saturating_add(self.first.as_ref().map_or(0, |f| f.len() as u64)))
        })
    }
}
