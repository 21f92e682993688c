//! How signatures lie in the program: one text, cut by characters that stand in no entry. `build.rs` writes it by this file too.

/// Between signatures.
pub(super) const RECORD: char = '\u{1d}';
/// Between fields; an empty one is absent.
pub(super) const FIELD: char = '\u{1f}';
/// Between the items of a list, and between keys and values.
pub(super) const ITEM: char = '\u{1e}';

/// The keys of an entry in the order in which their values lie there.
#[allow(dead_code, reason = "the build script goes by it, and a test of the library")]
pub(super) const FIELDS: [&str; 24] = [
    "id",
    "versions",
    "meaning",
    "source",
    "file",
    "mark",
    "literals",
    "engine",
    "pattern",
    "until",
    "doubt",
    "words",
    "context",
    "unless",
    "scope",
    "class",
    "phase",
    "host_memory",
    "changed",
    "unchanged",
    "units",
    "any_level",
    "other_rank",
    "shared",
];
