//! The tables, made in steps that are only ever added.

use super::sql::Dialect;

/// A step: for both, and what each adds.
struct Step {
    both: &'static str,
    sqlite: &'static str,
    postgres: &'static str,
}

/// Steps, the first is version 1.
const STEPS: &[Step] = &[
    Step { both: include_str!("../migrations/0001_incidents.sql"), sqlite: "", postgres: "" },
    Step {
        both: include_str!("../migrations/0002_speed.sql"),
        sqlite: include_str!("../migrations/0002_search_sqlite.sql"),
        postgres: include_str!("../migrations/0002_search_postgres.sql"),
    },
    Step { both: include_str!("../migrations/0003_senders.sql"), sqlite: "", postgres: "" },
    Step { both: include_str!("../migrations/0004_leases.sql"), sqlite: "", postgres: "" },
    Step {
        both: "",
        sqlite: include_str!("../migrations/0005_tags_sqlite.sql"),
        postgres: include_str!("../migrations/0005_words_postgres.sql"),
    },
    Step { both: include_str!("../migrations/0006_ended.sql"), sqlite: "", postgres: "" },
];

/// Up to this version the index of words in SQLite held no values: the program fills it anew.
pub(super) const WITHOUT_TAGS: i64 = 4;

/// The version that this program works with.
pub(super) fn newest() -> i64 {
    i64::try_from(STEPS.len()).unwrap_or(i64::MAX)
}

/// Statements from this version to the newest.
pub(super) fn from(version: i64, dialect: Dialect) -> Vec<String> {
    let done = usize::try_from(version).unwrap_or(0);
    // `<packed>`: rows lie in the index of their key, where the database can.
    let [key, text, bytes, packed] = match dialect {
        Dialect::Sqlite => ["TEXT", "TEXT", "BLOB", " WITHOUT ROWID"],
        Dialect::Postgres => ["TEXT COLLATE \"C\"", "TEXT", "BYTEA", ""],
    };
    let typed = |step: &Step| {
        let own = if dialect == Dialect::Sqlite { step.sqlite } else { step.postgres };
        let both = step.both.replace("<key>", key).replace("<text>", text);
        format!("{}\n{own}", both.replace("<bytes>", bytes).replace("<packed>", packed))
    };
    STEPS.iter().skip(done).map(typed).collect()
}

/// What to say of a database of a later version.
pub(super) fn too_new(version: i64) -> String {
    format!(
        "its tables are of version {version}, this program knows up to {}: update dualplane-server",
        newest()
    )
}
