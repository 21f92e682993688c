//! HTTP/1.1 as the driver speaks it: a request is one write, and of an answer nothing is kept that is not needed.
//!
//! Thousands of streams are open at once, and each of them must cost little and be timed well: all share one buffer, into which
//! a stream reads when it has something, and what is read is looked at at once. A library for all of HTTP keeps some 30 KiB for
//! each connection and a task beside that of the request.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// Bytes that are read at once.
const READ: usize = 16 << 10;
/// Of a head, and of its lines.
const MAX_HEAD: usize = 64 << 10;
const MAX_HEADERS: usize = 128;
/// Of a line that says how long a chunk is, or that follows the last.
const MAX_LINE: usize = 8 << 10;

thread_local! {
    static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ].into_boxed_slice());
}

/// The answer broke off, or is none.
pub(crate) const CUT_OFF: &str = "cut off";
const NO_HTTP: &str = "the answer is not HTTP/1.1";

/// A connection.
pub(crate) enum Wire {
    Plain(TcpStream),
    Encrypted(Box<TlsStream<TcpStream>>),
}

impl Wire {
    fn read(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        match self {
            Self::Plain(s) => Pin::new(s).poll_read(cx, buffer),
            Self::Encrypted(s) => Pin::new(s).poll_read(cx, buffer),
        }
    }

    /// Whether a connection that nobody used for a while can be used again: the server neither closed it nor said anything.
    pub(crate) fn is_idle(&mut self) -> bool {
        let mut byte = [0];
        let mut cx = Context::from_waker(Waker::noop());
        self.read(&mut cx, &mut ReadBuf::new(&mut byte)).is_pending()
    }

    /// Sends a whole request.
    pub(crate) async fn send(&mut self, request: &[u8]) -> Result<(), &'static str> {
        async fn all<S: AsyncWrite + Unpin>(stream: &mut S, request: &[u8]) -> std::io::Result<()> {
            stream.write_all(request).await?;
            stream.flush().await
        }
        match self {
            Self::Plain(s) => all(s, request).await,
            Self::Encrypted(s) => all(s.as_mut(), request).await,
        }
        .map_err(|_| CUT_OFF)
    }

    /// Reads what there is and gives it to the answer; `body` gets the parts of its body. Whether there may be more.
    pub(crate) async fn more(
        &mut self,
        answer: &mut Answer,
        mut body: impl FnMut(&[u8]),
    ) -> Result<bool, &'static str> {
        poll_fn(|cx| {
            BUFFER.with_borrow_mut(|buffer| {
                let mut read = ReadBuf::new(buffer);
                match self.read(cx, &mut read) {
                    Poll::Pending => Poll::Pending,
                    Poll::Ready(Err(_)) => Poll::Ready(Err(CUT_OFF)),
                    Poll::Ready(Ok(())) if read.filled().is_empty() => {
                        Poll::Ready(answer.ends().map(|()| false))
                    }
                    Poll::Ready(Ok(())) => {
                        Poll::Ready(answer.take(read.filled(), &mut body).map(|()| !answer.is_whole()))
                    }
                }
            })
        })
        .await
    }
}

/// Where an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Head,
    /// So many bytes of a body that are still to come.
    Body(u64),
    /// A body as long as the connection.
    UntilClose,
    /// The line that says how long a chunk is.
    Size,
    /// So many bytes of a chunk, with its line break.
    Chunk(u64),
    /// Lines behind the last chunk.
    Trailers,
    Whole,
}

/// An answer as far as it came.
#[derive(Debug)]
pub(crate) struct Answer {
    at: At,
    /// A head or a line that is not whole.
    rest: Vec<u8>,
    status: u16,
    keeps: bool,
}

impl Default for Answer {
    fn default() -> Self {
        Self { at: At::Head, rest: Vec::new(), status: 0, keeps: true }
    }
}

impl Answer {
    /// Its status, once its head is there.
    pub(crate) fn status(&self) -> Option<u16> {
        (self.at != At::Head).then_some(self.status)
    }

    /// Nothing of it is to come.
    pub(crate) fn is_whole(&self) -> bool {
        self.at == At::Whole
    }

    /// Whether the connection is good for another request.
    pub(crate) fn keeps(&self) -> bool {
        self.is_whole() && self.keeps
    }

    /// The server closed the connection.
    fn ends(&mut self) -> Result<(), &'static str> {
        self.keeps = false;
        match self.at {
            At::UntilClose | At::Whole => {
                self.at = At::Whole;
                Ok(())
            }
            _ => Err(CUT_OFF),
        }
    }

    /// Takes bytes in.
    pub(crate) fn take(
        &mut self,
        mut bytes: &[u8],
        body: &mut impl FnMut(&[u8]),
    ) -> Result<(), &'static str> {
        while !bytes.is_empty() {
            bytes = match self.at {
                At::Head => self.head(bytes)?,
                At::Body(left) => {
                    let (own, rest) = split(bytes, left);
                    body(own);
                    let left = left - own.len() as u64;
                    self.at = if left == 0 { At::Whole } else { At::Body(left) };
                    rest
                }
                At::UntilClose => {
                    body(bytes);
                    &[]
                }
                At::Size => match self.line(bytes)? {
                    (None, rest) => rest,
                    (Some(line), rest) => {
                        let size = size(&line).ok_or(NO_HTTP)?;
                        self.at = if size == 0 { At::Trailers } else { At::Chunk(size.saturating_add(2)) };
                        rest
                    }
                },
                At::Chunk(left) => {
                    let (own, rest) = split(bytes, left);
                    // The line break behind it is no part of it.
                    body(
                        own.get(
                            ..own.len().min(usize::try_from(left.saturating_sub(2)).unwrap_or(usize::MAX)),
                        )
                        .unwrap_or_default(),
                    );
                    let left = left - own.len() as u64;
                    self.at = if left == 0 { At::Size } else { At::Chunk(left) };
                    rest
                }
                At::Trailers => match self.line(bytes)? {
                    (None, rest) => rest,
                    (Some(line), rest) => {
                        if line.is_empty() {
                            self.at = At::Whole;
                        }
                        rest
                    }
                },
                // Who says more than its answer is not asked again on this connection.
                At::Whole => {
                    self.keeps = false;
                    &[]
                }
            };
        }
        Ok(())
    }

    /// A head; what stands behind it.
    fn head<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], &'static str> {
        let before = self.rest.len();
        if before + bytes.len() > MAX_HEAD + READ {
            return Err("the head of the answer is too large");
        }
        self.rest.extend_from_slice(bytes);
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let length = match response.parse(&self.rest) {
            Ok(httparse::Status::Complete(n)) => n,
            Ok(httparse::Status::Partial) if self.rest.len() < MAX_HEAD => return Ok(&[]),
            _ => return Err(NO_HTTP),
        };
        let status = response.code.unwrap_or(0);
        let is = |h: &httparse::Header<'_>, name: &str| h.name.eq_ignore_ascii_case(name);
        let words = |name: &str| {
            let all = response.headers.iter().filter(|h| is(h, name)).map(|h| h.value.to_ascii_lowercase());
            all.collect::<Vec<_>>().join(&b","[..])
        };
        let has = |name: &str, word: &str| {
            words(name).split(|b| *b == b',').any(|w| w.trim_ascii() == word.as_bytes())
        };
        let said = |name: &str| response.headers.iter().find(|h| is(h, name)).map(|h| h.value.trim_ascii());
        let length_said = said("content-length");
        let size = length_said.and_then(|v| std::str::from_utf8(v).ok()?.parse::<u64>().ok());
        if length_said.is_some() && size.is_none() {
            return Err(NO_HTTP);
        }
        self.keeps =
            !has("connection", "close") && (response.version == Some(1) || has("connection", "keep-alive"));
        self.at = match status {
            // One that only says that another comes.
            100..=199 => At::Head,
            204 | 304 => At::Whole,
            _ if has("transfer-encoding", "chunked") => At::Size,
            _ => match size {
                Some(0) => At::Whole,
                Some(n) => At::Body(n),
                None => At::UntilClose,
            },
        };
        self.status = status;
        self.rest = Vec::new();
        // The head ends within these bytes: before them it was not whole.
        Ok(bytes.get(length.saturating_sub(before)..).unwrap_or_default())
    }

    /// A line without its break, where it is whole; what stands behind it.
    fn line<'a>(&mut self, bytes: &'a [u8]) -> Result<(Option<Vec<u8>>, &'a [u8]), &'static str> {
        let end = bytes.iter().position(|b| *b == b'\n');
        let (own, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
        if self.rest.len() + own.len() > MAX_LINE {
            return Err(NO_HTTP);
        }
        self.rest.extend_from_slice(own);
        if end.is_none() {
            return Ok((None, rest));
        }
        let mut line = std::mem::take(&mut self.rest);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Ok((Some(line), rest.get(1..).unwrap_or_default()))
    }
}

fn split(bytes: &[u8], most: u64) -> (&[u8], &[u8]) {
    bytes.split_at(bytes.len().min(usize::try_from(most).unwrap_or(usize::MAX)))
}

/// The length of a chunk, in hexadecimal digits; what stands behind a semicolon says nothing.
fn size(line: &[u8]) -> Option<u64> {
    let digits = line.split(|b| *b == b';').next()?.trim_ascii();
    let plain = !digits.is_empty() && digits.len() <= 15 && digits.iter().all(u8::is_ascii_hexdigit);
    if !plain {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads bytes in parts of these sizes, over and over.
    fn read(bytes: &[u8], parts: &[usize]) -> Result<(Answer, Vec<u8>), &'static str> {
        let (mut answer, mut body) = (Answer::default(), Vec::new());
        let (mut rest, mut sizes) = (bytes, parts.iter().copied().cycle());
        while !rest.is_empty() {
            let (own, behind) = rest.split_at(rest.len().min(sizes.next().unwrap().max(1)));
            answer.take(own, &mut |part| body.extend_from_slice(part))?;
            rest = behind;
        }
        Ok((answer, body))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        /// However a body is chunked and however the stream is cut, it is the same body, and the connection is as good.
        #[test]
        fn a_body_is_read_however_it_comes(
            body in proptest::collection::vec(any::<u8>(), 0..300),
            chunks in proptest::collection::vec(1_usize..90, 1..8),
            parts in proptest::collection::vec(1_usize..40, 1..8),
            form in 0..3,
        ) {
            let mut bytes = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nServer: x\r\n".to_vec();
            match form {
                0 => {
                    bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n");
                    let (mut rest, mut sizes) = (body.as_slice(), chunks.iter().copied().cycle());
                    while !rest.is_empty() {
                        let (own, behind) = rest.split_at(rest.len().min(sizes.next().unwrap()));
                        bytes.extend(format!("{:x};a=b\r\n", own.len()).bytes().chain(own.iter().copied()).chain(*b"\r\n"));
                        rest = behind;
                    }
                    bytes.extend(b"0\r\nX-Trailer: y\r\n\r\n");
                }
                1 => bytes.extend(format!("content-length: {}\r\n\r\n", body.len()).bytes().chain(body.iter().copied())),
                _ => bytes.extend(b"\r\n".iter().chain(&body)),
            }
            let (mut answer, got) = read(&bytes, &parts).unwrap();
            prop_assert_eq!(&got, &body);
            prop_assert_eq!((answer.status(), answer.keeps()), (Some(200), form < 2));
            prop_assert!(answer.ends().is_ok() && answer.is_whole());
        }

        /// What is no answer is refused or read, and never more than a little is kept of it.
        #[test]
        fn anything_may_come(bytes in proptest::collection::vec(any::<u8>(), 0..400), parts in proptest::collection::vec(1_usize..64, 1..4)) {
            let _ = read(&bytes, &parts);
            let mut answer = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
            answer.extend(&bytes);
            let _ = read(&answer, &parts);
        }
    }

    #[test]
    fn what_is_cut_too_large_or_wrong_is_told() {
        let of = |text: &str| read(text.as_bytes(), &[7]);
        let (mut cut, _) = of("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n1234").unwrap();
        assert!(cut.ends().is_err() && !cut.keeps());
        assert!(of("SSH-2.0-OpenSSH_9\r\n").is_err());
        assert!(of("HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n").is_err());
        assert!(of("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n").is_err());
        assert!(of("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n").is_err());
        assert!(of(&format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(MAX_HEAD))).is_err());
        let (closes, _) =
            of("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nConnection: keep-alive, Close\r\n\r\n").unwrap();
        assert!(closes.is_whole() && !closes.keeps());
        let (old, _) = of("HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
        assert!(!old.keeps());
        let (more, _) = of("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n12").unwrap();
        assert!(more.is_whole() && !more.keeps());
    }
}
