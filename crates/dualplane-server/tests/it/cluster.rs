//! Callers whom a cluster knows, by the real program and client against an API server of a few lines. `e2e/helm live` asks a real one.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::harness::{Server, answering, kubeconfig, program, upload};

/// Answers reviews: tokens by name of their user, and of each user or group what they may: `verb resource namespace`, `*` for all namespaces.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    users: BTreeMap<String, String>,
    may: BTreeMap<String, Vec<String>>,
    asked: AtomicUsize,
    away: Mutex<bool>,
}

pub(crate) fn api_server(rules: &Arc<Rules>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let rules = Arc::clone(rules);
    answering(listener, move |path, body| Some(rules.answer(path, &serde_json::from_str(body).ok()?)));
    address
}

impl Rules {
    /// Knows no tokens; of each user or group what they may.
    pub(crate) fn of(may: BTreeMap<String, Vec<String>>) -> Self {
        Self { may, ..Self::default() }
    }

    fn answer(&self, path: &str, body: &Value) -> (&'static str, Value) {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if *self.away.lock().unwrap() {
            return ("500 Oops", json!({"kind": "Status"}));
        }
        let spec = &body["spec"];
        if path.ends_with("/tokenreviews") {
            let user = self.users.get(spec["token"].as_str().unwrap());
            assert_eq!(spec["audiences"], json!(["dualplane-server"]));
            let status = match user {
                Some(name) => {
                    json!({"authenticated": true, "audiences": ["dualplane-server"], "user": {"username": name, "groups": ["system:authenticated"]}})
                }
                None => json!({"authenticated": false}),
            };
            return ("201 Created", json!({"kind": "TokenReview", "status": status}));
        }
        assert!(path.ends_with("/subjectaccessreviews"), "{path}");
        let of = &spec["resourceAttributes"];
        let namespace = of["namespace"].as_str().unwrap_or("*");
        let deed =
            format!("{} {} {namespace}", of["verb"].as_str().unwrap(), of["resource"].as_str().unwrap());
        let groups = spec["groups"].as_array().into_iter().flatten();
        let mut whose = std::iter::once(&spec["user"]).chain(groups).filter_map(Value::as_str);
        let allowed = whose.any(|who| {
            self.may
                .get(who)
                .into_iter()
                .flatten()
                .any(|d| *d == deed || d.strip_suffix('*').is_some_and(|d2| deed.starts_with(d2)))
        });
        ("201 Created", json!({"kind": "SubjectAccessReview", "status": {"allowed": allowed}}))
    }
}

pub(crate) fn start(home: &Path, api: &str, args: &[&str]) -> Server {
    let mut c = program();
    c.args(["serve", "--listen", "127.0.0.1:0", "--kubernetes", "--cluster", "k", "--data"])
        .arg(home)
        .args(args);
    c.env("KUBECONFIG", kubeconfig(home, api));
    Server::of(c)
}

#[test]
fn a_caller_of_the_cluster_sees_and_sends_what_the_cluster_lets_them() {
    let home = tempfile::tempdir().unwrap();
    let user = |t: &str, name: &str| (t.to_owned(), name.to_owned());
    let may = |name: &str, deeds: &[&str]| (name.to_owned(), deeds.iter().map(|d| (*d).to_owned()).collect());
    let agent = "system:serviceaccount:monitoring:agent";
    let job = "system:serviceaccount:ci:job";
    let rules = Arc::new(Rules {
        users: [
            user("t-agent", agent),
            user("t-job", job),
            user("t-mia", "mia"),
            user("t-all", "root"),
            user("t-none", "nobody"),
        ]
        .into(),
        may: [
            may(agent, &["create incidents *"]),
            may(job, &["create incidents ci"]),
            may("mia", &["get pods own"]),
            may("root", &["get pods *"]),
        ]
        .into(),
        ..Rules::default()
    });
    let s = start(home.path(), &api_server(&rules), &[]);
    let ask = |token: &str, method: &str, path: &str, body: &[u8]| {
        s.ask(method, path, &[("authorization", &format!("Bearer {token}"))], body)
    };
    assert_eq!(s.get("/v1/incidents").status, 401, "there is somebody to be");
    for (token, namespace, wanted) in [
        ("t-agent", "own", 201),
        ("t-agent", "foreign", 201),
        ("t-job", "ci", 201),
        ("t-job", "own", 403),
        ("t-mia", "own", 403),
        ("t-none", "own", 403),
        ("stolen", "own", 401),
    ] {
        let id = format!("{token}-{namespace}");
        let got = ask(token, "PUT", &format!("/v1/incidents/{id}"), &upload(&id, namespace));
        assert_eq!(got.status, wanted, "{token} {namespace}: {}", got.text());
    }
    // Deaths of another cluster are not this cluster's to show.
    let other =
        String::from_utf8(upload("x", "own")).unwrap().replace("\"cluster\":\"k\"", "\"cluster\":\"z\"");
    assert_eq!(ask("t-agent", "PUT", "/v1/incidents/x", other.as_bytes()).status, 403);
    for (token, status, own, foreign) in [
        ("t-mia", 200, true, false),
        ("t-all", 200, true, true),
        ("t-agent", 403, false, false),
        ("t-none", 403, false, false),
    ] {
        let got = ask(token, "GET", "/v1/incidents?each=true", b"");
        let text = got.text();
        assert_eq!(got.status, status, "{token}: {text}");
        assert_eq!(
            (text.contains("t-agent-own"), text.contains("t-agent-foreign")),
            (own, foreign),
            "{token}: {text}"
        );
        let one = ask(token, "GET", "/v1/incidents/t-agent-foreign", b"").status;
        assert_eq!(
            one,
            if status == 403 {
                403
            } else if foreign {
                200
            } else {
                404
            },
            "{token}"
        );
    }
    // Answers are kept for a while, and an API server that is away lets nobody in.
    let before = rules.asked.load(Ordering::Relaxed);
    for _ in 0..20 {
        assert_eq!(ask("t-mia", "GET", "/v1/incidents", b"").status, 200);
    }
    assert_eq!(rules.asked.load(Ordering::Relaxed), before);
    *rules.away.lock().unwrap() = true;
    assert_eq!(ask("t-mia", "GET", "/v1/incidents", b"").status, 200);
    let away = ask("t-new", "GET", "/v1/incidents", b"");
    assert_eq!((away.status, away.header("retry-after")), (503, "5"), "{}", away.text());
    let audit = std::fs::read_to_string(home.path().join("audit.jsonl")).unwrap();
    assert!(audit.contains(&format!("{agent}@kubernetes")) && !audit.contains("t-agent\""), "{audit}");
}

#[test]
fn who_guesses_tokens_does_not_flood_the_api_server() {
    let home = tempfile::tempdir().unwrap();
    let rules = Arc::new(Rules::default());
    let s = start(home.path(), &api_server(&rules), &[]);
    let mut answers = BTreeMap::new();
    for n in 0..120 {
        let got = s.ask("GET", "/v1/incidents", &[("authorization", &format!("Bearer guess-{n}"))], b"");
        *answers.entry(got.status).or_insert(0) += 1;
    }
    assert!(answers[&429] > 20 && answers.keys().all(|s| matches!(s, 401 | 429)), "{answers:?}");
    assert!(rules.asked.load(Ordering::Relaxed) < 100);
}
