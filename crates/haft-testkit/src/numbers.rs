//! Numbers that are drawn by a seed.

/// Numbers that look random (`SplitMix64`: Steele, Lea, Flood 2014); the same seed gives the same.
#[derive(Clone, Debug)]
pub struct Numbers(u64);

impl Numbers {
    /// Those of a seed.
    pub const fn of(seed: u64) -> Self {
        Self(seed)
    }

    /// The next one below a bound, which is at least 1.
    pub const fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}
