//! What `nvidia-smi`, `rocm-smi`, `amd-smi` and `dcgmi` print as text. One file a form.
//!
//! A form is known by its own heading or row, so that it is found in the middle of other text.

mod amd;
mod csv;
mod list;
mod query;
mod scroll;
mod table;

use crate::evidence::gpu_model::GpuSnapshot;
use crate::units::{Bytes, parse_memory};

/// Rows kept of one printout; a node has at most 16 cards, and a loop of `dmon` may run for days.
const MAX_ROWS: usize = 4096;

/// A printout: how many lines it takes, and what it says.
pub(in crate::evidence) struct Printout {
    pub(in crate::evidence) lines: usize,
    pub(in crate::evidence) snapshot: GpuSnapshot,
    /// It was recognised, but part of it could not be understood.
    pub(in crate::evidence) unclear: Option<&'static str>,
}

/// Reads the printout that begins with the first of these lines. `command` is what stood behind the prompt above it.
pub(in crate::evidence) fn read(lines: &[&str], first: u64, command: Option<&str>) -> Option<Printout> {
    let head = lines.first()?.trim_start();
    // Nearly all lines of a log end here.
    let may = match head.bytes().next()? {
        b'|' | b'+' | b'=' | b'#' | b'G' | b'I' | b'M' => true,
        b'i' | b'n' | b'u' | b'm' | b't' | b'p' | b'g' | b'd' | b'0'..=b'9' => head.contains(','),
        b'S' | b'T' | b'W' | b'F' => table::is_date(head),
        _ => false,
    };
    if !may {
        return None;
    }
    table::read(lines, first)
        .or_else(|| query::read(lines, first))
        .or_else(|| list::read(lines, first))
        .or_else(|| scroll::read(lines, first))
        .or_else(|| amd::read(lines, first))
        .or_else(|| csv::read(lines, first, command))
}

/// The cells of each row of a table drawn with bars, as far as it goes.
fn boxed_rows<'l>(lines: &'l [&'l str]) -> impl Iterator<Item = Vec<&'l str>> {
    let rows = lines.iter().map(|l| l.trim()).take(MAX_ROWS);
    rows.take_while(|l| l.starts_with(['|', '+']))
        .map(|l| l.trim_matches('|').split('|').map(str::trim).collect())
}

/// `50MiB`, `50 MiB`; `N/A`, `[N/A]` and `-` are nothing.
fn size(text: &str) -> Option<Bytes> {
    parse_memory(text.trim(), Some("MiB"))
}

fn address(text: &str) -> Option<String> {
    let text = text.trim();
    let shape = text.bytes().filter(|b| *b == b':').count() == 2 && text.contains('.');
    (shape && text.len() <= 17 && text.bytes().all(|b| b.is_ascii_hexdigit() || matches!(b, b':' | b'.')))
        .then(|| text.to_ascii_lowercase())
}
