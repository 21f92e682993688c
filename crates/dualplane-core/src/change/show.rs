//! A change as the lines of a diff: the changed fields, with the fields that they stand below.

use serde_json::{Map, Value};

use super::diff::clean;
use super::path::identities;
use crate::knowledge::Knowledge;
use crate::redact::{self, Redactor};
use crate::text::printable;

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Unchanged, for orientation.
    Context,
    /// Of the state before.
    Removed,
    /// Of the state after.
    Added,
}

impl Mark {
    /// The sign in front.
    #[must_use]
    pub fn sign(self) -> char {
        match self {
            Self::Context => ' ',
            Self::Removed => '-',
            Self::Added => '+',
        }
    }
}

/// Characters of one value; an argument with a whole template in it is cut.
const MAX_VALUE: usize = 300;

/// The lines of a diff, as YAML, secrets masked, safe for a terminal.
#[must_use]
pub fn diff_lines(before: &Value, after: &Value, knowledge: &Knowledge) -> Vec<(Mark, String)> {
    let mut show = Show { knowledge, lines: Vec::new() };
    let (before, after) = (clean(before), clean(after));
    if let (Value::Object(b), Value::Object(a)) = (&before, &after) {
        show.objects(0, b, a, &[]);
    }
    show.lines
}

struct Show<'k> {
    knowledge: &'k Knowledge,
    lines: Vec<(Mark, String)>,
}

impl Show<'_> {
    fn line(&mut self, mark: Mark, depth: usize, text: &str) {
        let text = format!("{}{}", "  ".repeat(depth), printable(text));
        self.lines.push((mark, text));
    }

    fn objects(
        &mut self,
        depth: usize,
        before: &Map<String, Value>,
        after: &Map<String, Value>,
        shown: &[&String],
    ) {
        let added = after.keys().filter(|k| !before.contains_key(*k));
        for key in before.keys().chain(added).filter(|k| !shown.contains(k)) {
            match (before.get(key), after.get(key)) {
                (Some(b), Some(a)) if a == b => {}
                (Some(Value::Object(b)), Some(Value::Object(a))) if !a.is_empty() && !b.is_empty() => {
                    self.line(Mark::Context, depth, &format!("{key}:"));
                    self.objects(depth + 1, b, a, &[]);
                }
                (Some(Value::Array(b)), Some(Value::Array(a))) if !a.is_empty() && !b.is_empty() => {
                    self.line(Mark::Context, depth, &format!("{key}:"));
                    self.lists(depth, key, b, a);
                }
                (Some(Value::String(b)), Some(Value::String(a))) if b.contains('\n') && a.contains('\n') => {
                    self.line(Mark::Context, depth, &format!("{key}: |"));
                    self.texts(depth + 1, b, a);
                }
                (b, a) => {
                    for (mark, value, of) in [(Mark::Removed, b, before), (Mark::Added, a, after)] {
                        if let Some(value) = value {
                            self.field(mark, depth, "", key, value, of);
                        }
                    }
                }
            }
        }
    }

    fn lists(&mut self, depth: usize, field: &str, before: &[Value], after: &[Value]) {
        let (Some(old), Some(new)) = (identities(field, before), identities(field, after)) else {
            return self.sequence(depth, before, after);
        };
        for (id, item) in old.iter().zip(before) {
            let now = new.iter().position(|n| n == id).and_then(|at| after.get(at));
            match (item, now) {
                (_, None) => self.item(Mark::Removed, depth, item),
                (Value::Object(b), Some(Value::Object(a))) if a != b => {
                    let keys: Vec<&String> = id.keys().collect();
                    for (i, key) in keys.iter().enumerate() {
                        let value = id.get(*key).unwrap_or(&Value::Null);
                        let dash = if i == 0 { "- " } else { "  " };
                        self.field(Mark::Context, depth, dash, key, value, b);
                    }
                    self.objects(depth + 1, b, a, &keys);
                }
                _ => {}
            }
        }
        for (_, item) in new.iter().zip(after).filter(|(id, _)| !old.contains(id)) {
            self.item(Mark::Added, depth, item);
        }
    }

    /// Lists such as arguments: what both begin and end with is context, the rest went and came.
    fn sequence(&mut self, depth: usize, before: &[Value], after: &[Value]) {
        let same = |(b, a): &(&Value, &Value)| b == a;
        let head = before.iter().zip(after).take_while(same).count();
        let most = before.len().min(after.len()) - head;
        let tail = before.iter().rev().zip(after.iter().rev()).take_while(same).count().min(most);
        let middle = |list: &[Value]| list.get(head..list.len() - tail).unwrap_or_default().to_vec();
        // One neighbour tells a flag from its value.
        if let Some(neighbour) = head.checked_sub(1).and_then(|i| before.get(i)) {
            self.item(Mark::Context, depth, neighbour);
        }
        let (went, came) = (middle(before), middle(after));
        if let ([Value::String(b)], [Value::String(a)]) = (went.as_slice(), came.as_slice())
            && b.contains('\n')
            && a.contains('\n')
        {
            self.line(Mark::Context, depth, "- |");
            return self.texts(depth + 1, b, a);
        }
        went.iter().for_each(|v| self.item(Mark::Removed, depth, v));
        came.iter().for_each(|v| self.item(Mark::Added, depth, v));
    }

    /// Texts of several lines: a script, or a file in a ConfigMap. A secret may go over several of them, so that they are
    /// masked as a whole.
    fn texts(&mut self, depth: usize, before: &str, after: &str) {
        let masked = |text: &str| Redactor::new(self.knowledge).text(text).into_owned();
        let (before, after) = (masked(before), masked(after));
        let (b, a): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
        let head = b.iter().zip(&a).take_while(|(b, a)| b == a).count();
        let most = b.len().min(a.len()) - head;
        let tail = b.iter().rev().zip(a.iter().rev()).take_while(|(b, a)| b == a).count().min(most);
        let neighbour = head.checked_sub(1).and_then(|i| b.get(i)).map(|l| (Mark::Context, *l));
        let part = |list: &[&'_ str], mark: Mark| -> Vec<(Mark, String)> {
            let middle = list.get(head..list.len() - tail).unwrap_or_default();
            middle.iter().map(|l| (mark, (*l).to_owned())).collect()
        };
        let mut lines: Vec<(Mark, String)> = neighbour.into_iter().map(|(m, l)| (m, l.to_owned())).collect();
        lines.extend(part(&b, Mark::Removed));
        lines.extend(part(&a, Mark::Added));
        for (mark, line) in lines {
            let mut cut: String = line.chars().take(MAX_VALUE).collect();
            if cut.len() < line.len() {
                cut.push('…');
            }
            self.line(mark, depth, &cut);
        }
    }

    fn item(&mut self, mark: Mark, depth: usize, value: &Value) {
        match value {
            Value::Object(map) if !map.is_empty() => {
                let first = map.keys().position(|k| k == "name").unwrap_or(0);
                let order = map
                    .iter()
                    .skip(first)
                    .take(1)
                    .chain(map.iter().take(first))
                    .chain(map.iter().skip(first + 1));
                for (i, (key, value)) in order.enumerate() {
                    self.field(mark, depth, if i == 0 { "- " } else { "  " }, key, value, map);
                }
            }
            value => {
                let text = self.scalar("", value);
                self.line(mark, depth, &format!("- {text}"));
            }
        }
    }

    fn field(
        &mut self,
        mark: Mark,
        depth: usize,
        dash: &str,
        key: &str,
        value: &Value,
        of: &Map<String, Value>,
    ) {
        let inner = depth + usize::from(!dash.is_empty());
        match value {
            Value::Object(map) if !map.is_empty() => {
                self.line(mark, depth, &format!("{dash}{key}:"));
                for (k, v) in map {
                    self.field(mark, inner + 1, "", k, v, map);
                }
            }
            Value::Array(items) if !items.is_empty() => {
                self.line(mark, depth, &format!("{dash}{key}:"));
                items.iter().for_each(|i| self.item(mark, inner, i));
            }
            value => {
                // Of a variable its name tells whether the value is a secret.
                let name = of.get("name").and_then(Value::as_str).filter(|_| key == "value").unwrap_or(key);
                let text = self.scalar(name, value);
                self.line(mark, depth, &format!("{dash}{key}: {text}"));
            }
        }
    }

    fn scalar(&self, name: &str, value: &Value) -> String {
        let Value::String(text) = value else { return value.to_string() };
        let whole = if name.is_empty() { text.clone() } else { format!("{name}={text}") };
        let masked = redact::line(&whole, self.knowledge);
        let masked = masked.strip_prefix(&format!("{name}=")).unwrap_or(&masked);
        let mut cut: String = masked.chars().take(MAX_VALUE).collect();
        if cut.len() < masked.len() {
            cut.push('…');
        }
        if is_plain(&cut) { cut } else { Value::String(cut).to_string() }
    }
}

/// Whether YAML reads the text as this string without quotes.
fn is_plain(text: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "-_./=+@%,:()[]…".contains(c) || c == ' ';
    let begins = text.starts_with(|c: char| c.is_alphanumeric() || c == '/') || text.starts_with("--");
    let number = text.parse::<f64>().is_ok();
    let word =
        ["true", "false", "null", "yes", "no", "on", "off"].contains(&text.to_ascii_lowercase().as_str());
    let colon = text.contains(": ") || text.ends_with(':');
    begins && text.chars().all(plain) && !text.ends_with(' ') && !number && !word && !colon
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(before: &Value, after: &Value) -> String {
        let knowledge = Knowledge::embedded().unwrap();
        let lines = diff_lines(before, after, &knowledge);
        lines.iter().map(|(m, l)| format!("{}{l}\n", m.sign())).collect()
    }

    #[test]
    fn a_diff_shows_what_changes_and_where() {
        let before = json!({"kind": "Deployment", "spec": {"replicas": 2, "containers": [{"name": "side"}, {"name": "server", "image": "i",
            "args": ["serve", "--max-num-seqs", "256", "--port", "8000"], "resources": {"limits": {"memory": "1Gi"}}}]}});
        let after = json!({"kind": "Deployment", "spec": {"replicas": 2, "containers": [{"name": "side"}, {"name": "server", "image": "i",
            "args": ["serve", "--max-num-seqs", "128", "--port", "8000"], "env": [{"name": "A", "value": "1"}],
            "resources": {"limits": {"memory": "2Gi"}}}]}});
        assert_eq!(
            shown(&before, &after),
            " spec:\n   containers:\n   - name: server\n     args:\n     - --max-num-seqs\n-    - \"256\"\n+    - \"128\"\n     resources:\n       limits:\n-        memory: 1Gi\n+        memory: 2Gi\n+    env:\n+    - name: A\n+      value: \"1\"\n"
        );
        assert_eq!(shown(&before, &before), "");
    }

    #[test]
    fn of_a_text_only_the_lines_that_change_are_shown() {
        let of = |v: &str| json!({"data": {"serve.yaml": format!("model: m\napi-key: sk-planted0planted1planted2\nmax-model-len: {v}\nseed: 1\n")}});
        let text = shown(&of("8192"), &of("4096"));
        assert!(text.ends_with("-    max-model-len: 8192\n+    max-model-len: 4096\n"), "{text}");
        assert!(!text.contains("planted0") && !text.contains("seed"), "{text}");
        let of = |v: &str| json!({"args": ["-c", format!("set -e\nserve -l {v}\n")]});
        assert_eq!(
            shown(&of("8"), &of("4")),
            " args:\n - \"-c\"\n - |\n   set -e\n-  serve -l 8\n+  serve -l 4\n"
        );
    }

    #[test]
    fn secrets_and_escapes_do_not_reach_a_terminal() {
        let env = |v: &str| json!({"env": [{"name": "HF_TOKEN", "value": v}, {"name": "X", "value": "a"}]});
        let text =
            shown(&env("hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345"), &env("hf_ZbCdEfGhIjKlMnOpQrStUvWxYz012345"));
        assert!(text.contains("-  value: ") && text.contains("+  value: "), "{text}");
        assert!(!text.contains("AbCdEf") && text.contains("[redacted:"), "{text}");
        let text = shown(&json!({"a": "x"}), &json!({"a": "\u{1b}[31m\u{202e}y"}));
        assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text}");
        let long = shown(&json!({"a": "x"}), &json!({"a": "y".repeat(1000)}));
        assert!(long.len() < 400, "{long}");
    }
}
