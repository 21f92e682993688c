//! Postgres, for a fleet that has one and for several replicas. A batch is a handful of statements, whatever its size.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dualplane_incidents::{Incident, Time};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, NoTls, Row, Transaction};

use super::delta::{COLUMNS, Delta, PUT_CAUSE, PUT_COUNT, PUT_GPU, PUT_XID, row, several};
use super::migrate;
use super::sql::{Cell, Dialect, Sql};
use super::{Answer, BundleRow, Death, Put, Store, StoreError};

/// Connections.
const CONNECTIONS: usize = 8;
/// To connect, and for any answer.
const CONNECT: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(15);
/// Tries of a batch that met another replica's.
const TRIES: usize = 4;
/// The lock of migrations: no two replicas make tables at once.
const LOCK: i64 = 0x6475_616c_706c_616e;

/// A database on a server.
#[derive(Debug, Clone)]
pub struct Postgres {
    config: Config,
    idle: Arc<Mutex<Vec<Client>>>,
    places: Arc<Semaphore>,
}

/// A connection that goes back when it is dropped, if it is still good.
struct Lent {
    client: Option<Client>,
    idle: Arc<Mutex<Vec<Client>>>,
    _place: OwnedSemaphorePermit,
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(c) = self.client.take().filter(|c| !c.is_closed()) {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(c);
        }
    }
}

impl Lent {
    fn client(&mut self) -> Result<&mut Client, StoreError> {
        self.client.as_mut().ok_or_else(|| StoreError::Away("no connection".to_owned()))
    }
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(e: tokio_postgres::Error) -> Self {
        let Some(db) = e.as_db_error() else { return Self::Away(chain(&e)) };
        // Values that do not fit, or rows too large for an index: the same again would fail again.
        match db.code().code().get(..2) {
            Some("22" | "23" | "54") => Self::Refused(db.message().to_owned()),
            _ => Self::Away(db.message().to_owned()),
        }
    }
}

/// An error with what caused it.
fn chain(e: &dyn std::error::Error) -> String {
    let mut out = e.to_string();
    let mut next = e.source();
    while let Some(e) = next {
        out.push_str(": ");
        out.push_str(&e.to_string());
        next = e.source();
    }
    out
}

impl Postgres {
    /// Connects and makes the tables.
    ///
    /// # Errors
    ///
    /// Where the address cannot be read, nobody answers, or the tables are of a later version.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        let mut config: Config =
            url.parse().map_err(|e: tokio_postgres::Error| StoreError::Away(chain(&e)))?;
        config.connect_timeout(CONNECT);
        config.application_name("dualplane-server");
        let given = config.get_options().map(|o| format!("{o} ")).unwrap_or_default();
        config.options(format!(
            "{given}-c statement_timeout={} -c synchronous_commit=on",
            PATIENCE.as_millis()
        ));
        let store = Self { config, idle: Arc::default(), places: Arc::new(Semaphore::new(CONNECTIONS)) };
        store.migrate().await?;
        Ok(store)
    }

    async fn lend(&self) -> Result<Lent, StoreError> {
        let closed = |_| StoreError::Away("it is closing".to_owned());
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(closed)?;
        let idle = loop {
            let client = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match client {
                Some(c) if c.is_closed() => {}
                other => break other,
            }
        };
        let client = match idle {
            Some(c) => c,
            None => self.connect_one().await?,
        };
        Ok(Lent { client: Some(client), idle: Arc::clone(&self.idle), _place: place })
    }

    async fn connect_one(&self) -> Result<Client, StoreError> {
        let late = |_| StoreError::Away("no answer while connecting".to_owned());
        let (client, connection) = timeout(CONNECT, self.config.connect(NoTls)).await.map_err(late)??;
        tokio::spawn(async move {
            // What went wrong is told to whoever waits for an answer.
            let _ = connection.await;
        });
        Ok(client)
    }

    async fn migrate(&self) -> Result<(), StoreError> {
        let mut lent = self.lend().await?;
        let tx = lent.client()?.transaction().await?;
        tx.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
        tx.batch_execute("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)").await?;
        let version: i64 =
            tx.query_opt("SELECT version FROM schema_version", &[]).await?.map_or(Ok(0), |r| r.try_get(0))?;
        if version > migrate::newest() {
            return Err(StoreError::Content(migrate::too_new(version)));
        }
        for step in migrate::from(version, Dialect::Postgres) {
            tx.batch_execute(&step).await?;
        }
        tx.execute("DELETE FROM schema_version", &[]).await?;
        tx.execute("INSERT INTO schema_version (version) VALUES ($1)", &[&migrate::newest()]).await?;
        Ok(tx.commit().await?)
    }

    async fn answer(&self, sql: Sql) -> Result<Vec<Vec<Cell>>, StoreError> {
        let mut lent = self.lend().await?;
        let client = lent.client()?;
        let statement = client.prepare(&sql.text).await?;
        let values: Vec<&(dyn ToSql + Sync)> = sql
            .values
            .iter()
            .map(|c| match c {
                Cell::Null => &None::<i64> as &(dyn ToSql + Sync),
                Cell::Int(n) => n as _,
                Cell::Text(t) => t as _,
                Cell::Bytes(b) => b as _,
            })
            .collect();
        let rows = within(client.query(&statement, &values)).await?;
        rows.iter().map(cells).collect()
    }

    async fn keep(&self, deaths: Vec<Death>) -> Result<Vec<Put>, StoreError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let mut lent = self.lend().await?;
            let answer = within(put(lent.client()?, &deaths)).await;
            let met = |e: &tokio_postgres::Error| {
                e.code().is_some_and(|c| {
                    [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE].contains(c)
                })
            };
            match answer {
                Err(Failed::Db(e)) if met(&e) && tries < TRIES => {}
                Err(Failed::Db(e)) => {
                    // Its transaction may still be open: the server rolls it back with the connection.
                    lent.client = None;
                    return Err(e.into());
                }
                Err(Failed::Late) => {
                    lent.client = None;
                    return Err(Failed::Late.into());
                }
                Ok(out) => return Ok(out),
            }
        }
    }
}

/// Why there is no answer.
enum Failed {
    Db(tokio_postgres::Error),
    Late,
}

impl From<Failed> for StoreError {
    fn from(f: Failed) -> Self {
        match f {
            Failed::Db(e) => e.into(),
            Failed::Late => Self::Away(format!("no answer within {} s", PATIENCE.as_secs())),
        }
    }
}

/// A network that is cut says nothing.
async fn within<T>(work: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Result<T, Failed> {
    match timeout(PATIENCE + CONNECT, work).await {
        Ok(answer) => answer.map_err(Failed::Db),
        Err(_) => Err(Failed::Late),
    }
}

fn cells(r: &Row) -> Result<Vec<Cell>, StoreError> {
    let one = |(n, c): (usize, &tokio_postgres::Column)| {
        Ok(match *c.type_() {
            Type::INT8 => r.try_get::<_, Option<i64>>(n)?.map_or(Cell::Null, Cell::Int),
            Type::BYTEA => r.try_get::<_, Option<Vec<u8>>>(n)?.map_or(Cell::Null, Cell::Bytes),
            _ => r.try_get::<_, Option<String>>(n)?.map_or(Cell::Null, Cell::Text),
        })
    };
    r.columns().iter().enumerate().map(one).collect()
}

impl Store for Postgres {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn ask(&self, sql: Sql) -> Answer<'_, Vec<Vec<Cell>>> {
        Box::pin(self.answer(sql))
    }

    fn put(&self, deaths: Vec<Death>) -> Answer<'_, Vec<Put>> {
        Box::pin(self.keep(deaths))
    }

    fn put_bundle(&self, id: String, row: BundleRow) -> Answer<'_, ()> {
        Box::pin(async move {
            let mut lent = self.lend().await?;
            let size = i64::try_from(row.size).unwrap_or(i64::MAX);
            let sql = "INSERT INTO bundles (id, size, sha256) VALUES ($1, $2, $3) \
                ON CONFLICT (id) DO UPDATE SET size = excluded.size, sha256 = excluded.sha256";
            within(lent.client()?.execute(sql, &[&id, &size, &row.sha256])).await?;
            Ok(())
        })
    }

    fn forget(&self, before: Time, some: usize) -> Answer<'_, Vec<String>> {
        Box::pin(async move {
            let mut lent = self.lend().await?;
            let tx = lent.client()?.transaction().await?;
            let ids = forget(&tx, before, some).await?;
            tx.commit().await?;
            Ok(ids)
        })
    }
}

/// `VALUES` as columns of arrays: one statement for all rows.
fn unnest(sql: &str, types: &[&str]) -> String {
    let arrays: Vec<String> = types.iter().enumerate().map(|(n, t)| format!("${}::{t}[]", n + 1)).collect();
    sql.replace("VALUES", &format!("SELECT * FROM unnest({})", arrays.join(", ")))
}

/// Rows as columns.
fn turned<const N: usize>(rows: impl IntoIterator<Item = [String; N]>) -> [Vec<String>; N] {
    let mut out = [const { Vec::new() }; N];
    for r in rows {
        for (column, cell) in out.iter_mut().zip(r) {
            column.push(cell);
        }
    }
    out
}

async fn put(client: &mut Client, deaths: &[Death]) -> Result<Vec<Put>, tokio_postgres::Error> {
    let tx = client.transaction().await?;
    // Sorted by name, the first of each: replicas take locks in the same order.
    let mut first: BTreeMap<&str, &Death> = BTreeMap::new();
    for d in deaths {
        first.entry(&d.incident.id).or_insert(d);
    }
    let new = insert(&tx, first.values().copied()).await?;
    let mut delta = Delta::default();
    let fresh: Vec<&Death> = first.values().copied().filter(|d| new.contains(&d.incident.id)).collect();
    for d in &fresh {
        delta.add(&d.incident);
    }
    let ids: Vec<&str> = fresh.iter().map(|d| d.incident.id.as_str()).collect();
    let bodies: Vec<&[u8]> = fresh.iter().map(|d| d.report.as_slice()).collect();
    let sql = "INSERT INTO reports (id, body) VALUES";
    tx.execute(&unnest(sql, &["text", "bytea"]), &[&ids, &bodies]).await?;
    let [dimensions, values, of] = turned(fresh.iter().flat_map(|d| several(&d.incident)));
    let sql = "INSERT INTO several (dimension, value, id) VALUES";
    tx.execute(&unnest(sql, &["text"; 3]), &[&dimensions, &values, &of]).await?;
    apply(&tx, &delta).await?;
    let all: Vec<&str> = first.keys().copied().collect();
    let kept: BTreeMap<String, String> = tx
        .query("SELECT id, digest FROM incidents WHERE id = ANY($1)", &[&all])
        .await?
        .iter()
        .map(|r| Ok((r.try_get(0)?, r.try_get(1)?)))
        .collect::<Result<_, tokio_postgres::Error>>()?;
    tx.commit().await?;
    let mut answered = BTreeSet::new();
    let of = |d: &Death| {
        let id = &d.incident.id;
        match kept.get(id) == Some(&d.digest) {
            false => Put::Taken,
            true if new.contains(id) && answered.insert(id.clone()) => Put::Kept,
            true => Put::Known,
        }
    };
    Ok(deaths.iter().map(of).collect())
}

async fn insert<'a>(
    tx: &Transaction<'_>,
    deaths: impl Iterator<Item = &'a Death> + Clone,
) -> Result<BTreeSet<String>, tokio_postgres::Error> {
    let died: Vec<i64> = deaths.clone().map(|d| d.incident.died_at.ms()).collect();
    let received: Vec<i64> = deaths.clone().map(|d| d.incident.received_at.ms()).collect();
    let mut columns: Vec<Vec<String>> = vec![Vec::new(); COLUMNS.len()];
    for d in deaths {
        for (column, cell) in columns.iter_mut().zip(row(&d.incident, &d.digest)) {
            column.push(cell);
        }
    }
    let sql = format!(
        "INSERT INTO incidents (died, received, {}) VALUES ON CONFLICT (id) DO NOTHING RETURNING id",
        COLUMNS.join(", ")
    );
    let mut types = vec!["bigint", "bigint"];
    types.resize(COLUMNS.len() + 2, "text");
    let mut values: Vec<&(dyn ToSql + Sync)> = vec![&died, &received];
    values.extend(columns.iter().map(|c| c as &(dyn ToSql + Sync)));
    let rows = tx.query(&unnest(&sql, &types), &values).await?;
    rows.iter().map(|r| r.try_get(0)).collect()
}

async fn apply(tx: &Transaction<'_>, delta: &Delta) -> Result<(), tokio_postgres::Error> {
    let of = delta.causes.iter();
    let [keys, loops, clusters, namespaces, last_ids] = turned(of.clone().map(|(key, c)| {
        [key.clone(), c.loop_key.clone(), c.cluster.clone(), c.namespace.clone(), c.last.1.clone()]
    }));
    let occurrences: Vec<i64> = of.clone().map(|(_, c)| c.occurrences).collect();
    let firsts: Vec<i64> = of.clone().map(|(_, c)| c.first).collect();
    let lasts: Vec<i64> = of.map(|(_, c)| c.last.0).collect();
    let types = ["text", "text", "text", "text", "bigint", "bigint", "bigint", "text"];
    tx.execute(
        &unnest(PUT_CAUSE, &types),
        &[&keys, &loops, &clusters, &namespaces, &occurrences, &firsts, &lasts, &last_ids],
    )
    .await?;
    mark_latest(tx, &keys).await?;
    counts(tx, delta).await?;
    cards(tx, delta).await
}

async fn counts(tx: &Transaction<'_>, delta: &Delta) -> Result<(), tokio_postgres::Error> {
    let [days, clusters, namespaces, dimensions, values, classes] = turned(delta.counts.keys().cloned());
    let n: Vec<i64> = delta.counts.values().copied().collect();
    let types = ["text", "text", "text", "text", "text", "text", "bigint"];
    tx.execute(
        &unnest(PUT_COUNT, &types),
        &[&days, &clusters, &namespaces, &dimensions, &values, &classes, &n],
    )
    .await?;
    Ok(())
}

async fn cards(tx: &Transaction<'_>, delta: &Delta) -> Result<(), tokio_postgres::Error> {
    let n = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let [uuids, clusters, namespaces] = turned(delta.gpus.keys().cloned());
    let of = delta.gpus.values();
    let [names, drivers, nodes] =
        turned(of.clone().map(|g| {
            [g.name.clone().unwrap_or_default(), g.driver.clone().unwrap_or_default(), g.node.clone()]
        }));
    let deaths: Vec<i64> = of.clone().map(|g| n(g.incidents)).collect();
    let faults: Vec<i64> = of.clone().map(|g| n(g.faults)).collect();
    let ecc: Vec<i64> = of.clone().map(|g| g.ecc_uncorrected.map_or(-1, n)).collect();
    let last: Vec<i64> = of.map(|g| g.last_at.ms()).collect();
    let mut types = vec!["text"; 6];
    types.resize(10, "bigint");
    tx.execute(
        &unnest(PUT_GPU, &types),
        &[&uuids, &clusters, &namespaces, &names, &drivers, &nodes, &deaths, &faults, &ecc, &last],
    )
    .await?;
    let seen =
        || delta.gpus.iter().flat_map(|(card, g)| g.xids.iter().map(move |(code, n)| (card, *code, *n)));
    let [uuids, clusters, namespaces] = turned(seen().map(|(card, ..)| card.clone()));
    let codes: Vec<i64> = seen().map(|(_, code, _)| i64::from(code)).collect();
    let times: Vec<i64> = seen().map(|(.., times)| n(times)).collect();
    let types = ["text", "text", "text", "bigint", "bigint"];
    tx.execute(&unnest(PUT_XID, &types), &[&uuids, &clusters, &namespaces, &codes, &times]).await?;
    Ok(())
}

async fn mark_latest(tx: &Transaction<'_>, causes: &[String]) -> Result<(), tokio_postgres::Error> {
    tx.execute(
        "UPDATE incidents i SET latest = 0 FROM causes c WHERE i.cause_key = ANY($1) AND i.latest = 1 \
         AND c.cause_key = i.cause_key AND c.last_id <> i.id",
        &[&causes],
    )
    .await?;
    tx.execute(
        "UPDATE incidents i SET latest = 1 FROM causes c WHERE c.cause_key = ANY($1) AND i.id = c.last_id \
         AND i.latest = 0",
        &[&causes],
    )
    .await?;
    Ok(())
}

async fn forget(tx: &Transaction<'_>, before: Time, some: usize) -> Result<Vec<String>, StoreError> {
    let some = i64::try_from(some).unwrap_or(i64::MAX);
    let rows = tx
        .query(
            "SELECT body FROM incidents WHERE died < $1 AND received < $1 ORDER BY died LIMIT $2 \
             FOR UPDATE SKIP LOCKED",
            &[&before.ms(), &some],
        )
        .await?;
    let mut delta = Delta::default();
    let (mut ids, mut causes) = (Vec::new(), BTreeSet::new());
    for r in &rows {
        let body: String = r.try_get(0)?;
        let i: Incident = serde_json::from_str(&body).map_err(|e| StoreError::Content(e.to_string()))?;
        delta.count(&i, -1);
        causes.insert(i.cause_key);
        ids.push(i.id);
    }
    let causes: Vec<String> = causes.into_iter().collect();
    // The same order of locks as a batch: causes before counts.
    tx.execute("SELECT 1 FROM causes WHERE cause_key = ANY($1) ORDER BY cause_key FOR UPDATE", &[&causes])
        .await?;
    for table in ["incidents", "reports", "bundles", "several"] {
        tx.execute(&format!("DELETE FROM {table} WHERE id = ANY($1)"), &[&ids]).await?;
    }
    tx.execute(
        "UPDATE causes c SET last_died = l.died, last_id = l.id FROM (SELECT DISTINCT ON (cause_key) cause_key, died, id \
         FROM incidents WHERE cause_key = ANY($1) ORDER BY cause_key, died DESC, id DESC) l \
         WHERE c.cause_key = l.cause_key",
        &[&causes],
    )
    .await?;
    tx.execute(
        "DELETE FROM causes c WHERE c.cause_key = ANY($1) \
         AND NOT EXISTS (SELECT 1 FROM incidents i WHERE i.cause_key = c.cause_key)",
        &[&causes],
    )
    .await?;
    mark_latest(tx, &causes).await?;
    counts(tx, &delta).await?;
    tx.execute("DELETE FROM counts WHERE deaths <= 0", &[]).await?;
    tx.execute(
        "DELETE FROM gpu_xids x USING gpus g WHERE g.uuid = x.uuid AND g.cluster = x.cluster \
         AND g.namespace = x.namespace AND g.last_died < $1",
        &[&before.ms()],
    )
    .await?;
    tx.execute("DELETE FROM gpus WHERE last_died < $1", &[&before.ms()]).await?;
    Ok(ids)
}
