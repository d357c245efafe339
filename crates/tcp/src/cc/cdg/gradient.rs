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

/// exp(−`micro`/10⁶) of 2³² − 1: the lower eight bits linearly, a factor for each bit above (Linux: `nexp_u32()`).
pub(super) fn negative_exp(micro: u32) -> u32 {
    let high = micro >> 8;
    if high > 0xffff {
        return 0;
    }
    let low = u32::MAX - (micro & 0xff) * (u32::MAX / 1_000_000);
    (0..16).filter(|bit| high >> bit & 1 == 1).fold(low, |x, bit| ((u64::from(x) * POWERS[bit]) >> 16) as u32)
}

/// exp(−2ⁱ · 256/10⁶) · 2¹⁶, rounded; the sixth and the eleventh are one above, as in Linux.
const POWERS: [u64; 16] =
    [65_519, 65_502, 65_469, 65_402, 65_268, 65_002, 64_471, 63_423, 61_379, 57_485, 50_424, 38_796, 22_966, 8_048, 988, 15];
