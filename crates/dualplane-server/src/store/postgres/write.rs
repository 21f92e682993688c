//! What a batch and the end of old deaths write: a handful of statements, whatever their size.

use std::collections::{BTreeMap, BTreeSet};

use dualplane_incidents::{Incident, Time};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Transaction};

use crate::store::delta::{COLUMNS, Delta, PUT_CAUSE, PUT_COUNT, PUT_DAY, PUT_GPU, PUT_XID, row, several};
use crate::store::{Death, Put, StoreError};

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

pub(super) async fn put(client: &mut Client, deaths: &[Death]) -> Result<Vec<Put>, tokio_postgres::Error> {
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
    let (mut rows, mut died) = (Vec::new(), Vec::new());
    for d in &fresh {
        rows.extend(several(&d.incident));
        died.resize(rows.len(), d.incident.died_at.ms());
    }
    let [dimensions, values, of] = turned(rows);
    let sql = "INSERT INTO several (dimension, value, died, id) VALUES";
    let types = ["text", "text", "bigint", "text"];
    tx.execute(&unnest(sql, &types), &[&dimensions, &values, &died, &of]).await?;
    apply(&tx, &delta).await?;
    let all: Vec<&str> = first.keys().copied().collect();
    let kept: BTreeMap<String, (String, String)> = tx
        .query("SELECT id, digest, sender FROM incidents WHERE id = ANY($1)", &[&all])
        .await?
        .iter()
        .map(|r| Ok((r.try_get(0)?, (r.try_get(1)?, r.try_get(2)?))))
        .collect::<Result<_, tokio_postgres::Error>>()?;
    tx.commit().await?;
    let mut answered = BTreeSet::new();
    let of = |d: &Death| {
        let id = &d.incident.id;
        let put = kept.get(id).map_or(Put::Taken, |(digest, sender)| Put::of(d, digest, sender));
        match put {
            Put::Known if new.contains(id) && answered.insert(id.clone()) => Put::Kept,
            put => put,
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
        for (column, cell) in columns.iter_mut().zip(row(d)) {
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
    cards(tx, delta).await?;
    days(tx, delta).await
}

async fn days(tx: &Transaction<'_>, delta: &Delta) -> Result<(), tokio_postgres::Error> {
    let days: Vec<&str> = delta.days().into_iter().collect();
    let one = vec![1_i64; days.len()];
    tx.execute(&unnest(PUT_DAY, &["text", "bigint"]), &[&days, &one]).await?;
    Ok(())
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

pub(super) async fn forget(
    tx: &Transaction<'_>,
    before: Time,
    some: usize,
) -> Result<Vec<String>, StoreError> {
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
    days(tx, &delta).await?;
    Ok(ids)
}
