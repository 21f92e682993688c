//! HTTP to an address that the operator gave: a status is an answer, and what is sent stays with whom it was meant for.

use std::fs::File;
use std::io::Read as _;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

/// Bytes of a file of certificates.
const MAX_CERTIFICATES: u64 = 16 << 20;

/// Asks within `whole`, of which `connect` until there is a connection.
#[must_use]
pub fn agent(whole: Duration, connect: Duration, tls: TlsConfig) -> ureq::Agent {
    ureq::Agent::config_builder()
        .tls_config(tls)
        .timeout_global(Some(whole))
        .timeout_connect(Some(connect))
        .http_status_as_error(false)
        // A token goes where it was meant to, nowhere else.
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(concat!("dualplane/", env!("CARGO_PKG_VERSION")))
        .build()
        .into()
}

/// Trusts the certificates of a file and no others.
///
/// # Errors
/// A sentence about the file: it cannot be read, or holds no certificate.
pub fn trusting(file: &Path) -> Result<TlsConfig, String> {
    Ok(TlsConfig::builder().root_certs(RootCerts::new_with_certs(&certificates(file)?)).build())
}

fn certificates(path: &Path) -> Result<Vec<Certificate<'static>>, String> {
    let mut pem = Vec::new();
    let read = File::open(path).and_then(|f| f.take(MAX_CERTIFICATES).read_to_end(&mut pem));
    read.map_err(|e| e.to_string())?;
    let mut all = Vec::new();
    for item in parse_pem(&pem) {
        if let PemItem::Certificate(c) = item.map_err(|e| e.to_string())? {
            all.push(c);
        }
    }
    if all.is_empty() { Err("the file contains no certificate".into()) } else { Ok(all) }
}

/// A host of a URL is this machine: nobody else sees what is sent there without TLS.
#[must_use]
pub fn is_here(host: &str) -> bool {
    host == "localhost" || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|a| a.is_loopback())
}
