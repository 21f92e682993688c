//! What all connections share: admission behind one lock, who waits for it, counters.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use dualplane_admission::admission::Outcome;
use dualplane_admission::cost::Range;
use dualplane_admission::template::{Template, Texts};
use dualplane_admission::tokens::Calibration;
use dualplane_admission::{Admission, Code, Decision, Event, Grant, Ms, Refusal, Request, Ticket, Would};
use dualplane_base::Class;
use tokio::sync::{oneshot, watch};

use crate::access::{AccessLog, Entry};
use crate::answer::Told;
use crate::clients::Clients;
use crate::config::{Checked, Target};
use crate::endings::Endings;
use crate::ends::Ends;
use crate::exchange::{self, Arriving, Failed, Outgoing};
use crate::held::{Permit, Room, Waiting};
use crate::prompts::{By, Models, Prompts};
use crate::servers::Parts;
use crate::traces::Traces;

/// For what was on its way to the guard when it was told to end.
const QUIET: Duration = Duration::from_millis(500);
/// Upper ends of the times in the queue that are counted, milliseconds.
pub const WAITS: &[u64] = &[10, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000];

/// Counters since the start.
#[derive(Debug, Clone, Default)]
pub struct Counters {
    /// In shadow mode: what would have become of requests.
    pub would: BTreeMap<&'static str, u64>,
    /// Times in the queue, by [`WAITS`], and more.
    pub waits: Vec<u64>,
    /// Their sum, milliseconds.
    pub waited: u64,
    /// Requests whose caller went away.
    pub cancelled: u64,
    /// Requests that were sent to another server, as the first did not take the connection.
    pub moved: u64,
    /// Deaths of servers by what is known of their cause.
    pub deaths: BTreeMap<(String, &'static str), u64>,
    /// Tokens of prompts and of outputs, as servers counted them.
    pub tokens: (u64, u64),
    /// Lines that the access log had no room for.
    pub log_lost: u64,
}

/// What the lock holds.
pub(crate) struct Gate {
    pub(crate) admission: Admission,
    pub(crate) waiters: HashMap<Ticket, oneshot::Sender<Result<Grant, Refusal>>>,
    pub(crate) learnt: Models,
    /// Servers by their number in admission; it never changes.
    pub(crate) targets: Vec<Arc<Target>>,
    /// Servers of the configuration, by the same numbers.
    pub(crate) current: Vec<usize>,
    /// Counts who had each number: its watch ends when another has it.
    pub(crate) terms: Vec<u64>,
    /// What was last seen of each: why it is down, whether its memory is read.
    pub(crate) seen: Vec<Seen>,
    pub(crate) counters: Counters,
}

/// What the watch saw of a server.
#[derive(Debug, Default)]
pub struct Seen {
    /// Engine by its metrics.
    pub engine: Option<&'static str>,
    /// Page of its metrics.
    pub metrics: Option<String>,
    /// Why nothing is read of its host RAM.
    pub host_trouble: Option<String>,
    /// What its ends were. Its watch has it too, for an end that gets its name after the server left.
    pub ends: Arc<Mutex<Ends>>,
}

impl Seen {
    /// What ended it last, as far as it is known now.
    pub fn last_death(&self) -> Option<Class> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner).last()
    }
}

/// Shared by all connections.
pub struct State {
    pub(crate) config: RwLock<Arc<Checked>>,
    /// The file, and what was found in the cluster, of which `config` is made.
    pub(crate) parts: Mutex<Parts>,
    gate: Mutex<Gate>,
    start: Instant,
    clients: Arc<Clients>,
    pub(crate) buffered: AtomicU64,
    /// Requests that are under way, passing ones included.
    pub under_way: AtomicU64,
    counted: Prompts,
    number: AtomicU64,
    /// How the names of its requests begin.
    name: String,
    /// Tells those who wait for it; `drains` is for those who only look, with each request and on each processor.
    draining: watch::Sender<bool>,
    drains: AtomicBool,
    closed: AtomicBool,
    /// One line a request.
    pub access: AccessLog,
    /// One span a request.
    pub traces: Option<Traces>,
    /// How requests ended.
    pub endings: Endings,
}

impl State {
    /// Begins with nothing running.
    #[must_use]
    pub fn new(checked: Checked, access: AccessLog, traces: Option<Traces>) -> Arc<Self> {
        let clients = Clients::new(Duration::from_secs(checked.config.limits.connect_seconds));
        let servers = checked.targets.iter().map(|t| checked.server(t)).collect();
        let gate = Gate {
            admission: Admission::new(checked.policy.clone(), servers),
            waiters: HashMap::new(),
            learnt: Models::default(),
            targets: checked.targets.iter().cloned().map(Arc::new).collect(),
            current: (0..checked.targets.len()).collect(),
            terms: vec![0; checked.targets.len()],
            seen: std::iter::repeat_with(Seen::default).take(checked.targets.len()).collect(),
            counters: Counters { waits: vec![0; WAITS.len() + 1], ..Counters::default() },
        };
        Arc::new(Self {
            parts: Mutex::new(Parts::of(checked.clone())),
            config: RwLock::new(Arc::new(checked)),
            gate: Mutex::new(gate),
            start: Instant::now(),
            clients,
            buffered: AtomicU64::new(0),
            under_way: AtomicU64::new(0),
            counted: Prompts::default(),
            number: AtomicU64::new(0),
            name: format!("dualplane-{:x}-", std::process::id()),
            draining: watch::Sender::new(false),
            drains: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            access,
            traces,
            endings: Endings::default(),
        })
    }

    /// Tells of a request that ended.
    pub(crate) fn record(&self, entry: &Entry) {
        self.access.write(self, entry);
        if let Some(traces) = &self.traces
            && let Some(span) = entry.span()
        {
            traces.take(span);
        }
    }

    /// Sends a request to the server that its URL names; the head of its answer.
    ///
    /// # Errors
    /// Nobody takes it, the caller's body broke off, or the server did.
    pub async fn send(&self, request: Outgoing) -> Result<http::Response<Arriving>, Failed> {
        exchange::send(&self.clients, request).await
    }

    /// Closes connections that nobody used for a while.
    pub fn sweep(&self) {
        self.clients.sweep();
    }

    /// The configuration of now.
    #[must_use]
    pub fn config(&self) -> Arc<Checked> {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Milliseconds since the start.
    #[must_use]
    pub fn now(&self) -> Ms {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) fn gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A server by its number.
    #[must_use]
    pub fn target(&self, server: usize) -> Option<Arc<Target>> {
        self.gate().targets.get(server).cloned()
    }

    /// Takes no more connections, and of those that it has one more request each.
    pub fn drain(&self) {
        self.drains.store(true, Ordering::Release);
        self.draining.send_replace(true);
    }

    /// Whether it is about to end.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.drains.load(Ordering::Acquire)
    }

    /// Ends when it is about to end.
    pub async fn drains(&self) {
        // The sender lives as long as this.
        let _ = self.draining.subscribe().wait_for(|drains| *drains).await;
    }

    /// Ends when it is about to end, and what was on its way when this began has had time to arrive.
    pub async fn falls_quiet(&self) {
        self.drains().await;
        tokio::time::sleep(QUIET).await;
    }

    /// Takes no more requests.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Whether it takes no more requests.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// A name that no other request has: of this process, by its number.
    #[must_use]
    pub fn next_id(&self) -> String {
        let n = self.number.fetch_add(1, Ordering::Relaxed);
        let digits = n.checked_ilog2().unwrap_or(0) / 4;
        let hex = |at: u32| char::from_digit(u32::try_from(n >> (4 * at) & 15).unwrap_or(0), 16);
        self.name.chars().chain((0..=digits).rev().filter_map(hex)).collect()
    }

    /// A place for a body, of no bytes yet, among so many of all that are held.
    #[must_use]
    pub fn room(self: &Arc<Self>, most: u64) -> Room {
        Room { state: Arc::clone(self), bytes: 0, most }
    }

    /// Bytes of bodies that are held.
    #[must_use]
    pub fn buffered(&self) -> u64 {
        self.buffered.load(Ordering::Relaxed)
    }

    /// What was learnt of a model's tokens.
    #[must_use]
    pub fn calibration(&self, model: &str) -> Calibration {
        self.gate().learnt.of(model).map(|l| l.bytes.clone()).unwrap_or_default()
    }

    /// The tokens of a prompt whose texts its tokenizer counted; `None` where the server was found to count otherwise.
    #[must_use]
    pub fn by_template(&self, model: &str, texts: &Texts) -> Option<Range> {
        let gate = self.gate();
        match gate.learnt.of(model) {
            Some(l) => l.template.is_believed().then(|| l.template.tokens(texts)),
            None => Some(Template::default().tokens(texts)),
        }
    }

    /// Notes how a prompt was counted.
    pub fn note_counted(&self, by: By) {
        self.counted.of(by).fetch_add(1, Ordering::Relaxed);
    }

    /// Prompts that were counted so.
    #[must_use]
    pub fn counted(&self, by: By) -> u64 {
        self.counted.of(by).load(Ordering::Relaxed)
    }

    /// Asks for leave and waits for it. Whoever drops this while it waits gives its place back.
    ///
    /// # Errors
    /// It is refused.
    pub async fn admit(self: &Arc<Self>, request: Request) -> Result<(Permit, Grant), Refusal> {
        let mut waiting = {
            let mut gate = self.gate();
            match gate.admission.offer(self.now(), request) {
                Decision::Admit(grant) => {
                    if gate.admission.policy().shadow {
                        let word = match grant.would {
                            Would::Admit => "admit",
                            Would::Queue => "queue",
                            Would::Refuse(code) => code.word(),
                        };
                        *gate.counters.would.entry(word).or_insert(0) += 1;
                    }
                    gate.counters.wait(0);
                    return Ok((Permit::new(self, &gate, grant), grant));
                }
                Decision::Refuse(refusal) => return Err(refusal),
                Decision::Queue(place) => {
                    let (tell, told) = oneshot::channel();
                    gate.waiters.insert(place.ticket, tell);
                    Waiting { state: Arc::clone(self), ticket: place.ticket, told, over: false }
                }
            }
        };
        // Its offer may have pushed another out, or those who wait may all be at limits of their own.
        self.pump();
        let answer = (&mut waiting.told).await;
        waiting.over = true;
        match answer {
            Ok(Ok(grant)) => {
                let mut gate = self.gate();
                gate.counters.wait(grant.waited);
                Ok((Permit::new(self, &gate, grant), grant))
            }
            Ok(Err(refusal)) => Err(refusal),
            // The other end is only ever dropped with the state.
            Err(_) => {
                Err(Refusal { code: Code::Draining, retry_after: Some(1), numbers: Default::default() })
            }
        }
    }

    /// Tells those who waited what became of them.
    pub fn pump(&self) {
        self.gate().pump(self.now());
    }
}

impl Gate {
    /// Gives back what a request held, to those who wait.
    pub(crate) fn release(&mut self, now: Ms, ticket: Ticket, outcome: Outcome) {
        self.admission.release(now, ticket, outcome);
        self.pump(now);
    }

    /// Tells those who waited what became of them.
    pub(crate) fn pump(&mut self, now: Ms) {
        loop {
            let events = self.admission.poll(now);
            if events.is_empty() {
                break;
            }
            for event in events {
                match event {
                    Event::Granted(grant) => {
                        let tell = self.waiters.remove(&grant.ticket);
                        // Whoever went away between two steps gives it back at once.
                        if tell.is_none_or(|t| t.send(Ok(grant)).is_err()) {
                            self.admission.release(now, grant.ticket, Outcome::Broken);
                        }
                    }
                    Event::Refused(ticket, refusal) => {
                        if let Some(tell) = self.waiters.remove(&ticket) {
                            let _ = tell.send(Err(refusal));
                        }
                    }
                }
            }
        }
    }

    /// Takes in what a server counted of a prompt, and of its output where it did.
    pub(crate) fn counted(&mut self, model: &str, told: Option<&Told>, prompt: u64, output: u64) {
        if let Some(told) = told {
            let learnt = self.learnt.of_mut(model);
            learnt.bytes.learn(told.bytes, told.messages, prompt);
            if let Some(texts) = &told.texts {
                learnt.template.learn(texts, prompt);
            }
        }
        let (prompts, outputs) = &mut self.counters.tokens;
        *prompts = prompts.saturating_add(prompt);
        *outputs = outputs.saturating_add(output);
    }
}

impl Counters {
    fn wait(&mut self, ms: u64) {
        let at = WAITS.iter().position(|w| ms <= *w).unwrap_or(WAITS.len());
        if let Some(n) = self.waits.get_mut(at) {
            *n += 1;
        }
        self.waited = self.waited.saturating_add(ms);
    }
}
