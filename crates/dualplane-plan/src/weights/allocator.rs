//! What torch's caching allocator adds to a tensor by rounding.
//!
//! Source: torch c10/cuda/CUDACachingAllocator.cpp. More than 1 MiB comes from the large pool: the smallest free block
//! that holds it, else a new segment of 20 MiB, or from 10 MiB on of whole 2 MiB. A rest of more than 1 MiB is split
//! off and stays free; a smaller one stays with the tensor.

use crate::arith::round_up;
use dualplane_base::units::MIB;

/// The large pool of one rank while weights are made.
#[derive(Debug, Clone, Default)]
pub(super) struct Allocator {
    free: Vec<u64>,
    charged: u64,
}

/// More free blocks than matter.
const MAX_FREE: usize = 64;
/// More tensors of one shape than any layer has.
const MAX_TENSORS: u64 = 4096;

impl Allocator {
    /// Allocates so many tensors of one size.
    pub(super) fn take(&mut self, bytes: u64, count: u64) {
        if bytes <= MIB {
            return;
        }
        for _ in 0..count.min(MAX_TENSORS) {
            self.one(round_up(bytes, 512));
        }
    }

    fn one(&mut self, bytes: u64) {
        let best = self
            .free
            .iter()
            .enumerate()
            .filter(|(_, f)| **f >= bytes)
            .min_by_key(|(_, f)| **f)
            .map(|(i, _)| i);
        let block = match best {
            Some(i) => self.free.swap_remove(i),
            None if bytes < 10 * MIB => 20 * MIB,
            None => round_up(bytes, 2 * MIB),
        };
        let rest = block.saturating_sub(bytes);
        if rest > MIB {
            if self.free.len() < MAX_FREE {
                self.free.push(rest);
            }
        } else {
            self.charged = self.charged.saturating_add(rest);
        }
    }

    /// Bytes charged beyond the tensors.
    pub(super) const fn charged(&self) -> u64 {
        self.charged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_rests_stay_with_their_tensor() {
        let mut a = Allocator::default();
        a.take(95 * MIB, 36); // gate and up of Qwen3-4B: 96 MiB each
        assert_eq!(a.charged(), 36 * MIB);
        a.take(MIB, 100);
        assert_eq!(a.charged(), 36 * MIB);
    }

    #[test]
    fn larger_rests_serve_the_next() {
        let mut a = Allocator::default();
        a.take(9 * MIB, 2); // 20 MiB hold both, 2 MiB are left and stay free
        assert_eq!(a.charged(), 0);
        a.take(3 * MIB / 2, 1); // fits into those, half a MiB is left and charged
        assert_eq!(a.charged(), MIB / 2);
    }
}
