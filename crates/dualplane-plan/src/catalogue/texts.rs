//! Configurations of the catalogue: two thirds of a MiB as text, which say nearly the same. `build.rs` packs them in blocks, and a
//! block is unpacked when a plan first asks for one of its texts, in a tenth of a millisecond. Their names are one block more.

use dualplane_base::packed::Block;

use super::CatalogueEntry;

include!(concat!(env!("OUT_DIR"), "/blocks.rs"));

static NAMES: Block = include!(concat!(env!("OUT_DIR"), "/models.rs"));

/// All models, in the order of their files.
pub(super) fn entries() -> Vec<CatalogueEntry> {
    NAMES.text().lines().filter_map(entry).collect()
}

/// A line as `build.rs` writes it: id, other ids, source, and where the texts lie.
fn entry(line: &'static str) -> Option<CatalogueEntry> {
    let mut fields = line.split('\t');
    Some(CatalogueEntry {
        id: fields.next()?,
        aliases: fields.next()?.split_ascii_whitespace().collect(),
        source: fields.next()?,
        config: Place::of(fields.next()?)?,
        hf_quant_config: Place::of(fields.next()?),
    })
}

/// Where a text lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) block: u32,
    pub(super) from: u32,
    pub(super) to: u32,
}

impl Place {
    fn of(field: &str) -> Option<Self> {
        let mut numbers = field.split(' ').map(|n| n.parse().ok());
        Some(Self { block: numbers.next()??, from: numbers.next()??, to: numbers.next()?? })
    }

    pub(super) fn text(self) -> &'static str {
        let block = BLOCKS.get(self.block as usize);
        block.and_then(|b| b.text().get(self.from as usize..self.to as usize)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_unpacks_to_what_was_packed() {
        assert!(BLOCKS.len() > 5 && BLOCKS.iter().all(Block::is_whole) && NAMES.is_whole());
        assert_eq!(entries().len(), NAMES.text().lines().count());
        assert!(entries().iter().all(|e| e.config().starts_with('{')));
    }
}
