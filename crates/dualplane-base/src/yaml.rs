//! Values of JSON as YAML, for people who read their clusters that way.

/// A value as YAML, with controls and overrides of direction as `\uXXXX`.
#[must_use]
pub fn yaml(value: &serde_json::Value) -> String {
    let mut out = String::new();
    write(value, 0, &mut out);
    crate::json::escape_controls(&out)
}

/// Block style; strings are quoted as in JSON, which YAML reads the same.
fn write(value: &serde_json::Value, depth: usize, out: &mut String) {
    use serde_json::Value;
    let pad = "  ".repeat(depth);
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, v) in map {
                out.push_str(&format!("{pad}{key}:"));
                child(v, depth, out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for v in items {
                let mut inner = String::new();
                write(v, depth + 1, &mut inner);
                // The first line of an item stands behind its dash.
                out.push_str(&format!("{pad}- {}", inner.trim_start()));
                if !inner.ends_with('\n') {
                    out.push('\n');
                }
            }
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

fn child(v: &serde_json::Value, depth: usize, out: &mut String) {
    let nested = v.as_object().is_some_and(|m| !m.is_empty()) || v.as_array().is_some_and(|l| !l.is_empty());
    if nested {
        out.push('\n');
        write(v, depth + 1, out);
    } else {
        out.push_str(&format!(" {v}\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_says_what_json_says() {
        let value = serde_json::json!({"a": [{"b": "x: \"y\"\n", "c": []}, {"b": null}], "n": [1, 2.5], "o": {}, "s": "no"});
        let mut out = String::new();
        write(&value, 0, &mut out);
        let back: serde_json::Value = serde_saphyr::from_str(&out).unwrap();
        assert_eq!(back, value, "{out}");
    }
}
