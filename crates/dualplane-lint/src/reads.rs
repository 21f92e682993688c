//! What an expression reads of its variables, so that it is asked once of manifests that do not differ there: most differ in
//! names, variables and replicas alone.

use std::collections::BTreeMap;

use cel::IdedExpr;
use cel::common::ast::{Expr, LiteralValue, operators};
use serde_json::Value;

/// What is read below a value. Nothing below it: only whether it is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Node {
    /// All of it.
    whole: bool,
    keys: BTreeMap<String, Node>,
    /// The same of each item of a list.
    each: Option<Box<Node>>,
}

/// A step below a value.
#[derive(Debug, Clone)]
enum Step<'e> {
    Key(&'e str),
    Each,
}

/// A variable and steps below it.
#[derive(Debug, Clone)]
struct Path<'e> {
    variable: &'e str,
    steps: Vec<Step<'e>>,
}

/// What expressions read, by variable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reads(BTreeMap<String, Node>);

/// Names that comprehensions bind: to what is below a path, or to something that was read already.
type Bound<'a, 'e> = &'a [(&'e str, Option<Path<'e>>)];

impl Reads {
    /// Adds what an expression reads.
    pub(crate) fn add(&mut self, e: &IdedExpr) {
        self.walk(&e.expr, &[]);
    }

    /// The text of all that is read: where it is the same, so is the answer.
    pub(crate) fn key(&self, variables: &[(&str, &Value)]) -> Vec<u8> {
        let mut out = Vec::with_capacity(128);
        for (name, node) in &self.0 {
            write(variables.iter().find(|(n, _)| n == name).map(|(_, v)| *v), node, &mut out);
        }
        out
    }

    fn walk<'e>(&mut self, e: &'e Expr, bound: Bound<'_, 'e>) {
        match e {
            Expr::Unspecified | Expr::Literal(_) => {}
            Expr::Select(s) if s.test => match path(&s.operand.expr, bound) {
                Some(Some(mut path)) => {
                    path.steps.push(Step::Key(&s.field));
                    self.at(&path);
                }
                Some(None) => {}
                None => self.walk(&s.operand.expr, bound),
            },
            Expr::Ident(_) | Expr::Select(_) | Expr::Call(_) => match path(e, bound) {
                Some(Some(path)) => self.at(&path).whole = true,
                Some(None) => {}
                None => self.below(e, bound),
            },
            Expr::List(l) => l.elements.iter().for_each(|e| self.walk(&e.expr, bound)),
            // Neither is in any rule; all is read.
            Expr::Map(_) | Expr::Struct(_) => self.all(),
            Expr::Comprehension(c) => {
                let mut inner = bound.to_vec();
                // Keys of a map, or two variables, are no items: all of it is read.
                let each = match path(&c.iter_range.expr, bound) {
                    Some(Some(mut path)) if c.iter_var2.is_none() => {
                        path.steps.push(Step::Each);
                        self.at(&path);
                        Some(path)
                    }
                    _ => {
                        self.walk(&c.iter_range.expr, bound);
                        None
                    }
                };
                self.walk(&c.accu_init.expr, bound);
                inner.push((c.iter_var.as_str(), each));
                inner.extend(c.iter_var2.as_deref().map(|v| (v, None)));
                inner.push((c.accu_var.as_str(), None));
                for e in [&c.loop_cond, &c.loop_step, &c.result] {
                    self.walk(&e.expr, &inner);
                }
            }
        }
    }

    /// Parts of what is no path itself.
    fn below<'e>(&mut self, e: &'e Expr, bound: Bound<'_, 'e>) {
        match e {
            Expr::Select(s) => self.walk(&s.operand.expr, bound),
            Expr::Call(c) => {
                c.target.iter().for_each(|t| self.walk(&t.expr, bound));
                c.args.iter().for_each(|a| self.walk(&a.expr, bound));
            }
            _ => {}
        }
    }

    fn at(&mut self, path: &Path<'_>) -> &mut Node {
        let root = self.0.entry(path.variable.to_owned()).or_default();
        path.steps.iter().fold(root, |node, step| match step {
            Step::Key(key) => node.keys.entry((*key).to_owned()).or_default(),
            Step::Each => node.each.get_or_insert_default(),
        })
    }

    fn all(&mut self) {
        for name in ["object", "pod", "c", "v", "s"] {
            self.0.entry(name.to_owned()).or_default().whole = true;
        }
    }
}

/// The path that an expression spells: `Some(None)` where it is a name bound to something that was read already.
#[allow(clippy::option_option)]
fn path<'e>(e: &'e Expr, bound: Bound<'_, 'e>) -> Option<Option<Path<'e>>> {
    match e {
        Expr::Ident(name) => Some(match bound.iter().rev().find(|(n, _)| n == name) {
            Some((_, to)) => to.clone(),
            None => Some(Path { variable: name, steps: Vec::new() }),
        }),
        Expr::Select(s) if !s.test => Some(step(path(&s.operand.expr, bound)?, &s.field)),
        Expr::Call(c) if c.func_name == operators::INDEX => match c.args.as_slice() {
            [of, IdedExpr { expr: Expr::Literal(LiteralValue::String(key)), .. }] => {
                Some(step(path(&of.expr, bound)?, key.inner()))
            }
            _ => None,
        },
        _ => None,
    }
}

fn step<'e>(path: Option<Path<'e>>, key: &'e str) -> Option<Path<'e>> {
    path.map(|mut p| {
        p.steps.push(Step::Key(key));
        p
    })
}

/// A text from which all that the node reads could be told again: of two values with one text, no expression that reads so much
/// of them can tell one from the other.
fn write(value: Option<&Value>, node: &Node, out: &mut Vec<u8>) {
    let Some(value) = value.filter(|v| !v.is_null()) else {
        out.push(b'-');
        return;
    };
    let nothing_below = node.keys.is_empty() && node.each.is_none();
    match (value, &node.each) {
        _ if !node.whole && nothing_below => out.push(b'+'),
        (Value::Object(map), None) if !node.whole => {
            out.push(b'{');
            for (key, node) in &node.keys {
                write(map.get(key), node, out);
            }
        }
        (Value::Array(items), Some(each)) if !node.whole && node.keys.is_empty() => {
            out.extend_from_slice(format!("[{};", items.len()).as_bytes());
            for item in items {
                // Unlike a value of a map, an item that is null is there.
                out.push(if item.is_null() { b'0' } else { b'1' });
                write(Some(item), each, out);
            }
        }
        _ => {
            out.push(b'=');
            // Writing into memory cannot fail.
            let _ = serde_json::to_writer(&mut *out, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::expression::Expression;

    fn reads(text: &str) -> Reads {
        let mut reads = Reads::default();
        Expression::new(text).reads(&mut reads);
        reads
    }

    #[test]
    fn what_an_expression_does_not_read_changes_no_key() {
        for (text, one, other, same) in [
            ("has(c.a.b)", json!({"a": {"b": 1, "x": 1}}), json!({"a": {"b": 2}}), true),
            ("has(c.a.b)", json!({"a": {"b": 1}}), json!({"a": {}}), false),
            ("has(c.a.b)", json!({"a": {}}), json!({}), false),
            ("c.a.b == 1", json!({"a": {"b": 1}}), json!({"a": {"b": 2}}), false),
            ("c.a['b-c'] == 1", json!({"a": {"b-c": 1, "d": 2}}), json!({"a": {"b-c": 1}}), true),
            (
                "c.env.all(e, e.name != 'X')",
                json!({"env": [{"name": "A", "value": 1}]}),
                json!({"env": [{"name": "A"}]}),
                true,
            ),
            (
                "c.env.all(e, e.name != 'X')",
                json!({"env": [{"name": "A"}]}),
                json!({"env": [{"name": "A"}, {}]}),
                false,
            ),
            ("c.env.all(e, !has(e.value))", json!({"env": [null]}), json!({"env": [{}]}), false),
            ("size(c.a) > 1", json!({"a": [1, 2]}), json!({"a": [1, 3]}), false),
            ("c.a.exists(k, c.a[k] == 1)", json!({"a": {"x": 1}}), json!({"a": {"x": 2}}), false),
            (
                "(has(c.a) ? c.a : []).exists(a, a.b == 1)",
                json!({"a": [{"b": 1}]}),
                json!({"a": [{"b": 2}]}),
                false,
            ),
            ("has(c.a)", json!({"a": null}), json!({}), true),
        ] {
            let reads = reads(text);
            let key = |v| reads.key(&[("c", v)]);
            assert_eq!(key(&one) == key(&other), same, "{text}: {one} {other}\n{reads:?}");
        }
    }
}
