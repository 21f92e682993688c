//! A page of a list as SQL. What a filter leaves open is asked as several questions with one value each, whose newest are
//! merged: a database finds the newest of one value by an index, and sorts everything where it is asked for several. Where a
//! question has several filters, SQLite is asked by its index of words, which holds their values as well (`tags.rs`).

use dualplane_incidents::{Dimension, Filter, Time, folded};

use super::sql::{Dialect, Sql};
use super::tags::{TAGGED, tag};
use super::{Page, Realm, Scope};

/// Questions at most; values beyond are asked together.
const BRANCHES: usize = 64;
/// Trigrams of a search that are looked up; the whole is compared afterwards.
const GRAMS: usize = 24;

/// Dimensions, those whose values have few deaths first: of several, the first is looked up.
const ORDER: &[Dimension] = &[
    Dimension::Gpu,
    Dimension::Pod,
    Dimension::Node,
    Dimension::Owner,
    Dimension::Xid,
    Dimension::Namespace,
    Dimension::Model,
    Dimension::Image,
    Dimension::EngineVersion,
    Dimension::Container,
    Dimension::Driver,
    Dimension::GpuName,
    Dimension::Class,
    Dimension::Cluster,
    Dimension::Engine,
    Dimension::Phase,
    Dimension::Confidence,
    Dimension::Plane,
];

fn is_several(d: Dimension) -> bool {
    super::delta::SEVERAL.contains(&d)
}

/// One question: a namespace or all, and of each dimension one value or several.
#[derive(Debug, Clone)]
struct Branch<'a> {
    realms: Vec<&'a Realm>,
    any: Vec<(Dimension, Vec<&'a str>)>,
}

impl Branch<'_> {
    /// A class in a namespace, and nothing else that narrows: that is an index of its own.
    fn is_indexed(&self) -> bool {
        let one = |d| self.any.iter().any(|(a, v)| *a == d && v.len() == 1);
        let mine = matches!(self.realms.as_slice(), [r] if r.namespace.is_some());
        let beside =
            |d: &Dimension| matches!(d, Dimension::Class | Dimension::Namespace | Dimension::Cluster);
        one(Dimension::Class)
            && (one(Dimension::Namespace) || mine)
            && self.any.iter().all(|(d, _)| beside(d))
    }
}

/// Cuts a page into questions.
fn branches(page: &Page) -> Vec<Branch<'_>> {
    let mut any: Vec<(Dimension, Vec<&str>)> =
        page.filter.any.iter().map(|(d, v)| (*d, v.iter().map(String::as_str).collect())).collect();
    any.sort_by_key(|(d, _)| ORDER.iter().position(|o| o == d));
    let mut out = vec![Branch { realms: Vec::new(), any: Vec::new() }];
    if let Scope::Some(realms) = &page.scope {
        let all = realms.iter().collect::<Vec<_>>();
        out = match all.len() {
            0 => return Vec::new(),
            1..=BRANCHES => all.into_iter().map(|r| Branch { realms: vec![r], any: Vec::new() }).collect(),
            _ => vec![Branch { realms: all, any: Vec::new() }],
        };
    }
    for (d, values) in any {
        let apart = out.len() * values.len() <= BRANCHES;
        let mut next = Vec::new();
        for b in &out {
            match apart {
                true => next.extend(values.iter().map(|v| with_values(b, d, vec![*v]))),
                false => next.push(with_values(b, d, values.clone())),
            }
        }
        out = next;
    }
    out
}

fn with_values<'a>(b: &Branch<'a>, d: Dimension, values: Vec<&'a str>) -> Branch<'a> {
    let mut out = b.clone();
    out.any.push((d, values));
    out
}

/// A page: body and occurrences of the cause of each death.
pub(super) fn page(dialect: Dialect, page: &Page) -> Sql {
    let mut sql = Sql::new(dialect, "WITH newest (died, id) AS (");
    let all = branches(page);
    if all.is_empty() {
        sql.add("SELECT i.died, i.id FROM incidents i WHERE 1 = 0");
    }
    for (n, b) in all.iter().enumerate() {
        // Namespaces overlap, and a death has several cards: UNION tells each once.
        sql.add(if n == 0 { "" } else { " UNION " });
        sql.add("SELECT * FROM (");
        sql.branch(page, b);
        sql.add(&format!(") b{n}"));
    }
    sql.add(") SELECT i.body, c.occurrences FROM newest n JOIN incidents i ON i.id = n.id JOIN causes c ON c.cause_key = i.cause_key");
    sql.add(" ORDER BY n.died DESC, n.id DESC LIMIT ");
    sql.value(limit(page));
    sql
}

fn limit(page: &Page) -> i64 {
    i64::try_from(page.limit).unwrap_or(i64::MAX)
}

/// What `words` is asked for this text; `None` where it is too short for a trigram.
fn grams(text: &str) -> Option<String> {
    let chars: Vec<char> = text.chars().collect();
    let all: Vec<String> = chars.windows(3).map(|w| w.iter().collect::<String>()).collect();
    let step = all.len().div_ceil(GRAMS).max(1);
    let some: Vec<String> = all.iter().step_by(step).map(|g| quoted(g)).collect();
    (!some.is_empty()).then(|| some.join(" AND "))
}

fn quoted(word: &str) -> String {
    format!("\"{}\"", word.replace('"', "\"\""))
}

/// One of these, as `words` is asked; `None` where that says nothing, or there are too many.
fn either(mut ways: Vec<String>) -> Option<String> {
    if ways.len() > BRANCHES || ways.iter().any(String::is_empty) {
        return None;
    }
    match ways.len() {
        0 | 1 => ways.pop(),
        _ => Some(format!("({})", ways.join(" OR "))),
    }
}

/// What `words` is asked for the values of a question, each part by itself: whatever fits them holds all parts.
fn tagged(b: &Branch<'_>) -> Vec<String> {
    let one = |d: Dimension, v: &str| quoted(&tag(d, v));
    let mut out: Vec<String> = b
        .any
        .iter()
        .filter(|(d, _)| TAGGED.contains(d))
        .filter_map(|(d, values)| either(values.iter().map(|v| one(*d, v)).collect()))
        .collect();
    let realm = |r: &&Realm| {
        let cluster = r.cluster.as_deref().map(|c| one(Dimension::Cluster, c));
        let namespace = r.namespace.as_deref().map(|n| one(Dimension::Namespace, n));
        let both: Vec<String> = cluster.into_iter().chain(namespace).collect();
        if both.len() > 1 { format!("({})", both.join(" AND ")) } else { both.concat() }
    };
    out.extend(either(b.realms.iter().map(realm).collect()));
    out
}

impl Sql {
    fn branch(&mut self, page: &Page, b: &Branch<'_>) {
        // What has few deaths is read, and the rest is compared.
        let few = page.filter.loop_key.is_some()
            || page.filter.cause_key.is_some()
            || b.any.iter().any(|(d, v)| v.len() == 1 && matches!(d, Dimension::Gpu | Dimension::Pod));
        if self.dialect() == Dialect::Postgres || few {
            return self.by_rows(page, b);
        }
        let words = page.filter.text.as_deref().map(folded).and_then(|t| grams(&t));
        let values = tagged(b);
        // One filter alone is an index of its own; of causes, the latest deaths are few.
        match words {
            None if values.len() < 2 || page.filter.collapses() || b.is_indexed() => self.by_rows(page, b),
            words => {
                let all: Vec<String> = words.into_iter().chain(values).collect();
                self.by_words(page, b, &all.join(" AND "));
            }
        }
    }

    /// The newest of the rows that hold these words, by the order in which `words` keeps them. Its numbers are of seconds:
    /// the deaths of the last second are sorted among themselves.
    fn by_words(&mut self, page: &Page, b: &Branch<'_>, words: &str) {
        let turns = super::sqlite::TURNS;
        let second = |t: Time| t.ms().div_euclid(1000) * turns;
        let until = [page.after.as_ref().map(|a| a.died_at), page.filter.until].into_iter().flatten().min();
        let from = "FROM words w CROSS JOIN incidents i ON i.place = w.rowid WHERE w.words MATCH ";
        let asked = |sql: &mut Self, what: &str| {
            sql.add(&format!("SELECT {what} {from}")).value(words);
            if let Some(t) = until {
                sql.add(" AND w.rowid < ").value(second(t) + turns);
            }
            if let Some(t) = page.filter.since {
                sql.add(" AND w.rowid >= ").value(second(t));
            }
            sql.rest(page, b, "i");
        };
        asked(self, "i.died, i.id");
        // Where there is none, nothing is read a second time.
        self.add(&format!(" AND w.rowid >= (SELECT COALESCE(MIN(place) & -{turns}, {}) FROM (", i64::MAX));
        asked(self, "w.rowid AS place");
        self.add(" ORDER BY w.rowid DESC LIMIT ").value(limit(page)).add("))");
        self.add(" ORDER BY i.died DESC, i.id DESC LIMIT ").value(limit(page));
    }

    fn by_rows(&mut self, page: &Page, b: &Branch<'_>) {
        // Values of cards stand in a table of their own, by time as well. Where a narrower filter is there, it is read and
        // these are looked up.
        let lead = b.any.first().filter(|(d, v)| is_several(*d) && v.len() == 1);
        let key = match lead {
            Some((d, v)) => {
                self.add("SELECT s.died, s.id FROM several s CROSS JOIN incidents i WHERE i.id = s.id AND s.dimension = ");
                self.value(d.as_str()).add(" AND s.value = ");
                let _ = v.iter().fold(&mut *self, |sql, v| sql.value(*v));
                "s"
            }
            None => {
                self.add("SELECT i.died, i.id FROM incidents i WHERE 1 = 1");
                "i"
            }
        };
        let b = Branch {
            any: b.any.iter().skip(usize::from(lead.is_some())).cloned().collect(),
            realms: b.realms.clone(),
        };
        self.rest(page, &b, key);
        self.add(&format!(" ORDER BY {key}.died DESC, {key}.id DESC LIMIT ")).value(limit(page));
    }

    /// Everything else that a death must be. `key`: whose time and name are compared.
    fn rest(&mut self, page: &Page, b: &Branch<'_>, key: &str) {
        if page.filter.collapses() {
            self.add(" AND i.latest = 1");
        }
        for (d, values) in &b.any {
            self.add(" AND ");
            if is_several(*d) {
                self.add("EXISTS (SELECT 1 FROM several x WHERE x.dimension = ")
                    .value(d.as_str())
                    .add(" AND ");
                self.one_of("x.value", values);
                self.add(" AND x.died = i.died AND x.id = i.id)");
            } else {
                self.one_of(&format!("i.{}", d.as_str()), values);
            }
        }
        self.filter(&page.filter, key);
        self.realms("i", b.realms.iter().copied());
        if let Some(after) = &page.after {
            self.add(&format!(" AND ({key}.died, {key}.id) < (")).value(after.died_at.ms()).add(", ");
            self.value(after.id.as_str()).add(")");
        }
    }

    fn filter(&mut self, filter: &Filter, key: &str) {
        if let Some(key) = &filter.loop_key {
            self.add(" AND i.loop_key = ").value(key.as_str());
        }
        if let Some(key) = &filter.cause_key {
            self.add(" AND i.cause_key = ").value(key.as_str());
        }
        if let Some(t) = filter.since {
            self.add(&format!(" AND {key}.died >= ")).value(t.ms());
        }
        if let Some(t) = filter.until {
            self.add(&format!(" AND {key}.died < ")).value(t.ms());
        }
        let Some(text) = &filter.text else { return };
        let text = folded(text);
        match self.dialect() {
            Dialect::Sqlite => self.add(" AND instr(i.searched, ").value(text.as_str()).add(") > 0"),
            Dialect::Postgres => {
                let mut like = String::from("%");
                for c in text.chars() {
                    if matches!(c, '%' | '_' | '\\') {
                        like.push('\\');
                    }
                    like.push(c);
                }
                like.push('%');
                self.add(" AND i.searched LIKE ").value(like.as_str())
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dimension_has_its_place() {
        assert!(Dimension::ALL.iter().all(|d| ORDER.contains(d)));
        assert_eq!(ORDER.len(), Dimension::ALL.len());
    }

    #[test]
    fn a_search_is_looked_up_by_trigrams_and_quotes_are_no_syntax() {
        assert_eq!(grams("ab"), None);
        assert_eq!(grams("abcd").as_deref(), Some("\"abc\" AND \"bcd\""));
        assert_eq!(grams("a\"b").as_deref(), Some("\"a\"\"b\""));
        assert!(grams(&"abc ".repeat(100)).unwrap().matches("AND").count() <= GRAMS);
    }
}
