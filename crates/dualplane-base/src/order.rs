//! Sorting whose algorithm is compiled once.
//!
//! The standard library's sort is compiled anew for each type and comparison, 4 KiB each; with some two hundred of them it was a
//! twentieth of the program. Here places are sorted, which are always of one type, and what stands at them is moved
//! afterwards. That costs a list of places and a call through a pointer for each comparison: nothing for lists that people read.
//! Where millions are sorted, the standard library's sort stays.

use std::cmp::Ordering;

/// Orders a slice as `sort_by` and `sort_by_key` do: what is equal keeps its order.
pub trait Order<T> {
    /// By their own order.
    fn order(&mut self)
    where
        T: Ord;

    /// By a comparison.
    fn order_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering);

    /// By a key, which is made for each comparison.
    fn order_by_key<K: Ord>(&mut self, key: impl FnMut(&T) -> K);
}

impl<T> Order<T> for [T] {
    fn order(&mut self)
    where
        T: Ord,
    {
        self.order_by(T::cmp);
    }

    fn order_by(&mut self, mut compare: impl FnMut(&T, &T) -> Ordering) {
        if self.len() < 2 {
            return;
        }
        let places = sorted(self.len(), &mut |a, b| match (self.get(a), self.get(b)) {
            (Some(a), Some(b)) => compare(a, b),
            _ => Ordering::Equal,
        });
        arrange(places, &mut |a, b| self.swap(a, b));
    }

    fn order_by_key<K: Ord>(&mut self, mut key: impl FnMut(&T) -> K) {
        self.order_by(|a, b| key(a).cmp(&key(b)));
    }
}

/// The places of a list in the order of what stands there.
fn sorted(len: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut places: Vec<usize> = (0..len).collect();
    places.sort_by(|a, b| compare(*a, *b));
    places
}

/// Moves everything to its place, once each: `places` says for each place where its item stands.
fn arrange(mut places: Vec<usize>, swap: &mut dyn FnMut(usize, usize)) {
    for start in 0..places.len() {
        let mut at = start;
        // Along a circle of items that take each other's place, to where it began.
        while let Some(from) = places.get_mut(at).map(|p| std::mem::replace(p, at)) {
            if from == at || from == start {
                break;
            }
            swap(at, from);
            at = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The same as the standard library's, equal items included.
        #[test]
        fn it_is_the_order_of_the_standard_library(items in proptest::collection::vec((0_u8..9, any::<u8>()), 0..80)) {
            let (mut want, mut got) = (items.clone(), items.clone());
            want.sort_by_key(|i| i.0);
            got.order_by_key(|i| i.0);
            prop_assert_eq!(&got, &want);
            got.order();
            want.sort();
            prop_assert_eq!(&got, &want);
            let (mut want, mut got) = (items.clone(), items);
            want.sort_by_key(|i| std::cmp::Reverse(i.0));
            got.order_by(|a, b| b.0.cmp(&a.0));
            prop_assert_eq!(got, want);
        }

        /// Nothing is lost and nothing comes twice.
        #[test]
        fn items_move_and_do_not_change(items in proptest::collection::vec(any::<String>(), 0..40)) {
            let mut got = items.clone();
            got.order_by_key(|i| std::cmp::Reverse(i.clone()));
            let mut want = items;
            want.sort();
            got.reverse();
            prop_assert_eq!(got, want);
        }
    }
}
