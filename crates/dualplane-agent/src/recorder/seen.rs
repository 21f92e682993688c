//! Instances whose end is kept, counted or on its way: none is told twice, by the group that vanished and by its log.

use std::collections::{HashSet, VecDeque};

/// Ends that are remembered. The kubelet's folders tell of an end within seconds, or of the last one at a start.
const MOST: usize = 16_384;

type Instance = (String, String, u32);

/// UID, container and restart of ends, the last ones.
#[derive(Debug, Default)]
pub(super) struct Seen {
    all: HashSet<Instance>,
    order: VecDeque<Instance>,
}

impl Seen {
    /// `true` where it is new.
    pub(super) fn insert(&mut self, uid: &str, container: &str, restart: u32) -> bool {
        let instance = (uid.to_owned(), container.to_owned(), restart);
        if !self.all.insert(instance.clone()) {
            return false;
        }
        self.order.push_back(instance);
        if self.order.len() > MOST
            && let Some(old) = self.order.pop_front()
        {
            self.all.remove(&old);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_once_and_bounded() {
        let mut s = Seen::default();
        assert!(
            s.insert("u", "c", 1) && !s.insert("u", "c", 1) && s.insert("u", "c", 2) && s.insert("v", "c", 1)
        );
        for n in 0..20_000 {
            s.insert("w", "c", n);
        }
        assert_eq!((s.all.len(), s.order.len()), (MOST, MOST));
        assert!(!s.insert("w", "c", 19_999) && s.insert("u", "c", 1));
    }
}
