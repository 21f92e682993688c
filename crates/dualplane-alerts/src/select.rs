//! What somebody asked for, with thresholds filled in: rules as Prometheus takes them.

use std::collections::{BTreeMap, BTreeSet};

use dualplane_base::near::near;

use crate::expression::{filled, number, on_one_line, placeholders, series, unfolded};
use crate::quantity;
use crate::rule::{Alert, Record, Rules, Source};

/// What somebody asked for.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Engines; all where empty.
    pub engines: Vec<String>,
    /// Exporters; all where empty.
    pub sources: Vec<String>,
    /// These alerts only.
    pub only: Vec<String>,
    /// Not these.
    pub disabled: Vec<String>,
    /// Also these, which are off by default.
    pub enabled: Vec<String>,
    /// Without the records that no alert reads: dashboards do.
    pub without_dashboards: bool,
    /// How long a state must hold, instead of each alert's own time. Events have none.
    pub hold: Option<String>,
    /// Thresholds by their names, as typed.
    pub set: Vec<(String, String)>,
}

/// Why nothing was selected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A word names nothing.
    #[error("`{word}` is no {what}{}", meant(.near))]
    Unknown {
        /// What it should name.
        what: &'static str,
        /// The word.
        word: String,
        /// What it may mean.
        near: Vec<String>,
    },
    /// A threshold is not what it should be.
    #[error("{name}={value}: give {want}")]
    Value {
        /// Its name.
        name: String,
        /// As typed.
        value: String,
        /// How it should look.
        want: &'static str,
    },
    /// The time is none.
    #[error("`{0}` is no duration of Prometheus: give 10m or 1h30m")]
    Duration(String),
    /// No alert is left.
    #[error("no alert is left: {0}")]
    Nothing(String),
}

/// A recording rule, ready.
#[derive(Debug, Clone)]
pub struct Recording {
    /// Its data.
    pub record: &'static Record,
    /// Its expression.
    pub expr: String,
}

/// An alert, ready.
#[derive(Debug, Clone)]
pub struct Alerting {
    /// Its data.
    pub alert: &'static Alert,
    /// Its expression.
    pub expr: String,
    /// How long it must hold.
    pub hold: String,
}

/// What was selected.
#[derive(Debug, Clone)]
pub struct Selection {
    /// Recording rules; each one before those that read it where the data say so.
    pub records: Vec<Recording>,
    /// Alerts.
    pub alerts: Vec<Alerting>,
    /// Thresholds as they are in the expressions.
    pub values: BTreeMap<String, f64>,
}

/// Selects from the embedded rules.
///
/// # Errors
/// A name that nothing has, a threshold or duration that is none, or a selection of nothing.
pub fn select(options: &Options) -> Result<Selection, Fault> {
    spelled(options, |_, value| number(value))
}

/// All alerts, those that are off by default as well, with `@name@` in the place of each threshold: what a template of Helm
/// fills.
#[must_use]
pub fn template() -> Option<Selection> {
    let optional = Rules::embedded().alerts.iter().filter(|a| a.optional.is_some());
    let options = Options { enabled: optional.map(|a| a.id.clone()).collect(), ..Options::default() };
    spelled(&options, |name, _| format!("@{name}@")).ok()
}

fn spelled(options: &Options, number: impl Fn(&str, f64) -> String) -> Result<Selection, Fault> {
    let rules = Rules::embedded();
    let wanted = alerts_of(rules, options)?;
    let sources = sources_of(rules, options)?;
    let values = values_of(rules, &options.set)?;
    if let Some(hold) = options.hold.as_ref().filter(|h| quantity::duration(h).is_none()) {
        return Err(Fault::Duration(hold.clone()));
    }
    let fill = Filler::new(rules, &values, &sources, number);
    let records = fill.records();
    let there: BTreeSet<&str> = records.iter().map(|r| r.record.name.as_str()).collect();
    let ready = |a: &&'static Alert| {
        let expr = fill.joined(a.parts(), a.on.as_deref(), |name| {
            there.contains(name) || a.without.iter().any(|w| w == name)
        })?;
        let event = quantity::duration(&a.hold) == Some(0.0);
        let hold = options.hold.clone().filter(|_| !event).unwrap_or_else(|| a.hold.clone());
        Some(Alerting { alert: a, expr, hold })
    };
    let named = !options.only.is_empty();
    let alerts: Vec<Alerting> = wanted.iter().filter_map(ready).collect();
    let lost = wanted.iter().filter(|w| !alerts.iter().any(|a| a.alert.id == w.id));
    let lost: Vec<&str> = lost.map(|a| a.id.as_str()).collect();
    if named && !lost.is_empty() {
        let why = format!("{} needs series that none of these engines and sources exposes", lost.join(", "));
        return Err(Fault::Nothing(why));
    }
    if alerts.is_empty() {
        return Err(Fault::Nothing("all were left out, or nothing exposes their series".to_owned()));
    }
    let read_alone = named || options.without_dashboards;
    let records = if read_alone { read_by(rules, &alerts, records) } else { records };
    Ok(Selection { records, alerts, values })
}

/// Alerts by their names.
fn alerts_of(rules: &'static Rules, options: &Options) -> Result<Vec<&'static Alert>, Fault> {
    let known = |ids: &[String]| -> Result<Vec<&'static str>, Fault> {
        let one = |id: &String| {
            let found = rules.alert(id).map(|a| a.id.as_str());
            found.ok_or_else(|| unknown("alert", id, rules.alerts.iter().map(|a| a.id.as_str())))
        };
        ids.iter().map(one).collect()
    };
    let (only, disabled, enabled) =
        (known(&options.only)?, known(&options.disabled)?, known(&options.enabled)?);
    let wanted = |a: &&Alert| {
        let id = a.id.as_str();
        let asked = only.contains(&id) || enabled.contains(&id) || only.is_empty() && a.optional.is_none();
        asked && !disabled.contains(&id)
    };
    Ok(rules.alerts.iter().filter(wanted).collect())
}

/// Ids of sources whose series may be read.
fn sources_of(rules: &Rules, options: &Options) -> Result<BTreeSet<String>, Fault> {
    let kind =
        |engine: bool| rules.sources.iter().filter(move |(_, s): &(&String, &Source)| s.engine == engine);
    let mut out = BTreeSet::new();
    for (engine, asked, what) in [(true, &options.engines, "engine"), (false, &options.sources, "source")] {
        let all = asked.is_empty() || asked.iter().any(|w| w == "all");
        let ids: Vec<&str> = kind(engine).map(|(id, _)| id.as_str()).collect();
        for word in asked.iter().filter(|w| *w != "all") {
            // People write llama.cpp and tensorrt-llm.
            let id = word.to_ascii_lowercase().replace(['-', '.', ' '], "_");
            if !ids.contains(&id.as_str()) {
                return Err(unknown(what, word, ids.iter().copied()));
            }
            out.insert(id);
        }
        if all {
            out.extend(ids.into_iter().map(str::to_owned));
        }
    }
    Ok(out)
}

fn values_of(rules: &Rules, set: &[(String, String)]) -> Result<BTreeMap<String, f64>, Fault> {
    let mut out: BTreeMap<String, f64> = rules.values.iter().map(|(k, v)| (k.clone(), v.default)).collect();
    for (name, text) in set {
        let Some(value) = rules.values.get(name) else {
            return Err(unknown("threshold", name, rules.values.keys().map(String::as_str)));
        };
        let number = quantity::parse(text, value.unit).map_err(|want| Fault::Value {
            name: name.clone(),
            value: text.clone(),
            want,
        })?;
        out.insert(name.clone(), number);
    }
    Ok(out)
}

/// Records that alerts read, and those that these read.
fn read_by(rules: &Rules, alerts: &[Alerting], all: Vec<Recording>) -> Vec<Recording> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    let mut open: Vec<&str> = alerts.iter().map(|a| a.expr.as_str()).collect();
    while let Some(expr) = open.pop() {
        for name in series(expr, rules) {
            if let Some(found) = all.iter().find(|r| r.record.name == name).filter(|_| !names.contains(name))
            {
                names.insert(name.to_owned());
                open.push(&found.expr);
            }
        }
    }
    all.into_iter().filter(|r| names.contains(&r.record.name)).collect()
}

/// Fills expressions.
struct Filler<'a> {
    rules: &'static Rules,
    sources: &'a BTreeSet<String>,
    /// Each expression of the data: filled, and the series that it reads.
    ready: BTreeMap<&'static str, (String, Vec<String>)>,
}

impl<'a> Filler<'a> {
    fn new(
        rules: &'static Rules,
        values: &BTreeMap<String, f64>,
        sources: &'a BTreeSet<String>,
        number: impl Fn(&str, f64) -> String,
    ) -> Self {
        let of = |name: &str| {
            let value = values.get(name).map(|v| number(name, *v));
            value.or_else(|| rules.text.get(name).cloned())
        };
        let one = |part: &'static String| {
            let text = on_one_line(&filled(&unfolded(part, &rules.macros), of));
            let reads = series(&text, rules).into_iter().map(str::to_owned).collect();
            (part.as_str(), (text, reads))
        };
        let parts =
            rules.records.iter().flat_map(|r| &r.from).chain(rules.alerts.iter().flat_map(Alert::parts));
        Self { rules, sources, ready: parts.map(one).collect() }
    }

    /// Records that some source feeds. One that none feeds takes those with it that read it.
    fn records(&self) -> Vec<Recording> {
        let mut there: BTreeSet<&str> = self.rules.records.iter().map(|r| r.name.as_str()).collect();
        loop {
            let expr = |r: &Record| self.joined(&r.from, r.on.as_deref(), |name| there.contains(name));
            let kept: BTreeSet<&str> = self
                .rules
                .records
                .iter()
                .filter(|r| there.contains(r.name.as_str()) && expr(r).is_some())
                .map(|r| r.name.as_str())
                .collect();
            if kept.len() == there.len() {
                let ready = |r: &'static Record| {
                    there
                        .contains(r.name.as_str())
                        .then(|| expr(r))
                        .flatten()
                        .map(|expr| Recording { record: r, expr })
                };
                return self.rules.records.iter().filter_map(ready).collect();
            }
            there = kept;
        }
    }

    /// The expressions that can be asked, the best first: the next one counts where those before have nothing.
    fn joined(&self, parts: &[String], on: Option<&str>, record: impl Fn(&str) -> bool) -> Option<String> {
        let ready: Vec<String> = parts.iter().filter_map(|p| self.one(p, &record)).collect();
        match (ready.as_slice(), on) {
            ([], _) => None,
            ([one], _) => Some(one.clone()),
            (several, on) => {
                let labels = on.and_then(|o| self.rules.text.get(o)).map_or("", String::as_str);
                let each: Vec<String> = several.iter().map(|p| format!("({p})")).collect();
                Some(each.join(&format!(" or on ({labels}) ")))
            }
        }
    }

    /// An expression, if all of its series are exposed or recorded.
    fn one(&self, part: &str, record: impl Fn(&str) -> bool) -> Option<String> {
        let (text, reads) = self.ready.get(part)?;
        let readable = |name: &String| match self.rules.source_of(name) {
            Some(source) => self.sources.contains(source),
            None => record(name),
        };
        reads.iter().all(readable).then(|| text.clone())
    }
}

/// Thresholds that an alert's expressions name, and records that they read.
pub(crate) fn thresholds<'r>(rules: &'r Rules, parts: &[String]) -> Vec<&'r str> {
    let own = |name: &str| parts.iter().any(|p| placeholders(p).contains(name));
    rules.values.keys().map(String::as_str).filter(|name| own(name)).collect()
}

fn meant(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!(": did you mean {}?", near.join(", ")) }
}

/// Says which words are near to one that names nothing.
#[must_use]
pub fn unknown<'a>(what: &'static str, word: &str, all: impl Iterator<Item = &'a str>) -> Fault {
    let near = near(word, all).into_iter().map(str::to_owned).collect();
    Fault::Unknown { what, word: word.to_owned(), near }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(of: impl FnOnce(&mut Options)) -> Options {
        let mut o = Options::default();
        of(&mut o);
        o
    }

    fn text(s: &Selection) -> String {
        s.records
            .iter()
            .map(|r| &r.expr)
            .chain(s.alerts.iter().map(|a| &a.expr))
            .cloned()
            .collect::<Vec<_>>()
            .join("\n")
    }

    #[test]
    fn an_engine_alone_brings_no_series_of_another() {
        let all = Rules::embedded().sources().filter(|(_, s)| s.engine).map(|(id, _)| id.to_owned());
        for engine in all {
            let s = select(&options(|o| o.engines = vec![engine.clone()])).unwrap();
            assert!(s.alerts.len() >= 15, "{engine}: {}", s.alerts.len());
            let text = text(&s);
            for (id, source) in Rules::embedded().sources().filter(|(_, s)| s.engine) {
                let read =
                    source.metrics.iter().any(|m| series(&text, Rules::embedded()).contains(m.as_str()));
                assert_eq!(read, id == engine, "{engine}: {id}");
            }
        }
    }

    #[test]
    fn a_source_that_is_not_there_takes_its_rules_with_it() {
        let s = select(&options(|o| o.sources = vec!["cadvisor".into(), "ksm".into()])).unwrap();
        let ids: Vec<&str> = s.alerts.iter().map(|a| a.alert.id.as_str()).collect();
        assert!(ids.contains(&"host-memory-near-limit") && ids.contains(&"kv-cache-full"), "{ids:?}");
        assert!(!ids.contains(&"xid") && !ids.contains(&"restart-with-verdict"), "{ids:?}");
        // What an alert only leaves out does not take it away.
        let s = select(&options(|o| {
            o.sources = vec!["dcgm".into()];
            o.only = vec!["vram-high".into()];
        }));
        assert!(s.is_ok());
        assert_eq!(
            select(&options(|o| {
                o.sources = vec!["dcgm".into()];
                o.only = vec!["shm-near-full".into()];
            }))
            .unwrap_err()
            .to_string(),
            "no alert is left: shm-near-full needs series that none of these engines and sources exposes"
        );
    }

    #[test]
    fn one_alert_brings_the_records_that_it_reads_and_no_more() {
        let s = select(&options(|o| o.only = vec!["DualplaneHostMemoryNearLimit".into()])).unwrap();
        let names: BTreeSet<&str> = s.records.iter().map(|r| r.record.name.as_str()).collect();
        let want = [
            "dualplane:host_memory_limit:bytes",
            "dualplane:host_memory_usage:ratio",
            "dualplane:host_memory_working_set:bytes",
            "dualplane:requests_running",
            "dualplane:server:info",
        ];
        assert_eq!(names, want.into());
    }

    #[test]
    fn thresholds_and_times_are_set_and_wrong_ones_are_said() {
        let s = select(&options(|o| {
            o.set = vec![("host_memory_ratio".into(), "85%".into())];
            o.hold = Some("1h".into());
        }))
        .unwrap();
        let of = |id: &str| s.alerts.iter().find(|a| a.alert.id == id).unwrap();
        assert_eq!(of("host-memory-near-limit").expr, "dualplane:host_memory_usage:ratio > 0.85");
        assert_eq!((of("host-memory-near-limit").hold.as_str(), of("xid").hold.as_str()), ("1h", "0m"));
        let said = |o: Options| select(&o).unwrap_err().to_string();
        assert_eq!(
            said(options(|o| o.only = vec!["host-memory-near".into()])).split(',').next().unwrap(),
            "`host-memory-near` is no alert: did you mean host-memory-near-limit"
        );
        assert!(
            said(options(|o| o.set = vec![("kv_ration".into(), "1".into())]))
                .contains("did you mean kv_ratio")
        );
        assert!(
            said(options(|o| o.engines = vec!["vlm".into()]))
                .contains("`vlm` is no engine: did you mean vllm")
        );
        assert!(said(options(|o| o.set = vec![("kv_ratio".into(), "95".into())])).contains("give a share"));
        assert!(said(options(|o| o.hold = Some("10".into()))).contains("is no duration"));
    }

    #[test]
    fn what_is_off_by_default_comes_when_asked_for() {
        let has = |o: Options| select(&o).unwrap().alerts.iter().any(|a| a.alert.id == "gpu-busy");
        assert!(!has(Options::default()));
        assert!(has(options(|o| o.enabled = vec!["gpu-busy".into()])));
        assert!(has(options(|o| o.only = vec!["gpu-busy".into()])));
        assert!(!has(options(|o| {
            o.enabled = vec!["gpu-busy".into()];
            o.disabled = vec!["gpu-busy".into()];
        })));
    }
}
