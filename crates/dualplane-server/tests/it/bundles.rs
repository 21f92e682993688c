//! Shelves of bundles: a folder and a bucket are held to one contract, the bucket by a small store of our own that can fail, and by a
//! real one where `DUALPLANE_S3` names it (`http://HOST:PORT/BUCKET`, keys in the environment; `e2e/server/run bundles`).

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use dualplane_server::auth::sha256;
use dualplane_server::ingest::shelf::{Folder, Place, S3, Shelf};
use rusty_s3::Credentials;

use crate::harness::{Server, program};

/// Objects by their paths; answers with this status instead, where it is one.
#[derive(Clone, Default)]
struct Store {
    objects: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    fails: Arc<AtomicU16>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Store {
    /// Its address.
    fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let it = self.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let it = it.clone();
                std::thread::spawn(move || it.answer(&mut stream.unwrap()));
            }
        });
        address
    }

    fn answer(&self, stream: &mut std::net::TcpStream) {
        let mut lines = BufReader::new(stream.try_clone().unwrap());
        let (mut head, mut length) = (String::new(), None);
        loop {
            let mut line = String::new();
            if lines.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
                break;
            }
            let lower = line.to_lowercase();
            if let Some(n) = lower.strip_prefix("content-length:") {
                length = Some(n.trim().parse::<usize>().unwrap());
            }
            // The real ones refuse it.
            assert!(!lower.starts_with("transfer-encoding"), "{line}");
            head.push_str(&line);
        }
        let mut body = vec![0; length.unwrap_or(0)];
        lines.read_exact(&mut body).unwrap();
        let mut words = head.split(' ');
        let (method, target) = (words.next().unwrap(), words.next().unwrap());
        let (path, query) = target.split_once('?').unwrap();
        assert!(
            query.contains("X-Amz-Signature=") && query.contains("X-Amz-Algorithm=AWS4-HMAC-SHA256"),
            "{query}"
        );
        self.asked.lock().unwrap().push(format!("{method} {path}"));
        let fails = self.fails.load(Ordering::SeqCst);
        let mut objects = self.objects.lock().unwrap();
        let (status, said) = match (fails, method) {
            (0, "PUT") => {
                objects.insert(path.to_owned(), body);
                (200, Vec::new())
            }
            (0, "GET") => {
                objects.get(path).map_or((404, b"<Code>NoSuchKey</Code>".to_vec()), |b| (200, b.clone()))
            }
            (0, "DELETE") => {
                objects.remove(path);
                (204, Vec::new())
            }
            (0, other) => panic!("{other}"),
            (status, _) => (status, b"<Error><Code>SlowDown</Code></Error>".to_vec()),
        };
        let _ = write!(
            stream,
            "HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            said.len()
        );
        let _ = stream.write_all(&said);
    }
}

fn keys() -> Credentials {
    Credentials::from_env().unwrap_or_else(|| Credentials::new("key", "secret"))
}

fn bucket(endpoint: &str, url: &str, cache: &Path) -> S3 {
    let region = "us-east-1".to_owned();
    let place =
        Place { url: url.to_owned(), endpoint: Some(endpoint.to_owned()), region, ca: None, plain: true };
    S3::open(&place, Some(keys()), cache.to_owned()).unwrap()
}

/// What every shelf must do.
fn does_what_a_shelf_must(shelf: &dyn Shelf, home: &Path) {
    let put = |id: &str, bytes: &[u8]| {
        let file = home.join("upload");
        std::fs::write(&file, bytes).unwrap();
        shelf.keep(&file, id).unwrap();
        assert!(!file.exists(), "it was taken over");
        sha256(bytes)
    };
    let read = |id: &str, sum: &str| shelf.here(id, sum).map(|p| std::fs::read(p).unwrap());
    let none = shelf.here("a", &sha256(b"x")).unwrap_err();
    assert_eq!(none.kind(), ErrorKind::NotFound, "{none}");
    let large = vec![7_u8; 3 << 20];
    // One name may be the beginning of another.
    let (a, b, c) = (put("a", b"first"), put("a.2", &large), put("z~0123456789ab", b""));
    assert_eq!(read("a", &a).unwrap(), b"first");
    assert!(read("a.2", &b).unwrap() == large);
    assert_eq!(read("z~0123456789ab", &c).unwrap(), b"");
    assert_eq!(read("a", &a).unwrap(), b"first", "and again");
    // A second upload of the name replaces it: the row of the database says which one counts.
    let second = put("a", b"second");
    assert_eq!(read("a", &second).unwrap(), b"second");
    shelf.remove("a").unwrap();
    shelf.remove("a").unwrap();
    assert!(shelf.here("a", &sha256(b"never")).is_err());
    assert!(read("a.2", &b).unwrap() == large, "only what was named is gone");
    shelf.remove("a.2").unwrap();
    shelf.remove("z~0123456789ab").unwrap();
}

#[test]
fn a_folder_and_a_bucket_do_what_a_shelf_must() {
    let home = tempfile::tempdir().unwrap();
    does_what_a_shelf_must(&Folder::open(home.path().join("whole")).unwrap(), home.path());
    let store = Store::default();
    let s3 = bucket(&store.start(), "s3://fleet/some/where", &home.path().join("cache"));
    s3.probe().unwrap();
    does_what_a_shelf_must(&s3, home.path());
    let left: Vec<String> = store.objects.lock().unwrap().keys().cloned().collect();
    assert_eq!(left, ["/fleet/some/where/.dualplane"]);
}

#[test]
fn a_real_store_does_too() {
    let Ok(at) = std::env::var("DUALPLANE_S3") else {
        eprintln!("skipped: DUALPLANE_S3 names no store; e2e/server/run bundles starts one");
        return;
    };
    let (endpoint, name) = at.rsplit_once('/').unwrap();
    let home = tempfile::tempdir().unwrap();
    let s3 = bucket(endpoint, &format!("s3://{name}/fleet"), &home.path().join("cache"));
    s3.probe().unwrap();
    does_what_a_shelf_must(&s3, home.path());
    // The signature is looked at.
    let region = "us-east-1".to_owned();
    let place = Place {
        url: format!("s3://{name}/fleet"),
        endpoint: Some(endpoint.to_owned()),
        region,
        ca: None,
        plain: true,
    };
    let wrong =
        S3::open(&place, Some(Credentials::new(keys().key(), "another")), home.path().join("other")).unwrap();
    let e = wrong.probe().unwrap_err().to_string();
    assert!(e.contains("403") && e.contains("SignatureDoesNotMatch"), "{e}");
}

#[test]
fn what_a_bucket_changed_on_the_way_is_not_read_and_its_address_is_told_to_nobody() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::default();
    let s3 = bucket(&store.start(), "s3://fleet", &home.path().join("cache"));
    let file = home.path().join("upload");
    std::fs::write(&file, b"evidence").unwrap();
    s3.keep(&file, "a").unwrap();
    store.objects.lock().unwrap().insert("/fleet/a.bundle".to_owned(), b"another".to_vec());
    let e = s3.here("a", &sha256(b"evidence")).unwrap_err().to_string();
    assert!(e.contains("SHA-256"), "{e}");
    store.fails.store(503, Ordering::SeqCst);
    std::fs::write(&file, b"evidence").unwrap();
    let e = s3.keep(&file, "b").unwrap_err().to_string();
    assert!(e.contains("503") && e.contains("SlowDown") && !e.contains("Signature"), "{e}");
    assert!(file.exists(), "what is not kept is still there");
}

/// Two programs with folders of their own on one bucket and one database; the bucket is away for a while.
#[test]
fn bundles_in_a_bucket_are_those_of_all_replicas_and_wait_while_it_is_away() {
    let Some(database) = crate::postgres::Postgres::start() else { return };
    let home = tempfile::tempdir().unwrap();
    let store = Store::default();
    let endpoint = store.start();
    let start = |name: &str| {
        let mut c = program();
        c.args(["serve", "--listen", "127.0.0.1:0", "--database-url", &database.url("bucket")]);
        c.args(["--bundles", "s3://fleet", "--bundles-endpoint", &endpoint, "--data"])
            .arg(home.path().join(name));
        c.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "secret");
        Server::of(c)
    };
    let (one, two) = (start("one"), start("two"));
    let sum = crate::api::digest(crate::rights::LOG);
    let send = |s: &Server, id: &str| {
        s.ask("PUT", &format!("/v1/incidents/{id}/bundle"), &[("repr-digest", &sum)], crate::rights::LOG)
    };
    assert_eq!(send(&one, "a").status, 201);
    let there = two.get("/v1/incidents/a/bundle");
    assert!(there.status == 200 && there.body == crate::rights::LOG, "{}", there.text());
    assert!(!home.path().join("one/bundles").exists(), "nothing lies where only one of them sees it");
    // Away: nothing is acknowledged, and the page says what is missing.
    assert_eq!(send(&one, "b").status, 201);
    store.fails.store(503, Ordering::SeqCst);
    let away = send(&one, "c");
    assert!(away.status == 503 && !away.header("retry-after").is_empty(), "{}", away.text());
    let page = two.get("/incidents/b");
    assert!(page.status == 200 && page.text().contains("cannot be had now"), "{}", page.text());
    assert!(!page.text().contains("No bundle was sent"), "there is one, only not now");
    assert_eq!(two.get("/v1/incidents/b/bundle").status, 503);
    // What was fetched before is here.
    assert_eq!(two.get("/v1/incidents/a/bundle").status, 200);
    store.fails.store(0, Ordering::SeqCst);
    assert_eq!(send(&one, "c").status, 201, "the same again, and it is kept");
    for id in ["b", "c"] {
        assert_eq!(two.get(&format!("/v1/incidents/{id}/bundle")).body, crate::rights::LOG);
    }
}
