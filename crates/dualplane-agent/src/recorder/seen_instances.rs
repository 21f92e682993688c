//! Instances whose end is kept, counted or on its way: none is told twice, by the group that vanished and by its log.

use std::collections::{HashSet, VecDeque};

/// Ends that are remembered. The kubelet's folders tell of an end within seconds, or of the last one at a start.
const MAX_INSTANCES: usize = 16_384;

type Instance = (String, String, u32);

/// UID, container and restart of ends, the last ones.
#[derive(Debug, Default)]
pub(super) struct SeenInstances {
    all: HashSet<Instance>,
    order: VecDeque<Instance>,
}

impl SeenInstances {
    /// `true` where it is new.
    pub(super) fn insert(&mut self, uid: &str, container: &str, restart: u32) -> bool {
        let instance = (uid.to_owned(), container.to_owned(), restart);
        if !self.all.insert(instance.clone()) {
            return false;
        }
        self.order.push_back(instance);
        if self.order.len() > MAX_INSTANCES
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
        let mut s = SeenInstances::default();
        assert!(
            s.insert("u", "c", 1) && !s.insert("u", "c", 1) && s.insert("u", "c", 2) && s.insert("v", "c", 1)
        );
        for n in 0..20_000 {
            s.insert("w", "c", n);
        }
        assert_eq!((s.all.len(), s.order.len()), (MAX_INSTANCES, MAX_INSTANCES));
        assert!(!s.insert("w", "c", 19_999) && s.insert("u", "c", 1));
    }
}
