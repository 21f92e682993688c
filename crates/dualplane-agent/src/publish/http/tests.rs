//! The real server over real sockets: answers, who may see what, and clients that mean no good.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;

use dualplane_node::clock::Moment;

use super::*;
use crate::health::Part;
use crate::incident::{self, State, Summary};
use crate::publish::Counts;
use crate::view::View;

fn state(dir: &Path, access: Access, stale: Duration) -> Arc<Shared> {
    Arc::new(Shared::new(Options { incidents: dir.to_owned(), access, stale, health: Arc::default() }))
}

fn serve(dir: &Path, access: Access) -> (Server, Arc<Shared>) {
    let state = state(dir, access, Duration::from_secs(15));
    let server = Server::start((Ipv4Addr::LOCALHOST, 0).into(), Arc::clone(&state)).unwrap();
    (server, state)
}

fn now(state: &Shared) {
    let view = View { at: Moment::now(), ..View::default() };
    state.publish(Arc::new(view), Arc::new(Counts { node: "n".into(), ..Counts::default() }));
}

/// Head and body of an answer.
fn ask(server: &Server, request: &str) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    let at = all.windows(4).position(|w| w == b"\r\n\r\n").map_or(all.len(), |p| p + 4);
    let body = all.split_off(at);
    (String::from_utf8(all).unwrap(), body)
}

fn get(server: &Server, path: &str) -> (u16, String) {
    let (head, body) = ask(server, &format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
    let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
    (status, String::from_utf8_lossy(&body).into_owned())
}

fn incident(dir: &Path, id: &str, bundle: &[u8]) {
    let s: Summary = serde_json::from_value(serde_json::json!({
        "schema": incident::SCHEMA, "id": id, "kind": "death", "state": State::Judged, "died_at": "2026-11-21T21:38:12.345Z",
        "node": "n", "container": "c", "first": true, "bytes": bundle.len(),
    }))
    .unwrap();
    fs::write(dir.join(format!("{id}.json")), serde_json::to_vec(&s).unwrap()).unwrap();
    fs::write(dir.join(format!("{id}.tar.zst")), bundle).unwrap();
}

#[test]
fn metrics_and_health_follow_the_rounds() {
    let d = tempfile::tempdir().unwrap();
    let (server, state) = serve(d.path(), Access::Loopback);
    assert_eq!(get(&server, "/metrics").0, 503);
    assert_eq!(get(&server, "/healthz").0, 200, "it has just started");
    now(&state);
    let (head, body) = ask(&server, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(head.contains("200 OK") && head.contains(metrics_type()), "{head}");
    assert!(String::from_utf8(body).unwrap().contains("process_cpu_seconds_total{node=\"n\"} "));
    assert!(get(&server, "/healthz").1.starts_with("the last round began 0."));
    let late = state_after(d.path());
    assert_eq!(get(&late.0, "/healthz").0, 503);
    now(&late.1);
    assert_eq!(get(&late.0, "/healthz").0, 503, "rounds stopped");
}

#[test]
fn a_fault_costs_readiness_and_not_life() {
    let d = tempfile::tempdir().unwrap();
    let (server, state) = serve(d.path(), Access::Never);
    now(&state);
    assert_eq!((get(&server, "/livez").0, get(&server, "/readyz").0), (200, 200));
    let health = &state.options.health;
    health.report(&Part::KernelLog, Err("EPERM".into()));
    assert_eq!(get(&server, "/readyz").0, 200, "what limits a bundle is no reason to call the pod not ready");
    health.report(&Part::ApiServer, Err("the token\nis bad".into()));
    health.report(&Part::ApiServer, Err("the token\nis bad".into()));
    let (status, body) = get(&server, "/readyz");
    assert!(status == 503 && body.starts_with("not ready; the last round began "), "{body}");
    let line =
        body.lines().find(|l| l.starts_with("fault: api_server for 0 s (failed 2x): the token")).unwrap();
    assert!(line.ends_with("is bad"), "{line}");
    assert_eq!(get(&server, "/livez").0, 200);
    let (status, body) = get(&server, "/healthz");
    assert!(
        status == 200 && body.contains("fault: kernel_log") && body.contains("fault: api_server"),
        "{body}"
    );
    now(&state);
    let page = get(&server, "/metrics").1;
    for line in [
        "dualplane_agent_ready{node=\"n\"} 0",
        "dualplane_agent_fault{node=\"n\",what=\"api_server\"} 1",
        "dualplane_agent_faults_total{node=\"n\",what=\"kernel_log\"} 1",
    ] {
        assert!(page.contains(line), "{line}\n{page}");
    }
    health.report(&Part::ApiServer, Ok(()));
    let (status, body) = get(&server, "/readyz");
    assert!(status == 200 && body.contains("recovered: api_server (1x since the start)"), "{body}");
    let late = state_after(d.path());
    assert_eq!((get(&late.0, "/livez").0, get(&late.0, "/readyz").0), (503, 503));
}

fn metrics_type() -> &'static str {
    crate::publish::metrics::CONTENT_TYPE
}

/// A server to which every round is too old.
fn state_after(dir: &Path) -> (Server, Arc<Shared>) {
    let state = state(dir, Access::Loopback, Duration::ZERO);
    (Server::start((Ipv4Addr::LOCALHOST, 0).into(), Arc::clone(&state)).unwrap(), state)
}

#[test]
fn a_page_is_written_once_for_each_view() {
    let d = tempfile::tempdir().unwrap();
    let state = state(d.path(), Access::Never, Duration::ZERO);
    assert!(state.page().is_none());
    now(&state);
    let first = state.page().unwrap();
    assert_eq!(first.as_ptr(), state.page().unwrap().as_ptr());
    now(&state);
    assert_ne!(first.as_ptr(), state.page().unwrap().as_ptr());
}

#[test]
fn incidents_are_listed_and_handed_out() {
    let d = tempfile::tempdir().unwrap();
    let dir = d.path().join("incidents");
    fs::create_dir(&dir).unwrap();
    let (old, new) = ("20261121T213812.345Z-ns-p-c-1-0123abcd", "20261121T213813.345Z-ns-p-c-2-0123abcd");
    let bundle: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
    incident(&dir, new, b"x");
    incident(&dir, old, &bundle);
    // What lies beside, above, or behind a link is not handed out.
    fs::write(d.path().join("secret.json"), "{}").unwrap();
    fs::write(d.path().join("2secret.tar.zst"), "secret").unwrap();
    std::os::unix::fs::symlink(d.path().join("2secret.tar.zst"), dir.join("3link.tar.zst")).unwrap();
    let (server, _) = serve(&dir, Access::Loopback);
    let list: Vec<Summary> = serde_json::from_str(&get(&server, "/incidents").1).unwrap();
    assert_eq!(list.iter().map(|s| s.id.as_str()).collect::<Vec<_>>(), [old, new]);
    let one: Summary = serde_json::from_str(&get(&server, &format!("/incidents/{new}")).1).unwrap();
    assert_eq!(one.id, new);
    let (head, body) = ask(&server, &format!("GET /incidents/{old}/bundle HTTP/1.1\r\nHost: x\r\n\r\n"));
    assert!(
        head.contains("content-length: 300000") && head.contains(&format!("\"{old}.tar.zst\"")),
        "{head}"
    );
    assert_eq!(body, bundle);
    let (head, body) = ask(&server, &format!("HEAD /incidents/{old}/bundle HTTP/1.1\r\nHost: x\r\n\r\n"));
    assert!(head.contains("content-length: 300000") && body.is_empty(), "{head}");
    for path in [
        "/incidents/..%2f2secret/bundle",
        "/incidents/../2secret/bundle",
        "/incidents/3link/bundle",
        "/incidents/2secret/bundle",
        "/incidents//etc/passwd",
        "/incidents/20261121T213812.345Z/bundle/x",
        "/incidents/2%00/bundle",
        "/../../etc/passwd",
        "/x",
    ] {
        assert_eq!(get(&server, path).0, 404, "{path}");
    }
}

#[test]
fn incidents_are_shown_to_whom_they_may() {
    let d = tempfile::tempdir().unwrap();
    let state = |access| state(d.path(), access, Duration::from_secs(15));
    let status = |access, peer: &str| {
        let request = hyper::Request::get("/incidents").body(()).unwrap();
        routes::answer(&state(access), peer.parse().unwrap(), &request).status().as_u16()
    };
    assert_eq!(status(Access::Never, "127.0.0.1"), 403);
    assert_eq!(status(Access::Loopback, "127.0.0.1"), 200);
    assert_eq!(status(Access::Loopback, "::1"), 200);
    assert_eq!(status(Access::Loopback, "10.244.0.7"), 403);
    assert_eq!(status(Access::Everybody, "10.244.0.7"), 200);
}

#[test]
fn other_methods_and_what_is_no_request_are_refused() {
    let d = tempfile::tempdir().unwrap();
    let (server, state) = serve(d.path(), Access::Everybody);
    now(&state);
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW"] {
        let (head, _) =
            ask(&server, &format!("{method} /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"));
        assert!(head.contains("405") && head.to_lowercase().contains("allow: get, head"), "{method}: {head}");
    }
    let long = format!("GET /metrics HTTP/1.1\r\nX: {}\r\n\r\n", "a".repeat(100_000));
    let many = format!("GET /metrics HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(500));
    for bad in [long.as_str(), &many, "\x16\x03\x01\x02\x00\x01", "GET\r\n\r\n", "\0\0\0\0\r\n\r\n"] {
        let (head, _) = ask(&server, bad);
        assert!(!head.contains("200 OK"), "{head}");
    }
    assert_eq!(get(&server, "/metrics").0, 200, "it goes on");
}

/// Connections that send nothing hold their places for seconds only, and no more of them than one address may have.
#[test]
fn slow_clients_do_not_keep_others_out_for_long() {
    let d = tempfile::tempdir().unwrap();
    let (server, state) = serve(d.path(), Access::Everybody);
    now(&state);
    let began = std::time::Instant::now();
    let mut slow: Vec<TcpStream> =
        (0..OF_ONE_ADDRESS).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
    slow.iter_mut().for_each(|s| s.write_all(b"GET /metrics HTTP/1.1\r\nX: ").unwrap());
    // One more is turned away, as all come from one address.
    let mut first = [0_u8; 1];
    let mut more = TcpStream::connect(server.address()).unwrap();
    more.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    assert!(
        matches!(more.read(&mut first), Ok(0)) || more.write(b"x").is_err() || more.read(&mut first).is_err()
    );
    // Each of the slow ones is cut off.
    for s in &mut slow {
        s.set_read_timeout(Some(HEAD_TIME * 3)).unwrap();
        let mut rest = Vec::new();
        let _ = s.read_to_end(&mut rest);
        assert!(!String::from_utf8_lossy(&rest).contains("200 OK"));
    }
    assert!(began.elapsed() < HEAD_TIME * 3, "{:?}", began.elapsed());
    assert_eq!(get(&server, "/metrics").0, 200);
}

#[test]
fn a_port_that_is_taken_is_said() {
    let d = tempfile::tempdir().unwrap();
    let (server, _) = serve(d.path(), Access::Never);
    let again = Server::start(server.address(), state(d.path(), Access::Never, Duration::ZERO));
    let why = again.unwrap_err().to_string();
    assert!(why.contains(&server.address().to_string()), "{why}");
}
