//! Listens, serves, and ends without cutting what is under way.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use dualplane_guard::tls;
use dualplane_incidents::Time;
use dualplane_kube::access::Access;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::api;
use crate::app::{App, Say, events, now};
use crate::audit::Audit;
use crate::auth::Auth;
use crate::auth::cluster::{ApiServer, Cluster};
use crate::auth::oidc::Oidc;
use crate::config::{ConfigError, Options};
use crate::ingest::Ingest;
use crate::ingest::bundle::Bundles;
use crate::ingest::judge::Judge;
use crate::ingest::shelf::{Bucket, Folder, Shelf};
use crate::rehearse::Rehearse;
use crate::retention;
use crate::store::postgres::{Postgres, SETTLED};
use crate::store::sqlite::Sqlite;
use crate::store::{Dialect, Scope, Span, Sql, Store, StoreError, counted};

/// Connections at a time: 1,000 agents and people.
const CONNECTIONS: usize = 4096;
/// For the head of a request, and the handshake of TLS.
const HEAD: Duration = Duration::from_secs(15);
/// For what is under way when the server ends.
const DRAIN: Duration = Duration::from_secs(10);
/// For what is given back to other replicas.
const GIVE_BACK: Duration = Duration::from_secs(2);
/// Between two looks at the tokens.
const LOOK: Duration = Duration::from_secs(5);
/// Words that wait for their index in Postgres.
const SETTLE: Duration = Duration::from_millis(500);

/// Why it does not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// It would be open to everybody.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The port cannot be had.
    #[error("cannot listen on {0}: {1}")]
    Bind(SocketAddr, io::Error),
    /// The folder of the data cannot be used.
    #[error("cannot use {0}: {1}")]
    Data(PathBuf, io::Error),
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Tokens, certificate, knowledge.
    #[error("{0}")]
    Said(String),
    /// No runtime, no signals.
    #[error("cannot start: {0}")]
    Start(#[from] io::Error),
}

/// Opens the parts of a server.
///
/// # Errors
///
/// Where one of them cannot be had.
pub async fn open(options: &Options, say: Say) -> Result<Arc<App>, ServeError> {
    options.check()?;
    let data = |e| ServeError::Data(options.data.clone(), e);
    std::fs::create_dir_all(&options.data).map_err(data)?;
    let store: Arc<dyn Store> = match &options.database_url {
        Some(url) => Arc::new(Postgres::connect(url).await?),
        None => Arc::new(Sqlite::open(&options.data.join("incidents.db"))?),
    };
    let oidc = options.oidc.as_ref().map(Oidc::open).transpose().map_err(ServeError::Said)?;
    let cluster = match &options.kubernetes {
        Some(k) => {
            let api = Access::default().connect().await;
            let api = api.map_err(|e| ServeError::Said(format!("--kubernetes: {e}")))?;
            let reviews = Box::new(ApiServer { api, audience: k.audience.clone() });
            Some(Cluster::new(reviews, Arc::clone(&store), k.cluster.clone()))
        }
        None => None,
    };
    let log = options.audit_log.clone().unwrap_or_else(|| options.data.join("audit.jsonl"));
    let audit = Audit::open(log.clone()).map_err(|e| ServeError::Data(log, e))?;
    let app = App {
        ingest: Ingest::start(&store),
        store,
        bundles: Bundles::open(&options.data, shelf(options, &say).await?).map_err(data)?,
        judge: Judge::new().map_err(ServeError::Said)?,
        rehearse: Rehearse::default(),
        auth: Auth::open(options.tokens.clone(), options.rate, cluster, oidc).map_err(ServeError::Said)?,
        audit: Some(audit),
        events: events(),
        max_bundle: options.max_bundle,
        keep_days: options.keep_days,
        ending: watch::Sender::new(false),
        say,
    };
    Ok(Arc::new(app))
}

/// Where whole bundles go. A bucket that does not answer now may answer later; uploads of bundles are told so meanwhile.
async fn shelf(options: &Options, say: &Say) -> Result<Arc<dyn Shelf>, ServeError> {
    let Some(place) = &options.bundles else {
        let folder = options.data.join("bundles");
        return Ok(Arc::new(Folder::open(folder).map_err(|e| ServeError::Data(options.data.clone(), e))?));
    };
    let env = std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)));
    let env: Vec<_> = env.collect();
    let bucket = Bucket::open(place, &env, options.data.join("cache")).map_err(ServeError::Said)?;
    if let Err(e) = bucket.probe().await {
        say(&format!("{}: {e}; no bundle is kept until it answers", place.url));
    }
    Ok(Arc::new(bucket))
}

/// Serves until a signal ends it. `ready` is told the address, and may fill the store.
///
/// # Errors
///
/// Where it cannot start.
pub fn run(
    options: Options,
    say: Say,
    ready: impl AsyncFnOnce(Arc<App>, SocketAddr) -> Result<(), ServeError>,
) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let answer = runtime.block_on(async {
        let app = open(&options, say).await?;
        let bound = TcpListener::bind(options.listen).await;
        let listener = bound.map_err(|e| ServeError::Bind(options.listen, e))?;
        let address = listener.local_addr()?;
        let tls_config: tls::Current = Arc::default();
        if let Some(files) = &options.tls {
            let loaded = tls::load(files).map_err(|e| ServeError::Said(format!("tls: {e}")))?;
            tls::take(&tls_config, loaded);
            tokio::spawn(tls::renew(files.clone(), Arc::clone(&tls_config), Arc::clone(&app.say)));
        }
        tokio::spawn(look(Arc::clone(&app)));
        tokio::spawn(retention::sweep(Arc::clone(&app)));
        tokio::spawn(warm(Arc::clone(&app)));
        tokio::spawn(settle(Arc::clone(&app)));
        tokio::spawn(api::events::watch(Arc::clone(&app)));
        ready(Arc::clone(&app), address).await?;
        if let Some(what) = &options.watch {
            let started = crate::watch::start(Arc::clone(&app), what.clone(), options.data.clone()).await;
            started.map_err(|e| ServeError::Said(format!("--watch: {e}")))?;
        }
        accept(&app, listener, &tls_config).await
    });
    runtime.shutdown_timeout(Duration::from_millis(200));
    answer
}

async fn accept(app: &Arc<App>, listener: TcpListener, tls_config: &tls::Current) -> Result<(), ServeError> {
    let router = api::router(Arc::clone(app));
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, peer)) = accepted else {
                    // Descriptors come back when connections end.
                    sleep(Duration::from_millis(20)).await;
                    continue;
                };
                // Without a place the connection is closed at once: whoever waits learns of it.
                let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
                let tls = tls_config.read().unwrap_or_else(PoisonError::into_inner).clone();
                let router = router.clone().layer(axum::Extension(api::From(peer.ip())));
                let watcher = graceful.watcher();
                tokio::spawn(async move {
                    connection(stream, tls, router, watcher).await;
                    drop(place);
                });
            }
            _ = term.recv() => break,
            _ = int.recv() => break,
        }
    }
    drop(listener);
    (app.say)("ending: what is under way is answered");
    app.ending.send_replace(true);
    tokio::select! {
        () = graceful.shutdown() => {}
        () = sleep(DRAIN) => (app.say)("what was still under way after 10 s is cut"),
        _ = int.recv() => {}
    }
    // Whoever holds something for the others gives it back.
    let _ = timeout(GIVE_BACK, app.ending.closed()).await;
    Ok(())
}

async fn connection(
    stream: TcpStream,
    tls: Option<Arc<rustls::ServerConfig>>,
    router: axum::Router,
    watcher: Watcher,
) {
    let _ = stream.set_nodelay(true);
    match tls {
        None => http(TokioIo::new(stream), router, watcher).await,
        Some(config) => {
            // An error is the caller's: no TLS, or too slow.
            if let Ok(Ok(stream)) = timeout(HEAD, TlsAcceptor::from(config).accept(stream)).await {
                http(TokioIo::new(stream), router, watcher).await;
            }
        }
    }
}

async fn http<T>(io: T, router: axum::Router, watcher: Watcher)
where
    T: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD).max_headers(128);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(64).keep_alive_interval(HEAD);
    let connection = builder.serve_connection(io, TowerToHyperService::new(router));
    let _ = watcher.watch(connection.into_owned()).await;
}

/// Reads the tokens again when they change.
async fn look(app: Arc<App>) {
    loop {
        sleep(LOOK).await;
        match app.auth.renew() {
            Ok(true) => (app.say)("tokens were read again"),
            Ok(false) => {}
            Err(e) => (app.say)(&format!("{e}; the old tokens stay")),
        }
    }
}

/// Counts what pages ask for before anybody does: the last days first. Where the store does not answer, the first reader counts.
async fn warm(app: Arc<App>) {
    let recent = Time::from_ms(now().ms() - 30 * 86_400_000);
    for since in [Some(recent), None] {
        let _ = counted(&*app.store, &Span { since, scope: Scope::All }).await;
    }
}

/// Lets Postgres write the trigrams that wait into their index, so that no upload waits for it. Where this server may not, Postgres
/// does it when its list is full.
async fn settle(app: Arc<App>) {
    if app.store.dialect() != Dialect::Postgres {
        return;
    }
    loop {
        sleep(SETTLE).await;
        let _ = app.store.change(Sql::new(Dialect::Postgres, SETTLED)).await;
    }
}
