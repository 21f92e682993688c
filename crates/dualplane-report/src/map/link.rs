//! What sources told: a value is never without its source, and two sources that differ are both kept.

use serde::Serialize;

use dualplane_base::Confidence;
use dualplane_base::order::Order as _;
use dualplane_base::text::shorten;

/// Characters of a told value that are kept: no id, name or version comes near it.
const LONGEST: usize = 300;
/// Sources of one attribute that are kept.
const MAX_LINKS: usize = 16;
/// Names whose values are one truth each, told in several spellings; all others are one source's measurement.
const ONE_TRUTH: &[&str] = &["card", "driver", "CUDA", "parent", "profile", "engine", "version"];

/// A value with who told it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Link {
    /// The value.
    pub value: String,
    /// Who told it: `allocatedResourcesStatus of the pod`, `node label nvidia.com/gpu.product`.
    pub source: String,
    /// High: told by who decides it, of this object. Medium: matched by name, or told of the whole node. Low: assumed.
    pub confidence: Confidence,
}

impl Link {
    pub(super) fn new(value: &str, source: impl Into<String>, confidence: Confidence) -> Self {
        Self { value: shorten(value.trim(), LONGEST).into_owned(), source: source.into(), confidence }
    }
}

/// A property of something, by all who told it, the surest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// Name: `card`, `driver`, `memory`.
    pub name: &'static str,
    /// Who told it.
    pub links: Vec<Link>,
}

impl Attribute {
    /// The surest.
    #[must_use]
    pub fn best(&self) -> Option<&Link> {
        self.links.first()
    }

    /// Whether sources tell different things.
    #[must_use]
    pub fn disagrees(&self) -> bool {
        let Some(first) = self.best().filter(|_| ONE_TRUTH.contains(&self.name)) else { return false };
        self.links.iter().skip(1).any(|l| !same(&first.value, &l.value))
    }
}

/// Properties in the order in which they were first told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attributes(Vec<Attribute>);

impl Attributes {
    /// Keeps what a source tells; an empty value tells nothing, and a source tells a thing once.
    pub(super) fn tell(
        &mut self,
        name: &'static str,
        value: &str,
        source: impl Into<String>,
        sure: Confidence,
    ) {
        if value.trim().is_empty() {
            return;
        }
        let link = Link::new(value, source, sure);
        let at = match self.0.iter().position(|a| a.name == name) {
            Some(at) => at,
            None => {
                self.0.push(Attribute { name, links: Vec::new() });
                self.0.len() - 1
            }
        };
        if let Some(a) = self.0.get_mut(at)
            && a.links.len() < MAX_LINKS
            && a.links.iter().all(|l| l.source != link.source)
        {
            a.links.push(link);
            // Stable: among equals the one that was asked first stays first.
            a.links.order_by_key(|l| std::cmp::Reverse(l.confidence));
        }
    }

    /// Takes over what another tells.
    pub(super) fn absorb(&mut self, other: Self) {
        for a in other.0 {
            for l in a.links {
                self.tell(a.name, &l.value, l.source, l.confidence);
            }
        }
    }

    /// A property.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Attribute> {
        self.0.iter().find(|a| a.name == name)
    }

    /// Its surest value.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        self.get(name)?.best().map(|l| l.value.as_str())
    }

    /// All.
    pub fn iter(&self) -> impl Iterator<Item = &Attribute> {
        self.0.iter()
    }

    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Whether two spellings mean the same: `NVIDIA H100 80GB HBM3`, as a node label `NVIDIA-H100-80GB-HBM3-SHARED`;
/// `v0.11.2` and `0.11.2+cu129`.
pub(super) fn same(a: &str, b: &str) -> bool {
    let (a, b) = (plain(a), plain(b));
    a == b || is_release_of(&a, &b) || is_release_of(&b, &a)
}

fn plain(text: &str) -> String {
    let mut t = text.trim().to_ascii_lowercase();
    // GPU feature discovery appends how the card is divided (`-MIG-1g.10gb`, `-SHARED`).
    for cut in ["-mig-", "-shared"] {
        if let Some(at) = t.find(cut) {
            t.truncate(at);
        }
    }
    let t = t.strip_prefix('v').filter(|r| r.starts_with(|c: char| c.is_ascii_digit())).unwrap_or(&t);
    t.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '+')).collect()
}

/// `12.8` and `12.8.0`, `0.11.2` and `0.11.2+cu129`: the one tells less of the same.
fn is_release_of(short: &str, long: &str) -> bool {
    short.starts_with(|c: char| c.is_ascii_digit())
        && long.strip_prefix(short).is_some_and(|rest| rest.starts_with(|c: char| !c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_thing_agree() {
        assert!(same("NVIDIA H100 80GB HBM3", "NVIDIA-H100-80GB-HBM3-SHARED"));
        assert!(same("NVIDIA A100-SXM4-40GB", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"));
        assert!(same("v0.11.2", "0.11.2+cu129") && same("12.8", "12.8.0"));
        assert!(!same("570.86.15", "570.86.1") && !same("12.8", "12.80"));
        assert!(!same("NVIDIA A100", "NVIDIA H100"));
    }

    #[test]
    fn the_surest_is_first_and_a_measurement_never_disagrees() {
        let mut a = Attributes::default();
        a.tell("driver", "550.1", "label", Confidence::Medium);
        a.tell("driver", "570.86", "exporter", Confidence::High);
        a.tell("driver", "1", "label", Confidence::High);
        a.tell("used", "1 GiB", "x", Confidence::High);
        a.tell("used", "2 GiB", "y", Confidence::High);
        a.tell("used", " ", "z", Confidence::High);
        assert_eq!(a.value("driver"), Some("570.86"));
        assert!(a.get("driver").unwrap().disagrees() && !a.get("used").unwrap().disagrees());
        assert_eq!(a.get("driver").unwrap().links.len(), 2);
    }
}
