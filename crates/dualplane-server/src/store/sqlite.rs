//! SQLite in one file: nothing to install. One connection writes, some read; a commit is on the disk.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dualplane_incidents::{Incident, Time};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, OpenFlags, ToSql, TransactionBehavior, params, params_from_iter};
use tokio::sync::Semaphore;

use super::days::Days;
use super::delta::{COLUMNS, Delta, PUT_CAUSE, PUT_COUNT, PUT_DAY, PUT_GPU, PUT_XID, row, searched, several};
use super::migrate;
use super::sql::{Cell, Dialect, Sql};
use super::{Answer, BundleRow, Death, Put, Store, StoreError};

/// Questions at a time.
const READERS: usize = 4;
/// A question that takes longer is ended: a search without an index may read everything.
const PATIENCE: Duration = Duration::from_secs(10);
/// Deaths of one second that have a number of their own, see `words`.
pub(super) const TURNS: i64 = 65_536;
/// For another process that writes.
const BUSY: Duration = Duration::from_secs(5);

/// The database of a file.
#[derive(Debug, Clone)]
pub struct Sqlite {
    path: PathBuf,
    writer: Arc<Mutex<Connection>>,
    readers: Arc<Mutex<Vec<Connection>>>,
    places: Arc<Semaphore>,
    days: Arc<Days>,
}

impl From<rusqlite::Error> for StoreError {
    fn from(e: rusqlite::Error) -> Self {
        Self::Away(e.to_string())
    }
}

impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Null => ToSqlOutput::Owned(Value::Null),
            Self::Int(n) => ToSqlOutput::Owned(Value::Integer(*n)),
            Self::Text(t) => ToSqlOutput::Borrowed(ValueRef::Text(t.as_bytes())),
            Self::Bytes(b) => ToSqlOutput::Borrowed(ValueRef::Blob(b)),
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sqlite {
    /// Opens or makes it.
    ///
    /// # Errors
    ///
    /// Where the file cannot be opened, is no database, or one of a later version.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let mut writer = Connection::open(path)?;
        settings(&writer)?;
        migrate(&mut writer)?;
        Ok(Self {
            path: path.to_owned(),
            writer: Arc::new(Mutex::new(writer)),
            readers: Arc::default(),
            places: Arc::new(Semaphore::new(READERS)),
            days: Arc::default(),
        })
    }

    fn reader(&self) -> Result<Connection, StoreError> {
        if let Some(c) = lock(&self.readers).pop() {
            return Ok(c);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let c = Connection::open_with_flags(&self.path, flags)?;
        c.busy_timeout(BUSY)?;
        c.pragma_update(None, "query_only", true)?;
        c.pragma_update(None, "cache_size", -16_384)?;
        Ok(c)
    }

    async fn answer(&self, sql: Sql) -> Result<Vec<Vec<Cell>>, StoreError> {
        let closed = |_| StoreError::Away("it is closing".to_owned());
        let _place = Arc::clone(&self.places).acquire_owned().await.map_err(closed)?;
        let connection = self.reader()?;
        let handle = connection.get_interrupt_handle();
        let readers = Arc::clone(&self.readers);
        let work = tokio::task::spawn_blocking(move || {
            let rows = rows(&connection, &sql);
            lock(&readers).push(connection);
            rows
        });
        tokio::pin!(work);
        let done = tokio::select! {
            done = &mut work => done,
            () = tokio::time::sleep(PATIENCE) => {
                handle.interrupt();
                let _ = work.await;
                return Err(StoreError::Away(format!("the question took longer than {} s: narrow it by a filter", PATIENCE.as_secs())));
            }
        };
        done.map_err(|e| StoreError::Away(e.to_string()))?
    }

    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let writer = Arc::clone(&self.writer);
        let done = tokio::task::spawn_blocking(move || work(&mut lock(&writer))).await;
        done.map_err(|e| StoreError::Away(e.to_string()))?
    }
}

impl Store for Sqlite {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn days(&self) -> &Days {
        &self.days
    }

    fn ask(&self, sql: Sql) -> Answer<'_, Vec<Vec<Cell>>> {
        Box::pin(self.answer(sql))
    }

    fn change(&self, sql: Sql) -> Answer<'_, u64> {
        Box::pin(self.write(move |c| Ok(c.execute(&sql.text, params_from_iter(&sql.values))? as u64)))
    }

    fn put(&self, deaths: Vec<Death>) -> Answer<'_, Vec<Put>> {
        Box::pin(self.write(move |c| put(c, &deaths)))
    }

    fn put_bundle(&self, id: String, row: BundleRow) -> Answer<'_, ()> {
        Box::pin(self.write(move |c| {
            let size = i64::try_from(row.size).unwrap_or(i64::MAX);
            let sql = "INSERT INTO bundles (id, size, sha256) VALUES ($1, $2, $3) \
                ON CONFLICT (id) DO UPDATE SET size = excluded.size, sha256 = excluded.sha256";
            c.execute(sql, params![id, size, row.sha256])?;
            Ok(())
        }))
    }

    fn forget(&self, before: Time, some: usize) -> Answer<'_, Vec<String>> {
        Box::pin(self.write(move |c| forget(c, before, some)))
    }
}

/// What is committed survives the loss of power; readers do not wait for the writer.
fn settings(c: &Connection) -> Result<(), StoreError> {
    c.busy_timeout(BUSY)?;
    c.pragma_update(None, "journal_mode", "WAL")?;
    c.pragma_update(None, "synchronous", "FULL")?;
    c.pragma_update(None, "cache_size", -32_768)?;
    c.set_prepared_statement_cache_capacity(64);
    Ok(())
}

fn migrate(c: &mut Connection) -> Result<(), StoreError> {
    let tx = c.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version: i64 = tx.query_row("PRAGMA user_version", [], |r| r.get(0))?;
    if version > migrate::newest() {
        return Err(StoreError::Content(migrate::too_new(version)));
    }
    for step in migrate::from(version, Dialect::Sqlite) {
        tx.execute_batch(&step)?;
    }
    if version <= migrate::WITHOUT_TAGS {
        index_all(&tx)?;
    }
    tx.pragma_update(None, "user_version", migrate::newest())?;
    Ok(tx.commit()?)
}

/// Fills `words`, which holds no text that it could be made of again.
fn index_all(tx: &Connection) -> Result<(), StoreError> {
    let mut all = tx.prepare("SELECT place, searched, body FROM incidents ORDER BY place")?;
    let mut rows = all.query([])?;
    while let Some(r) = rows.next()? {
        let i = read(&r.get::<_, String>(2)?)?;
        words(tx, None, r.get(0)?, r.get(1)?, &i)?;
    }
    Ok(())
}

fn read(body: &str) -> Result<Incident, StoreError> {
    serde_json::from_str(body).map_err(|e| StoreError::Content(e.to_string()))
}

/// Puts a death into the index of words, or takes it out by the command `delete`, which is told what was put in.
fn words(
    tx: &Connection,
    command: Option<&str>,
    place: i64,
    searched: String,
    i: &Incident,
) -> Result<(), StoreError> {
    let columns: Vec<&str> = super::tags::TAGGED.iter().map(|d| d.as_str()).collect();
    let mut cells: Vec<Cell> = command.map(Cell::from).into_iter().collect();
    cells.extend([Cell::Int(place), Cell::Text(searched)]);
    cells.extend(super::tags::columns(i).into_iter().map(Cell::Text));
    let first = if command.is_some() { "words, " } else { "" };
    let sql = format!("INSERT INTO words ({first}rowid, searched, {}) VALUES", columns.join(", "));
    tx.prepare_cached(&values(&sql, cells.len()))?.execute(params_from_iter(&cells))?;
    Ok(())
}

fn rows(c: &Connection, sql: &Sql) -> Result<Vec<Vec<Cell>>, StoreError> {
    let mut statement = c.prepare_cached(&sql.text)?;
    let columns = statement.column_count();
    let mut found = statement.query(params_from_iter(&sql.values))?;
    let mut out = Vec::new();
    while let Some(r) = found.next()? {
        let cell = |n| {
            Ok::<_, StoreError>(match r.get_ref(n)? {
                ValueRef::Integer(i) => Cell::Int(i),
                ValueRef::Text(t) => Cell::Text(String::from_utf8_lossy(t).into_owned()),
                ValueRef::Blob(b) => Cell::Bytes(b.to_vec()),
                ValueRef::Null | ValueRef::Real(_) => Cell::Null,
            })
        };
        out.push((0..columns).map(cell).collect::<Result<_, _>>()?);
    }
    Ok(out)
}

/// `VALUES` of a statement that both stores speak.
fn values(sql: &str, n: usize) -> String {
    let marks: Vec<String> = (1..=n).map(|i| format!("${i}")).collect();
    sql.replace("VALUES", &format!("VALUES ({})", marks.join(", ")))
}

fn put(c: &mut Connection, deaths: &[Death]) -> Result<Vec<Put>, StoreError> {
    let tx = c.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut out = Vec::with_capacity(deaths.len());
    let mut delta = Delta::default();
    let columns = COLUMNS.join(", ");
    let insert = format!(
        "INSERT INTO incidents (died, received, place, {columns}) VALUES ON CONFLICT (id) DO NOTHING"
    );
    let insert = values(&insert, COLUMNS.len() + 3);
    for d in deaths {
        let i = &d.incident;
        let place = place(&tx, i)?;
        let mut cells = vec![Cell::Int(i.died_at.ms()), Cell::Int(i.received_at.ms()), Cell::Int(place)];
        cells.extend(row(d).into_iter().map(Cell::Text));
        if tx.prepare_cached(&insert)?.execute(params_from_iter(&cells))? == 0 {
            let put = tx
                .prepare_cached("SELECT digest, sender FROM incidents WHERE id = $1")?
                .query_row([&i.id], |r| Ok(Put::of(d, &r.get::<_, String>(0)?, &r.get::<_, String>(1)?)))?;
            out.push(put);
            continue;
        }
        tx.prepare_cached("INSERT INTO reports (id, body) VALUES ($1, $2)")?
            .execute(params![i.id, d.report])?;
        words(&tx, None, place, searched(i), i)?;
        for [dimension, value, id] in several(i) {
            tx.prepare_cached("INSERT INTO several (dimension, value, died, id) VALUES ($1, $2, $3, $4)")?
                .execute(params![dimension, value, i.died_at.ms(), id])?;
        }
        delta.add(i);
        out.push(Put::Kept);
    }
    apply(&tx, &delta)?;
    tx.commit()?;
    Ok(out)
}

/// The number under which its words are kept: its second, and its turn in it.
fn place(tx: &Connection, i: &Incident) -> Result<i64, StoreError> {
    let first = i.died_at.ms().div_euclid(1000) * TURNS;
    let last: Option<i64> = tx
        .prepare_cached("SELECT MAX(place) FROM incidents WHERE place >= $1 AND place < $2")?
        .query_row([first, first + TURNS], |r| r.get(0))?;
    match last {
        None => Ok(first),
        Some(last) if last + 1 < first + TURNS => Ok(last + 1),
        Some(_) => {
            Err(StoreError::Refused(format!("{TURNS} other deaths have the same second: send its time")))
        }
    }
}

fn apply(tx: &Connection, delta: &Delta) -> Result<(), StoreError> {
    for (key, d) in &delta.causes {
        let of = params![key, d.loop_key, d.cluster, d.namespace, d.occurrences, d.first, d.last.0, d.last.1];
        tx.prepare_cached(&values(PUT_CAUSE, 8))?.execute(of)?;
        mark_latest(tx, key)?;
    }
    counts(tx, delta)?;
    for ([uuid, cluster, namespace], g) in &delta.gpus {
        let n = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let name = g.name.as_deref().unwrap_or("");
        let driver = g.driver.as_deref().unwrap_or("");
        let ecc = g.ecc_uncorrected.map_or(-1, n);
        let of = params![
            uuid,
            cluster,
            namespace,
            name,
            driver,
            g.node,
            n(g.incidents),
            n(g.faults),
            ecc,
            g.last_at.ms()
        ];
        tx.prepare_cached(&values(PUT_GPU, 10))?.execute(of)?;
        for (code, seen) in &g.xids {
            let of = params![uuid, cluster, namespace, code, n(*seen)];
            tx.prepare_cached(&values(PUT_XID, 5))?.execute(of)?;
        }
    }
    Ok(())
}

fn counts(tx: &Connection, delta: &Delta) -> Result<(), StoreError> {
    let sql = values(PUT_COUNT, 7);
    for ([day, cluster, namespace, dimension, value, class], n) in &delta.counts {
        let of = params![day, cluster, namespace, dimension, value, class, n];
        tx.prepare_cached(&sql)?.execute(of)?;
    }
    for day in delta.days() {
        tx.prepare_cached(&values(PUT_DAY, 2))?.execute(params![day, 1])?;
    }
    Ok(())
}

fn mark_latest(tx: &Connection, cause: &str) -> Result<(), StoreError> {
    tx.prepare_cached("UPDATE incidents SET latest = 0 WHERE cause_key = $1 AND latest = 1")?
        .execute([cause])?;
    tx.prepare_cached(
        "UPDATE incidents SET latest = 1 WHERE id = (SELECT last_id FROM causes WHERE cause_key = $1)",
    )?
    .execute([cause])?;
    Ok(())
}

fn forget(c: &mut Connection, before: Time, some: usize) -> Result<Vec<String>, StoreError> {
    let tx = c.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let some = i64::try_from(some).unwrap_or(i64::MAX);
    let old: Vec<(String, i64, String)> = tx
        .prepare("SELECT body, place, searched FROM incidents WHERE died < $1 AND received < $1 ORDER BY died LIMIT $2")?
        .query_map(params![before.ms(), some], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)))?
        .collect::<Result<_, _>>()?;
    let mut delta = Delta::default();
    let mut ids = Vec::new();
    let mut causes = std::collections::BTreeSet::new();
    for (body, place, searched) in old {
        let i = read(&body)?;
        words(&tx, Some("delete"), place, searched, &i)?;
        for table in ["incidents", "reports", "bundles", "several"] {
            tx.prepare_cached(&format!("DELETE FROM {table} WHERE id = $1"))?.execute([&i.id])?;
        }
        delta.count(&i, -1);
        causes.insert(i.cause_key);
        ids.push(i.id);
    }
    counts(&tx, &delta)?;
    tx.execute("DELETE FROM counts WHERE deaths <= 0", [])?;
    for cause in causes {
        tx.prepare_cached(
            "UPDATE causes SET (last_died, last_id) = (SELECT died, id FROM incidents WHERE cause_key = $1 \
             ORDER BY died DESC, id DESC LIMIT 1) \
             WHERE cause_key = $1 AND EXISTS (SELECT 1 FROM incidents WHERE cause_key = $1)",
        )?
        .execute([&cause])?;
        tx.prepare_cached(
            "DELETE FROM causes WHERE cause_key = $1 AND NOT EXISTS (SELECT 1 FROM incidents WHERE cause_key = $1)",
        )?
        .execute([&cause])?;
        mark_latest(&tx, &cause)?;
    }
    // A card's history stays as long as anything happens to it.
    tx.execute("DELETE FROM gpu_xids WHERE EXISTS (SELECT 1 FROM gpus g WHERE g.uuid = gpu_xids.uuid AND g.cluster = gpu_xids.cluster AND g.namespace = gpu_xids.namespace AND g.last_died < $1)", [before.ms()])?;
    tx.execute("DELETE FROM gpus WHERE last_died < $1", [before.ms()])?;
    tx.commit()?;
    Ok(ids)
}
