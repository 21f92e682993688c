//! Encrypted connections for the pages that are asked.

/// Certificates that this machine trusts, for pages.
pub(crate) fn of_pages() -> ureq::tls::TlsConfig {
    let all: Vec<_> = dualplane_wire::tls::trusted()
        .iter()
        .map(|c| ureq::tls::Certificate::from_der(c).to_owned())
        .collect();
    ureq::tls::TlsConfig::builder().root_certs(ureq::tls::RootCerts::new_with_certs(&all)).build()
}
