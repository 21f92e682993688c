//! OpenTelemetry's spans of generative AI as JSON (OTLP): a span of a model's answer is a request.

use serde_json::Value;

use crate::keys::key;
use crate::tally::Seen;

/// The requests of a document; none where it has no spans.
pub(crate) fn requests(document: &Value) -> Option<Vec<Seen>> {
    let resources = list(document, ["resourceSpans", "resource_spans"])?;
    let mut out = Vec::new();
    for resource in resources {
        let of_all = attributes(resource.get("resource"));
        let scopes = list(resource, ["scopeSpans", "scope_spans"])
            .or_else(|| list(resource, ["instrumentationLibrarySpans"; 2]));
        let spans = scopes.into_iter().flatten().filter_map(|s| list(s, ["spans"; 2])).flatten();
        for span in spans {
            let mut seen = attributes(Some(span));
            seen.tenant = seen.tenant.or(of_all.tenant);
            let nanos = |names: [&str; 2]| {
                let value = names.iter().find_map(|n| span.get(*n))?;
                value.as_f64().or_else(|| value.as_str()?.parse().ok()).map(|n| n / 1e9)
            };
            let from = nanos(["startTimeUnixNano", "start_time_unix_nano"]);
            let to = nanos(["endTimeUnixNano", "end_time_unix_nano"]);
            if !seen.has_length() {
                continue;
            }
            seen.at = from.or(seen.at);
            seen.seconds = from.zip(to).map(|(a, b)| b - a).filter(|s| *s >= 0.0).or(seen.seconds);
            // STATUS_CODE_ERROR.
            let code = span.pointer("/status/code");
            seen.failed |= code.is_some_and(|c| c == 2 || c == "STATUS_CODE_ERROR");
            out.push(seen);
        }
    }
    Some(out)
}

fn list<'v>(of: &'v Value, names: [&str; 2]) -> Option<&'v Vec<Value>> {
    names.iter().find_map(|n| of.get(*n))?.as_array()
}

fn attributes(of: Option<&Value>) -> Seen {
    let mut seen = Seen::default();
    let all = of.and_then(|o| o.get("attributes")).and_then(Value::as_array);
    for a in all.into_iter().flatten() {
        let (Some(name), Some(value)) = (a.get("key").and_then(Value::as_str), a.get("value")) else {
            continue;
        };
        let Some(found) = key(name.as_bytes()) else { continue };
        let one = ["intValue", "int_value", "doubleValue", "double_value", "stringValue", "string_value"]
            .iter()
            .find_map(|n| value.get(*n));
        match one {
            Some(Value::String(text)) => seen.take(found, text),
            Some(Value::Number(n)) => seen.take(found, &n.to_string()),
            _ => {}
        }
    }
    seen
}
