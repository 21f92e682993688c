//! People whom an issuer of OpenID Connect knows: by its ID token as a bearer, or by signing in on the page. What they may do the
//! API server of the cluster says, asked by their name and groups as it would make them of the same token.

mod crypto;
mod issuer;
mod login;
mod session;
mod token;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dualplane_kube::review::User;
use http::HeaderMap;
use tokio::sync::Mutex;

use crate::ended::Session;

use self::crypto::Jwk;
use self::issuer::{Issuer, Provider};
use self::login::Login;
use self::token::Wrong;

pub use self::login::{Begun, LoginError, Signed};
pub use self::token::Names;

/// After so long the keys are asked for again: one that was taken back ends.
const FRESH: Duration = Duration::from_secs(3600);
/// So long they hold while the issuer does not answer.
const STALE: Duration = Duration::from_secs(24 * 3600);
/// Between two questions: whoever names keys that nobody has asks the issuer no more often.
const PAUSE: Duration = Duration::from_secs(10);

/// What the operator says of an issuer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Its address, exactly as it stands in its tokens.
    pub issuer: String,
    /// For whom tokens must be.
    pub client: String,
    /// A file with the secret of the client; without one it is a public client.
    pub secret: Option<PathBuf>,
    /// Certificates that it is known by.
    pub ca: Option<PathBuf>,
    /// Which claims name somebody.
    pub names: Names,
    /// Where people reach this server; without it nobody signs in on the page.
    pub url: Option<String>,
    /// The key of sessions.
    pub session_key: PathBuf,
}

#[derive(Debug, Clone)]
struct Known {
    provider: Provider,
    keys: Vec<Jwk>,
}

#[derive(Debug, Default)]
struct Held {
    known: Option<(Instant, Arc<Known>)>,
    asked: Option<Instant>,
    /// Why the last question was not answered.
    away: String,
}

/// An issuer whose people are known.
#[derive(Debug)]
pub struct Oidc {
    issuer: Issuer,
    names: Names,
    held: Mutex<Held>,
    login: Option<Login>,
}

impl Oidc {
    /// Of this issuer, which is asked when somebody comes.
    ///
    /// # Errors
    ///
    /// A sentence: an address, a certificate or the key of sessions cannot be used.
    pub fn open(options: &Options) -> Result<Self, String> {
        let (client, secret) = (options.client.clone(), options.secret.clone());
        let issuer = Issuer::new(options.issuer.clone(), client, secret, options.ca.as_deref())?;
        let login = options.url.as_ref().map(|url| Login::open(url, options)).transpose()?;
        Ok(Self { issuer, names: options.names.clone(), held: Mutex::default(), login })
    }

    /// A token says that it is of this issuer.
    pub(super) fn claims(&self, token: &str) -> bool {
        token::claims_to_be_of(token, &self.issuer.url)
    }

    /// Whose token it is; `None`: nobody's.
    ///
    /// # Errors
    ///
    /// A sentence: the issuer never answered.
    pub(super) async fn user(&self, token: &str) -> Result<Option<User>, String> {
        self.checked(token, None).await
    }

    async fn checked(&self, token: &str, nonce: Option<&str>) -> Result<Option<User>, String> {
        let of = (self.issuer.url.as_str(), self.issuer.client.as_str());
        let known = self.known(false).await?;
        match token::user(token, &known.keys, of, &self.names, nonce) {
            Ok(user) => Ok(Some(user)),
            Err(Wrong::Token) => Ok(None),
            // It may have begun to sign with a new one.
            Err(Wrong::Key) => {
                let known = self.known(true).await?;
                Ok(token::user(token, &known.keys, of, &self.names, nonce).ok())
            }
        }
    }

    /// What the issuer says, of a short time ago. `anew`: it is asked, unless it was just now.
    async fn known(&self, anew: bool) -> Result<Arc<Known>, String> {
        let mut held = self.held.lock().await;
        let age = held.known.as_ref().map(|(at, _)| at.elapsed());
        let ask = anew || age.is_none_or(|a| a > FRESH);
        if ask && held.asked.is_none_or(|at| at.elapsed() > PAUSE) {
            held.asked = Some(Instant::now());
            let issuer = self.issuer.clone();
            let answer = tokio::task::spawn_blocking(move || {
                let provider = issuer.provider()?;
                let keys = issuer.keys(&provider)?;
                Ok::<_, String>(Known { provider, keys })
            });
            match answer.await.map_err(|e| e.to_string()).flatten() {
                Ok(known) => held.known = Some((Instant::now(), Arc::new(known))),
                Err(why) => held.away = why,
            }
        }
        match &held.known {
            Some((at, known)) if at.elapsed() < STALE => Ok(Arc::clone(known)),
            _ => Err(held.away.clone()),
        }
    }

    /// Who signed in on the page, by the cookie.
    pub(super) fn session(&self, headers: &HeaderMap) -> Option<(User, Session)> {
        self.login.as_ref()?.who(headers)
    }

    /// People can sign in on the page.
    #[must_use]
    pub fn signs_in(&self) -> bool {
        self.login.is_some()
    }
}

#[cfg(test)]
mod tests;
