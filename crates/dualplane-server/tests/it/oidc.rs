//! People whom an issuer knows, by the real program against an issuer and an API server of a few lines. `e2e/server/run people` asks a
//! real issuer.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use dualplane_incidents::decode;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};

use crate::cluster::{Rules, api_server, start};
use crate::harness::{Answer, Server, answering, upload};

/// A key that signs.
struct Signer {
    kid: String,
    pair: EcdsaKeyPair,
}

impl Signer {
    fn new(kid: &str) -> Self {
        let (alg, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let der = EcdsaKeyPair::generate_pkcs8(alg, &random).unwrap();
        Self { kid: kid.to_owned(), pair: EcdsaKeyPair::from_pkcs8(alg, der.as_ref(), &random).unwrap() }
    }

    fn jwk(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        json!({"kty": "EC", "crv": "P-256", "kid": self.kid, "use": "sig", "x": B64.encode(&point[1..33]), "y": B64.encode(&point[33..])})
    }

    fn token(&self, claims: &Value) -> String {
        let head = json!({"alg": "ES256", "kid": self.kid});
        let message = format!("{}.{}", B64.encode(head.to_string()), B64.encode(claims.to_string()));
        let signed = self.pair.sign(&SystemRandom::new(), message.as_bytes()).unwrap();
        format!("{message}.{}", B64.encode(signed))
    }
}

/// Codes and what they are worth; what was asked.
struct Issuer {
    url: String,
    signer: Mutex<Signer>,
    /// The claims of the next token.
    claims: Mutex<Value>,
    asked: Mutex<Vec<(String, String)>>,
}

impl Issuer {
    fn start() -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let signer = Mutex::new(Signer::new("first"));
        let issuer = Arc::new(Self { url, signer, claims: Mutex::default(), asked: Mutex::default() });
        let own = Arc::clone(&issuer);
        answering(listener, move |path, body| Some(("200 OK", own.answer(path, body))));
        issuer
    }

    fn answer(&self, path: &str, body: &str) -> Value {
        self.asked.lock().unwrap().push((path.to_owned(), body.to_owned()));
        let at = |p: &str| format!("{}{p}", self.url);
        match path {
            "/.well-known/openid-configuration" => json!({
                "issuer": self.url, "jwks_uri": at("/keys"), "authorization_endpoint": at("/auth"), "token_endpoint": at("/token"),
                "scopes_supported": ["openid", "email", "groups", "offline_access"],
            }),
            // One of a kind that nobody knows.
            "/keys" => json!({"keys": [{"kty": "XYZ", "kid": 7}, self.signer.lock().unwrap().jwk()]}),
            "/token" => json!({"id_token": self.token(&self.claims.lock().unwrap())}),
            _ => json!({}),
        }
    }

    fn token(&self, claims: &Value) -> String {
        self.signer.lock().unwrap().token(claims)
    }

    fn of(&self, sub: &str, more: &Value) -> Value {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let mut all = json!({"iss": self.url, "aud": "fleet", "sub": sub, "exp": now + 300, "iat": now});
        for (k, v) in more.as_object().unwrap() {
            all[k] = v.clone();
        }
        all
    }

    fn count(&self, path: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|(p, _)| p == path).count()
    }
}

const PAGE: &str = "http://localhost:8377";

fn serve(home: &Path, issuer: &Issuer) -> Server {
    let may = |name: &str, deeds: &[&str]| (name.to_owned(), deeds.iter().map(|d| (*d).to_owned()).collect());
    let rules = Rules::of(
        [
            may("sre", &["get pods own", "create incidents own"]),
            may("oidc:root", &["get pods *", "create incidents *"]),
        ]
        .into(),
    );
    let secret = home.join("secret");
    std::fs::write(&secret, "s3cr&t\n").unwrap();
    let args = [
        "--oidc-issuer-url",
        &issuer.url,
        "--oidc-client-id",
        "fleet",
        "--oidc-username-prefix",
        "oidc:",
        "--oidc-url",
        PAGE,
        "--oidc-client-secret",
        secret.to_str().unwrap(),
    ];
    start(home, &api_server(&Arc::new(rules)), &args)
}

fn bearer(s: &Server, token: &str, method: &str, path: &str, body: &[u8]) -> Answer {
    s.ask(method, path, &[("authorization", &format!("Bearer {token}"))], body)
}

#[test]
fn who_has_a_token_of_the_issuer_sees_and_sends_what_the_cluster_lets_them() {
    let (home, issuer) = (tempfile::tempdir().unwrap(), Issuer::start());
    let s = serve(home.path(), &issuer);
    let token = |sub: &str, more: Value| issuer.token(&issuer.of(sub, &more));
    let root = token("root", json!({}));
    for (id, namespace) in [("a", "own"), ("b", "foreign")] {
        assert_eq!(
            bearer(&s, &root, "PUT", &format!("/v1/incidents/{id}"), &upload(id, namespace)).status,
            201
        );
    }
    let list = |token: &str| {
        let got = bearer(&s, token, "GET", "/v1/incidents?each=true", b"");
        (got.status, got.text().contains("vllm-a"), got.text().contains("vllm-b"))
    };
    assert_eq!(list(&root), (200, true, true));
    // Rights come from groups; a name without any sees nothing.
    let mia = token("mia", json!({"groups": ["sre"]}));
    assert_eq!(list(&mia), (200, true, false));
    assert_eq!(list(&token("joe", json!({"groups": ["other"]}))).0, 403);
    assert_eq!(bearer(&s, &mia, "PUT", "/v1/incidents/c", &upload("c", "foreign")).status, 403);
    assert_eq!(bearer(&s, &mia, "PUT", "/v1/incidents/c", &upload("c", "own")).status, 201);
    // `of` is the table of the unit tests in small: the whole way refuses, too.
    let thief = Signer::new("first");
    for forged in [
        thief.token(&issuer.of("root", &json!({}))),
        token("root", json!({"aud": "other"})),
        token("root", json!({"exp": 1})),
        format!("{}.", root.rsplit_once('.').unwrap().0),
    ] {
        assert_eq!(list(&forged).0, 401, "{forged}");
    }
    assert!(issuer.count("/keys") == 1, "keys are kept");
    let audit = std::fs::read_to_string(home.path().join("audit.jsonl")).unwrap();
    assert!(audit.contains("\"oidc:mia@kubernetes\"") && !audit.contains(&mia), "{audit}");
}

#[test]
fn a_new_key_is_asked_for_and_an_unknown_one_no_more_often_than_that() {
    let (home, issuer) = (tempfile::tempdir().unwrap(), Issuer::start());
    let s = serve(home.path(), &issuer);
    let status = |token: &str| bearer(&s, token, "GET", "/v1/incidents", b"").status;
    let root = issuer.of("root", &json!({}));
    let old = issuer.token(&root);
    assert_eq!(status(&old), 200);
    *issuer.signer.lock().unwrap() = Signer::new("second");
    let new = issuer.token(&root);
    // Just asked: whoever names keys that nobody has does not make the server ask again and again.
    for _ in 0..5 {
        assert_eq!(status(&new), 401);
    }
    assert_eq!(issuer.count("/keys"), 1);
    std::thread::sleep(std::time::Duration::from_secs(11));
    assert_eq!(status(&new), 200);
    assert_eq!(issuer.count("/keys"), 2);
    assert_eq!(status(&old), 401, "a key that was taken back signs nothing");
}

/// A browser: keeps cookies, follows nothing.
struct Browser<'a> {
    server: &'a Server,
    cookies: BTreeMap<String, String>,
}

impl Browser<'_> {
    fn ask(&mut self, method: &str, path: &str, more: &[(&str, &str)]) -> Answer {
        let jar: Vec<String> = self.cookies.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let jar = jar.join("; ");
        let mut headers = vec![("accept", "text/html"), ("cookie", jar.as_str())];
        headers.extend(more);
        let got = self.server.ask(method, path, &headers, b"");
        for set in got.headers.get_all("set-cookie") {
            let set = set.to_str().unwrap();
            assert!(set.contains("; HttpOnly; SameSite=Lax"), "{set}");
            let (name, value) = set.split(';').next().unwrap().split_once('=').unwrap();
            match set.contains("Max-Age=0") {
                true => self.cookies.remove(name),
                false => self.cookies.insert(name.to_owned(), value.to_owned()),
            };
        }
        got
    }

    /// Begins, and says what the issuer was asked.
    fn begin(&mut self, path: &str) -> BTreeMap<String, String> {
        let to = self.ask("GET", path, &[]);
        let at = to.header("location").to_owned();
        assert_eq!((to.status, at.starts_with("/login?to=")), (303, true), "{at}");
        let at = self.ask("GET", &at, &[]).header("location").to_owned();
        let query = at.split_once("/auth?").unwrap().1;
        query
            .split('&')
            .map(|p| p.split_once('=').unwrap())
            .map(|(k, v)| (k.to_owned(), decode(v).unwrap()))
            .collect()
    }
}

#[test]
fn people_sign_in_on_the_page_and_out_again() {
    let (home, issuer) = (tempfile::tempdir().unwrap(), Issuer::start());
    let s = serve(home.path(), &issuer);
    let root = issuer.token(&issuer.of("root", &json!({})));
    for (id, namespace) in [("a", "own"), ("b", "foreign")] {
        assert_eq!(
            bearer(&s, &root, "PUT", &format!("/v1/incidents/{id}"), &upload(id, namespace)).status,
            201
        );
    }
    let browser = || Browser { server: &s, cookies: BTreeMap::new() };
    let mut mia = browser();
    let asked = mia.begin("/?q=vllm&each=true");
    for (key, value) in [
        ("response_type", "code"),
        ("client_id", "fleet"),
        ("scope", "openid email groups"),
        ("code_challenge_method", "S256"),
        ("redirect_uri", "http://localhost:8377/login/callback"),
    ] {
        assert_eq!(asked[key], value);
    }
    let claims = |nonce: &str| issuer.of("mia", &json!({"groups": ["sre"], "nonce": nonce}));
    let back = format!("/login/callback?code=c%20de&state={}", asked["state"]);
    // Not in another browser, not with another state, not of another issuer, not with a token of another login.
    *issuer.claims.lock().unwrap() = claims(&asked["nonce"]);
    let tokens = issuer.count("/token");
    assert_eq!(browser().ask("GET", &back, &[]).status, 400);
    assert_eq!(mia.ask("GET", "/login/callback?code=c&state=other", &[]).status, 400);
    assert_eq!(mia.ask("GET", "/login/callback?code=c", &[]).status, 400);
    assert_eq!(mia.ask("GET", &format!("{back}&state=other"), &[]).status, 400);
    assert_eq!(mia.ask("GET", &format!("{back}&iss=https%3A%2F%2Fevil.example"), &[]).status, 400);
    let no = mia.ask(
        "GET",
        &format!(
            "/login/callback?error=access_denied&error_description=%3Cscript%3E&state={}",
            asked["state"]
        ),
        &[],
    );
    assert!(no.status == 400 && no.text().contains("access_denied &lt;script&gt;"), "{}", no.text());
    assert_eq!(issuer.count("/token"), tokens, "no code was sent");
    *issuer.claims.lock().unwrap() = claims("another");
    assert_eq!(mia.ask("GET", &back, &[]).status, 403);
    assert!(!mia.cookies.contains_key("dualplane-session"));
    // The right one.
    *issuer.claims.lock().unwrap() = claims(&asked["nonce"]);
    let signed = mia.ask("GET", &back, &[]);
    assert_eq!((signed.status, signed.header("location")), (303, "/?q=vllm&each=true"), "{}", signed.text());
    assert!(mia.cookies.contains_key("dualplane-session") && !mia.cookies.contains_key("dualplane-login"));
    let sent = issuer.asked.lock().unwrap().iter().rev().find(|(p, _)| p == "/token").unwrap().1.clone();
    let form: BTreeMap<&str, String> =
        sent.split('&').map(|p| p.split_once('=').unwrap()).map(|(k, v)| (k, decode(v).unwrap())).collect();
    assert_eq!((form["code"].as_str(), form["grant_type"].as_str()), ("c de", "authorization_code"));
    let challenge = ring::digest::digest(&ring::digest::SHA256, form["code_verifier"].as_bytes());
    assert_eq!(B64.encode(challenge), asked["code_challenge"], "PKCE");
    assert!(!sent.contains("s3cr"), "the secret stands in a header");
    // They see what the cluster lets them, and the cookie changes nothing.
    let page = mia.ask("GET", "/?each=true", &[]);
    assert!(
        page.status == 200 && page.text().contains("oidc:mia") && page.text().contains("Sign out"),
        "{}",
        page.text()
    );
    assert!(page.text().contains("vllm-a") && !page.text().contains("vllm-b"));
    let cookie = format!("dualplane-session={}", mia.cookies["dualplane-session"]);
    let put = s.ask("PUT", "/v1/incidents/c", &[("cookie", &cookie)], &upload("c", "own"));
    assert_eq!(put.status, 403, "{}", put.text());
    // A stranger's session that was set before does not outlive signing in; one that was changed is none.
    let mut changed = cookie.clone();
    let last = changed.pop().unwrap();
    changed.push(if last == 'A' { 'B' } else { 'A' });
    for (bad, wanted) in [
        (changed.as_str(), 401),
        ("dualplane-session=", 401),
        (cookie.replace("-session", "-login").as_str(), 401),
    ] {
        assert_eq!(s.ask("GET", "/v1/incidents", &[("cookie", bad)], b"").status, wanted, "{bad}");
    }
    // A restart forgets nobody; no other site signs anybody out.
    let cookies = mia.cookies;
    drop(s);
    let s = serve(home.path(), &issuer);
    let mut mia = Browser { server: &s, cookies };
    assert_eq!(mia.ask("GET", "/", &[]).status, 200);
    for origin in [&[][..], &[("origin", "https://evil.example")], &[("origin", "null")]] {
        assert_eq!(mia.ask("POST", "/logout", origin).status, 403);
    }
    assert_eq!(mia.ask("GET", "/logout", &[]).status, 405);
    let copied = format!("dualplane-session={}", mia.cookies["dualplane-session"]);
    assert_eq!(s.ask("GET", "/v1/incidents", &[("cookie", &copied)], b"").status, 200);
    let out = mia.ask("POST", "/logout", &[("origin", PAGE)]);
    assert!(out.status == 200 && mia.cookies.is_empty(), "{}", out.text());
    assert_eq!(mia.ask("GET", "/", &[]).status, 303);
    // Whoever copied the session is signed out as well, also behind a restart.
    assert_eq!(s.ask("GET", "/v1/incidents", &[("cookie", &copied)], b"").status, 401);
    drop(s);
    let s = serve(home.path(), &issuer);
    assert_eq!(s.ask("GET", "/v1/incidents", &[("cookie", &copied)], b"").status, 401);
    // Programs are told to send a token, and no browser asks for a password where there is a page to sign in at.
    let bare = s.get("/v1/incidents");
    assert_eq!((bare.status, bare.header("www-authenticate")), (401, "Bearer realm=\"dualplane\""));
    let key = std::fs::metadata(home.path().join("session.key")).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&key.permissions()) & 0o777, 0o600);
}

#[test]
fn an_issuer_that_is_not_the_one_signs_nobody_in() {
    let (home, issuer) = (tempfile::tempdir().unwrap(), Issuer::start());
    // The same server under another name is another issuer.
    let other = Issuer {
        url: issuer.url.replace("127.0.0.1", "localhost"),
        signer: Mutex::new(Signer::new("x")),
        claims: Mutex::default(),
        asked: Mutex::default(),
    };
    let s = serve(home.path(), &other);
    let got = bearer(&s, &other.token(&other.of("root", &json!({}))), "GET", "/v1/incidents", b"");
    assert_eq!((got.status, got.header("retry-after")), (503, "5"));
    let page = s.ask("GET", "/login", &[], b"");
    assert!(page.status == 503 && page.text().contains("--oidc-issuer-url exactly so"), "{}", page.text());
}

#[test]
fn what_would_leave_the_network_open_is_refused_at_the_start() {
    let home = tempfile::tempdir().unwrap();
    for (args, why) in [
        (
            &["--oidc-issuer-url", "http://issuer.example", "--oidc-client-id", "c", "--kubernetes"][..],
            "is not https",
        ),
        (
            &[
                "--oidc-issuer-url",
                "https://i.example",
                "--oidc-client-id",
                "c",
                "--kubernetes",
                "--oidc-url",
                "http://page.example",
            ],
            "in the clear",
        ),
        (&["--oidc-issuer-url", "https://i.example", "--oidc-client-id", "c"], "--kubernetes"),
        (&["--oidc-issuer-url", "https://i.example", "--kubernetes"], "--oidc-client-id"),
        (&["--oidc-client-id", "c"], "--oidc-issuer-url"),
    ] {
        let config = home.path().join("kubeconfig");
        let text = "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: \"http://127.0.0.1:1\"}}]\n\
             users: [{name: u, user: {}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n";
        std::fs::write(&config, text).unwrap();
        let mut c = crate::harness::program();
        c.args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(home.path().join("data"))
            .args(args)
            .env("KUBECONFIG", config);
        let out = c.output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(!out.status.success() && said.contains(why), "{args:?}: {said}");
    }
}
