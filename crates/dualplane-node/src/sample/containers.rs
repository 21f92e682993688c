//! The groups that are read: each keeps its slot for life, and its last values for the moment when it is gone.

use std::collections::HashMap;

use dualplane_base::order::Order as _;
use dualplane_base::units::Bytes;

use super::{RateLimits, Record, SampleEvent, Scope};
use crate::cgroup::{Depth, Found, Group, Hierarchy, Memory, Reader, Vanished};
use crate::clock::Moment;

/// A group that does not move is read as a whole only each so many rounds.
const CALM_ROUNDS: u64 = 5;
/// A move below this is noise: the kernel counts per processor in batches of 64 pages.
const STILL: u64 = 2 << 20;

/// Numbers that are looked at for a free one: twice as many as groups are found at most.
const SEARCHED: usize = 8192;

/// One group that is read.
#[derive(Debug)]
pub struct Slot {
    /// Its number in records. Given again only after 65,535 others, and never to two that live at once.
    pub number: u16,
    /// Which.
    pub group: Group,
    /// The last values.
    pub memory: Memory,
    /// When they were read.
    pub at: Moment,
    reader: Reader,
    /// Usage at the last whole reading.
    settled: Option<Bytes>,
    hot: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub struct Containers {
    slots: Vec<Slot>,
    next: u16,
    /// Groups that could not be opened, or for which no number was left.
    pub unread: u64,
    /// Files of groups that are there and could not be opened.
    pub unopened: u64,
}

impl Containers {
    /// The groups, by path.
    #[must_use]
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Takes the result of a walk: opens what is new, tells what is gone.
    pub fn update(
        &mut self,
        hierarchy: &Hierarchy,
        found: Found,
        now: Moment,
        noticed: &mut Vec<SampleEvent>,
    ) {
        let mut old: HashMap<String, Slot> =
            self.slots.drain(..).map(|s| (s.group.path().to_owned(), s)).collect();
        for group in found.groups {
            if let Some(slot) = old.remove(group.path()) {
                self.slots.push(slot);
                continue;
            }
            let number = free(self.next, |n| self.slots.iter().chain(old.values()).any(|s| s.number == n));
            let (Ok(reader), Some(number)) = (Reader::open(hierarchy, &group), number) else {
                self.unread += 1;
                continue;
            };
            self.next = number.wrapping_add(1);
            self.unopened += u64::from(reader.unopened());
            noticed.push(SampleEvent::Appeared { slot: number, group: group.clone() });
            self.slots.push(Slot {
                number,
                group,
                memory: Memory::default(),
                at: now,
                reader,
                settled: None,
                hot: false,
            });
        }
        let mut gone: Vec<Slot> = old.into_values().collect();
        gone.order_by_key(|s| s.number);
        noticed.extend(gone.into_iter().map(|s| SampleEvent::vanished(&s)));
    }

    /// Looks which groups are gone, by their usage alone.
    pub fn check(&mut self, buffer: &mut [u8], noticed: &mut Vec<SampleEvent>) {
        self.slots.retain_mut(|s| {
            let lives = s.reader.read(Depth::Usage, buffer, &mut s.memory).is_ok();
            if !lives {
                noticed.push(SampleEvent::vanished(s));
            }
            lives
        });
    }

    /// Reads a container that has just come. That it vanished meanwhile is told by the next round.
    pub fn first(&mut self, number: u16, buffer: &mut [u8], out: &mut Vec<Record>) {
        let Some(s) = self.slots.iter_mut().find(|s| s.number == number) else { return };
        let at = Moment::now();
        if s.reader.read(Depth::Full, buffer, &mut s.memory).is_ok() {
            (s.at, s.settled) = (at, s.memory.current);
            out.push(Record::container(number, at, Depth::Full, &s.memory));
        }
    }

    /// Reads one round. `true` where something moves fast or is close to its limit.
    pub fn read(
        &mut self,
        scope: Scope,
        round: u64,
        limits: &RateLimits,
        buffer: &mut [u8],
        out: &mut Vec<Record>,
        noticed: &mut Vec<SampleEvent>,
    ) -> bool {
        let mut moving = false;
        self.slots.retain_mut(|s| {
            if scope == Scope::Hot && !s.hot {
                return true;
            }
            let kept = s.read(round, limits, buffer, out, noticed);
            moving |= kept && s.hot;
            if !kept {
                noticed.push(SampleEvent::vanished(s));
            }
            kept
        });
        moving
    }
}

impl Slot {
    fn read(
        &mut self,
        round: u64,
        limits: &RateLimits,
        buffer: &mut [u8],
        out: &mut Vec<Record>,
        noticed: &mut Vec<SampleEvent>,
    ) -> bool {
        let (before, at) = (self.memory, Moment::now());
        // Spread over rounds, so that no round reads all that is still.
        let turn = self.hot || (round + u64::from(self.number)).is_multiple_of(CALM_ROUNDS);
        let Ok((depth, kills)) = self.look(turn, &before, buffer) else { return false };
        // The first reading of a group tells its state, not a kill that happened now.
        if kills > 0 && before.oom_kill.is_some() {
            noticed.push(SampleEvent::OomKills { slot: self.number, kills });
        }
        self.hot = is_hot(&before, &self.memory, at.since(self.at).as_millis(), limits);
        self.at = at;
        out.push(Record::container(self.number, at, depth, &self.memory));
        true
    }
}

impl Slot {
    /// Reads as deep as it is worth: a group whose usage is the same to the byte had no kill; if it had, the next turn tells.
    fn look(&mut self, turn: bool, before: &Memory, buffer: &mut [u8]) -> Result<(Depth, u64), Vanished> {
        let m = &mut self.memory;
        self.reader.usage(buffer, m)?;
        if !turn && m.current == before.current && m.current.is_some() {
            return Ok((Depth::Usage, 0));
        }
        self.reader.events(buffer, m)?;
        let kills = m.oom_kill.unwrap_or(0).saturating_sub(before.oom_kill.unwrap_or(0));
        let apart = match (m.current, self.settled) {
            (Some(now), Some(then)) => now.0.abs_diff(then.0),
            _ => u64::MAX,
        };
        if !turn && kills == 0 && apart < STILL {
            return Ok((Depth::Quick, 0));
        }
        self.reader.statistics(buffer, m)?;
        self.settled = m.current;
        Ok((Depth::Full, kills))
    }
}

/// The next number that no living group has; the last one stands for "none" elsewhere. There are never so many groups that
/// all numbers of a search are taken.
fn free(from: u16, taken: impl Fn(u16) -> bool) -> Option<u16> {
    let all = (0..=u16::MAX).map(|i| from.wrapping_add(i)).take(SEARCHED);
    all.filter(|n| *n != u16::MAX).find(|n| !taken(*n))
}

/// Moves fast, or is close to its limit.
fn is_hot(before: &Memory, now: &Memory, ms: u128, limits: &RateLimits) -> bool {
    let limit = now.limit.and_then(crate::cgroup::Limit::bytes);
    let near = now
        .working_set()
        .zip(limit)
        .is_some_and(|(w, l)| u128::from(w.0) * 1000 >= u128::from(l.0) * u128::from(limits.near_permille));
    let moved = before.current.zip(now.current).is_some_and(|(a, b)| {
        let fast = limit.map_or(limits.fast_bytes, |l| {
            (u128::from(l.0) * u128::from(limits.fast_permille) / 1000).try_into().unwrap_or(u64::MAX)
        });
        // Within a second; a move that began before the first of fast rounds is not one of each of them.
        let per_second = u128::from(a.0.abs_diff(b.0)) * 1000 / ms.max(1);
        per_second >= u128::from(fast.max(STILL))
    });
    near || moved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_begin_again_and_pass_over_the_living() {
        assert_eq!(free(7, |_| false), Some(7));
        assert_eq!(free(u16::MAX, |_| false), Some(0));
        assert_eq!(free(u16::MAX - 1, |n| n < 3 || n == u16::MAX - 1), Some(3));
        assert_eq!(free(0, |_| true), None);
    }
}
