//! What a launch asks for, as far as it bears on a lack of VRAM.

use crate::units::Bytes;

/// What settings and sizes of a launch prove.
#[derive(Debug, Clone, PartialEq)]
pub enum Launch {
    /// The weights of a rank, and its card.
    Weights {
        /// As the engine printed them.
        weights: Bytes,
        /// The card.
        total: Bytes,
    },
    /// Files of the checkpoint that were loaded when it failed.
    Shards {
        /// Loaded.
        done: u64,
        /// All of them.
        all: u64,
    },
    /// It failed before it served: a card then holds weights and little else.
    NeverServed,
    /// It served before: the weights were in place.
    Served,
    /// No setting loads the weights in fewer bits.
    NotQuantised,
    /// A setting that does, and its value.
    Quantised {
        /// Setting.
        name: String,
        /// Value.
        value: String,
    },
    /// Tokens that all sequences together may need, and those that the cache holds.
    Demand {
        /// Sequences at a time.
        sequences: u64,
        /// Tokens of the longest.
        length: u64,
        /// Tokens of the cache, where printed.
        pool: Option<u64>,
    },
    /// The engine takes its cache of the card before it serves: what failed is outside of it.
    PoolTaken,
    /// Share of the card that the engine was given, and what is left of the card outside of it.
    Share {
        /// Share.
        share: f64,
        /// Rest of the card.
        rest: Option<Bytes>,
    },
    /// What was asked for when it failed, and the card.
    Asked {
        /// Asked for.
        requested: Bytes,
        /// The card.
        total: Bytes,
    },
    /// GPUs of the container, and those over which the launch splits the model.
    Ranks {
        /// Of the launch.
        ranks: u64,
        /// Of the container.
        gpus: u64,
    },
    /// The fullest and the emptiest card of the container, of 1.
    Uneven {
        /// Fullest.
        most: f64,
        /// Emptiest.
        least: f64,
    },
    /// What the process itself held of the card.
    Own {
        /// Held.
        own: Bytes,
        /// The card.
        total: Bytes,
    },
    /// What others held of the card.
    Others {
        /// Held.
        others: Bytes,
        /// The card.
        total: Bytes,
    },
    /// An autoscaler that follows figures of the host alone.
    ScalesBy {
        /// Autoscaler.
        name: String,
        /// What it follows.
        metrics: String,
    },
}

impl Launch {
    /// Stable id.
    pub(super) fn id(&self) -> &'static str {
        match self {
            Self::Weights { .. } => "launch.weights",
            Self::Shards { .. } => "launch.shards",
            Self::NeverServed => "launch.never_served",
            Self::Served => "launch.served",
            Self::NotQuantised => "launch.not_quantised",
            Self::Quantised { .. } => "launch.quantised",
            Self::Demand { .. } => "launch.demand",
            Self::PoolTaken => "launch.pool_taken",
            Self::Share { .. } => "launch.share",
            Self::Asked { .. } => "launch.asked",
            Self::Ranks { .. } => "launch.ranks",
            Self::Uneven { .. } => "launch.uneven",
            Self::Own { .. } => "launch.own",
            Self::Others { .. } => "launch.others",
            Self::ScalesBy { .. } => "launch.scales_by",
        }
    }
}
