//! Blocks of a request: how many a step needs, what of a prompt stands in the cache, and what is given back.

use super::{NO_SEAT, Phase, Scheduler, Seat};
use crate::pool::NULL;
use crate::request::is_own;
use crate::settings::Keeps;

impl Scheduler<'_> {
    /// Takes the blocks for so many more tokens; `false` where they are not there.
    ///
    /// `hit` is how many tokens of a request that waits stand in the cache, in the blocks of `found`.
    pub(super) fn allocate(&mut self, number: u32, more: u32, hit: u32) -> bool {
        let Some(s) = self.states.get(number as usize).copied() else { return false };
        let waits = s.phase != Phase::Running;
        let total = s.computed.saturating_add(hit).saturating_add(more).min(self.set.max_model_len);
        if !waits && total <= s.quiet {
            return true;
        }
        let spare = if waits && !self.running.is_empty() { self.set.watermark_blocks } else { 0 };
        let computed = s.computed.saturating_add(hit).min(self.set.max_model_len);
        if waits && self.set.whole_prompt_must_fit {
            let whole = self.needed(&s, s.tokens().min(self.set.max_model_len), computed, true);
            if whole.saturating_add(spare) > self.pool.free() {
                return false;
            }
        }
        if !waits {
            self.give_back(s.seat, computed.saturating_sub(s.in_flight));
        }
        let need = self.needed(&s, total, computed, false);
        if need.saturating_add(spare) > self.pool.free() {
            return false;
        }
        let seat = if s.seat == NO_SEAT { self.sit(number, computed) } else { s.seat };
        self.take(seat, total);
        self.name(number, seat, total.min(s.tokens()));
        let quiet = self.quiet(seat);
        if let Some(s) = self.states.get_mut(number as usize) {
            (s.seat, s.quiet) = (seat, quiet);
        }
        true
    }

    /// Blocks that must be free for so many tokens in all.
    fn needed(&self, s: &super::State, total: u32, computed: u32, at_admission: bool) -> u32 {
        let mut sum = 0_u32;
        for (g, group) in self.set.groups.iter().enumerate() {
            let mut required = group.blocks(total);
            if at_admission {
                required = required.min(group.most_blocks(&self.set));
            }
            if let Some(table) = self.seats.get(s.seat as usize).and_then(|x| x.tables.get(g)) {
                sum = sum.saturating_add(required.saturating_sub(table.len() as u32));
                continue;
            }
            let found = self.found.get(g).map_or(&[][..], Vec::as_slice);
            let skipped = group.skipped(computed) / group.block_size.max(1);
            let have = skipped.max(found.len() as u32);
            let revived = found.iter().skip(skipped as usize).filter(|id| self.pool.is_free(**id)).count();
            sum = sum.saturating_add(required.saturating_sub(have)).saturating_add(revived as u32);
        }
        sum
    }

    /// A place for a request that is admitted, with what the cache has of it.
    fn sit(&mut self, number: u32, computed: u32) -> u32 {
        let seat = self.free_seats.pop().unwrap_or_else(|| {
            let groups = self.set.groups.len();
            self.seats.push(Seat { tables: vec![Vec::new(); groups], named: vec![0; groups] });
            self.seats.len().saturating_sub(1) as u32
        });
        let Some(place) = self.seats.get_mut(seat as usize) else { return seat };
        for (g, group) in self.set.groups.iter().enumerate() {
            let (Some(table), Some(named), Some(found)) =
                (place.tables.get_mut(g), place.named.get_mut(g), self.found.get_mut(g))
            else {
                continue;
            };
            table.clear();
            let skipped = (group.skipped(computed) / group.block_size.max(1)) as usize;
            table.resize(skipped, NULL);
            for id in found.drain(..).skip(skipped) {
                self.pool.hold(id);
                table.push(id);
            }
            *named = table.len() as u32;
        }
        if let Some(s) = self.states.get_mut(number as usize) {
            s.seat = seat;
        }
        seat
    }

    /// Blocks for so many tokens; that they are free was seen before.
    fn take(&mut self, seat: u32, total: u32) {
        let Some(place) = self.seats.get_mut(seat as usize) else { return };
        for (group, table) in self.set.groups.iter().zip(&mut place.tables) {
            let required = group.blocks(total) as usize;
            while table.len() < required {
                let Some(id) = self.pool.take() else { return };
                table.push(id);
            }
        }
    }

    /// Names the blocks that so many tokens fill: their content can be found from now on.
    pub(super) fn name(&mut self, number: u32, seat: u32, tokens: u32) {
        if !self.set.prefix_caching {
            return;
        }
        let (Some(request), Some(place)) =
            (self.requests.get(number as usize), self.seats.get_mut(seat as usize))
        else {
            return;
        };
        let again = self.states.get(number as usize).is_none_or(|s| s.preempted > 0);
        let unasked = !again && matches!(self.set.groups.as_slice(), [g] if g.keeps == Keeps::All);
        for (g, group) in self.set.groups.iter().enumerate() {
            let (Some(table), Some(named)) = (place.tables.get(g), place.named.get_mut(g)) else { continue };
            let full = tokens / group.block_size.max(1);
            for index in *named..full {
                if let Some(id) = table.get(index as usize) {
                    let name = request.content(number, g as u32, index, group.block_size);
                    if unasked && is_own(name) {
                        // Only this request can ask for it, when it has lost its blocks. Most never do.
                        self.stored += 1;
                        self.pool.name_unasked(*id, name);
                        continue;
                    }
                    self.stored += u64::from(self.pool.find(name).is_none());
                    self.pool.name(*id, name);
                }
            }
            *named = full.max(*named);
        }
    }

    /// Gives back what no later token looks at.
    fn give_back(&mut self, seat: u32, computed: u32) {
        let Some(place) = self.seats.get_mut(seat as usize) else { return };
        for (group, table) in self.set.groups.iter().zip(&mut place.tables) {
            let upto = ((group.skipped(computed) / group.block_size.max(1)) as usize).min(table.len());
            let from = table.iter().take(upto).rposition(|id| *id == NULL).map_or(0, |i| i + 1);
            let Some(gone) = table.get_mut(from..upto).filter(|g| !g.is_empty()) else { continue };
            self.pool.release(gone.iter().rev().copied());
            gone.fill(NULL);
        }
    }

    /// Up to how many tokens no block is taken, given back or named.
    fn quiet(&self, seat: u32) -> u32 {
        let Some(place) = self.seats.get(seat as usize) else { return 0 };
        let mut quiet = u32::MAX;
        for (g, group) in self.set.groups.iter().enumerate() {
            let size = group.block_size.max(1);
            let held = place.tables.get(g).map_or(0, Vec::len) as u32;
            match group.keeps {
                Keeps::Fixed(_) => continue,
                Keeps::All => quiet = quiet.min(held.saturating_mul(size)),
                // Blocks are given back in between.
                Keeps::Window(_) | Keeps::Chunk(_) => return 0,
            }
            if self.set.prefix_caching {
                let named = place.named.get(g).copied().unwrap_or(0);
                quiet = quiet.min(named.saturating_add(1).saturating_mul(size).saturating_sub(1));
            }
        }
        quiet
    }

    /// A request that loses its blocks may ask for what they hold.
    pub(super) fn ask_again(&mut self, number: u32) {
        let Some(s) = self.states.get(number as usize) else { return };
        for table in self.seats.get(s.seat as usize).iter().flat_map(|s| &s.tables) {
            self.pool.find_all(table);
        }
    }

    /// A request lets go of all it has.
    pub(super) fn free(&mut self, number: u32) {
        let Some(s) = self.states.get_mut(number as usize) else { return };
        let seat = std::mem::replace(&mut s.seat, NO_SEAT);
        s.quiet = 0;
        let Some(place) = self.seats.get_mut(seat as usize) else { return };
        for table in &mut place.tables {
            self.pool.release(table.iter().rev().copied());
            table.clear();
        }
        self.free_seats.push(seat);
    }

    /// Tokens at the beginning of a request that stand in the cache, at most all but one; their blocks are in `found` then.
    pub(super) fn look_up(&mut self, number: u32) -> u32 {
        for f in &mut self.found {
            f.clear();
        }
        let (Some(request), Some(s)) = (self.requests.get(number as usize), self.states.get(number as usize))
        else {
            return 0;
        };
        if !self.set.prefix_caching {
            return 0;
        }
        let most = s.tokens().saturating_sub(1);
        let [group] = self.set.groups.as_slice() else { return self.look_up_groups(number, most) };
        let (size, Some(found)) = (group.block_size.max(1), self.found.first_mut()) else { return 0 };
        if group.keeps != Keeps::All {
            return self.look_up_groups(number, most);
        }
        for index in 0..most / size {
            let Some(id) = self.pool.find(request.content(number, 0, index, size)) else { break };
            found.push(id);
        }
        (found.len() as u32).saturating_mul(size)
    }

    /// The longest beginning that every group has: all of it where a group keeps all, its last window where it keeps that.
    fn look_up_groups(&mut self, number: u32, most: u32) -> u32 {
        let Some(request) = self.requests.get(number as usize) else { return 0 };
        let groups = &self.set.groups;
        let step = groups.iter().map(|g| g.block_size.max(1)).fold(1, lcm);
        if groups.iter().any(|g| matches!(g.keeps, Keeps::Fixed(_))) {
            return 0;
        }
        let mut length = most / step * step;
        'shorter: while length > 0 {
            for (g, group) in groups.iter().enumerate() {
                let size = group.block_size.max(1);
                let from = match group.keeps {
                    Keeps::Window(w) => (length / size).saturating_sub(w.saturating_sub(1).div_ceil(size)),
                    _ => group.skipped(length) / size,
                };
                let all = (from..length / size)
                    .rev()
                    .find(|i| self.pool.find(request.content(number, g as u32, *i, size)).is_none());
                if let Some(missing) = all {
                    // Nothing that looks at this block can be a hit; where everything is kept, nothing behind it either.
                    let bound = match group.keeps {
                        Keeps::All => missing.saturating_mul(size),
                        _ => length.saturating_sub(step),
                    };
                    length = bound.min(length.saturating_sub(step)) / step * step;
                    continue 'shorter;
                }
            }
            break;
        }
        for (g, group) in groups.iter().enumerate() {
            let size = group.block_size.max(1);
            let skipped = group.skipped(length) / size;
            if let Some(found) = self.found.get_mut(g) {
                found.extend((0..length / size).map(|i| {
                    if i < skipped {
                        NULL
                    } else {
                        self.pool.find(request.content(number, g as u32, i, size)).unwrap_or(NULL)
                    }
                }));
            }
        }
        length
    }
}

fn lcm(a: u32, b: u32) -> u32 {
    let (mut x, mut y) = (a.max(1), b.max(1));
    while y != 0 {
        (x, y) = (y, x % y);
    }
    (a / x).saturating_mul(b)
}
