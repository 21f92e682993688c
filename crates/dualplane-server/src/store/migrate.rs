//! The tables, made in steps that are only ever added.

use super::sql::Dialect;

/// Steps, the first is version 1.
const STEPS: &[&str] = &[include_str!("../migrations/0001_incidents.sql")];

/// The version that this program works with.
pub(super) fn newest() -> i64 {
    i64::try_from(STEPS.len()).unwrap_or(i64::MAX)
}

/// Statements from this version to the newest.
pub(super) fn from(version: i64, dialect: Dialect) -> Vec<String> {
    let done = usize::try_from(version).unwrap_or(0);
    let [key, text, bytes] = match dialect {
        Dialect::Sqlite => ["TEXT", "TEXT", "BLOB"],
        Dialect::Postgres => ["TEXT COLLATE \"C\"", "TEXT", "BYTEA"],
    };
    let typed = |step: &&str| step.replace("<key>", key).replace("<text>", text).replace("<bytes>", bytes);
    STEPS.iter().skip(done).map(typed).collect()
}

/// What to say of a database of a later version.
pub(super) fn too_new(version: i64) -> String {
    format!(
        "its tables are of version {version}, this program knows up to {}: update dualplane-server",
        newest()
    )
}
