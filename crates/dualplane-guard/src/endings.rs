//! How requests ended, counted since the start.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::ask::Api;

/// What became of a request, as it is counted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ending {
    /// What it asked for; `other` for what passes.
    pub api: &'static str,
    /// Status of the answer.
    pub status: u16,
    /// Code of a refusal; empty for none.
    pub code: &'static str,
}

/// Counters of them. Nearly all requests are answered with 200, and are counted without a lock.
#[derive(Debug, Default)]
pub struct Endings {
    answered: [AtomicU64; Api::ALL.len()],
    others: Mutex<BTreeMap<Ending, u64>>,
}

impl Endings {
    fn of(&self, api: Api) -> Option<&AtomicU64> {
        Api::ALL.iter().zip(&self.answered).find(|(of, _)| **of == api).map(|(_, n)| n)
    }

    /// One more.
    pub fn count(&self, api: Option<Api>, status: u16, code: &'static str) {
        let usual = api.filter(|_| status == 200 && code.is_empty());
        if let Some(n) = usual.and_then(|api| self.of(api)) {
            n.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let ending = Ending { api: api.map_or("other", Api::word), status, code };
        *self.others.lock().unwrap_or_else(PoisonError::into_inner).entry(ending).or_insert(0) += 1;
    }

    /// All of them; none is 0.
    #[must_use]
    pub fn all(&self) -> BTreeMap<Ending, u64> {
        let mut all = self.others.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let usual =
            Api::ALL.iter().zip(&self.answered).map(|(api, n)| (api.word(), n.load(Ordering::Relaxed)));
        all.extend(usual.filter(|(_, n)| *n > 0).map(|(api, n)| (Ending { api, status: 200, code: "" }, n)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_counted_once_where_it_belongs() {
        let endings = Endings::default();
        for (times, api) in Api::ALL.into_iter().enumerate() {
            for _ in 0..times + 2 {
                endings.count(Some(api), 200, "");
            }
            endings.count(Some(api), 502, "server_died");
        }
        endings.count(None, 200, "");
        let all = endings.all();
        assert_eq!(all.len(), 2 * Api::ALL.len() + 1);
        for (e, n) in all {
            let at = Api::ALL.iter().position(|api| api.word() == e.api).filter(|_| e.status == 200);
            assert_eq!(n, at.map_or(1, |at| at as u64 + 2), "{e:?}");
        }
    }
}
