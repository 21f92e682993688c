//! A connection to a server, encrypted or not: made, written to, read from.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use crate::answer::{Answer, Broken, Sink};
use crate::tls::Encrypted;

/// Bytes that are read at once.
pub(crate) const READ: usize = 16 << 10;

thread_local! {
    static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ].into_boxed_slice());
}

fn is_silent(stream: &TcpStream) -> bool {
    let seen = recv(stream, &mut [0], RecvFlags::PEEK | RecvFlags::DONTWAIT);
    matches!(seen, Err(Errno::AGAIN))
}

/// No connection was made, so nothing was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unreached {
    /// Nobody listens there.
    #[error("connection refused")]
    Refused,
    /// Nobody took it in time.
    #[error("connect timed out")]
    Late,
    /// Another reason: no such host, no way to it.
    #[error("cannot connect")]
    Failed,
    /// It cannot be encrypted.
    #[error("{0}")]
    Unencrypted(&'static str),
}

impl Unreached {
    /// The same as a fixed sentence.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Refused => "connection refused",
            Self::Late => "connect timed out",
            Self::Failed => "cannot connect",
            Self::Unencrypted(why) => why,
        }
    }
}

/// A connection.
pub enum Wire {
    /// As it is.
    Plain(TcpStream),
    /// Boxed: of a plain one nothing more is held.
    Encrypted(Box<TlsStream<TcpStream>>),
}

impl Wire {
    /// Makes one. Of several addresses each has its part of the time.
    ///
    /// # Errors
    /// None of them takes it in time, or it cannot be encrypted.
    pub async fn connect(
        host: &str,
        port: u16,
        encrypted: Option<&Encrypted>,
        time: Duration,
    ) -> Result<Self, Unreached> {
        let found = timeout(time, lookup_host((host, port))).await.map_err(|_| Unreached::Late)?;
        let addresses: Vec<_> = found.map_err(|_| Unreached::Failed)?.collect();
        let each = time / u32::try_from(addresses.len().max(1)).unwrap_or(u32::MAX);
        let mut why = Unreached::Failed;
        for address in addresses {
            let stream = match timeout(each, TcpStream::connect(address)).await {
                Err(_) => {
                    why = Unreached::Late;
                    continue;
                }
                Ok(Err(e)) => {
                    let refused = e.kind() == io::ErrorKind::ConnectionRefused;
                    why = if refused { Unreached::Refused } else { Unreached::Failed };
                    continue;
                }
                Ok(Ok(stream)) => stream,
            };
            // A token alone in a packet must not wait for the next.
            let _ = stream.set_nodelay(true);
            let Some(encrypted) = encrypted else { return Ok(Self::Plain(stream)) };
            return match timeout(time, Box::pin(encrypted.over(stream))).await {
                Ok(Ok(stream)) => Ok(Self::Encrypted(Box::new(stream))),
                Ok(Err(why)) => Err(Unreached::Unencrypted(why)),
                Err(_) => Err(Unreached::Late),
            };
        }
        Err(why)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(s) => Pin::new(s).poll_read(cx, buffer),
            Self::Encrypted(s) => Pin::new(s).poll_read(cx, buffer),
        }
    }

    /// Writes what goes.
    pub fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Plain(s) => Pin::new(s).poll_write(cx, bytes),
            Self::Encrypted(s) => Pin::new(s).poll_write(cx, bytes),
        }
    }

    /// Puts what was written on its way.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(s) => Pin::new(s).poll_flush(cx),
            Self::Encrypted(s) => Pin::new(s).poll_flush(cx),
        }
    }

    /// Whether a connection that nobody used for a while can be used again: the server neither closed it nor said anything.
    pub fn is_idle(&mut self) -> bool {
        match self {
            // The kernel is asked: what the runtime knows may be a moment old.
            Self::Plain(s) => is_silent(s),
            Self::Encrypted(_) => self.is_idle_yet(),
        }
    }

    /// The same of one that was used a moment ago: the runtime has heard nothing since it last asked the kernel. That is a call
    /// less.
    pub fn is_idle_yet(&mut self) -> bool {
        if let Self::Plain(s) = self {
            let seen = s.try_io(Interest::READABLE, || match is_silent(s) {
                true => Err(io::ErrorKind::WouldBlock.into()),
                false => Ok(()),
            });
            return seen.is_err_and(|e| e.kind() == io::ErrorKind::WouldBlock);
        }
        let mut cx = Context::from_waker(Waker::noop());
        self.poll_read(&mut cx, &mut ReadBuf::new(&mut [0])).is_pending()
    }

    /// Sends a whole request.
    ///
    /// # Errors
    /// The server closed the connection.
    pub async fn send(&mut self, mut request: &[u8]) -> Result<(), Broken> {
        poll_fn(|cx| {
            while !request.is_empty() {
                match self.poll_write(cx, request) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok(n)) if n > 0 => request = request.get(n..).unwrap_or_default(),
                    Poll::Ready(_) => return Poll::Ready(Err(Broken::CutOff)),
                }
            }
            self.poll_flush(cx).map_err(|_| Broken::CutOff)
        })
        .await
    }

    /// Reads what there is and gives it to the answer, and its parts to `sink`. Whether there may be more.
    ///
    /// # Errors
    /// The answer broke off, or is none.
    pub fn poll_more(
        &mut self,
        cx: &mut Context<'_>,
        answer: &mut Answer,
        sink: &mut impl Sink,
    ) -> Poll<Result<bool, Broken>> {
        BUFFER.with_borrow_mut(|buffer| {
            let mut read = ReadBuf::new(buffer);
            match self.poll_read(cx, &mut read) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Err(_)) => Poll::Ready(Err(Broken::CutOff)),
                Poll::Ready(Ok(())) if read.filled().is_empty() => Poll::Ready(answer.ends().map(|()| false)),
                Poll::Ready(Ok(())) => {
                    Poll::Ready(answer.take(read.filled(), sink).map(|()| !answer.is_whole()))
                }
            }
        })
    }

    /// The same as a future; `body` gets the parts of its body.
    ///
    /// # Errors
    /// The answer broke off, or is none.
    pub async fn more(&mut self, answer: &mut Answer, mut body: impl FnMut(&[u8])) -> Result<bool, Broken> {
        poll_fn(|cx| self.poll_more(cx, answer, &mut body)).await
    }
}
