//! What a webhook is sent has a schema, made from the code: `docs/notification.schema.json`.

use std::path::{Path, PathBuf};

use dualplane_incidents::Incident;
use dualplane_notify::{Channel, Notice};
use dualplane_server::api;
use serde_json::{Map, Value, json};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A part of the API's document as a part of a schema: closed, its references point beside it.
fn part(value: &Value) -> Value {
    match value {
        Value::Object(all) => {
            let mut out: Map<String, Value> = all.iter().map(|(k, v)| (k.clone(), part(v))).collect();
            if out.contains_key("properties") {
                out.insert("additionalProperties".to_owned(), Value::Bool(false));
            }
            Value::Object(out)
        }
        Value::Array(all) => all.iter().map(part).collect(),
        Value::String(s) => Value::from(s.replace("#/components/schemas/", "#/$defs/")),
        other => other.clone(),
    }
}

/// Those that are reached from here, under their names.
fn reached(from: &Value, all: &Value, out: &mut Map<String, Value>) {
    match from {
        Value::Object(o) => o.values().for_each(|v| reached(v, all, out)),
        Value::Array(a) => a.iter().for_each(|v| reached(v, all, out)),
        Value::String(s) => {
            if let Some(name) = s.strip_prefix("#/$defs/").filter(|n| !out.contains_key(*n)) {
                let found = part(&all[name]);
                out.insert(name.to_owned(), Value::Null);
                reached(&found, all, out);
                out.insert(name.to_owned(), found);
            }
        }
        _ => {}
    }
}

fn schema() -> Value {
    let document: Value = serde_json::from_str(&api::document()).unwrap();
    let incident = json!({"$ref": "#/$defs/Incident"});
    let mut parts = Map::new();
    reached(&incident, &document["components"]["schemas"], &mut parts);
    parts["Incident"]["properties"]["schema"] = json!({"const": "dualplane.fleet-incident/v1"});
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "dualplane.notification/v1",
        "title": "What dualplane-server sends to a channel of kind webhook",
        "description": "One death, or the latest of a loop",
        "type": "object",
        "additionalProperties": false,
        "required": ["schema", "headline", "link", "incident"],
        "properties": {
            "schema": {"const": "dualplane.notification/v1"},
            "headline": {"type": "string", "description": "Which memory, of whom"},
            "link": {"type": "string", "format": "uri", "description": "Its page"},
            "again": {"type": "string", "description": "How often this cause has killed, and how many of these were not told one by one; absent at the first death"},
            "incident": incident,
        },
        "$defs": parts,
    })
}

fn validator() -> jsonschema::Validator {
    let text = std::fs::read_to_string(root().join("docs/notification.schema.json")).unwrap();
    jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap()
}

/// Holds a message to the published schema.
pub(crate) fn follows(message: &Value) {
    let validator = validator();
    let errors: Vec<String> =
        validator.iter_errors(message).map(|e| format!("{e} at {}", e.instance_path)).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

#[test]
fn the_schema_of_a_message_is_that_of_the_code() {
    let made = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    expectorate::assert_contents(root().join("docs/notification.schema.json"), &made);
    let text = std::fs::read_to_string(root().join("knowledge/notify/examples/webhook.json")).unwrap();
    let example: Value = serde_json::from_str(&text).unwrap();
    follows(&example);
    // It can fail: at every object, by a field too many and by one too few.
    let bad = validator();
    for at in ["", "/incident", "/incident/trigger"] {
        let mut more = example.clone();
        more.pointer_mut(at).unwrap()["unheard_of"] = json!(1);
        assert!(!bad.is_valid(&more), "{at}");
    }
    for key in ["schema", "headline", "link", "incident"] {
        let mut less = example.clone();
        less.as_object_mut().unwrap().remove(key);
        assert!(!bad.is_valid(&less), "{key}");
    }
}

/// Whatever death it is, with as much and as little as a sender may tell.
#[test]
fn the_message_of_any_death_follows_its_schema() {
    let (mut seen, mut with_cards) = (0, 0);
    for (n, class) in ["cuda_oom_runtime", "host_oom_killed", "xid_hardware", "not_memory"].iter().enumerate()
    {
        for full in [false, true] {
            let report = crate::deaths::report(class, "a death");
            let place = match full {
                true => {
                    json!({"cluster": "k", "namespace": "serving", "pod": "p", "gpus": [{"uuid": "GPU-1", "name": "H100", "driver": "570", "ecc_uncorrected": 3}], "xids": [{"code": 79, "gpu": "GPU-1"}]})
                }
                false => json!({}),
            };
            let place = serde_json::from_value(place).unwrap();
            let made: Incident = dualplane_incidents::of_report(
                &format!("n{n}"),
                &report,
                &place,
                dualplane_server::app::now(),
            )
            .unwrap();
            with_cards += made.gpus.len();
            let notice = Notice { folded: u64::from(full), ..Notice::of(&made, "https://fleet.example") };
            let body = Channel::Webhook.message(&notice).unwrap();
            follows(&serde_json::from_str(&body.text).unwrap());
            seen += 1;
        }
    }
    assert_eq!((seen, with_cards), (8, 4));
}
