//! Sessions that were ended before their time. The cookie of one holds by itself until its hour is over, so that no restart forgets
//! it: whoever copied it would stay signed in behind its owner's back. What was ended lies in the database, for all replicas.

use crate::store::{Sql, Store, StoreError};

/// A session, as the database knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// SHA-256 of its sealed cookie, in hex: whoever reads the database gets no session of it.
    pub mark: String,
    /// Seconds since 1970 when it is over by itself.
    pub over: i64,
}

/// Ends it.
///
/// # Errors
///
/// Where the store does not answer: then it has not ended.
pub async fn end(store: &dyn Store, session: &Session) -> Result<(), StoreError> {
    let mut sql = Sql::new(store.dialect(), "INSERT INTO ended (mark, over) VALUES (");
    sql.value(session.mark.as_str()).add(", ").value(session.over).add(") ON CONFLICT (mark) DO NOTHING");
    store.change(sql).await.map(drop)
}

/// Whether it was ended.
///
/// # Errors
///
/// Where the store does not answer: then nobody knows.
pub async fn is_ended(store: &dyn Store, session: &Session) -> Result<bool, StoreError> {
    let mut sql = Sql::new(store.dialect(), "SELECT over FROM ended WHERE mark = ");
    sql.value(session.mark.as_str());
    Ok(!store.ask(sql).await?.is_empty())
}

/// Forgets those that are over by themselves.
///
/// # Errors
///
/// Where the store does not answer.
pub async fn forget(store: &dyn Store, now: i64) -> Result<u64, StoreError> {
    let mut sql = Sql::new(store.dialect(), "DELETE FROM ended WHERE over < ");
    sql.value(now);
    store.change(sql).await
}
