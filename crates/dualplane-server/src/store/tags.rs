//! Values of filters as words of the index `words`. Where several filters each leave tens of thousands of deaths, a database that
//! reads by one and compares the rest reads them all; an index of words tells what all of them leave.

use dualplane_incidents::{Dimension, Incident};

/// Dimensions that stand in `words`, in the order of its columns. A pod has few deaths, and they are read.
pub(super) const TAGGED: &[Dimension] = &[
    Dimension::Class,
    Dimension::Plane,
    Dimension::Phase,
    Dimension::Confidence,
    Dimension::Cluster,
    Dimension::Namespace,
    Dimension::Owner,
    Dimension::Container,
    Dimension::Node,
    Dimension::Image,
    Dimension::Model,
    Dimension::Engine,
    Dimension::EngineVersion,
    Dimension::Gpu,
    Dimension::GpuName,
    Dimension::Driver,
    Dimension::Xid,
];

/// Characters for private use, which stand in no text that people search for; three of them tell 2.6e11 values apart. Where two
/// meet, the row itself decides.
const FIRST: u32 = 0xE000;
const MANY: u64 = 0x1900;

/// The word of a value.
pub(super) fn tag(dimension: Dimension, value: &str) -> String {
    let sum =
        ring::digest::digest(&ring::digest::SHA256, format!("{}\0{value}", dimension.as_str()).as_bytes());
    let mut left = sum.as_ref().iter().take(8).fold(0_u64, |n, b| n << 8 | u64::from(*b));
    let mut next = || {
        let n = u32::try_from(left % MANY).unwrap_or(0);
        left /= MANY;
        char::from_u32(FIRST + n).unwrap_or('\u{E000}')
    };
    [next(), next(), next()].into_iter().collect()
}

/// What stands in the columns of [`TAGGED`].
pub(super) fn columns(i: &Incident) -> Vec<String> {
    let of = |d: &Dimension| i.values(*d).iter().map(|v| tag(*d, v)).collect();
    TAGGED.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_three_characters_of_its_own_for_each_value_and_dimension() {
        let mut seen = std::collections::BTreeSet::new();
        for d in Dimension::ALL {
            for v in ["", "a", "b", "79", "\0", "ü"] {
                let t = tag(*d, v);
                assert_eq!(t.chars().count(), 3);
                assert!(t.chars().all(|c| ('\u{E000}'..='\u{F8FF}').contains(&c)), "{t:?}");
                assert!(seen.insert(t), "{d:?} {v}");
            }
        }
    }

    #[test]
    fn every_dimension_but_the_pod_has_its_column() {
        let sql = include_str!("../migrations/0005_tags_sqlite.sql");
        let (_, columns) = sql.split_once("\n    searched,").unwrap();
        let (columns, _) = columns.split_once("content").unwrap();
        let columns: Vec<&str> = columns.split([',', '\n', ' ']).filter(|c| !c.is_empty()).collect();
        let named: Vec<&str> = TAGGED.iter().map(|d| d.as_str()).collect();
        assert_eq!(columns, named);
        let without: Vec<&Dimension> = Dimension::ALL.iter().filter(|d| !TAGGED.contains(d)).collect();
        assert_eq!(without, [&Dimension::Pod]);
    }
}
