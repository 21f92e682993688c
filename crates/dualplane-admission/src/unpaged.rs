//! Servers that do not page their memory (Triton, TorchServe, diffusers, embedding and speech servers): what a request takes
//! is learnt by its shape, from the high-water of both planes.
//!
//! Such a server really dies of VRAM under concurrency, and nothing it says tells how close it is. So a shape that was never
//! seen runs alone; what it took then is what it is given afterwards.

use std::collections::BTreeMap;

/// Shapes that are told apart; beyond them a request runs alone.
const MAX_SHAPES: usize = 512;
/// What is given above what was seen, tenths: allocators round up, and fragments remain.
const MARGIN_TENTHS: u64 = 11;

/// The shape of a request: each measure by its powers of two, so that what is alike shares what was learnt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bucket {
    tokens: u8,
    pixels: u8,
    batch: u8,
    steps: u8,
    bytes: u8,
}

impl Bucket {
    /// Of these measures; 0 where a request has none of it.
    #[must_use]
    pub fn of(tokens: u64, pixels: u64, batch: u64, steps: u64, bytes: u64) -> Self {
        let power = |n: u64| u8::try_from(u64::BITS - n.leading_zeros()).unwrap_or(u8::MAX);
        Self {
            tokens: power(tokens),
            pixels: power(pixels),
            batch: power(batch),
            steps: power(steps),
            bytes: power(bytes),
        }
    }

    /// At least as large in each measure.
    fn covers(&self, other: &Self) -> bool {
        self.tokens >= other.tokens
            && self.pixels >= other.pixels
            && self.batch >= other.batch
            && self.steps >= other.steps
            && self.bytes >= other.bytes
    }
}

/// What a request takes of both planes, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Need {
    /// VRAM.
    pub vram: u64,
    /// Host RAM.
    pub host: u64,
}

impl Need {
    /// What is there above what was there before.
    pub(crate) fn above(self, before: Self) -> Self {
        Self { vram: self.vram.saturating_sub(before.vram), host: self.host.saturating_sub(before.host) }
    }
}

/// What was learnt of each shape.
#[derive(Debug, Clone, Default)]
pub struct Shapes {
    seen: BTreeMap<Bucket, Need>,
}

impl Shapes {
    /// What a request of this shape may take; `None`: not known, so it has to run alone.
    ///
    /// A shape that is covered by one that was seen takes at most as much: memory grows with each measure.
    #[must_use]
    pub fn need(&self, bucket: &Bucket) -> Option<Need> {
        let own = self.seen.get(bucket).copied();
        own.or_else(|| {
            self.seen.iter().filter(|(b, _)| b.covers(bucket)).map(|(_, n)| *n).min_by_key(|n| n.vram)
        })
    }

    /// Takes in what a request took that ran alone from its start to its end: high-water less what was there before.
    pub fn alone(&mut self, bucket: Bucket, took: Need) {
        let margin = |n: u64| n.saturating_mul(MARGIN_TENTHS) / 10;
        if self.seen.len() >= MAX_SHAPES && !self.seen.contains_key(&bucket) {
            return;
        }
        let known = self.seen.entry(bucket).or_default();
        known.vram = known.vram.max(margin(took.vram));
        known.host = known.host.max(margin(took.host));
    }

    /// Takes in what requests that ran together took: where it is more than they were given, each of them is given more.
    pub fn together(&mut self, buckets: &[Bucket], took: Need) {
        let given = buckets.iter().filter_map(|b| self.need(b)).fold(Need::default(), |a, n| Need {
            vram: a.vram.saturating_add(n.vram),
            host: a.host.saturating_add(n.host),
        });
        let more = |known: u64, took: u64, given: u64| {
            if took <= given {
                return known;
            }
            // Whoever was thought to take nothing may have taken all of it.
            if given == 0 {
                return took;
            }
            let scaled = u128::from(known) * u128::from(took) / u128::from(given);
            u64::try_from(scaled).unwrap_or(u64::MAX)
        };
        for bucket in buckets {
            if let Some(known) = self.seen.get_mut(bucket) {
                known.vram = more(known.vram, took.vram, given.vram);
                known.host = more(known.host, took.host, given.host);
            }
        }
    }

    /// Shapes that are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.seen.len()
    }

    /// Whether nothing was learnt yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_new_shape_is_not_known_a_smaller_one_is() {
        let mut s = Shapes::default();
        let image = |pixels| Bucket::of(77, pixels, 1, 50, 1000);
        assert_eq!(s.need(&image(1 << 20)), None);
        s.alone(image(1 << 20), Need { vram: 1000, host: 10 });
        assert_eq!(s.need(&image(1 << 20)), Some(Need { vram: 1100, host: 11 }));
        assert_eq!(s.need(&image(1 << 18)).map(|n| n.vram), Some(1100));
        assert_eq!(s.need(&image(1 << 22)), None);
        s.together(&[image(1 << 20), image(1 << 20)], Need { vram: 3300, host: 1 });
        assert_eq!(s.need(&image(1 << 20)).map(|n| n.vram), Some(2475), "both entries are one: raised twice");
    }

    proptest! {
        #[test]
        fn what_was_seen_is_always_given_again(seen in proptest::collection::vec((0_u64..9, 0_u64..9, 0_u64..1 << 40), 1..60)) {
            let mut s = Shapes::default();
            let mut most: BTreeMap<Bucket, u64> = BTreeMap::new();
            for (tokens, pixels, vram) in seen {
                let b = Bucket::of(1 << tokens, 1 << pixels, 1, 0, 0);
                s.alone(b, Need { vram, host: 0 });
                let m = most.entry(b).or_default();
                *m = (*m).max(vram);
            }
            for (b, m) in most {
                prop_assert!(s.need(&b).unwrap().vram >= m);
            }
        }
    }
}
