//! Deliveries to folders and to a real HTTP server, with failures and restarts in between.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use dualplane_node::clock::Moment;

use super::worker::{Next, Worker};
use super::*;
use crate::incident::{SCHEMA, State, Summary};

fn summary(id: &str, kind: &str, state: State) -> Summary {
    serde_json::from_value(serde_json::json!({
        "schema": SCHEMA, "id": id, "kind": kind, "state": state, "died_at": "2026-11-21T21:38:12.345Z", "node": "n 1",
        "namespace": "ns", "pod": "p", "container": "c", "first": true, "class": "host_oom_killed", "plane": "host", "bytes": 3,
    }))
    .unwrap()
}

fn put(dir: &Path, s: &Summary) {
    fs::write(dir.join(format!("{}.tar.zst", s.id)), format!("bundle of {}", s.id)).unwrap();
    fs::write(dir.join(format!("{}.json", s.id)), serde_json::to_vec(s).unwrap()).unwrap();
}

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("incidents")).unwrap();
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn worker(&self, sink: impl Sink + 'static) -> Worker {
        Worker::open(Box::new(sink), &self.path("delivered"), &self.path("incidents")).unwrap()
    }

    fn incident(&self, id: &str) {
        put(&self.path("incidents"), &summary(id, "death", State::Judged));
    }
}

/// Does what a table says, then takes everything.
#[derive(Clone, Default)]
struct Moody {
    answers: Arc<Mutex<Vec<Result<(), SinkError>>>>,
    got: Arc<Mutex<Vec<String>>>,
}

impl Sink for Moody {
    fn name(&self) -> &str {
        "moody"
    }
    fn deliver(&mut self, s: &Summary, bundle: &Path) -> Result<(), SinkError> {
        assert!(bundle.is_file());
        self.got.lock().unwrap().push(s.id.clone());
        self.answers.lock().unwrap().pop().unwrap_or(Ok(()))
    }
}

fn later() -> Result<(), SinkError> {
    Err(SinkError::Later("away".into()))
}

/// Steps until nothing is left, with a clock that is always late enough.
fn drain(w: &mut Worker) {
    for _ in 0..100 {
        if w.step(Moment(u64::MAX)) == Next::Idle {
            return;
        }
    }
    panic!("it never ends");
}

#[test]
fn all_arrive_once_over_failures_and_restarts() {
    let place = Place::new();
    for id in ["1-a", "2-b", "3-c"] {
        place.incident(id);
    }
    let sink = Moody::default();
    sink.answers.lock().unwrap().extend([later(), later()]);
    let mut w = place.worker(sink.clone());
    let Next::At(again) = w.step(Moment::now()) else { panic!("something waits") };
    assert!(again > Moment::now(), "it waits before it tries again");
    assert_eq!(w.step(Moment::now()), Next::At(again), "and does nothing until then");
    assert_eq!((w.counts.failed, w.counts.pending, w.trouble.as_deref()), (1, 3, Some("away")));
    drain(&mut w);
    // The first one failed, so the second was tried, which failed too; then the one that was tried the least.
    assert_eq!(*sink.got.lock().unwrap(), ["1-a", "2-b", "3-c", "1-a", "2-b"]);
    assert_eq!((w.counts.delivered, w.counts.failed, w.counts.pending), (3, 2, 0));
    assert_eq!(w.trouble, None);

    let mut again = place.worker(sink.clone());
    assert_eq!(again.step(Moment(u64::MAX)), Next::Idle);
    place.incident("4-d");
    drain(&mut again);
    assert_eq!(sink.got.lock().unwrap().len(), 6, "only the new one");
}

#[test]
fn what_is_refused_dropped_unjudged_or_no_death_does_not_stand_in_the_way() {
    let place = Place::new();
    let dir = place.path("incidents");
    place.incident("1-a");
    place.incident("2-b");
    put(&dir, &summary("3-end", "end", State::Judged));
    put(&dir, &summary("4-begun", "death", State::Begun));
    put(&dir, &summary("5-young", "death", State::Kept));
    put(&dir, &summary("6-old", "kill", State::Kept));
    let old = fs::File::options().write(true).open(dir.join("6-old.json")).unwrap();
    old.set_modified(SystemTime::now() - Duration::from_secs(3600)).unwrap();
    put(&dir, &summary("7-dropped", "death", State::Dropped));
    fs::write(dir.join("8-broken.json"), "{").unwrap();
    let sink = Moody::default();
    sink.answers.lock().unwrap().push(Err(SinkError::Refused("too large".into())));
    let mut w = place.worker(sink.clone());
    drain(&mut w);
    assert_eq!(*sink.got.lock().unwrap(), ["1-a", "2-b", "6-old"]);
    assert_eq!((w.counts.refused, w.counts.delivered, w.counts.lost), (1, 2, 1));
    assert_eq!(fs::read_to_string(place.path("delivered/moody/1-a")).unwrap(), "too large");

    // The end was a death after all, and the young one is judged.
    put(&dir, &summary("3-end", "death", State::Judged));
    put(&dir, &summary("5-young", "death", State::Judged));
    drain(&mut w);
    assert_eq!(sink.got.lock().unwrap()[3..], ["3-end", "5-young"]);
}

#[test]
fn markers_go_with_their_incidents() {
    let place = Place::new();
    place.incident("1-a");
    let mut w = place.worker(Moody::default());
    drain(&mut w);
    assert!(place.path("delivered/moody/1-a").exists());
    fs::remove_file(place.path("incidents/1-a.json")).unwrap();
    drain(&mut w);
    assert!(!place.path("delivered/moody/1-a").exists());
}

#[test]
fn a_folder_gets_bundle_and_summary_as_a_whole() {
    let place = Place::new();
    place.incident("1-a");
    let to = place.path("mount/bundles");
    let mut w = place.worker(Directory::new(&to));
    w.step(Moment(u64::MAX));
    assert_eq!(w.counts.failed, 1, "the mount is missing");
    assert!(w.trouble.as_ref().unwrap().contains("mount/bundles"), "{:?}", w.trouble);
    fs::create_dir(place.path("mount")).unwrap();
    // What a crash left of an earlier attempt.
    fs::create_dir(&to).unwrap();
    fs::write(to.join("1-a.tar.zst.new"), vec![b'x'; 1000]).unwrap();
    drain(&mut w);
    let mut names: Vec<_> =
        fs::read_dir(&to).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["1-a.json", "1-a.tar.zst"]);
    assert_eq!(fs::read_to_string(to.join("1-a.tar.zst")).unwrap(), "bundle of 1-a");
    assert_eq!(serde_json::from_slice::<Summary>(&fs::read(to.join("1-a.json")).unwrap()).unwrap().id, "1-a");
}

/// What a request brought.
#[derive(Debug, Clone)]
struct Got {
    line: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

/// A server that answers with each status in turn, then 201.
fn web(statuses: &[u16]) -> (String, Arc<Mutex<Vec<Got>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let got = Arc::new(Mutex::new(Vec::new()));
    let (log, mut statuses) = (Arc::clone(&got), VecDeque::from(statuses.to_vec()));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            while let Some(one) = read_request(&stream) {
                log.lock().unwrap().push(one);
                let status = statuses.pop_front().unwrap_or(201);
                let mut out = &stream;
                let _ = write!(
                    out,
                    "HTTP/1.1 {status} X\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 5\r\n\r\nwhy\u{1b}\n"
                );
            }
        }
    });
    (url, got)
}

fn read_request(stream: &TcpStream) -> Option<Got> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
    let mut headers = BTreeMap::new();
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header).ok()? <= 2 {
            break;
        }
        let (k, v) = header.split_once(':')?;
        headers.insert(k.to_ascii_lowercase(), v.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|l| l.parse().ok()).expect("stores want a length");
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Got { line: line.trim().to_owned(), headers, body })
}

#[test]
fn a_store_gets_two_objects_with_token_and_length() {
    let place = Place::new();
    place.incident("1-a");
    fs::write(place.path("token"), "s3cret\n").unwrap();
    let (url, got) = web(&[503]);
    let config = WebConfig {
        url: format!("{url}/bucket/{{node}}?sv=sig"),
        token: Some(place.path("token")),
        headers: vec![("x-ms-blob-type".into(), "BlockBlob".into())],
        ..WebConfig::default()
    };
    let mut w = place.worker(Web::new(config).unwrap());
    drain(&mut w);
    assert_eq!((w.counts.failed, w.counts.delivered), (1, 1));
    let got = got.lock().unwrap().clone();
    let lines: Vec<&str> = got.iter().map(|g| g.line.as_str()).collect();
    let bundle = "PUT /bucket/n%201/1-a.tar.zst?sv=sig HTTP/1.1";
    assert_eq!(lines, [bundle, bundle, "PUT /bucket/n%201/1-a.json?sv=sig HTTP/1.1"]);
    let h = |i: usize, k: &str| got[i].headers.get(k).map(String::as_str);
    assert_eq!((h(1, "authorization"), h(1, "x-ms-blob-type")), (Some("Bearer s3cret"), Some("BlockBlob")));
    assert_eq!((h(1, "idempotency-key"), h(2, "idempotency-key")), (Some("1-a.tar.zst"), Some("1-a.json")));
    assert_eq!(got[1].body, b"bundle of 1-a");
    assert_eq!(serde_json::from_slice::<Summary>(&got[2].body).unwrap().id, "1-a");
}

#[test]
fn a_server_says_what_is_wrong_without_a_secret() {
    let place = Place::new();
    let s = summary("1-a", "death", State::Judged);
    place.incident("1-a");
    let bundle = place.path("incidents/1-a.tar.zst");
    let (url, got) = web(&[413, 401, 302, 409]);
    let config = WebConfig {
        method: Method::Post,
        url: format!("{}/v1/bundles?key=hidden", url.replace("http://", "http://user:pass@")),
        ..WebConfig::default()
    };
    let mut sink = Web::new(config).unwrap();
    let mut answers = Vec::new();
    for _ in 0..4 {
        answers.push(sink.deliver(&s, &bundle));
    }
    assert!(matches!(&answers[0], Err(SinkError::Refused(why)) if why.contains("413")), "{answers:?}");
    assert!(matches!(&answers[1], Err(SinkError::Later(why)) if why.contains("token")), "{answers:?}");
    assert!(matches!(&answers[2], Err(SinkError::Later(why)) if why.contains("final URL")), "{answers:?}");
    assert_eq!(answers[3], Ok(()), "it is there already");
    let all = format!("{answers:?} {sink:?} {}", sink.name());
    assert!(!all.contains("hidden") && !all.contains("pass@") && !all.contains('\u{1b}'), "{all}");
    assert!(got.lock().unwrap().iter().all(|g| g.line.starts_with("POST /v1/bundles?key=hidden ")));
    assert_eq!(got.lock().unwrap().len(), 5, "the redirect was not followed");
}

#[test]
fn a_destination_that_cannot_be_used_is_said_at_once() {
    let web = |url: &str, token: bool| {
        Web::new(WebConfig { url: url.into(), token: token.then(|| "/x".into()), ..WebConfig::default() })
    };
    assert!(matches!(web("ftp://x/", false), Err(WebError::Url(_))));
    assert!(matches!(web("no url", false), Err(WebError::Url(_))));
    assert!(
        matches!(web("http://store.example/b?sig=1", true), Err(WebError::Clear(w)) if w == "http://store.example/b")
    );
    assert!(web("http://store.example/b", false).is_ok() && web("http://[::1]:9/b", true).is_ok());
    assert!(web("https://store.example/{namespace}/{file}", true).is_ok());
    let same = |a: &str, b: &str| web(a, false).unwrap().name() == web(b, false).unwrap().name();
    assert!(same("https://x/b?sig=1", "https://x/b?sig=2") && !same("https://x/b", "https://x/c"));
    let ca =
        WebConfig { url: "https://x/".into(), ca: Some("/nonexistent.pem".into()), ..WebConfig::default() };
    assert!(Web::new(ca).unwrap_err().to_string().contains("/nonexistent.pem"));
}

/// Threads: one sink that hangs does not hold up the other.
#[test]
fn each_sink_has_a_thread_of_its_own() {
    struct Hangs(std::sync::mpsc::Receiver<()>);
    impl Sink for Hangs {
        fn name(&self) -> &str {
            "hangs"
        }
        fn deliver(&mut self, _: &Summary, _: &Path) -> Result<(), SinkError> {
            let _ = self.0.recv();
            Ok(())
        }
    }
    struct Tells(std::sync::mpsc::Sender<String>);
    impl Sink for Tells {
        fn name(&self) -> &str {
            "tells"
        }
        fn deliver(&mut self, s: &Summary, _: &Path) -> Result<(), SinkError> {
            self.0.send(s.id.clone()).map_err(|e| SinkError::Later(e.to_string()))
        }
    }
    let place = Place::new();
    place.incident("1-a");
    let (go, hang) = std::sync::mpsc::channel();
    let (tell, told) = std::sync::mpsc::channel();
    let sinks: Vec<Box<dyn Sink>> = vec![Box::new(Hangs(hang)), Box::new(Tells(tell))];
    let d = Deliveries::start(&place.path("delivered"), &place.path("incidents"), sinks, &Arc::default())
        .unwrap();
    let wait = Duration::from_secs(10);
    assert_eq!(told.recv_timeout(wait).unwrap(), "1-a");
    place.incident("2-b");
    d.wake();
    assert_eq!(told.recv_timeout(wait).unwrap(), "2-b");
    assert_eq!(d.counts()[0].delivered, 0);
    assert_eq!(d.counts()[1].name, "tells");
    drop(go);
}

#[test]
fn a_sink_that_cannot_be_reached_is_told_before_the_first_death() {
    let place = Place::new();
    let mut w = place.worker(Directory::new(&place.path("mount/that/is/missing")));
    assert_eq!(w.step(Moment::now()), Next::Idle);
    assert!(w.trouble.as_deref().is_some_and(|t| t.contains("mount/that/is")), "{:?}", w.trouble);
    let mut w = place.worker(Directory::new(&place.path("made-at-the-first-delivery")));
    w.step(Moment::now());
    assert_eq!(w.trouble, None);
    let web = |url: String, token: Option<PathBuf>| {
        let config = WebConfig { url, token, ..WebConfig::default() };
        let mut w = place.worker(Web::new(config).unwrap());
        w.step(Moment::now());
        w.trouble
    };
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let trouble = web(format!("http://{unused}/b/{{file}}"), None).unwrap();
    assert!(trouble.contains(&unused.to_string()), "{trouble}");
    let trouble = web(format!("http://{unused}/b"), Some(place.path("no-token"))).unwrap();
    assert!(trouble.starts_with("token file ") && trouble.contains("no-token"), "{trouble}");
}

#[test]
fn markers_that_somebody_removed_are_written_again() {
    let place = Place::new();
    place.incident("1-a");
    let sink = Moody::default();
    let mut w = place.worker(sink.clone());
    drain(&mut w);
    fs::remove_dir_all(place.path("delivered")).unwrap();
    place.incident("2-b");
    drain(&mut w);
    assert_eq!(w.trouble, None);
    drain(&mut place.worker(sink.clone()));
    assert_eq!(*sink.got.lock().unwrap(), ["1-a", "2-b"], "none is delivered twice");
}
