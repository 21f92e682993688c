//! Of several programs on one database one does what must be done once, like telling of a death. No clock is compared with another:
//! who waits watches by its own whether the holder's beat still rises, and the holder stops where it cannot raise it.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use ring::rand::SecureRandom as _;

use crate::store::{Sql, Store, StoreError};

/// The holder stops this long after it last raised its beat.
const SAFE: Duration = Duration::from_secs(10);
/// What it has begun then has this long to end, see [`Lease::holds`].
pub const DEED: Duration = Duration::from_secs(25);
/// Who waits takes over when the beat has stood still for longer than both.
const STILL: Duration = Duration::from_secs(40);

/// Programs with one folder whose names are remembered.
const SEATS: usize = 16;

/// The name that lies in this file; `None` where another program has it.
fn seat(path: &Path, new: &str) -> io::Result<Option<(String, File)>> {
    let mut file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(e)) => return Err(e),
    }
    let mut name = String::new();
    io::Read::by_ref(&mut file).take(1024).read_to_string(&mut name)?;
    if name.len() != new.len() || !name.bytes().all(|b| b.is_ascii_hexdigit()) {
        name = new.to_owned();
        file.rewind()?;
        file.set_len(0)?;
        file.write_all(name.as_bytes())?;
        file.sync_all()?;
    }
    Ok(Some((name, file)))
}

/// One program's part in a lease.
#[derive(Debug)]
pub struct Lease {
    name: &'static str,
    me: String,
    /// Ends with the program, however that ends.
    _lock: Option<File>,
    /// Whose beat stood where since when.
    seen: Option<(String, i64, Instant)>,
    /// The fence, and when the beat was last raised.
    held: Option<(i64, Instant)>,
}

impl Lease {
    /// A part in the lease of this name. `folder`: whoever has the same folder and is the only one there goes on as who was there
    /// before, and waits for nobody.
    ///
    /// # Errors
    ///
    /// A sentence: this machine has no randomness, or the folder cannot be used.
    pub fn new(name: &'static str, folder: &Path) -> Result<Self, String> {
        let mut random = [0_u8; 16];
        let drawn = ring::rand::SystemRandom::new().fill(&mut random);
        drawn.map_err(|_| "this machine has no randomness".to_owned())?;
        let (me, lock) = (0..SEATS)
            .find_map(|n| {
                seat(&folder.join(format!("{name}-{n}.id")), &crate::auth::hex(&random)).transpose()
            })
            .transpose()
            .map_err(|e| format!("cannot use {}: {e}", folder.display()))?
            .map_or_else(|| (crate::auth::hex(&random), None), |(me, lock)| (me, Some(lock)));
        Ok(Self { name, me, _lock: lock, seen: None, held: None })
    }

    /// The fence of the holder, where that is this one and may begin something that ends within [`DEED`].
    #[must_use]
    pub fn holds(&self, now: Instant) -> Option<i64> {
        self.held.filter(|(_, at)| now.saturating_duration_since(*at) < SAFE).map(|(fence, _)| fence)
    }

    /// Raises the beat, or looks whether the lease is free. Call it every few seconds.
    ///
    /// # Errors
    ///
    /// Where the store does not answer; what is held then ends by itself.
    pub async fn tick(&mut self, store: &dyn Store, now: Instant) -> Result<(), StoreError> {
        if let Some((fence, _)) = self.held {
            let mut sql = Sql::new(store.dialect(), "UPDATE leases SET beat = beat + 1 WHERE name = ");
            sql.value(self.name)
                .add(" AND holder = ")
                .value(self.me.as_str())
                .add(" AND fence = ")
                .value(fence);
            self.held = (store.change(sql).await? == 1).then_some((fence, now));
            self.seen = None;
            return Ok(());
        }
        let (holder, beat, fence) = self.row(store).await?;
        let since = match &self.seen {
            Some((h, b, since)) if *h == holder && *b == beat => *since,
            _ => now,
        };
        self.seen = Some((holder.clone(), beat, since));
        if !holder.is_empty() && holder != self.me && now.saturating_duration_since(since) < STILL {
            return Ok(());
        }
        let mut sql =
            Sql::new(store.dialect(), "UPDATE leases SET beat = beat + 1, fence = fence + 1, holder = ");
        sql.value(self.me.as_str()).add(" WHERE name = ").value(self.name);
        // Of several who wait, the first finds it as it was.
        sql.add(" AND holder = ").value(holder.as_str()).add(" AND beat = ").value(beat);
        if store.change(sql).await? == 1 {
            self.held = Some((fence + 1, now));
        }
        Ok(())
    }

    /// Holder, beat and fence; nobody's where it is new.
    async fn row(&self, store: &dyn Store) -> Result<(String, i64, i64), StoreError> {
        let mut new = Sql::new(store.dialect(), "INSERT INTO leases (name, holder, beat, fence) VALUES (");
        new.value(self.name).add(", '', 0, 0) ON CONFLICT (name) DO NOTHING");
        let mut sql = Sql::new(store.dialect(), "SELECT holder, beat, fence FROM leases WHERE name = ");
        sql.value(self.name);
        let mut rows = store.ask(sql.clone()).await?;
        if rows.is_empty() {
            store.change(new).await?;
            rows = store.ask(sql).await?;
        }
        match rows.first().map(Vec::as_slice) {
            Some([holder, beat, fence]) => Ok((holder.text().to_owned(), beat.int(), fence.int())),
            _ => Err(StoreError::Away("the lease is not there".to_owned())),
        }
    }

    /// Gives it back, so that nobody has to wait.
    ///
    /// # Errors
    ///
    /// Where the store does not answer: whoever waits, waits.
    pub async fn release(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        let Some((fence, _)) = self.held.take() else { return Ok(()) };
        let mut sql = Sql::new(store.dialect(), "UPDATE leases SET holder = '' WHERE name = ");
        sql.value(self.name).add(" AND holder = ").value(self.me.as_str()).add(" AND fence = ").value(fence);
        store.change(sql).await.map(drop)
    }

    /// Keeps what the holder must not forget; `false`: another holds the lease meanwhile, and nothing was written.
    ///
    /// # Errors
    ///
    /// Where the store does not answer.
    pub async fn save(&self, store: &dyn Store, fence: i64, body: &str) -> Result<bool, StoreError> {
        let mut sql = Sql::new(store.dialect(), "INSERT INTO states (name, fence, body) VALUES (");
        sql.value(self.name).add(", ").value(fence).add(", ").value(body);
        sql.add(") ON CONFLICT (name) DO UPDATE SET fence = excluded.fence, body = excluded.body WHERE states.fence <= excluded.fence");
        Ok(store.change(sql).await? == 1)
    }

    /// What was kept.
    ///
    /// # Errors
    ///
    /// Where the store does not answer.
    pub async fn saved(&self, store: &dyn Store) -> Result<Option<String>, StoreError> {
        let mut sql = Sql::new(store.dialect(), "SELECT body FROM states WHERE name = ");
        sql.value(self.name);
        Ok(store.ask(sql).await?.first().and_then(|r| r.first()).map(|c| c.text().to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sqlite::Sqlite;

    #[tokio::test]
    async fn one_holds_it_and_who_waits_takes_over_when_the_beat_stands_still() {
        let home = tempfile::tempdir().unwrap();
        let store = Sqlite::open(&home.path().join("x.db")).unwrap();
        let new = || Lease::new("notify", home.path()).unwrap();
        let (mut a, mut b) = (new(), new());
        assert_ne!(a.me, b.me);
        let began = Instant::now();
        let at = |s| began + Duration::from_secs(s);
        for _ in 0..3 {
            a.tick(&store, at(0)).await.unwrap();
            b.tick(&store, at(0)).await.unwrap();
        }
        assert_eq!((a.holds(at(0)), b.holds(at(0))), (Some(1), None));
        for s in (2..100).step_by(2) {
            a.tick(&store, at(s)).await.unwrap();
            b.tick(&store, at(s)).await.unwrap();
            assert_eq!((a.holds(at(s)), b.holds(at(s))), (Some(1), None));
        }
        assert!(a.save(&store, 1, "one").await.unwrap());
        // It hangs, and stops by itself before another may take over.
        let mut taken = None;
        for s in (100..200).step_by(2) {
            b.tick(&store, at(s)).await.unwrap();
            assert!(a.holds(at(s)).is_none() || b.holds(at(s)).is_none(), "two at {s}");
            if b.holds(at(s)).is_some() {
                taken = taken.or(Some(s));
            }
        }
        assert!(at(taken.unwrap()) > at(98) + SAFE + DEED);
        assert_eq!(b.saved(&store).await.unwrap().as_deref(), Some("one"));
        assert!(b.save(&store, 2, "two").await.unwrap());
        // What it wakes up with is not written any more.
        assert!(!a.save(&store, 1, "late").await.unwrap());
        a.tick(&store, at(200)).await.unwrap();
        assert_eq!(a.holds(at(200)), None);
        assert_eq!(a.saved(&store).await.unwrap().as_deref(), Some("two"));
        // Given back, it is taken at once; and who comes back after a kill goes on at once.
        b.release(&store).await.unwrap();
        a.tick(&store, at(201)).await.unwrap();
        assert_eq!(a.holds(at(201)), Some(3));
        let me = a.me.clone();
        drop(a);
        let mut again = new();
        assert_eq!(again.me, me);
        again.tick(&store, at(202)).await.unwrap();
        assert_eq!(again.holds(at(202)), Some(4));
    }
}
