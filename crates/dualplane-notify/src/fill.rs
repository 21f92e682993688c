//! A template is JSON: placeholders are filled in its texts, after it was parsed. Whatever a value holds, the form stays.
//!
//! `{name}` in a text is the value. A key that ends with `?` is left out, and so is an element of a list whose first key does,
//! where all placeholders below it are empty.

use serde_json::{Map, Value};

/// Placeholders of a text with what fills them.
pub(crate) trait Fills {
    /// The value of a placeholder; `None` where there is no such.
    fn fill(&self, name: &str) -> Option<String>;
}

/// A template with its placeholders filled, or the name of one that is unknown.
pub(crate) fn fill(template: &Value, by: &dyn Fills) -> Result<Value, String> {
    Ok(match template {
        Value::String(s) => Value::String(text(s, by)?.0),
        Value::Array(all) => {
            let mut out = Vec::new();
            for element in all {
                let optional = element.as_object().is_some_and(|o| o.keys().any(|k| k.ends_with('?')));
                if !(optional && is_empty(element, by)?) {
                    out.push(fill(element, by)?);
                }
            }
            Value::Array(out)
        }
        Value::Object(all) => {
            let mut out = Map::new();
            for (key, value) in all {
                match key.strip_suffix('?') {
                    Some(_) if is_empty(value, by)? => {}
                    bare => drop(out.insert(bare.unwrap_or(key).to_owned(), fill(value, by)?)),
                }
            }
            Value::Object(out)
        }
        other => other.clone(),
    })
}

/// Every placeholder below is empty, and there is one.
fn is_empty(value: &Value, by: &dyn Fills) -> Result<bool, String> {
    let (mut any, mut full) = (false, false);
    let mut rest = vec![value];
    while let Some(v) = rest.pop() {
        match v {
            Value::String(s) => {
                let (_, found, filled) = text(s, by)?;
                any |= found;
                full |= filled;
            }
            Value::Array(a) => rest.extend(a),
            Value::Object(o) => rest.extend(o.values()),
            _ => {}
        }
    }
    Ok(any && !full)
}

/// The text, whether it holds a placeholder, and whether one of them is not empty.
fn text(template: &str, by: &dyn Fills) -> Result<(String, bool, bool), String> {
    let mut out = String::new();
    let (mut any, mut full) = (false, false);
    let mut rest = template;
    while let Some((before, behind)) = rest.split_once('{') {
        let Some((name, after)) = behind.split_once('}') else { break };
        let value = by.fill(name).ok_or_else(|| name.to_owned())?;
        any = true;
        full |= !value.is_empty();
        out.push_str(before);
        out.push_str(&value);
        rest = after;
    }
    out.push_str(rest);
    Ok((out, any, full))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    struct Two;
    impl Fills for Two {
        fn fill(&self, name: &str) -> Option<String> {
            match name {
                "a" => Some("{b}\",\"x\":\"".to_owned()),
                "none" => Some(String::new()),
                _ => None,
            }
        }
    }

    #[test]
    fn a_value_fills_a_text_and_never_the_form() {
        let filled =
            fill(&json!({"t": "see {a}", "u?": "in {none}", "l": [{"v?": "{none}", "w": 1}, "x"]}), &Two);
        assert_eq!(filled, Ok(json!({"t": "see {b}\",\"x\":\"", "l": ["x"]})));
        assert_eq!(fill(&json!("{c}"), &Two), Err("c".to_owned()));
        assert_eq!(fill(&json!("{"), &Two), Ok(json!("{")));
    }
}
