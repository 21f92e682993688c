//! Maps of composed clusters.
