//! Packs a text for `Block` (`src/packed.rs`): part of each build script that has one, by `#[path]`.

use std::fs;
use std::path::Path;

/// Writes a text packed as `NAME.packed`; the block that unpacks it, as Rust.
pub(crate) fn block(out: &Path, name: &str, text: &str) -> String {
    let file = out.join(format!("{name}.packed"));
    let packed = miniz_oxide::deflate::compress_to_vec(text.as_bytes(), 10);
    fs::write(&file, packed).expect("OUT_DIR is writable");
    format!("Block::new(include_bytes!({file:?}), {})\n", text.len())
}
