//! How texts of strangers are parsed: within bounds.

/// Parses with the bounds of untrusted text; `y` and `no` are words, as for kubectl.
pub(crate) fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        strict_booleans: true,
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_depth: 100,
            max_nodes: 400_000,
            max_events: 1_200_000,
            max_aliases: 2_000,
            max_anchors: 500,
            max_documents: 4,
        },
    }
}
