//! Numbers by chance that are the same for the same seed, on every machine and in every version.

/// A generator (SplitMix64: Steele, Lea and Flood, OOPSLA 2014). Not for secrets.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// Starts at a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// One that is independent of this one, for a purpose that has a number: what one purpose takes does not move another.
    #[must_use]
    pub fn part(&self, purpose: u64) -> Self {
        let mut other = Self::new(self.state ^ purpose.wrapping_mul(0xD1B5_4A32_D192_ED03));
        let seed = other.next_u64();
        Self::new(seed)
    }

    /// The next 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in 0..1, never 1.
    pub fn share(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A whole number below this; 0 for 0.
    pub const fn below(&mut self, n: u64) -> u64 {
        // The product's upper half: no division, and no bias that a load could show.
        ((self.next_u64() as u128 * n as u128) >> 64) as u64
    }

    /// A number of the normal distribution (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.share()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.share()).cos()
    }

    /// A number of the exponential distribution with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.share()).ln()
    }

    /// A number of the gamma distribution of this shape with mean 1 (Marsaglia and Tsang, ACM TOMS 26 (2000), 363).
    pub fn gamma(&mut self, shape: f64) -> f64 {
        if !(shape.is_finite() && shape > 0.0) {
            return 1.0;
        }
        // Below 1 the density has no bound at 0: one of a larger shape is drawn down.
        let (own, boost) =
            if shape < 1.0 { (shape + 1.0, (1.0 - self.share()).powf(1.0 / shape)) } else { (shape, 1.0) };
        let d = own - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        // Each try holds with more than 95 %; the bound is there so that no input can keep it.
        for _ in 0..1_000 {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            if v > 0.0 && (1.0 - self.share()).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v * boost / shape;
            }
        }
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_and_deviation(mut next: impl FnMut() -> f64) -> (f64, f64) {
        let n = 200_000;
        let all: Vec<f64> = (0..n).map(|_| next()).collect();
        let mean = all.iter().sum::<f64>() / f64::from(n);
        let squares = all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / f64::from(n);
        (mean, squares.sqrt())
    }

    #[test]
    fn the_first_numbers_of_a_seed_never_change() {
        // Of the reference code for seed 1234567.
        let mut r = Random::new(1_234_567);
        let got: Vec<u64> = (0..3).map(|_| r.next_u64()).collect();
        assert_eq!(got, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn distributions_have_their_mean_and_deviation() {
        let mut r = Random::new(7);
        let (mean, deviation) = mean_and_deviation(|| r.exponential());
        assert!((mean - 1.0).abs() < 0.01 && (deviation - 1.0).abs() < 0.02, "{mean} {deviation}");
        for cv in [0.3, 1.0, 2.5] {
            let (mean, deviation) = mean_and_deviation(|| r.gamma(1.0 / (cv * cv)));
            assert!((mean - 1.0).abs() < 0.03 && (deviation - cv).abs() < 0.06, "{cv}: {mean} {deviation}");
        }
        let (mean, deviation) = mean_and_deviation(|| r.normal());
        assert!(mean.abs() < 0.01 && (deviation - 1.0).abs() < 0.01);
    }

    #[test]
    fn a_whole_number_stays_below_its_bound_and_reaches_all() {
        let mut r = Random::new(1);
        let mut seen = [0_u32; 6];
        for _ in 0..60_000 {
            seen[r.below(6) as usize] += 1;
        }
        assert!(seen.iter().all(|n| (9_500..10_500).contains(n)), "{seen:?}");
        assert_eq!(r.below(0), 0);
    }
}
