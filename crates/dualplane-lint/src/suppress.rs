//! What is not told, and why: an annotation of the object, or a line of a file of exceptions.

use serde::Deserialize;
use serde_json::Value;

use crate::finding::Finding;
use crate::object::Object;

/// Beginning of the annotation that ignores one rule; its value is the reason.
pub(crate) const ANNOTATION: &str = "lint.dualplane.dev/";

/// The reason that an object or its template gives for a rule.
pub(crate) fn reason<'a>(object: &'a Object, rule: &str) -> Option<&'a str> {
    let key = format!("{ANNOTATION}{rule}");
    // A pod gets the annotations of its template, and none of its workload.
    ["/metadata/annotations", "/spec/template/metadata/annotations"]
        .iter()
        .filter_map(|at| object.value.pointer(at)?.get(&key).and_then(Value::as_str))
        .find(|r| !r.trim().is_empty())
}

/// [`reason`] as CEL over `object`: true where there is none.
pub(crate) fn unless(rule: &str) -> String {
    let key = format!("{ANNOTATION}{rule}");
    let of = |meta: &str| {
        format!(
            "has({meta}.annotations) && '{key}' in {meta}.annotations && {meta}.annotations['{key}'].trim() != ''"
        )
    };
    let template = "has(object.spec) && has(object.spec.template) && has(object.spec.template.metadata)";
    format!("!({} || {template} && {})", of("object.metadata"), of("object.spec.template.metadata"))
}

/// An exception.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ignore {
    rule: String,
    /// `Kind/namespace/name`; `*` stands for any text.
    #[serde(default)]
    object: Option<String>,
    /// File; `*` stands for any text.
    #[serde(default)]
    file: Option<String>,
    reason: String,
}

/// A file of exceptions.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ignores {
    #[serde(default)]
    ignore: Vec<Ignore>,
}

impl Ignores {
    /// What is wrong with them: rules that are not there, reasons that are empty.
    #[must_use]
    pub fn problems(&self, known: impl Fn(&str) -> bool) -> Vec<String> {
        let one = |i: &Ignore| {
            if !known(&i.rule) {
                Some(format!("`{}` is no rule", i.rule))
            } else if i.reason.trim().is_empty() {
                Some(format!("the exception for {} gives no reason", i.rule))
            } else {
                None
            }
        };
        self.ignore.iter().filter_map(one).collect()
    }

    /// Whether a finding is an exception.
    #[must_use]
    pub fn hold(&self, f: &Finding) -> bool {
        let object = format!("{}/{}/{}", f.kind, f.namespace, f.name);
        self.ignore.iter().any(|i| {
            i.rule == f.rule
                && i.object.as_ref().is_none_or(|o| like(o, &object))
                && i.file.as_ref().is_none_or(|p| like(p, &f.source.file))
        })
    }
}

/// Whether a text is like a pattern in which `*` stands for any text.
fn like(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.split_once(part) {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_and_reasons() {
        assert!(like("Deployment/*/llm", "Deployment/serving/llm") && like("*", "") && like("a", "a"));
        assert!(!like("a*c", "ab") && !like("a", "ab") && !like("a*b*c", "acb"));
        let i: Ignores = serde_json::from_value(serde_json::json!({"ignore": [
            {"rule": "a", "object": "Pod/*", "reason": "it is a test"}, {"rule": "b", "reason": " "}, {"rule": "c", "reason": "x"}]}))
        .unwrap();
        assert_eq!(i.problems(|r| r != "c").len(), 2);
    }
}
