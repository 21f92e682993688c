//! What is kept: one trait, [`Store`], and what both stores share. SQLite is built in; Postgres is for several replicas.
//!
//! A store answers what [`Filter::select`] would of the same incidents: `tests/contract.rs` holds both to it.

mod days;
mod delta;
mod migrate;
mod page;
pub mod postgres;
mod reads;
mod sql;
pub mod sqlite;
mod tags;

use std::fmt;

use dualplane_incidents::{Cursor, Filter, Incident, Time};
use futures_util::future::BoxFuture;

pub use days::Days;
pub use reads::{
    Arrival, Span, arrivals, bundle, cards, counted, fleet, get, latest, list, namespaces, report, sender,
    worst,
};
pub use sql::{Cell, Dialect, Sql};

/// Why a store does not answer. Nothing that it has not answered for may be taken as kept.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It cannot be reached, is full or busy: the same again later may work.
    #[error("the database does not answer: {0}")]
    Away(String),
    /// It cannot hold this, now or later.
    #[error("the database cannot hold it: {0}")]
    Refused(String),
    /// It holds what this version does not understand.
    #[error("the database holds what this version does not understand: {0}")]
    Content(String),
}

/// An answer that takes its time.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// A death to keep.
#[derive(Debug, Clone)]
pub struct Death {
    /// What is listed.
    pub incident: Incident,
    /// The report, packed.
    pub report: Vec<u8>,
    /// Of what was sent: tells a repeated upload from another with the same name.
    pub digest: String,
    /// Who sent it.
    pub sender: String,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// It is kept now.
    Kept,
    /// The same was kept before.
    Known,
    /// Another death of the same sender has this name.
    Taken,
    /// Another death of somebody else has this name.
    Foreign,
}

impl Put {
    /// Of a death whose name is kept with this digest by this sender, and was so before.
    fn of(death: &Death, digest: &str, sender: &str) -> Self {
        match (digest == death.digest, sender == death.sender) {
            (true, _) => Self::Known,
            (false, true) => Self::Taken,
            (false, false) => Self::Foreign,
        }
    }
}

/// A bundle in the store of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleRow {
    /// Bytes.
    pub size: u64,
    /// SHA-256 in hex.
    pub sha256: String,
}

/// Which namespaces a caller may see. Empty words stand for themselves: a death that names no namespace is in "".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// All.
    All,
    /// These.
    Some(Vec<Realm>),
}

/// A namespace of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Realm {
    /// `None`: of any cluster.
    pub cluster: Option<String>,
    /// `None`: any namespace of the cluster.
    pub namespace: Option<String>,
}

impl Scope {
    /// Nothing is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Some(realms) if realms.is_empty())
    }

    /// It holds this namespace.
    #[must_use]
    pub fn allows(&self, cluster: &str, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Some(realms) => realms.iter().any(|r| {
                r.cluster.as_deref().is_none_or(|c| c == cluster)
                    && r.namespace.as_deref().is_none_or(|n| n == namespace)
            }),
        }
    }
}

/// A page of a list.
#[derive(Debug, Clone)]
pub struct Page {
    /// What it shows.
    pub filter: Filter,
    /// Of which namespaces.
    pub scope: Scope,
    /// Behind this incident.
    pub after: Option<Cursor>,
    /// At most.
    pub limit: usize,
}

/// A database.
pub trait Store: Send + Sync + fmt::Debug {
    /// What it speaks.
    fn dialect(&self) -> Dialect;
    /// Counts of days that it holds in memory.
    fn days(&self) -> &Days;
    /// Answers a question that changes nothing.
    fn ask(&self, sql: Sql) -> Answer<'_, Vec<Vec<Cell>>>;
    /// One statement that changes rows; how many.
    fn change(&self, sql: Sql) -> Answer<'_, u64>;
    /// Keeps all or nothing; what it answered survives a crash.
    fn put(&self, deaths: Vec<Death>) -> Answer<'_, Vec<Put>>;
    /// Notes a bundle that lies in the store of files.
    fn put_bundle(&self, id: String, row: BundleRow) -> Answer<'_, ()>;
    /// Removes some deaths that were received and happened before this; answers their names. Fewer than asked: it is done.
    fn forget(&self, before: Time, some: usize) -> Answer<'_, Vec<String>>;
}
