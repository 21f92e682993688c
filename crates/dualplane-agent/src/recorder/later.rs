//! A verdict that failed twice: the node has no memory or no time left, and will have some again. Its bundle is kept, so it is
//! judged later, a few times and ever more rarely.

use std::time::Duration;

use dualplane_node::clock::Moment;

/// Between two tries.
const TRIES: [Duration; 4] = [
    Duration::from_secs(15),
    Duration::from_secs(2 * 60),
    Duration::from_secs(15 * 60),
    Duration::from_secs(60 * 60),
];
/// More wait only where judging fails for all.
pub(super) const MAX_LATER: usize = 256;

/// An incident whose verdict was put off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Later {
    pub(super) id: String,
    tries: usize,
    at: Moment,
}

impl Later {
    pub(super) fn of(id: &str) -> Option<Self> {
        Self { id: id.to_owned(), tries: 0, at: Moment::default() }.put_off()
    }

    /// After one more try that failed; `None` where it is given up.
    pub(super) fn again(self) -> Option<Self> {
        Self { tries: self.tries + 1, ..self }.put_off()
    }

    fn put_off(self) -> Option<Self> {
        let at = Moment::now().plus(*TRIES.get(self.tries)?);
        Some(Self { at, ..self })
    }

    pub(super) fn is_due(&self, now: Moment) -> bool {
        now >= self.at
    }
}

#[cfg(test)]
mod tests {
    use super::{Later, TRIES};
    use dualplane_node::clock::Moment;

    #[test]
    fn it_is_tried_ever_more_rarely_and_then_given_up() {
        let mut later = Later::of("a");
        for wait in TRIES {
            let one = later.unwrap();
            assert!(!one.is_due(Moment::now()) && one.is_due(Moment::now().plus(wait)));
            later = one.again();
        }
        assert_eq!(later, None);
    }
}
