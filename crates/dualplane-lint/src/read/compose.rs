//! A compose file as an object, each service with what it gives its container.

use dualplane_base::json::text_of;
use serde_json::{Value, json};

use crate::finding::Source;
use crate::object::{COMPOSE, Object};

/// The file as an object; `None` where it is none. Services are made alike: words as lists, devices as a count.
pub(super) fn object(value: &Value, source: &Source) -> Option<Object> {
    let services = value.get("services")?.as_object()?;
    let like = |s: &Value| ["image", "build", "extends"].iter().any(|k| s.get(k).is_some());
    if services.is_empty() || !services.values().any(like) {
        return None;
    }
    let name = value.get("name").and_then(Value::as_str).unwrap_or("compose").to_owned();
    let mut object = Object::new(value.clone(), source.clone());
    if let Some(all) = object.value.get_mut("services").and_then(Value::as_object_mut) {
        for service in all.values_mut().filter(|s| s.is_object()) {
            let gpus = gpus(service);
            let words = [words(service.get("entrypoint")), words(service.get("command"))];
            let env = environment(service.get("environment"));
            if let Some(map) = service.as_object_mut() {
                map.insert("gpu_count".into(), gpus.into());
                map.insert("words".into(), words.concat().into());
                map.insert("env".into(), env);
            }
        }
    }
    object.kind = COMPOSE.to_owned();
    object.name = name;
    Some(object)
}

fn words(v: Option<&Value>) -> Vec<String> {
    match v {
        Some(Value::String(s)) => dualplane_engines::command_line::shell(s, &[]).concat(),
        Some(Value::Array(items)) => items.iter().map(text_of).collect(),
        _ => Vec::new(),
    }
}

fn environment(v: Option<&Value>) -> Value {
    let pair = |(k, v): (&str, String)| json!({"name": k, "value": v});
    match v {
        Some(Value::Object(map)) => map.iter().map(|(k, v)| pair((k, text_of(v)))).collect(),
        Some(Value::Array(items)) => items
            .iter()
            .filter_map(|i| i.as_str()?.split_once('='))
            .map(|(k, v)| pair((k, v.to_owned())))
            .collect(),
        _ => json!([]),
    }
}

/// GPUs of a service: -1 stands for all of the machine.
fn gpus(service: &Value) -> i64 {
    if service.get("gpus").and_then(Value::as_str) == Some("all")
        || service.get("runtime").and_then(Value::as_str) == Some("nvidia")
    {
        return -1;
    }
    let devices = service.pointer("/deploy/resources/reservations/devices").and_then(Value::as_array);
    let one = |d: &Value| {
        let gpu = d.get("capabilities").is_some_and(|c| c.to_string().contains("gpu"));
        gpu.then(|| match (d.get("count"), d.get("device_ids").and_then(Value::as_array)) {
            (Some(n), _) => n.as_i64().unwrap_or(-1),
            (None, Some(ids)) => i64::try_from(ids.len()).unwrap_or(-1),
            (None, None) => -1,
        })
    };
    devices.into_iter().flatten().find_map(one).unwrap_or(0)
}
