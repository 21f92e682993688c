//! Tokens of a Kubernetes cluster: its API server says whose they are and what these may do. A caller sees the namespaces in
//! which it may get pods, and sends of those in which it may `create` the resource `incidents` of the group `dualplane.dev`, which
//! is a word for roles and nothing else. Answers are kept for a minute.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use dualplane_kube::api::Api;
use dualplane_kube::review::{self, Deed, User};
use futures_util::future::BoxFuture;
use futures_util::{StreamExt, TryStreamExt};

use super::Caller;
use crate::store::{self, Realm, Scope, Store};

/// For how long an answer holds: what is taken from somebody ends within this.
const KEPT: Duration = Duration::from_secs(60);
/// The same of a token that is nobody's.
const NOBODY: Duration = Duration::from_secs(10);
/// Tokens that are remembered, by their hashes.
const MOST: usize = 10_000;
/// Namespaces that are asked of one by one, for a caller who may not see all.
const NAMESPACES: usize = 500;
/// Questions at a time.
const AT_ONCE: usize = 6;
/// A longer token is none: those of service accounts have about 1 KiB.
const TOKEN: usize = 16 << 10;

/// Behind each name. No name of the file of tokens ends so: nobody there passes for somebody of the cluster.
pub(crate) const BEHIND: &str = "@kubernetes";

/// What is asked of an API server.
pub trait Reviews: Send + Sync + fmt::Debug {
    /// Whose token it is; `None`: nobody's.
    fn user<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<User>, String>>;
    /// They may do it.
    fn may<'a>(&'a self, user: &'a User, deed: Deed<'a>) -> BoxFuture<'a, Result<bool, String>>;
}

/// An API server, and the audience for which tokens must be.
#[derive(Debug)]
pub struct ApiServer {
    /// Where.
    pub api: Api,
    /// For whom tokens must be.
    pub audience: String,
}

impl Reviews for ApiServer {
    fn user<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<User>, String>> {
        Box::pin(
            async move { review::user(&self.api, token, &self.audience).await.map_err(|e| e.to_string()) },
        )
    }

    fn may<'a>(&'a self, user: &'a User, deed: Deed<'a>) -> BoxFuture<'a, Result<bool, String>> {
        Box::pin(async move { review::may(&self.api, user, deed).await.map_err(|e| e.to_string()) })
    }
}

/// When it was asked, and who it is.
type Seen = (Instant, Option<Caller>);

/// A cluster whose callers are known.
#[derive(Debug)]
pub struct Cluster {
    reviews: Box<dyn Reviews>,
    store: Arc<dyn Store>,
    /// What its deaths name as their cluster.
    name: String,
    seen: Mutex<BTreeMap<String, Seen>>,
}

/// What a caller may, asked of one namespace or all.
const READ: Deed<'_> = Deed { verb: "get", group: "", resource: "pods", namespace: None };
const SEND: Deed<'_> =
    Deed { verb: "create", group: "dualplane.dev", resource: "incidents", namespace: None };

impl Cluster {
    /// Of this API server; `name` is what its deaths name as their cluster.
    #[must_use]
    pub fn new(reviews: Box<dyn Reviews>, store: Arc<dyn Store>, name: String) -> Self {
        Self { reviews, store, name, seen: Mutex::default() }
    }

    /// Who it was a short time ago; `Some(None)`: nobody.
    pub(super) fn remembered(&self, hash: &str) -> Option<Option<Caller>> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, who) = seen.get(hash)?;
        let kept = if who.is_some() { KEPT } else { NOBODY };
        (at.elapsed() < kept).then(|| who.clone())
    }

    /// Asks who it is, and what they may.
    ///
    /// # Errors
    ///
    /// A sentence: the API server or the store does not answer.
    pub async fn ask(&self, token: &str, hash: String) -> Result<Option<Caller>, String> {
        // What has not the form of a token is not sent anywhere.
        let formed = token.len() <= TOKEN && token.bytes().all(|b| b.is_ascii_graphic());
        let who = match formed {
            false => None,
            true => match self.reviews.user(token).await? {
                Some(user) => Some(self.caller(&user).await?),
                None => None,
            },
        };
        self.remember(hash, &who);
        Ok(who)
    }

    /// What somebody may whom an issuer named. `seen` is [`person`] of them.
    pub(super) async fn known(&self, user: &User, seen: String) -> Result<Option<Caller>, String> {
        let who = Some(self.caller(user).await?);
        self.remember(seen, &who);
        Ok(who)
    }

    fn remember(&self, hash: String, who: &Option<Caller>) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= MOST {
            seen.retain(|_, (at, _)| at.elapsed() < KEPT);
        }
        if seen.len() < MOST {
            seen.insert(hash, (Instant::now(), who.clone()));
        }
    }

    async fn caller(&self, user: &User) -> Result<Caller, String> {
        Ok(Caller {
            name: format!("{}{BEHIND}", user.username),
            sees: self.scope(user, READ).await?,
            sends: self.scope(user, SEND).await?,
            by_session: false,
        })
    }

    async fn scope(&self, user: &User, deed: Deed<'static>) -> Result<Scope, String> {
        let realm = |namespace| Realm { cluster: Some(self.name.clone()), namespace };
        if self.reviews.may(user, deed).await? {
            return Ok(Scope::Some(vec![realm(None)]));
        }
        let some = i64::try_from(NAMESPACES).unwrap_or(i64::MAX);
        let known = store::namespaces(&*self.store, &self.name, some).await.map_err(|e| e.to_string())?;
        let mut all: BTreeSet<String> = known.into_iter().filter(|n| !n.is_empty()).collect();
        // Of the namespace of a service account nothing may have been received yet.
        all.extend(own_namespace(&user.username).map(ToOwned::to_owned));
        let asked = futures_util::stream::iter(all)
            .map(async |n| {
                let may = self.reviews.may(user, Deed { namespace: Some(&n), ..deed }).await?;
                Ok::<_, String>(may.then(|| realm(Some(n.clone()))))
            })
            .buffer_unordered(AT_ONCE);
        let mut realms: Vec<Realm> = asked.try_filter_map(async |r| Ok(r)).try_collect().await?;
        realms.sort_by(|a, b| a.namespace.cmp(&b.namespace));
        Ok(Scope::Some(realms))
    }
}

/// What somebody is remembered by whom an issuer named: name and groups, with their lengths, or two could look the same. No hash
/// of a token begins so.
pub(super) fn person(user: &User) -> String {
    let all = std::iter::once(&user.username).chain(&user.groups);
    let text: String = all.map(|t| format!("{}:{t}", t.len())).collect();
    format!("person {}", super::sha256(text.as_bytes()))
}

fn own_namespace(user: &str) -> Option<&str> {
    user.strip_prefix("system:serviceaccount:")?.split(':').next().filter(|n| !n.is_empty())
}
