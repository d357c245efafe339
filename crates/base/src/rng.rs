//! Named random streams: each is a function of (seed, name), so adding a consumer moves nobody else's draws.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A deterministic stream of random numbers (xoshiro256++, Blackman and Vigna 2018), the same on every machine.
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream called `name` under `seed`, for example `Stream::new(7, "forward/0/netem/loss")`.
    pub fn new(seed: u64, name: &str) -> Stream {
        // FNV-1a over the name, then mixed with the seed by SplitMix64's finaliser; seed_from_u64 expands with SplitMix64.
        let mut h: u64 = 0xcbf2_9ce4_8422_2325;
        for b in name.bytes() {
            h = (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        let z = scrambled(seed.wrapping_add(STEP).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ h);
        Stream(Xoshiro256PlusPlus::seed_from_u64(z ^ (z >> 31)))
    }

    /// 32 uniform bits, as the kernel's `get_random_u32()` gives them.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        (self.0.next_u64() >> 32) as u32
    }

    /// 64 uniform bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in `0..n` (multiply-shift, as the kernel's `prandom_u32_max()`); 0 when `n` is 0.
    #[inline]
    pub fn below(&mut self, n: u32) -> u32 {
        ((u64::from(self.next_u32()) * u64::from(n)) >> 32) as u32
    }

    /// Uniform in `[0, 1)`, 53 bits.
    #[inline]
    pub fn unit_f64(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

/// A number from a seed and a purpose, spread evenly: splitmix64's output (Steele, Lea and Flood 2014).
pub fn mix(seed: u64, purpose: u64) -> u64 {
    let z = scrambled(seed.wrapping_add(purpose.wrapping_mul(STEP)).wrapping_add(STEP));
    z ^ (z >> 31)
}

/// A flow's number scrambled under a key, which sorts flows into buckets: use the upper half.
pub fn flow_hash(flow: u32, key: u64) -> u64 {
    scrambled((u64::from(flow) ^ key).wrapping_add(STEP))
}

/// What splitmix64 adds at each step.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64's finaliser without its last step.
fn scrambled(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The generator's first outputs from 1234567, as its authors' implementation gives them.
    #[test]
    fn mix_is_the_output_of_splitmix64() {
        assert_eq!([0, 1].map(|n| mix(1_234_567, n)), [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn streams_are_reproducible_and_distinct() {
        let (mut a, mut b) = (Stream::new(1, "x"), Stream::new(1, "x"));
        assert_eq!((0..9).map(|_| a.next_u64()).collect::<Vec<_>>(), (0..9).map(|_| b.next_u64()).collect::<Vec<_>>());
        assert_ne!(Stream::new(1, "x").next_u64(), Stream::new(1, "y").next_u64());
        assert_ne!(Stream::new(1, "x").next_u64(), Stream::new(2, "x").next_u64());
    }

    #[test]
    fn below_covers_its_range_evenly() {
        let mut s = Stream::new(3, "dice");
        let mut n = [0u32; 6];
        for _ in 0..60_000 {
            n[s.below(6) as usize] += 1;
        }
        assert!(n.iter().all(|&k| (9_500..10_500).contains(&k)), "{n:?}");
        assert_eq!(s.below(0), 0);
    }
}
