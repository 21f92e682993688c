//! Configurations of the catalogue: two thirds of a MiB as text, which say nearly the same. `build.rs` packs them in blocks, and a
//! block is unpacked when a plan first asks for one of its texts, in a tenth of a millisecond.

use std::sync::OnceLock;

include!(concat!(env!("OUT_DIR"), "/blocks.rs"));

/// Texts that are packed together.
#[derive(Debug)]
struct Block {
    packed: &'static [u8],
    /// Bytes of the text.
    len: usize,
    text: OnceLock<String>,
}

impl Block {
    const fn new(packed: &'static [u8], len: usize) -> Self {
        Self { packed, len, text: OnceLock::new() }
    }

    fn text(&self) -> &str {
        self.text.get_or_init(|| {
            let bytes = miniz_oxide::inflate::decompress_to_vec_with_limit(self.packed, self.len);
            // A test unpacks each of them: the bytes are those of the build.
            String::from_utf8(bytes.unwrap_or_default()).unwrap_or_default()
        })
    }
}

/// Where a text lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) block: u16,
    pub(super) from: u32,
    pub(super) to: u32,
}

impl Place {
    pub(super) fn text(self) -> &'static str {
        let block = BLOCKS.get(usize::from(self.block));
        block.and_then(|b| b.text().get(self.from as usize..self.to as usize)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_unpacks_to_what_was_packed() {
        for block in &BLOCKS {
            assert_eq!(block.text().len(), block.len);
            assert!(block.packed.len() * 3 < block.len, "{} of {}", block.packed.len(), block.len);
        }
    }
}
