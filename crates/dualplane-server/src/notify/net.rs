//! One request to an address that was checked: the name is resolved once, the address that was allowed is the one that is
//! connected to, and no redirect is followed.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use dualplane_notify::guard;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::config::Config;

/// For a connection, and for the whole request.
const CONNECT: Duration = Duration::from_secs(10);
const WHOLE: Duration = Duration::from_secs(30);
/// Bytes of an answer that are looked at.
const ANSWER: usize = 4096;

/// Why a message was not taken.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The configuration is at fault; it may be mended.
    #[error("{0}")]
    Config(String),
    /// The address leads where nothing is sent.
    #[error(transparent)]
    Guard(#[from] guard::Refused),
    /// The message itself is not taken.
    #[error("{0}")]
    Refused(String),
    /// Nobody answers.
    #[error("{0}")]
    Away(String),
    /// Later, says the service.
    #[error("it asks to wait {0} s")]
    Later(u32),
}

impl SendError {
    /// The same again would be refused again.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Self::Refused(_))
    }

    /// It took too long.
    pub(super) fn late(after: Duration) -> Self {
        Self::Away(format!("it did not answer within {} s", after.as_secs()))
    }

    /// How long the service asks to wait.
    pub(super) fn after_ms(&self) -> i64 {
        if let Self::Later(s) = self { i64::from(*s) * 1000 } else { 0 }
    }
}

fn away(what: &str) -> impl Fn(std::io::Error) -> SendError + '_ {
    move |e| SendError::Away(format!("{what}: {e}"))
}

/// Whatever a request is spoken over.
pub(super) trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Wire for T {}

/// Connects to an allowed address of a host.
pub(super) async fn connect(config: &Config, host: &str, port: u16) -> Result<TcpStream, SendError> {
    let inside = guard::is_allowed(host, &config.allow_hosts);
    let found = timeout(CONNECT, lookup_host((host, port))).await;
    let found = found.map_err(|_| SendError::Away(format!("{host} is not resolved within 10 s")))?;
    let mut last = SendError::Away(format!("{host} has no address"));
    for address in found.map_err(away(host))? {
        if !inside && let Err(e) = guard::outside(SocketAddr::ip(&address)) {
            last = e.into();
            continue;
        }
        match timeout(CONNECT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(e)) => last = away(host)(e),
            Err(_) => last = SendError::Away(format!("{host} does not answer within 10 s")),
        }
    }
    Err(last)
}

/// TLS over a connection, by the authorities of this machine.
pub(super) async fn tls<T: AsyncRead + AsyncWrite + Unpin>(
    stream: T,
    host: &str,
) -> Result<tokio_rustls::client::TlsStream<T>, SendError> {
    static ROOTS: OnceLock<Arc<rustls::ClientConfig>> = OnceLock::new();
    let config = match ROOTS.get() {
        Some(c) => Arc::clone(c),
        None => {
            let config = dualplane_guard::tls::client(dualplane_guard::tls::trusted())
                .map_err(|e| SendError::Away(e.to_string()))?;
            Arc::clone(ROOTS.get_or_init(|| Arc::new(config)))
        }
    };
    let name = ServerName::try_from(host.to_owned()).map_err(|_| SendError::Guard(guard::Refused::Host))?;
    let done = timeout(CONNECT, TlsConnector::from(config).connect(name, stream)).await;
    done.map_err(|_| SendError::Away(format!("{host} does not speak TLS within 10 s")))?.map_err(away(host))
}

/// Posts a message.
pub(super) async fn post(
    config: &Config,
    url: &str,
    authorization: Option<&str>,
    media_type: &'static str,
    body: String,
) -> Result<(), SendError> {
    let (host, port) = guard::host(url, &config.allow_hosts)?;
    let work = async {
        let stream = connect(config, host, port).await?;
        let wire: Box<dyn Wire> =
            if url.starts_with("https:") { Box::new(tls(stream, host).await?) } else { Box::new(stream) };
        let told = |e: hyper::Error| SendError::Away(format!("{host}: {e}"));
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(wire)).await.map_err(told)?;
        let running = tokio::spawn(connection);
        let uri: http::Uri = url.parse().map_err(|_| SendError::Guard(guard::Refused::Host))?;
        let path = uri.path_and_query().map_or("/", |p| p.as_str());
        let authority = uri.authority().map_or(host, |a| a.as_str());
        let mut request = http::Request::post(path)
            .header(http::header::HOST, authority)
            .header(http::header::CONTENT_TYPE, media_type)
            .header(http::header::USER_AGENT, concat!("dualplane-server/", env!("CARGO_PKG_VERSION")));
        if let Some(a) = authorization {
            request = request.header(http::header::AUTHORIZATION, a);
        }
        let request = request
            .body(Full::new(bytes::Bytes::from(body)))
            .map_err(|e| SendError::Config(e.to_string()))?;
        let response = sender.send_request(request).await.map_err(told);
        let answer = judge(host, response?).await;
        running.abort();
        answer
    };
    timeout(WHOLE, work).await.map_err(|_| SendError::Away(format!("{host} does not answer within 30 s")))?
}

async fn judge(host: &str, response: http::Response<hyper::body::Incoming>) -> Result<(), SendError> {
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    let after = response.headers().get(http::header::RETRY_AFTER).and_then(|v| v.to_str().ok()?.parse().ok());
    if status == http::StatusCode::TOO_MANY_REQUESTS {
        return Err(SendError::Later(after.unwrap_or(30).min(3600)));
    }
    let body =
        Limited::new(response.into_body(), ANSWER).collect().await.map(|b| b.to_bytes()).unwrap_or_default();
    let said = String::from_utf8_lossy(&body);
    let said = dualplane_base::text::printable(said.trim()).into_owned();
    let told = format!("{host} answered {status}: {}", dualplane_base::text::shorten(&said, 200));
    // A redirect is not followed: it may lead inside. Keys and addresses may be mended; a message that is malformed stays so.
    match status.as_u16() {
        400 | 413 | 422 => Err(SendError::Refused(told)),
        _ => Err(SendError::Away(told)),
    }
}
