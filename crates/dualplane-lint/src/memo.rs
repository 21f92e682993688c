//! Answers that are kept by their question: the same chart stands in many namespaces.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

/// At most so many answers, all forgotten when there are more: a run over strangers' files stays small.
#[derive(Debug)]
pub(crate) struct Memo<K, V> {
    most: usize,
    kept: Mutex<HashMap<K, V>>,
}

impl<K: Hash + Eq, V: Clone> Memo<K, V> {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, kept: Mutex::default() }
    }

    /// The answer, asked for where it is not known. Others are not kept waiting meanwhile; two may ask the same.
    pub(crate) fn get(&self, key: K, ask: impl FnOnce() -> V) -> V {
        self.get_by(key, |_| ask())
    }

    /// The same where the question itself is all that is asked.
    pub(crate) fn get_by(&self, key: K, ask: impl FnOnce(&K) -> V) -> V {
        if self.most == 0 {
            return ask(&key);
        }
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = kept().get(&key) {
            return found.clone();
        }
        let answer = ask(&key);
        let mut kept = kept();
        if kept.len() >= self.most {
            kept.clear();
        }
        kept.insert(key, answer.clone());
        answer
    }
}
