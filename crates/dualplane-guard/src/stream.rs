//! An answer of events on its way to a caller of HTTP/1.1.
//!
//! Thousands of them are open at once, for minutes, and each writes a little now and then. So the library that read the
//! request gives its connection away when such an answer begins, with the buffers that it keeps for the next request, and
//! what is written here needs none: what the kernel does not take at once is kept, and the stream waits until it is gone.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, Write as _};
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Response;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use hyper::body::{Body as _, Frame};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::answer::Answer;
use crate::form;

/// What a caller may send before its answer is whole; more of it waits in the kernel.
const AHEAD: usize = 4 << 10;

thread_local! {
    /// What is about to be written.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}
/// Bytes that the scratch keeps from one part to the next.
const KEPT: usize = 64 << 10;

/// Writes it until its end; `rest` is what its caller sends meanwhile. An error: the caller went away, or the server broke off in
/// a way that can only be told by closing the connection. Whoever drops this lets the server know.
pub(crate) async fn write<I: AsyncRead + AsyncWrite + Unpin>(
    io: &mut I,
    response: Response<Answer>,
    stays: bool,
    trailers: bool,
    rest: &mut Vec<u8>,
) -> io::Result<()> {
    let (mut head, body) = response.into_parts();
    head.headers.remove(CONTENT_LENGTH);
    head.headers.remove(TRANSFER_ENCODING);
    let mut first = Vec::with_capacity(256);
    let reason = head.status.canonical_reason().unwrap_or_default();
    let _ = write!(first, "HTTP/1.1 {} {reason}\r\n", head.status.as_u16());
    form::lines(&mut first, &head.headers);
    form::line(&mut first, "transfer-encoding", b"chunked");
    if !stays {
        form::line(&mut first, "connection", b"close");
    }
    first.extend_from_slice(b"\r\n");
    drop(head);
    let mut stream = Stream { body, out: first, written: 0, trailers, over: false };
    poll_fn(|cx| {
        let written = stream.poll(io, cx)?;
        if written.is_ready() {
            return Poll::Ready(Ok(()));
        }
        watch(io, cx, rest)?;
        Poll::Pending
    })
    .await
}

/// A caller that closes its side went away. One that already sends its next request is not heard of until that is read.
fn watch<I: AsyncRead + Unpin>(io: &mut I, cx: &mut Context<'_>, rest: &mut Vec<u8>) -> io::Result<()> {
    while rest.len() < AHEAD {
        let mut bytes = [0; 64];
        let mut read = ReadBuf::new(&mut bytes);
        match Pin::new(&mut *io).poll_read(cx, &mut read)? {
            Poll::Pending => break,
            Poll::Ready(()) if read.filled().is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
            Poll::Ready(()) => rest.extend_from_slice(read.filled()),
        }
    }
    Ok(())
}

struct Stream {
    body: Answer,
    /// What was not taken yet.
    out: Vec<u8>,
    written: usize,
    /// The caller asked for what stands behind the body.
    trailers: bool,
    over: bool,
}

impl Stream {
    fn poll<I: AsyncWrite + Unpin>(&mut self, io: &mut I, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            while self.written < self.out.len() {
                let n = match put(io, cx, self.out.get(self.written..).unwrap_or_default())? {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(n) => n,
                };
                self.written += n;
            }
            if self.written > 0 {
                (self.out, self.written) = (Vec::new(), 0);
            }
            if Pin::new(&mut *io).poll_flush(cx)?.is_pending() {
                return Poll::Pending;
            }
            if self.over {
                return Poll::Ready(Ok(()));
            }
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Err(e))) => return Poll::Ready(Err(io::Error::other(e))),
                Poll::Ready(Some(Ok(frame))) => self.frame(io, cx, &frame)?,
                Poll::Ready(None) => {
                    self.over = true;
                    self.out.extend_from_slice(form::LAST_CHUNK);
                }
            }
        }
    }

    fn frame<I: AsyncWrite + Unpin>(
        &mut self,
        io: &mut I,
        cx: &mut Context<'_>,
        frame: &Frame<hyper::body::Bytes>,
    ) -> io::Result<()> {
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.clear();
            if let Some(data) = frame.data_ref().filter(|d| !d.is_empty()) {
                form::chunk(scratch, data);
                // What ends with its last part goes with it.
                if self.body.is_end_stream() {
                    self.over = true;
                    scratch.extend_from_slice(form::LAST_CHUNK);
                }
            } else if let Some(trailers) = frame.trailers_ref() {
                self.over = true;
                scratch.extend_from_slice(b"0\r\n");
                if self.trailers {
                    form::lines(scratch, trailers);
                }
                scratch.extend_from_slice(b"\r\n");
            }
            let mut written = 0;
            while written < scratch.len() {
                match put(io, cx, scratch.get(written..).unwrap_or_default())? {
                    Poll::Pending => break,
                    Poll::Ready(n) => written += n,
                }
            }
            self.out.extend_from_slice(scratch.get(written..).unwrap_or_default());
            if scratch.capacity() > KEPT {
                *scratch = Vec::new();
            }
            Ok(())
        })
    }
}

fn put<I: AsyncWrite + Unpin>(io: &mut I, cx: &mut Context<'_>, bytes: &[u8]) -> io::Result<Poll<usize>> {
    Ok(match Pin::new(io).poll_write(cx, bytes)? {
        Poll::Pending => Poll::Pending,
        Poll::Ready(0) => return Err(io::ErrorKind::WriteZero.into()),
        Poll::Ready(n) => Poll::Ready(n),
    })
}
