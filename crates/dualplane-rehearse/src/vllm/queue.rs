//! Requests that wait, in the order in which they are admitted.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::{Phase, State};

/// The queue. Who leaves without being admitted is passed over later.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    line: VecDeque<u32>,
    /// By priority, then by coming, where that is the policy.
    heap: BinaryHeap<Reverse<(i32, u32)>>,
    by_priority: bool,
    len: u32,
}

impl Queue {
    pub(super) fn new(by_priority: bool) -> Self {
        Self { line: VecDeque::new(), heap: BinaryHeap::new(), by_priority, len: 0 }
    }

    pub(super) fn add(&mut self, number: u32, priority: i32) {
        self.len += 1;
        if self.by_priority {
            self.heap.push(Reverse((priority, number)));
        } else {
            self.line.push_back(number);
        }
    }

    /// Before all others, where the policy has an order of coming.
    pub(super) fn add_first(&mut self, number: u32, priority: i32) {
        self.len += 1;
        if self.by_priority {
            self.heap.push(Reverse((priority, number)));
        } else {
            self.line.push_front(number);
        }
    }

    /// One of them is gone and will be passed over.
    pub(super) fn leave(&mut self) {
        self.len = self.len.saturating_sub(1);
    }

    pub(super) const fn len(&self) -> u32 {
        self.len
    }

    /// The next one that still waits, without forgetting who does not.
    pub(super) fn peek(&self, states: &[State]) -> Option<u32> {
        if self.by_priority {
            // Those who left may stand before it; a heap does not iterate in order.
            return self.heap.iter().filter(|e| waits(states, e.0.1)).max().map(|e| e.0.1);
        }
        self.line.iter().copied().find(|n| waits(states, *n))
    }

    /// The next one that still waits.
    pub(super) fn first(&mut self, states: &[State]) -> Option<u32> {
        loop {
            let number =
                if self.by_priority { self.heap.peek().map(|e| e.0.1) } else { self.line.front().copied() }?;
            if waits(states, number) {
                return Some(number);
            }
            self.drop_first();
        }
    }

    /// Takes out what [`Self::first`] gave.
    pub(super) fn pop(&mut self) {
        self.drop_first();
        self.leave();
    }

    fn drop_first(&mut self) {
        if self.by_priority {
            self.heap.pop();
        } else {
            self.line.pop_front();
        }
    }
}

fn waits(states: &[State], number: u32) -> bool {
    states.get(number as usize).is_some_and(|s| matches!(s.phase, Phase::Waiting | Phase::Preempted))
}
