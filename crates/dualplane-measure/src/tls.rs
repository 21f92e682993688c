//! Encrypted connections: the certificates that this machine trusts, for the driver and for the pages that it asks.

use std::sync::{Arc, OnceLock};

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, Error, RootCertStore};

/// Certificates that this machine trusts: `SSL_CERT_FILE` and `SSL_CERT_DIR`, else those of the system. Read once.
fn trusted() -> &'static [CertificateDer<'static>] {
    static ALL: OnceLock<Vec<CertificateDer<'static>>> = OnceLock::new();
    ALL.get_or_init(|| rustls_native_certs::load_native_certs().certs)
}

/// The same for pages.
pub(crate) fn of_pages() -> ureq::tls::TlsConfig {
    let all: Vec<_> = trusted().iter().map(|c| ureq::tls::Certificate::from_der(c).to_owned()).collect();
    ureq::tls::TlsConfig::builder().root_certs(ureq::tls::RootCerts::new_with_certs(&all)).build()
}

/// Encrypts connections to one host.
pub(crate) struct Encrypted {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Encrypted {
    /// `None` where the host is no name that a certificate could have.
    pub(crate) fn to(host: &str) -> Option<Self> {
        Self::trusting(host, trusted())
    }

    pub(crate) fn trusting(host: &str, trusted: &[CertificateDer<'static>]) -> Option<Self> {
        let name = ServerName::try_from(host.to_owned()).ok()?;
        let mut roots = RootCertStore::empty();
        let _ = roots.add_parsable_certificates(trusted.iter().cloned());
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let builder =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().ok()?;
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Some(Self { connector: TlsConnector::from(Arc::new(config)), name })
    }

    pub(crate) async fn over(&self, stream: TcpStream) -> Result<TlsStream<TcpStream>, &'static str> {
        self.connector.connect(self.name.clone(), stream).await.map_err(|e| {
            let inner = e.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
            match inner {
                Some(Error::InvalidCertificate(_)) => {
                    "its certificate is not trusted (SSL_CERT_FILE names a CA of your own)"
                }
                Some(_) => "it does not speak TLS as we do",
                None => "cut off while it encrypts",
            }
        })
    }
}
