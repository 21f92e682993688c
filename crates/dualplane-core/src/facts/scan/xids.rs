//! Xid lines of one file, bounded: a flood of one code must not hide another code or another GPU.

use std::collections::HashMap;

use crate::facts::XidEvent;

/// Lines of one Xid code of one GPU in one file.
const KEPT_OF_ONE: u64 = 16;
/// Xid lines in one file: all of the driver's fewer than 200 codes on some of a node's 16 GPUs.
const KEPT: usize = 4096;

/// Those that are kept, and how many are not.
#[derive(Debug, Default)]
pub(super) struct Xids {
    pub(super) kept: Vec<XidEvent>,
    pub(super) dropped: u64,
    counts: HashMap<(u32, String), u64>,
}

impl Xids {
    pub(super) fn take(&mut self, event: XidEvent) {
        let full = self.kept.len() >= KEPT;
        let key = (event.code, event.pci.clone());
        let kept = match self.counts.get_mut(&key) {
            Some(n) => {
                *n += 1;
                *n <= KEPT_OF_ONE && !full
            }
            None if full => false,
            None => {
                self.counts.insert(key, 1);
                true
            }
        };
        if kept {
            self.kept.push(event);
        } else {
            self.dropped += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::KEPT_OF_ONE;
    use crate::facts::scan::tests::facts;

    #[test]
    fn a_flood_of_one_xid_does_not_hide_another() {
        let mut text =
            "[1.000000] NVRM: Xid (PCI:0000:4a:00): 43, pid=1, name=x, Ch 00000001\n".repeat(10_050);
        text.push_str("[1.500000] NVRM: Xid (PCI:0000:5a:00): 43, pid=1, name=x, Ch 00000001\n");
        text.push_str("[2.000000] NVRM: Xid (PCI:0000:4a:00): 79, GPU has fallen off the bus.\n");
        let f = facts("kernel.log", &text, true);
        assert_eq!(f.xids.last().map(|x| x.code), Some(79));
        assert_eq!(f.xids.len() as u64, KEPT_OF_ONE + 2);
        assert_eq!(f.logs[0].dropped_xids, 10_050 - KEPT_OF_ONE);
    }
}
