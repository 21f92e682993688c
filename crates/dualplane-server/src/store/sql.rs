//! SQL with its values. What callers give is always a value, never a part of the text.

use std::fmt::Write as _;

use super::{Realm, Scope};

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
    pub(crate) fn add(&mut self, text: &str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    /// Adds a value.
    pub(crate) fn value(&mut self, value: impl Into<Cell>) -> &mut Self {
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

    /// Whose SQL it is.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The column has one of these values.
    pub(super) fn one_of(&mut self, column: &str, values: &[&str]) {
        if let [one] = values {
            self.add(column).add(" = ").value(*one);
            return;
        }
        self.add(column).add(" IN (");
        for (n, v) in values.iter().enumerate() {
            self.add(if n > 0 { ", " } else { "" }).value(*v);
        }
        self.add(")");
    }

    /// What a scope leaves, for columns `cluster` and `namespace` of this table.
    pub(super) fn scope(&mut self, table: &str, scope: &Scope) {
        let Scope::Some(realms) = scope else { return };
        if realms.is_empty() {
            self.add(" AND 1 = 0");
        }
        self.realms(table, realms);
    }

    /// One of these, or any where there is none.
    pub(super) fn realms<'a>(&mut self, table: &str, realms: impl IntoIterator<Item = &'a Realm>) {
        let realms: Vec<&Realm> = realms.into_iter().collect();
        let one = |sql: &mut Self, r: &Realm| {
            sql.add("1 = 1");
            if let Some(c) = &r.cluster {
                sql.add(&format!(" AND {table}.cluster = ")).value(c.as_str());
            }
            if let Some(n) = &r.namespace {
                sql.add(&format!(" AND {table}.namespace = ")).value(n.as_str());
            }
        };
        match realms.as_slice() {
            [] => {}
            [r] => {
                self.add(" AND ");
                one(self, r);
            }
            several => {
                self.add(" AND (1 = 0");
                for r in several {
                    self.add(" OR (");
                    one(self, r);
                    self.add(")");
                }
                self.add(")");
            }
        }
    }
}
