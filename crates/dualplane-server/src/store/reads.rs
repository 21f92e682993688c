//! Questions that both stores answer alike.

use std::collections::BTreeMap;

use dualplane_incidents::{Fleet, GpuHealth, Incident, Time, Worst};

use super::sql::{Cell, Sql};
use super::{BundleRow, Page, Scope, Store, StoreError};

/// Causes and cards that a fleet shows.
const WORST: i64 = 100;
/// Cards of which the worst are chosen: one row for each namespace that had it.
const CARDS: i64 = 2_000;

pub(super) fn text(row: &[Cell], n: usize) -> &str {
    row.get(n).map_or("", Cell::text)
}

pub(super) fn int(row: &[Cell], n: usize) -> i64 {
    row.get(n).map_or(0, Cell::int)
}

pub(super) fn count(row: &[Cell], n: usize) -> u64 {
    u64::try_from(int(row, n)).unwrap_or(0)
}

/// An incident of its body and the occurrences of its cause.
fn incident(row: &[Cell]) -> Result<Incident, StoreError> {
    let mut out: Incident =
        serde_json::from_str(text(row, 0)).map_err(|e| StoreError::Content(e.to_string()))?;
    out.occurrences = count(row, 1).max(1);
    Ok(out)
}

/// A page of a list, the newest first.
///
/// # Errors
///
/// Where the store does not answer.
pub async fn list(store: &dyn Store, page: &Page) -> Result<Vec<Incident>, StoreError> {
    let rows = store.ask(super::page::page(store.dialect(), page)).await?;
    rows.iter().map(|r| incident(r)).collect()
}

/// An incident, whoever may see it.
///
/// # Errors
///
/// Where the store does not answer.
pub async fn get(store: &dyn Store, id: &str) -> Result<Option<Incident>, StoreError> {
    let mut sql = Sql::new(
        store.dialect(),
        "SELECT i.body, c.occurrences FROM incidents i JOIN causes c ON c.cause_key = i.cause_key WHERE i.id = ",
    );
    sql.value(id);
    store.ask(sql).await?.first().map(|r| incident(r)).transpose()
}

/// Who sent it; empty where that is not known any more.
///
/// # Errors
///
/// Where the store does not answer.
pub async fn sender(store: &dyn Store, id: &str) -> Result<Option<String>, StoreError> {
    let mut sql = Sql::new(store.dialect(), "SELECT sender FROM incidents WHERE id = ");
    sql.value(id);
    Ok(store.ask(sql).await?.first().map(|r| text(r, 0).to_owned()))
}

/// Namespaces of a cluster in which something died.
///
/// # Errors
///
/// Where the store does not answer.
pub async fn namespaces(store: &dyn Store, cluster: &str, some: i64) -> Result<Vec<String>, StoreError> {
    let mut sql = Sql::new(store.dialect(), "SELECT DISTINCT t.namespace FROM causes t WHERE t.cluster = ");
    sql.value(cluster).add(" ORDER BY t.namespace LIMIT ").value(some);
    Ok(store.ask(sql).await?.iter().map(|r| text(r, 0).to_owned()).collect())
}

/// Its report, packed.
///
/// # Errors
///
/// Where the store does not answer.
pub async fn report(store: &dyn Store, id: &str) -> Result<Option<Vec<u8>>, StoreError> {
    let mut sql = Sql::new(store.dialect(), "SELECT body FROM reports WHERE id = ");
    sql.value(id);
    let rows = store.ask(sql).await?;
    Ok(rows.into_iter().flatten().find_map(|c| if let Cell::Bytes(b) = c { Some(b) } else { None }))
}

/// Its bundle's row.
///
/// # Errors
///
/// Where the store does not answer.
pub async fn bundle(store: &dyn Store, id: &str) -> Result<Option<BundleRow>, StoreError> {
    let mut sql = Sql::new(store.dialect(), "SELECT size, sha256 FROM bundles WHERE id = ");
    sql.value(id);
    let rows = store.ask(sql).await?;
    Ok(rows.first().map(|r| BundleRow { size: count(r, 0), sha256: text(r, 1).to_owned() }))
}

/// A place in the order in which deaths were received.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrival {
    /// When.
    pub at: Time,
    /// Name.
    pub id: String,
}

/// What was received at this place or later, the oldest first.
///
/// # Errors
///
/// Where the store does not answer.
pub async fn arrivals(store: &dyn Store, from: &Arrival, limit: i64) -> Result<Vec<Incident>, StoreError> {
    let mut sql = Sql::new(
        store.dialect(),
        "SELECT i.body, c.occurrences FROM incidents i JOIN causes c ON c.cause_key = i.cause_key WHERE (i.received, i.id) >= (",
    );
    sql.value(from.at.ms()).add(", ").value(from.id.as_str());
    sql.add(") ORDER BY i.received, i.id LIMIT ").value(limit);
    let rows = store.ask(sql).await?;
    rows.iter().map(|r| incident(r)).collect()
}

/// When the latest was received, of those before this time.
///
/// # Errors
///
/// Where the store does not answer.
pub async fn latest(store: &dyn Store, before: Time) -> Result<Option<Time>, StoreError> {
    let mut sql = Sql::new(store.dialect(), "SELECT i.received FROM incidents i WHERE i.received < ");
    sql.value(before.ms()).add(" ORDER BY i.received DESC LIMIT 1");
    Ok(store.ask(sql).await?.first().map(|r| Time::from_ms(int(r, 0))))
}

/// Of what a fleet is asked.
#[derive(Debug, Clone)]
pub struct Span {
    /// From the beginning of this day.
    pub since: Option<Time>,
    /// Of which namespaces.
    pub scope: Scope,
}

impl Span {
    fn narrow(&self, sql: &mut Sql, column: &str, table: &str) {
        if let Some(t) = self.since {
            let start = Time::parse(&format!("{}T00:00:00Z", t.day())).unwrap_or(t);
            sql.add(&format!(" AND {table}.{column} >= ")).value(start.ms());
        }
        sql.scope(table, &self.scope);
    }
}

/// The statistics. How often a cause killed is counted over all time, everything else over the span.
///
/// # Errors
///
/// Where the store does not answer.
pub async fn fleet(store: &dyn Store, span: &Span) -> Result<Fleet, StoreError> {
    let mut fleet = counted(store, span).await?;
    let mut sql = Sql::new(store.dialect(), "SELECT COUNT(*) FROM causes t WHERE 1 = 1");
    span.narrow(&mut sql, "last_died", "t");
    fleet.causes = store.ask(sql).await?.first().map_or(0, |r| count(r, 0));
    fleet.worst = worst(store, span).await?.worst;
    fleet.gpus = cards(store, span).await?.gpus;
    Ok(fleet)
}

/// Of the statistics what is counted by day: classes, shares, days.
///
/// # Errors
///
/// Where the store does not answer.
pub async fn counted(store: &dyn Store, span: &Span) -> Result<Fleet, StoreError> {
    super::days::counted(store, span).await
}

/// Of the statistics the causes that killed most.
///
/// # Errors
///
/// Where the store does not answer.
pub async fn worst(store: &dyn Store, span: &Span) -> Result<Fleet, StoreError> {
    let mut sql = Sql::new(
        store.dialect(),
        "SELECT i.body, t.occurrences, t.first_died, t.cause_key FROM causes t JOIN incidents i ON i.id = t.last_id WHERE 1 = 1",
    );
    span.narrow(&mut sql, "last_died", "t");
    sql.add(" ORDER BY t.occurrences DESC, t.last_died DESC LIMIT ").value(WORST);
    let rows = store.ask(sql).await?;
    let one = |r: &Vec<Cell>| {
        Ok(Worst {
            cause_key: text(r, 3).to_owned(),
            occurrences: count(r, 1),
            first_at: Time::from_ms(int(r, 2)),
            latest: incident(r)?,
        })
    };
    let mut fleet = Fleet::default();
    fleet.set_worst(rows.iter().map(one).collect::<Result<_, StoreError>>()?);
    Ok(fleet)
}

/// Of the statistics the health of cards.
///
/// # Errors
///
/// Where the store does not answer.
pub async fn cards(store: &dyn Store, span: &Span) -> Result<Fleet, StoreError> {
    let mut sql = Sql::new(
        store.dialect(),
        "SELECT t.uuid, t.name, t.driver, t.node, t.deaths, t.faults, t.ecc, t.last_died FROM gpus t WHERE 1 = 1",
    );
    span.narrow(&mut sql, "last_died", "t");
    sql.add(" ORDER BY t.faults DESC, t.deaths DESC, t.uuid LIMIT ").value(CARDS);
    let mut all: BTreeMap<String, GpuHealth> = BTreeMap::new();
    for r in store.ask(sql).await? {
        let known = |n| Some(text(&r, n).to_owned()).filter(|t| !t.is_empty());
        let health = GpuHealth {
            uuid: text(&r, 0).to_owned(),
            name: known(1),
            driver: known(2),
            node: text(&r, 3).to_owned(),
            incidents: count(&r, 4),
            faults: count(&r, 5),
            xids: BTreeMap::new(),
            ecc_uncorrected: u64::try_from(int(&r, 6)).ok(),
            last_at: Time::from_ms(int(&r, 7)),
        };
        match all.get_mut(&health.uuid) {
            Some(g) => g.add(health),
            None => drop(all.insert(health.uuid.clone(), health)),
        }
    }
    let mut sql = Sql::new(
        store.dialect(),
        "SELECT t.uuid, t.code, CAST(SUM(t.seen) AS BIGINT) FROM gpu_xids t WHERE 1 = 1",
    );
    sql.scope("t", &span.scope);
    sql.add(" GROUP BY t.uuid, t.code");
    for r in store.ask(sql).await? {
        if let (Some(g), Ok(code)) = (all.get_mut(text(&r, 0)), u32::try_from(int(&r, 1))) {
            g.xids.insert(code, count(&r, 2));
        }
    }
    let mut fleet = Fleet::default();
    fleet.set_gpus(all.into_values().collect());
    Ok(fleet)
}
