//! Who asks, and what they may see. Tokens lie hashed in a file that is read again when it changes; those of a cluster are known
//! by its API server ([`cluster`]), and people by an issuer of OpenID Connect ([`oidc`]).

pub mod cluster;
pub mod oidc;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Instant, SystemTime};

use base64::Engine as _;
use http::{HeaderMap, header};
use serde::Deserialize;

use self::cluster::Cluster;
use self::oidc::Oidc;
use crate::ended;
use crate::store::{Realm, Scope, Store};

/// Callers whose rate is remembered.
const MAX_CALLERS: usize = 10_000;
/// Requests a second of one address that gives no valid token.
const STRANGERS: u32 = 10;

/// What a token of the file may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Role {
    /// Send incidents and bundles.
    Upload,
    /// Read.
    Read,
    /// Both.
    Admin,
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Name of the token, or of the user in the cluster.
    pub name: String,
    /// What they may read.
    pub sees: Scope,
    /// Of where they may send.
    pub sends: Scope,
    /// They signed in on the page.
    pub by_session: bool,
}

impl Caller {
    /// Whoever asks on this machine, where there are no tokens.
    #[must_use]
    pub fn local() -> Self {
        Self { name: "local".to_owned(), sees: Scope::All, sends: Scope::All, by_session: false }
    }

    fn of(name: &str, role: Role, scope: &Scope) -> Self {
        let where_it = |may: bool| if may { scope.clone() } else { Scope::Some(Vec::new()) };
        Self {
            name: name.to_owned(),
            sees: where_it(role != Role::Upload),
            sends: where_it(role != Role::Read),
            by_session: false,
        }
    }

    /// They may read somewhere.
    #[must_use]
    pub fn reads(&self) -> bool {
        !self.sees.is_empty()
    }

    /// They may send somewhere.
    #[must_use]
    pub fn uploads(&self) -> bool {
        !self.sends.is_empty()
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    token: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    sha256: String,
    role: Role,
    namespaces: Option<Vec<String>>,
}

/// Tokens by their hash.
type Tokens = BTreeMap<String, Caller>;

/// `serving` is a namespace of any cluster, `prod/serving` of one, `prod/*` a whole cluster.
fn realm(word: &str) -> Result<Realm, String> {
    let some = |t: &str| Some(t.to_owned()).filter(|t| t != "*");
    let (cluster, namespace) = match word.split_once('/') {
        Some((c, n)) => (some(c), some(n)),
        None => (None, some(word)),
    };
    let empty = |t: &Option<String>| t.as_deref() == Some("");
    if empty(&cluster) || empty(&namespace) || word.matches('/').count() > 1 {
        return Err(format!("namespaces: {word:?} is none: write NAMESPACE, CLUSTER/NAMESPACE or CLUSTER/*"));
    }
    Ok(Realm { cluster, namespace })
}

fn parse(text: &str) -> Result<Tokens, String> {
    let file: File = toml::from_str(text).map_err(|e| e.to_string())?;
    let mut out = Tokens::new();
    for e in file.token {
        let hash = e.sha256.to_ascii_lowercase();
        if hash.len() != 64 || !hash.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(format!("token {:?}: sha256 must be 64 hex digits", e.name));
        }
        if e.name.is_empty() || e.name.ends_with(cluster::BEHIND) {
            return Err(format!(
                "token {:?}: a name is not empty and does not end in {}",
                e.name,
                cluster::BEHIND
            ));
        }
        let scope = match e.namespaces {
            None => Scope::All,
            Some(words) => Scope::Some(words.iter().map(|w| realm(w)).collect::<Result<_, _>>()?),
        };
        if out.insert(hash, Caller::of(&e.name, e.role, &scope)).is_some() {
            return Err(format!("token {:?}: another has the same sha256", e.name));
        }
    }
    if out.is_empty() {
        return Err("it holds no [[token]]".to_owned());
    }
    Ok(out)
}

/// SHA-256 in hex.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    hex(ring::digest::digest(&ring::digest::SHA256, bytes).as_ref())
}

/// Bytes in hex.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Tokens and rates.
#[derive(Debug)]
pub struct Auth {
    file: Option<PathBuf>,
    tokens: RwLock<Option<Arc<Tokens>>>,
    read_at: Mutex<Option<SystemTime>>,
    buckets: Mutex<BTreeMap<String, Bucket>>,
    rate: u32,
    cluster: Option<Cluster>,
    oidc: Option<Oidc>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    left: f64,
    at: Instant,
}

/// Why a caller is sent away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// No token, or one that nobody has.
    Unknown,
    /// Too many requests.
    TooFast,
    /// Without tokens only this machine's own names are answered.
    ForeignHost,
    /// The cluster does not say who they are.
    Away,
    /// The database does not say whether their session was ended.
    Store,
}

fn changed(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|m| m.modified()).ok()
}

impl Auth {
    /// Reads the tokens; without a file and a cluster everybody may do everything. Of whom an issuer knows the cluster says what they may.
    ///
    /// # Errors
    ///
    /// A sentence: the file cannot be read.
    pub fn open(
        file: Option<PathBuf>,
        rate: u32,
        cluster: Option<Cluster>,
        oidc: Option<Oidc>,
    ) -> Result<Self, String> {
        let auth = Self {
            tokens: RwLock::new(None),
            read_at: Mutex::new(None),
            buckets: Mutex::default(),
            rate,
            file,
            cluster,
            oidc,
        };
        auth.renew()?;
        Ok(auth)
    }

    /// Reads the file again if it changed; `true` where it did.
    ///
    /// # Errors
    ///
    /// A sentence: it cannot be read; the old tokens stay.
    pub fn renew(&self) -> Result<bool, String> {
        let Some(path) = &self.file else { return Ok(false) };
        let at = changed(path);
        let mut read_at = self.read_at.lock().unwrap_or_else(PoisonError::into_inner);
        if at.is_some() && at == *read_at {
            return Ok(false);
        }
        let failed = |why: String| format!("cannot read tokens from {}: {why}", path.display());
        let text = std::fs::read_to_string(path).map_err(|e| failed(e.to_string()))?;
        let tokens = parse(&text).map_err(failed)?;
        *self.tokens.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(tokens));
        *read_at = at;
        Ok(true)
    }

    /// Who asks.
    ///
    /// # Errors
    ///
    /// Where they are not known, or ask too often.
    pub async fn admit(
        &self,
        headers: &HeaderMap,
        from: IpAddr,
        store: &dyn Store,
    ) -> Result<Caller, Refusal> {
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner).clone();
        if tokens.is_none() && self.cluster.is_none() {
            let host = headers.get(header::HOST).and_then(|h| h.to_str().ok());
            // HTTP/2 has its authority in the URI, which the caller puts here.
            if !host.is_some_and(crate::config::is_local_host) {
                return Err(Refusal::ForeignHost);
            }
            return self.within_rate(Caller::local());
        }
        let token = token(headers);
        let hash = token.as_deref().map(|t| sha256(t.as_bytes()));
        // Looked up by its hash: the time that takes tells nothing of the token.
        let known = hash.as_ref().and_then(|h| tokens.as_ref()?.get(h).cloned());
        if let Some(caller) = known {
            return self.within_rate(caller);
        }
        let stranger = || self.stranger(from);
        let unknown = || if stranger() { Refusal::Unknown } else { Refusal::TooFast };
        let Some(cluster) = &self.cluster else { return Err(unknown()) };
        let of_issuer = match (&self.oidc, token.as_deref()) {
            (Some(oidc), None) => oidc.session(headers).map(|(user, session)| (user, Some(session))),
            (Some(oidc), Some(token)) if oidc.claims(token) => {
                let user = oidc.user(token).await.map_err(|_| Refusal::Away)?;
                Some((user.ok_or_else(unknown)?, None))
            }
            _ => None,
        };
        if let Some((user, session)) = of_issuer {
            let seen = cluster::person(&user);
            let caller = match cluster.remembered(&seen) {
                Some(known) => known,
                None if !stranger() => return Err(Refusal::TooFast),
                None => cluster.known(&user, seen).await.map_err(|_| Refusal::Away)?,
            };
            let mut caller = caller.ok_or_else(unknown)?;
            // A browser sends a cookie along with whatever a page of somebody else makes it ask: it changes nothing.
            if let Some(session) = session {
                // Asked for each request: it may have been ended a moment ago, at another replica.
                match ended::is_ended(store, &session).await {
                    Ok(false) => {}
                    Ok(true) => return Err(unknown()),
                    Err(_) => return Err(Refusal::Store),
                }
                caller.sends = Scope::Some(Vec::new());
                caller.by_session = true;
            }
            return self.within_rate(caller);
        }
        let (Some(token), Some(hash)) = (token, hash) else { return Err(unknown()) };
        let known = match cluster.remembered(&hash) {
            Some(known) => known,
            // Whoever it is: a cluster is not asked as often as somebody likes.
            None if !stranger() => return Err(Refusal::TooFast),
            None => cluster.ask(&token, hash).await.map_err(|_| Refusal::Away)?,
        };
        self.within_rate(known.ok_or_else(unknown)?)
    }

    /// Somebody who has not said who they are asks once more; `false`: too often.
    pub(crate) fn stranger(&self, from: IpAddr) -> bool {
        self.take(&format!("a {from}"), STRANGERS)
    }

    /// The issuer whose people are known.
    pub(crate) fn oidc(&self) -> Option<&Oidc> {
        self.oidc.as_ref()
    }

    fn within_rate(&self, caller: Caller) -> Result<Caller, Refusal> {
        let there = self.take(&format!("c {}", caller.name), self.rate);
        if there { Ok(caller) } else { Err(Refusal::TooFast) }
    }

    /// One request of this many a second; twice as many at once.
    fn take(&self, who: &str, rate: u32) -> bool {
        let rate = f64::from(rate);
        let mut all = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let full = |b: &Bucket| b.left + now.duration_since(b.at).as_secs_f64() * rate >= rate * 2.0;
        if all.len() >= MAX_CALLERS && !all.contains_key(who) {
            all.retain(|_, b| !full(b));
            // Nobody is forgotten who asks too often: whoever is new waits.
            if all.len() >= MAX_CALLERS {
                return false;
            }
        }
        let b = all.entry(who.to_owned()).or_insert(Bucket { left: rate * 2.0, at: now });
        b.left = (b.left + now.duration_since(b.at).as_secs_f64() * rate).min(rate * 2.0);
        b.at = now;
        let there = b.left >= 1.0;
        if there {
            b.left -= 1.0;
        }
        there
    }
}

/// `Bearer TOKEN`, or `Basic` with the token as password: what a browser asks people for.
fn token(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, rest) = value.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(rest.trim().to_owned());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let pair = base64::engine::general_purpose::STANDARD.decode(rest.trim()).ok()?;
    String::from_utf8(pair).ok()?.split_once(':').map(|(_, password)| password.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_mistakes_are_refused() {
        let hash = "a".repeat(64);
        for (text, why) in [
            ("", "no [[token]]"),
            ("[[token]]\nname='a'\nsha256='zz'\nrole='read'", "64 hex"),
            (&format!("[[token]]\nname='a'\nsha256='{hash}'\nrole='root'"), "unknown variant"),
            (&format!("[[token]]\nname='a@kubernetes'\nsha256='{hash}'\nrole='read'"), "does not end"),
            (&format!("[[token]]\nname='a'\nsha256='{hash}'\nrole='read'\nnamespace=['x']"), "unknown field"),
            (&format!("[[token]]\nname='a'\nsha256='{hash}'\nrole='read'\nnamespaces=['a/b/c']"), "is none"),
            (&format!("[[token]]\nname='a'\nsha256='{hash}'\nrole='read'\nnamespaces=['/b']"), "is none"),
        ] {
            let e = parse(text).unwrap_err();
            assert!(e.contains(why), "{text}: {e}");
        }
        let good =
            format!("[[token]]\nname='a'\nsha256='{hash}'\nrole='read'\nnamespaces=['x', 'p/y', 'q/*']");
        let tokens = parse(&good).unwrap();
        let scope = &tokens[&hash].sees;
        assert!(!tokens[&hash].uploads());
        assert!(scope.allows("any", "x") && scope.allows("p", "y") && scope.allows("q", "z"));
        assert!(!scope.allows("p", "z") && !scope.allows("any", "y"));
    }

    #[tokio::test]
    async fn who_asks_too_often_is_sent_away_alone() {
        let auth = Auth::open(None, 5, None, None).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, "localhost".parse().unwrap());
        let ip: IpAddr = [127, 0, 0, 1].into();
        let home = tempfile::tempdir().unwrap();
        let store = crate::store::sqlite::Sqlite::open(&home.path().join("x.db")).unwrap();
        let mut admitted = 0;
        for _ in 0..50 {
            admitted += usize::from(auth.admit(&headers, ip, &store).await.is_ok());
        }
        assert!((10..20).contains(&admitted), "{admitted}");
        assert!(auth.take("c somebody else", 5));
        headers.insert(header::HOST, "evil.example".parse().unwrap());
        assert_eq!(auth.admit(&headers, ip, &store).await.unwrap_err(), Refusal::ForeignHost);
    }
}
