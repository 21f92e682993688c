//! The blocks of the KV cache: which are held, which are free and still hold something, and in what order free ones are taken.
//!
//! As vLLM's block pool: one list of free blocks; a block whose content nobody can ask for again returns to its front, one with
//! a name for its content to its back, so that what was used longest ago is overwritten first.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The null block: stands where a request has given a block back.
pub(crate) const NULL: u32 = 0;
const NONE: u32 = u32::MAX;
/// No name.
const NAMELESS: u64 = u64::MAX;

/// Names are made of two small numbers; one multiplication spreads them.
#[derive(Debug, Default, Clone, Copy)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for b in bytes {
            self.write_u64(u64::from(*b));
        }
    }

    fn write_u64(&mut self, n: u64) {
        let x = (self.0 ^ n).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = x ^ (x >> 29);
    }
}

/// One block.
#[derive(Debug, Clone, Copy)]
struct Block {
    /// Requests that hold it.
    refs: u32,
    /// Neighbours in the list of free blocks.
    before: u32,
    after: u32,
    /// Neighbours among blocks of the same name, in the order in which they got it.
    elder: u32,
    younger: u32,
    name: u64,
    /// Whether it is found by its name.
    found: bool,
}

/// First and last block of a name.
#[derive(Debug, Clone, Copy)]
struct Namesakes {
    first: u32,
    last: u32,
}

/// The blocks.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    blocks: Vec<Block>,
    /// First and last free block.
    front: u32,
    back: u32,
    free: u32,
    named: HashMap<u64, Namesakes, BuildHasherDefault<Mix>>,
    caching: bool,
    unnamed_first: bool,
}

impl Pool {
    pub(crate) fn new(blocks: u32, caching: bool, unnamed_first: bool) -> Self {
        let last = blocks.saturating_sub(1);
        let at = |i: u32| Block {
            refs: 0,
            before: if i <= 1 { NONE } else { i - 1 },
            after: if i == 0 || i == last { NONE } else { i + 1 },
            elder: NONE,
            younger: NONE,
            name: NAMELESS,
            found: false,
        };
        Self {
            blocks: (0..blocks).map(at).collect(),
            front: if blocks > 1 { 1 } else { NONE },
            back: if blocks > 1 { last } else { NONE },
            free: last,
            named: HashMap::default(),
            caching,
            unnamed_first,
        }
    }

    pub(crate) const fn free(&self) -> u32 {
        self.free
    }

    pub(crate) fn used(&self) -> u32 {
        (self.blocks.len() as u32).saturating_sub(1).saturating_sub(self.free)
    }

    fn get(&self, id: u32) -> Option<Block> {
        self.blocks.get(id as usize).copied()
    }

    fn with(&mut self, id: u32, change: impl FnOnce(&mut Block)) {
        if let Some(b) = self.blocks.get_mut(id as usize) {
            change(b);
        }
    }

    /// The block of this name that has had it longest.
    pub(crate) fn find(&self, name: u64) -> Option<u32> {
        self.named.get(&name).map(|n| n.first)
    }

    /// Whether nobody holds it.
    pub(crate) fn is_free(&self, id: u32) -> bool {
        id != NULL && self.get(id).is_some_and(|b| b.refs == 0)
    }

    /// The next free block, whose content is lost.
    pub(crate) fn take(&mut self) -> Option<u32> {
        let id = self.front;
        let b = self.get(id)?;
        self.unlink(id, b);
        self.forget(id);
        self.with(id, |b| b.refs = 1);
        Some(id)
    }

    /// One more request holds it.
    pub(crate) fn hold(&mut self, id: u32) {
        let Some(b) = self.get(id).filter(|_| id != NULL) else { return };
        if b.refs == 0 {
            self.unlink(id, b);
        }
        self.with(id, |b| b.refs += 1);
    }

    /// Its content gets a name.
    pub(crate) fn name(&mut self, id: u32, name: u64) {
        let Some(b) = self.get(id).filter(|_| id != NULL && self.caching) else { return };
        if b.name != NAMELESS {
            return;
        }
        self.with(id, |b| b.name = name);
        self.list(id, name);
    }

    /// Its content gets a name that nobody asks for before [`Self::find_all`].
    pub(crate) fn name_unasked(&mut self, id: u32, name: u64) {
        if id != NULL && self.caching && self.get(id).is_some_and(|b| b.name == NAMELESS) {
            self.with(id, |b| b.name = name);
        }
    }

    /// From now on these are found by their names.
    pub(crate) fn find_all(&mut self, ids: &[u32]) {
        for id in ids {
            if let Some(b) = self.get(*id).filter(|b| b.name != NAMELESS && !b.found) {
                self.list(*id, b.name);
            }
        }
    }

    fn list(&mut self, id: u32, name: u64) {
        let elder = match self.named.get_mut(&name) {
            Some(n) => std::mem::replace(&mut n.last, id),
            None => {
                self.named.insert(name, Namesakes { first: id, last: id });
                NONE
            }
        };
        self.with(elder, |e| e.younger = id);
        self.with(id, |b| (b.elder, b.younger, b.found) = (elder, NONE, true));
    }

    /// A request lets go of these blocks; the first is overwritten first.
    pub(crate) fn release(&mut self, ids: impl DoubleEndedIterator<Item = u32> + Clone) {
        // What has no name goes to the front in the given order, so the last of them is put there first.
        for id in ids.clone() {
            self.with(id, |b| b.refs = b.refs.saturating_sub(1));
        }
        let first = self.unnamed_first;
        let to_front = |b: &Block| first && b.name == NAMELESS;
        for id in ids.clone().rev() {
            match self.get(id) {
                Some(b) if id != NULL && b.refs == 0 && to_front(&b) => self.link_front(id),
                _ => {}
            }
        }
        for id in ids {
            match self.get(id) {
                Some(b) if id != NULL && b.refs == 0 && !to_front(&b) => self.link_back(id),
                _ => {}
            }
        }
    }

    fn link_front(&mut self, id: u32) {
        let old = std::mem::replace(&mut self.front, id);
        self.with(id, |b| (b.before, b.after) = (NONE, old));
        if old == NONE {
            self.back = id;
        } else {
            self.with(old, |b| b.before = id);
        }
        self.free += 1;
    }

    fn link_back(&mut self, id: u32) {
        let old = std::mem::replace(&mut self.back, id);
        self.with(id, |b| (b.before, b.after) = (old, NONE));
        if old == NONE {
            self.front = id;
        } else {
            self.with(old, |b| b.after = id);
        }
        self.free += 1;
    }

    fn unlink(&mut self, id: u32, b: Block) {
        if b.before == NONE {
            self.front = b.after;
        } else {
            self.with(b.before, |x| x.after = b.after);
        }
        if b.after == NONE {
            self.back = b.before;
        } else {
            self.with(b.after, |x| x.before = b.before);
        }
        self.with(id, |x| (x.before, x.after) = (NONE, NONE));
        self.free = self.free.saturating_sub(1);
    }

    fn forget(&mut self, id: u32) {
        let Some(b) = self.get(id).filter(|b| b.name != NAMELESS) else { return };
        if !b.found {
            self.with(id, |b| b.name = NAMELESS);
            return;
        }
        match (b.elder, b.younger) {
            (NONE, NONE) => {
                self.named.remove(&b.name);
            }
            (elder, younger) => {
                self.with(elder, |e| e.younger = younger);
                self.with(younger, |y| y.elder = elder);
                if let Some(n) = self.named.get_mut(&b.name) {
                    if elder == NONE {
                        n.first = younger;
                    }
                    if younger == NONE {
                        n.last = elder;
                    }
                }
            }
        }
        self.with(id, |b| (b.name, b.elder, b.younger, b.found) = (NAMELESS, NONE, NONE, false));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_can_ask_for_is_overwritten_first() {
        let mut p = Pool::new(6, true, true);
        let ids: Vec<u32> = (0..4).filter_map(|_| p.take()).collect();
        assert_eq!((ids.as_slice(), p.free(), p.used()), (&[1, 2, 3, 4][..], 1, 4));
        p.name(1, 10);
        p.name(2, 20);
        p.release(ids.iter().rev().copied());
        // 4 and 3 have no name, 5 was never used, and of the named ones the tail goes first.
        let order: Vec<u32> = std::iter::from_fn(|| p.take()).collect();
        assert_eq!(order, [4, 3, 5, 2, 1]);
        assert_eq!((p.find(10), p.find(20), p.free()), (None, None, 0));
    }

    #[test]
    fn the_oldest_of_a_name_is_found_and_the_next_when_it_is_gone() {
        let mut p = Pool::new(4, true, true);
        let (a, b, c) = (p.take().unwrap(), p.take().unwrap(), p.take().unwrap());
        for id in [a, b, c] {
            p.name(id, 7);
        }
        assert_eq!(p.find(7), Some(a));
        p.release([b].into_iter());
        assert_eq!(p.take(), Some(b));
        assert_eq!(p.find(7), Some(a));
        p.release([a].into_iter());
        assert_eq!(p.take(), Some(a));
        assert_eq!(p.find(7), Some(c));
        p.hold(c);
        p.release([c].into_iter());
        assert!(!p.is_free(c));
        p.release([c].into_iter());
        assert!(p.is_free(c));
    }
}
