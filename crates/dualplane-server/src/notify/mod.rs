//! Tells channels of new deaths: read from the store in the order of their arrival, decided by `dualplane-notify`, sent until it
//! is taken. What is not sent yet outlives a restart, and of several replicas one sends; what cannot be sent is kept in `notify-dead.jsonl`.

pub mod config;
mod mail;
mod net;
mod state;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dualplane_incidents::{Incident, Time};
use dualplane_notify::{Channel, Decision, Notice};

use tokio::sync::watch;

use crate::app::{App, now};
use crate::clock::Place;
use crate::lease::{DEED, Lease};
use crate::store::{self, Arrival, arrivals};
use config::{Config, Target};
use state::{Item, State};

/// Between two looks into the store.
const TICK: Duration = Duration::from_secs(2);
/// Incidents of one look.
const SOME: i64 = 500;
/// A transaction may come to light this much later than a younger one.
const WINDOW_MS: i64 = 5_000;
/// The first wait behind a failure; each further one is twice as long, up to an hour.
const FIRST_WAIT_MS: i64 = 5_000;
const LONGEST_WAIT_MS: i64 = 3_600_000;
/// Failures after which a message is given up: more than a day.
const TRIES: u32 = 32;

/// Sends until `ending` becomes true. Of several programs on one database one does.
pub async fn run(app: Arc<App>, config: Config, folder: PathBuf, mut ending: watch::Receiver<bool>) {
    let lease = match Lease::new("notify", &folder) {
        Ok(lease) => lease,
        Err(e) => return (app.say)(&format!("notify: {e}: nothing is sent")),
    };
    let place = Place::new(now(), Instant::now());
    let mut sender = Sender { app, config, folder, lease, fence: 0, state: None, written: true, place };
    while !*ending.borrow() {
        sender.turn().await;
        tokio::select! {
            () = tokio::time::sleep(TICK) => {}
            _ = ending.changed() => {}
        }
    }
    let _ = sender.lease.release(&*sender.app.store).await;
}

/// The one who sends, or waits until it may.
struct Sender {
    app: Arc<App>,
    config: Config,
    folder: PathBuf,
    lease: Lease,
    /// Of whose turn the state is.
    fence: i64,
    state: Option<State>,
    /// The database holds the state as it is here.
    written: bool,
    place: Place,
}

impl Sender {
    /// The fence, where this program may send.
    async fn may(&mut self) -> Option<i64> {
        // A store that is away is asked again; who holds the lease stops meanwhile by itself.
        let _ = self.lease.tick(&*self.app.store, Instant::now()).await;
        self.lease.holds(Instant::now())
    }

    /// One look, and what is due.
    async fn turn(&mut self) {
        let Some(fence) = self.may().await else { return };
        let mut state = match self.state.take().filter(|_| self.fence == fence) {
            Some(state) => state,
            None => match self.begin(fence).await {
                Some(state) => state,
                None => return,
            },
        };
        self.fence = fence;
        let before = state.clone();
        state.from = self.place.look(state.from, now(), Instant::now());
        gather(&self.app, &self.config, &mut state).await;
        self.written &= state == before;
        // Nothing is sent before it is written that the last was: whoever takes over sends what is not.
        while self.save(fence, &state).await && self.may().await == Some(fence) {
            let Some(item) = state.take_due(now()) else { break };
            self.written = false;
            send(&self.app, &self.config, &mut state, item, &self.folder).await;
        }
        self.state = Some(state);
    }

    /// What the last holder left. It is written at once: whoever comes next must not begin later than this one.
    async fn begin(&mut self, fence: i64) -> Option<State> {
        let saved = self.lease.saved(&*self.app.store).await.ok()?;
        match State::load(saved.as_deref(), &self.folder, now()) {
            Ok(state) => {
                self.written = false;
                self.save(fence, &state).await.then_some(state)
            }
            Err(e) => {
                (self.app.say)(&format!("notify: {e}: nothing is sent"));
                None
            }
        }
    }

    async fn save(&mut self, fence: i64, state: &State) -> bool {
        if !self.written {
            match self.lease.save(&*self.app.store, fence, &state.body()).await {
                Ok(kept) => self.written = kept,
                Err(e) => (self.app.say)(&format!("notify: cannot keep what was sent: {e}")),
            }
        }
        self.written
    }
}

/// New incidents become items, one for each channel that asks for them.
async fn gather(app: &App, config: &Config, state: &mut State) {
    let start = Time::from_ms(state.from.ms().saturating_sub(WINDOW_MS));
    let mut place = Arrival { at: start, id: String::new() };
    // What is not read yet waits in the store.
    while !state.is_full() {
        // A store that is away is asked again.
        let Ok(new) = arrivals(&*app.store, &place, SOME).await else { return };
        for i in new.iter().filter(|i| state.is_new(i, start)).collect::<Vec<_>>() {
            for target in config.channels.iter().filter(|t| t.filter.matches(i)) {
                state.items.push(Item {
                    target: target.name.clone(),
                    incident: i.id.clone(),
                    due: now(),
                    tries: 0,
                    decided: None,
                });
            }
        }
        match new.last() {
            Some(last) if new.len() as i64 >= SOME => {
                place = Arrival { at: last.received_at, id: last.id.clone() }
            }
            _ => return,
        }
    }
}

/// Decides and sends one; what fails is tried again later.
async fn send(app: &App, config: &Config, state: &mut State, mut item: Item, folder: &std::path::Path) {
    // A channel that is no longer configured, and an incident that was removed: nobody waits for it.
    let Some(target) = config.channels.iter().find(|t| t.name == item.target) else { return };
    let incident = match store::get(&*app.store, &item.incident).await {
        Ok(Some(i)) => i,
        Ok(None) => return,
        Err(_) => {
            item.due = Time::from_ms(now().ms() + FIRST_WAIT_MS);
            state.items.push(item);
            return;
        }
    };
    let mut notice = Notice::of(&incident, &config.url);
    let folded = match item.decided {
        Some(folded) => folded,
        None => match state.desk(&target.name).decide(&notice, &target.policy, now().ms()) {
            Decision::Send { folded } => folded,
            Decision::Fold => return,
            Decision::Wait { until } => {
                item.due = Time::from_ms(until);
                state.items.push(item);
                return;
            }
        },
    };
    item.decided = Some(folded);
    notice.folded = folded;
    let sent = tokio::time::timeout(DEED, deliver(config, target, &notice)).await;
    match sent.unwrap_or_else(|_| Err(net::SendError::late(DEED))) {
        Ok(()) => {}
        Err(e) if item.tries >= TRIES || e.is_final() => {
            (app.say)(&format!(
                "notify: {} does not take {}: {e}; kept in notify-dead.jsonl",
                target.name, item.incident
            ));
            if let Err(e) = state::bury(folder, &item, &e.to_string(), now()) {
                (app.say)(&format!("notify: cannot write notify-dead.jsonl: {e}"));
            }
        }
        Err(e) => {
            if item.tries == 0 {
                (app.say)(&format!(
                    "notify: {} did not take {}: {e}; tried again",
                    target.name, item.incident
                ));
            }
            let wait = FIRST_WAIT_MS.saturating_mul(1 << item.tries.min(12)).min(LONGEST_WAIT_MS);
            item.tries += 1;
            item.due = Time::from_ms(now().ms() + wait.max(e.after_ms()));
            state.items.push(item);
        }
    }
}

/// Sends one message now.
///
/// # Errors
/// Why it was not taken.
pub async fn deliver(config: &Config, target: &Target, notice: &Notice) -> Result<(), net::SendError> {
    let body = target.kind.message(notice).map_err(net::SendError::Refused)?;
    let secret = target.secret().map_err(net::SendError::Config)?;
    match (&target.email, target.kind) {
        (Some(email), Channel::Email) => {
            mail::send(config, email, secret.as_deref(), &body.text, &notice.incident.id).await
        }
        _ => {
            let url = target.url().map_err(net::SendError::Config)?;
            let body = secret.as_deref().map_or_else(|| body.clone(), |s| body.with_secret(s));
            let authorization =
                target.kind.authorization().zip(secret).map(|(scheme, s)| format!("{scheme} {s}"));
            net::post(config, &url, authorization.as_deref(), body.media_type, body.text).await
        }
    }
}

/// What each channel would be told of this incident; secrets stand as the names of their files.
///
/// # Errors
/// Where a message cannot be made.
pub fn dry_run(config: &Config, incident: &Incident) -> Result<String, String> {
    let notice = Notice::of(incident, &config.url);
    let mut out = String::new();
    for t in &config.channels {
        let body = t.kind.message(&notice)?;
        out.push_str(&format!(
            "# {} ({}) to {}\n{}\n\n",
            t.name,
            t.kind.as_str(),
            t.told(),
            body.text.trim_end()
        ));
    }
    Ok(out)
}
