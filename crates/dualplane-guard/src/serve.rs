//! Accepts connections and ends without dropping one.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use dualplane_base::text::counted;
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::access::AccessLog;
use crate::config::{Checked, ConfigError, Tls};
use crate::followers::Followers;
use crate::page::Labels;
use crate::state::State;
use crate::traces::{Collector, Traces};
use crate::workers::Workers;
use crate::{admin, speak, tls, watch};

/// Between two looks at the queue: deadlines, and whoever is waited for.
const TICK: Duration = Duration::from_millis(50);
/// Between two looks at connections that wait for a request.
const SWEEP: Duration = Duration::from_secs(1);
/// Connections that the kernel may hold for us, and how soon one of them is at hand.
const BACKLOG: usize = 4096;
const AT_HAND: Duration = Duration::from_millis(5);
/// For what still runs behind the end.
const LEFT: Duration = Duration::from_millis(200);
/// For spans that are not sent yet.
const LAST_SPANS: Duration = Duration::from_secs(3);

/// What the command gives.
pub struct Options {
    /// Where it runs.
    pub labels: Labels,
    /// Reads the configuration again; `None` where there is no file.
    pub reload: Option<Box<dyn Fn() -> Result<Checked, ConfigError> + Send>>,
    /// Tells people of what happens, a line each.
    pub say: Arc<dyn Fn(&str) + Send + Sync>,
}

/// Why it does not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A port cannot be had.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// Its standard input is no socket that listens.
    #[error(
        "cannot listen on the standard input: {0}; start it with a listening TCP socket there, such as systemd's StandardInput=socket"
    )]
    Inherit(String),
    /// The access log cannot be written.
    #[error("cannot write the access log {path}: {source}")]
    Log {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No runtime, no thread, no signals.
    #[error("cannot start: {0}")]
    Start(#[from] io::Error),
    /// Certificate or key.
    #[error("tls: {0}")]
    Tls(String),
}

/// Serves until a signal ends it, and every answer is given.
///
/// # Errors
/// A port cannot be had, a file cannot be opened, or no thread can be started.
pub fn run(checked: Checked, options: Options) -> Result<(), ServeError> {
    let access = access_log(&checked.config.access_log)?;
    let (traces, sending) = match &checked.config.traces {
        None => (None, None),
        Some(said) => {
            let collector = Collector::of(said)
                .map_err(|(key, why)| ServeError::Start(io::Error::other(format!("{key}: {why}"))))?;
            let (traces, sending) =
                Traces::start(collector, said.share, &options.labels, Arc::clone(&options.say))?;
            (Some(traces), Some(sending))
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut workers = Workers::start(LEFT)?;
    let answer = runtime.block_on(serve(checked, (access, traces), options, &mut workers));
    // Connections that are left after the drain are cut.
    workers.end();
    runtime.shutdown_timeout(LEFT);
    if let Some(sending) = sending {
        sending.wait(LAST_SPANS);
    }
    answer
}

fn access_log(at: &str) -> Result<AccessLog, ServeError> {
    let writer: Box<dyn io::Write + Send> = match at {
        "none" => return Ok(AccessLog::none()),
        "stdout" => Box::new(io::stdout()),
        path => {
            let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
            Box::new(file.map_err(|source| ServeError::Log { path: path.into(), source })?)
        }
    };
    Ok(AccessLog::to(Box::new(io::BufWriter::new(writer)))?)
}

async fn bind(address: SocketAddr) -> Result<TcpListener, ServeError> {
    TcpListener::bind(address).await.map_err(|source| ServeError::Bind { address, source })
}

/// The listening socket that whoever started this has left in its standard input: it stays open when this ends, and another
/// program may listen on it meanwhile.
fn inherited() -> Result<TcpListener, ServeError> {
    let none = |e: io::Error| ServeError::Inherit(e.to_string());
    let own = io::stdin().as_fd().try_clone_to_owned().map_err(none)?;
    let listener = std::net::TcpListener::from(own);
    listener.set_nonblocking(true).map_err(none)?;
    listener.local_addr().map_err(none)?;
    TcpListener::from_std(listener).map_err(none)
}

async fn serve(
    checked: Checked,
    (access, traces): (AccessLog, Option<Traces>),
    options: Options,
    workers: &mut Workers,
) -> Result<(), ServeError> {
    let tls_files = checked.config.tls.clone();
    let inherits = checked.listen.is_none();
    let listener = match checked.listen {
        Some(address) => bind(address).await?,
        None => inherited()?,
    };
    let admin = match checked.admin {
        Some(address) => Some(bind(address).await?),
        None => None,
    };
    let tls_config: tls::Current = Arc::default();
    if let Some(files) = &tls_files {
        let loaded = tls::load(files).map_err(ServeError::Tls)?;
        tls::take(&tls_config, loaded);
    }
    let state = State::new(checked, access, traces);
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut hup = signal(SignalKind::hangup())?;
    announce(&state, &listener, admin.as_ref(), &options);
    let labels = Arc::new(options.labels);
    if let Some(admin) = admin {
        tokio::spawn(admin::serve(admin, Arc::clone(&state), labels));
    }
    for server in state.gate().current.clone() {
        tokio::spawn(watch::watch(Arc::clone(&state), server, 0));
    }
    let mut followers = Followers::new(&state, &options.say);
    followers.follow()?;
    tokio::spawn(ticks(Arc::clone(&state)));
    if let Some(files) = tls_files.clone() {
        tokio::spawn(tls::renew(files, Arc::clone(&tls_config), Arc::clone(&options.say)));
    }
    // One for each connection; with all of them back, every connection has ended.
    let all = u32::try_from(state.config().config.limits.connections).unwrap_or(u32::MAX);
    let places = Arc::new(Semaphore::new(usize::try_from(all).unwrap_or(Semaphore::MAX_PERMITS)));
    let mut begin = |stream: TcpStream, peer: SocketAddr| {
        // Without a place the connection is closed at once: whoever waits learns of it.
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else { return };
        let tls = tls_config.read().unwrap_or_else(PoisonError::into_inner).clone();
        let state = Arc::clone(&state);
        let serve = move |stream, peer| {
            Box::pin(async move {
                connection(state, stream, peer, tls).await;
                drop(place);
            }) as Pin<Box<dyn Future<Output = ()> + Send>>
        };
        workers.give(stream, peer, Box::new(serve));
    };
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => begin(stream, peer),
                // It is a socket, and none that listens.
                Err(e) if inherits && e.kind() == io::ErrorKind::InvalidInput => {
                    return Err(ServeError::Inherit(e.to_string()));
                }
                // Descriptors come back when connections end.
                Err(_) => sleep(Duration::from_millis(20)).await,
            },
            _ = hup.recv() => {
                reload(&state, options.reload.as_deref(), &tls_files, &tls_config, &*options.say);
                followers.follow()?;
            }
            () = ended(&mut term, &mut int) => break,
        }
    }
    // What the kernel took in the guard's name before it was told to end is answered, too; who inherited its socket leaves
    // that to who inherits it next.
    for _ in 0..if inherits { 0 } else { BACKLOG } {
        let Ok(Ok((stream, peer))) = timeout(AT_HAND, listener.accept()).await else { break };
        begin(stream, peer);
    }
    // Whoever connects now is refused and goes elsewhere; what was accepted is answered.
    drop(listener);
    state.drain();
    let closes = Arc::clone(&state);
    tokio::spawn(async move {
        closes.falls_quiet().await;
        closes.close();
    });
    let patience = Duration::from_secs(state.config().config.drain_seconds);
    let under_way = state.under_way.load(std::sync::atomic::Ordering::Relaxed);
    let under_way = counted(under_way, "request");
    (options.say)(&format!("draining: {under_way} under way, at most {} s", patience.as_secs()));
    tokio::select! {
        _ = places.acquire_many(all) => (options.say)("drained"),
        () = sleep(patience) => (options.say)("drain_seconds are over: what was still under way is cut"),
        // Who asks twice does not want to wait.
        () = ended(&mut term, &mut int) => (options.say)("cut"),
    }
    Ok(())
}

async fn ended(term: &mut Signal, int: &mut Signal) {
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
}

fn announce(state: &State, listener: &TcpListener, admin: Option<&TcpListener>, options: &Options) {
    let address = |l: &TcpListener| l.local_addr().map_or_else(|e| e.to_string(), |a| a.to_string());
    let config = state.config();
    let of_file = config.targets.iter().map(|t| t.name.clone());
    let servers: Vec<String> =
        of_file.chain(config.services.iter().map(|s| format!("the pods of {}", s.name))).collect();
    let shadow = if config.config.shadow { " (shadow mode: counts only)" } else { "" };
    (options.say)(&format!("guard listens on {}, before {}{shadow}", address(listener), servers.join(", ")));
    if let Some(admin) = admin {
        (options.say)(&format!("metrics and status on http://{}", address(admin)));
    }
    for t in config.targets.iter().filter(|t| t.said.cgroup.is_none() && t.said.agent.is_none()) {
        let name = &t.name;
        (options.say)(&format!(
            "host RAM of {name} is not watched: name its cgroup, or the agent and its container"
        ));
    }
}

async fn ticks(state: Arc<State>) {
    let mut tick = tokio::time::interval(TICK);
    let mut swept = Instant::now();
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        if swept.elapsed() > SWEEP {
            state.sweep();
            swept = Instant::now();
        }
        if state.gate().admission.waiting() > 0 {
            state.pump();
        }
    }
}

fn reload(
    state: &Arc<State>,
    read: Option<&(dyn Fn() -> Result<Checked, ConfigError> + Send)>,
    files: &Option<Tls>,
    tls_config: &tls::Current,
    say: &(dyn Fn(&str) + Send + Sync),
) {
    if let Some(files) = files {
        match tls::load(files) {
            Ok(new) => tls::take(tls_config, new),
            Err(why) => say(&format!("tls: {why}; the old certificate stays")),
        }
    }
    let Some(read) = read else {
        say("nothing to reload: there is no --config");
        return;
    };
    match read() {
        Err(e) => say(&format!("the new configuration is not taken: {e}")),
        Ok(new) => {
            let old = state.config();
            if (new.listen, new.admin) != (old.listen, old.admin) {
                say("listen and admin are read at the start alone; the rest is taken");
            }
            for (server, term) in state.reload(new) {
                tokio::spawn(watch::watch(Arc::clone(state), server, term));
            }
            say("reloaded");
        }
    }
}

async fn connection(
    state: Arc<State>,
    stream: TcpStream,
    peer: SocketAddr,
    tls: Option<Arc<rustls::ServerConfig>>,
) {
    // Parts of a stream are small and must not wait for each other.
    let _ = stream.set_nodelay(true);
    let head = Duration::from_secs(state.config().config.limits.head_seconds);
    match tls {
        None => {
            // The first bytes decide, and must come in time.
            let first = async {
                tokio::select! {
                    h2 = is_http2(&stream) => h2,
                    // Who connected and sends nothing must not hold up the guard's end.
                    () = state.falls_quiet() => None,
                }
            };
            let Ok(Some(h2)) = timeout(head, first).await else { return };
            if h2 {
                Box::pin(speak::http2(state, stream, peer, head)).await;
            } else {
                Box::pin(speak::http1(state, stream, peer, head)).await;
            }
        }
        Some(config) => {
            let accept = Box::pin(TlsAcceptor::from(config).accept(stream));
            let Ok(Ok(stream)) = timeout(head, accept).await else { return };
            let h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            if h2 {
                Box::pin(speak::http2(state, stream, peer, head)).await;
            } else {
                Box::pin(speak::http1(state, stream, peer, head)).await;
            }
        }
    }
}

/// Whether a connection begins as HTTP/2 does; `None`: it ended.
async fn is_http2(stream: &TcpStream) -> Option<bool> {
    const PREFACE: &[u8] = b"PRI ";
    let mut first = [0_u8; 4];
    loop {
        let n = stream.peek(&mut first).await.ok().filter(|n| *n > 0)?;
        let seen = first.get(..n)?;
        if !PREFACE.starts_with(seen) {
            return Some(false);
        }
        if n == PREFACE.len() {
            return Some(true);
        }
        // Peeking again answers at once with the same bytes.
        sleep(Duration::from_millis(5)).await;
    }
}
