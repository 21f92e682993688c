//! Puts the parts of a log together, in its order, within a bound.

use dualplane_base::order::Order as _;
use std::collections::{BTreeMap, HashMap, VecDeque};

use super::Sifted;
use super::part::{Part, Passage};

/// Of one word in a whole log, so many of the first finds and as many of the last are kept: as many as `facts` keeps.
const KEPT: usize = crate::facts::KEPT_PER_SIGNATURE;

/// Parts of one log, so far.
#[derive(Debug)]
pub struct Merge {
    budget: usize,
    lines: u64,
    held: usize,
    omitted: u64,
    passages: BTreeMap<u64, Held>,
    next: u64,
    words: HashMap<u32, Word>,
}

#[derive(Debug)]
struct Held {
    first: u64,
    /// Finds for which it is kept.
    finds: usize,
    passage: Passage,
}

/// The finds of one word: how many of the first are kept, and the passages of the last ones.
#[derive(Debug, Default)]
struct Word {
    first: usize,
    last: VecDeque<u64>,
}

impl Merge {
    /// Keeps at most about `budget` bytes of text.
    #[must_use]
    pub fn new(budget: usize) -> Self {
        Self {
            budget,
            lines: 0,
            held: 0,
            omitted: 0,
            passages: BTreeMap::new(),
            next: 0,
            words: HashMap::new(),
        }
    }

    /// Takes the next part, in the order of the log.
    pub fn push(&mut self, part: Part) {
        self.omitted += part.omitted;
        for passage in part.passages {
            let id = self.next;
            self.next += 1;
            let mut finds = usize::from(passage.always);
            for word in &passage.words {
                let word = self.words.entry(*word).or_default();
                finds += 1;
                if word.first < KEPT {
                    word.first += 1;
                    continue;
                }
                word.last.push_back(id);
                if word.last.len() > KEPT
                    && let Some(old) = word.last.pop_front()
                {
                    self.omitted += 1;
                    if old == id {
                        finds -= 1;
                    } else {
                        release(&mut self.passages, &mut self.held, old);
                    }
                }
            }
            let first = self.lines.saturating_add_signed(passage.first);
            if finds > 0 {
                self.held += passage.text.len();
                self.passages.insert(id, Held { first, finds, passage });
            }
        }
        self.lines += part.lines;
        while self.held > self.budget && self.drop_one() {}
    }

    /// Drops the least: of the lowest rank, the one in the middle; the begin and the end of it stay.
    fn drop_one(&mut self) -> bool {
        let may_go = || self.passages.iter().filter(|(_, h)| !h.passage.always);
        let Some(rank) = may_go().map(|(_, h)| h.passage.rank).min() else { return false };
        let of_rank: Vec<u64> = may_go().filter(|(_, h)| h.passage.rank == rank).map(|(id, _)| *id).collect();
        let Some(held) = of_rank.get(of_rank.len() / 2).and_then(|id| self.passages.remove(id)) else {
            return false;
        };
        self.held -= held.passage.text.len();
        self.omitted += held.passage.words.len() as u64;
        true
    }

    /// The kept lines.
    #[must_use]
    pub fn finish(self) -> Sifted {
        let mut text = Vec::with_capacity(self.held);
        let mut numbers = Vec::new();
        let mut passages: Vec<Held> = self.passages.into_values().collect();
        passages.order_by_key(|h| h.first);
        for held in passages {
            for (i, line) in held.passage.text.split_inclusive(|b| *b == b'\n').enumerate() {
                let number = held.first + i as u64 + 1;
                // Contexts of neighbouring parts overlap.
                if numbers.last().is_none_or(|last| *last < number) {
                    numbers.push(number);
                    text.extend_from_slice(line);
                }
            }
        }
        Sifted { text, numbers: numbers.into(), lines: self.lines, omitted: self.omitted }
    }
}

/// One find fewer for a passage; the last one takes it away.
fn release(passages: &mut BTreeMap<u64, Held>, bytes: &mut usize, id: u64) {
    let Some(held) = passages.get_mut(&id) else { return };
    held.finds -= 1;
    if held.finds == 0
        && let Some(held) = passages.remove(&id)
    {
        *bytes -= held.passage.text.len();
    }
}
