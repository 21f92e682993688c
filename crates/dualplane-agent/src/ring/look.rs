//! Reading the ring of an agent that runs, by somebody else: nothing is locked, changed or cleaned up.

use dualplane_base::order::Order as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use dualplane_node::clock::Moment;

use super::recovered::range_of;
use super::segment;
use super::window::{Builder, Window};

/// Segments that are looked at: a ring has some tens.
const MAX_SEGMENTS: usize = 512;

/// All that the ring in a folder holds of a span of this boot, of the containers that are asked for.
///
/// # Errors
/// The folder cannot be listed.
pub fn look(
    dir: &Path,
    boot: &str,
    from: Moment,
    to: Moment,
    containers: &dyn Fn(&str) -> bool,
) -> io::Result<Window> {
    let named = |e: fs::DirEntry| Some((e.file_name().to_str().and_then(segment::number_of)?, e.path()));
    let mut all: Vec<(u64, PathBuf)> =
        fs::read_dir(dir)?.filter_map(Result::ok).take(MAX_SEGMENTS).filter_map(named).collect();
    // The newest first.
    all.order_by(|a, b| b.cmp(a));
    let mut reader = Builder::new(boot, from, to, containers);
    for (_, path) in &all {
        // Another boot's moments are of another clock.
        if segment::header_of(path).is_some_and(|h| h.boot == boot) {
            reader.segment(path, range_of(path), u64::MAX, &[]);
        }
    }
    Ok(reader.finish())
}
