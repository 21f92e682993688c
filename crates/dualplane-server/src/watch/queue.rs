//! What waits for its time, in the order in which it came, within a bound.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};

/// A queue of one thread, whose items are due so long after they came.
#[derive(Debug)]
pub(super) struct Queue<T> {
    items: RefCell<VecDeque<(Instant, T)>>,
    new: Notify,
    after: Duration,
    most: usize,
    refused: Cell<bool>,
    room: watch::Sender<()>,
}

impl<T> Queue<T> {
    /// For `most` items, each due `after` it came.
    pub(super) fn new(after: Duration, most: usize) -> Self {
        Self {
            items: RefCell::default(),
            new: Notify::new(),
            after,
            most,
            refused: Cell::new(false),
            room: watch::Sender::new(()),
        }
    }

    /// Whether there was room for it.
    pub(super) fn push(&self, item: T) -> bool {
        let mut items = self.items.borrow_mut();
        if items.len() >= self.most {
            self.refused.set(true);
            return false;
        }
        items.push_back((Instant::now() + self.after, item));
        self.new.notify_one();
        true
    }

    /// Changes when something was refused and there is room again.
    pub(super) fn room(&self) -> watch::Receiver<()> {
        self.room.subscribe()
    }

    /// The next item, when it is due.
    pub(super) async fn next(&self) -> T {
        loop {
            let first = self.items.borrow().front().map(|(due, _)| *due);
            match first {
                Some(due) if due <= Instant::now() => {
                    let taken = self.items.borrow_mut().pop_front();
                    if let Some((_, item)) = taken {
                        // Others wait for the one behind it.
                        self.new.notify_one();
                        if self.items.borrow().len() <= self.most / 2 && self.refused.replace(false) {
                            self.room.send_replace(());
                        }
                        return item;
                    }
                }
                Some(due) => sleep_until(due).await,
                None => self.new.notified().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn items_come_in_order_when_they_are_due_and_none_twice() {
        let queue = Queue::new(Duration::from_secs(3), 4);
        let began = Instant::now();
        let taken = RefCell::new(Vec::new());
        let worker = || async {
            loop {
                let item: u32 = queue.next().await;
                taken.borrow_mut().push((item, began.elapsed().as_secs()));
            }
        };
        let room = queue.room();
        let feed = async {
            for n in 0..3 {
                assert!(queue.push(n));
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            tokio::time::sleep(Duration::from_secs(10)).await;
            assert!(!room.has_changed().unwrap(), "nothing was refused");
            assert!((3..7).all(|n| queue.push(n)) && !queue.push(7) && !room.has_changed().unwrap());
            tokio::time::sleep(Duration::from_secs(10)).await;
            assert!(room.has_changed().unwrap());
        };
        tokio::select! { () = feed => {}, () = worker() => {}, () = worker() => {} }
        let (items, times): (Vec<_>, Vec<_>) = taken.into_inner().into_iter().unzip();
        assert_eq!(items, [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(times, [3, 4, 5, 16, 16, 16, 16]);
    }
}
