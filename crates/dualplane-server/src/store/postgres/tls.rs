//! The way to Postgres: in the clear, encrypted, or encrypted to whom a certificate names. The words of `sslmode` mean what they
//! mean to libpq.

use std::fs::File;
use std::future::Future;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use dualplane_guard::tls;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

/// Bytes of a file of certificates.
const LARGEST: u64 = 16 << 20;

/// What a URL or a list of words says of TLS, and what is left of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    /// Without `sslmode` and `sslrootcert`.
    pub(super) rest: String,
    pub(super) mode: SslMode,
    /// The certificate must name the host, and be of an authority that is trusted.
    verify: bool,
    roots: Option<PathBuf>,
}

/// Cuts `key=value` words apart, whose values may be quoted.
fn words(text: &str) -> Vec<String> {
    let (mut out, mut word, mut quoted, mut escaped) = (Vec::new(), String::new(), false, false);
    for c in text.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\'' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => {
                out.extend(Some(std::mem::take(&mut word)).filter(|w| !w.is_empty()));
                continue;
            }
            _ => {}
        }
        word.push(c);
    }
    out.extend(Some(word).filter(|w| !w.is_empty()));
    out
}

/// # Errors
///
/// A sentence: a mode that there is not.
pub(super) fn asked(url: &str) -> Result<Asked, String> {
    let mut out = Asked { rest: String::new(), mode: SslMode::Prefer, verify: false, roots: None };
    let is_url = url.starts_with("postgres://") || url.starts_with("postgresql://");
    let (base, pairs) = match url.split_once('?') {
        Some((base, query)) if is_url => (base, query.split('&').map(ToOwned::to_owned).collect()),
        None if is_url => (url, Vec::new()),
        _ => ("", words(url)),
    };
    let mut left = Vec::new();
    for pair in pairs {
        match pair.split_once('=') {
            Some(("sslmode", mode)) => {
                (out.mode, out.verify) = match mode.trim_matches('\'') {
                    "disable" => (SslMode::Disable, false),
                    "allow" | "prefer" => (SslMode::Prefer, false),
                    "require" => (SslMode::Require, false),
                    // The name is checked as well: that is never less than what was asked for.
                    "verify-ca" | "verify-full" => (SslMode::Require, true),
                    _ => return Err("sslmode: write disable, prefer, require or verify-full".to_owned()),
                };
            }
            Some(("sslrootcert", path)) => {
                let path = path.trim_matches('\'');
                let path = dualplane_incidents::decode(path).unwrap_or_else(|| path.to_owned());
                out.roots = Some(path.into()).filter(|p| p != Path::new("system"));
            }
            _ => left.push(pair),
        }
    }
    let joined = left.join(if is_url { "&" } else { " " });
    out.rest = match (is_url, left.is_empty()) {
        (true, true) => base.to_owned(),
        (true, false) => format!("{base}?{joined}"),
        (false, _) => joined,
    };
    Ok(out)
}

fn roots(path: Option<&Path>) -> Result<RootCertStore, String> {
    let Some(path) = path else { return Ok(tls::trusted()) };
    let mut store = RootCertStore::empty();
    let failed = |why: String| format!("sslrootcert {}: {why}", path.display());
    let mut pem = Vec::new();
    let read = File::open(path).and_then(|f| f.take(LARGEST).read_to_end(&mut pem));
    read.map_err(|e| failed(e.to_string()))?;
    for c in CertificateDer::pem_slice_iter(&pem) {
        let c = c.map_err(|e| failed(e.to_string()))?;
        store.add(c).map_err(|e| failed(e.to_string()))?;
    }
    if store.is_empty() { Err(failed("it holds no certificate in PEM".to_owned())) } else { Ok(store) }
}

/// Makes encrypted connections.
#[derive(Debug, Clone)]
pub(super) struct Encrypt {
    config: Arc<ClientConfig>,
}

impl Encrypt {
    /// # Errors
    ///
    /// A sentence: the certificates cannot be read.
    pub(super) fn new(asked: &Asked) -> Result<Self, String> {
        if asked.verify {
            let config = tls::client(roots(asked.roots.as_deref())?).map_err(|e| e.to_string())?;
            return Ok(Self { config: Arc::new(config) });
        }
        let provider = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|e| e.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anybody(provider)))
            .with_no_client_auth();
        Ok(Self { config: Arc::new(config) })
    }
}

/// `sslmode=require` encrypts to whoever answers, as libpq does.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// To one host.
pub(super) struct Host {
    config: Arc<ClientConfig>,
    /// `None`: a socket of this machine, over which nobody encrypts.
    name: Option<ServerName<'static>>,
}

/// What is spoken over it.
pub(super) struct Encrypted<S>(tokio_rustls::client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Encrypt {
    type Stream = Encrypted<S>;
    type TlsConnect = Host;
    type Error = io::Error;

    fn make_tls_connect(&mut self, domain: &str) -> io::Result<Host> {
        Ok(Host { config: Arc::clone(&self.config), name: ServerName::try_from(domain.to_owned()).ok() })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Host {
    type Stream = Encrypted<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let name = self
                .name
                .ok_or_else(|| io::Error::other("the host is no name that a certificate could have"))?;
            TlsConnector::from(self.config).connect(name, stream).await.map(Encrypted)
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Encrypted<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, to)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, from)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_tls_is_taken_out_and_the_rest_stays() {
        let of = |url: &str| asked(url).unwrap();
        for (url, rest, mode, verify, roots) in [
            ("postgres://u:p@h/d", "postgres://u:p@h/d", SslMode::Prefer, false, None),
            ("postgres://u:p@h/d?sslmode=require", "postgres://u:p@h/d", SslMode::Require, false, None),
            (
                "postgres://h/d?application_name=x&sslmode=verify-full&sslrootcert=%2Fa%20b",
                "postgres://h/d?application_name=x",
                SslMode::Require,
                true,
                Some("/a b"),
            ),
            (
                "host=/x options='-c a=b sslmode=disable' sslmode='verify-ca' sslrootcert=system user=u",
                "host=/x options='-c a=b sslmode=disable' user=u",
                SslMode::Require,
                true,
                None,
            ),
            (
                "host=h password='a\\' sslmode=disable'",
                "host=h password='a\\' sslmode=disable'",
                SslMode::Prefer,
                false,
                None,
            ),
        ] {
            let got = of(url);
            assert_eq!((got.rest.as_str(), got.mode, got.verify), (rest, mode, verify), "{url}");
            assert_eq!(got.roots, roots.map(PathBuf::from), "{url}");
        }
        assert!(asked("postgres://h/d?sslmode=yes").unwrap_err().contains("verify-full"));
    }
}
