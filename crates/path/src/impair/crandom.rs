//! netem's correlated random numbers, and what they decide alone.
//!
//! What it is: uniform 32-bit numbers of which each leans on the last, by exponential smoothing.
//! Source: tc-netem(8) (`CORRELATION`); docs/models/queues/netem.md.
//! How it differs: nothing known. Correlation narrows the distribution, as in netem.
//! What it does not model: nothing.

use crate::values::Prob;
use tcpscape_base::Stream;

/// A generator of them; with correlation 0 they are independent.
#[derive(Clone, Debug)]
pub struct Crandom {
    memory: Option<Memory>,
    stream: Stream,
}

/// The last number and how much of it the next keeps.
#[derive(Clone, Copy, Debug)]
struct Memory {
    last: u32,
    /// Share of a fresh number in the next, of 2³²: one less the correlation, whose 2³² − 1 stands for certainty.
    fresh: u32,
}

impl Memory {
    /// The last number moves towards a fresh one by the share of that, rounded down.
    fn next(&mut self, fresh: u32) -> u32 {
        let way = i128::from(fresh) - i128::from(self.last);
        let moved = i128::from(self.last) + ((way * i128::from(self.fresh)) >> 32);
        self.last = moved as u32;
        self.last
    }
}

impl Crandom {
    /// A generator over its own stream. One with memory begins with a number of which nothing is seen.
    pub fn new(correlation: Prob, mut stream: Stream) -> Crandom {
        let memory = (correlation.0 > 0).then(|| Memory { last: stream.next_u32(), fresh: u32::MAX - correlation.0 });
        Crandom { memory, stream }
    }
    /// The next number.
    #[inline]
    pub fn draw(&mut self) -> u32 {
        let fresh = self.stream.next_u32();
        match &mut self.memory {
            None => fresh,
            Some(memory) => memory.next(fresh),
        }
    }
    /// netem's test of a probability: `p ≥ draw`, so 2³²−1 is always; nothing is drawn when `p` is 0.
    #[inline]
    pub fn hits(&mut self, p: Prob) -> bool {
        p.0 != 0 && p.0 >= self.draw()
    }
}

/// A decision about each packet by itself, with a stream of its own: netem's `corrupt` and `duplicate`.
#[derive(Clone, Debug)]
pub struct Chance {
    p: Prob,
    random: Crandom,
}

impl Chance {
    /// That of probability `p`.
    pub fn new(p: Prob, correlation: Prob, stream: Stream) -> Chance {
        Chance { p, random: Crandom::new(correlation, stream) }
    }
    /// Whether it strikes the next packet.
    #[inline]
    pub fn strikes(&mut self) -> bool {
        self.random.hits(self.p)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_correlation_is_the_mean_of_fresh_and_last() {
        let mut plain = Stream::new(5, "c");
        let mut c = Crandom::new(Prob(0x7fff_ffff), Stream::new(5, "c"));
        let mut last = u64::from(plain.next_u32());
        for _ in 0..20 {
            last = (u64::from(plain.next_u32()) + last) / 2;
            assert_eq!(u64::from(c.draw()), last);
        }
    }

    #[test]
    fn a_quarter_of_correlation_keeps_a_quarter() {
        // From 1000 towards 2000 by three quarters: 1750; towards 0: 437.5, rounded down; towards 2³² − 1 from there: 3221225581.
        let mut memory = Memory { last: 1_000, fresh: 3 << 30 };
        assert_eq!([memory.next(2_000), memory.next(0), memory.next(u32::MAX)], [1_750, 437, 3_221_225_580]);
    }

    #[test]
    fn full_correlation_never_changes() {
        let mut c = Crandom::new(Prob::ONE, Stream::new(5, "c"));
        let first = c.draw();
        assert!((0..50).all(|_| c.draw() == first));
    }

    #[test]
    fn certainty_always_hits_and_zero_never() {
        let mut c = Crandom::new(Prob::ZERO, Stream::new(1, "c"));
        assert!((0..1000).all(|_| c.hits(Prob::ONE) && !c.hits(Prob::ZERO)));
    }
}
