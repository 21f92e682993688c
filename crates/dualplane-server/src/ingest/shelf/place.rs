//! Which bucket of which store, as the operator names it, and the keys that the environment has for it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use dualplane_client::is_here;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::{BackoffConfig, Certificate, ClientOptions, ObjectStore, RetryConfig};

/// A bucket, as the operator names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`, `az://CONTAINER/PREFIX`, or a container's `https://ACCOUNT.blob.core.windows.net/…`.
    pub url: String,
    /// Where it is reached, where that is not the store's own address.
    pub endpoint: Option<String>,
    /// Its region, where a store has regions.
    pub region: Option<String>,
    /// Certificates that are trusted beside the usual ones.
    pub ca: Option<PathBuf>,
    /// Bundles may cross a network in the clear.
    pub plain: bool,
}

/// To connect, and for the whole of a request.
const CONNECT: Duration = Duration::from_secs(5);
const WHOLE: Duration = Duration::from_secs(120);
/// Where nobody says.
const REGION: &str = "us-east-1";
/// Where containers of Azure are reached, behind the name of an account.
const AZURE: &str = ".blob.core.windows.net";

/// Names of variables and what they hold.
pub(super) type Variables<'a> = &'a [(String, String)];

/// Whose store.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Amazon,
    Google,
    Azure {
        /// Where the address says it.
        account: Option<String>,
    },
}

/// A name that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named<'a> {
    kind: Kind,
    bucket: &'a str,
    prefix: &'a str,
}

fn named(url: &str) -> Option<Named<'_>> {
    let (scheme, rest) = url.split_once("://")?;
    let (kind, rest) = match scheme {
        "s3" => (Kind::Amazon, rest),
        "gs" => (Kind::Google, rest),
        "az" => (Kind::Azure { account: None }, rest),
        "https" => {
            let (host, rest) = rest.split_once('/')?;
            let account = host.strip_suffix(AZURE)?;
            let good = account.len() >= 3 && account.chars().all(|c| c.is_ascii_alphanumeric());
            (Kind::Azure { account: Some(account.to_owned()).filter(|_| good) }, good.then_some(rest)?)
        }
        _ => return None,
    };
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let good = |c: char| c.is_ascii_alphanumeric() || ".-_/".contains(c);
    let prefix = prefix.trim_matches('/');
    // `.` and `..` are folders to some stores.
    let steps = prefix.is_empty() || prefix.split('/').all(|s| !s.trim_matches('.').is_empty());
    let is = bucket.len() >= 3 && bucket.chars().all(good) && prefix.chars().all(good) && steps;
    is.then_some(Named { kind, bucket, prefix })
}

impl Place {
    /// The store, and the prefix of all names in it.
    ///
    /// # Errors
    ///
    /// A sentence: an address that is none, one that would be spoken to in the clear, keys that are incomplete.
    pub(super) fn open(&self, env: Variables<'_>) -> Result<(Arc<dyn ObjectStore>, String), String> {
        let Some(Named { kind, bucket, prefix }) = named(&self.url) else {
            return Err(format!(
                "--bundles {}: write s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or \
                 https://ACCOUNT{AZURE}/CONTAINER/PREFIX",
                self.url
            ));
        };
        let bad = |e: object_store::Error| format!("--bundles {}: {}", self.url, super::bucket::said(&e));
        let store: Arc<dyn ObjectStore> = match kind {
            Kind::Amazon => Arc::new(self.amazon(bucket, env)?.build().map_err(bad)?),
            Kind::Google => Arc::new(self.google(bucket, env)?.build().map_err(bad)?),
            Kind::Azure { account } => Arc::new(self.azure(account, bucket, env)?.build().map_err(bad)?),
        };
        Ok((store, prefix.to_owned()))
    }

    fn amazon(&self, bucket: &str, env: Variables<'_>) -> Result<AmazonS3Builder, String> {
        let mut b = AmazonS3Builder::new();
        for (key, value) in said(env, "aws_", |key| matches!(key, AmazonS3ConfigKey::Client(_))) {
            b = b.with_config(key, value);
        }
        let endpoint = self.endpoint.clone().or_else(|| b.get_config_value(&AmazonS3ConfigKey::Endpoint));
        let region = self.region.clone().or_else(|| b.get_config_value(&AmazonS3ConfigKey::Region));
        // A name with dots fits no certificate of the store's.
        let virtual_host = endpoint.is_none() && !bucket.contains('.');
        if let Some(endpoint) = &endpoint {
            b = b.with_endpoint(endpoint);
        }
        let b = b.with_region(region.as_deref().unwrap_or(REGION)).with_bucket_name(bucket);
        let b = b.with_virtual_hosted_style_request(virtual_host);
        Ok(b.with_retry(patience()).with_client_options(self.client(endpoint.as_deref())?))
    }

    fn google(&self, bucket: &str, env: Variables<'_>) -> Result<GoogleCloudStorageBuilder, String> {
        let mut b = GoogleCloudStorageBuilder::new();
        for (key, value) in said(env, "google_", |key| matches!(key, GoogleConfigKey::Client(_))) {
            b = b.with_config(key, value);
        }
        let endpoint = self.endpoint.clone().or_else(|| b.get_config_value(&GoogleConfigKey::BaseUrl));
        if let Some(endpoint) = &endpoint {
            b = b.with_base_url(endpoint);
        }
        let b = b.with_bucket_name(bucket).with_retry(patience());
        Ok(b.with_client_options(self.client(endpoint.as_deref())?))
    }

    fn azure(
        &self,
        account: Option<String>,
        bucket: &str,
        env: Variables<'_>,
    ) -> Result<MicrosoftAzureBuilder, String> {
        let mut b = MicrosoftAzureBuilder::new();
        for (key, value) in said(env, "azure_", |key| matches!(key, AzureConfigKey::Client(_))) {
            b = b.with_config(key, value);
        }
        // Where an identity of App Service or Azure ML is asked for.
        if let Some((_, at)) = env.iter().find(|(key, _)| key == "IDENTITY_ENDPOINT") {
            b = b.with_msi_endpoint(at);
        }
        let account = account.or_else(|| b.get_config_value(&AzureConfigKey::AccountName));
        let account = account.ok_or_else(|| {
            format!(
                "--bundles {}: whose container? Set AZURE_STORAGE_ACCOUNT_NAME, or write https://ACCOUNT{AZURE}/CONTAINER/PREFIX",
                self.url
            )
        })?;
        let endpoint = self.endpoint.clone().or_else(|| b.get_config_value(&AzureConfigKey::Endpoint));
        if let Some(endpoint) = &endpoint {
            b = b.with_endpoint(endpoint.clone());
        }
        let b = b.with_account(account).with_container_name(bucket).with_retry(patience());
        Ok(b.with_client_options(self.client(endpoint.as_deref())?))
    }

    /// How it is spoken to. Nothing crosses a network in the clear, unless that was said.
    fn client(&self, endpoint: Option<&str>) -> Result<ClientOptions, String> {
        let mut plain = false;
        if let Some(endpoint) = endpoint {
            let bad = |e: &dyn fmt::Display| format!("--bundles-endpoint {endpoint}: {e}");
            let uri: http::Uri = endpoint.parse().map_err(|e: http::uri::InvalidUri| bad(&e))?;
            plain = match uri.scheme_str() {
                Some("https") => false,
                Some("http") if self.plain || uri.host().is_some_and(is_here) => true,
                Some("http") => {
                    return Err(bad(
                        &"it would be spoken to in the clear: use https, or say --bundles-plain",
                    ));
                }
                _ => return Err(bad(&"write https://HOST:PORT")),
            };
        }
        let mut options = ClientOptions::new()
            .with_allow_http(plain)
            .with_connect_timeout(CONNECT)
            .with_timeout(WHOLE)
            .with_default_content_type("application/octet-stream");
        if let Some(file) = &self.ca {
            let bad = |e: &dyn fmt::Display| format!("--bundles-ca {}: {e}", file.display());
            let pem = std::fs::read(file).map_err(|e| bad(&e))?;
            let all = Certificate::from_pem_bundle(&pem).map_err(|e| bad(&e))?;
            if all.is_empty() {
                return Err(bad(&"there is no certificate in it (PEM)"));
            }
            for certificate in all {
                options = options.with_root_certificate(certificate);
            }
        }
        Ok(options)
    }
}

/// A sender waits, and comes again after 30 s: what the store does not take by then is not kept.
fn patience() -> RetryConfig {
    let backoff = BackoffConfig {
        init_backoff: Duration::from_millis(200),
        max_backoff: Duration::from_secs(2),
        base: 2.0,
    };
    RetryConfig { backoff, max_retries: 3, retry_timeout: Duration::from_secs(20) }
}

/// What the environment says to a store, but for how it is connected to (`connects`): that is said by flags.
fn said<'a, K: FromStr>(
    env: Variables<'a>,
    prefix: &'a str,
    connects: impl Fn(&K) -> bool + 'a,
) -> impl Iterator<Item = (K, &'a str)> {
    let all = env.iter().map(|(key, value)| (key.to_ascii_lowercase(), value.as_str()));
    let own = all.filter(move |(key, _)| key.starts_with(prefix));
    own.filter_map(|(key, value)| Some((key.parse().ok()?, value))).filter(move |(key, _)| !connects(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(url: &str, endpoint: Option<&str>) -> Place {
        Place {
            url: url.to_owned(),
            endpoint: endpoint.map(ToOwned::to_owned),
            region: None,
            ca: None,
            plain: false,
        }
    }

    fn env(all: &[(&str, &str)]) -> Vec<(String, String)> {
        all.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn a_bucket_is_named_as_its_store_names_it() {
        let of = |url| named(url).map(|n| (n.kind, n.bucket, n.prefix));
        let azure = |a: Option<&str>| Kind::Azure { account: a.map(ToOwned::to_owned) };
        assert_eq!(of("s3://fleet"), Some((Kind::Amazon, "fleet", "")));
        assert_eq!(of("s3://my.fleet/a/b/"), Some((Kind::Amazon, "my.fleet", "a/b")));
        assert_eq!(of("gs://fleet/a"), Some((Kind::Google, "fleet", "a")));
        assert_eq!(of("az://fleet/a"), Some((azure(None), "fleet", "a")));
        let portal = "https://acme1.blob.core.windows.net/fleet/a";
        assert_eq!(of(portal), Some((azure(Some("acme1")), "fleet", "a")));
        for bad in [
            "fleet",
            "s3://",
            "s3://a",
            "s3://fleet?x",
            "s3://fleet/%2e",
            "s3://fleet/a/../b",
            "gs://fleet//",
            "ftp://fleet",
            "https://fleet",
            "https://acme1.blob.core.windows.net/",
            "https://evil.example/fleet",
            "https://a/b.blob.core.windows.net/fleet",
        ] {
            let fine = bad == "gs://fleet//";
            assert_eq!(of(bad).is_some(), fine, "{bad}");
            if !fine {
                assert!(place(bad, None).open(&[]).unwrap_err().contains("s3://BUCKET"), "{bad}");
            }
        }
    }

    #[test]
    fn nothing_crosses_a_network_in_the_clear_whoever_says_the_address() {
        let keys = env(&[("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", "secret")]);
        let mut far = place("s3://fleet", Some("http://minio.storage:9000"));
        assert!(far.open(&keys).unwrap_err().contains("--bundles-plain"));
        let said = env(&[("AWS_ENDPOINT_URL", "http://minio.storage:9000"), ("AWS_ALLOW_HTTP", "true")]);
        assert!(place("s3://fleet", None).open(&said).unwrap_err().contains("--bundles-plain"));
        for (url, endpoint) in
            [("gs://fleet", "http://gcs.storage:9000"), ("az://fleet", "http://azure.storage:9000/acme")]
        {
            let keys = env(&[("AZURE_STORAGE_ACCOUNT_NAME", "acme")]);
            assert!(place(url, Some(endpoint)).open(&keys).unwrap_err().contains("--bundles-plain"), "{url}");
        }
        far.plain = true;
        assert!(far.open(&keys).is_ok());
        assert!(place("s3://fleet", Some("http://127.0.0.1:9000")).open(&keys).is_ok());
        for bad in ["minio.storage:9000", "ftp://x", "http://"] {
            let e = place("s3://fleet", Some(bad)).open(&keys).unwrap_err();
            assert!(e.contains("--bundles-endpoint"), "{e}");
        }
        let whose = place("az://fleet", None).open(&[]).unwrap_err();
        assert!(whose.contains("AZURE_STORAGE_ACCOUNT_NAME"), "{whose}");
    }
}
