//! Signing in on the page: authorization code with PKCE (RFC 7636). Whatever the way back needs lies sealed in a cookie of the browser
//! that began, so no other browser can end it, and the server remembers nothing.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use dualplane_client as client;
use dualplane_incidents::{decode, encode};
use dualplane_kube::review::User;
use http::{HeaderMap, Uri, header};
use serde::{Deserialize, Serialize};

use super::issuer::{Code, safe};
use super::session::{Cookies, Use, random};
use super::{Oidc, Options};
use crate::ended::Session;

/// Seconds that somebody has to sign in at the issuer.
const WHILE: i64 = 600;
/// Seconds of a session. Then the issuer is asked again, which somebody who is still known there does not notice; whoever left it
/// keeps what they see no longer than this.
const SESSION: i64 = 3600;
/// Bytes of an address to go back to.
const BACK: usize = 1024;
/// Scopes that tell a name, an address and groups, where the issuer has them.
const SCOPES: [&str; 3] = ["profile", "email", "groups"];

/// A login that is under way.
#[derive(Debug, Serialize, Deserialize)]
struct Way {
    state: String,
    nonce: String,
    verifier: String,
    back: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Who {
    user: String,
    groups: Vec<String>,
}

/// Where the browser goes to sign in.
#[derive(Debug)]
pub struct Begun {
    /// The issuer.
    pub to: String,
    /// A `Set-Cookie`.
    pub cookie: String,
}

/// Somebody has signed in.
#[derive(Debug)]
pub struct Signed {
    /// Who, for the log.
    pub who: String,
    /// Where they wanted to go.
    pub back: String,
    /// Each a `Set-Cookie`.
    pub cookies: [String; 2],
}

/// Why nobody signs in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// The browser did not begin it, or too long ago.
    #[error("this sign-in did not begin in this browser, or more than 10 minutes ago: begin again")]
    Foreign,
    /// The issuer says no.
    #[error("the issuer did not sign you in: {0}")]
    Refused(String),
    /// The issuer does not answer, or not what it should.
    #[error("the issuer cannot be asked now: {0}")]
    Away(String),
    /// Its token is not one.
    #[error(
        "the issuer's token was refused: it is not for this client, names nobody (`--oidc-username-claim`), its e-mail address is not \
         verified, or a clock is wrong"
    )]
    Token,
    /// There is no such way.
    #[error("nobody signs in here: this server has no --oidc-url")]
    None,
}

/// The way of the page.
#[derive(Debug)]
pub(super) struct Login {
    url: String,
    cookies: Cookies,
}

impl Login {
    pub(super) fn open(url: &str, options: &Options) -> Result<Self, String> {
        let url = url.trim_end_matches('/');
        let uri: Uri = url.parse().map_err(|_| format!("--oidc-url: {url:?} is no address"))?;
        let bare = uri.path() == "/" && uri.query().is_none();
        let tls = match (uri.scheme_str(), uri.host()) {
            (Some("https"), Some(_)) if bare => true,
            (Some("http"), Some(host)) if bare && client::is_here(host) => false,
            _ => {
                return Err(format!(
                    "--oidc-url: {url:?} is not https://HOST: sessions would cross the network in the clear"
                ));
            }
        };
        // As browsers name an origin: without the port that goes without saying.
        let url = url.strip_suffix(if tls { ":443" } else { ":80" }).unwrap_or(url);
        let of = format!("{}\n{}", options.issuer, options.client);
        Ok(Self { url: url.to_owned(), cookies: Cookies::open(&options.session_key, of, tls)? })
    }

    fn redirect(&self) -> String {
        format!("{}/login/callback", self.url)
    }

    pub(super) fn who(&self, headers: &HeaderMap) -> Option<(User, Session)> {
        let (who, session): (Who, _) = self.cookies.opened(Use::Session, headers)?;
        Some((User { username: who.user, groups: who.groups, ..User::default() }, session))
    }
}

/// A place of this server and no other: browsers read `//` and `/\` as the begin of a host.
fn here(path: &str) -> bool {
    let inside = path.starts_with('/') && !path.starts_with("//") && !path.contains('\\');
    let plain = path.len() <= BACK && path.bytes().all(|b| b.is_ascii_graphic());
    inside && plain && !path.starts_with("/login")
}

/// The one value of a key of a query.
fn value(query: &str, key: &str) -> Option<String> {
    let mut found = query.split('&').filter_map(|p| p.split_once('=')).filter(|(k, _)| *k == key);
    let first = found.next().and_then(|(_, v)| decode(v));
    // Which of two is meant is not guessed.
    if found.next().is_some() { None } else { first }
}

impl Oidc {
    /// Begins to sign somebody in, who goes to the page of this query's `to` afterwards.
    ///
    /// # Errors
    ///
    /// See [`LoginError`].
    pub async fn begin(&self, query: &str) -> Result<Begun, LoginError> {
        let login = self.login.as_ref().ok_or(LoginError::None)?;
        let known = self.known(false).await.map_err(LoginError::Away)?;
        let [state, nonce, verifier] = [random(), random(), random()].map(|r| r.map_err(LoginError::Away));
        let back = value(query, "to").filter(|t| here(t)).unwrap_or_else(|| "/".to_owned());
        let way = Way { state: state?, nonce: nonce?, verifier: verifier?, back };
        let challenge = ring::digest::digest(&ring::digest::SHA256, way.verifier.as_bytes());
        let has = |s: &&str| known.provider.scopes_supported.iter().any(|k| k == s);
        let scopes: Vec<&str> = std::iter::once("openid").chain(SCOPES.into_iter().filter(has)).collect();
        let at = &known.provider.authorization_endpoint;
        if safe(at).is_err() {
            return Err(LoginError::Away(format!("it names {at:?} as the page to sign in at")));
        }
        let mut to = format!("{at}{}response_type=code", if at.contains('?') { '&' } else { '?' });
        for (key, value) in [
            ("client_id", self.issuer.client.as_str()),
            ("redirect_uri", login.redirect().as_str()),
            ("scope", scopes.join(" ").as_str()),
            ("state", way.state.as_str()),
            ("nonce", way.nonce.as_str()),
            ("code_challenge", URL_SAFE_NO_PAD.encode(challenge).as_str()),
            ("code_challenge_method", "S256"),
        ] {
            to.push_str(&format!("&{key}={}", encode(value)));
        }
        let cookie = login.cookies.set(Use::Login, &way, WHILE).map_err(LoginError::Away)?;
        Ok(Begun { to, cookie })
    }

    /// The issuer has sent the browser back with this query.
    ///
    /// # Errors
    ///
    /// See [`LoginError`].
    pub async fn end(&self, query: &str, headers: &HeaderMap) -> Result<Signed, LoginError> {
        let login = self.login.as_ref().ok_or(LoginError::None)?;
        let way: Way = login.cookies.get(Use::Login, headers).ok_or(LoginError::Foreign)?;
        if value(query, "state").is_none_or(|s| s != way.state) {
            return Err(LoginError::Foreign);
        }
        // Another issuer's answer is not for this one (RFC 9207).
        if query.split('&').any(|p| p.starts_with("iss="))
            && value(query, "iss").is_none_or(|i| i != self.issuer.url)
        {
            return Err(LoginError::Foreign);
        }
        if let Some(why) = value(query, "error") {
            let more = value(query, "error_description").unwrap_or_default();
            let said: String =
                format!("{why} {more}").chars().filter(|c| !c.is_control()).take(200).collect();
            return Err(LoginError::Refused(said.trim().to_owned()));
        }
        let code = value(query, "code").ok_or(LoginError::Foreign)?;
        let known = self.known(false).await.map_err(LoginError::Away)?;
        let issuer = self.issuer.clone();
        let (verifier, redirect) = (way.verifier, login.redirect());
        let asked = tokio::task::spawn_blocking(move || {
            let code = Code { code: &code, verifier: &verifier, redirect: &redirect };
            issuer.exchange(&known.provider, &code)
        });
        let token = asked.await.map_err(|e| e.to_string()).flatten().map_err(LoginError::Away)?;
        let user = self.checked(&token, Some(&way.nonce)).await.map_err(LoginError::Away)?;
        let user = user.ok_or(LoginError::Token)?;
        let who = Who { user: user.username, groups: user.groups };
        // Made anew whatever the browser had before.
        let session = login.cookies.set(Use::Session, &who, SESSION).map_err(LoginError::Refused)?;
        Ok(Signed { who: who.user, back: way.back, cookies: [session, login.cookies.end(Use::Login)] })
    }

    /// A `Set-Cookie` that ends the session, and the session that is to end, where the page itself asks for it: no other site signs
    /// somebody out.
    #[must_use]
    pub fn sign_out(&self, headers: &HeaderMap) -> Option<(String, Option<Session>)> {
        let login = self.login.as_ref()?;
        let origin = headers.get(header::ORIGIN).and_then(|o| o.to_str().ok());
        let session = || login.cookies.opened::<Who>(Use::Session, headers).map(|(_, session)| session);
        (origin == Some(login.url.as_str())).then(|| (login.cookies.end(Use::Session), session()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who signs out is known by the page's origin, in which browsers leave out the port that goes without saying.
    #[test]
    fn an_address_is_named_as_browsers_name_its_origin() {
        let home = tempfile::tempdir().unwrap();
        let names = super::super::Names {
            username_claim: "sub".into(),
            username_prefix: String::new(),
            groups_claim: "groups".into(),
            groups_prefix: String::new(),
        };
        let options = Options {
            issuer: "https://issuer.example".into(),
            client: "fleet".into(),
            secret: None,
            ca: None,
            names,
            url: None,
            session_key: home.path().join("session.key"),
        };
        for (given, origin) in [
            ("https://fleet.example/", "https://fleet.example"),
            ("https://fleet.example:443", "https://fleet.example"),
            ("https://fleet.example:8443", "https://fleet.example:8443"),
            ("http://localhost:80", "http://localhost"),
            ("http://localhost:8080", "http://localhost:8080"),
        ] {
            assert_eq!(Login::open(given, &options).unwrap().url, origin);
        }
        assert!(Login::open("http://fleet.example", &options).unwrap_err().contains("https"));
    }

    #[test]
    fn one_goes_back_to_a_page_of_this_server_alone() {
        for good in ["/", "/?class=cuda_oom_runtime&q=a%20b", "/incidents/a"] {
            assert!(here(good), "{good}");
        }
        for bad in [
            "",
            "incidents",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "/a\r\nb",
            "/login",
            "/ä",
        ] {
            assert!(!here(bad), "{bad}");
        }
        assert!(!here(&format!("/{}", "a".repeat(BACK))));
        assert_eq!(value("a=1&b=x%26y", "b").as_deref(), Some("x&y"));
        assert_eq!(value("a=1&a=2", "a"), None);
    }
}
