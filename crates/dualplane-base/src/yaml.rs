//! Values of JSON as YAML, for people who read their clusters that way.

use serde_json::Value;

/// How a text looks; what it means is the same.
struct Style {
    /// How much deeper than its key a list stands.
    list: usize,
    key: fn(&str) -> String,
    scalar: fn(&Value) -> String,
}

/// Strings are quoted as in JSON, which YAML reads the same.
const REPORT: Style = Style { list: 1, key: str::to_owned, scalar: Value::to_string };
/// As kubectl prints documents: lists as deep as their key, words without quotes.
const MANIFEST: Style = Style { list: 0, key: |key| scalar(&Value::from(key)), scalar };

/// A value as YAML, with controls and overrides of direction as `\uXXXX`.
#[must_use]
pub fn yaml(value: &Value) -> String {
    let mut out = String::new();
    block(value, 0, &REPORT, &mut out);
    crate::json::escape_controls(&out)
}

/// A value as YAML in the style of kubectl's documents.
#[must_use]
pub fn manifest(value: &Value) -> String {
    let mut out = String::new();
    block(value, 0, &MANIFEST, &mut out);
    out
}

fn block(value: &Value, depth: usize, style: &Style, out: &mut String) {
    let pad = "  ".repeat(depth);
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                out.push_str(&format!("{pad}{}:", (style.key)(key)));
                let deeper = match value {
                    Value::Object(inner) if !inner.is_empty() => 1,
                    Value::Array(items) if !items.is_empty() => style.list,
                    value => {
                        out.push_str(&format!(" {}\n", (style.scalar)(value)));
                        continue;
                    }
                };
                out.push('\n');
                block(value, depth + deeper, style, out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                let mut inner = String::new();
                block(item, depth + 1, style, &mut inner);
                // The first line of an item stands behind its dash.
                out.push_str(&format!("{pad}- {}", inner.trim_start()));
            }
        }
        value => out.push_str(&format!("{pad}{}\n", (style.scalar)(value))),
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
    use serde_json::json;

    use super::*;

    #[test]
    fn yaml_says_what_json_says() {
        let value =
            json!({"a": [{"b": "x: \"y\"\n", "c": []}, {"b": null}], "n": [1, 2.5], "o": {}, "s": "no"});
        let out = yaml(&value);
        let back: Value = serde_saphyr::from_str(&out).unwrap();
        assert_eq!(back, value, "{out}");
    }

    #[test]
    fn it_looks_like_kubectls_documents() {
        let value = json!({
            "spec": { "containers": [{ "name": "a", "env": [{ "name": "X", "value": "a:b" }], "count": 1 }], "volumes": [{ "emptyDir": {} }] }
        });
        let want = "spec:\n  containers:\n  - name: a\n    env:\n    - name: X\n      value: a:b\n    count: 1\n  volumes:\n  - emptyDir: {}\n";
        assert_eq!(manifest(&value), want);
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
            let text = manifest(&value);
            let back: Value = serde_saphyr::from_str(&text).unwrap();
            assert_eq!(back, value, "{text}");
        }
    }
}
