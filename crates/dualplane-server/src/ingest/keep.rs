//! Keeping deaths and their bundles under the names that their senders give, whoever calls: the API, or the watch of a cluster.

use std::io;

use dualplane_incidents::{Incident, ReportError, Where, id_of_sender, of_report};
use serde_json::Value;

use super::IngestError;
use super::bundle::Part;
use super::judge::vram_of_error;
use crate::app::{App, now, pack};
use crate::auth::{Caller, sha256};
use crate::store::{self, BundleRow, Death, Put, StoreError};

/// Deaths of one bundle.
const DEATHS: usize = 64;

/// Why a death or its bundle is not kept.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// The caller may not send of this namespace.
    #[error("it may not send incidents of this namespace")]
    Forbidden,
    /// The name stands for another death.
    #[error("another incident has this id: an id stands for one death, whatever its content")]
    Taken,
    /// It is no report.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// The bundle has no evidence.
    #[error("{0}")]
    Unjudged(String),
    /// This machine's disk.
    #[error("the disk of the server does not take it: {0}")]
    Disk(io::Error),
    /// The shelf of bundles.
    #[error("the bundle cannot be kept now: {0}")]
    Shelf(io::Error),
    /// The queue, or the store.
    #[error(transparent)]
    Ingest(#[from] IngestError),
}

impl From<StoreError> for KeepError {
    fn from(e: StoreError) -> Self {
        Self::Ingest(e.into())
    }
}

impl KeepError {
    /// The same again fails again.
    #[must_use]
    pub fn is_for_good(&self) -> bool {
        match self {
            Self::Forbidden | Self::Taken | Self::Report(_) | Self::Unjudged(_) => true,
            Self::Ingest(IngestError::Store(e)) => matches!(e, StoreError::Refused(_)),
            Self::Disk(_) | Self::Shelf(_) | Self::Ingest(IngestError::Busy) => false,
        }
    }
}

/// A death as it was sent.
pub(crate) struct Sent<'a> {
    /// `dualplane.verdict/v2`.
    pub(crate) report: &'a Value,
    /// What the sender knows of the place.
    pub(crate) place: &'a Where,
    /// Of its content: the same again is known by it.
    pub(crate) digest: String,
}

impl Sent<'_> {
    fn death(&self, caller: &Caller, id: &str) -> Result<Death, KeepError> {
        let mut place = self.place.clone();
        // A report without its bundle: what the first error says of its card.
        let error = self.report.pointer("/trigger/text").and_then(Value::as_str).and_then(vram_of_error);
        if let (None, None, Some((used, total))) = (place.vram_held_bytes, place.vram_total_bytes, error) {
            (place.vram_held_bytes, place.vram_total_bytes) = (Some(used), Some(total));
        }
        let incident = of_report(id, self.report, &place, now())?;
        may_send(caller, &incident)?;
        let report = pack(&serde_json::to_vec(self.report).unwrap_or_default());
        Ok(Death { incident, report, digest: self.digest.clone(), sender: caller.name.clone() })
    }

    /// Keeps it under this name; where another sender has taken the name, under one that only this sender can have: whoever
    /// guesses the names of others must not keep their deaths out.
    pub(crate) async fn keep(
        &self,
        app: &App,
        caller: &Caller,
        id: &str,
    ) -> Result<(String, Put), KeepError> {
        for name in [id.to_owned(), own(caller, id)] {
            match app.ingest.keep(self.death(caller, &name)?).await? {
                Put::Foreign => {}
                Put::Taken => return Err(KeepError::Taken),
                put => return Ok((name, put)),
            }
        }
        Err(KeepError::Taken)
    }
}

/// Whether this caller may send of where this happened.
pub(crate) fn may_send(caller: &Caller, i: &Incident) -> Result<(), KeepError> {
    if caller.sends.allows(&i.cluster, &i.namespace) { Ok(()) } else { Err(KeepError::Forbidden) }
}

fn own(caller: &Caller, id: &str) -> String {
    id_of_sender(id, &sha256(caller.name.as_bytes()))
}

/// The death that a caller sent under a name.
pub(crate) struct Mine {
    /// What it is kept under, or will be.
    pub(crate) name: String,
    /// The death, where it is kept.
    pub(crate) death: Option<Incident>,
}

/// The death that this caller sent under this name.
pub(crate) async fn mine(app: &App, caller: &Caller, id: &str) -> Result<Mine, StoreError> {
    let own = own(caller, id);
    if let Some(i) = store::get(&*app.store, &own).await? {
        return Ok(Mine { name: own, death: Some(i) });
    }
    let (name, death) = match store::sender(&*app.store, id).await? {
        None => (id.to_owned(), None),
        // Of deaths that an older version kept nobody knows the sender.
        Some(by) if by == caller.name || by.is_empty() => (id.to_owned(), store::get(&*app.store, id).await?),
        Some(_) => (own, None),
    };
    Ok(Mine { name, death })
}

/// Whether this caller's death and its bundle are kept.
pub(crate) async fn is_kept(app: &App, caller: &Caller, id: &str) -> Result<bool, StoreError> {
    let Mine { name, death } = mine(app, caller, id).await?;
    Ok(death.is_some() && store::bundle(&*app.store, &name).await?.is_some())
}

/// A bundle that has arrived.
pub(crate) struct Whole<'a> {
    /// Where it lies.
    pub(crate) part: &'a Part,
    /// Its SHA-256 in hex.
    pub(crate) sum: String,
    /// What its sender knows of the place.
    pub(crate) place: Where,
}

/// Keeps a bundle: judged where its death is not known yet, and put onto the shelf. Names of its incidents.
pub(crate) async fn bundle(
    app: &App,
    caller: &Caller,
    id: &str,
    mine: Mine,
    whole: Whole<'_>,
) -> Result<Vec<String>, KeepError> {
    let Whole { part, sum, place } = whole;
    let size = part.len();
    let ids = match mine.death {
        Some(_) => vec![mine.name.clone()],
        None => judged(app, caller, id, part, place, &sum).await?,
    };
    // The first death has the bundle's name, or the one that this sender alone can have.
    let name = ids.first().cloned().unwrap_or(mine.name);
    app.bundles.finish(part, &name).await.map_err(KeepError::Shelf)?;
    app.store.put_bundle(name, BundleRow { size, sha256: sum }).await?;
    Ok(ids)
}

/// Judges a bundle and keeps each death in it: the first under the name that was given, others with a number.
async fn judged(
    app: &App,
    caller: &Caller,
    id: &str,
    part: &Part,
    place: Where,
    sum: &str,
) -> Result<Vec<String>, KeepError> {
    let found = app.judge.judge(part.path().to_owned(), place).await.map_err(|e| {
        part.discard();
        KeepError::Unjudged(e)
    })?;
    let mut all = Vec::new();
    for (n, j) in found.iter().take(DEATHS).enumerate() {
        let name = if n == 0 { id.to_owned() } else { format!("{id}.{}", n + 1) };
        all.push((name, Sent { report: &j.report, place: &j.place, digest: format!("{sum}.{n}") }));
    }
    // All or none may be sent.
    for (name, sent) in &all {
        sent.death(caller, name)?;
    }
    let mut ids = Vec::new();
    for (name, sent) in &all {
        ids.push(sent.keep(app, caller, name).await?.0);
    }
    Ok(ids)
}
