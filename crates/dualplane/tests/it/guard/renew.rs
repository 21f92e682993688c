//! TLS: a certificate is renewed while a stream goes on, a broken one changes nothing, and servers behind `https` are asked where
//! their certificate is trusted.

use std::io::{BufRead as _, BufReader};
use std::path::Path;

use ureq::tls::{Certificate, RootCerts, TlsConfig};

use super::backend::Backend;
use super::{Guard, LONG, chat};
use crate::harness::dir;

/// Self-signed for 127.0.0.1, valid for a hundred years; nothing else trusts them.
const CERTIFICATES: [(&[u8], &[u8]); 2] = [
    (include_bytes!("tls/one.crt"), include_bytes!("tls/one.key")),
    (include_bytes!("tls/two.crt"), include_bytes!("tls/two.key")),
];

fn put(folder: &Path, number: usize) {
    let (certificate, key) = CERTIFICATES[number];
    std::fs::write(folder.join("tls.crt"), certificate).unwrap();
    std::fs::write(folder.join("tls.key"), key).unwrap();
}

/// A caller that trusts one of them.
fn trusts(number: usize) -> ureq::Agent {
    let certificate = Certificate::from_pem(CERTIFICATES[number].0).unwrap();
    let tls = TlsConfig::builder().root_certs(RootCerts::new_with_certs(&[certificate])).build();
    // A connection each: one that stands open would keep its certificate.
    let config =
        ureq::Agent::config_builder().tls_config(tls).timeout_global(Some(LONG)).max_idle_connections(0);
    config.proxy(None).build().into()
}

#[test]
fn a_certificate_is_renewed_under_a_stream() {
    let backend = Backend::start(10_000);
    let d = dir(&[]);
    let folder = d.path();
    put(folder, 0);
    let file = format!(
        "[tls]\ncertificate = \"{0}/tls.crt\"\nkey = \"{0}/tls.key\"\n[[server]]\nurl = \"{1}\"\n",
        folder.display(),
        backend.url()
    );
    std::fs::write(folder.join("g.toml"), file).unwrap();
    let guard = Guard::start(&["--config", folder.join("g.toml").to_str().unwrap()]);
    let url = |path: &str| format!("https://{}{path}", guard.address);
    let plain = |number: usize| trusts(number).get(url("/v1/models")).call();
    assert_eq!(plain(0).unwrap().status(), 200);
    assert!(plain(1).is_err());
    let body = chat("stream:2:step", 100, 10).to_string();
    let answer =
        trusts(0).post(url("/v1/chat/completions")).content_type("application/json").send(body).unwrap();
    let mut events = BufReader::new(answer.into_body().into_reader()).lines();
    backend.step();
    assert!(events.next().unwrap().unwrap().contains("\"content\":\"0\""));
    std::fs::write(folder.join("tls.crt"), "no certificate").unwrap();
    guard.signal("-HUP");
    guard.line("the old certificate stays");
    assert!(plain(0).is_ok() && plain(1).is_err());
    put(folder, 1);
    guard.signal("-HUP");
    guard.line("reloaded");
    assert!(plain(0).is_err());
    assert_eq!(plain(1).unwrap().status(), 200);
    backend.step();
    let rest: Vec<String> = events.map_while(Result::ok).collect();
    assert!(
        rest.iter().any(|l| l.contains("\"content\":\"1\"")) && rest.iter().any(|l| l.contains("[DONE]")),
        "{rest:?}"
    );
}

/// A server behind TLS: another guard stands for it. Streams pass event by event; whose certificate nobody trusts gets nothing.
#[test]
fn a_server_behind_https_is_asked_where_its_certificate_is_trusted() {
    let backend = Backend::start(10_000);
    let d = dir(&[]);
    let folder = d.path();
    put(folder, 0);
    let file = format!(
        "[tls]\ncertificate = \"{0}/tls.crt\"\nkey = \"{0}/tls.key\"\n[[server]]\nurl = \"{1}\"\n",
        folder.display(),
        backend.url()
    );
    std::fs::write(folder.join("g.toml"), file).unwrap();
    let server = Guard::start(&["--config", folder.join("g.toml").to_str().unwrap()]);
    let (url, trusted) = (format!("https://{}", server.address), folder.join("tls.crt"));
    let guard = Guard::start_with(&["--upstream", &url], &[("SSL_CERT_FILE", trusted.to_str().unwrap())]);
    // Its metrics come the same way.
    guard.until(|s| s["servers"][0]["kv_tokens"].is_u64());
    assert_eq!(guard.chat("ok", 100, 10).status, 200);
    let mut events = super::stream(&guard.address, "/v1/chat/completions", &chat("stream:2:step", 100, 10));
    backend.step();
    assert!(events.next_event().contains("\"content\":\"0\""));
    backend.step();
    assert!(events.next_event().contains("\"content\":\"1\""));
    let other = folder.join("other.crt");
    std::fs::write(&other, CERTIFICATES[1].0).unwrap();
    let stranger = Guard::start_with(&["--upstream", &url], &[("SSL_CERT_FILE", other.to_str().unwrap())]);
    stranger.until(|s| s["servers"][0]["up"] == false);
    assert_eq!(stranger.chat("ok", 100, 10).status, 503);
}
