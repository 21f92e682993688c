//! Requests counted into cells of bounded number. What is kept of a request are numbers.

use std::collections::{BTreeMap, HashMap};

use crate::timeline::Timeline;

/// Cells of a doubling of the length: 4 lie within 10 % of their mean.
const PER_OCTAVE: f64 = 4.0;
/// No request of any model is longer.
pub(crate) const MAX_TOKENS: u64 = 20_000_000;
/// Tenants that are told apart; all others are one.
const MAX_TENANTS: usize = 4_096;

/// What one line or document tells of one request. Numbers only.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Seen {
    /// When it began, seconds on any clock.
    pub at: Option<f64>,
    /// Tokens of the prompt.
    pub input: Option<u64>,
    /// Tokens of the answer.
    pub output: Option<u64>,
    /// Tokens of the prompt that were cached.
    pub cached: Option<u64>,
    /// That it took.
    pub seconds: Option<f64>,
    /// The client went away.
    pub cancelled: bool,
    /// It failed or was refused.
    pub failed: bool,
    /// A number for whose it is.
    pub tenant: Option<u64>,
    /// The most tokens that the answer might have, where it does not say how many it has.
    pub most_output: Option<u64>,
    /// Characters of a prompt whose tokens nobody counted.
    pub characters: u64,
}

impl Seen {
    /// Whether it tells of a request's length.
    pub(crate) const fn has_length(&self) -> bool {
        self.input.is_some() || self.output.is_some()
    }

    /// What another line tells of the same request, where this one does not say.
    pub(crate) fn merge(&mut self, other: Self) {
        self.at = match (self.at, other.at) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        // Of the prompt, one line may count what was not cached, and another all of it.
        let (a, b) = (self.input, other.input);
        self.input = a.max(b);
        if let (Some(a), Some(b)) = (a, b)
            && a != b
        {
            self.cached = self.cached.or(Some(a.abs_diff(b)));
        }
        self.output = self.output.or(other.output);
        self.cached = self.cached.or(other.cached);
        self.seconds = self.seconds.or(other.seconds);
        self.cancelled |= other.cancelled;
        self.failed |= other.failed;
        self.tenant = self.tenant.or(other.tenant);
        self.most_output = self.most_output.or(other.most_output);
        self.characters = self.characters.max(other.characters);
    }
}

/// Count and sums of a cell.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sum {
    pub(crate) n: u64,
    pub(crate) input: u64,
    pub(crate) output: u64,
}

impl Sum {
    pub(crate) const fn add(&mut self, n: u64, input: u64, output: u64) {
        self.n = self.n.saturating_add(n);
        self.input = self.input.saturating_add(input);
        self.output = self.output.saturating_add(output);
    }
}

/// What was counted of all sources.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    pub(crate) cells: BTreeMap<(u16, u16), Sum>,
    pub(crate) times: Timeline,
    /// When requests came of which no length is known.
    pub(crate) arrivals: Timeline,
    pub(crate) lengthless: u64,
    pub(crate) all: Sum,
    /// Requests above the length that counts as long, and their tokens.
    pub(crate) long: Sum,
    pub(crate) long_above: u64,
    pub(crate) cancelled: u64,
    /// Tokens of answers that were cut off, where their bound is known, and of the bound.
    pub(crate) cut: (u64, u64),
    pub(crate) failed: u64,
    /// Prompts of which it is known how much was cached: tokens, and cached ones.
    pub(crate) cached: (u64, u64),
    pub(crate) tenants: HashMap<u64, Sum>,
    pub(crate) other_tenants: Sum,
    /// Answers whose length is only a bound, and prompts whose length is estimated from characters.
    pub(crate) bounded: u64,
    pub(crate) estimated: u64,
    /// Readings of requests that ran: number, sum, most.
    pub(crate) running: (u64, f64, f64),
    /// Readings of the prefix cache's hit rate: number, sum.
    pub(crate) hits: (u64, f64),
}

pub(crate) fn bin(tokens: u64) -> u16 {
    if tokens < 4 {
        return tokens as u16;
    }
    4 + ((tokens as f64 / 4.0).log2() * PER_OCTAVE) as u16
}

impl Tally {
    pub(crate) fn new(long_above: u64) -> Self {
        Self { long_above, ..Self::default() }
    }

    /// Counts a request.
    pub(crate) fn add(&mut self, mut seen: Seen) {
        if seen.failed && seen.output.unwrap_or(0) == 0 {
            self.failed += 1;
            return;
        }
        if seen.input.is_none() && seen.characters > 0 {
            // Four characters of English text are a token: a rule of thumb that the shape says.
            seen.input = Some(seen.characters.div_ceil(4));
            self.estimated += 1;
        }
        if seen.output.is_none() && seen.input.is_some() && seen.most_output.is_some() {
            seen.output = seen.most_output;
            self.bounded += 1;
        }
        let begun = seen.at;
        let (Some(input), Some(output)) = (seen.input, seen.output) else {
            self.lengthless += 1;
            if let Some(at) = begun {
                self.arrivals.add(at, seen.seconds);
            }
            return;
        };
        let (input, output) = (input.min(MAX_TOKENS), output.min(MAX_TOKENS));
        if let Some(at) = begun {
            self.times.add(at, seen.seconds);
        }
        self.cells.entry((bin(input), bin(output))).or_default().add(1, input, output);
        self.all.add(1, input, output);
        if input + output > self.long_above {
            self.long.add(1, input, output);
        }
        if seen.cancelled {
            self.cancelled += 1;
            if let Some(most) = seen.most_output.filter(|m| *m >= output && *m > 0) {
                self.cut = (self.cut.0 + output, self.cut.1 + most);
            }
        }
        if let Some(cached) = seen.cached {
            self.cached = (self.cached.0 + input, self.cached.1 + cached.min(input));
        }
        if let Some(tenant) = seen.tenant {
            let room = self.tenants.len() < MAX_TENANTS;
            match self.tenants.get_mut(&tenant) {
                Some(sum) => sum.add(1, input, output),
                None if room => self.tenants.entry(tenant).or_default().add(1, input, output),
                None => self.other_tenants.add(1, input, output),
            }
        }
    }

    pub(crate) const fn running(&mut self, n: f64) {
        self.running = (self.running.0 + 1, self.running.1 + n, self.running.2.max(n));
    }
}

/// A number for a word: whose requests they are is told apart, and not kept.
pub(crate) fn mark(word: &[u8]) -> u64 {
    // FNV-1a, with a mixing of the end.
    let hash = word
        .iter()
        .fold(0xCBF2_9CE4_8422_2325_u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01B3));
    dualplane_shape::Random::new(hash).next_u64()
}
