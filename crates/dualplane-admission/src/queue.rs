//! Who waits, and who is next: by tenant with weights, within a tenant by priority, then deadline, then arrival.
//!
//! Each tenant has a virtual time that grows by what is sent of it over its weight; the one that is furthest behind is next.
//! A tenant that had nothing to send does not save up: it begins where the others are.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::Ms;
use crate::arithmetic::real;
use crate::decision::Ticket;

/// Others may pass a request that does not fit for so long, and while they are not further ahead than by its own size; then
/// it is waited for. Without this the longest request of a busy server would wait for ever, with 0 a short one would never
/// use the room that a long one cannot.
pub const PATIENCE: Ms = 500;

/// So many are looked at for one that can go beside the one that is waited for.
const LOOK: usize = 64;

/// One that waits.
#[derive(Debug, Clone, PartialEq)]
pub struct Waiting<T> {
    /// Its number.
    pub ticket: Ticket,
    /// Higher goes first, within its tenant.
    pub priority: u8,
    /// When it came.
    pub since: Ms,
    /// Until when it waits.
    pub deadline: Ms,
    /// What it counts in fairness: tokens, or 1.
    pub weight: u64,
    /// Bytes that it keeps in this program while it waits.
    pub bytes: u64,
    /// What the caller needs to send it.
    pub what: T,
}

/// The first in order that does not fit.
struct Stuck<'a, T> {
    of: &'a str,
    waits: &'a Waiting<T>,
    /// It was passed long enough: others go beside it, or not.
    over: bool,
}

/// Order within a tenant.
type Key = (Reverse<u8>, Ms, Ticket);

#[derive(Debug, Clone)]
struct Lane<T> {
    weight: f64,
    /// What was sent over the weight.
    virtual_time: f64,
    waiting: BTreeMap<Key, Waiting<T>>,
    bytes: u64,
    sum: u64,
}

/// Who waits in one pool.
#[derive(Debug, Clone)]
pub struct Queue<T> {
    lanes: BTreeMap<String, Lane<T>>,
    /// Where tenants begin that had nothing to send.
    virtual_time: f64,
    deadlines: BTreeSet<(Ms, Ticket)>,
    /// By ticket: the tenant, and where in its lane.
    places: BTreeMap<Ticket, (String, Key)>,
    bytes: u64,
    sum: u64,
    /// The first in order that does not fit, and since when.
    blocked: Option<(Ticket, Ms)>,
    /// The first in order that did not fit at the last look.
    stuck: Option<Ticket>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            lanes: BTreeMap::new(),
            virtual_time: 0.0,
            deadlines: BTreeSet::new(),
            places: BTreeMap::new(),
            bytes: 0,
            sum: 0,
            blocked: None,
            stuck: None,
        }
    }
}

impl<T> Queue<T> {
    /// Requests that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Bytes that wait.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What waits, in tokens.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Requests, bytes and tokens of one tenant that wait.
    #[must_use]
    pub fn of(&self, tenant: &str) -> (usize, u64, u64) {
        self.lanes.get(tenant).map_or((0, 0, 0), |l| (l.waiting.len(), l.bytes, l.sum))
    }

    /// Tenants with somebody who waits, with their requests.
    pub fn tenants(&self) -> impl Iterator<Item = (&str, usize)> {
        self.lanes.iter().filter(|(_, l)| !l.waiting.is_empty()).map(|(t, l)| (t.as_str(), l.waiting.len()))
    }

    /// Share of the service that a tenant gets while all wait that wait now.
    #[must_use]
    pub fn share_of(&self, tenant: &str, weight: f64) -> f64 {
        let others = self.lanes.iter().filter(|(t, l)| t.as_str() != tenant && !l.waiting.is_empty());
        let all: f64 = weight + others.map(|(_, l)| l.weight).sum::<f64>();
        if all > 0.0 { weight / all } else { 1.0 }
    }

    /// Adds one that waits.
    pub fn push(&mut self, tenant: &str, weight: f64, waiting: Waiting<T>) {
        let begin = self.virtual_time;
        let Some(lane) = self.lane(tenant, weight) else { return };
        if lane.waiting.is_empty() {
            lane.virtual_time = lane.virtual_time.max(begin);
        }
        let key = (Reverse(waiting.priority), waiting.deadline, waiting.ticket);
        lane.bytes = lane.bytes.saturating_add(waiting.bytes);
        lane.sum = lane.sum.saturating_add(waiting.weight);
        self.bytes = self.bytes.saturating_add(waiting.bytes);
        self.sum = self.sum.saturating_add(waiting.weight);
        self.deadlines.insert((waiting.deadline, waiting.ticket));
        self.places.insert(waiting.ticket, (tenant.to_owned(), key));
        if let Some(lane) = self.lanes.get_mut(tenant) {
            lane.waiting.insert(key, waiting);
        }
    }

    fn lane(&mut self, tenant: &str, weight: f64) -> Option<&mut Lane<T>> {
        let begin = self.virtual_time;
        if !self.lanes.contains_key(tenant) {
            let (waiting, bytes, sum) = (BTreeMap::new(), 0, 0);
            self.lanes.insert(tenant.to_owned(), Lane { weight, virtual_time: begin, waiting, bytes, sum });
        }
        let lane = self.lanes.get_mut(tenant)?;
        lane.weight = if weight > 0.0 { weight } else { 1.0 };
        Some(lane)
    }

    /// Counts what was sent of a tenant, whether or not it waited. `holds` says what a tenant holds of the servers now, this
    /// included.
    pub fn charge(&mut self, tenant: &str, weight: f64, sent: u64, holds: impl Fn(&str) -> u64) {
        let begin = self.virtual_time;
        let Some(lane) = self.lane(tenant, weight) else { return };
        lane.virtual_time = lane.virtual_time.max(begin) + real(sent) / lane.weight;
        let active = self.lanes.values().filter(|l| !l.waiting.is_empty()).map(|l| l.virtual_time);
        // Those who wait are never behind the time at which others begin.
        if let Some(least) = active.reduce(f64::min) {
            self.virtual_time = self.virtual_time.max(least);
        }
        self.forgive(holds);
    }

    /// While nobody waits, what a tenant took is no debt but for what it still holds. And a tenant that is ahead and gone is
    /// remembered until the others are there, too.
    pub fn forgive(&mut self, holds: impl Fn(&str) -> u64) {
        let now = self.virtual_time;
        if self.is_empty() {
            for (tenant, lane) in &mut self.lanes {
                lane.virtual_time = lane.virtual_time.min(now + real(holds(tenant)) / lane.weight);
            }
        }
        self.lanes.retain(|_, l| !l.waiting.is_empty() || l.virtual_time > now);
    }

    /// Takes one out, wherever it stands.
    pub fn remove(&mut self, ticket: Ticket) -> Option<(String, Waiting<T>)> {
        let (tenant, key) = self.places.remove(&ticket)?;
        let lane = self.lanes.get_mut(&tenant)?;
        let waiting = lane.waiting.remove(&key)?;
        lane.bytes = lane.bytes.saturating_sub(waiting.bytes);
        lane.sum = lane.sum.saturating_sub(waiting.weight);
        self.bytes = self.bytes.saturating_sub(waiting.bytes);
        self.sum = self.sum.saturating_sub(waiting.weight);
        self.deadlines.remove(&(waiting.deadline, ticket));
        Some((tenant, waiting))
    }

    /// Takes out one whose time is over.
    pub fn expired(&mut self, now: Ms) -> Option<(String, Waiting<T>)> {
        let (deadline, ticket) = self.deadlines.first().copied()?;
        if deadline > now { None } else { self.remove(ticket) }
    }

    /// When the next one's time is over.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Ms> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// The newest of the tenant that keeps the most bytes for its weight, if that is another than `tenant` and keeps more than
    /// it would with `bytes` more.
    pub fn push_out(&mut self, tenant: &str, weight: f64, bytes: u64) -> Option<(String, Waiting<T>)> {
        let part = |l: &Lane<T>| real(l.bytes.saturating_add(l.sum)) / l.weight;
        let most = self.lanes.iter().filter(|(_, l)| !l.waiting.is_empty());
        let (heaviest, lane) = most.max_by(|(_, a), (_, b)| part(a).total_cmp(&part(b)))?;
        let (_, own_bytes, own_sum) = self.of(tenant);
        let own =
            real(own_bytes.saturating_add(own_sum).saturating_add(bytes)) / weight.max(f64::MIN_POSITIVE);
        if heaviest == tenant || part(lane) <= own {
            return None;
        }
        let newest = lane.waiting.values().max_by_key(|w| (Reverse(w.priority), w.ticket))?.ticket;
        self.remove(newest)
    }

    /// Takes out the next that can go, as `fits` says; `may_go` says whether a tenant may send at all now. `beside`: whether another can
    /// go before one of this tenant that is waited for, and not hold it up: it takes room that this one will not need.
    pub fn next(
        &mut self,
        now: Ms,
        mut may_go: impl FnMut(&str) -> bool,
        mut fits: impl FnMut(&Waiting<T>) -> bool,
        mut beside: impl FnMut(&str, &Waiting<T>, &Waiting<T>) -> bool,
    ) -> Option<(String, Waiting<T>)> {
        let active = self.lanes.iter().filter(|(_, l)| !l.waiting.is_empty());
        let mut order: Vec<(f64, Ms, &str)> = active
            .map(|(t, l)| {
                let since = l.waiting.values().next().map_or(Ms::MAX, |w| w.since);
                (l.virtual_time, since, t.as_str())
            })
            .collect();
        // Of tenants that are equal the one that has waited longest goes first, whatever their names are.
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        self.stuck = None;
        let mut stuck: Option<Stuck<'_, T>> = None;
        let mut chosen = None;
        // Who is waited for goes as soon as it can, whatever its tenant was sent meanwhile: else the short ones that pass a long one
        // would take its turn.
        let waits = self.blocked.and_then(|(ticket, since)| {
            let (tenant, key) = self.places.get(&ticket)?;
            let (first, head) = self.lanes.get(tenant)?.waiting.first_key_value()?;
            (first == key && may_go(tenant)).then_some((tenant.as_str(), head, since))
        });
        if let Some((of, head, since)) = waits {
            if fits(head) {
                chosen = Some(head.ticket);
            }
            stuck = Some(Stuck { of, waits: head, over: now.saturating_sub(since) >= PATIENCE });
        }
        let mut looks = LOOK;
        let mut furthest = f64::INFINITY;
        for (at, _, tenant) in order {
            if chosen.is_some() || at > furthest {
                break;
            }
            let Some(lane) = self.lanes.get(tenant) else { continue };
            let Some(head) = lane.waiting.values().next() else { continue };
            // A tenant at its own limit holds up nobody else.
            if !may_go(tenant) {
                continue;
            }
            let has_turn = stuck.as_ref().is_none_or(|s| !s.over && s.waits.ticket != head.ticket);
            if has_turn && fits(head) {
                chosen = Some(head.ticket);
                break;
            }
            let stuck = stuck.get_or_insert(Stuck { of: tenant, waits: head, over: false });
            let mut others = lane.waiting.values().filter(|w| w.ticket != stuck.waits.ticket);
            while let Some((w, left)) = others.next().zip(looks.checked_sub(1)) {
                looks = left;
                if beside(stuck.of, stuck.waits, w) && fits(w) {
                    chosen = Some(w.ticket);
                    break;
                }
            }
            // Others may pass a tenant while they are not further ahead than by the size of what it waits with.
            furthest = furthest.min(at + real(head.weight) / lane.weight);
        }
        if let Some(stuck) = stuck.filter(|s| chosen != Some(s.waits.ticket)) {
            let ticket = stuck.waits.ticket;
            self.stuck = Some(ticket);
            if self.blocked.is_none_or(|(blocked, _)| blocked != ticket) {
                self.blocked = Some((ticket, now));
            }
        }
        let ticket = chosen?;
        if self.blocked.is_some_and(|(blocked, _)| blocked == ticket) {
            self.blocked = None;
        }
        self.remove(ticket)
    }

    /// Whether one that came now may go before those who wait: nobody is waited for.
    #[must_use]
    pub fn lets_pass(&self) -> bool {
        self.places.is_empty()
    }

    /// The first in order that did not fit at the last look, whose it is, and since when it does not.
    #[must_use]
    pub fn stuck(&self) -> Option<(&str, &Waiting<T>, Ms)> {
        let (tenant, key) = self.places.get(&self.stuck?)?;
        let head = self.lanes.get(tenant)?.waiting.get(key)?;
        let since = self.blocked.filter(|(t, _)| *t == head.ticket).map(|(_, since)| since)?;
        Some((tenant, head, since))
    }

    /// Takes out all.
    pub fn drain(&mut self) -> Vec<(String, Waiting<T>)> {
        let all: Vec<Ticket> = self.places.keys().copied().collect();
        all.into_iter().filter_map(|t| self.remove(t)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(ticket: u64, weight: u64, priority: u8) -> Waiting<()> {
        let ticket = Ticket(ticket);
        Waiting { ticket, priority, since: 0, deadline: 1000, weight, bytes: 10, what: () }
    }

    fn order(q: &mut Queue<()>, weights: &[(&str, f64)]) -> Vec<u64> {
        std::iter::from_fn(|| {
            let (tenant, w) = q.next(0, |_| true, |_| true, |_, _, _| false)?;
            let weight = weights.iter().find(|(t, _)| *t == tenant).map_or(1.0, |(_, w)| *w);
            q.charge(&tenant, weight, w.weight, |_| 0);
            Some(w.ticket.0)
        })
        .collect()
    }

    #[test]
    fn tenants_take_turns_by_weight_and_priority_rules_within_one() {
        let mut q = Queue::default();
        (0..6).for_each(|i| q.push("a", 1.0, waiting(i, 100, 0)));
        (10..16).for_each(|i| q.push("b", 2.0, waiting(i, 100, u8::from(i == 15))));
        assert_eq!(order(&mut q, &[("b", 2.0)]), [0, 15, 10, 1, 11, 12, 2, 13, 14, 3, 4, 5]);
        assert_eq!((q.len(), q.bytes(), q.sum()), (0, 0, 0));
    }

    #[test]
    fn one_that_does_not_fit_is_passed_for_a_while_and_then_waited_for() {
        let mut q = Queue::default();
        q.push("long", 1.0, waiting(1, 1000, 0));
        (2..9).for_each(|i| q.push("short", 1.0, waiting(i, 1, 0)));
        let small = |w: &Waiting<()>| w.weight < 10;
        assert_eq!(q.next(0, |_| true, small, |_, _, _| false).unwrap().1.ticket, Ticket(2));
        assert_eq!(q.next(PATIENCE - 1, |_| true, small, |_, _, _| false).unwrap().1.ticket, Ticket(3));
        assert!(q.next(PATIENCE, |_| true, small, |_, _, _| false).is_none());
        assert_eq!(q.next(PATIENCE, |_| true, |_| true, |_, _, _| false).unwrap().1.ticket, Ticket(1));
        assert_eq!(q.next(PATIENCE, |_| true, small, |_, _, _| false).unwrap().1.ticket, Ticket(4));
    }

    #[test]
    fn what_was_taken_while_nobody_waited_is_no_debt() {
        let mut q = Queue::default();
        // An hour alone on the servers.
        (0..1000).for_each(|_| q.charge("early", 1.0, 10_000, |_| 30_000));
        q.forgive(|_| 150);
        (0..4).for_each(|i| q.push("early", 1.0, waiting(i, 100, 0)));
        (10..14).for_each(|i| q.push("late", 1.0, waiting(i, 100, 0)));
        assert_eq!(order(&mut q, &[]), [10, 11, 0, 12, 1, 13, 2, 3], "what it still holds counts");
    }

    #[test]
    fn who_keeps_most_makes_room_and_time_runs_out() {
        let mut q = Queue::default();
        (0..5).for_each(|i| q.push("flood", 1.0, waiting(i, 1, 0)));
        q.push("a", 1.0, waiting(9, 1, 0));
        assert_eq!(q.push_out("a", 1.0, 10).unwrap().1.ticket, Ticket(4));
        assert!(q.push_out("flood", 1.0, 10).is_none());
        assert!(q.expired(999).is_none());
        assert_eq!(q.expired(1000).unwrap().1.ticket, Ticket(0));
    }

    /// Short ones of either tenant pass the long one that is waited for, and are counted as their tenant's; its turn stays its own.
    #[test]
    fn who_is_waited_for_stays_first_until_it_goes() {
        let mut q = Queue::default();
        for (n, tenant) in ["a", "b"].into_iter().enumerate() {
            let first = n as u64 * 100;
            q.push(tenant, 1.0, waiting(first, 900, 0));
            (1..50).for_each(|i| q.push(tenant, 1.0, waiting(first + i, 10, 0)));
        }
        for now in 0..80 {
            let passes =
                q.next(now, |_| true, |w| w.weight == 10, |_, long, w| long.weight + w.weight <= 1000);
            let (tenant, w) = passes.unwrap();
            q.charge(&tenant, 1.0, w.weight, |_| 0);
            assert_eq!(q.stuck().map(|(_, w, _)| w.ticket), Some(Ticket(0)), "{now}");
        }
        let goes = q.next(80, |_| true, |_| true, |_, _, _| false).unwrap();
        assert_eq!(goes.1.ticket, Ticket(0));
    }
}
