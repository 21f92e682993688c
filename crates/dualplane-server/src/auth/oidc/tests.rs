//! Tokens that are good, and each way to forge one.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use dualplane_kube::review::User;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use serde::Deserialize;
use serde_json::{Value, json};

use super::crypto::Jwk;
use super::token::{Names, Wrong, user};
use crate::app::now;

const ISSUER: &str = "https://issuer.example";
const CLIENT: &str = "dualplane";

struct Signer {
    pair: EcdsaKeyPair,
    jwk: Value,
}

impl Signer {
    fn new(kid: &str) -> Self {
        let random = SystemRandom::new();
        let alg = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let der = EcdsaKeyPair::generate_pkcs8(alg, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(alg, der.as_ref(), &random).unwrap();
        let point = pair.public_key().as_ref().to_vec();
        let (x, y) = (B64.encode(&point[1..33]), B64.encode(&point[33..]));
        let jwk = json!({"kty": "EC", "crv": "P-256", "kid": kid, "use": "sig", "x": x, "y": y});
        Self { pair, jwk }
    }

    fn sign(&self, head: &Value, claims: &Value) -> String {
        let message = message(head, claims);
        let signed = self.pair.sign(&SystemRandom::new(), message.as_bytes()).unwrap();
        format!("{message}.{}", B64.encode(signed))
    }
}

fn message(head: &Value, claims: &Value) -> String {
    format!("{}.{}", B64.encode(head.to_string()), B64.encode(claims.to_string()))
}

fn seconds(from_now: i64) -> i64 {
    now().ms() / 1000 + from_now
}

fn names() -> Names {
    Names {
        username_claim: "sub".to_owned(),
        username_prefix: "oidc:".to_owned(),
        groups_claim: "groups".to_owned(),
        groups_prefix: String::new(),
    }
}

fn claims() -> Value {
    json!({"iss": ISSUER, "aud": CLIENT, "sub": "mia", "exp": seconds(300), "iat": seconds(0), "nonce": "n", "groups": ["sre"]})
}

fn with(key: &str, value: Value) -> Value {
    let mut out = claims();
    out[key] = value;
    out
}

fn without(key: &str) -> Value {
    let mut out = claims();
    out.as_object_mut().unwrap().remove(key);
    out
}

fn keys(all: &[&Value]) -> Vec<Jwk> {
    all.iter().map(|k| Jwk::deserialize(*k).unwrap()).collect()
}

fn ask(token: &str, keys: &[Jwk], nonce: Option<&str>) -> Result<User, Wrong> {
    user(token, keys, (ISSUER, CLIENT), &names(), nonce)
}

fn head() -> Value {
    json!({"alg": "ES256", "kid": "a", "typ": "JWT"})
}

#[test]
fn a_good_token_names_somebody() {
    let signer = Signer::new("a");
    let known = keys(&[&signer.jwk]);
    let got = ask(&signer.sign(&head(), &claims()), &known, Some("n")).unwrap();
    assert_eq!(got.username, "oidc:mia");
    assert_eq!(got.groups, ["sre", "system:authenticated"]);
    for good in [
        with("aud", json!(["other", CLIENT])),
        with("azp", json!(CLIENT)),
        with("nbf", json!(seconds(-5))),
        // Clocks differ a little.
        with("exp", json!(seconds(-5))),
        with("nbf", json!(seconds(5))),
    ] {
        assert!(ask(&signer.sign(&head(), &good), &known, None).is_ok(), "{good}");
    }
    // One key needs no name.
    let bare = json!({"alg": "ES256"});
    assert!(ask(&signer.sign(&bare, &claims()), &known, None).is_ok());
    assert_eq!(
        ask(&signer.sign(&head(), &with("groups", json!("one"))), &known, None).unwrap().groups[0],
        "one"
    );
    assert_eq!(ask(&signer.sign(&head(), &without("groups")), &known, None).unwrap().groups.len(), 1);
}

#[test]
fn forged_tokens_name_nobody() {
    let (signer, thief) = (Signer::new("a"), Signer::new("a"));
    let known = keys(&[&signer.jwk]);
    let refused = |what: &str, token: &str| {
        assert_eq!(ask(token, &known, Some("n")), Err(Wrong::Token), "{what}: {token}");
    };
    for (what, claims) in [
        ("another issuer", with("iss", json!("https://evil.example"))),
        ("an issuer with a slash more", with("iss", json!(format!("{ISSUER}/")))),
        ("issuers, of which one is ours", with("iss", json!([ISSUER, "https://evil.example"]))),
        ("no issuer", without("iss")),
        ("another client", with("aud", json!("other"))),
        ("other clients", with("aud", json!(["other", "third"]))),
        ("no client", without("aud")),
        ("an empty list of clients", with("aud", json!([]))),
        ("made for us by another client", with("azp", json!("other"))),
        ("over", with("exp", json!(seconds(-120)))),
        ("never over", without("exp")),
        ("over at no time", with("exp", json!("tomorrow"))),
        ("not yet", with("nbf", json!(seconds(600)))),
        ("not before no time", with("nbf", json!("soon"))),
        ("nobody", without("sub")),
        ("an empty name", with("sub", json!(""))),
        ("a name of two lines", with("sub", json!("a\nb"))),
        ("a name that is a number", with("sub", json!(7))),
        ("a long name", with("sub", json!("a".repeat(300)))),
        ("groups that are none", with("groups", json!({"sre": true}))),
        ("a group that is a number", with("groups", json!(["sre", 7]))),
        ("too many groups", with("groups", json!(vec!["g"; 501]))),
        ("of another login", with("nonce", json!("other"))),
        ("of no login", without("nonce")),
        ("a logout", with("events", json!({"http://schemas.openid.net/event/backchannel-logout": {}}))),
    ] {
        refused(what, &signer.sign(&head(), &claims));
    }
    for (what, head) in [
        ("an access token", json!({"alg": "ES256", "kid": "a", "typ": "at+jwt"})),
        ("a logout token", json!({"alg": "ES256", "kid": "a", "typ": "logout+jwt"})),
        ("what must be understood", json!({"alg": "ES256", "kid": "a", "crit": ["exp"]})),
        ("no signature", json!({"alg": "none", "kid": "a"})),
        ("no signature, in other letters", json!({"alg": "nOnE", "kid": "a"})),
        ("no way to sign", json!({"kid": "a"})),
    ] {
        refused(what, &signer.sign(&head, &claims()));
        refused(what, &format!("{}.", message(&head, &claims())));
    }
    let good = signer.sign(&head(), &claims());
    let (start, signature) = good.rsplit_once('.').unwrap();
    refused("signed by somebody else", &thief.sign(&head(), &claims()));
    // A key that comes with the token is nobody's.
    let own = json!({"alg": "ES256", "kid": "a", "jwk": thief.jwk, "jku": "https://evil.example/keys"});
    refused("a key of its own", &thief.sign(&own, &claims()));
    refused("no signature", &format!("{start}."));
    refused("a signature of zeros", &format!("{start}.{}", B64.encode([0_u8; 64])));
    refused("half a signature", &format!("{start}.{}", signature.get(..20).unwrap()));
    refused("another's claims", &format!("{}.{signature}", message(&head(), &with("sub", json!("root")))));
    for odd in ["", ".", "..", "a.b", "a.b.c", "a.b.c.d", &"a".repeat(100_000), "ä.ö.ü"] {
        assert_eq!(ask(odd, &known, None), Err(Wrong::Token), "{odd:.20}");
    }
    // Which key is meant must be clear, and it must be one for this.
    assert_eq!(
        ask(&signer.sign(&json!({"alg": "ES256", "kid": "b"}), &claims()), &known, None),
        Err(Wrong::Key)
    );
    let other = Signer::new("b");
    let two = keys(&[&signer.jwk, &other.jwk]);
    assert_eq!(ask(&signer.sign(&json!({"alg": "ES256"}), &claims()), &two, None), Err(Wrong::Key));
    assert!(ask(&good, &two, None).is_ok());
    for (key, value) in [("use", "enc"), ("alg", "ES384"), ("alg", "RS256")] {
        let mut jwk = signer.jwk.clone();
        jwk[key] = json!(value);
        assert_eq!(ask(&good, &keys(&[&jwk]), None), Err(Wrong::Key), "{key} {value}");
    }
}

#[test]
fn a_public_key_is_no_shared_secret() {
    let signer = Signer::new("a");
    let rsa: Value = serde_json::from_str(include_str!("rsa.json")).unwrap();
    let known = keys(&[&signer.jwk, &rsa["jwk"]]);
    let secrets = [
        ("a", signer.pair.public_key().as_ref().to_vec()),
        ("a", signer.jwk.to_string().into_bytes()),
        ("a", Vec::new()),
        ("rsa", rsa["pem"].as_str().unwrap().as_bytes().to_vec()),
        ("rsa", B64.decode(rsa["jwk"]["n"].as_str().unwrap()).unwrap()),
    ];
    for (kid, secret) in secrets {
        let message = message(&json!({"alg": "HS256", "kid": kid, "typ": "JWT"}), &claims());
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &secret);
        let signed = ring::hmac::sign(&key, message.as_bytes());
        let token = format!("{message}.{}", B64.encode(signed));
        assert_eq!(ask(&token, &known, None), Err(Wrong::Token), "{kid}");
        // Nor where the issuer itself names a secret.
        let shared = json!({"kty": "oct", "kid": kid, "k": B64.encode(&secret)});
        assert_eq!(ask(&token, &keys(&[&shared]), None), Err(Wrong::Token), "{kid}");
    }
}

#[test]
fn each_allowed_way_to_sign_is_checked() {
    let rsa: Value = serde_json::from_str(include_str!("rsa.json")).unwrap();
    let known = keys(&[&rsa["jwk"]]);
    let tokens = rsa["tokens"].as_object().unwrap();
    assert_eq!(tokens.len(), 6);
    for (alg, token) in tokens {
        let token = token.as_str().unwrap();
        assert_eq!(ask(token, &known, None).unwrap().username, "oidc:mia", "{alg}");
        let (start, signature) = token.rsplit_once('.').unwrap();
        for (other, signed) in tokens {
            let foreign = signed.as_str().unwrap().rsplit_once('.').unwrap().1;
            let got = ask(&format!("{start}.{foreign}"), &known, None);
            assert_eq!(got.is_ok(), alg == other && foreign == signature, "{alg} {other}");
        }
    }
    let der = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    let pair = Ed25519KeyPair::from_pkcs8(der.as_ref()).unwrap();
    let jwk =
        json!({"kty": "OKP", "crv": "Ed25519", "kid": "e", "x": B64.encode(pair.public_key().as_ref())});
    let message = message(&json!({"alg": "EdDSA", "kid": "e"}), &claims());
    let token = format!("{message}.{}", B64.encode(pair.sign(message.as_bytes())));
    assert!(ask(&token, &keys(&[&jwk]), None).is_ok());
    assert_eq!(
        ask(&token.replace(&message, &format!("{message}x")), &keys(&[&jwk]), None),
        Err(Wrong::Token)
    );
}

#[test]
fn no_issuer_makes_an_administrator_of_the_cluster() {
    let signer = Signer::new("a");
    let known = keys(&[&signer.jwk]);
    let groups = signer.sign(&head(), &with("groups", json!(["system:masters", "sre", "", "a\nb"])));
    let got = ask(&groups, &known, None).unwrap();
    assert_eq!(got.groups, ["sre", "system:authenticated"]);
    let bare = Names { username_prefix: String::new(), ..names() };
    let named = |claims: &Value, names: &Names| {
        user(&signer.sign(&head(), claims), &known, (ISSUER, CLIENT), names, None)
    };
    for name in ["system:admin", "system:serviceaccount:kube-system:default"] {
        assert_eq!(named(&with("sub", json!(name)), &bare), Err(Wrong::Token));
    }
    let split = Names { username_prefix: "system".to_owned(), groups_prefix: "sys".to_owned(), ..names() };
    assert_eq!(named(&with("sub", json!(":admin")), &split), Err(Wrong::Token));
    assert_eq!(named(&with("groups", json!(["tem:masters"])), &split).unwrap().groups.len(), 1);
    // An address that nobody has shown to be theirs.
    let mail = Names { username_claim: "email".to_owned(), ..bare };
    let mut claims = with("email", json!("mia@example.com"));
    assert_eq!(named(&claims, &mail).unwrap().username, "mia@example.com");
    for verified in [json!(false), json!("true"), Value::Null] {
        claims["email_verified"] = verified;
        assert_eq!(named(&claims, &mail), Err(Wrong::Token));
    }
    claims["email_verified"] = json!(true);
    assert!(named(&claims, &mail).is_ok());
}
