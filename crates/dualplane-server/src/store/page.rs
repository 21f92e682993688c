//! A page of a list as SQL. What a filter leaves open is asked as several questions with one value each, whose newest are
//! merged: a database finds the newest of one value by an index, and sorts everything where it is asked for several.

use dualplane_incidents::{Dimension, Filter, folded};

use super::sql::{Dialect, Sql};
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
    let quoted = |g: &String| format!("\"{}\"", g.replace('"', "\"\""));
    let some: Vec<String> = all.iter().step_by(step).map(quoted).collect();
    (!some.is_empty()).then(|| some.join(" AND "))
}

impl Sql {
    fn branch(&mut self, page: &Page, b: &Branch<'_>) {
        // What has few deaths is read, and its texts are compared.
        let few = page.filter.loop_key.is_some()
            || page.filter.cause_key.is_some()
            || b.any
                .iter()
                .any(|(d, v)| v.len() == 1 && matches!(d, Dimension::Gpu | Dimension::Pod | Dimension::Node));
        let words = page.filter.text.as_deref().map(folded).and_then(|t| grams(&t)).filter(|_| !few);
        match (self.dialect(), words) {
            (Dialect::Sqlite, Some(words)) => self.by_words(page, b, &words),
            _ => self.by_rows(page, b),
        }
    }

    /// The newest of the rows that hold these trigrams, by the order in which `words` keeps them. Its numbers are of seconds:
    /// the deaths of the last second are sorted among themselves.
    fn by_words(&mut self, page: &Page, b: &Branch<'_>, words: &str) {
        let from = "FROM words w CROSS JOIN incidents i ON i.place = w.rowid WHERE w.words MATCH ";
        self.add(&format!("SELECT i.died, i.id {from}")).value(words);
        self.rest(page, b, "i");
        let second = super::sqlite::TURNS;
        self.add(&format!(
            " AND w.rowid >= (SELECT MIN(place) & -{second} FROM (SELECT w.rowid AS place {from}"
        ))
        .value(words);
        self.rest(page, b, "i");
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
