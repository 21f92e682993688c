//! Whose ID token it is (OpenID Connect Core 3.1.3.7): signed by the issuer, made for this client, valid now. From its claims comes a
//! user as the API server of a cluster would make it of the same token.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use dualplane_kube::review::User;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::crypto::{Jwk, allowed};
use crate::app::now;

/// Seconds by which clocks may differ.
const LEEWAY: f64 = 30.0;
/// Bytes of a token: some issuers name hundreds of groups.
pub(super) const LONGEST: usize = 16 << 10;
/// Characters of a user or a group, and groups of a user.
const NAME: usize = 256;
const GROUPS: usize = 500;
/// Names that a cluster gives itself: no issuer makes an administrator or a service account of somebody.
const RESERVED: &str = "system:";

/// Which claims name somebody, as the flags of an API server say it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// Claim of the user.
    pub username_claim: String,
    /// Stands before the user.
    pub username_prefix: String,
    /// Claim of the groups.
    pub groups_claim: String,
    /// Stands before each group.
    pub groups_prefix: String,
}

#[derive(Debug, Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    crit: Option<Value>,
}

/// What is looked at, beside the claims that [`Names`] chooses. What has another type is no claim, and the token none.
#[derive(Debug, Deserialize)]
struct Claims {
    iss: String,
    aud: Audience,
    sub: String,
    exp: f64,
    nbf: Option<f64>,
    azp: Option<String>,
    nonce: Option<String>,
    events: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Some(Vec<String>),
}

/// A token's three parts; nothing of it is believed yet.
struct Parts<'a> {
    header: &'a str,
    claims: &'a str,
    message: &'a str,
    signature: &'a str,
}

fn parts(token: &str) -> Option<Parts<'_>> {
    if token.len() > LONGEST {
        return None;
    }
    let (message, signature) = token.rsplit_once('.')?;
    let (header, claims) = message.split_once('.')?;
    (!claims.contains('.')).then_some(Parts { header, claims, message, signature })
}

fn read<T: DeserializeOwned>(part: &str) -> Option<T> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

/// A token says that it is of this issuer: nothing of that is believed yet.
pub(super) fn claims_to_be_of(token: &str, issuer: &str) -> bool {
    #[derive(Deserialize)]
    struct Iss {
        iss: String,
    }
    parts(token).and_then(|p| read::<Iss>(p.claims)).is_some_and(|c| c.iss == issuer)
}

/// Why a token names nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrong {
    /// The key that it means is not known: the issuer may have a new one.
    Key,
    /// Nothing helps.
    Token,
}

/// Whose token it is. `nonce`: what the login that asked for it sent along.
pub(super) fn user(
    token: &str,
    keys: &[Jwk],
    (issuer, client): (&str, &str),
    names: &Names,
    nonce: Option<&str>,
) -> Result<User, Wrong> {
    let parts = parts(token).ok_or(Wrong::Token)?;
    let header: Header = read(parts.header).ok_or(Wrong::Token)?;
    // An access token or a token of a logout is made for the same client and is none of a person who signs in. What must be
    // understood (`crit`) is nothing that is known here.
    let is_id = header.typ.as_ref().is_none_or(|t| t.eq_ignore_ascii_case("JWT"));
    if !allowed(&header.alg) || !is_id || header.crit.is_some() {
        return Err(Wrong::Token);
    }
    let mut fit = keys.iter().filter(|k| k.fits(&header.alg, header.kid.as_deref()));
    // Which of several is meant is not guessed.
    let (Some(key), None) = (fit.next(), fit.next()) else { return Err(Wrong::Key) };
    let signature = URL_SAFE_NO_PAD.decode(parts.signature).map_err(|_| Wrong::Token)?;
    if !key.signed(&header.alg, parts.message.as_bytes(), &signature) {
        return Err(Wrong::Token);
    }
    let claims: Claims = read(parts.claims).ok_or(Wrong::Token)?;
    let now = now().ms() as f64 / 1000.0;
    let valid = claims.exp > now - LEEWAY && claims.nbf.is_none_or(|t| t < now + LEEWAY);
    let for_us = match &claims.aud {
        Audience::One(one) => one == client,
        Audience::Some(all) => all.iter().any(|a| a == client),
    };
    let ours = claims.iss == issuer && for_us && claims.azp.as_deref().is_none_or(|p| p == client);
    let asked = nonce.is_none_or(|n| claims.nonce.as_deref() == Some(n));
    // Tokens of a logout from before they had a type of their own have events.
    if !valid || !ours || !asked || claims.sub.is_empty() || claims.events.is_some() {
        return Err(Wrong::Token);
    }
    read(parts.claims).and_then(|all| named(&all, names)).ok_or(Wrong::Token)
}

fn text(value: &str) -> bool {
    !value.is_empty() && value.chars().count() <= NAME && !value.chars().any(char::is_control)
}

fn named(claims: &Map<String, Value>, names: &Names) -> Option<User> {
    let name = claims.get(&names.username_claim)?.as_str().filter(|n| text(n))?;
    // Whoever may choose an address without showing that it is theirs could be anybody.
    if names.username_claim == "email"
        && claims.get("email_verified").is_some_and(|v| *v != Value::Bool(true))
    {
        return None;
    }
    let username = format!("{}{name}", names.username_prefix);
    if username.starts_with(RESERVED) {
        return None;
    }
    let said: Vec<&str> = match claims.get(&names.groups_claim) {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(all)) => all.iter().map(Value::as_str).collect::<Option<_>>()?,
        Some(_) => return None,
    };
    if said.len() > GROUPS {
        return None;
    }
    let mut groups: Vec<String> = said
        .into_iter()
        .filter(|g| text(g))
        .map(|g| format!("{}{g}", names.groups_prefix))
        .filter(|g| !g.starts_with(RESERVED))
        .collect();
    // What an API server adds for everybody whom it knows.
    groups.push("system:authenticated".to_owned());
    Some(User { username, groups, ..User::default() })
}
