//! Configurations of the catalogue: two thirds of a MiB as text, which say nearly the same. `build.rs` packs them in blocks, and a
//! block is unpacked when a plan first asks for one of its texts, in a tenth of a millisecond.

use dualplane_base::packed::Block;

include!(concat!(env!("OUT_DIR"), "/blocks.rs"));

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
        assert!(BLOCKS.len() > 5 && BLOCKS.iter().all(Block::is_whole));
    }
}
