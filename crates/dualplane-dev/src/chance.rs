//! Numbers drawn with a seed, the same on every machine.

/// Splitmix64: small, and the same on every machine.
pub(crate) struct Rng(u64);

impl Rng {
    /// For one draw of a thing with a name: what is drawn of it does not depend on which other things there are.
    pub(crate) fn of(seed: u64, name: &str, draw: u32) -> Self {
        let mut rng = Self(seed ^ u64::from(draw) << 32);
        for byte in name.bytes() {
            rng = Self(rng.next() ^ u64::from(byte));
        }
        rng
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// Between 0 and 1.
    pub(crate) fn share(&mut self) -> f64 {
        self.below(1 << 20) as f64 / f64::from(1 << 20)
    }
}
