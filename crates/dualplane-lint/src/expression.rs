//! CEL with what an API server's CEL has: the standard library, strings, and quantities.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use cel::common::types::{CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString};
use cel::common::value::Val;
use cel::parser::{Expression as Tree, PrattParser};
use cel::{Context, Env, ExecutionError, Value as Cel};
use dualplane_base::units::{Bytes, parse_k8s_quantity};
use serde_json::Value;

use crate::reads::Reads;

/// A text of CEL, parsed when it is first asked: by the small parser of the library. The one that it uses otherwise is
/// generated, a quarter of a MiB, and slower; a test holds every expression of `knowledge/` against it.
#[derive(Debug)]
pub(crate) struct Expression {
    text: String,
    tree: OnceLock<Option<Tree>>,
}

impl Expression {
    pub(crate) fn new(text: &str) -> Self {
        Self { text: text.to_owned(), tree: OnceLock::new() }
    }

    /// Adds what it reads of its variables. One that does not compile reads nothing, and says nothing.
    pub(crate) fn reads(&self, into: &mut Reads) {
        if let Some(tree) = self.tree() {
            into.add(tree);
        }
    }

    fn tree(&self) -> Option<&Tree> {
        self.tree.get_or_init(|| PrattParser::new().parse(&self.text).ok()).as_ref()
    }

    /// What it says of these variables. An error is none of the manifest's: the policy of an API server ignores it, too.
    pub(crate) fn ask(&self, scope: &Scope<'_>) -> Result<Cel, String> {
        let tree = self.tree().ok_or_else(|| format!("it does not compile: {}", self.text))?;
        Cel::resolve(tree, &scope.0).map_err(|e| e.to_string())
    }

    /// Whether it is true; an error is no `false`.
    pub(crate) fn holds(&self, scope: &Scope<'_>) -> Result<bool, String> {
        match self.ask(scope)? {
            Cel::Bool(b) => Ok(b),
            other => Err(format!("it is {other:?}, not true or false")),
        }
    }

    /// As a text for people.
    pub(crate) fn text(&self, scope: &Scope<'_>) -> Option<String> {
        Some(match self.ask(scope).ok()? {
            Cel::String(s) => s.to_string(),
            Cel::Int(i) => i.to_string(),
            Cel::UInt(u) => u.to_string(),
            Cel::Float(f) => f.to_string(),
            Cel::Bool(b) => b.to_string(),
            _ => return None,
        })
    }

    /// As a value of a manifest.
    pub(crate) fn json(&self, scope: &Scope<'_>) -> Option<Value> {
        Some(match self.ask(scope).ok()? {
            Cel::String(s) => Value::from(s.as_str()),
            Cel::Int(i) => Value::from(i),
            Cel::UInt(u) => Value::from(u),
            Cel::Bool(b) => Value::from(b),
            _ => return None,
        })
    }
}

/// Variables of an expression.
pub(crate) struct Scope<'v>(Context<'v, 'v>);

impl<'v> Scope<'v> {
    pub(crate) fn new() -> Self {
        Self(Context::with_env(Arc::clone(env())))
    }

    pub(crate) fn set(&mut self, name: &str, value: Box<dyn Val + 'v>) {
        self.0.add_variable_as_val(name, value);
    }
}

fn env() -> &'static Arc<Env> {
    static ENV: OnceLock<Arc<Env>> = OnceLock::new();
    ENV.get_or_init(|| {
        let mut env = Env::stdlib();
        // Names that the standard library has already stay its own.
        let _ = env.add_extension(cel::extensions::strings);
        let _ = quantities(&mut env);
        Arc::new(env)
    })
}

/// `quantity` of Kubernetes (1.29+): an amount with comparisons. Here it is a number of bytes or of pieces.
fn quantities(env: &mut Env) -> Result<(), cel::DeclarationError> {
    cel::add_overload!(env, fn quantity: (CelString) -> Result<CelDouble>)?;
    cel::add_overload!(env, fn is_quantity: (CelString) -> CelBool)?;
    cel::add_member_overload!(env, fn is_greater_than: (CelDouble, CelDouble) -> CelBool)?;
    cel::add_member_overload!(env, fn is_less_than: (CelDouble, CelDouble) -> CelBool)?;
    cel::add_member_overload!(env, fn compare_to: (CelDouble, CelDouble) -> CelInt)?;
    cel::add_member_overload!(env, fn as_approximate_float: (CelDouble) -> CelDouble)?;
    cel::add_member_overload!(env, fn as_integer: (CelDouble) -> CelInt)?;
    // For messages and values only: an API server has them not.
    cel::add_overload!(env, fn amount: (CelDouble) -> CelString)?;
    cel::add_overload!(env, fn shown: (CelDouble) -> CelString)?;
    Ok(())
}

fn quantity(text: &CelString<'_>) -> Result<CelDouble, ExecutionError> {
    let value = parse_k8s_quantity(text.inner());
    value.map(CelDouble::from).ok_or_else(|| {
        ExecutionError::function_error("quantity", format!("`{}` is no quantity", text.inner()))
    })
}

fn is_quantity(text: &CelString<'_>) -> CelBool {
    parse_k8s_quantity(text.inner()).is_some().into()
}

fn is_greater_than(a: &CelDouble, b: &CelDouble) -> CelBool {
    (a.inner() > b.inner()).into()
}

fn is_less_than(a: &CelDouble, b: &CelDouble) -> CelBool {
    (a.inner() < b.inner()).into()
}

fn compare_to(a: &CelDouble, b: &CelDouble) -> CelInt {
    a.inner().partial_cmp(b.inner()).map_or(0, |o| o as i64).into()
}

fn as_approximate_float(a: &CelDouble) -> CelDouble {
    (*a.inner()).into()
}

fn as_integer(a: &CelDouble) -> CelInt {
    (*a.inner() as i64).into()
}

/// As a manifest writes it: whole GiB, else MiB.
fn amount(a: &CelDouble) -> CelString<'static> {
    Bytes::from_f64(*a.inner()).k8s().into()
}

/// As people read it.
fn shown(a: &CelDouble) -> CelString<'static> {
    Bytes::from_f64(*a.inner()).to_string().into()
}

/// Keys under which amounts stand, which an API server hands on as text, however they were written.
const AMOUNTS: [&str; 2] = ["limits", "requests"];

/// A value for expressions, with the texts of the manifest itself. Nulls are left out, as by an API server.
pub(crate) fn of(value: &Value) -> Box<dyn Val + '_> {
    convert(value, false)
}

fn convert(value: &Value, amounts: bool) -> Box<dyn Val + '_> {
    match value {
        Value::Null => Box::new(CelNull),
        Value::Bool(b) => Box::new(CelBool::from(*b)),
        Value::Number(n) if amounts => Box::new(CelString::from(n.to_string())),
        Value::Number(n) => match n.as_i64() {
            Some(i) => Box::new(CelInt::from(i)),
            None => Box::new(CelDouble::from(n.as_f64().unwrap_or_default())),
        },
        Value::String(s) => Box::new(CelString::from(s.as_str())),
        Value::Array(items) => {
            let items: Vec<Box<dyn Val + '_>> = items.iter().map(|i| convert(i, false)).collect();
            Box::new(CelList::from(items))
        }
        Value::Object(map) => {
            let known = map.iter().filter(|(_, v)| !v.is_null());
            let map: HashMap<CelMapKey<'_>, Box<dyn Val + '_>> = known
                .map(|(k, v)| {
                    let inner = amounts || k == "sizeLimit";
                    let below = AMOUNTS.contains(&k.as_str()) && v.is_object();
                    (CelMapKey::from(k.as_str()), convert(v, inner || below))
                })
                .collect();
            Box::new(CelMap::from(map))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Rules;
    use serde_json::json;

    /// A tree without the numbers of its nodes, which count what a parser looked at.
    fn shape(tree: &Tree) -> String {
        let text = format!("{tree:?}");
        let mut parts = text.split("id: ");
        let first = parts.next().unwrap().to_owned();
        parts.fold(first, |out, part| out + part.trim_start_matches(|c: char| c.is_ascii_digit()))
    }

    #[test]
    fn both_parsers_of_the_library_read_our_expressions_alike() {
        let mut seen = 0;
        let all = Rules::embedded().list().iter().flat_map(|r| {
            let parts = r.holds.iter().chain(r.values.values()).chain(r.set.iter().map(|s| &s.value));
            parts.cloned().collect::<Vec<_>>()
        });
        let odd = [
            "a ? b : c ? d : e",
            "-x.y[0] + 2 * 3 - 4 % 5",
            "!a && b || c in [1, 2]",
            "'\\u00e9\\n' == r'\\n'",
            "{'a': [1u, 2.5e3]}.a",
        ];
        for text in all.chain(odd.map(str::to_owned)) {
            let small = PrattParser::new().parse(&text).unwrap_or_else(|e| panic!("{text}: {e:?}"));
            let other = env().parser().parse(&text).unwrap_or_else(|e| panic!("{text}: {e:?}"));
            assert_eq!(shape(&small), shape(&other), "{text}");
            seen += 1;
        }
        assert!(seen > 80, "only {seen} expressions");
        for broken in ["", "a b", "1 +", "(", "a[", "'x", "has(1)", "@"] {
            assert_eq!(
                PrattParser::new().parse(broken).is_ok(),
                env().parser().parse(broken).is_ok(),
                "{broken}"
            );
        }
    }

    #[test]
    fn quantities_are_those_of_an_api_server() {
        let c = json!({"resources": {"limits": {"memory": "1Gi", "nvidia.com/gpu": 2}}, "x": null});
        let mut scope = Scope::new();
        scope.set("c", of(&c));
        for (text, want) in [
            ("quantity(c.resources.limits.memory).isGreaterThan(quantity('1000Mi'))", true),
            ("quantity(c.resources.limits['nvidia.com/gpu']).compareTo(quantity('2')) == 0", true),
            ("quantity('1Ki').asInteger() == 1024 && !isQuantity('1Xi')", true),
            ("has(c.x)", false),
            ("'a:b'.lastIndexOf(':') == 1 && ['a', 'b'].join(' ') == 'a b'", true),
        ] {
            assert_eq!(Expression::new(text).holds(&scope), Ok(want), "{text}");
        }
        assert_eq!(Expression::new("amount(1024.0 * 1024.0 * 1024.0)").text(&scope).as_deref(), Some("1Gi"));
        assert!(Expression::new("c.nothing == 1").holds(&scope).is_err());
        assert!(Expression::new("c.(").holds(&scope).is_err());
    }
}
