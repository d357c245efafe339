//! RTT gradients summed over a window of rounds, and the draw that they weigh.

use tcpscape_base::Stream;

/// Smallest and largest of something, µs; zero is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Range {
    pub min: i32,
    pub max: i32,
}

impl Range {
    pub const NONE: Range = Range { min: 0, max: 0 };

    /// Takes an RTT.
    pub fn add(&mut self, rtt: i32) {
        self.min = if self.min == 0 { rtt } else { self.min.min(rtt) };
        self.max = self.max.max(rtt);
    }

    pub fn minus(self, o: Range) -> Range {
        Range { min: self.min.wrapping_sub(o.min), max: self.max.wrapping_sub(o.max) }
    }

    fn plus(self, o: Range) -> Range {
        Range { min: self.min.wrapping_add(o.min), max: self.max.wrapping_add(o.max) }
    }
}

/// The gradients of the last rounds; their number is a power of two.
#[derive(Clone, Debug)]
pub(super) struct Gradient {
    rounds: Vec<Range>,
    sum: Range,
    next: usize,
    filled: bool,
}

impl Gradient {
    pub fn new(window: usize) -> Gradient {
        Gradient { rounds: vec![Range::NONE; window], sum: Range::NONE, next: 0, filled: false }
    }

    pub fn window(&self) -> usize {
        self.rounds.len()
    }

    /// Adds a round; the sums, and the rise over the window: that of the smallest RTT, or of the largest where that does not rise.
    /// A window not yet filled is extrapolated.
    pub fn add(&mut self, of_round: Range) -> (Range, i32) {
        self.sum = self.sum.plus(of_round.minus(self.rounds[self.next]));
        self.rounds[self.next] = of_round;
        self.next = (self.next + 1) % self.rounds.len();
        let mut rise = if self.sum.min > 0 { self.sum.min } else { self.sum.max };
        if !self.filled {
            match self.next as i32 {
                0 => self.filled = true,
                n => rise = rise.wrapping_mul(self.rounds.len() as i32) / n,
            }
        }
        (self.sum, rise)
    }
}

/// True with probability 1 − exp(−`micro`/10⁶).
pub(super) fn is_drawn(random: &mut Stream, micro: u32) -> bool {
    random.next_u32() > negative_exp(micro)
}

/// exp(−`micro`/10⁶) times 2³², at most 2³² − 1. With x = n ln 2 + r it is 2⁻ⁿ times the Taylor series of e⁻ʳ, r < ln 2.
pub(super) fn negative_exp(micro: u32) -> u32 {
    let x = (u64::from(micro) << 32) / 1_000_000;
    let (n, r) = (x / LN_2, x % LN_2);
    // e⁻ʳ = 1 − r (1 − r/2 (1 − r/3 (…))), from the inside.
    let series = (1..=TERMS).rev().fold(ONE, |inner, i| ONE - ((r * inner) >> 32) / i);
    series.checked_shr(n as u32).unwrap_or(0).min(u32::MAX.into()) as u32
}

/// 1 and ln 2, times 2³².
const ONE: u64 = 1 << 32;
const LN_2: u64 = 2_977_044_472;
/// Terms of the series: the next one is below 0.694¹²/12! = 3 · 10⁻¹¹.
const TERMS: u64 = 11;
