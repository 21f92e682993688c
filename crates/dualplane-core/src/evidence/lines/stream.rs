//! Kubernetes objects as JSON in a text that is not one JSON value: several one after another, one on each line, with
//! `---` between, below a comment, a warning of kubectl or a prompt, or with the end cut off.

use serde_json::Value;

/// Objects that do not parse; each may cost one pass over the rest of the text.
const MAX_BROKEN: usize = 8;
/// What stands first in an object as kubectl and its like write it.
const FIRST_KEYS: &[&str] = &["apiVersion", "kind", "metadata", "items", "spec"];

/// What a text holds.
#[derive(Debug, Default)]
pub(in crate::evidence) struct Found {
    /// Objects, in order.
    pub(in crate::evidence) objects: Vec<Value>,
    /// The lines they take, from 0: first, and one behind the last.
    pub(in crate::evidence) lines: Vec<(usize, usize)>,
    /// Line and reason of the first one that does not parse.
    pub(in crate::evidence) broken: Option<(usize, String)>,
}

/// Looks through a text. Takes one pass, and at most one more for each of the few objects that may be broken.
pub(in crate::evidence) fn read(text: &str) -> Found {
    let mut found = Found::default();
    if !text.contains("\"kind\"") {
        return found;
    }
    let (mut at, mut line, mut failed) = (0, 0, 0);
    while let Some(rest) = text.get(at..).filter(|r| !r.is_empty()) {
        let body = rest.trim_start_matches([' ', '\t', ',', '[']);
        if opens(body) && failed < MAX_BROKEN {
            let start = at + (rest.len() - body.len());
            let mut values = serde_json::Deserializer::from_str(body).into_iter::<Value>();
            match values.next() {
                Some(Ok(value)) => {
                    let end = start + values.byte_offset();
                    let to = line + ends(text, start, end);
                    if is_object(&value) {
                        found.objects.push(value);
                        found.lines.push((line, to + 1));
                    }
                    (at, line) = (end, to);
                    continue;
                }
                Some(Err(error)) => {
                    failed += 1;
                    found.broken.get_or_insert_with(|| (line + error.line(), error.to_string()));
                }
                None => {}
            }
        }
        at += rest.find('\n').map_or(rest.len(), |i| i + 1);
        line += 1;
    }
    found
}

/// An object of its own; references to an owner have a kind too, but no metadata.
fn is_object(value: &Value) -> bool {
    value.get("items").is_some_and(Value::is_array)
        || value.get("kind").is_some_and(Value::is_string) && value.get("metadata").is_some()
}

fn opens(body: &str) -> bool {
    let Some(key) = body.strip_prefix('{').and_then(|b| b.trim_start().strip_prefix('"')) else {
        return false;
    };
    FIRST_KEYS.iter().any(|k| key.strip_prefix(k).is_some_and(|r| r.starts_with('"')))
}

/// Line ends in a range.
fn ends(text: &str, from: usize, to: usize) -> usize {
    text.get(from..to).map_or(0, |t| t.bytes().filter(|b| *b == b'\n').count())
}

/// The text shows a pod, as JSON or YAML.
pub(in crate::evidence) fn shows_a_pod(text: &str) -> bool {
    // Most logs hold no such word: one search, and no walk over their lines.
    text.contains("kind")
        && text.lines().any(|line| {
            let bare = line.trim_start();
            line.trim_end() == "kind: Pod"
                || bare.starts_with("\"kind\": \"Pod\"")
                || bare.starts_with("\"kind\":\"Pod\"")
                || opens(bare) && (bare.contains("\"kind\": \"Pod\"") || bare.contains("\"kind\":\"Pod\""))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: &str = "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"}}";

    #[test]
    fn objects_and_their_lines() {
        let indented = "{\n \"kind\": \"Pod\",\n \"metadata\": {}\n}";
        for (text, lines) in [
            (format!("{POD}\n{POD}\n"), vec![(0, 1), (1, 2)]),
            (format!("{POD}{POD}"), vec![(0, 1), (0, 1)]),
            (format!("# note\nWarning: x\n{indented}\n---\n{POD}\n"), vec![(2, 6), (7, 8)]),
            (format!("{indented}\n{indented}"), vec![(0, 4), (4, 8)]),
            (format!("[{POD},\n {POD}]"), vec![(0, 1), (1, 2)]),
            ("{\"message\": \"x\", \"kind\": \"Pod\"}\n".into(), vec![]),
            ("{\"kind\": \"ReplicaSet\", \"name\": \"owner\"}\n".into(), vec![]),
        ] {
            let found = read(&text);
            assert_eq!(found.lines, lines, "{text}");
            assert_eq!(found.objects.len(), lines.len());
            assert!(found.broken.is_none());
        }
    }

    #[test]
    fn broken_ones_are_told_and_bounded() {
        let found = read(&format!("{POD}\n{}", POD.get(..30).unwrap()));
        assert_eq!((found.objects.len(), found.broken.map(|b| b.0)), (1, Some(2)));
        // Each of them would be parsed to the end of the text.
        let hostile = "{\"kind\": [\n".repeat(200_000);
        let found = read(&hostile);
        assert!(found.objects.is_empty() && found.broken.is_some());
        let deep = format!("{{\"kind\":{}", "[".repeat(1_000_000));
        assert!(read(&deep).objects.is_empty());
    }
}
