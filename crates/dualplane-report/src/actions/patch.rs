//! Patches as values, written as YAML only at the end: whatever a name or a value holds, the patch stays what was meant.

use serde_json::{Map, Value, json};

use super::{Context, names};
use dualplane_base::units::Bytes;
use dualplane_core::evidence::ContainerKind;

/// A strategic merge patch of the dead container with these fields. An init container is in a list of its own: in the
/// other one its name would be a new container.
pub(super) fn container_patch(cx: &Context<'_>, fields: Value) -> Value {
    pod_patch(cx, fields, Value::Null)
}

/// The same, with fields of the pod beside the container's.
pub(super) fn pod_patch(cx: &Context<'_>, fields: Value, of_pod: Value) -> Value {
    let list = if cx.verdict.subject.container_kind == ContainerKind::Init {
        "initContainers"
    } else {
        "containers"
    };
    let mut container = Map::new();
    container.insert("name".into(), names(cx).container.into());
    extend(&mut container, fields);
    let mut pod = Map::new();
    pod.insert(list.into(), json!([container]));
    extend(&mut pod, of_pod);
    json!({ "spec": { "template": { "spec": pod } } })
}

fn extend(map: &mut Map<String, Value>, fields: Value) {
    if let Value::Object(fields) = fields {
        map.extend(fields);
    }
}

/// An amount as a manifest has it: `445Gi`, or bytes as a number.
pub(super) fn quantity(bytes: Bytes) -> Value {
    let text = bytes.k8s();
    text.parse::<u64>().map_or_else(|_| text.into(), Value::from)
}

/// A value as YAML in the style of kubectl's documents: blocks, lists as deep as their key, words without quotes.
pub(super) fn yaml(value: &Value) -> String {
    let mut out = String::new();
    block(value, 0, &mut out);
    out
}

fn block(value: &Value, depth: usize, out: &mut String) {
    let pad = "  ".repeat(depth);
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                out.push_str(&format!("{pad}{}:", scalar(&Value::from(key.as_str()))));
                match value {
                    Value::Object(inner) if !inner.is_empty() => {
                        out.push('\n');
                        block(value, depth + 1, out);
                    }
                    Value::Array(items) if !items.is_empty() => {
                        out.push('\n');
                        block(value, depth, out);
                    }
                    _ => out.push_str(&format!(" {}\n", scalar(value))),
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                let mut inner = String::new();
                block(item, depth + 1, &mut inner);
                out.push_str(&format!("{pad}- {}", inner.trim_start()));
            }
        }
        value => out.push_str(&format!("{pad}{}\n", scalar(value))),
    }
}

/// A string stands bare where no reader of YAML 1.1 or 1.2 takes it for something else; all else is written as JSON,
/// which is YAML.
fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) if is_bare(text) => text.clone(),
        value => value.to_string(),
    }
}

fn is_bare(text: &str) -> bool {
    const WORDS: &[&str] = &["null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':' | '=' | '+');
    text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/')
        && text.chars().all(plain)
        && !text.ends_with(':')
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
        // Numbers (1e3, 0x10, 1_000, 12:30) and dates; amounts (445Gi) are none.
        && text.parse::<f64>().is_err()
        && !text.starts_with("0x")
        && !text.starts_with("0o")
        && !text.chars().all(|c| c.is_ascii_digit() || matches!(c, '_' | ':' | '-' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_looks_like_kubectls_documents() {
        let value = json!({
            "spec": { "containers": [{ "name": "a", "env": [{ "name": "X", "value": "a:b" }], "count": 1 }], "volumes": [{ "emptyDir": {} }] }
        });
        let want = "spec:\n  containers:\n  - name: a\n    env:\n    - name: X\n      value: a:b\n    count: 1\n  volumes:\n  - emptyDir: {}\n";
        assert_eq!(yaml(&value), want);
    }

    #[test]
    fn odd_values_stay_what_they_are() {
        for odd in [
            "on",
            "No",
            "123",
            "1e3",
            "0x1f",
            "1_000",
            "12:30",
            "2026-11-22",
            "~",
            "",
            " a",
            "a ",
            "a: b",
            "a:",
            "#x",
            "a #b",
            "- a",
            "*a",
            "&a",
            "!a",
            "{a}",
            "[a]",
            "\"q\"",
            "it's",
            "a\nb: c",
            "ä",
            "%x",
            "@x",
            "`x`",
            "null",
            "445Gi",
            "-v",
            "nan",
            ".5",
            "+1",
            "=",
        ] {
            let value = json!({ "a": [{ odd: odd }, { "b": odd }], "c": { "d": [odd] } });
            let text = yaml(&value);
            let back: Value = serde_saphyr::from_str(&text).unwrap();
            assert_eq!(back, value, "{text}");
        }
    }
}
