//! netem's correlated random numbers.

use crate::values::Prob;
use tcpscape_base::Stream;

/// Uniform 32-bit numbers of which each leans on the last: `value · (1 − ρ) + last · ρ` in 32-bit fixed point.
/// With ρ = 0 they are independent. Correlation narrows the distribution, as in netem. Linux: get_crandom()
#[derive(Clone, Debug)]
pub struct Crandom {
    rho: u64,
    last: u64,
    stream: Stream,
}

impl Crandom {
    /// A generator over its own stream.
    pub fn new(correlation: Prob, mut stream: Stream) -> Crandom {
        let last = if correlation.0 == 0 { 0 } else { u64::from(stream.next_u32()) };
        Crandom { rho: u64::from(correlation.0), last, stream }
    }
    /// The next number.
    #[inline]
    pub fn draw(&mut self) -> u32 {
        let fresh = u64::from(self.stream.next_u32());
        if self.rho == 0 {
            return fresh as u32;
        }
        let weight = self.rho + 1;
        self.last = (fresh * ((1 << 32) - weight) + self.last * weight) >> 32;
        self.last as u32
    }
    /// netem's test of a probability: `p ≥ draw`, so 2³²−1 is always; nothing is drawn when `p` is 0.
    #[inline]
    pub fn hits(&mut self, p: Prob) -> bool {
        p.0 != 0 && p.0 >= self.draw()
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
