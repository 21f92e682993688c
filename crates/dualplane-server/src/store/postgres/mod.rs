//! Postgres, for a fleet that has one and for several replicas. Connections and answers; `tls.rs` encrypts the way, `write.rs` is what it writes.

mod tls;
mod write;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dualplane_incidents::Time;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, Row};

use self::write::{forget, put};
use super::days::Days;
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

/// Writes what waits for the index of words, where there is one (`0005_words_postgres.sql`).
pub const SETTLED: &str =
    "SELECT gin_clean_pending_list(c.oid) FROM pg_class c WHERE c.oid = to_regclass('incidents_words')";

/// A database on a server.
#[derive(Debug, Clone)]
pub struct Postgres {
    config: Config,
    tls: tls::Encrypt,
    idle: Arc<Mutex<Vec<Client>>>,
    places: Arc<Semaphore>,
    days: Arc<Days>,
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
        let asked = tls::asked(url).map_err(StoreError::Away)?;
        let mut config: Config =
            asked.rest.parse().map_err(|e: tokio_postgres::Error| StoreError::Away(chain(&e)))?;
        config.ssl_mode(asked.mode);
        config.connect_timeout(CONNECT);
        config.application_name("dualplane-server");
        let given = config.get_options().map(|o| format!("{o} ")).unwrap_or_default();
        config.options(format!(
            "{given}-c statement_timeout={} -c synchronous_commit=on",
            PATIENCE.as_millis()
        ));
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        let tls = tls::Encrypt::new(&asked).map_err(StoreError::Away)?;
        let store = Self { config, tls, idle: Arc::default(), places, days: Arc::default() };
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
        let (client, connection) =
            timeout(CONNECT, self.config.connect(self.tls.clone())).await.map_err(late)??;
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
        let rows = within(client.query(&statement, &values(&sql))).await?;
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

fn values(sql: &Sql) -> Vec<&(dyn ToSql + Sync)> {
    let one = |c| match c {
        &Cell::Null => &None::<i64> as &(dyn ToSql + Sync),
        Cell::Int(n) => n as _,
        Cell::Text(t) => t as _,
        Cell::Bytes(b) => b as _,
    };
    sql.values.iter().map(one).collect()
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

    fn days(&self) -> &Days {
        &self.days
    }

    fn ask(&self, sql: Sql) -> Answer<'_, Vec<Vec<Cell>>> {
        Box::pin(self.answer(sql))
    }

    fn change(&self, sql: Sql) -> Answer<'_, u64> {
        Box::pin(async move {
            let mut lent = self.lend().await?;
            let client = lent.client()?;
            let statement = client.prepare(&sql.text).await?;
            Ok(within(client.execute(&statement, &values(&sql))).await?)
        })
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
