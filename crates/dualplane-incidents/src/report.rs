//! A report of `triage` as an incident.

use dualplane_base::text::{printable, shorten};
use dualplane_base::{Class, Confidence, Phase};
use serde::Deserialize;
use serde_json::Value;

use crate::incident::{Clock, Gpu, Incident, Memory, Planned, Pressure, SCHEMA, Trigger, Vram, Xid};
use crate::keys::{cause_key, is_id, loop_key, workload_of_pod};
use crate::time::Time;
use crate::whereabouts::Where;

/// Bytes of a name: DNS names have 253.
const NAME: usize = 253;
/// Bytes of an image with its registry and digest, and of a model's name or path.
const PATH: usize = 512;
/// Characters of a sentence.
const SENTENCE: usize = 1000;
/// Characters of the trigger's line.
const LINE: usize = 2000;
/// Cards, and Xids, of one death: 16 cards with 7 MIG devices each.
const MANY: usize = 128;
/// A sender's clock may be ahead by this much.
const AHEAD_MS: i64 = 5 * 60 * 1000;
/// Schemas that are read.
const READ: &[&str] = &["dualplane.verdict/v2", "dualplane.verdict/v1"];

/// A report that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    /// Not a report.
    #[error(
        "it is no report: send what `dualplane triage TARGET -o json` prints (schema dualplane.verdict/v2)"
    )]
    NoReport,
    /// A report of another version.
    #[error("its schema is {0:?}, and this server reads {known}: update the older of the two", known = READ.join(" and "))]
    Schema(String),
    /// A word that this version does not know.
    #[error("its {key} is {value:?}, which this version does not know: update the server")]
    Word {
        /// Which one.
        key: &'static str,
        /// What it is.
        value: String,
    },
    /// Several reports in one.
    #[error("it holds several reports: send each of its items by itself")]
    Several,
    /// The name of the incident.
    #[error(
        "the incident's id may have 1 to 180 letters, digits, '-', '.' and '_' and begins with a letter or digit"
    )]
    Id,
}

/// The reports of a document: one, or those of `dualplane.verdicts/v2`.
#[must_use]
pub fn items(document: &Value) -> Vec<&Value> {
    match document.get("items").and_then(Value::as_array) {
        Some(items) => items.iter().collect(),
        None => vec![document],
    }
}

/// Makes an incident. What `place` says stands before what the report tells.
///
/// # Errors
///
/// Where it is no report, or one of a version that is not read.
pub fn of_report(
    id: &str,
    report: &Value,
    place: &Where,
    received_at: Time,
) -> Result<Incident, ReportError> {
    if !is_id(id) {
        return Err(ReportError::Id);
    }
    let head = head(report)?;
    let word = |key| text_at(head, &[key]).unwrap_or("").to_owned();
    let class: Class = known("class", &word("class"))?;
    let subject = |key: &str| text_at(report, &["subject", key]);
    let told = |given: &Option<String>, key: &str, max| {
        name(given.as_deref().or_else(|| subject(key)).unwrap_or(""), max)
    };
    let pod = told(&place.pod, "pod", NAME);
    let owner = place.owner.as_deref().map_or_else(|| workload_of_pod(&pod).to_owned(), |o| name(o, NAME));
    let cluster = name(place.cluster.as_deref().unwrap_or(""), NAME);
    let namespace = told(&place.namespace, "namespace", NAME);
    let container = told(&place.container, "container", NAME);
    let planned_model = text_at(report, &["budget", "expected", "model"]);
    let (died_at, died_at_from) = died(report, place, received_at);
    let loop_key = loop_key(id, [&cluster, &namespace, &owner, &container]);
    Ok(Incident {
        schema: SCHEMA.to_owned(),
        id: id.to_owned(),
        node: told(&place.node, "node", NAME),
        image: name(place.image.as_deref().unwrap_or(""), PATH),
        model: name(place.model.as_deref().or(planned_model).unwrap_or(""), PATH),
        engine: name(subject("engine").unwrap_or(""), NAME),
        engine_version: name(subject("engine_version").unwrap_or(""), NAME),
        gpus: place.gpus.iter().take(MANY).map(gpu).collect(),
        xids: xids(report, place),
        class,
        plane: class.plane(),
        phase: known::<Phase>("phase", &word("phase"))?,
        confidence: known::<Confidence>("confidence", &word("confidence"))?,
        title: clean(&word("title"), SENTENCE),
        summary: clean(&word("summary"), SENTENCE),
        trigger: trigger(report),
        top_action: top_action(report),
        memory: memory(report),
        vram: vram(report, place),
        pressure: pressure(head, report),
        cause_key: cause_key(&loop_key, class),
        loop_key,
        died_at,
        died_at_from,
        received_at,
        occurrences: 1,
        cluster,
        namespace,
        owner,
        pod,
        container,
    })
}

fn head(report: &Value) -> Result<&Value, ReportError> {
    let schema = text_at(report, &["schema"]).ok_or(ReportError::NoReport)?;
    if schema.starts_with("dualplane.verdicts/") {
        return Err(ReportError::Several);
    }
    if !schema.starts_with("dualplane.verdict/") {
        return Err(ReportError::NoReport);
    }
    if !READ.contains(&schema) {
        return Err(ReportError::Schema(clean(schema, 60)));
    }
    report.get("verdict").filter(|v| v.is_object()).ok_or(ReportError::NoReport)
}

fn known<T: for<'a> Deserialize<'a>>(key: &'static str, word: &str) -> Result<T, ReportError> {
    serde_json::from_value(Value::from(word)).map_err(|_| ReportError::Word { key, value: clean(word, 60) })
}

fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |v, key| v.get(key))
}

fn text_at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a str> {
    at(value, path)?.as_str()
}

fn number_at(value: &Value, path: &[&str]) -> Option<u64> {
    at(value, path)?.as_u64()
}

/// One line without control characters, of this many characters at most.
fn clean(text: &str, max: usize) -> String {
    let line: String = text.chars().map(|c| if matches!(c, '\n' | '\r' | '\t') { ' ' } else { c }).collect();
    shorten(&printable(&line), max.saturating_sub(1)).into_owned()
}

/// The same of a name, in bytes: databases bound what they index.
fn name(text: &str, max: usize) -> String {
    let mut out = clean(text, max);
    while out.len() > max {
        out.pop();
    }
    out
}

fn gpu(g: &Gpu) -> Gpu {
    let cleaned = |t: &Option<String>| t.as_deref().map(|t| name(t, NAME)).filter(|t| !t.is_empty());
    Gpu {
        uuid: name(&g.uuid, NAME),
        name: cleaned(&g.name),
        driver: cleaned(&g.driver),
        ecc_uncorrected: g.ecc_uncorrected,
    }
}

fn trigger(report: &Value) -> Option<Trigger> {
    let t = at(report, &["trigger"])?;
    Some(Trigger {
        text: clean(text_at(t, &["text"])?, LINE),
        file: name(text_at(t, &["file"]).unwrap_or(""), PATH),
        line: number_at(t, &["line"]),
        time: text_at(t, &["time"]).map(|t| name(t, NAME)),
    })
}

/// The first action that mends it, else the first.
fn top_action(report: &Value) -> Option<String> {
    let actions = at(report, &["actions"])?.as_array()?;
    let mends = |a: &&Value| text_at(a, &["stage"]) == Some("fix");
    let first = actions.iter().find(mends).or_else(|| actions.first())?;
    text_at(first, &["title"]).map(|t| clean(t, SENTENCE))
}

fn planned(value: Option<&Value>) -> Option<Planned> {
    let value = value?;
    let [low, expected, high] = ["low", "expected", "high"].map(|k| number_at(value, &[k]));
    Some(Planned { low: low?, expected: expected?, high: high? })
}

fn memory(report: &Value) -> Memory {
    let held = |key| number_at(report, &["budget", "held", key]);
    Memory {
        limit_bytes: number_at(report, &["subject", "memory_limit_bytes"]).or_else(|| held("limit_bytes")),
        held_bytes: held("anon_bytes").map(|a| a.saturating_add(held("shmem_bytes").unwrap_or(0))),
        planned: planned(at(report, &["budget", "expected", "host", "load_peak_bytes"])),
        planned_kv_tokens: planned(at(report, &["budget", "expected", "gpu", "kv_cache_tokens"])),
    }
}

fn vram(report: &Value, place: &Where) -> Vram {
    let gpu = |key| planned(at(report, &["budget", "expected", "gpu", key]));
    // Of a server that lives, what its cards hold is a reading.
    let readings = at(report, &["pressure", "readings"]).and_then(Value::as_array);
    let cards = readings
        .into_iter()
        .flatten()
        .filter(|r| text_at(r, &["plane"]) == Some("gpu"))
        .filter_map(|r| Some((number_at(r, &["used_bytes"])?, number_at(r, &["limit_bytes"])?)));
    let fullest = fullest(cards);
    let sum = |a: Planned, b: Planned| Planned {
        low: a.low.saturating_add(b.low),
        expected: a.expected.saturating_add(b.expected),
        high: a.high.saturating_add(b.high),
    };
    Vram {
        total_bytes: place.vram_total_bytes.or(fullest.map(|f| f.1)),
        held_bytes: place.vram_held_bytes.or(fullest.map(|f| f.0)),
        planned: gpu("weights_bytes").zip(gpu("kv_cache_bytes")).map(|(w, kv)| sum(w, kv)),
    }
}

/// Of cards, bytes in use and in all: the one with the least of its memory left.
#[must_use]
pub fn fullest(cards: impl Iterator<Item = (u64, u64)>) -> Option<(u64, u64)> {
    let share = |(used, total): (u64, u64)| used as f64 / total.max(1) as f64;
    cards.max_by(|a, b| share(*a).total_cmp(&share(*b)))
}

/// The rule that decides where nothing ended and a plane stands at its limit (`docs/rules.md`).
const UNDER_PRESSURE: &str = "under_pressure";

fn pressure(head: &Value, report: &Value) -> Option<Pressure> {
    let bound = text_at(report, &["pressure", "bound_by"]);
    let bound = bound.filter(|_| text_at(head, &["decided_by"]) == Some(UNDER_PRESSURE))?;
    serde_json::from_value(Value::from(bound)).ok()
}

fn died(report: &Value, place: &Where, received_at: Time) -> (Time, Clock) {
    let told = text_at(report, &["subject", "died_at"]).and_then(Time::parse);
    let by = place.died_at.map(|t| (t, Clock::Sender)).or_else(|| told.map(|t| (t, Clock::Report)));
    match by {
        // A clock that runs ahead would keep this death on top of every list.
        Some((t, from)) if t.ms() <= received_at.ms().saturating_add(AHEAD_MS) => (t, from),
        _ => (received_at, Clock::Receipt),
    }
}

/// Xids that the sender saw, and those that speak for a cause that holds.
fn xids(report: &Value, place: &Where) -> Vec<Xid> {
    let causes = at(report, &["causes"]).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let holding = causes.iter().filter(|c| at(c, &["rejected"]).and_then(Value::as_bool) == Some(false));
    let cited = holding.filter_map(|c| at(c, &["for"])?.as_array()).flatten();
    let read = cited
        .filter(|p| matches!(text_at(p, &["proof"]), Some("xid.event" | "xid.further")))
        .filter_map(|p| xid(text_at(p, &["text"])?));
    let mut all: Vec<Xid> = place
        .xids
        .iter()
        .map(|x| Xid { code: x.code, gpu: x.gpu.as_deref().map(|g| name(g, NAME)) })
        .chain(read)
        .collect();
    // The line itself may only say that another Xid came first.
    let named = text_at(report, &["trigger", "signature"]).and_then(|s| s.strip_prefix("xid.")?.parse().ok());
    if let Some(code) = named.filter(|code| !all.iter().any(|x| x.code == *code)) {
        all.push(Xid { code, gpu: None });
    }
    all.sort();
    all.dedup();
    all.truncate(MANY);
    all
}

/// `Xid 79 on 0000:4a:00: GPU has fallen off the bus`, `Xid 31 GPU memory page fault`.
fn xid(sentence: &str) -> Option<Xid> {
    let rest = sentence.strip_prefix("Xid ")?;
    let (code, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let gpu = rest.strip_prefix("on ").and_then(|r| r.split_once(": ")).map(|(at, _)| name(at, NAME));
    Some(Xid { code: code.trim_end_matches(':').parse().ok()?, gpu })
}
