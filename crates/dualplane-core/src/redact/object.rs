//! Masks JSON in place: Kubernetes objects, answers of Prometheus and Loki, request bodies, and JSON inside of strings.

use serde_json::{Map, Value};

use super::Redactor;
use super::args::is_command;
use super::name::{is_harmless, judge};
use super::spans::USER;

/// Objects of Kubernetes nest some 20 levels; what lies deeper than this is replaced, not kept.
const MAX_DEPTH: usize = 64;
/// What stands for it.
const TOO_DEEP: &str = "[redacted:too_deep]";

impl Redactor<'_> {
    /// Masks a value and all below it.
    pub(super) fn walk(&mut self, value: &mut Value) {
        if self.depth >= MAX_DEPTH {
            if matches!(value, Value::Array(_) | Value::Object(_)) {
                drop_flat(std::mem::replace(value, Value::String(TOO_DEEP.to_owned())));
                self.note("too_deep");
            } else if let Value::String(s) = value {
                self.plain(s);
            }
            return;
        }
        self.depth += 1;
        match value {
            Value::String(s) => self.string(s),
            Value::Array(a) => {
                let log = self.log_entries(a);
                a.iter_mut().filter(|_| !log).for_each(|v| self.walk(v));
            }
            Value::Object(o) => self.object(o),
            _ => {}
        }
        self.depth -= 1;
    }

    /// A string, which may hold JSON itself (`last-applied-configuration`) or a text of many lines.
    pub(super) fn string(&mut self, s: &mut String) {
        let json = s.trim_start().starts_with(['{', '[']) && s.trim_end().ends_with(['}', ']']);
        if json
            && self.depth < MAX_DEPTH
            && let Ok(mut inner @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str::<Value>(s)
        {
            let before = self.edits;
            self.walk(&mut inner);
            if self.edits != before {
                let end = if s.ends_with('\n') { "\n" } else { "" };
                let pretty = s.trim().contains('\n');
                let text = if pretty { serde_json::to_string_pretty(&inner) } else { Ok(inner.to_string()) };
                *s = text.unwrap_or_default() + end;
            }
            return;
        }
        self.plain(s);
    }

    fn plain(&mut self, s: &mut String) {
        // At the bound only the outer walk is left: a text of many levels of quoted JSON is masked as running text.
        let masked = self.text(s).into_owned();
        if masked != *s {
            *s = masked;
        }
    }

    /// Replaces a string.
    pub(super) fn mask(&mut self, s: &mut String, id: &str) {
        let mask = format!("[redacted:{id}]");
        if *s != mask {
            *s = mask;
            self.note(id);
        }
    }

    fn object(&mut self, o: &mut Map<String, Value>) {
        // Who set which field: no evidence, and half of an object's size.
        if o.get("managedFields").is_some_and(Value::is_array) {
            o.shift_remove("managedFields");
            self.edits += 1;
        }
        let kind = o.get("kind").and_then(Value::as_str).unwrap_or_default();
        let (secret, config) = (kind == "Secret", kind == "ConfigMap");
        self.items(o);
        self.pair(o);
        if o.keys().any(|k| self.knowledge.gate().is_none_or(|g| g.any(k))) {
            self.keys(o);
        }
        let knowledge = self.knowledge;
        let fields = &knowledge.names().fields;
        for (key, value) in o.iter_mut() {
            let key = key.as_str();
            match value {
                _ if secret && matches!(key, "data" | "stringData") => self.all(value, "secret_object"),
                _ if config && key == "binaryData" => self.all(value, "binary_data"),
                Value::Object(data) if config && key == "data" => self.config(data),
                _ if fields.iter().any(|f| f.names.iter().any(|n| n == key)) => self.user(value),
                Value::Array(items) if is_command(key) => self.args(items),
                Value::String(_) | Value::Array(_) | Value::Number(_) => self.field(key, value),
                _ => self.walk(value),
            }
        }
    }

    /// Items of a `SecretList` need no kind of their own.
    fn items(&mut self, o: &mut Map<String, Value>) {
        let kind = o.get("kind").and_then(Value::as_str);
        let Some(kind @ ("Secret" | "ConfigMap")) =
            kind.and_then(|k| k.strip_suffix("List")).map(|k| match k {
                "Secret" => "Secret",
                "ConfigMap" => "ConfigMap",
                _ => "",
            })
        else {
            return;
        };
        let Some(Value::Array(items)) = o.get_mut("items") else { return };
        for item in items.iter_mut().filter_map(Value::as_object_mut) {
            item.entry("kind").or_insert_with(|| kind.into());
        }
    }

    /// `{"name": "HF_TOKEN", "value": "…"}`: an environment variable, a header of a probe.
    fn pair(&mut self, o: &mut Map<String, Value>) {
        let name = ["name", "key", "Name", "Key"].iter().find_map(|k| o.get(*k)).and_then(Value::as_str);
        let rule = name.and_then(|n| judge(self.knowledge.names(), n, true));
        let (Some(rule), Some(value)) = (rule, o.get_mut("value")) else { return };
        match value {
            Value::String(s) if is_harmless(s, rule) => {}
            Value::String(s) => self.mask(s, &rule.id),
            Value::Number(_) if rule.numbers => self.all(value, &rule.id),
            Value::Object(_) | Value::Array(_) => self.all(value, &rule.id),
            _ => {}
        }
    }

    /// Keys of maps are texts as well: Docker's `auths` has URLs for keys.
    fn keys(&mut self, o: &mut Map<String, Value>) {
        let before = self.edits;
        let renamed: Vec<String> = o.keys().map(|k| super::lines::redact(self, k).into_owned()).collect();
        if self.edits != before {
            let old = std::mem::take(o);
            for ((_, value), key) in old.into_iter().zip(renamed) {
                o.insert(key, value);
            }
        }
    }

    /// A value behind its key.
    fn field(&mut self, key: &str, value: &mut Value) {
        let Some(rule) = self.judge_key(key) else {
            self.walk(value);
            return;
        };
        match value {
            Value::String(s) if !is_harmless(s, rule) => self.mask(s, &rule.id),
            Value::Array(items) if items.iter().all(Value::is_string) => {
                for item in items {
                    if let Value::String(s) = item
                        && !is_harmless(s, rule)
                    {
                        self.mask(s, &rule.id);
                    }
                }
            }
            Value::Number(_) if rule.numbers => self.all(value, &rule.id),
            _ => self.walk(value),
        }
    }

    /// Everything in it, keys kept.
    fn all(&mut self, value: &mut Value, id: &str) {
        match value {
            Value::Object(o) => {
                for v in o.values_mut() {
                    let mut s = String::new();
                    if v.as_str().is_none_or(|s| s != format!("[redacted:{id}]")) {
                        self.mask(&mut s, id);
                        drop_flat(std::mem::replace(v, Value::String(s)));
                    }
                }
            }
            Value::Null => {}
            Value::String(s) => self.mask(s, id),
            _ => {
                let mut s = String::new();
                self.mask(&mut s, id);
                drop_flat(std::mem::replace(value, Value::String(s)));
            }
        }
    }

    fn config(&mut self, data: &mut Map<String, Value>) {
        for (key, value) in data.iter_mut() {
            match (judge(self.knowledge.names(), key, true), value) {
                (Some(rule), Value::String(s)) if !is_harmless(s, rule) => self.mask(s, &rule.id),
                (_, value) => self.walk(value),
            }
        }
    }

    /// What a user wrote; the shape stays, since it is what marks the field for every reader.
    fn user(&mut self, value: &mut Value) {
        let marker = || Value::String(format!("[redacted:{USER}]"));
        match value {
            Value::String(s) if s.is_empty() => {}
            Value::String(s) => self.mask(s, USER),
            Value::Array(a) if a.is_empty() || a.len() == 1 && a.first() == Some(&marker()) => {}
            Value::Array(_) => {
                drop_flat(std::mem::replace(value, Value::Array(vec![marker()])));
                self.note(USER);
            }
            Value::Object(_) => {
                drop_flat(std::mem::replace(value, marker()));
                self.note(USER);
            }
            _ => {}
        }
    }

    /// Loki's `values`: pairs of time and line. The lines of a stream are one log, newest first or last.
    fn log_entries(&mut self, entries: &mut [Value]) -> bool {
        let line = |e: &Value| match e.as_array().map(Vec::as_slice) {
            Some([Value::String(time), Value::String(line), ..]) if time.len() > 15 => {
                Some((time.clone(), line.clone()))
            }
            _ => None,
        };
        let read: Option<Vec<(String, String)>> = entries.iter().map(line).collect();
        let Some(mut read) = read.filter(|r| !r.is_empty()) else { return false };
        let newest_first = read.first().map(|(t, _)| t) > read.last().map(|(t, _)| t);
        if newest_first {
            read.reverse();
        }
        let joined = read.iter().map(|(_, l)| l.as_str()).collect::<Vec<_>>().join("\n");
        let before = self.edits;
        let masked = self.text(&joined).into_owned();
        if self.edits == before {
            return true;
        }
        let mut lines = masked.split('\n');
        let mut new: Vec<String> = Vec::with_capacity(read.len());
        for (_, old) in &read {
            let count = old.matches('\n').count() + 1;
            new.push(lines.by_ref().take(count).collect::<Vec<_>>().join("\n"));
        }
        if newest_first {
            new.reverse();
        }
        for (entry, new) in entries.iter_mut().zip(new) {
            if let Some(line) = entry.get_mut(1) {
                *line = Value::String(new);
            }
            // Structured metadata.
            if let Some(rest) = entry.get_mut(2) {
                self.walk(rest);
            }
        }
        true
    }
}

/// Takes a value apart level by level: dropping it as a whole would recurse as deep as it is.
fn drop_flat(value: Value) {
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        match value {
            Value::Array(a) => left.extend(a),
            Value::Object(o) => left.extend(o.into_iter().map(|(_, v)| v)),
            _ => {}
        }
    }
}
