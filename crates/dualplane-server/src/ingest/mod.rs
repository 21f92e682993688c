//! The way in. Many uploads become one transaction; each is answered when its transaction is on the disk, and not before.

pub mod bundle;
pub mod judge;
pub mod keep;
pub mod shelf;

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use dualplane_incidents::Time;

use crate::app::now;
use crate::clock::{Drift, SKEW_MS};
use crate::store::{Death, Put, Store, StoreError, latest};

/// Uploads that may wait.
const QUEUE: usize = 4096;
/// Bytes of these, KiB.
const QUEUE_KIB: usize = 64 << 10;
/// Uploads of one transaction.
const BATCH: usize = 256;
/// Transactions at a time: SQLite has one writer, and Postgres waits for its disk meanwhile.
const WRITERS: usize = 2;

/// An upload that waits.
#[derive(Debug)]
struct Waiting {
    death: Death,
    answer: oneshot::Sender<Result<Put, StoreError>>,
    _room: OwnedSemaphorePermit,
}

/// The queue before the store.
#[derive(Debug, Clone)]
pub struct Ingest {
    queue: mpsc::Sender<Waiting>,
    room: Arc<Semaphore>,
}

/// Why nothing was kept.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// More waits than fits.
    #[error("more uploads are waiting than the database takes")]
    Busy,
    /// The store said so.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Ingest {
    /// Starts the writers.
    #[must_use]
    pub fn start(store: &Arc<dyn Store>) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..WRITERS {
            tokio::spawn(write(Arc::clone(store), Arc::clone(&waiting)));
        }
        Self { queue, room: Arc::new(Semaphore::new(QUEUE_KIB)) }
    }

    /// Keeps a death. When this answers [`Put::Kept`] or [`Put::Known`], it is on the disk.
    ///
    /// # Errors
    ///
    /// Where nothing was kept. After a connection was lost it may have been: the same again tells.
    pub async fn keep(&self, death: Death) -> Result<Put, IngestError> {
        let kib = (death.report.len() + death.incident.summary.len()) / 1024 + 4;
        let kib = u32::try_from(kib.min(QUEUE_KIB)).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room).try_acquire_many_owned(kib).map_err(|_| IngestError::Busy)?;
        let (answer, told) = oneshot::channel();
        self.queue.try_send(Waiting { death, answer, _room: room }).map_err(|_| IngestError::Busy)?;
        let gone = |_| StoreError::Away("the server is ending".to_owned());
        Ok(told.await.map_err(gone)??)
    }
}

async fn write(store: Arc<dyn Store>, waiting: Arc<Mutex<mpsc::Receiver<Waiting>>>) {
    let drift = Drift::new(now(), Instant::now());
    loop {
        let mut batch = Vec::new();
        if waiting.lock().await.recv_many(&mut batch, BATCH).await == 0 {
            return;
        }
        order(&*store, drift, &mut batch).await;
        match store.put(batch.iter().map(|w| w.death.clone()).collect()).await {
            Ok(answers) => {
                for (w, put) in batch.into_iter().zip(answers) {
                    let _ = w.answer.send(Ok(put));
                }
            }
            // One of them does not fit: the others must not suffer.
            Err(StoreError::Refused(_)) if batch.len() > 1 => {
                for w in batch {
                    let answer = store.put(vec![w.death]).await;
                    let one = answer.and_then(|a| {
                        a.first().copied().ok_or_else(|| StoreError::Away("no answer".to_owned()))
                    });
                    let _ = w.answer.send(one);
                }
            }
            Err(e) => {
                let again = |e: &StoreError| match e {
                    StoreError::Away(t) => StoreError::Away(t.clone()),
                    StoreError::Refused(t) => StoreError::Refused(t.clone()),
                    StoreError::Content(t) => StoreError::Content(t.clone()),
                };
                for w in batch {
                    let _ = w.answer.send(Err(again(&e)));
                }
            }
        }
    }
}

/// Deaths are told of in the order in which they were received. A clock that was set back, or one of another replica that goes
/// ahead, must not put new ones behind what was told. What is far ahead of where this clock would be, had it gone on evenly, is of a
/// clock that was wrong: nobody is put behind it.
async fn order(store: &dyn Store, drift: Drift, batch: &mut [Waiting]) {
    let wall = now();
    let even = wall.ms().saturating_sub(drift.ms(wall, Instant::now()));
    // A store that does not answer will not take the batch either.
    let Ok(Some(latest)) = latest(store, Time::from_ms(even.saturating_add(SKEW_MS))).await else { return };
    for w in batch {
        let received = &mut w.death.incident.received_at;
        *received = latest.max(*received);
    }
}
