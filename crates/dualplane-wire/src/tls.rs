//! How connections to others are encrypted, and whom this machine trusts.

use std::sync::{Arc, OnceLock};

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, Error, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Certificates that this machine trusts: `SSL_CERT_FILE` and `SSL_CERT_DIR`, else those of the system. Read once.
#[must_use]
pub fn trusted() -> &'static [CertificateDer<'static>] {
    static ALL: OnceLock<Vec<CertificateDer<'static>>> = OnceLock::new();
    ALL.get_or_init(|| rustls_native_certs::load_native_certs().certs)
}

/// The same as authorities.
#[must_use]
pub fn authorities(of: &[CertificateDer<'static>]) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(of.iter().cloned());
    roots
}

/// How a client encrypts to those whom these authorities name.
///
/// # Errors
/// Not with the versions of TLS that are compiled in.
pub fn client(roots: RootCertStore) -> Result<ClientConfig, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Encrypts connections to one host.
#[derive(Clone)]
pub struct Encrypted {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Encrypted {
    /// With HTTP/1.1 inside; `None` where the host is no name that a certificate could have.
    #[must_use]
    pub fn to(host: &str) -> Option<Self> {
        static TRUSTED: OnceLock<Option<Arc<ClientConfig>>> = OnceLock::new();
        let config = TRUSTED.get_or_init(|| http(trusted())).clone()?;
        Some(Self { connector: config.into(), name: name(host)? })
    }

    /// The same, where only these are trusted.
    #[must_use]
    pub fn trusting(host: &str, trusted: &[CertificateDer<'static>]) -> Option<Self> {
        Some(Self { connector: http(trusted)?.into(), name: name(host)? })
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

fn http(trusted: &[CertificateDer<'static>]) -> Option<Arc<ClientConfig>> {
    let mut config = client(authorities(trusted)).ok()?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Some(Arc::new(config))
}

fn name(host: &str) -> Option<ServerName<'static>> {
    ServerName::try_from(host.to_owned()).ok()
}
