//! Encrypted ways, with certificates of `openssl`: to Postgres, and to the server, whose certificate is renewed while it runs.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use dualplane_server::store::{Dialect, Sql, Store, postgres::Postgres};

use crate::harness::Server;

fn openssl(at: &Path, script: &str) {
    let done = Command::new("sh").arg("-ec").arg(script).current_dir(at).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// An authority `NAME.crt`, and a certificate `leaf.crt` of it for `localhost`.
fn certificates(at: &Path, name: &str) -> Option<()> {
    if Command::new("openssl").arg("version").output().is_err() {
        eprintln!("skipped: no openssl here");
        return None;
    }
    openssl(at, &format!(
        "new='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'
        openssl req -x509 $new -days 2 -keyout {name}.key -out {name}.crt -subj /CN={name}
        openssl req $new -keyout leaf.key -out leaf.csr -subj /CN=localhost
        printf 'subjectAltName=DNS:localhost' >leaf.ext
        openssl x509 -req -days 2 -in leaf.csr -CA {name}.crt -CAkey {name}.key -CAcreateserial -extfile leaf.ext -out leaf.new
        mv leaf.new leaf.crt"
    ));
    Some(())
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn postgres_is_reached_as_sslmode_says() {
    let own = tempfile::tempdir().unwrap();
    if certificates(own.path(), "other").is_none() {
        return;
    }
    let port = free_port();
    let Some(database) = crate::postgres::Postgres::with(|at| {
        certificates(at, "ca").unwrap();
        // Whoever runs it must own the key.
        for file in ["leaf.crt", "leaf.key"] {
            let path = at.join(file);
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
            if std::fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0) {
                std::os::unix::fs::chown(&path, Some(65_534), Some(65_534)).unwrap();
            }
        }
        let file = |f: &str| at.join(f).display().to_string();
        vec![
            "ssl=on".into(),
            format!("ssl_cert_file={}", file("leaf.crt")),
            format!("ssl_key_file={}", file("leaf.key")),
            "listen_addresses=127.0.0.1".into(),
            format!("port={port}"),
        ]
    }) else {
        return;
    };
    let ca: PathBuf = database.folder().join("ca.crt");
    let other = own.path().join("other.crt");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let encrypted = |host: &str, query: String| {
        let url = format!("postgres://dualplane@{host}:{port}/postgres?{query}");
        runtime.block_on(async {
            let store = Postgres::connect(&url).await.map_err(|e| e.to_string())?;
            let sql = "SELECT CAST(ssl AS TEXT) FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
            let rows = store.ask(Sql::new(Dialect::Postgres, sql)).await.map_err(|e| e.to_string())?;
            Ok::<_, String>(rows[0][0].text().to_owned())
        })
    };
    let root = |p: &Path| format!("sslmode=verify-full&sslrootcert={}", p.display());
    assert_eq!(encrypted("localhost", root(&ca)).as_deref(), Ok("true"));
    assert_eq!(encrypted("127.0.0.1", "sslmode=require".into()).as_deref(), Ok("true"));
    assert_eq!(encrypted("127.0.0.1", String::new()).as_deref(), Ok("true"), "what can be encrypted is");
    assert_eq!(encrypted("127.0.0.1", "sslmode=disable".into()).as_deref(), Ok("false"));
    for (host, query, why) in [
        ("localhost", root(&other), "UnknownIssuer"),
        ("127.0.0.1", root(&ca), "not valid for"),
        ("localhost", "sslmode=verify-full".to_owned(), "UnknownIssuer"),
        ("localhost", root(&own.path().join("nothing")), "No such file"),
        ("localhost", "sslmode=sure".to_owned(), "verify-full"),
    ] {
        let refused = encrypted(host, query.clone()).unwrap_err();
        assert!(refused.contains(why), "{host} {query}: {refused}");
    }
}

#[test]
fn postgres_without_tls_is_refused_where_it_is_required() {
    let port = free_port();
    let with = |_: &Path| vec!["listen_addresses=127.0.0.1".into(), format!("port={port}")];
    let Some(_database) = crate::postgres::Postgres::with(with) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    for mode in ["require", "verify-full"] {
        let url = format!("postgres://dualplane@localhost:{port}/postgres?sslmode={mode}");
        let refused = runtime.block_on(Postgres::connect(&url)).unwrap_err().to_string();
        assert!(refused.contains("TLS"), "{refused}");
    }
}

#[test]
fn the_servers_certificate_is_renewed_while_it_runs() {
    let home = tempfile::tempdir().unwrap();
    if certificates(home.path(), "old").is_none() {
        return;
    }
    let file = |f: &str| home.path().join(f).display().to_string();
    let s = Server::start(
        &home.path().join("data"),
        &["--tls-cert", &file("leaf.crt"), "--tls-key", &file("leaf.key")],
    );
    let port = s.url.rsplit(':').next().unwrap().to_owned();
    // 200 by TLS of this authority alone; anything else is none.
    let answers = |authority: &str| {
        let pem = std::fs::read(home.path().join(format!("{authority}.crt"))).unwrap();
        let root = ureq::tls::Certificate::from_pem(&pem).unwrap();
        let tls =
            ureq::tls::TlsConfig::builder().root_certs(ureq::tls::RootCerts::new_with_certs(&[root])).build();
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .tls_config(tls)
            .timeout_global(Some(Duration::from_secs(10)))
            .build()
            .into();
        agent.get(format!("https://localhost:{port}/healthz")).call().is_ok_and(|a| a.status() == 200)
    };
    assert!(answers("old"));
    assert!(ureq::get(format!("http://localhost:{port}/healthz")).call().is_err(), "nothing in the clear");
    certificates(home.path(), "new").unwrap();
    let began = Instant::now();
    while !answers("new") {
        assert!(began.elapsed() < Duration::from_secs(30), "the new certificate is not taken");
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(!answers("old"));
}
