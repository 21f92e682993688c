//! Connections to servers, with TLS where their URL says `https`.
//!
//! An encrypted one is boxed: of a plain one nothing more is held, and thousands of them are open at once.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower_service::Service;

use crate::tls;

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Makes connections.
#[derive(Clone)]
pub(crate) struct Connector {
    tcp: HttpConnector,
    /// For the handshake alone.
    time: Duration,
}

impl Connector {
    /// To make a connection takes so long at most, and to encrypt it again.
    pub(crate) fn new(time: Duration) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(time));
        Self { tcp, time }
    }
}

/// Read when it is needed first.
fn trusted() -> Result<Arc<ClientConfig>, Failed> {
    static TRUSTED: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
    let read = || {
        let mut config = tls::client(tls::trusted()).map_err(|e| e.to_string())?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    };
    Ok(TRUSTED.get_or_init(read).clone()?)
}

impl Service<Uri> for Connector {
    type Response = Link;
    type Error = Failed;
    type Future = Pin<Box<dyn Future<Output = Result<Link, Failed>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        self.tcp.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let encrypts = uri.scheme_str() == Some("https");
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let (connects, time) = (self.tcp.call(uri), self.time);
        Box::pin(async move {
            let stream = connects.await?;
            if !encrypts {
                return Ok(Link::Plain(stream));
            }
            let handshake =
                TlsConnector::from(trusted()?).connect(ServerName::try_from(host)?, stream.into_inner());
            let stream = tokio::time::timeout(time, handshake).await??;
            Ok(Link::Encrypted(Box::new(TokioIo::new(stream))))
        })
    }
}

/// A connection.
pub(crate) enum Link {
    Plain(TokioIo<TcpStream>),
    Encrypted(Box<TokioIo<TlsStream<TcpStream>>>),
}

impl Connection for Link {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for Link {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(s) => Pin::new(s).poll_read(cx, into),
            Self::Encrypted(s) => Pin::new(s.as_mut()).poll_read(cx, into),
        }
    }
}

impl Write for Link {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(s) => Pin::new(s).poll_write(cx, bytes),
            Self::Encrypted(s) => Pin::new(s.as_mut()).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(s) => Pin::new(s).poll_flush(cx),
            Self::Encrypted(s) => Pin::new(s.as_mut()).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(s) => Pin::new(s).poll_shutdown(cx),
            Self::Encrypted(s) => Pin::new(s.as_mut()).poll_shutdown(cx),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(s) => s.is_write_vectored(),
            Self::Encrypted(s) => s.is_write_vectored(),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(s) => Pin::new(s).poll_write_vectored(cx, parts),
            Self::Encrypted(s) => Pin::new(s.as_mut()).poll_write_vectored(cx, parts),
        }
    }
}
