//! Deaths of the pods of a cluster, captured here where no agent sends them: model servers, and whatever asks for a GPU.
//!
//! `pods.rs` tells deaths from all that a cluster says of its pods. The evidence of one is captured at once, before the next restart
//! erases it, and waits on the disk: an agent on the node knows more, so that its report, if one comes, is the one that is kept. Nothing
//! is remembered beyond a restart: names of incidents follow from what died, and the store knows which it has.
//! Of several programs on one database one watches.

mod pods;
mod queue;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dualplane_core::knowledge::Knowledge;
use dualplane_core::sift::Sifter;
use dualplane_incidents::{Dimension, Filter, Time, Where};
use dualplane_kube::access::Access;
use dualplane_kube::api::{Api, ApiError, path};
use dualplane_kube::bundle::pack;
use dualplane_kube::capture::{Options, Shared, capture};
use dualplane_kube::follow::Follower;
use dualplane_kube::node_pods;
use futures_util::future::join_all;
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::{oneshot, watch};
use tokio::time::sleep;

use self::pods::{Death, Pods};
use self::queue::Queue;
use crate::app::{App, now};
use crate::auth::Caller;
use crate::auth::cluster::BEHIND;
use crate::ingest::bundle::Part;
use crate::ingest::keep::{self, KeepError, Whole};
use crate::lease::Lease;
use crate::store::{self, Page, Scope, StoreError};

/// Between a death and its capture: containers of one pod die one after another, and the kubelet tells of it in pieces.
const SETTLE: Duration = Duration::from_secs(2);
/// Deaths that wait to be captured, some 40 KiB each in memory. Those beyond are found again by the next list.
const WAITING: usize = 1000;
/// Captures at a time, as for a command: each holds some MiB of logs.
const CAPTURES: usize = 4;
/// Captured, on the disk.
const CAPTURED: usize = 10_000;
/// A capture of which a log could not be read is made again so often, with this pause.
const TRIES: usize = 3;
const PAUSE: Duration = Duration::from_secs(5);
/// For the pod as it is now.
const LOOK: Duration = Duration::from_secs(10);
/// Between two tries of what fails: at first, and at most.
const FIRST: Duration = Duration::from_secs(1);
const LAST: Duration = Duration::from_secs(60);
/// Between two beats of the lease.
const BEAT: Duration = Duration::from_secs(2);
/// The clocks of a node's kubelet and of its agent are one; each sees a death some seconds after it.
const SAME_DEATH_MS: i64 = 15_000;
/// An agent's reports of one pod within that time.
const REPORTS: usize = 20;

/// What to watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watch {
    /// What its deaths name as their cluster.
    pub cluster: String,
    /// In these namespaces; none: in all.
    pub namespaces: BTreeSet<String>,
    /// For so long an agent's report of the same death is waited for.
    pub agents_first: Duration,
}

/// Watches until the server ends, on a thread of its own: what captures is not made for several.
///
/// # Errors
///
/// A sentence: no cluster is configured.
pub async fn start(app: Arc<App>, what: Watch, folder: PathBuf) -> Result<(), String> {
    let (tell, told) = oneshot::channel();
    let ending = app.ending.subscribe();
    let work = move || {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(e) => return drop(tell.send(Err(e.to_string()))),
        };
        runtime.block_on(async {
            let lease = Lease::new("watch", &folder);
            match Watcher::new(app, what).await.and_then(|w| Ok((w, lease?))) {
                Ok((watcher, lease)) => {
                    let _ = tell.send(Ok(()));
                    watcher.run(lease, ending).await;
                }
                Err(e) => drop(tell.send(Err(e))),
            }
        });
    };
    std::thread::Builder::new().name("watch".into()).spawn(work).map_err(|e| e.to_string())?;
    told.await.unwrap_or_else(|_| Err("it ended at once".to_owned()))
}

/// What was captured, on the disk.
struct Captured {
    id: String,
    namespace: String,
    pod: String,
    at: Option<Timestamp>,
    part: Part,
}

/// Why something is not done.
struct Failed {
    why: String,
    for_good: bool,
}

impl Failed {
    /// The same again later may work.
    fn now(why: String) -> Self {
        Self { why, for_good: false }
    }
}

/// A list of pods. Each has connections of its own: one that is watched is never free.
struct Followed {
    api: Api,
    list: String,
    /// For people.
    name: String,
}

struct Watcher {
    app: Arc<App>,
    what: Watch,
    caller: Caller,
    followed: Vec<Followed>,
    knowledge: Knowledge,
    sifter: Option<Arc<Sifter>>,
    /// Whether this program is the one that watches.
    leads: watch::Sender<bool>,
    waiting: Queue<Death>,
    captured: Queue<Captured>,
}

/// The cluster itself: no caller has a name that is empty before this.
fn itself() -> Caller {
    Caller { name: BEHIND.to_owned(), sees: Scope::Some(Vec::new()), sends: Scope::All, by_session: false }
}

/// In the error's words, and what it needs.
fn told(e: &ApiError) -> String {
    match e {
        ApiError::Forbidden { .. } => {
            format!("{e}; it needs list and watch on pods, and what deploy/rbac.yaml gives")
        }
        e => e.to_string(),
    }
}

/// The pod as it is now, if this death still is its last one: logs are asked for by name and must fit its state.
async fn as_it_is(api: &Api, death: &Death) -> Value {
    match node_pods::pod(api, &death.namespace, &death.name, LOOK).await {
        Ok(now) if death.is_last_of(&now) => now,
        _ => death.pod.clone(),
    }
}

impl Watcher {
    async fn new(app: Arc<App>, what: Watch) -> Result<Self, String> {
        let mut lists: Vec<(String, String)> =
            what.namespaces.iter().map(|n| (n.clone(), path::namespaced("v1", n, "pods"))).collect();
        if lists.is_empty() {
            lists.push(("all namespaces".to_owned(), path::cluster("v1", "pods")));
        }
        let mut followed = Vec::new();
        for (name, list) in lists {
            let api = Access::default().connect().await.map_err(|e| e.to_string())?;
            followed.push(Followed { api, list, name });
        }
        let knowledge = Knowledge::embedded().map_err(|e| e.to_string())?;
        Ok(Self {
            sifter: Sifter::new(&knowledge).ok().map(Arc::new),
            knowledge,
            leads: watch::Sender::new(false),
            waiting: Queue::new(SETTLE, WAITING),
            captured: Queue::new(what.agents_first, CAPTURED),
            caller: itself(),
            followed,
            app,
            what,
        })
    }

    /// What is not kept when the server ends is found again by whoever watches next.
    async fn run(self, lease: Lease, ending: watch::Receiver<bool>) {
        tokio::select! {
            _ = join_all(self.followed.iter().map(|f| self.follow(f))) => {}
            _ = join_all((0..CAPTURES).map(|_| self.capture())) => {}
            () = self.keep() => {}
            () = self.lead(lease, ending) => {}
        }
    }

    /// Holds the lease, or waits for it, until the server ends.
    async fn lead(&self, mut lease: Lease, mut ending: watch::Receiver<bool>) {
        while !*ending.borrow() {
            // A store that is away is asked again; who holds the lease stops meanwhile by itself.
            let _ = lease.tick(&*self.app.store, Instant::now()).await;
            let leads = lease.holds(Instant::now()).is_some();
            self.leads.send_if_modified(|was| std::mem::replace(was, leads) != leads);
            tokio::select! {
                () = sleep(BEAT) => {}
                _ = ending.changed() => {}
            }
        }
        let _ = lease.release(&*self.app.store).await;
    }

    /// Tells deaths from what the cluster says of a list of pods, as long as this program leads.
    async fn follow(&self, followed: &Followed) {
        let Followed { api, list, name } = followed;
        let (mut leads, mut wait, mut trouble) = (self.leads.subscribe(), FIRST, String::new());
        let mut room = self.waiting.room();
        loop {
            if leads.wait_for(|l| *l).await.is_err() {
                return;
            }
            (self.app.say)(&format!("watching the pods of {name} at {}", api.server()));
            let (mut follower, mut pods) = (Follower::new(api, list.clone()), Pods::default());
            while *leads.borrow() {
                let begun = Instant::now();
                let ended = tokio::select! {
                    ended = follower.round(|news| {
                        let Some(death) = pods.hear(news, self.oldest()) else { return };
                        let uid = death.uid.clone();
                        if !self.waiting.push(death) {
                            pods.forget(&uid);
                        }
                    }) => ended,
                    _ = leads.wait_for(|l| !l) => break,
                    // Those for which there was no room are told of again.
                    _ = room.changed() => {
                        follower.forget();
                        Ok(())
                    }
                };
                match ended.as_ref().map_err(told) {
                    Ok(()) => (wait, trouble) = (FIRST, String::new()),
                    Err(e) => {
                        if e != trouble {
                            (self.app.say)(&format!("watching the pods of {name}: {e}; trying again"));
                        }
                        wait = (wait * 2).min(LAST);
                        trouble = e;
                    }
                }
                // Also after a round that ended at once: a server that does so is not asked without a pause.
                sleep(wait.saturating_sub(begun.elapsed())).await;
            }
        }
    }

    /// Whatever died before this would be removed at once.
    fn oldest(&self) -> Timestamp {
        let kept = i64::from(self.app.keep_days) * 86_400_000;
        Timestamp::from_millisecond(now().ms().saturating_sub(kept)).unwrap_or(Timestamp::MIN)
    }

    /// Captures what waits, one after another.
    async fn capture(&self) {
        loop {
            let death = self.waiting.next().await;
            self.until_done(&death.namespace, &death.name, || self.one(&death)).await;
        }
    }

    /// Tries until it is done or fails for good.
    async fn until_done<F: Future<Output = Result<(), Failed>>>(
        &self,
        namespace: &str,
        pod: &str,
        attempt: impl Fn() -> F,
    ) {
        let mut wait = FIRST;
        while let Err(failed) = attempt().await {
            (self.app.say)(&format!("watch: the death of {namespace}/{pod} is not kept: {}", failed.why));
            if failed.for_good {
                return;
            }
            sleep(wait).await;
            wait = (wait * 2).min(LAST);
        }
    }

    /// Captures a death onto the disk, unless it is kept already.
    async fn one(&self, death: &Death) -> Result<(), Failed> {
        // A store that is away is asked again later; the evidence does not wait.
        if keep::is_kept(&self.app, &self.caller, &death.id).await.is_ok_and(|kept| kept)
            || self.is_told_of(&death.namespace, &death.name, death.at).await.is_ok_and(|told| told)
        {
            return Ok(());
        }
        // Another is at it: the pod was told of again meanwhile.
        let Some(part) = self.app.bundles.part(&self.caller.name, &death.id) else { return Ok(()) };
        let (folder, mut tries) = (format!("{}/{}", death.namespace, death.name), 0);
        let files = loop {
            tries += 1;
            // Anew for each: what one has read of a node it does not ask for again.
            let api = Access::default().connect().await.map_err(|e| Failed::now(e.to_string()))?;
            let pod = as_it_is(&api, death).await;
            let options = Options { now: Timestamp::now(), prometheus: None, loki: None };
            let shared = Shared::of(std::slice::from_ref(&pod));
            let got =
                capture(&api, pod, &options, &self.knowledge, self.sifter.as_ref(), &shared, &|_, _, _| {})
                    .await;
            let lost = got.sources.iter().any(|s| s.may_pass && s.name.starts_with("logs/"));
            if !lost || tries == TRIES {
                break got.files;
            }
            sleep(PAUSE).await;
        };
        let mtime = death.at.and_then(|at| u64::try_from(at.as_second()).ok()).unwrap_or(0);
        let packed = pack([(folder, files.as_slice())], mtime)
            .map_err(|e| Failed { why: e.to_string(), for_good: true })?;
        part.discard();
        part.append(&packed)
            .map_err(|e| Failed::now(format!("the disk of the server does not take it: {e}")))?;
        let captured = Captured {
            id: death.id.clone(),
            namespace: death.namespace.clone(),
            pod: death.name.clone(),
            at: death.at,
            part,
        };
        match self.captured.push(captured) {
            true => Ok(()),
            false => Err(Failed::now(format!("{CAPTURED} others wait for the database"))),
        }
    }

    /// Keeps what was captured and no agent has told of, one after another, until the store has it.
    async fn keep(&self) {
        loop {
            let one = self.captured.next().await;
            self.until_done(&one.namespace, &one.pod, || self.try_to_keep(&one)).await;
        }
    }

    async fn try_to_keep(&self, one: &Captured) -> Result<(), Failed> {
        let told = self.is_told_of(&one.namespace, &one.pod, one.at).await;
        if told.map_err(|e| Failed::now(e.to_string()))? {
            one.part.discard();
            return Ok(());
        }
        let place = Where {
            cluster: Some(self.what.cluster.clone()),
            namespace: Some(one.namespace.clone()),
            pod: Some(one.pod.clone()),
            died_at: one.at.map(|at| Time::from_ms(at.as_millisecond())),
            ..Where::default()
        };
        let failed = |e: KeepError| Failed { why: e.to_string(), for_good: e.is_for_good() };
        self.sent(one, place).await.map_err(failed)
    }

    /// As if a caller had sent it.
    async fn sent(&self, one: &Captured, place: Where) -> Result<(), KeepError> {
        let mine = keep::mine(&self.app, &self.caller, &one.id).await?;
        let sum = one.part.sum().map_err(KeepError::Disk)?;
        let whole = Whole { part: &one.part, sum, place };
        keep::bundle(&self.app, &self.caller, &one.id, mine, whole).await.map(drop)
    }

    /// An agent, or a person, has sent this death.
    async fn is_told_of(
        &self,
        namespace: &str,
        pod: &str,
        at: Option<Timestamp>,
    ) -> Result<bool, StoreError> {
        let Some(at) = at else { return Ok(false) };
        let around = |ms| Some(Time::from_ms(at.as_millisecond().saturating_add(ms)));
        let is = |d, value: &str| (d, BTreeSet::from([value.to_owned()]));
        let mut any = vec![is(Dimension::Namespace, namespace), is(Dimension::Pod, pod)];
        if !self.what.cluster.is_empty() {
            any.push(is(Dimension::Cluster, &self.what.cluster));
        }
        let filter = Filter {
            any: any.into_iter().collect(),
            since: around(-SAME_DEATH_MS),
            until: around(SAME_DEATH_MS),
            each: true,
            ..Filter::default()
        };
        let page = Page { filter, scope: Scope::All, after: None, limit: REPORTS };
        for incident in store::list(&*self.app.store, &page).await? {
            if store::sender(&*self.app.store, &incident.id).await?.is_some_and(|by| by != self.caller.name) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
