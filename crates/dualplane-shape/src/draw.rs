//! Requests by chance out of a shape: the same for the same seed.

use crate::cells::{Cell, deviation, normal, quantile};
use crate::pattern::{Pattern, Play};
use crate::random::Random;
use crate::shape::{Arrival, Points, Shape};

/// Lengths of two points are drawn up to this share of their distribution: one of a thousand is as long as it, none longer.
const TOP: f64 = 0.999;
/// Seconds for which a changing rate is taken for constant.
const STEP: f64 = 0.05;
/// So many steps without a request end the requests: a rate this low will bring none.
const MAX_STEPS: u32 = 20_000_000;

/// One request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Request {
    /// From 0, in the order of arrival.
    pub index: u64,
    /// Seconds after the start at which it arrives; 0 for all where the shape says no rate (each comes when one ends).
    pub at: f64,
    /// Tokens of the prompt, 1 at least.
    pub input: u64,
    /// Tokens of the answer, 1 at least.
    pub output: u64,
    /// The beginning that it shares with others of the same number.
    pub prefix: u64,
    /// Tokens of the prompt that are of this beginning.
    pub prefix_tokens: u64,
    /// The client goes away after so many tokens of the answer.
    pub cancel_after: Option<u64>,
    /// Whose it is, by the order in the shape.
    pub tenant: u32,
}

enum Lengths {
    /// Cells with the sum of shares up to each.
    Cells(Vec<(f64, Cell)>),
    Points(Points, Points),
}

/// The requests of a shape, one after the other. Without an end, unless the pattern has one.
pub struct Draw {
    lengths: Lengths,
    longest: u64,
    rate: Option<f64>,
    arrival: Arrival,
    prefix_share: f64,
    prefixes: u64,
    cancelled: Option<(f64, f64)>,
    tenants: Vec<f64>,
    play: Play,
    at: f64,
    index: u64,
    length: Random,
    time: Random,
    prefix: Random,
    cancel: Random,
    tenant: Random,
}

impl std::fmt::Debug for Draw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Draw").field("index", &self.index).field("at", &self.at).finish_non_exhaustive()
    }
}

impl Shape {
    /// Its requests, by a seed. Each purpose has numbers of its own: with another rate the same lengths come.
    ///
    /// # Errors
    /// A sentence that says what contradicts.
    pub fn draw(&self, seed: u64, play: Play) -> Result<Draw, String> {
        self.check()?;
        let cells = self.cells()?;
        let longest = quantile(&cells, |c| c.input, 0.99);
        let lengths = match (self.requests.as_slice(), self.input, self.output) {
            ([], Some(input), Some(output)) => Lengths::Points(input, output),
            _ => {
                let mut sum = 0.0;
                let summed = cells.into_iter().filter(|c| c.share > 0.0).map(|c| {
                    sum += c.share;
                    (sum, c)
                });
                Lengths::Cells(summed.collect())
            }
        };
        let all: f64 = self.tenants.iter().map(|t| t.share).sum();
        let mut sum = 0.0;
        let tenants = self.tenants.iter().filter(|_| all > 0.0).map(|t| {
            sum += t.share / all;
            sum
        });
        let seeds = Random::new(seed);
        let default = Arrival { cv: 1.0, rates: Vec::new(), slice_seconds: None, peak_per_second: None };
        Ok(Draw {
            lengths,
            longest,
            rate: play.rate.or(self.arrival_per_second).filter(|r| r.is_finite() && *r > 0.0),
            arrival: self.arrival.clone().unwrap_or(default),
            prefix_share: self.prefix_share,
            prefixes: self.prefixes.unwrap_or(1).max(1),
            cancelled: self.cancelled.map(|c| (c.share, c.after)),
            tenants: tenants.collect(),
            play,
            at: 0.0,
            index: 0,
            length: seeds.part(1),
            time: seeds.part(2),
            prefix: seeds.part(3),
            cancel: seeds.part(4),
            tenant: seeds.part(5),
        })
    }
}

impl Draw {
    /// Whether requests come at times of their own, rather than each when one ends.
    #[must_use]
    pub const fn open(&self) -> bool {
        self.rate.is_some()
    }

    fn lengths(&mut self) -> (u64, u64) {
        // Two numbers for each request, whichever form the shape has.
        let (first, second) = (self.length.share(), self.length.share());
        let (input, output) = match &self.lengths {
            Lengths::Cells(cells) => {
                let found = cells.partition_point(|(sum, _)| *sum <= first);
                let cell = cells.get(found).or(cells.last());
                cell.map_or((1.0, 1.0), |(_, c)| (c.input, c.output))
            }
            Lengths::Points(input, output) => (length(*input, first), length(*output, second)),
        };
        ((input.round() as u64).max(1), (output.round() as u64).max(1))
    }

    /// The rate at this time, over the mean.
    fn factor(&self, at: f64) -> f64 {
        let rates = &self.arrival.rates;
        let slow = match self.arrival.slice_seconds {
            Some(slice) if !rates.is_empty() => {
                let mean = rates.iter().sum::<f64>() / rates.len() as f64;
                let slot = ((at / slice) as usize) % rates.len();
                rates.get(slot).copied().unwrap_or(mean) / mean
            }
            _ => 1.0,
        };
        slow * self.play.factor(at)
    }

    /// In a closed loop only who sends knows when the next one comes: so late it is, for what the pattern does then, and whatever
    /// rate the shape has. Without this none of its requests is within a spike.
    pub const fn now(&mut self, at: f64) {
        self.rate = None;
        self.at = at;
    }

    /// When the next one arrives.
    fn next_at(&mut self, rate: f64) -> Option<f64> {
        let cv = self.arrival.cv;
        let mut left = if cv <= 1e-3 { 1.0 } else { self.time.gamma(1.0 / (cv * cv)) };
        let mut at = self.at;
        if self.play.level() && self.arrival.rates.is_empty() {
            return Some(at + left / rate);
        }
        for _ in 0..MAX_STEPS {
            if self.play.seconds.is_some_and(|s| at >= s) {
                return None;
            }
            let now = rate * self.factor(at);
            // The end of this step of the grid; a step that rounding swallows is taken whole.
            let mut end = ((at / STEP).floor() + 1.0) * STEP;
            if end <= at {
                end = at + STEP;
            }
            let can = now * (end - at);
            if can >= left {
                return Some(at + left / now);
            }
            left -= can;
            at = end;
        }
        None
    }
}

/// The length at this share of the distribution that two points give.
fn length(p: Points, share: f64) -> f64 {
    let share = share.clamp(1.0 - TOP, TOP);
    p.p50 as f64 * (deviation(p) * normal(share)).exp()
}

impl Iterator for Draw {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        if let Some(rate) = self.rate {
            self.at = self.next_at(rate)?;
        }
        if self.play.seconds.is_some_and(|s| self.at >= s) {
            return None;
        }
        let (mut input, output) = self.lengths();
        let spike = self.play.spike(self.at);
        if let (true, Pattern::LongPrompts { tokens }) = (spike, self.play.pattern) {
            input = input.max(tokens.unwrap_or(self.longest));
        }
        let prefix = self.prefix.below(self.prefixes);
        let (chance, part) = (self.cancel.share(), self.cancel.share());
        let (mut share, after) = self.cancelled.unwrap_or((0.0, 0.5));
        if let (true, Pattern::CancelStorm { share: storm }) = (spike, self.play.pattern) {
            share = share.max(storm);
        }
        // Evenly around the mean, and before the answer ends.
        let cancel_after = (chance < share).then(|| {
            let spread = after.min(1.0 - after);
            let at = after + (2.0 * part - 1.0) * spread;
            ((output as f64 * at) as u64).min(output.saturating_sub(1))
        });
        let whose = self.tenant.share();
        let tenant =
            self.tenants.partition_point(|sum| *sum <= whose).min(self.tenants.len().saturating_sub(1));
        let request = Request {
            index: self.index,
            at: self.at,
            input,
            output,
            prefix,
            prefix_tokens: (input as f64 * self.prefix_share) as u64,
            cancel_after,
            tenant: tenant as u32,
        };
        self.index += 1;
        Some(request)
    }
}
