//! netem's correlated random numbers, what they decide alone (duplicates, damage), and reordering by overtaking.
//!
//! What it is: uniform 32-bit numbers of which each leans on the last, by exponential smoothing; netem's `reorder P [CORRELATION] gap N`: of the
//! packets after the first N−1, each is sent at once with probability P, the others wait out their delay.
//! Source: tc-netem(8) (`CORRELATION`); docs/models/queues/netem.md.
//! How it differs: nothing known. Correlation narrows the distribution, as in netem.
//! What it does not model: reordering by jitter is not here; it comes from due times.

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
    /// Whether it strikes no packet.
    pub fn never_strikes(&self) -> bool {
        self.p == Prob::ZERO
    }
    /// Whether it strikes the next packet.
    #[inline]
    pub fn strikes(&mut self) -> bool {
        self.random.hits(self.p)
    }
}

/// Decides who overtakes.
#[derive(Clone, Debug)]
pub struct Reorder {
    p: Prob,
    /// Packets that wait out their delay after each one that overtakes; `None` turns it off.
    least: Option<u32>,
    /// How many of them are still to come.
    waiting: u32,
    random: Crandom,
}

impl Reorder {
    /// With its own stream; `gap` 0 turns it off.
    pub fn new(p: Prob, correlation: Prob, gap: u32, stream: Stream) -> Reorder {
        let least = gap.checked_sub(1);
        Reorder { p, least, waiting: least.unwrap_or(0), random: Crandom::new(correlation, stream) }
    }
    /// Whether any packet may overtake.
    pub fn is_on(&self) -> bool {
        self.least.is_some()
    }
    /// Whether this packet goes at once. Nothing is drawn for one that has to wait.
    #[inline]
    pub fn overtakes(&mut self) -> bool {
        let Some(least) = self.least else { return false };
        if self.waiting > 0 {
            self.waiting -= 1;
            return false;
        }
        let hit = self.p.0 >= self.random.draw();
        if hit {
            self.waiting = least;
        }
        hit
    }
    /// A change of parameters starts the gap again.
    pub fn restart(&mut self) {
        self.waiting = self.least.unwrap_or(0);
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

    #[test]
    fn every_fifth_with_certainty() {
        let mut r = Reorder::new(Prob::ONE, Prob::ZERO, 5, Stream::new(1, "r"));
        let hits: Vec<usize> = (1..=20).filter(|_| r.overtakes()).collect();
        assert_eq!(hits, [5, 10, 15, 20]);
    }

    #[test]
    fn chance_comes_after_the_gap() {
        // P = 25 %, gap 3: two wait, then each goes with 1/4: one of 2 + 4 packets.
        let mut r = Reorder::new(Prob::from_percent(25.0).unwrap(), Prob::ZERO, 3, Stream::new(1, "r"));
        let hits: Vec<usize> = (0..60_000).filter(|_| r.overtakes()).collect();
        assert!((9_800..10_200).contains(&hits.len()), "{}", hits.len());
        assert!(hits.windows(2).all(|w| w[1] - w[0] >= 3));
        let mut off = Reorder::new(Prob::ONE, Prob::ZERO, 0, Stream::new(1, "r"));
        assert!((0..9).all(|_| !off.overtakes()));
        let mut r = Reorder::new(Prob::ONE, Prob::ZERO, 3, Stream::new(1, "r"));
        assert_eq!([r.overtakes(), r.overtakes()], [false; 2]);
        r.restart();
        assert_eq!([(); 3].map(|()| r.overtakes()), [false, false, true]);
    }
}
