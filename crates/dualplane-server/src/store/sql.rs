//! SQL with its values. What callers give is always a value, never a part of the text.

use std::fmt::Write as _;

use dualplane_incidents::{Dimension, Filter, folded};

use super::{Page, Scope};

/// Whose SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite.
    Sqlite,
    /// Postgres.
    Postgres,
}

/// A value of a row or of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// Nothing.
    Null,
    /// A number.
    Int(i64),
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl Cell {
    /// As a number; 0 where it is none.
    #[must_use]
    pub fn int(&self) -> i64 {
        if let Self::Int(n) = self { *n } else { 0 }
    }

    /// As a text; empty where it is none.
    #[must_use]
    pub fn text(&self) -> &str {
        if let Self::Text(t) = self { t } else { "" }
    }
}

impl From<&str> for Cell {
    fn from(t: &str) -> Self {
        Self::Text(t.to_owned())
    }
}

impl From<i64> for Cell {
    fn from(n: i64) -> Self {
        Self::Int(n)
    }
}

/// A question.
#[derive(Debug, Clone)]
pub struct Sql {
    /// Its text, with `$1`, `$2` and so on in this order.
    pub text: String,
    /// Its values.
    pub values: Vec<Cell>,
    dialect: Dialect,
}

impl Sql {
    /// Begins one.
    #[must_use]
    pub fn new(dialect: Dialect, text: &str) -> Self {
        Self { text: text.to_owned(), values: Vec::new(), dialect }
    }

    /// Adds text of ours.
    pub(super) fn add(&mut self, text: &str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    /// Adds a value.
    pub(super) fn value(&mut self, value: impl Into<Cell>) -> &mut Self {
        let mut value = value.into();
        // Postgres has no NUL in a text; kept texts hold no control characters, so neither is found.
        if let Cell::Text(t) = &mut value
            && t.contains('\0')
        {
            *t = t.replace('\0', "\u{1}");
        }
        self.values.push(value);
        let _ = write!(self.text, "${}", self.values.len());
        self
    }

    fn one_of<'a>(&mut self, column: &str, values: impl IntoIterator<Item = &'a String>) {
        self.add(column).add(" IN (");
        for (n, v) in values.into_iter().enumerate() {
            if n > 0 {
                self.add(", ");
            }
            self.value(v.as_str());
        }
        self.add(")");
    }

    /// What a scope leaves, for columns `cluster` and `namespace` of this table.
    pub(super) fn scope(&mut self, table: &str, scope: &Scope) {
        let Scope::Some(realms) = scope else { return };
        self.add(" AND (1 = 0");
        for r in realms {
            self.add(" OR (1 = 1");
            if let Some(c) = &r.cluster {
                self.add(&format!(" AND {table}.cluster = ")).value(c.as_str());
            }
            if let Some(n) = &r.namespace {
                self.add(&format!(" AND {table}.namespace = ")).value(n.as_str());
            }
            self.add(")");
        }
        self.add(")");
    }

    fn filter(&mut self, filter: &Filter) {
        for (dimension, values) in &filter.any {
            self.add(" AND ");
            match dimension {
                Dimension::Gpu | Dimension::GpuName | Dimension::Driver | Dimension::Xid => {
                    self.add("i.id IN (SELECT id FROM several WHERE dimension = ").value(dimension.as_str());
                    self.add(" AND ");
                    self.one_of("value", values);
                    self.add(")");
                }
                column => self.one_of(&format!("i.{}", column.as_str()), values),
            }
        }
        if let Some(key) = &filter.loop_key {
            self.add(" AND i.loop_key = ").value(key.as_str());
        }
        if let Some(key) = &filter.cause_key {
            self.add(" AND i.cause_key = ").value(key.as_str());
        }
        if let Some(t) = filter.since {
            self.add(" AND i.died >= ").value(t.ms());
        }
        if let Some(t) = filter.until {
            self.add(" AND i.died < ").value(t.ms());
        }
        if let Some(text) = &filter.text {
            let find = if self.dialect == Dialect::Sqlite { "instr" } else { "strpos" };
            self.add(&format!(" AND {find}(i.searched, ")).value(folded(text).as_str()).add(") > 0");
        }
    }

    /// A page of a list: body and occurrences of its cause.
    #[must_use]
    pub fn page(dialect: Dialect, page: &Page) -> Self {
        let mut sql = Self::new(
            dialect,
            "SELECT i.body, c.occurrences FROM incidents i JOIN causes c ON c.cause_key = i.cause_key WHERE 1 = 1",
        );
        if page.filter.collapses() {
            sql.add(" AND i.latest = 1");
        }
        sql.filter(&page.filter);
        sql.scope("i", &page.scope);
        if let Some(after) = &page.after {
            sql.add(" AND (i.died, i.id) < (").value(after.died_at.ms()).add(", ");
            sql.value(after.id.as_str()).add(")");
        }
        sql.add(" ORDER BY i.died DESC, i.id DESC LIMIT ");
        sql.value(i64::try_from(page.limit).unwrap_or(i64::MAX));
        sql
    }
}
