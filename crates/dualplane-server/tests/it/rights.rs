//! Every endpoint × every role × own and foreign namespaces, in one table.

use std::io::{Read, Write};
use std::process::Command;
use std::time::Duration;

use crate::harness::{Server, program, upload};

struct Who {
    name: &'static str,
    token: String,
    uploads: bool,
    reads: bool,
    everywhere: bool,
}

fn make(file: &mut String, name: &'static str, role: &str, namespace: Option<&str>) -> Who {
    let mut c: Command = program();
    c.args(["token", name, "--role", role]);
    if let Some(n) = namespace {
        c.args(["--namespace", n]);
    }
    let made = c.output().unwrap();
    file.push_str(&String::from_utf8(made.stdout).unwrap());
    let token = String::from_utf8(made.stderr).unwrap().rsplit(' ').next().unwrap().trim().to_owned();
    Who { name, token, uploads: role != "read", reads: role != "upload", everywhere: namespace.is_none() }
}

/// Log of a death, which is judged where it is received.
pub(crate) const LOG: &[u8] = b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB of which 1.00 GiB is free.\n";

/// The head of an endless answer, and what of it comes at once: everything that was received.
pub(crate) fn events(s: &Server, token: &str, query: &str) -> (u16, String) {
    let address = s.url.trim_start_matches("http://");
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(400))).unwrap();
    write!(
        stream,
        "GET /v1/events?{query} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\nlast-event-id: 0~a\r\n\r\n"
    )
    .unwrap();
    let (mut got, mut buffer) = (Vec::new(), [0; 65536]);
    while let Ok(n) = stream.read(&mut buffer) {
        got.extend_from_slice(&buffer[..n]);
        if n == 0 {
            break;
        }
    }
    let text = String::from_utf8_lossy(&got).into_owned();
    (text.split(' ').nth(1).unwrap().parse().unwrap(), text)
}

#[test]
fn every_endpoint_answers_each_role_as_the_table_says() {
    let home = tempfile::tempdir().unwrap();
    let mut file = String::new();
    let all: Vec<Who> = [
        ("all-upload", "upload", None),
        ("all-read", "read", None),
        ("all-admin", "admin", None),
        ("own-upload", "upload", Some("own")),
        ("own-read", "read", Some("k/own")),
        ("own-admin", "admin", Some("own")),
    ]
    .into_iter()
    .map(|(name, role, namespace)| make(&mut file, name, role, namespace))
    .collect();
    let tokens = home.path().join("tokens.toml");
    std::fs::write(&tokens, file).unwrap();
    let s = Server::start(home.path(), &["--tokens", tokens.to_str().unwrap()]);
    let ask = |token: &str, method: &str, path: &str, body: &[u8]| {
        let bearer = format!("Bearer {token}");
        s.ask(method, path, &[("authorization", &bearer), ("repr-digest", &crate::api::digest(body))], body)
    };
    for namespace in ["own", "foreign"] {
        let id = format!("seed-{namespace}");
        assert_eq!(
            ask(&all[2].token, "PUT", &format!("/v1/incidents/{id}"), &upload(&id, namespace)).status,
            201
        );
    }
    let mut rows = 0;
    for who in &all {
        for namespace in ["own", "foreign"] {
            let here = who.everywhere || namespace == "own";
            let seed = format!("/v1/incidents/seed-{namespace}");
            let new = format!("new-{}-{namespace}", who.name);
            // Reading what is not yours looks like reading what is not there.
            let read = match (who.reads, here) {
                (false, _) => 403,
                (true, false) => 404,
                (true, true) => 200,
            };
            let send = if who.uploads && here { 201 } else { 403 };
            // Nothing was sent with it: whoever may read it is told that there is no bundle.
            let bundle = if who.reads { 404 } else { 403 };
            let table = [
                ("GET", seed.clone(), vec![], read),
                ("GET", format!("{seed}/report"), vec![], read),
                ("GET", format!("{seed}/bundle"), vec![], bundle),
                ("PUT", format!("/v1/incidents/{new}"), upload(&new, namespace), send),
                // Beside its own incident, or judged as a death of its own: never beside one of somebody else.
                ("PUT", format!("{seed}/bundle?cluster=k&namespace={namespace}"), LOG.to_vec(), send),
                (
                    "PUT",
                    format!("/v1/agent/a-{new}.tar.zst?cluster=k&namespace={namespace}"),
                    LOG.to_vec(),
                    send,
                ),
                (
                    "PUT",
                    format!("/v1/agent/a-{new}.json"),
                    b"{}".to_vec(),
                    if who.uploads { 200 } else { 403 },
                ),
                ("GET", format!("/incidents/seed-{namespace}"), vec![], read),
                ("GET", format!("/incidents/seed-{namespace}.md"), vec![], read),
                ("GET", format!("/incidents/seed-{namespace}/rehearsal"), vec![], read),
                ("GET", format!("/?namespace={namespace}"), vec![], if who.reads { 200 } else { 403 }),
                ("GET", "/fleet".to_owned(), vec![], if who.reads { 200 } else { 403 }),
                ("GET", "/gpus".to_owned(), vec![], if who.reads { 200 } else { 403 }),
                ("GET", "/gpus/GPU-1".to_owned(), vec![], if who.reads { 404 } else { 403 }),
                ("GET", "/capacity".to_owned(), vec![], if who.reads { 200 } else { 403 }),
                ("HEAD", format!("/v1/incidents/{new}/bundle"), vec![], if who.uploads { 204 } else { 403 }),
                (
                    "GET",
                    format!("/v1/incidents?each=true&namespace={namespace}"),
                    vec![],
                    if who.reads { 200 } else { 403 },
                ),
                (
                    "GET",
                    format!("/v1/fleet?namespace={namespace}"),
                    vec![],
                    if who.reads { 200 } else { 403 },
                ),
            ];
            for (method, path, body, wanted) in table {
                let got = ask(&who.token, method, &path, &body);
                let also =
                    path.ends_with("/bundle") && method == "GET" && got.status == 200 && here && who.reads;
                assert!(
                    got.status == wanted || also,
                    "{} {method} {path}: {} {}",
                    who.name,
                    got.status,
                    got.text()
                );
                if path.contains("each=true") && wanted == 200 {
                    let items = got.json()["items"].as_array().unwrap().len();
                    assert_eq!(items > 0, here, "{} {path}", who.name);
                }
                if path.starts_with("/v1/fleet") && wanted == 200 {
                    assert_eq!(got.json()["incidents"].as_u64().unwrap() > 0, here, "{} {path}", who.name);
                    assert_eq!(
                        got.text().contains("foreign"),
                        namespace == "foreign" && here,
                        "{}",
                        who.name
                    );
                }
                rows += 1;
            }
            let (status, told) = events(&s, &who.token, &format!("namespace={namespace}"));
            assert_eq!(status, if who.reads { 200 } else { 403 }, "{} {told}", who.name);
            assert_eq!(told.contains(&format!("seed-{namespace}")), who.reads && here, "{} {told}", who.name);
            rows += 1;
            // Without a filter a caller sees its own namespaces and nothing of others.
            if who.reads && !who.everywhere {
                for path in [
                    "/v1/incidents?each=true",
                    "/v1/incidents",
                    "/v1/fleet",
                    "/v1/incidents?q=foreign",
                    "/",
                    "/fleet",
                    "/capacity",
                ] {
                    assert!(
                        !ask(&who.token, "GET", path, b"").text().contains("foreign"),
                        "{} {path}",
                        who.name
                    );
                }
                assert!(!events(&s, &who.token, "").1.contains("foreign"), "{}", who.name);
            }
        }
    }
    assert_eq!(rows, 6 * 2 * 19);
    for path in ["/v1/incidents", "/v1/incidents/seed-own", "/v1/fleet", "/v1/events", "/v1/nothing", "/"] {
        assert_eq!(s.get(path).status, 401, "{path}");
    }
    for path in ["/healthz", "/readyz", "/v1/openapi.json"] {
        assert_eq!(s.get(path).status, 200, "{path}");
    }
    let basic = {
        use base64::Engine as _;
        let pair = base64::engine::general_purpose::STANDARD.encode(format!("me:{}", all[1].token));
        s.ask("GET", "/v1/incidents", &[("authorization", &format!("Basic {pair}"))], b"")
    };
    assert_eq!(basic.status, 200, "a browser sends the token as password");
    let audit = std::fs::read_to_string(home.path().join("audit.jsonl")).unwrap();
    assert!(audit.contains("\"who\":\"own-upload\"") && audit.contains("\"status\":403"), "{audit}");
    assert!(!all.iter().any(|w| audit.contains(&w.token)), "no token stands in the log");
}

#[test]
fn who_asks_too_often_is_told_when_to_come_back() {
    let home = tempfile::tempdir().unwrap();
    let s = Server::start(home.path(), &["--rate", "5"]);
    let refused = (0..60).map(|_| s.get("/v1/incidents")).find(|a| a.status == 429).unwrap();
    assert_eq!(refused.header("retry-after"), "1");
}

/// Whoever guesses a name that another will use keeps nothing out: neither a report nor a bundle, and the evidence of one death
/// never stands beside another.
#[test]
fn a_name_that_somebody_took_in_advance_keeps_no_death_out() {
    let home = tempfile::tempdir().unwrap();
    let mut file = String::new();
    let thief = make(&mut file, "thief", "upload", Some("theirs"));
    let agent = make(&mut file, "agent", "upload", None);
    let reader = make(&mut file, "reader", "read", None);
    let tokens = home.path().join("tokens.toml");
    std::fs::write(&tokens, file).unwrap();
    let s = Server::start(home.path(), &["--tokens", tokens.to_str().unwrap()]);
    let ask = |who: &Who, method: &str, path: &str, body: &[u8]| {
        let bearer = format!("Bearer {}", who.token);
        s.ask(method, path, &[("authorization", &bearer), ("repr-digest", &crate::api::digest(body))], body)
    };
    assert_eq!(ask(&thief, "PUT", "/v1/incidents/future", &upload("future", "theirs")).status, 201);
    // Nor can the name be taken that the agent's death gets then.
    let own = dualplane_incidents::id_of_sender("future", &dualplane_server::auth::sha256(b"agent"));
    assert_eq!(ask(&thief, "PUT", &format!("/v1/incidents/{own}"), &upload("x", "theirs")).status, 400);
    for (path, body, wanted) in [
        ("/v1/incidents/future", upload("mine", "serving"), 201),
        ("/v1/incidents/future", upload("mine", "serving"), 200),
        ("/v1/incidents/future", upload("another", "serving"), 409),
        ("/v1/agent/future.tar.zst?cluster=k&namespace=serving", LOG.to_vec(), 201),
        ("/v1/agent/future.tar.zst?cluster=k&namespace=serving", LOG.to_vec(), 200),
    ] {
        let got = ask(&agent, "PUT", path, &body);
        assert_eq!(got.status, wanted, "{path}: {}", got.text());
        if wanted != 409 {
            assert_eq!(got.json()["ids"][0], own.as_str());
        }
    }
    let head = ask(&agent, "HEAD", "/v1/incidents/future/bundle", b"");
    assert_eq!(head.header("upload-offset"), LOG.len().to_string());
    assert_eq!(ask(&reader, "GET", "/v1/incidents/future/bundle", b"").status, 404);
    assert_eq!(ask(&reader, "GET", &format!("/v1/incidents/{own}/bundle"), b"").body, LOG);
    assert_eq!(ask(&reader, "GET", &format!("/incidents/{own}"), b"").status, 200);
    let all = ask(&reader, "GET", "/v1/incidents?each=true&limit=1", b"").json();
    let next = all["next"].as_str().unwrap();
    assert_eq!(ask(&reader, "GET", &format!("/v1/incidents?each=true&after={next}"), b"").status, 200);
}
