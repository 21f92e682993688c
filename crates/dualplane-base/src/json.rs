//! JSON as every report prints it, and values of it by pointers.

use serde::Serialize;
use serde_json::Value;

/// A structure as every report prints it: indented, with a line end and without controls.
///
/// # Errors
/// When a value cannot be written as JSON: a map whose keys are no strings.
pub fn pretty(value: &impl Serialize) -> Result<String, serde_json::Error> {
    Ok(escape_controls(&serde_json::to_string_pretty(value)?) + "\n")
}

/// serde_json escapes controls below U+0020 only. C1 controls and bidirectional overrides stand only inside strings, so
/// they can be written as `\uXXXX`: the value stays exact, and a terminal that shows the JSON stays unharmed.
#[must_use]
pub fn escape_controls(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if c != '\n' && crate::text::is_unsafe(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// The value at a pointer. [`Value::pointer`] copies each step to unescape it, and no pointer of ours has anything escaped.
#[must_use]
pub fn at<'a>(v: &'a Value, pointer: &str) -> Option<&'a Value> {
    let Some(steps) = pointer.strip_prefix('/').filter(|p| !p.contains('~')) else {
        return v.pointer(pointer);
    };
    steps.split('/').try_fold(v, |v, step| match v {
        Value::Object(map) => map.get(step),
        Value::Array(items) => {
            // As JSON pointers have it: no sign, no zero before other digits.
            let plain = step == "0" || !step.starts_with(['0', '+']);
            step.parse().ok().filter(|_| plain).and_then(|i: usize| items.get(i))
        }
        _ => None,
    })
}

/// The text at a pointer; empty where there is none.
#[must_use]
pub fn str_at<'a>(v: &'a Value, pointer: &str) -> &'a str {
    at(v, pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The list at a pointer; empty where there is none.
#[must_use]
pub fn list<'a>(v: &'a Value, pointer: &str) -> &'a [Value] {
    at(v, pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Quantities are strings in JSON, but YAML turns `1` into a number.
#[must_use]
pub fn text_of(v: &Value) -> String {
    v.as_str().map_or_else(|| v.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    #[test]
    fn values_are_found_as_by_serde() {
        let v = serde_json::json!({"a": [{"b/c": 1, "": 2, "0": 3}, [4]], "": {"": 5}, "x~y": 6, "n": null});
        for pointer in [
            "",
            "/",
            "//",
            "/a",
            "/a/0",
            "/a/00",
            "/a/+0",
            "/a/01",
            "/a/-",
            "/a/1/0",
            "/a/2",
            "/a/0/b~1c",
            "/a/0/",
            "/a/0/0",
            "/x~0y",
            "/x~y",
            "/n",
            "/n/0",
            "a",
            "a/0",
            "/a/0/b/c",
            "/a/1x",
            "/a/99999999999999999999",
        ] {
            assert_eq!(super::at(&v, pointer), v.pointer(pointer), "{pointer:?}");
        }
    }

    use super::escape_controls;

    #[test]
    fn controls_are_escaped_and_values_stay_exact() {
        let value = "a\u{9b}31m\u{202e}\u{7f} ä 漢";
        let json = serde_json::to_string(value).unwrap();
        let safe = escape_controls(&json);
        assert!(!safe.chars().any(char::is_control) && !safe.contains('\u{202e}'), "{safe:?}");
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), value);
    }
}
