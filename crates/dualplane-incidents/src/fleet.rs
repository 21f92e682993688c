//! Statistics over many deaths: shares of each dimension, what dies most, the history of each card.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use crate::dimension::Dimension;
use crate::incident::Incident;
use crate::time::Time;

/// Values of a dimension that are kept; the rest is counted in `other`.
const SHOWN: usize = 50;
/// Causes, and cards.
const WORST: usize = 100;

/// How many deaths have a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Share {
    /// The value.
    pub value: String,
    /// Deaths.
    pub count: u64,
    /// By class.
    pub by_class: BTreeMap<String, u64>,
}

/// A cause and how often it killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Worst {
    /// Its key.
    pub cause_key: String,
    /// Deaths.
    pub occurrences: u64,
    /// First one that is known.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub first_at: Time,
    /// The latest.
    pub latest: Incident,
}

/// What happened to a card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GpuHealth {
    /// UUID.
    pub uuid: String,
    /// Name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Driver at the last death, where that told it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Node at the last death.
    pub node: String,
    /// Deaths of pods that had it.
    pub incidents: u64,
    /// Of these, with a fault of hardware as their cause.
    pub faults: u64,
    /// Xids in these deaths, by number, that name the card or that were the card's alone.
    pub xids: BTreeMap<u32, u64>,
    /// The highest count of uncorrected ECC errors that was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecc_uncorrected: Option<u64>,
    /// The last death.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub last_at: Time,
}

/// The statistics of a span of time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Fleet {
    /// Deaths.
    pub incidents: u64,
    /// Different causes.
    pub causes: u64,
    /// By class.
    pub by_class: BTreeMap<String, u64>,
    /// By dimension, the largest share first.
    pub by: BTreeMap<String, Vec<Share>>,
    /// Deaths of values that are not listed, by dimension.
    pub other: BTreeMap<String, u64>,
    /// Deaths of each day in UTC, by plane.
    pub days: BTreeMap<String, BTreeMap<String, u64>>,
    /// What dies most, worst first: by deaths, then by time.
    pub worst: Vec<Worst>,
    /// Cards, those with faults first.
    pub gpus: Vec<GpuHealth>,
}

impl Fleet {
    /// Counts these. A store that cannot hold all in memory counts itself and sets the parts.
    #[must_use]
    pub fn of<'a>(all: impl IntoIterator<Item = &'a Incident>) -> Self {
        let mut counts: BTreeMap<(Dimension, String, String), u64> = BTreeMap::new();
        let mut fleet = Self::default();
        let mut causes: BTreeMap<&str, Worst> = BTreeMap::new();
        let mut gpus: BTreeMap<String, GpuHealth> = BTreeMap::new();
        for i in all {
            fleet.incidents += 1;
            *fleet.by_class.entry(i.class.to_string()).or_default() += 1;
            let day = fleet.days.entry(i.died_at.day()).or_default();
            *day.entry(i.plane.to_string()).or_default() += 1;
            for d in Dimension::COUNTED {
                for v in i.values(*d) {
                    *counts.entry((*d, v, i.class.to_string())).or_default() += 1;
                }
            }
            let worst = causes.entry(&i.cause_key).or_insert_with(|| Worst {
                cause_key: i.cause_key.clone(),
                occurrences: 0,
                first_at: i.died_at,
                latest: i.clone(),
            });
            worst.occurrences += 1;
            worst.first_at = worst.first_at.min(i.died_at);
            if (i.died_at, &i.id) > (worst.latest.died_at, &worst.latest.id) {
                worst.latest = i.clone();
            }
            for health in GpuHealth::of(i) {
                match gpus.get_mut(&health.uuid) {
                    Some(g) => g.add(health),
                    None => drop(gpus.insert(health.uuid.clone(), health)),
                }
            }
        }
        fleet.causes = causes.len() as u64;
        fleet.set_shares(counts.into_iter().map(|((d, v, c), n)| (d, v, c, n)));
        fleet.set_worst(causes.into_values().collect());
        fleet.set_gpus(gpus.into_values().collect());
        fleet
    }

    /// Takes rows of dimension, value, class and number, in any order, several of one kind as well.
    pub fn set_shares<T: AsRef<str>>(&mut self, rows: impl IntoIterator<Item = (Dimension, T, T, u64)>) {
        let rows: Vec<(Dimension, T, T, u64)> = rows.into_iter().collect();
        let mut by: BTreeMap<Dimension, HashMap<&str, u64>> = BTreeMap::new();
        for (dimension, value, _, n) in &rows {
            *by.entry(*dimension).or_default().entry(value.as_ref()).or_default() += n;
        }
        // Of thousands of cards some are shown: only these are taken apart by class.
        let mut shown: HashMap<(Dimension, &str), Share> = HashMap::new();
        for (dimension, values) in by {
            let mut values: Vec<(&str, u64)> = values.into_iter().collect();
            values.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
            let rest: u64 = values.iter().skip(SHOWN).map(|(_, n)| n).sum();
            if rest > 0 {
                self.other.insert(dimension.as_str().to_owned(), rest);
            }
            self.by.insert(dimension.as_str().to_owned(), Vec::new());
            for (value, count) in values.into_iter().take(SHOWN) {
                let share = Share { value: value.to_owned(), count, by_class: BTreeMap::new() };
                shown.insert((dimension, value), share);
            }
        }
        for (dimension, value, class, n) in &rows {
            if let Some(share) = shown.get_mut(&(*dimension, value.as_ref())) {
                *share.by_class.entry(class.as_ref().to_owned()).or_default() += n;
            }
        }
        for ((dimension, _), share) in shown {
            self.by.entry(dimension.as_str().to_owned()).or_default().push(share);
        }
        for shares in self.by.values_mut() {
            shares.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.value.cmp(&b.value)));
        }
    }

    /// Takes causes in any order and keeps the worst.
    pub fn set_worst(&mut self, mut causes: Vec<Worst>) {
        causes.sort_by(|a, b| {
            let latest = |w: &Worst| (w.latest.died_at, w.cause_key.clone());
            b.occurrences.cmp(&a.occurrences).then_with(|| latest(b).cmp(&latest(a)))
        });
        causes.truncate(WORST);
        for w in &mut causes {
            w.latest.occurrences = w.occurrences;
        }
        self.worst = causes;
    }

    /// Takes cards in any order, each once.
    pub fn set_gpus(&mut self, mut gpus: Vec<GpuHealth>) {
        gpus.sort_by(|a, b| {
            let key = |g: &GpuHealth| (g.faults, g.xids.values().sum::<u64>(), g.incidents);
            key(b).cmp(&key(a)).then_with(|| a.uuid.cmp(&b.uuid))
        });
        gpus.truncate(WORST);
        self.gpus = gpus;
    }
}

impl GpuHealth {
    /// What one death says of each card that it names by UUID.
    #[must_use]
    pub fn of(incident: &Incident) -> Vec<Self> {
        let mut seen = BTreeSet::new();
        let named = incident.gpus.iter().filter(|g| !g.uuid.is_empty() && seen.insert(&g.uuid));
        let alone = incident.gpus.len() == 1;
        named
            .map(|g| {
                let mut xids = BTreeMap::new();
                for x in &incident.xids {
                    // An address of the bus is not matched to a UUID here: with several cards it may be any.
                    if x.gpu.as_deref() == Some(g.uuid.as_str()) || alone {
                        *xids.entry(x.code).or_default() += 1;
                    }
                }
                let at_fault = incident.class == dualplane_base::Class::XidHardware
                    && (alone || incident.xids.iter().any(|x| x.gpu.as_deref() == Some(g.uuid.as_str())));
                Self {
                    uuid: g.uuid.clone(),
                    name: g.name.clone(),
                    driver: g.driver.clone(),
                    node: incident.node.clone(),
                    incidents: 1,
                    faults: u64::from(at_fault),
                    xids,
                    ecc_uncorrected: g.ecc_uncorrected,
                    last_at: incident.died_at,
                }
            })
            .collect()
    }

    /// Adds another death of the same card.
    pub fn add(&mut self, other: Self) {
        self.incidents += other.incidents;
        self.faults += other.faults;
        for (code, n) in other.xids {
            *self.xids.entry(code).or_default() += n;
        }
        self.ecc_uncorrected = self.ecc_uncorrected.max(other.ecc_uncorrected);
        // Whatever order deaths are added in, the same comes out.
        self.name = self.name.take().max(other.name);
        if (other.last_at, &other.node, &other.driver) > (self.last_at, &self.node, &self.driver) {
            self.last_at = other.last_at;
            self.node = other.node;
            self.driver = other.driver;
        }
    }
}
