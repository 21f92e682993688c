//! What `apply` is given: a report with its actions' patches, a patch, or an object with only the fields to change.

use dualplane_base::schema::{Id, id};
use serde_json::Value;

use super::setting::{Change, Setting};

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Document {
    /// A report: the patches of its actions, in its order.
    Report(Vec<Offer>),
    /// A patch that names its object.
    Whole(Whole),
    /// A patch of an object that is named elsewhere.
    Patch(Value),
}

/// A patch of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Stage of its action: `fix`.
    pub stage: String,
    /// Title of its action.
    pub title: String,
    /// The patch; null where the evidence did not carry one.
    pub patch: Value,
    /// What it changes, for the patch to be computed anew.
    pub changes: Vec<Change>,
    /// Whose death it is about.
    pub subject: Subject,
}

/// Whose death a report is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject {
    /// Namespace.
    pub namespace: Option<String>,
    /// Pod.
    pub pod: Option<String>,
    /// Container.
    pub container: Option<String>,
}

/// A patch with the name of its object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whole {
    /// `apps/v1`.
    pub api_version: String,
    /// `Deployment`.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Namespace, where it says one.
    pub namespace: Option<String>,
    /// The rest.
    pub patch: Value,
}

/// Reads a file, JSON or YAML.
///
/// # Errors
/// What it is instead, in words.
pub fn read(bytes: &[u8]) -> Result<Document, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not text".to_owned())?;
    let mut documents = match serde_json::from_str::<Value>(text) {
        Ok(value) => vec![value],
        Err(_) => serde_saphyr::from_multiple_with_options::<Value>(text, yaml()).map_err(|e| {
            let first = e.to_string().lines().next().unwrap_or_default().to_owned();
            format!("it is neither JSON nor YAML ({first})")
        })?,
    };
    documents.retain(|d| !d.is_null());
    let value = documents.pop().ok_or("it is empty")?;
    if !documents.is_empty() {
        return Err(format!("it contains {} documents; pass them one at a time", documents.len() + 1));
    }
    let schema = value.get("schema").and_then(Value::as_str).unwrap_or_default();
    match id(schema) {
        Some(Id::Known(s)) if matches!(s.name, "verdict" | "verdicts") => {
            return Ok(Document::Report(offers(&value)));
        }
        Some(Id::Known(s)) if s.name == "tune" => return Ok(Document::Report(moves(&value))),
        // What a newer report means by a change is not known here: nothing is carried out.
        Some(other) => return Err(format!("{other} ({schema})")),
        None if !schema.is_empty() => {
            return Err(format!("it is {schema}, not a report of `dualplane triage -o json`"));
        }
        None => {}
    }
    match &value {
        Value::Object(_) => Ok(whole(value)),
        Value::Array(_) => Err("it is a list; use a merge patch, not a JSON patch".into()),
        _ => Err("it is neither a report nor a patch".into()),
    }
}

/// Only `true` and `false` are booleans: a namespace may be called `n`, and a variable may be `on`.
fn yaml() -> serde_saphyr::Options {
    serde_saphyr::options! { strict_booleans: true }
}

fn offers(report: &Value) -> Vec<Offer> {
    let one = std::slice::from_ref(report);
    let items = report.get("items").and_then(Value::as_array).map_or(one, Vec::as_slice);
    items.iter().flat_map(of_verdict).collect()
}

fn of_verdict(verdict: &Value) -> Vec<Offer> {
    let text = |pointer: &str| verdict.pointer(pointer).and_then(Value::as_str).map(ToOwned::to_owned);
    let subject = Subject {
        namespace: text("/subject/namespace"),
        pod: text("/subject/pod"),
        container: text("/subject/container"),
    };
    let actions = verdict.get("actions").and_then(Value::as_array).into_iter().flatten();
    let offer = |action: &Value| {
        let patch = action.get("patch").and_then(Value::as_str);
        let patch = patch.and_then(|p| serde_saphyr::from_str_with_options::<Value>(p, yaml()).ok());
        let patch = patch.filter(Value::is_object).unwrap_or_default();
        // Of a later version's changes none is made in part.
        let changes = action.get("changes").cloned().map(serde_json::from_value).and_then(Result::ok);
        let changes: Vec<Change> = changes.unwrap_or_default();
        if patch.is_null() && changes.is_empty() {
            return None;
        }
        let word = |key: &str| action.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        Some(Offer { stage: word("stage"), title: word("title"), patch, changes, subject: subject.clone() })
    };
    actions.filter_map(offer).collect()
}

/// The next move of `tune`, and further ones, as far as they are settings: what they name is where the caller says.
fn moves(log: &Value) -> Vec<Offer> {
    let further = log.get("others").and_then(Value::as_array).into_iter().flatten();
    let of = |p: &Value| {
        let text = |key: &str| p.get(key).and_then(Value::as_str).map(ToOwned::to_owned);
        let names = p.get("names").and_then(Value::as_array).into_iter().flatten();
        let names: Vec<String> = names.filter_map(|n| n.as_str().map(ToOwned::to_owned)).collect();
        let (engine, to, was) = (text("engine")?, text("to")?, text("from"));
        let name = names.first()?.clone();
        let from = was.as_ref().map_or(String::new(), |w| format!(" (from {w})"));
        // The command line that was measured shows the value, or that there is none.
        let setting = Setting { engine, names, value: Some(to.clone()), was, shown: true };
        Some(Offer {
            stage: "fix".to_owned(),
            title: format!("Set {name} {to}{from}"),
            patch: Value::Null,
            changes: vec![Change::Setting(setting)],
            subject: Subject::default(),
        })
    };
    let first = log.get("proposal").and_then(of);
    // One move is made at a time: a further one stands beside it as an alternative.
    let other = |p: &Value| of(p).map(|o| Offer { stage: "or".to_owned(), ..o });
    first.into_iter().chain(further.filter_map(other)).collect()
}

fn whole(mut value: Value) -> Document {
    let text = |pointer: &str| {
        value.pointer(pointer).and_then(Value::as_str).filter(|t| !t.is_empty()).map(ToOwned::to_owned)
    };
    let (version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
    let namespace = text("/metadata/namespace");
    if let Some(map) = value.as_object_mut() {
        map.remove("apiVersion");
        map.remove("kind");
        // What the server owns is no wish of anybody, and a manifest saved from a cluster is full of it.
        map.remove("status");
        if let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|k, _| k == "labels" || k == "annotations");
        }
        map.retain(|k, v| k != "metadata" || v.as_object().is_some_and(|m| !m.is_empty()));
    }
    match (version, kind, name) {
        (Some(api_version), Some(kind), Some(name)) => {
            Document::Whole(Whole { api_version, kind, name, namespace, patch: value })
        }
        _ => Document::Patch(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reports_offer_the_patches_of_their_actions() {
        let verdict = json!({"schema": "dualplane.verdict/v1", "subject": {"namespace": "ns", "pod": "p"}, "actions": [
            {"stage": "fix", "title": "Measure"},
            {"stage": "fix", "title": "Set", "patch": "spec:\n  replicas: 2\n"},
            {"stage": "fix", "title": "Shorten", "changes": [{"kind": "setting", "engine": "vllm", "names": ["--a"], "value": "1"}]},
            {"stage": "fix", "title": "Of a later version", "changes": [{"kind": "moon"}]},
            {"stage": "prevent", "title": "Odd", "patch": "just words"}]});
        let Document::Report(offers) = read(verdict.to_string().as_bytes()).unwrap() else { panic!() };
        assert_eq!(offers.len(), 2);
        assert_eq!((offers[1].patch.clone(), offers[1].changes[0].words().as_str()), (Value::Null, "--a 1"));
        assert_eq!((offers[0].title.as_str(), &offers[0].patch), ("Set", &json!({"spec": {"replicas": 2}})));
        assert_eq!(offers[0].subject.pod.as_deref(), Some("p"));
        let many = json!({"schema": "dualplane.verdicts/v1", "items": [verdict, verdict]});
        let Document::Report(offers) = read(many.to_string().as_bytes()).unwrap() else { panic!() };
        assert_eq!(offers.len(), 4);
    }

    #[test]
    fn the_next_move_of_a_search_is_a_patch() {
        let to = |to: &str| {
            json!({"lever": "in_flight_batching", "flag": "--max-num-seqs", "from": "2", "to": to,
            "engine": "vllm", "names": ["--max-num-seqs"]})
        };
        let words = json!({"lever": "precision", "flag": null, "from": null, "to": "fewer bits"});
        let log = json!({"schema": "dualplane.tune/v1", "proposal": to("32"), "others": [to("8"), words]});
        let Document::Report(offers) = read(log.to_string().as_bytes()).unwrap() else { panic!() };
        let told: Vec<_> = offers.iter().map(|o| (o.stage.as_str(), o.title.as_str())).collect();
        assert_eq!(
            told,
            [("fix", "Set --max-num-seqs 32 (from 2)"), ("or", "Set --max-num-seqs 8 (from 2)")]
        );
        let Change::Setting(s) = &offers[0].changes[0] else { panic!() };
        assert_eq!((s.value.as_deref(), s.was.as_deref(), s.shown), (Some("32"), Some("2"), true));
    }

    #[test]
    fn a_patch_may_name_its_object() {
        let text = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x, namespace: n, uid: u, labels: {a: b}}\nspec: {replicas: 1}\nstatus: {replicas: 3}\n";
        let Document::Whole(w) = read(text.as_bytes()).unwrap() else { panic!() };
        assert_eq!(
            (w.kind.as_str(), w.name.as_str(), w.namespace.as_deref()),
            ("Deployment", "x", Some("n"))
        );
        assert_eq!(w.patch, json!({"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 1}}));
        assert_eq!(read(b"{\"spec\": {}}").unwrap(), Document::Patch(json!({"spec": {}})));
    }

    #[test]
    fn what_is_neither_is_said() {
        for (bytes, says) in [
            (&b""[..], "empty"),
            (b"[{\"op\": \"test\"}]", "JSON patch"),
            (b"a: 1\n---\nb: 2\n", "2 documents"),
            (b"\"words\"", "neither"),
            (b"{\"schema\": \"dualplane.plan/v1\"}", "dualplane.plan/v1"),
            (b"a: [", "neither JSON nor YAML"),
            (b"\xff\xfe", "not text"),
        ] {
            let e = read(bytes).unwrap_err();
            assert!(e.contains(says), "{e}");
        }
    }
}
