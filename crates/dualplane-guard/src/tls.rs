//! TLS for requests: certificate and key from files, read again when they change. And for what is asked of others: whom this
//! machine trusts.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{RootCertStore, ServerConfig};

pub use dualplane_wire::tls::client;

use crate::config::Tls;

/// Between two looks at the files.
const LOOK: Duration = Duration::from_secs(5);

/// Authorities that this machine trusts.
#[must_use]
pub fn trusted() -> RootCertStore {
    dualplane_wire::tls::authorities(dualplane_wire::tls::trusted())
}

/// What the next connection speaks: nothing where TLS is not wanted.
pub type Current = Arc<RwLock<Option<Arc<ServerConfig>>>>;

/// What was loaded is used from the next connection on.
pub fn take(current: &Current, new: Arc<ServerConfig>) {
    *current.write().unwrap_or_else(PoisonError::into_inner) = Some(new);
}

/// Reads certificate and key again when one of them changed, for ever.
pub async fn renew(files: Tls, current: Current, say: Arc<dyn Fn(&str) + Send + Sync>) {
    let stamp = |files: &Tls| -> Vec<Option<SystemTime>> {
        let of = |p: &PathBuf| std::fs::metadata(p).and_then(|m| m.modified()).ok();
        vec![of(&files.certificate), of(&files.key)]
    };
    let mut before = stamp(&files);
    loop {
        tokio::time::sleep(LOOK).await;
        let now = stamp(&files);
        if now == before {
            continue;
        }
        // Of two files one is written first: what does not belong together yet is tried again.
        match load(&files) {
            Ok(new) => {
                take(&current, new);
                before = now;
                say("tls: took the new certificate");
            }
            Err(why) => say(&format!("tls: {why}; the old certificate stays")),
        }
    }
}

/// Reads both files.
///
/// # Errors
/// A sentence: one of them cannot be read, or they do not belong together.
pub fn load(tls: &Tls) -> Result<Arc<ServerConfig>, String> {
    let chain = CertificateDer::pem_file_iter(&tls.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| format!("cannot read certificates from {}: {e}", tls.certificate.display()))?;
    if chain.is_empty() {
        return Err(format!("{} holds no certificate", tls.certificate.display()));
    }
    let key = PrivateKeyDer::from_pem_file(&tls.key)
        .map_err(|e| format!("cannot read a private key from {}: {e}", tls.key.display()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|e| format!("certificate and key do not belong together: {e}"))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
