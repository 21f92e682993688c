//! Pools of host memory that an engine or its pod takes beside the heap.

/// What a pool proves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostPool {
    /// A pool's size, as it comes about.
    Size {
        /// Pool, where several are summed.
        name: Option<String>,
        /// How its size comes about, in the words of the engine's descriptor.
        arithmetic: String,
    },
    /// The size of this pool is an upper bound.
    UpperBound(String),
    /// It stays below the limit.
    BelowLimit,
}

impl HostPool {
    /// Stable id.
    pub(super) fn id(&self) -> &'static str {
        match self {
            Self::Size { .. } => "host_pool.size",
            Self::UpperBound(_) => "host_pool.upper_bound",
            Self::BelowLimit => "host_pool.below_limit",
        }
    }
}
