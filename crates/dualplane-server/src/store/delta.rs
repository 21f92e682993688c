//! What deaths change in the statistics, added up before the database is asked: one row of each, whatever the batch.

use std::collections::{BTreeMap, BTreeSet};

use dualplane_incidents::{Dimension, GpuHealth, Incident};

use super::Death;

/// Columns of `incidents`, in the order of [`row`].
pub(super) const COLUMNS: &[&str] = &[
    "id",
    "digest",
    "sender",
    "loop_key",
    "cause_key",
    "class",
    "plane",
    "phase",
    "confidence",
    "cluster",
    "namespace",
    "owner",
    "pod",
    "container",
    "node",
    "image",
    "model",
    "engine",
    "engine_version",
    "searched",
    "body",
];

/// Dimensions of which a death may have several values.
pub(super) const SEVERAL: &[Dimension] =
    &[Dimension::Gpu, Dimension::GpuName, Dimension::Driver, Dimension::Xid];

/// What is searched of it. Postgres has no NUL in a text.
pub(super) fn searched(i: &Incident) -> String {
    dualplane_incidents::searched(i).replace('\0', " ")
}

/// A row of `incidents` but for its two times.
pub(super) fn row(death: &Death) -> Vec<String> {
    let i = &death.incident;
    let body = serde_json::to_string(i).unwrap_or_default();
    let searched = searched(i);
    let words = [i.class.as_str(), i.plane.as_str(), i.phase.as_str(), i.confidence.as_str()];
    let mut out: Vec<String> = vec![
        i.id.clone(),
        death.digest.clone(),
        death.sender.clone(),
        i.loop_key.clone(),
        i.cause_key.clone(),
    ];
    out.extend(words.map(str::to_owned));
    let names = [
        &i.cluster,
        &i.namespace,
        &i.owner,
        &i.pod,
        &i.container,
        &i.node,
        &i.image,
        &i.model,
        &i.engine,
        &i.engine_version,
    ];
    out.extend(names.map(Clone::clone));
    out.extend([searched, body]);
    out
}

/// Rows of `several`, but for the time.
pub(super) fn several(i: &Incident) -> Vec<[String; 3]> {
    let of = |d: &Dimension| {
        let d = *d;
        i.values(d).into_iter().map(move |v| [d.as_str().to_owned(), v, i.id.clone()])
    };
    SEVERAL.iter().flat_map(of).collect()
}

/// A cause's share of a batch.
#[derive(Debug, Clone)]
pub(super) struct Cause {
    pub(super) loop_key: String,
    pub(super) cluster: String,
    pub(super) namespace: String,
    pub(super) occurrences: i64,
    pub(super) first: i64,
    pub(super) last: (i64, String),
}

/// Day, cluster, namespace, dimension, value, class.
pub(super) type Count = [String; 6];
/// UUID, cluster, namespace.
pub(super) type Card = [String; 3];

/// What a batch adds. Maps are sorted: replicas take locks in the same order.
#[derive(Debug, Default)]
pub(super) struct Delta {
    pub(super) causes: BTreeMap<String, Cause>,
    pub(super) counts: BTreeMap<Count, i64>,
    pub(super) gpus: BTreeMap<Card, GpuHealth>,
}

impl Delta {
    /// Adds a death.
    pub(super) fn add(&mut self, i: &Incident) {
        let last = (i.died_at.ms(), i.id.clone());
        let cause = self.causes.entry(i.cause_key.clone()).or_insert_with(|| Cause {
            loop_key: i.loop_key.clone(),
            cluster: i.cluster.clone(),
            namespace: i.namespace.clone(),
            occurrences: 0,
            first: last.0,
            last: last.clone(),
        });
        cause.occurrences += 1;
        cause.first = cause.first.min(last.0);
        cause.last = cause.last.clone().max(last);
        self.count(i, 1);
        for health in GpuHealth::of(i) {
            let card = [health.uuid.clone(), i.cluster.clone(), i.namespace.clone()];
            match self.gpus.get_mut(&card) {
                Some(g) => g.add(health),
                None => drop(self.gpus.insert(card, health)),
            }
        }
    }

    /// Adds a death to the counts, or takes it away.
    pub(super) fn count(&mut self, i: &Incident, by: i64) {
        let day = i.died_at.day();
        for d in std::iter::once(&Dimension::Class).chain(Dimension::COUNTED) {
            for value in i.values(*d) {
                let key = [
                    day.clone(),
                    i.cluster.clone(),
                    i.namespace.clone(),
                    d.as_str().to_owned(),
                    value,
                    i.class.to_string(),
                ];
                *self.counts.entry(key).or_default() += by;
            }
        }
    }
}

impl Delta {
    /// Days whose counts are others now.
    pub(super) fn days(&self) -> BTreeSet<&str> {
        self.counts.keys().map(|[day, ..]| day.as_str()).collect()
    }
}

/// SQL that both stores speak; `VALUES` stands for what they put in.
pub(super) const PUT_CAUSE: &str = "INSERT INTO causes (cause_key, loop_key, cluster, namespace, occurrences, first_died, last_died, last_id) VALUES \
    ON CONFLICT (cause_key) DO UPDATE SET occurrences = causes.occurrences + excluded.occurrences, \
    first_died = CASE WHEN excluded.first_died < causes.first_died THEN excluded.first_died ELSE causes.first_died END, \
    last_id = CASE WHEN (excluded.last_died, excluded.last_id) > (causes.last_died, causes.last_id) THEN excluded.last_id ELSE causes.last_id END, \
    last_died = CASE WHEN excluded.last_died > causes.last_died THEN excluded.last_died ELSE causes.last_died END";

pub(super) const PUT_COUNT: &str = "INSERT INTO counts (day, cluster, namespace, dimension, value, class, deaths) VALUES \
    ON CONFLICT (day, cluster, namespace, dimension, value, class) DO UPDATE SET deaths = counts.deaths + excluded.deaths";

pub(super) const PUT_GPU: &str = "INSERT INTO gpus (uuid, cluster, namespace, name, driver, node, deaths, faults, ecc, last_died) VALUES \
    ON CONFLICT (uuid, cluster, namespace) DO UPDATE SET deaths = gpus.deaths + excluded.deaths, faults = gpus.faults + excluded.faults, \
    ecc = CASE WHEN excluded.ecc > gpus.ecc THEN excluded.ecc ELSE gpus.ecc END, \
    name = CASE WHEN excluded.name > gpus.name THEN excluded.name ELSE gpus.name END, \
    driver = CASE WHEN (excluded.last_died, excluded.node, excluded.driver) > (gpus.last_died, gpus.node, gpus.driver) THEN excluded.driver ELSE gpus.driver END, \
    node = CASE WHEN (excluded.last_died, excluded.node, excluded.driver) > (gpus.last_died, gpus.node, gpus.driver) THEN excluded.node ELSE gpus.node END, \
    last_died = CASE WHEN excluded.last_died > gpus.last_died THEN excluded.last_died ELSE gpus.last_died END";

pub(super) const PUT_XID: &str = "INSERT INTO gpu_xids (uuid, cluster, namespace, code, seen) VALUES \
    ON CONFLICT (uuid, cluster, namespace, code) DO UPDATE SET seen = gpu_xids.seen + excluded.seen";

/// The last of a batch: replicas that count the same day wait for each other from here to the end.
pub(super) const PUT_DAY: &str = "INSERT INTO days (day, version) VALUES \
    ON CONFLICT (day) DO UPDATE SET version = days.version + excluded.version";
