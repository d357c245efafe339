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
