//! The API as its callers see it.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use base64::Engine as _;
use dualplane_server::api;
use serde_json::Value;

use crate::harness::{Server, program, upload};

pub(crate) fn digest(bytes: &[u8]) -> String {
    let sum = ring::digest::digest(&ring::digest::SHA256, bytes);
    format!("sha-256=:{}:", base64::engine::general_purpose::STANDARD.encode(sum))
}

#[test]
fn an_incident_is_kept_once_listed_and_read() {
    let home = tempfile::tempdir().unwrap();
    let s = Server::start(home.path(), &[]);
    assert_eq!(s.get("/readyz").text(), "ready\n");
    let first = s.put("a", "serving");
    assert_eq!((first.status, first.json()["state"].as_str()), (201, Some("kept")));
    assert_eq!(s.put("a", "serving").status, 200);
    let other = s.put("a", "elsewhere");
    assert_eq!((other.status, other.header("content-type")), (409, "application/problem+json"));
    for n in 0..7 {
        assert_eq!(s.put(&format!("b{n}"), "serving").status, 201);
    }
    let list = s.get("/v1/incidents");
    let items = list.json()["items"].as_array().unwrap().clone();
    assert_eq!((items.len(), items[0]["occurrences"].as_u64()), (1, Some(8)), "one cause, eight deaths");
    let again = s.ask("GET", "/v1/incidents", &[("if-none-match", list.header("etag"))], b"");
    assert_eq!((again.status, again.body.len()), (304, 0));
    assert_eq!(s.ids().len(), 8);
    let page = s.get("/v1/incidents?each=true&limit=3").json();
    assert_eq!(page["items"].as_array().unwrap().len(), 3);
    assert!(page["next"].is_string());
    assert_eq!(s.get("/v1/incidents/a").json()["owner"], "vllm");
    assert_eq!(s.get("/v1/incidents/a/report").json()["verdict"]["summary"], "of a");
    assert_eq!(s.get("/v1/fleet").json()["incidents"], 8);
    assert_eq!(s.get("/v1/fleet?namespace=nobody").json()["incidents"], 0);
    assert_eq!(s.get("/v1/incidents/none").status, 404);
    assert_eq!(s.get("/v1/incidents/a/bundle").status, 404);
}

#[test]
fn what_is_wrong_is_said_and_nothing_is_kept() {
    let home = tempfile::tempdir().unwrap();
    let s = Server::start(home.path(), &[]);
    let large = vec![b' '; 9 << 20];
    for (method, path, body, status, word) in [
        ("PUT", "/v1/incidents/a", &b"{"[..], 400, "no upload"),
        ("PUT", "/v1/incidents/a", b"{\"report\": {}}", 422, "triage"),
        ("PUT", "/v1/incidents/a", b"{\"report\": {}, \"were\": {}}", 400, "unknown field"),
        ("PUT", "/v1/incidents/a", b"{\"schema\": \"dualplane.verdict/v9\", \"verdict\": {}}", 422, "update"),
        ("PUT", "/v1/incidents/a", &large, 413, "8 MiB"),
        ("PUT", "/v1/incidents/..%2Fa", b"{}", 400, "letters"),
        ("PUT", "/v1/incidents/a%00", b"{}", 400, "letters"),
        ("GET", "/v1/incidents?clas=x", b"", 400, "no filter is called"),
        ("GET", "/v1/incidents?limit=0", b"", 400, "1 to 500"),
        ("GET", "/v1/incidents?after=x", b"", 400, "next"),
        ("GET", "/v1/fleet?model=x", b"", 400, "narrowed by"),
        ("GET", "/v1/nothing", b"", 404, "openapi"),
        ("DELETE", "/v1/incidents/a", b"", 405, "openapi"),
        ("PUT", "/v1/incidents/a/bundle", b"", 400, "empty"),
        ("PUT", "/v1/agent/a.txt", b"x", 400, "tar.zst"),
    ] {
        let answer = s.ask(method, path, &[], body);
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
        assert_eq!(answer.header("content-type"), "application/problem+json", "{path}");
        let detail = answer.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(word), "{path}: {detail}");
    }
    assert!(s.ids().is_empty());
}

#[test]
fn a_bundle_comes_in_pieces_and_is_judged_here() {
    let home = tempfile::tempdir().unwrap();
    let s = Server::start(home.path(), &["--max-bundle-mib", "1"]);
    let path = "/v1/incidents/death-1/bundle?cluster=k&namespace=serving";
    let incident =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/incidents/real-k8s-pid1-oom");
    let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    for file in ["kernel.log", "pod.json", "previous.log"] {
        tar.append_path_with_name(incident.join(file), file).unwrap();
    }
    let bytes = tar.into_inner().unwrap().finish().unwrap();
    let (sum, whole) = (digest(&bytes), bytes.len());
    let send = |from: usize, to: usize, sum: &str| {
        let range = format!("bytes {from}-{}/{whole}", to - 1);
        s.ask("PUT", path, &[("content-range", &range), ("repr-digest", sum)], &bytes[from..to])
    };
    assert_eq!(s.ask("HEAD", path, &[], b"").header("upload-offset"), "0");
    let first = send(0, 100, &sum);
    assert_eq!((first.status, first.header("upload-offset")), (202, "100"), "{}", first.text());
    let gap = send(200, 300, &sum);
    assert_eq!((gap.status, gap.header("upload-offset")), (409, "100"));
    assert_eq!(s.ask("HEAD", path, &[], b"").header("upload-offset"), "100");
    let wrong = send(100, whole, &digest(b"other"));
    assert_eq!(wrong.status, 422, "{}", wrong.text());
    assert_eq!(s.ask("HEAD", path, &[], b"").header("upload-offset"), "0", "what was wrong is gone");
    let done = send(0, whole, &sum);
    assert_eq!((done.status, done.header("upload-complete")), (201, "?1"), "{}", done.text());
    assert_eq!(send(0, whole, &sum).status, 200, "the same again");
    let i = s.get("/v1/incidents/death-1").json();
    assert_eq!((i["class"].as_str(), i["namespace"].as_str()), (Some("host_oom_killed"), Some("serving")));
    assert!(!i["image"].as_str().unwrap().is_empty(), "{i}");
    assert_eq!(s.get("/v1/incidents/death-1/bundle").body, bytes);
    assert_eq!(s.ask("HEAD", path, &[], b"").header("upload-offset"), whole.to_string());
    let nothing = b"no archive at all";
    let refused = s.ask("PUT", "/v1/incidents/x/bundle", &[("repr-digest", &digest(nothing))], nothing);
    assert!(matches!(refused.status, 201 | 422), "{}", refused.text());
    let large = vec![0_u8; 2 << 20];
    let refused = s.ask("PUT", "/v1/incidents/y/bundle", &[("repr-digest", &digest(&large))], &large);
    assert_eq!(refused.status, 413, "{}", refused.text());
}

/// Whatever is refused, and wherever in its body: a sender that goes on sending reads the answer, and no reset.
#[test]
fn whoever_is_refused_while_it_still_sends_reads_why() {
    let home = tempfile::tempdir().unwrap();
    let s = Server::start(home.path(), &["--max-bundle-mib", "1"]);
    let address = s.url.strip_prefix("http://").unwrap();
    let piece = vec![b'x'; 256 << 10];
    for (path, host, status) in [
        ("/v1/incidents/y/bundle", address, "413"),
        ("/v1/incidents/y", address, "413"),
        ("/v1/nothing", address, "404"),
        ("/v1/incidents/-", address, "400"),
        ("/v1/incidents/y", "evil.example", "421"),
    ] {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
        let whole = 12 << 20;
        write!(stream, "PUT {path} HTTP/1.1\r\nhost: {host}\r\ncontent-length: {whole}\r\n\r\n").unwrap();
        for _ in 0..whole / piece.len() {
            stream.write_all(&piece).unwrap_or_else(|e| panic!("{path}: {e}"));
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let mut first = String::new();
        BufReader::new(stream).read_line(&mut first).unwrap_or_else(|e| panic!("{path}: {e}"));
        assert!(first.starts_with(&format!("HTTP/1.1 {status}")), "{path}: {first}");
    }
}

#[test]
fn the_audit_log_goes_where_it_is_told() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("elsewhere");
    let line = "\"method\":\"PUT\",\"path\":\"/v1/incidents/a\"";
    let s = Server::start(home.path(), &["--audit-log-path", file.to_str().unwrap()]);
    assert_eq!(s.put("a", "x").status, 201);
    // It is written after the answer.
    let written = || std::fs::read_to_string(&file).unwrap().contains(line);
    assert!((0..500).any(|_| written() || {
        std::thread::sleep(std::time::Duration::from_millis(20));
        false
    }));
    drop(s);
    assert!(!home.path().join("audit.jsonl").exists());
    let mut c = program();
    c.args(["serve", "--listen", "127.0.0.1:0", "--audit-log-path", "-", "--data"]).arg(home.path());
    c.stdout(std::process::Stdio::piped());
    let mut s = Server::of(c);
    assert_eq!(s.put("a", "x").status, 200);
    let mut said = String::new();
    BufReader::new(s.child.stdout.take().unwrap()).read_line(&mut said).unwrap();
    assert!(said.contains(line), "{said}");
    let nowhere = home.path().join("none/audit");
    let refused = program()
        .args(["serve", "--listen", "127.0.0.1:0", "--audit-log-path"])
        .arg(&nowhere)
        .arg("--data")
        .arg(home.path())
        .output()
        .unwrap();
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && why.contains("none/audit"), "{why}");
}

#[test]
fn events_tell_of_new_incidents_and_of_those_that_were_missed() {
    let home = tempfile::tempdir().unwrap();
    let s = Server::start(home.path(), &[]);
    let listen = |extra: &str| {
        let address = s.url.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
        write!(stream, "GET /v1/events?namespace=a HTTP/1.1\r\nhost: {address}\r\n{extra}\r\n").unwrap();
        let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
        let head: Vec<String> = lines.by_ref().take_while(|l| l != ": dualplane").collect();
        (head.into_iter().find(|l| l.starts_with("id: ")), lines)
    };
    let (begun, mut news) = listen("");
    assert_eq!(s.put("other", "b").status, 201);
    assert_eq!(s.put("mine", "a").status, 201);
    let id = news.find(|l| l.starts_with("id: ")).unwrap();
    let data = news.find(|l| l.starts_with("data: ")).unwrap();
    let i: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(i["id"], "mine");
    drop(news);
    assert_eq!(s.put("missed", "a").status, 201);
    let (none, mut again) = listen(&format!("last-event-{id}\r\n"));
    let data = again.find(|l| l.starts_with("data: ")).unwrap();
    assert!(none.is_none() && data.contains("\"id\":\"missed\""), "{data}");
    // Who heard of none yet comes back to where they began.
    let (_, mut again) = listen(&format!("last-event-{}\r\n", begun.unwrap()));
    let data = again.find(|l| l.starts_with("data: ")).unwrap();
    assert!(data.contains("\"id\":\"mine\""), "{data}");
}

#[test]
fn the_document_names_every_route_and_every_route_answers() {
    let document: Value = serde_json::from_str(&api::document()).unwrap();
    let printed = program().arg("openapi").output().unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&printed.stdout).unwrap(), document);
    let kept = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/server.openapi.json");
    expectorate::assert_contents(kept, &(api::document() + "\n"));
    let home = tempfile::tempdir().unwrap();
    let s = Server::start(home.path(), &[]);
    assert_eq!(s.get("/v1/openapi.json").json(), document);
    s.ask("PUT", "/v1/incidents/a", &[], &upload("a", "x"));
    // What makes clients of it needs a name of each and words for every answer.
    let operations =
        document["paths"].as_object().unwrap().values().flat_map(|p| p.as_object().unwrap().values());
    let operations: Vec<&Value> = operations.collect();
    let names: std::collections::BTreeSet<&str> =
        operations.iter().map(|o| o["operationId"].as_str().unwrap()).collect();
    assert_eq!(names.len(), operations.len());
    for answer in operations.iter().flat_map(|o| o["responses"].as_object().unwrap().values()) {
        assert!(!answer["description"].as_str().unwrap().is_empty(), "{answer}");
    }
    let mut seen = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        if path == "/v1/events" {
            continue;
        }
        for method in methods.as_object().unwrap().keys() {
            let answer = s.ask(&method.to_uppercase(), &path.replace("{id}", "a"), &[], b"");
            assert!(!matches!(answer.status, 405 | 500..), "{method} {path}: {}", answer.text());
            assert!(!answer.text().contains("no such page"), "{method} {path}");
            seen += 1;
        }
    }
    assert!(seen >= 8);
}

#[test]
fn the_demo_fills_itself_and_nobody_else_reaches_it() {
    let mut c = program();
    c.args(["demo", "--listen", "127.0.0.1:0"]);
    let s = Server::of(c);
    assert!(s.ids().len() > 30);
    let fleet = s.get("/v1/fleet").json();
    assert!(fleet["by_class"].as_object().unwrap().len() >= 8, "{fleet}");
    assert!(!s.get("/v1/incidents/demo-vllm-xid-hardware-e014/bundle").body.is_empty());
    let foreign = s.ask("GET", "/v1/incidents", &[("host", "evil.example")], b"");
    assert_eq!(foreign.status, 421, "{}", foreign.text());
    let open = program().args(["demo", "--listen", "0.0.0.0:0"]).output().unwrap();
    assert!(!open.status.success() && String::from_utf8_lossy(&open.stderr).contains("--tokens"));
    let open = program().args(["serve", "--listen", "0.0.0.0:0"]).output().unwrap();
    assert!(
        !open.status.success() && String::from_utf8_lossy(&open.stderr).contains("dualplane-server token")
    );
}
