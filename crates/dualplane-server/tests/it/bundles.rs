//! Shelves of bundles: a folder and a bucket are held to one contract, the bucket by a small store of our own that can fail, and by a
//! real one where `DUALPLANE_BUCKET` names it (`e2e/server/run bundles`).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use dualplane_server::auth::sha256;
use dualplane_server::ingest::shelf::{Bucket, Folder, Place, Shelf};

use crate::harness::{Server, program};

/// Parts of uploads, by path and number.
type Parts = BTreeMap<(String, u32), Vec<u8>>;

/// Objects by their paths; answers with this status instead, where it is one.
#[derive(Clone)]
pub(crate) struct Store {
    pub(crate) objects: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    parts: Arc<Mutex<Parts>>,
    fails: Arc<AtomicU16>,
    /// What stands in the head of each request, in small letters.
    known_by: &'static str,
    /// Answers of those who give keys and tokens, by their paths, with what must stand in the head of whoever asks.
    gives: &'static [(&'static str, &'static str, &'static str)],
}

impl Default for Store {
    fn default() -> Self {
        Self::that("authorization: aws4-hmac-sha256 credential=key/", &[])
    }
}

/// A request of a store's client.
struct Request {
    method: String,
    path: String,
    query: BTreeMap<String, String>,
    /// In small letters.
    head: String,
    body: Vec<u8>,
}

impl Request {
    fn read(lines: &mut impl BufRead) -> Option<Self> {
        let (mut head, mut length) = (String::new(), None);
        loop {
            let mut line = String::new();
            if lines.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if line == "\r\n" {
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
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let path = path.replace("%2E", ".").replace("%2F", "/");
        let query = query.split('&').filter(|q| !q.is_empty()).map(|q| q.split_once('=').unwrap_or((q, "")));
        let query = query.map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
        Some(Self { method: method.to_owned(), path, query, head: head.to_lowercase(), body })
    }
}

impl Store {
    pub(crate) fn that(
        known_by: &'static str,
        gives: &'static [(&'static str, &'static str, &'static str)],
    ) -> Self {
        let (objects, parts, fails) = Default::default();
        Self { objects, parts, fails, known_by, gives }
    }

    /// Its address.
    pub(crate) fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let it = self.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let it = it.clone();
                std::thread::spawn(move || {
                    let mut stream = stream.unwrap();
                    let mut lines = BufReader::new(stream.try_clone().unwrap());
                    while let Some(request) = Request::read(&mut lines) {
                        let (status, said) = match it.fails.load(Ordering::SeqCst) {
                            0 => it.answer(&request),
                            status => (status, b"<Error><Code>SlowDown</Code></Error>".to_vec()),
                        };
                        let length = said.len();
                        let head = format!(
                            "HTTP/1.1 {status} x\r\ncontent-length: {length}\r\netag: \"e\"\r\nlast-modified: Sat, 28 Nov 2026 00:00:00 GMT\r\n\r\n"
                        );
                        if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&said)).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        address
    }

    fn answer(&self, r: &Request) -> (u16, Vec<u8>) {
        if let Some((_, asks, said)) = self.gives.iter().find(|(path, ..)| *path == r.path) {
            assert!(r.head.contains(asks), "{}", r.head);
            return (200, said.as_bytes().to_vec());
        }
        assert!(r.head.contains(self.known_by), "{}", r.head);
        let (mut objects, mut parts) = (self.objects.lock().unwrap(), self.parts.lock().unwrap());
        let part = r.query.get("partNumber").map(|n| (r.path.clone(), n.parse::<u32>().unwrap()));
        match (r.method.as_str(), part) {
            ("PUT", Some(part)) => {
                parts.insert(part, r.body.clone());
                (200, Vec::new())
            }
            ("PUT", None) => {
                objects.insert(r.path.clone(), r.body.clone());
                (200, Vec::new())
            }
            ("POST", None) if r.query.contains_key("uploads") => (
                200,
                b"<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>"
                    .to_vec(),
            ),
            ("POST", None) if r.query.contains_key("uploadId") => {
                let of = parts.iter().filter(|((path, _), _)| *path == r.path);
                objects.insert(r.path.clone(), of.flat_map(|(_, bytes)| bytes.clone()).collect());
                parts.retain(|(path, _), _| *path != r.path);
                (
                    200,
                    b"<CompleteMultipartUploadResult><ETag>e</ETag></CompleteMultipartUploadResult>".to_vec(),
                )
            }
            ("POST", None) if r.query.contains_key("delete") => {
                let said = String::from_utf8(r.body.clone()).unwrap();
                let mut gone = String::from("<DeleteResult>");
                for key in said.split("<Key>").skip(1) {
                    let key = key.split("</Key>").next().unwrap();
                    objects.remove(&format!("{}/{key}", r.path));
                    write!(gone, "<Deleted><Key>{key}</Key></Deleted>").unwrap();
                }
                (200, (gone + "</DeleteResult>").into_bytes())
            }
            ("DELETE", None) if r.query.contains_key("uploadId") => {
                parts.retain(|(path, _), _| *path != r.path);
                (204, Vec::new())
            }
            ("GET", None) => {
                let got = objects.get(&r.path).cloned();
                got.map_or_else(|| (404, b"<Error><Code>NoSuchKey</Code></Error>".to_vec()), |b| (200, b))
            }
            other => panic!("{other:?} {}", r.path),
        }
    }
}

fn environment(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

fn place(endpoint: &str, url: &str) -> Place {
    Place { url: url.to_owned(), endpoint: Some(endpoint.to_owned()), region: None, ca: None, plain: true }
}

fn bucket(endpoint: &str, url: &str, cache: &Path) -> Bucket {
    let keys = environment(&[("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", "secret")]);
    Bucket::open(&place(endpoint, url), &keys, cache.to_owned()).unwrap()
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// What every shelf must do.
async fn does_what_a_shelf_must(shelf: &dyn Shelf, home: &Path) {
    let put = async |id: &str, bytes: &[u8]| {
        let file = home.join("upload");
        std::fs::write(&file, bytes).unwrap();
        shelf.keep(&file, id).await.unwrap();
        assert!(!file.exists(), "it was taken over");
        sha256(bytes)
    };
    let read = async |id: &str, sum: &str| shelf.here(id, sum).await.map(|p| std::fs::read(p).unwrap());
    let none = shelf.here("a", &sha256(b"x")).await.unwrap_err();
    assert_eq!(none.kind(), ErrorKind::NotFound, "{none}");
    // One name may be the beginning of another.
    let (a, c) = (put("a", b"first").await, put("z~0123456789ab", b"").await);
    assert_eq!(read("a", &a).await.unwrap(), b"first");
    assert_eq!(read("z~0123456789ab", &c).await.unwrap(), b"");
    assert_eq!(read("a", &a).await.unwrap(), b"first", "and again");
    // Around the length of a part, and of several.
    for length in [3 << 20, (8 << 20) - 1, 8 << 20, (8 << 20) + 1, 16 << 20, (20 << 20) + 7] {
        let large: Vec<u8> = (0..length).map(|n: u32| (n ^ (n >> 11)) as u8).collect();
        let sum = put("a.2", &large).await;
        assert!(read("a.2", &sum).await.unwrap() == large, "{length}");
    }
    // A second upload of the name replaces it: the row of the database says which one counts.
    let second = put("a", b"second").await;
    assert_eq!(read("a", &second).await.unwrap(), b"second");
    shelf.remove("a").await.unwrap();
    shelf.remove("a").await.unwrap();
    assert!(shelf.here("a", &sha256(b"never")).await.is_err());
    let kept = put("a.2", b"not this one").await;
    shelf.remove("a").await.unwrap();
    assert_eq!(read("a.2", &kept).await.unwrap(), b"not this one", "only what was named is gone");
    shelf.remove("a.2").await.unwrap();
    shelf.remove("z~0123456789ab").await.unwrap();
}

#[test]
fn a_folder_and_a_bucket_do_what_a_shelf_must() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::default();
    wait(async {
        does_what_a_shelf_must(&Folder::open(home.path().join("whole")).unwrap(), home.path()).await;
        let s3 = bucket(&store.start(), "s3://fleet/some/where", &home.path().join("cache"));
        s3.probe().await.unwrap();
        does_what_a_shelf_must(&s3, home.path()).await;
    });
    let left: Vec<String> = store.objects.lock().unwrap().keys().cloned().collect();
    assert_eq!(left, ["/fleet/some/where/.dualplane"]);
    assert!(store.parts.lock().unwrap().is_empty());
    // As the versions before had it: what they kept is found.
    let old = "/fleet/some/where/z~0123456789ab.bundle";
    store.objects.lock().unwrap().insert(old.to_owned(), b"old".to_vec());
    let s3 = bucket(&store.start(), "s3://fleet/some/where", &home.path().join("cache"));
    assert!(wait(s3.here("z~0123456789ab", &sha256(b"old"))).is_ok());
}

/// `DUALPLANE_BUCKET` and `DUALPLANE_BUCKET_ENDPOINT` name it, keys stand in the environment, and in variables with `WRONG_` before
/// their names those that it must refuse, with the word of `DUALPLANE_BUCKET_REFUSES`.
#[test]
fn a_real_store_does_too() {
    let Ok(url) = std::env::var("DUALPLANE_BUCKET") else {
        eprintln!("skipped: DUALPLANE_BUCKET names no store; e2e/server/run bundles starts some");
        return;
    };
    let place = place(&std::env::var("DUALPLANE_BUCKET_ENDPOINT").unwrap(), &url);
    let home = tempfile::tempdir().unwrap();
    let env: Vec<(String, String)> = std::env::vars().collect();
    wait(async {
        let real = Bucket::open(&place, &env, home.path().join("cache")).unwrap();
        real.probe().await.unwrap();
        does_what_a_shelf_must(&real, home.path()).await;
        // The signature is looked at.
        let wrong: Vec<_> =
            env.iter().filter_map(|(k, v)| Some((k.strip_prefix("WRONG_")?.to_owned(), v.clone()))).collect();
        if wrong.is_empty() {
            return;
        }
        let all: Vec<_> =
            env.into_iter().filter(|(k, _)| wrong.iter().all(|(w, _)| w != k)).chain(wrong.clone()).collect();
        let wrong = Bucket::open(&place, &all, home.path().join("other")).unwrap();
        let e = wrong.probe().await.unwrap_err().to_string();
        let says = std::env::var("DUALPLANE_BUCKET_REFUSES").unwrap();
        assert!(e.contains("403") && e.contains(&says), "{e}");
    });
}

#[test]
fn what_a_bucket_changed_on_the_way_is_not_read_and_its_address_is_told_to_nobody() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::default();
    let address = store.start();
    let s3 = bucket(&address, "s3://fleet", &home.path().join("cache"));
    let file = home.path().join("upload");
    std::fs::write(&file, b"evidence").unwrap();
    wait(s3.keep(&file, "a")).unwrap();
    store.objects.lock().unwrap().insert("/fleet/a.bundle".to_owned(), b"another".to_vec());
    let e = wait(s3.here("a", &sha256(b"evidence"))).unwrap_err().to_string();
    assert!(e.contains("SHA-256"), "{e}");
    // A status that is not tried again, one that is, and for small and large.
    for (status, length) in [(403, 10), (503, 10), (403, 9 << 20)] {
        store.fails.store(status, Ordering::SeqCst);
        std::fs::write(&file, vec![1_u8; length]).unwrap();
        let e = wait(s3.keep(&file, "b")).unwrap_err().to_string();
        assert!(e.contains(&status.to_string()) && e.contains("SlowDown"), "{e}");
        assert!(!e.contains("://") && !e.contains("Signature"), "{e}");
        assert!(file.exists(), "what is not kept is still there");
    }
    let nobody = bucket("http://127.0.0.1:1", "s3://fleet", &home.path().join("cache"));
    let e = wait(nobody.probe()).unwrap_err().to_string();
    assert!(e.contains("refused") && !e.contains("://"), "{e}");
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
