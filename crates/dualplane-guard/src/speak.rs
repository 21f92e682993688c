//! A connection of a caller, from its first request to its end.

use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::{CONNECTION, TE};
use http::{HeaderValue, Method, Request, Response, Version};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};

use crate::answer::Answer;
use crate::patience::Patience;
use crate::state::State;
use crate::{forward, stream};

/// Bytes of a head: OpenAI clients send some 1 KiB, gateways add tokens of several KiB.
const HEAD_BYTES: usize = 64 << 10;
/// Requests of one HTTP/2 connection at a time.
const STREAMS: u32 = 256;

/// Speaks HTTP/2. A head and an answer to a ping have so long.
pub(crate) async fn http2<I>(state: Arc<State>, io: I, peer: SocketAddr, head: Duration)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (of_request, caller) = (Arc::clone(&state), address(peer));
    let service = service_fn(move |request| {
        Box::pin(forward::handle(Arc::clone(&of_request), Arc::clone(&caller), request))
    });
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(u32::try_from(HEAD_BYTES).unwrap_or(u32::MAX))
        .keep_alive_interval(head)
        .serve_connection(TokioIo::new(io), service);
    let mut connection = Box::pin(connection);
    let mut drains = pin!(state.drains());
    // An error is the caller's: it hung up, sent no HTTP, or was too slow.
    tokio::select! {
        biased;
        _ = connection.as_mut() => return,
        () = drains.as_mut() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// As servers are told it.
fn address(peer: SocketAddr) -> Arc<str> {
    peer.ip().to_canonical().to_string().into()
}

/// Speaks HTTP/1. A head has so long.
pub(crate) async fn http1<I>(state: Arc<State>, io: I, peer: SocketAddr, head: Duration)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let caller = address(peer);
    let mut io = Watched { io, before: Bytes::new(), reads: false, flushes: Arc::default() };
    loop {
        let Some((mut own, mut taken)) = Box::pin(requests(&state, io, &caller, head)).await else { return };
        let mut ahead = Vec::new();
        let (stays, trailers) = (taken.stays && !state.is_draining(), taken.trailers);
        let response = std::mem::take(&mut taken.response);
        drop(taken);
        let Some(response) = response else { return };
        let written = stream::write(&mut own.io, response, stays, trailers, &mut ahead).await;
        if written.is_err() {
            return;
        }
        if !stays {
            let _ = own.io.shutdown().await;
            return;
        }
        if !ahead.is_empty() {
            own.before = [&own.before[..], &ahead[..]].concat().into();
        }
        io = own;
    }
}

/// An answer that is written by us, and what its request said of the connection.
#[derive(Default)]
struct Taken {
    response: Option<Response<Answer>>,
    stays: bool,
    trailers: bool,
    /// What had been flushed when it began.
    flushes: u64,
}

/// Answers requests until one is answered by events, and gives the connection back then; `None` at its end.
async fn requests<I>(
    state: &Arc<State>,
    io: Watched<I>,
    caller: &Arc<str>,
    head: Duration,
) -> Option<(Watched<I>, Taken)>
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let taken: Arc<Mutex<Taken>> = Arc::default();
    let flushes = Arc::clone(&io.flushes);
    let service = {
        let (state, caller) = (Arc::clone(state), Arc::clone(caller));
        let (taken, flushes) = (Arc::clone(&taken), Arc::clone(&flushes));
        // Its way is a large value, and a connection keeps room for one as long as it lives: boxed, it is there only until
        // the answer begins.
        service_fn(move |request: Request<Incoming>| {
            let (state, caller) = (Arc::clone(&state), Arc::clone(&caller));
            let (taken, flushes) = (Arc::clone(&taken), Arc::clone(&flushes));
            Box::pin(async move {
                let may = request.version() == Version::HTTP_11 && request.method() != Method::HEAD;
                let says = |name, word: &str| {
                    let mut all = request
                        .headers()
                        .get_all(name)
                        .iter()
                        .flat_map(|v| v.as_bytes().split(|b| *b == b','));
                    all.any(|w| w.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
                };
                let (stays, trailers) = (!says(CONNECTION, "close"), says(TE, "trailers"));
                let mut response = forward::handle(Arc::clone(&state), caller, request).await?;
                if !may || !response.body().is_stream() {
                    // Its next request finds another guard.
                    if state.is_draining() {
                        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                    }
                    return Ok(response);
                }
                let flushes = flushes.load(Ordering::Relaxed);
                *lock(&taken) = Taken { response: Some(response), stays, trailers, flushes };
                // Whoever polls the connection takes it apart now, and drops this.
                std::future::pending::<Result<Response<Answer>, std::convert::Infallible>>().await
            })
        })
    };
    let connection = http1::Builder::new()
        // The library would read ahead for the caller's end while an answer is made, into 8 KiB taken anew for each request:
        // `Watched` looks for it.
        .half_close(true)
        .timer(Patience::default())
        .header_read_timeout(head)
        // Of headers the library takes 100, and keeps room for them on its stack: any other number costs two allocations.
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(io), service);
    let mut connection = Box::new(connection);
    let mut quiet = pin!(state.falls_quiet());
    let (mut fell_quiet, mut first, mut again) = (false, true, true);
    let ended = std::future::poll_fn(|cx| {
        // An error is the caller's: it hung up, sent no HTTP, or was too slow.
        if Pin::new(&mut *connection).poll(cx).is_ready() {
            return Poll::Ready(true);
        }
        // The library closes a connection of which it has read nothing, whatever waits there: it has read now.
        // Once it waits for the end it is woken then: asking again takes a lock that all connections share.
        let asks = std::mem::take(&mut first) || state.is_draining();
        if asks && !fell_quiet && quiet.as_mut().poll(cx).is_ready() {
            fell_quiet = true;
            Pin::new(&mut *connection).graceful_shutdown();
            cx.waker().wake_by_ref();
        }
        // The library flushes the connection when it has nothing more to write: only then nothing of its own is lost.
        let taken = lock(&taken);
        if taken.response.is_some() {
            if flushes.load(Ordering::Relaxed) > taken.flushes {
                return Poll::Ready(false);
            }
            // It looked at the answer after its flush: once more is enough.
            if std::mem::take(&mut again) {
                cx.waker().wake_by_ref();
            }
        }
        Poll::Pending
    })
    .await;
    if ended {
        return None;
    }
    let parts = connection.into_parts();
    let mut io = parts.io.into_inner();
    if !parts.read_buf.is_empty() {
        io.before = [&parts.read_buf[..], &io.before[..]].concat().into();
    }
    let taken = std::mem::take(&mut *lock(&taken));
    Some((io, taken))
}

fn lock(taken: &Mutex<Taken>) -> std::sync::MutexGuard<'_, Taken> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is read ahead while an answer is made, in bytes: the end of a caller that waits needs none, the head of its next request
/// some.
const AHEAD: usize = 512;

/// A connection with what was read of it before, that counts how often it is flushed. Where the library does not read, it looks
/// for the caller's end at each flush, with which the library ends each of its turns.
struct Watched<I> {
    io: I,
    before: Bytes,
    /// Whether the library read since the last flush.
    reads: bool,
    flushes: Arc<AtomicU64>,
}

impl<I: AsyncRead + Unpin> Watched<I> {
    /// An error once the caller has gone. What it sent instead is kept for the next read, and ends the look.
    fn look(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if std::mem::take(&mut self.reads) || !self.before.is_empty() {
            return Ok(());
        }
        let mut room = [MaybeUninit::uninit(); AHEAD];
        let mut ahead = ReadBuf::uninit(&mut room);
        match Pin::new(&mut self.io).poll_read(cx, &mut ahead) {
            Poll::Pending => Ok(()),
            Poll::Ready(Err(e)) => Err(e),
            Poll::Ready(Ok(())) if ahead.filled().is_empty() => Err(io::ErrorKind::ConnectionAborted.into()),
            Poll::Ready(Ok(())) => {
                self.before = Bytes::copy_from_slice(ahead.filled());
                Ok(())
            }
        }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Watched<I> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.reads = true;
        if this.before.is_empty() {
            return Pin::new(&mut this.io).poll_read(cx, into);
        }
        let n = this.before.len().min(into.remaining());
        into.put_slice(&this.before.split_to(n));
        Poll::Ready(Ok(()))
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Watched<I> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().io).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.look(cx)?;
        let flushed = Pin::new(&mut this.io).poll_flush(cx);
        if matches!(flushed, Poll::Ready(Ok(()))) {
            this.flushes.fetch_add(1, Ordering::Relaxed);
        }
        flushed
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().io).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}
