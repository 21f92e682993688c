//! Limits of what is read from a TARGET, each with its reason. Beyond a limit stands a gap, never an error.

/// Bytes of text files that are held whole for one TARGET, the smallest first; larger logs are sifted. What people paste
/// is smaller, and with what a sift may keep and its blocks the process stays below 64 MiB.
pub(super) const WHOLE: u64 = 12 << 20;
/// The longest file of an archive, or standard input, that is held whole: what follows in the stream is not known.
pub(super) const WHOLE_STREAM: u64 = 4 << 20;
/// Bytes that the sifted logs of one TARGET keep together, and the bounds of one of them.
pub(super) const SIFTED: usize = 10 << 20;
/// See [`SIFTED`].
pub(super) const SIFTED_OF_ONE: std::ops::RangeInclusive<usize> = 48 << 10..=3 << 20;

/// Bytes kept of one document (objects, metrics: what has no meaning line by line) or archive entry: what one incident may hold in memory must have a bound,
/// and no death needs more than its start-up and its end.
pub(super) const MAX_FILE: u64 = 512 << 20;
/// Of a longer one, this much of its head (the start-up) and the rest of `MAX_FILE` of its tail (the death).
pub(super) const HEAD: u64 = 64 << 20;
/// Bytes kept of one incident, and of all archives below one TARGET: four of the longest files.
pub(super) const MAX_TOTAL: u64 = 2 << 30;
/// Files of one TARGET, and kept files of its archives: a support bundle of a large cluster has some thousands.
pub(super) const MAX_FILES: usize = 10_000;
/// Folders below a directory: deeper than any bundle nests, and shallower than the stack.
pub(super) const MAX_DEPTH: usize = 8;

/// Bytes that the archives of one TARGET may unpack to, kept or not. This bounds the time that a compression bomb
/// costs (some seconds); its declared sizes are never believed and nothing is allocated by them.
pub(super) const MAX_UNPACKED: u64 = 4 << 30;
/// Entries looked at in the archives of one TARGET, folders and links too: headers alone must not cost for ever.
pub(super) const MAX_ENTRIES: u64 = 100_000;
/// An archive inside an archive is read (bundles hold the tarballs of their nodes); one inside that is a gap.
pub(super) const MAX_NESTING: u32 = 1;
/// A name longer than Linux can hold in a path is an attack.
pub(super) const MAX_NAME: usize = 4096;
/// Of the header extensions of one tar entry (long names, attributes); real ones have some hundred bytes.
pub(super) const MAX_EXTENSION: u64 = 1 << 20;
/// Of a zip's directory, which is held in memory: room for `MAX_ENTRIES` names of usual length.
pub(super) const MAX_ZIP_DIRECTORY: u64 = 16 << 20;
/// Gaps told of one TARGET; more of them help nobody and would bury the report.
pub(super) const MAX_GAPS: usize = 200;

/// How large files are read, by the sizes of all.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// Files up to this size are held whole.
    pub(super) whole: u64,
    /// Bytes kept of each larger log.
    pub(super) sifted: usize,
}

impl Room {
    /// For files of these sizes.
    pub(super) fn of(mut sizes: Vec<u64>) -> Self {
        sizes.sort_unstable();
        let mut sum = 0;
        let whole = |size: &&u64| {
            sum += **size;
            sum <= WHOLE
        };
        let fits = sizes.iter().take_while(whole).count();
        // Files of one size are treated alike.
        let whole = sizes.get(fits).map_or(u64::MAX, |larger| larger.saturating_sub(1));
        let logs = sizes.iter().filter(|s| **s > whole).count();
        Self { whole, sifted: sifted_share(logs) }
    }
}

/// Of `logs` logs each may keep so many bytes.
pub(super) fn sifted_share(logs: usize) -> usize {
    (SIFTED / logs.max(1)).clamp(*SIFTED_OF_ONE.start(), *SIFTED_OF_ONE.end())
}

/// The gap of a file of `size` bytes, more than [`MAX_FILE`].
pub(super) fn cut(size: u64) -> String {
    format!(
        "of its {} MiB, only the first {} and the last {} MiB were read; line numbers after the cut are \
        too low",
        size >> 20,
        HEAD >> 20,
        (MAX_FILE - HEAD) >> 20
    )
}

#[cfg(test)]
mod tests {
    use super::{Room, WHOLE};

    #[test]
    fn the_smallest_files_are_held_whole_and_equal_ones_alike() {
        for (sizes, whole) in [
            (vec![], u64::MAX),
            (vec![WHOLE], u64::MAX),
            (vec![WHOLE + 1], WHOLE),
            (vec![WHOLE * 9, 3], WHOLE * 9 - 1),
            (vec![4 << 20; 40], (4 << 20) - 1),
        ] {
            assert_eq!(Room::of(sizes.clone()).whole, whole, "{sizes:?}");
        }
    }
}
