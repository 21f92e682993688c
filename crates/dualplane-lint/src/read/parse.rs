//! One document to its objects, or to a clear word on why there are none.

use serde_json::Value;

use super::{Document, compose, triton};
use crate::finding::Source;
use crate::object::Object;

/// Objects of a list in a list; nobody nests deeper without meaning harm.
const MAX_DEPTH: u32 = 3;

/// What a document is instead of objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// It cannot be read: line in the file, and why.
    Broken {
        /// Line in the file.
        line: u64,
        /// What is wrong.
        why: String,
    },
    /// It is a template that was not rendered.
    Template {
        /// Line in the file of its first placeholder.
        line: u64,
    },
    /// It is no object of Kubernetes, no compose file and no configuration of Triton: values, settings, notes.
    Other,
}

/// A document as it was read.
#[derive(Debug, Clone, Default)]
pub struct Parsed {
    /// Its objects.
    pub objects: Vec<Object>,
    /// Why there are none, or not all.
    pub problem: Option<Problem>,
}

/// Reads a document.
#[must_use]
pub fn parse(file: &str, document: &Document) -> Parsed {
    let source = Source { file: file.to_owned(), document: document.number, line: document.line };
    let broken = |line: u64, why: &str| Parsed {
        problem: Some(Problem::Broken { line, why: why.to_owned() }),
        ..Parsed::default()
    };
    if document.too_long {
        let why = "it is longer than 4 MiB; write a list as JSON (-o json), whose items are read one by one";
        return broken(document.line, why);
    }
    if document.binary {
        return broken(document.line, "it is not UTF-8 text");
    }
    if file.ends_with(".pbtxt") {
        return match triton::read(&document.text) {
            Ok(value) => Parsed { objects: vec![triton::object(value, source)], problem: None },
            Err((line, why)) => broken(document.line + line - 1, &why),
        };
    }
    match serde_saphyr::from_str_with_options::<Value>(&document.text, crate::yaml::options()) {
        Ok(value) => {
            let template = placeholder(&document.text).filter(|_| value.get("kind").is_some());
            let mut out = Parsed::default();
            match template {
                Some(line) => out.problem = Some(Problem::Template { line: document.line + line }),
                None => unfold(value, &source, "", "", 0, &mut out.objects),
            }
            if out.objects.is_empty() && out.problem.is_none() {
                out.problem = Some(Problem::Other);
            }
            out
        }
        Err(e) => {
            if let Some(line) = first_brace(&document.text) {
                return Parsed {
                    problem: Some(Problem::Template { line: document.line + line }),
                    ..Parsed::default()
                };
            }
            let line = e.location().map_or(1, |l| l.line()).max(1);
            let text = e.to_string();
            // The line that it names is one of the document, and stands before it as one of the file.
            let why = text.lines().next().unwrap_or_default().trim();
            let why = why.rsplit_once(" at line ").map_or(why, |(why, _)| why);
            // What its library's caller could do is nothing that a reader can.
            let why = why.split_once(", set ").map_or(why, |(why, _)| why);
            broken(document.line + line - 1, &format!("it is not YAML: {why}"))
        }
    }
}

/// Objects of a value: items of lists, a compose file as one.
fn unfold(value: Value, source: &Source, kind: &str, pointer: &str, depth: u32, out: &mut Vec<Object>) {
    if value.get("kind").is_none() && kind.is_empty() {
        if let Some(object) = compose::object(&value, source) {
            out.push(object);
        }
        return;
    }
    let own = value.get("kind").and_then(Value::as_str).unwrap_or(kind).to_owned();
    if own.ends_with("List")
        && let Value::Object(mut map) = value
    {
        let of = own.strip_suffix("List").unwrap_or_default();
        if let Some(Value::Array(items)) = map.remove("items").filter(|_| depth < MAX_DEPTH) {
            for (i, item) in items.into_iter().enumerate() {
                unfold(item, source, of, &format!("{pointer}/items/{i}"), depth + 1, out);
            }
        }
        return;
    }
    let mut object = Object::new(value, source.clone());
    object.pointer = pointer.to_owned();
    // Items of a list may leave their kind to it.
    object.kind = own;
    out.push(object);
}

/// Words by which templates of Helm are told from texts of alerts, which have braces of their own.
const OF_HELM: [&str; 6] = [".Values", ".Release", ".Chart", "include ", "toYaml", "template \""];

/// The line, from 0, of the first placeholder of Helm.
fn placeholder(text: &str) -> Option<u64> {
    let open = |l: &str| {
        l.split("{{").skip(1).any(|rest| {
            let inner = rest.split("}}").next().unwrap_or(rest);
            OF_HELM.iter().any(|w| inner.contains(w))
        })
    };
    lines_with(text, open)
}

fn first_brace(text: &str) -> Option<u64> {
    lines_with(text, |l| l.contains("{{"))
}

fn lines_with(text: &str, test: impl Fn(&str) -> bool) -> Option<u64> {
    // Most texts have none, and are looked at once.
    text.contains("{{").then(|| text.lines().position(test))?.and_then(|i| u64::try_from(i).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(file: &str, text: &str) -> Parsed {
        let d = Document { number: 2, line: 10, text: text.into(), too_long: false, binary: false };
        parse(file, &d)
    }

    #[test]
    fn lists_are_unfolded_and_keep_their_place() {
        let p = read(
            "a.yaml",
            "kind: List\nitems:\n- {kind: Pod, metadata: {name: a}}\n- {kind: PodList, items: [{metadata: {name: b}}]}\n",
        );
        let all: Vec<_> =
            p.objects.iter().map(|o| (o.kind.as_str(), o.name.as_str(), o.pointer.as_str())).collect();
        assert_eq!(all, [("Pod", "a", "/items/0"), ("Pod", "b", "/items/1/items/0")]);
        assert_eq!(p.objects[0].source.line, 10);
    }

    #[test]
    fn what_is_no_object_is_said() {
        for (text, want) in [
            ("a: [1\nb: 2\n", "Broken"),
            ("kind: Pod\nspec:\n  {{- toYaml .Values.x | nindent 2 }}\n", "Template { line: 12 }"),
            ("kind: Pod\nspec: {image: \"{{ .Values.image }}\"}\n", "Template { line: 11 }"),
            ("replicas: 2\nimage: x\n", "Other"),
            ("- 1\n", "Other"),
        ] {
            let p = read("a.yaml", text);
            assert!(
                p.objects.is_empty() && format!("{:?}", p.problem).contains(want),
                "{text}: {:?}",
                p.problem
            );
        }
        // Braces of an alert are its own.
        assert_eq!(read("a.yaml", "kind: PrometheusRule\nx: \"{{ $labels.pod }}\"\n").problem, None);
        let bomb = "a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f]\nh: [*g,*g,*g,*g,*g,*g,*g,*g]\n";
        assert!(matches!(read("a.yaml", bomb).problem, Some(Problem::Broken { .. })));
        assert!(matches!(read("a.yaml", &"[".repeat(5000)).problem, Some(Problem::Broken { .. })));
    }
}
