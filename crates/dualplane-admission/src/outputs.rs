//! How many tokens a request will generate: learnt for each tenant and path, high rather than low.

use std::collections::BTreeMap;

use crate::Ms;
use crate::arithmetic::ceil;

/// Edges of three buckets double: what is learnt is at most a quarter too high.
const PER_DOUBLING: f64 = 3.0;
/// Up to 2^20 tokens.
const BUCKETS: usize = 61;
/// Outputs after which a tenant's own are believed, and otherwise those of all.
const ENOUGH: f64 = 8.0;
/// What was learnt fades with each new output: half of it is gone after 70.
const FADE: f64 = 0.99;
/// One request in twenty may be longer than expected; what it holds then is counted as soon as it does.
const QUANTILE: f64 = 0.95;
/// Tenants and paths that are learnt apart; the one that was not seen for longest makes room.
const MAX_KEYS: usize = 2048;

/// Output lengths, by tenant and path.
#[derive(Debug, Clone, Default)]
pub struct Outputs {
    paths: BTreeMap<String, OfPath>,
}

#[derive(Debug, Clone)]
struct OfPath {
    all: Lengths,
    tenants: BTreeMap<String, Lengths>,
}

#[derive(Debug, Clone)]
struct Lengths {
    weight: [f64; BUCKETS],
    total: f64,
    last: Ms,
}

impl Lengths {
    fn new(now: Ms) -> Self {
        Self { weight: [0.0; BUCKETS], total: 0.0, last: now }
    }

    fn learn(&mut self, now: Ms, tokens: u64) {
        for w in &mut self.weight {
            *w *= FADE;
        }
        self.total = self.total * FADE + 1.0;
        self.last = now;
        if let Some(w) = self.weight.get_mut(bucket(tokens)) {
            *w += 1.0;
        }
    }

    fn quantile(&self) -> Option<u64> {
        if self.total < ENOUGH {
            return None;
        }
        let mut left = self.total * (1.0 - QUANTILE);
        for (i, w) in self.weight.iter().enumerate().rev() {
            left -= w;
            // What fades leaves crumbs that are no outputs.
            if left < -1e-9 {
                return Some(edge(i));
            }
        }
        None
    }
}

fn bucket(tokens: u64) -> usize {
    (0..BUCKETS).find(|i| edge(*i) >= tokens).unwrap_or(BUCKETS - 1)
}

/// The most tokens of a bucket.
fn edge(i: usize) -> u64 {
    let exponent = f64::from(u32::try_from(i).unwrap_or(u32::MAX)) / PER_DOUBLING;
    ceil(exponent.exp2())
}

impl Outputs {
    /// What is expected of one sequence; `None` where nothing is known yet.
    #[must_use]
    pub fn expected(&self, tenant: &str, path: &str) -> Option<u64> {
        let of = self.paths.get(path)?;
        of.tenants.get(tenant).and_then(Lengths::quantile).or_else(|| of.all.quantile())
    }

    /// Takes in what one sequence generated.
    pub fn learn(&mut self, now: Ms, tenant: &str, path: &str, tokens: u64) {
        // Paths are those that the caller knows, a dozen.
        if !self.paths.contains_key(path) && self.paths.len() < MAX_KEYS {
            let none = OfPath { all: Lengths::new(now), tenants: BTreeMap::new() };
            self.paths.insert(path.to_owned(), none);
        }
        let Some(of) = self.paths.get_mut(path) else { return };
        of.all.learn(now, tokens);
        if let Some(own) = of.tenants.get_mut(tenant) {
            return own.learn(now, tokens);
        }
        let mut own = Lengths::new(now);
        own.learn(now, tokens);
        of.tenants.insert(tenant.to_owned(), own);
        if self.len() > MAX_KEYS {
            self.forget_oldest();
        }
    }

    fn len(&self) -> usize {
        self.paths.values().map(|of| of.tenants.len()).sum()
    }

    fn forget_oldest(&mut self) {
        let oldest = |of: &OfPath| {
            let (tenant, lengths) = of.tenants.iter().min_by_key(|(_, l)| l.last)?;
            Some((lengths.last, tenant.clone()))
        };
        let found = self.paths.values_mut().filter_map(|of| Some((oldest(of)?, of)));
        if let Some(((_, tenant), of)) = found.min_by_key(|((last, _), _)| *last) {
            of.tenants.remove(&tenant);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn learns_each_tenant_and_begins_with_what_all_do() {
        let mut o = Outputs::default();
        assert_eq!(o.expected("a", "chat"), None);
        for i in 0..100 {
            o.learn(i, "a", "chat", 100 + i % 20);
        }
        let a = o.expected("a", "chat").unwrap();
        assert!((119..=160).contains(&a), "{a}");
        assert_eq!(o.expected("new", "chat"), Some(a));
        for i in 0..20 {
            o.learn(i, "long", "chat", 4000);
        }
        assert!(o.expected("long", "chat").unwrap() >= 4000);
        assert_eq!(o.expected("a", "chat"), Some(a));
        assert_eq!(o.expected("a", "completions"), None);
    }

    #[test]
    fn forgets_what_is_no_longer_so_and_whom_it_has_no_room_for() {
        let mut o = Outputs::default();
        (0..50).for_each(|i| o.learn(i, "a", "chat", 8000));
        (0..600).for_each(|i| o.learn(i, "a", "chat", 10));
        assert!(o.expected("a", "chat").unwrap() < 16);
        for i in 0..MAX_KEYS as u64 + 10 {
            o.learn(1000 + i, &i.to_string(), "chat", 10);
        }
        assert_eq!(o.len(), MAX_KEYS);
    }
}
