//! What a batch needs beside what is held already, learnt from the batches before it. Pure.
//!
//! The memory of a batch grows with its items. From each batch only two numbers are kept: its items, and how far the memory
//! rose above what was held before it. Small batches pay a fixed part that large ones share among more items, so that the need
//! is the lowest line with falling slope above all batches that were seen: none of them is underestimated, and one item does
//! not cost fifty times its fixed part in a batch of fifty. Above the largest batch its dearest rise counts in proportion, and
//! below the smallest no need is less than the smallest rise.

/// Batches that are remembered. A shape that was last seen so long ago is forgotten, so that one odd batch does not hold a
/// server back for ever.
use dualplane_base::order::Order as _;

const REMEMBERED: usize = 64;

/// A batch that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    items: u64,
    rise: u64,
}

/// The batches so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Needs {
    seen: Vec<Seen>,
    next: usize,
    most_items: u64,
    smallest: Option<u64>,
    /// The corners of the line above all batches, by items; it begins at nothing and never falls.
    line: Vec<Seen>,
}

impl Needs {
    /// A batch of so many items rose by so many bytes at its peak.
    pub(crate) fn learn(&mut self, items: u64, rise: u64) {
        let items = items.max(1);
        let seen = Seen { items, rise };
        self.most_items = self.most_items.max(items);
        if self.seen.len() < REMEMBERED {
            self.seen.push(seen);
        } else if let Some(slot) = self.seen.get_mut(self.next) {
            *slot = seen;
        }
        self.next = (self.next + 1) % REMEMBERED;
        self.smallest = self.seen.iter().map(|s| s.rise).min();
        self.line = above(&self.seen);
    }

    /// Bytes that a batch of so many items needs; `None` before the first one.
    pub(crate) fn of(&self, items: u64) -> Option<u64> {
        Some(self.on_the_line(items.max(1)).max(self.smallest?))
    }

    /// The line's value, rounded up.
    fn on_the_line(&self, items: u64) -> u64 {
        let mut left = Seen { items: 0, rise: 0 };
        for corner in &self.line {
            if items <= corner.items {
                let part = ratio(corner.rise - left.rise, items - left.items, corner.items - left.items);
                return left.rise.saturating_add(part);
            }
            left = *corner;
        }
        ratio(left.rise, items, left.items.max(1))
    }

    /// The most items, at most `wanted`, whose need is within `room`. Before anything was learnt, one: a loop that begins
    /// with its largest batch learns nothing from the kernel. Never more than twice the largest batch that was seen.
    pub(crate) fn items_within(&self, room: u64, wanted: u64) -> u64 {
        if self.smallest.is_none() {
            return wanted.min(1);
        }
        let fits = |items: u64| self.of(items).is_some_and(|need| need <= room);
        let (mut low, mut high) = (0, wanted.min(self.most_items.saturating_mul(2)));
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if fits(middle) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        low
    }
}

/// `of × part / whole`, rounded up.
fn ratio(of: u64, part: u64, whole: u64) -> u64 {
    let exact = (u128::from(of) * u128::from(part)).div_ceil(u128::from(whole.max(1)));
    u64::try_from(exact).unwrap_or(u64::MAX)
}

/// The corners of the lowest line from nothing that lies above all of them, never falls and never grows steeper.
fn above(seen: &[Seen]) -> Vec<Seen> {
    let mut sorted = seen.to_vec();
    sorted.order_by_key(|s| (s.items, s.rise));
    let mut line: Vec<Seen> = Vec::new();
    let mut highest = 0;
    for point in sorted {
        // A larger batch that rose less needs what smaller ones did.
        highest = point.rise.max(highest);
        let point = Seen { rise: highest, ..point };
        while let Some(last) = line.pop() {
            let before = line.last().copied().unwrap_or(Seen { items: 0, rise: 0 });
            if last.items < point.items && steeper(before, last, point) {
                line.push(last);
                break;
            }
        }
        line.push(point);
    }
    line
}

/// Whether the way from `a` to `b` is steeper than that from `b` to `c`.
fn steeper(a: Seen, b: Seen, c: Seen) -> bool {
    let first = u128::from(b.rise - a.rise) * u128::from(c.items - b.items);
    let second = u128::from(c.rise - b.rise) * u128::from(b.items - a.items);
    first > second
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn learnt(batches: &[(u64, u64)]) -> Needs {
        let mut needs = Needs::default();
        for (items, rise) in batches {
            needs.learn(*items, *rise);
        }
        needs
    }

    #[test]
    fn nothing_is_known_before_the_first_batch() {
        assert_eq!(Needs::default().of(8), None);
        assert_eq!(Needs::default().items_within(u64::MAX, 64), 1);
        assert_eq!(Needs::default().items_within(u64::MAX, 0), 0);
    }

    #[test]
    fn a_small_batch_pays_the_fixed_part_and_a_large_one_shares_it() {
        let needs = learnt(&[(1, 500), (50, 20_500), (2, 900)]);
        assert_eq!(needs.of(1), Some(500));
        assert_eq!(needs.of(50), Some(20_500));
        // Between the corners (1, 500) and (50, 20,500), above which (2, 900) does not rise; not 500 each.
        assert_eq!(needs.of(26), Some(10_705));
        // Beyond the largest batch in proportion to it.
        assert_eq!(needs.of(100), Some(41_000));
        assert_eq!(needs.items_within(20_500, 500), 50);
    }

    #[test]
    fn a_large_batch_that_rose_less_needs_what_small_ones_did() {
        let needs = learnt(&[(4, 400), (8, 100)]);
        assert_eq!((needs.of(8), needs.of(2)), (Some(400), Some(200)));
    }

    #[test]
    fn an_odd_batch_is_forgotten() {
        let mut needs = learnt(&[(1, 1 << 40)]);
        for _ in 0..REMEMBERED {
            needs.learn(1, 10);
        }
        assert_eq!(needs.of(1), Some(10));
    }

    proptest! {
        #[test]
        fn what_is_advised_fits(batches in prop::collection::vec((1_u64..1_000, 0_u64..1 << 40), 1..100),
                                room in 0_u64..1 << 42, wanted in 0_u64..10_000) {
            let needs = learnt(&batches);
            let advised = needs.items_within(room, wanted);
            prop_assert!(advised <= wanted);
            if advised > 0 {
                prop_assert!(needs.of(advised).is_some_and(|n| n <= room), "{:?} > {room}", needs.of(advised));
            }
        }

        #[test]
        fn more_items_never_need_less(batches in prop::collection::vec((1_u64..1_000, 0_u64..1 << 40), 1..100),
                                      a in 1_u64..10_000, b in 1_u64..10_000) {
            let needs = learnt(&batches);
            prop_assert!(needs.of(a.min(b)) <= needs.of(a.max(b)));
        }

        #[test]
        fn a_batch_that_was_seen_is_covered(batches in prop::collection::vec((1_u64..1_000, 0_u64..1 << 40), 1..60)) {
            let needs = learnt(&batches);
            for (items, rise) in batches {
                prop_assert!(needs.of(items).is_some_and(|n| n >= rise));
            }
        }
    }
}
