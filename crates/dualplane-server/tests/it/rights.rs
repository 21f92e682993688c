//! Every endpoint × every role × own and foreign namespaces, in one table.

use std::process::Command;

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
            let empty = match (who.uploads, here) {
                (true, true) => 201,
                _ => 403,
            };
            let table = [
                ("GET", seed.clone(), vec![], read),
                ("GET", format!("{seed}/report"), vec![], read),
                ("GET", format!("{seed}/bundle"), vec![], bundle),
                ("PUT", format!("/v1/incidents/{new}"), upload(&new, namespace), send),
                ("PUT", format!("{seed}/bundle"), b"x".to_vec(), empty),
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
                if method == "PUT" && path.ends_with("/bundle") {
                    // The first keeps it beside the incident, all others send the same again.
                    let got = ask(&who.token, method, &path, &body).status;
                    let kept = wanted == 201 && matches!(got, 200 | 201);
                    assert!(kept || got == wanted, "{} {method} {path}: {got}", who.name);
                    rows += 1;
                    continue;
                }
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
            // Without a filter a caller sees its own namespaces and nothing of others.
            if who.reads && !who.everywhere {
                for path in
                    ["/v1/incidents?each=true", "/v1/incidents", "/v1/fleet", "/v1/incidents?q=foreign"]
                {
                    assert!(
                        !ask(&who.token, "GET", path, b"").text().contains("foreign"),
                        "{} {path}",
                        who.name
                    );
                }
            }
        }
    }
    assert_eq!(rows, 6 * 2 * 8);
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
