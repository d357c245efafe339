//! Reordering by overtaking.
//!
//! What it is: netem's `reorder P [CORRELATION] gap N`: of the packets after the first N−1, each is sent at once with
//! probability P, the others wait out their delay.
//! Source: tc-netem(8).
//! How it differs: nothing known.
//! What it does not model: reordering by jitter is not here; it comes from due times.

use super::crandom::Crandom;
use crate::values::Prob;
use tcpscape_base::Stream;

/// Decides who overtakes.
#[derive(Clone, Debug)]
pub struct Reorder {
    p: Prob,
    gap: u32,
    since: u32,
    random: Crandom,
}

impl Reorder {
    /// With its own stream; `gap` 0 turns it off.
    pub fn new(p: Prob, correlation: Prob, gap: u32, stream: Stream) -> Reorder {
        Reorder { p, gap, since: 0, random: Crandom::new(correlation, stream) }
    }
    /// Whether this packet goes at once.
    #[inline]
    pub fn overtakes(&mut self) -> bool {
        if self.gap == 0 {
            return false;
        }
        let waits = self.since < self.gap - 1 || self.p.0 < self.random.draw();
        self.since = if waits { self.since.wrapping_add(1) } else { 0 };
        !waits
    }
    /// A change of parameters starts the gap again.
    pub fn restart(&mut self) {
        self.since = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fifth_with_certainty() {
        let mut r = Reorder::new(Prob::ONE, Prob::ZERO, 5, Stream::new(1, "r"));
        let hits: Vec<usize> = (1..=20).filter(|_| r.overtakes()).collect();
        assert_eq!(hits, [5, 10, 15, 20]);
    }
}
