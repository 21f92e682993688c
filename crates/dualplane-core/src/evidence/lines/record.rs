//! Records of structured loggers, one JSON object a line: where the message stands in them, however deep.
//!
//! Runtimes, shippers and collectors each put a record into another: Docker's `log`, Fluent Bit's `log.message`, GCP's
//! `jsonPayload.message`, OTLP's `resourceLogs[].scopeLogs[].logRecords[].body.stringValue`. What a line says is the same.

use serde_json::{Map, Value};

/// Records within records; a line has a handful at most.
const DEEPEST: usize = 12;
/// Where the message stands, the surest first; a value may be a record itself.
const MESSAGE: &[&str] = &[
    "MESSAGE",
    "message",
    "msg",
    "@message",
    "log",
    "text",
    "textPayload",
    "body",
    "Body",
    "stringValue",
    "StringValue",
    "full_message",
    "short_message",
    "line",
    "event",
    "original",
    "_raw",
];
/// Objects that only hold the record.
const AROUND: &[&str] = &[
    "jsonPayload",
    "fields",
    "attr",
    "attributes",
    "data",
    "payload",
    "record",
    "Record",
    "result",
    "_source",
    "kvlistValue",
    "logRecord",
];
/// Objects that tell more of the message.
const DETAILS: &[&str] = &["attr", "attributes", "data", "details"];
/// Lists of records.
const LISTS: &[&str] = &["resourceLogs", "scopeLogs", "logRecords", "logEvents"];
/// Loggers keep a traceback or an error apart from the message.
const BESIDE: &[&str] = &[
    "exception",
    "exc_info",
    "error",
    "err",
    "stack",
    "traceback",
    "stacktrace",
    "stack_trace",
    "error.message",
    "error.stack_trace",
    "exc_text",
];

/// The message of a record with what stands beside it; `None` where the object has none.
pub(super) fn message(map: &Map<String, Value>) -> Option<String> {
    of_map(map, DEEPEST)
}

/// The record that a text is, if it is one.
pub(super) fn parse(text: &str) -> Option<Map<String, Value>> {
    let text = text.trim();
    if !(text.starts_with('{') && text.ends_with('}')) {
        return None;
    }
    match serde_json::from_str(text).ok()? {
        Value::Object(map) => Some(map),
        _ => None,
    }
}

fn of_map(map: &Map<String, Value>, depth: usize) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    let direct = MESSAGE.iter().find_map(|key| of_value(map.get(*key)?, depth));
    // A collector's key may be a path: "log.message", "body.stringValue".
    let path = || {
        let ends = |key: &str| key.rsplit_once('.').is_some_and(|(_, last)| MESSAGE.contains(&last));
        let mut paths = map.iter().filter(|(key, _)| ends(key) && !BESIDE.contains(&key.as_str()));
        paths.find_map(|(_, value)| of_value(value, depth))
    };
    let around = || AROUND.iter().find_map(|key| of_map(map.get(*key)?.as_object()?, depth));
    let listed = || LISTS.iter().find_map(|key| of_list(map.get(*key)?.as_array()?, depth));
    let valued = || of_pairs(map.get("values")?.as_array()?, depth);
    let mut text = direct.or_else(path).or_else(around).or_else(listed).or_else(valued)?;
    let mut beside = |value: &str| {
        if !text.contains(value) {
            text.push(' ');
            text.push_str(value);
        }
    };
    // A message with its details: MongoDB's `attr`, other loggers' `data`.
    for key in DETAILS {
        if let Some(details) = map.get(*key).and_then(Value::as_object).and_then(|m| of_map(m, depth)) {
            beside(&details);
        }
    }
    for value in BESIDE.iter().filter_map(|key| map.get(*key)) {
        match value {
            Value::String(s) => beside(s),
            Value::Object(error) => {
                let parts = ["type", "message", "stack_trace", "stack"]
                    .iter()
                    .filter_map(|k| error.get(*k)?.as_str());
                parts.for_each(&mut beside);
            }
            _ => {}
        }
    }
    Some(text)
}

fn of_value(value: &Value, depth: usize) -> Option<String> {
    match value {
        Value::String(s) => {
            let inner = parse(s).and_then(|map| of_map(&map, depth));
            Some(inner.unwrap_or_else(|| s.trim_end_matches(['\n', '\r']).to_owned()))
        }
        Value::Object(map) => of_map(map, depth),
        _ => None,
    }
}

/// Several records in one line are as many lines.
fn of_list(all: &[Value], depth: usize) -> Option<String> {
    let texts: Vec<String> = all.iter().filter_map(|v| of_map(v.as_object()?, depth)).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// OTLP's map: `[{"key": "message", "value": {"stringValue": "…"}}]`.
fn of_pairs(all: &[Value], depth: usize) -> Option<String> {
    let of = |key: &&str| {
        let pair = all.iter().find(|p| p.get("key").and_then(Value::as_str) == Some(key))?;
        of_value(pair.get("value")?, depth)
    };
    MESSAGE.iter().find_map(of)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::evidence::framing::unwrap_line;

    const SAID: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. \"a\\b\" {c}";

    /// One step of nesting: what a logger, a runtime or a collector makes of a message or a record.
    fn around(value: &Value) -> Vec<Value> {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let mut out: Vec<Value> = MESSAGE.iter().map(|k| json!({"level": "error", *k: value})).collect();
        // A string that holds the record.
        out.extend(["log", "message", "msg", "body"].map(|k| json!({k: text, "ts": 1})));
        out.extend(["log.message", "attr.msg", "body.stringValue"].map(|k| json!({k: value, "n": {"m": 1}})));
        out.push(json!({"body": {"stringValue": text}, "severityText": "ERROR"}));
        out.push(json!({"body": {"kvlistValue": {"values": [
            {"key": "code", "value": {"intValue": "7"}}, {"key": "message", "value": {"stringValue": text}}
        ]}}}));
        if value.is_object() {
            out.extend(
                AROUND.iter().filter(|k| **k != "kvlistValue").map(|k| json!({"time": "x", *k: value})),
            );
            out.push(json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [value]}]}]}));
            out.push(json!({"logEvents": [value]}));
        }
        out
    }

    #[test]
    fn a_nested_message_is_read_like_a_plain_one() {
        let mut level: Vec<Value> = vec![json!(SAID)];
        let mut read = 0;
        for _ in 0..3 {
            level = level.iter().flat_map(around).collect();
            for record in &level {
                let line = record.to_string();
                assert_eq!(unwrap_line(&line).text, SAID, "{line}");
                read += 1;
            }
            // The third step is taken from one of each kind only.
            level = level.into_iter().step_by(if read < 100 { 1 } else { 11 }).collect();
        }
        assert!(read > 3000, "{read}");
    }

    #[test]
    fn in_any_wrapping_of_a_runtime() {
        for record in around(&json!(SAID)).iter().flat_map(around) {
            let cri = format!("2026-07-03T22:40:06.123456789Z stdout F {record}");
            let u = unwrap_line(&cri);
            assert_eq!((u.text.as_ref(), u.stamp.is_some()), (SAID, true), "{cri}");
            let docker =
                json!({"log": format!("{record}\n"), "stream": "stderr", "time": "2026-07-03T22:40:06.1Z"});
            let line = docker.to_string();
            let u = unwrap_line(&line);
            assert_eq!((u.text.as_ref(), u.stderr, u.partial), (SAID, true, false), "{line}");
        }
    }

    #[test]
    fn errors_beside_the_message_are_read_with_it() {
        for (line, text) in [
            (
                r#"{"message":"failed","error":{"type":"E","message":"boom","stack_trace":"at f"}}"#,
                "failed E boom at f",
            ),
            (r#"{"fields":{"message":"failed","error":"boom"},"level":"ERROR"}"#, "failed boom"),
            (
                r#"{"log":{"level":"error","logger":"x"},"message":"failed","error.message":"boom"}"#,
                "failed boom",
            ),
            (r#"{"logEvents":[{"message":"one"},{"message":"two"}]}"#, "one\ntwo"),
        ] {
            assert_eq!(unwrap_line(line).text, text);
        }
    }

    #[test]
    fn what_has_no_message_stays_as_it_is() {
        let deep = format!("{}1{}", "{\"message\":".repeat(60), "}".repeat(60));
        for line in [
            r#"{"a":1}"#,
            r#"{"log":{"level":"info"}}"#,
            r#"{"error":"boom"}"#,
            r#"{"message":7}"#,
            &deep,
            "{x}",
        ] {
            assert_eq!(unwrap_line(line).text, line);
        }
    }
}
