//! What a load does over its time: rises, bursts, meets long prompts or loses its clients.

/// What happens beside the shape itself.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Pattern {
    /// The shape as it is; a soak is this for hours.
    #[default]
    Steady,
    /// From one share of the load to another, evenly.
    Ramp {
        /// At the start, 0.1 for a tenth.
        from: f64,
        /// At the end.
        to: f64,
    },
    /// The load times a factor, again and again.
    Burst {
        /// Times the load.
        factor: f64,
        /// Seconds from one to the next.
        every: f64,
        /// Seconds that each takes.
        lasts: f64,
    },
    /// For the fifth of the time before the middle all prompts are as long as the longest hundredth of the shape.
    LongPrompts {
        /// Tokens of those, instead of the shape's longest.
        tokens: Option<u64>,
    },
    /// For the fifth of the time before the middle so many clients go away.
    CancelStorm {
        /// Share of the requests.
        share: f64,
    },
}

/// A pattern over a time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Play {
    /// What happens.
    pub pattern: Pattern,
    /// For how long; `None` without an end.
    pub seconds: Option<f64>,
    /// Requests per second instead of the shape's.
    pub rate: Option<f64>,
}

/// The part of the time in which spikes happen: late enough that the server is warm, early enough to see it recover.
const SPIKE: std::ops::Range<f64> = 0.3..0.5;

impl Play {
    /// The load at this time, over the mean of the shape.
    #[must_use]
    pub fn factor(&self, at: f64) -> f64 {
        match self.pattern {
            Pattern::Ramp { from, to } => from + (to - from) * self.passed(at).unwrap_or(1.0),
            // The first comes after a quiet time.
            Pattern::Burst { factor, every, lasts } if every > 0.0 && at % every >= every - lasts => factor,
            _ => 1.0,
        }
        .max(0.0)
    }

    /// Whether the rate never changes.
    pub(crate) const fn level(&self) -> bool {
        !matches!(self.pattern, Pattern::Ramp { .. } | Pattern::Burst { .. })
    }

    /// Whether the spike of the pattern is at this time.
    #[must_use]
    pub fn spike(&self, at: f64) -> bool {
        self.passed(at).is_some_and(|share| SPIKE.contains(&share))
    }

    fn passed(&self, at: f64) -> Option<f64> {
        self.seconds.filter(|s| *s > 0.0).map(|s| (at / s).clamp(0.0, 1.0))
    }
}
