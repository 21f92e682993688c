//! What the operator says, checked before a port is bound: nobody listens to the network without TLS and tokens.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use crate::auth::oidc;
use crate::ingest::shelf::Place;
use crate::watch::Watch;

/// Options of `serve`.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Folder of the database and the bundles.
    pub data: PathBuf,
    /// Postgres instead of SQLite in the folder.
    pub database_url: Option<String>,
    /// The audit log, where it is not in the folder; `-`: standard output.
    pub audit_log: Option<PathBuf>,
    /// A bucket for bundles, instead of the folder.
    pub bundles: Option<Place>,
    /// Certificate and key.
    pub tls: Option<dualplane_guard::config::Tls>,
    /// A proxy before it speaks TLS.
    pub behind_proxy: bool,
    /// Tokens.
    pub tokens: Option<PathBuf>,
    /// Callers whom a cluster knows.
    pub kubernetes: Option<Kubernetes>,
    /// A cluster whose pods are watched.
    pub watch: Option<Watch>,
    /// People whom an issuer knows; the cluster says what they may.
    pub oidc: Option<oidc::Options>,
    /// Days after which a death is removed.
    pub keep_days: u32,
    /// Bytes of a bundle.
    pub max_bundle: u64,
    /// Requests a second of one caller.
    pub rate: u32,
}

/// A cluster whose API server says who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kubernetes {
    /// What its deaths name as their cluster.
    pub cluster: String,
    /// For whom tokens must be.
    pub audience: String,
}

/// What is missing for a server that may be reached from elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Everybody on the network could read and write.
    #[error(
        "{0} can be reached from other machines, and there are no tokens: give --tokens FILE (`dualplane-server token NAME` makes one) \
         or --kubernetes, or listen on 127.0.0.1"
    )]
    NoTokens(SocketAddr),
    /// Tokens would cross the network in the clear.
    #[error(
        "{0} can be reached from other machines, and there is no TLS: give --tls-cert FILE and --tls-key FILE, \
         or --behind-proxy where a proxy before it speaks TLS"
    )]
    NoTls(SocketAddr),
}

impl Options {
    /// # Errors
    ///
    /// Where it would serve the network without TLS or tokens.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.listen.ip().is_loopback() {
            return Ok(());
        }
        if self.tokens.is_none() && self.kubernetes.is_none() {
            return Err(ConfigError::NoTokens(self.listen));
        }
        if self.tls.is_none() && !self.behind_proxy {
            return Err(ConfigError::NoTls(self.listen));
        }
        Ok(())
    }
}

/// A `Host` header that names this machine: without tokens nothing else is answered, or a page of a stranger could ask
/// through the browser under a name that it points here.
#[must_use]
pub fn is_local_host(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(""),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(listen: &str) -> Options {
        Options {
            listen: listen.parse().unwrap(),
            data: "/tmp".into(),
            database_url: None,
            audit_log: None,
            bundles: None,
            tls: None,
            behind_proxy: false,
            tokens: None,
            kubernetes: None,
            watch: None,
            oidc: None,
            keep_days: 90,
            max_bundle: 1,
            rate: 1,
        }
    }

    #[test]
    fn only_this_machine_is_served_without_tls_and_tokens() {
        assert_eq!(at("127.0.0.1:80").check(), Ok(()));
        assert_eq!(at("[::1]:80").check(), Ok(()));
        for open in ["0.0.0.0:80", "[::]:80", "10.0.0.1:80"] {
            let mut o = at(open);
            assert!(o.check().unwrap_err().to_string().contains("--tokens"));
            o.tokens = Some("t".into());
            assert!(o.check().unwrap_err().to_string().contains("--tls-cert"));
            o.behind_proxy = true;
            assert_eq!(o.check(), Ok(()));
        }
    }

    #[test]
    fn names_of_this_machine() {
        for good in ["localhost", "LOCALHOST:8377", "127.0.0.1:8377", "127.0.0.2", "[::1]:8377", "[::1]"] {
            assert!(is_local_host(good), "{good}");
        }
        for bad in [
            "",
            "evil.example",
            "localhost.evil.example:8377",
            "127.0.0.1.evil.example",
            "10.0.0.1:80",
            "[::2]",
        ] {
            assert!(!is_local_host(bad), "{bad}");
        }
    }
}
