//! The counts of each day in memory, as numbers. A day is read again when its version is another: statistics over a million
//! deaths are sums over days that mostly do not change, and what they tell is what the database holds.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use dualplane_incidents::{Dimension, Fleet};

use super::reads::{Span, count, int, text};
use super::sql::{Cell, Sql};
use super::{Scope, Store, StoreError};

/// Rows that are held, 16 bytes each; of more, the oldest days are read anew each time.
const MOST_ROWS: usize = 4_000_000;
/// Words that are held; with more, all begins anew, without those that nobody counts any more.
const MOST_WORDS: usize = 300_000;
/// A day with more rows than this that changes all the time is read again only so often.
const HOT_ROWS: usize = 50_000;
const HOT: Duration = Duration::from_secs(5);

/// So many deaths of a value and a class in a namespace.
#[derive(Debug, Clone, Copy)]
struct Row {
    realm: u32,
    value: u32,
    deaths: u32,
    class: u16,
}

/// A day.
#[derive(Debug)]
struct Day {
    version: i64,
    at: Instant,
    rows: Vec<Row>,
}

impl Day {
    /// It need not be read again.
    fn holds(&self, version: i64) -> bool {
        self.version == version || (self.rows.len() > HOT_ROWS && self.at.elapsed() < HOT)
    }
}

/// Words as numbers, in the order in which they came.
#[derive(Debug)]
struct Words<K> {
    all: Vec<K>,
    numbers: HashMap<K, u32>,
}

impl<K> Default for Words<K> {
    fn default() -> Self {
        Self { all: Vec::new(), numbers: HashMap::new() }
    }
}

impl<K: std::hash::Hash + Eq + Clone> Words<K> {
    fn number(&mut self, word: K) -> u32 {
        if let Some(n) = self.numbers.get(&word) {
            return *n;
        }
        let n = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        self.all.push(word.clone());
        self.numbers.insert(word, n);
        n
    }
}

#[derive(Debug, Default)]
struct Held {
    realms: Words<(String, String)>,
    values: Words<(Dimension, Arc<str>)>,
    classes: Words<String>,
    days: BTreeMap<String, Day>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Days {
    held: Mutex<Held>,
    /// One reads what is missing; whoever comes meanwhile waits and finds it.
    reading: tokio::sync::Mutex<()>,
}

/// Classes, shares and days of a span.
pub(super) async fn counted(store: &dyn Store, span: &Span) -> Result<Fleet, StoreError> {
    let _one = store.days().reading.lock().await;
    let mut sql = Sql::new(store.dialect(), "SELECT t.day, t.version FROM days t WHERE 1 = 1");
    let first = span.since.map(|t| t.day()).unwrap_or_default();
    sql.add(" AND t.day >= ").value(first.as_str());
    // Versions before counts: what is read later is never older than its version.
    let versions: BTreeMap<String, i64> =
        store.ask(sql).await?.iter().map(|r| (text(r, 0).to_owned(), int(r, 1))).collect();
    let held = || store.days().held.lock().unwrap_or_else(PoisonError::into_inner);
    let missing: Vec<(String, i64)> = {
        let mut held = held();
        if held.values.all.len() > MOST_WORDS {
            *held = Held::default();
        }
        let new = |(day, v): &(&String, &i64)| held.days.get(*day).is_none_or(|d| !d.holds(**v));
        // The newest first: they are what is asked for most.
        versions.iter().rev().filter(new).map(|(day, v)| (day.clone(), *v)).collect()
    };
    // Days that do not fit are counted for this answer alone.
    let mut passing = Vec::new();
    for (day, version) in missing {
        let mut sql = Sql::new(
            store.dialect(),
            "SELECT t.cluster, t.namespace, t.dimension, t.value, t.class, t.deaths FROM counts t WHERE t.deaths > 0 AND t.day = ",
        );
        sql.value(day.as_str());
        let read = store.ask(sql).await?;
        passing.extend(held().take(day, version, &read));
    }
    Ok(held().fleet(&first, &versions, &passing, &span.scope))
}

impl Held {
    /// Holds a day, or hands it back where there is no room.
    fn take(&mut self, day: String, version: i64, read: &[Vec<Cell>]) -> Option<(String, Day)> {
        let one = |r: &Vec<Cell>| {
            let dimension = Dimension::parse(text(r, 2))?;
            let class = self.classes.number(text(r, 4).to_owned());
            Some(Row {
                realm: self.realms.number((text(r, 0).to_owned(), text(r, 1).to_owned())),
                value: self.values.number((dimension, text(r, 3).into())),
                deaths: u32::try_from(count(r, 5)).unwrap_or(u32::MAX),
                class: u16::try_from(class).unwrap_or(u16::MAX),
            })
        };
        let day_of = Day { version, at: Instant::now(), rows: read.iter().filter_map(one).collect() };
        self.days.remove(&day);
        while self.days.values().map(|d| d.rows.len()).sum::<usize>() + day_of.rows.len() > MOST_ROWS {
            match self.days.first_entry() {
                Some(oldest) if *oldest.key() < day => drop(oldest.remove()),
                _ => return Some((day, day_of)),
            }
        }
        self.days.insert(day, day_of);
        None
    }

    fn fleet(
        &self,
        first: &str,
        versions: &BTreeMap<String, i64>,
        passing: &[(String, Day)],
        scope: &Scope,
    ) -> Fleet {
        let seen: Vec<bool> = self.realms.all.iter().map(|(c, n)| scope.allows(c, n)).collect();
        let classes = self.classes.all.len();
        let mut sums = vec![0_u64; self.values.all.len() * classes];
        let mut fleet = Fleet::default();
        let held = self.days.range(first.to_owned()..).filter(|(day, _)| versions.contains_key(*day));
        for (day, d) in held.chain(passing.iter().map(|(day, d)| (day, d))) {
            let mut planes: BTreeMap<u32, u64> = BTreeMap::new();
            for r in d.rows.iter().filter(|r| seen.get(r.realm as usize) == Some(&true)) {
                let at = r.value as usize * classes + usize::from(r.class);
                if let Some(sum) = sums.get_mut(at) {
                    *sum += u64::from(r.deaths);
                }
                if self.values.all.get(r.value as usize).is_some_and(|(d, _)| *d == Dimension::Plane) {
                    *planes.entry(r.value).or_default() += u64::from(r.deaths);
                }
            }
            let named = planes
                .into_iter()
                .filter_map(|(v, n)| Some((self.values.all.get(v as usize)?.1.to_string(), n)));
            let named: BTreeMap<String, u64> = named.collect();
            if !named.is_empty() {
                fleet.days.insert(day.clone(), named);
            }
        }
        let mut shares = Vec::new();
        for ((dimension, value), row) in self.values.all.iter().zip(sums.chunks(classes.max(1))) {
            for (class, n) in self.classes.all.iter().zip(row).filter(|(_, n)| **n > 0) {
                match dimension {
                    Dimension::Class => {
                        fleet.incidents += n;
                        *fleet.by_class.entry(value.to_string()).or_default() += n;
                    }
                    d => shares.push((*d, &**value, class.as_str(), *n)),
                }
            }
        }
        fleet.set_shares(shares);
        fleet
    }
}
