//! Where in a text the value of a pointer stands. A text is only looked at again where something was found.

use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

/// Where something stands in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    /// Line from 1.
    pub line: u64,
    /// Column from 1.
    pub column: u64,
    /// Bytes of the value, where it is plain.
    pub bytes: Option<Range<usize>>,
}

/// A text with the places of its values.
#[derive(Debug)]
pub struct Locator {
    root: Option<Spanned<Node>>,
}

/// A value of which only the place matters.
#[derive(Debug)]
pub(crate) enum Node {
    Scalar,
    List(Vec<Spanned<Node>>),
    Map(Vec<(Spanned<String>, Spanned<Node>)>),
}

impl Locator {
    /// Reads a text; where it cannot be read, nothing is found in it.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self { root: serde_saphyr::from_str_with_options(text, crate::yaml::options()).ok() }
    }

    /// The value at a pointer, or the last key on the way to it that is there.
    #[must_use]
    pub fn spot(&self, pointer: &str) -> Option<Spot> {
        let mut node = self.root.as_ref()?;
        let mut at = spot(node);
        for step in steps(pointer) {
            match &node.value {
                Node::Map(pairs) => {
                    let Some((key, value)) = pairs.iter().find(|(k, _)| k.value == step) else { break };
                    // The line of the key: what is below begins a line later.
                    at = Spot { bytes: spot(value).bytes, ..spot(key) };
                    node = value;
                }
                Node::List(items) => {
                    let Some(item) = step.parse().ok().and_then(|i: usize| items.get(i)) else { break };
                    at = spot(item);
                    node = item;
                }
                Node::Scalar => break,
            }
        }
        Some(at)
    }

    /// The node at a pointer, exactly.
    pub(crate) fn node(&self, pointer: &str) -> Option<&Spanned<Node>> {
        steps(pointer).try_fold(self.root.as_ref()?, |node, step| match &node.value {
            Node::Map(pairs) => pairs.iter().find(|(k, _)| k.value == step).map(|(_, v)| v),
            Node::List(items) => items.get(step.parse::<usize>().ok()?),
            Node::Scalar => None,
        })
    }
}

/// Segments of a JSON pointer.
pub(crate) fn steps(pointer: &str) -> impl Iterator<Item = String> + '_ {
    pointer.split('/').skip(1).map(|s| s.replace("~1", "/").replace("~0", "~"))
}

pub(crate) fn spot<T>(of: &Spanned<T>) -> Spot {
    let l = of.referenced;
    let begin = l.span().byte_offset().and_then(|o| usize::try_from(o).ok());
    let len = l.span().byte_len().and_then(|o| usize::try_from(o).ok());
    Spot { line: l.line(), column: l.column(), bytes: begin.zip(len).map(|(b, n)| b..b + n) }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(Nodes)
    }
}

struct Nodes;

impl<'de> Visitor<'de> for Nodes {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_str<E>(self, _: &str) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(Node::Map(pairs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_leads_to_its_line_or_as_far_as_there_is_something() {
        let text = "kind: Pod\nspec:\n  containers:\n  - name: a\n  - name: b\n    resources:\n      limits: {memory: 8Gi}\n";
        let l = Locator::new(text);
        let at = |p: &str| l.spot(p).map(|s| s.line);
        assert_eq!(at("/spec/containers/1"), Some(5));
        assert_eq!(at("/spec/containers/1/resources/limits/memory"), Some(7));
        assert_eq!(at("/spec/containers/1/resources/requests/memory"), Some(6));
        let memory = l.spot("/spec/containers/1/resources/limits/memory").and_then(|s| s.bytes).unwrap();
        assert_eq!(text.get(memory), Some("8Gi"));
        assert!(Locator::new("a: [").spot("").is_none());
    }
}
