//! When slow start ends before a loss: HyStart with a clock in µs, from the first window on.
//!
//! **What it is.** Two detectors, of a long train of ACKs and of a grown delay. **Source.** Ha, Rhee: "Taming the elephants: New TCP slow
//! start", Computer Networks 55 (2011). **How it differs.** docs/models/controls/cdg.md. **What it does not model.** Nothing is left out.

use super::super::reno::held_by_window;
use crate::cc::{View, Window};
use tcpscape_base::wire::ahead;

/// Looks for the end of slow start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HyStart {
    /// Smallest RTT seen in slow start, µs; 0 before the first.
    pub smallest: i32,
    train: Option<Train>,
    /// ACKs of the round whose delay was not judged yet, counted up to [`UNJUDGED`].
    unjudged: u32,
}

/// ACKs that follow each other closely, µs in 32 bits.
#[derive(Clone, Copy, Debug)]
struct Train {
    began: u32,
    last: u32,
}

impl HyStart {
    pub fn next_round(&mut self) {
        self.train = None;
        self.unjudged = 0;
    }

    /// An ACK in slow start; `of_round` is the smallest RTT of the round, 0 for none. Sets `ssthresh` when slow start is over.
    pub fn update(&mut self, v: &View, w: &mut Window, of_round: i32, detect: u32) {
        self.smallest = match (self.smallest, of_round) {
            (0, rtt) | (rtt, 0) => rtt,
            (a, b) => a.min(b),
        };
        if self.smallest == 0 {
            return;
        }
        let train = detect & BY_TRAIN != 0 && self.is_train_long(v, w);
        if train || detect & BY_DELAY != 0 && self.has_delay_grown(of_round) {
            w.ssthresh = w.cwnd;
        }
    }

    /// The train has lasted for longer than a one-way delay, half of the smallest RTT (the paper's ACK train). After a gap the round has no other train; an
    /// ACK that leaves the window unused begins another.
    fn is_train_long(&mut self, v: &View, w: &Window) -> bool {
        let now = v.now.micros() as u32;
        let Some(train) = self.train.as_mut().filter(|_| held_by_window(v, w)) else {
            self.train = Some(Train { began: now, last: now });
            return false;
        };
        if ahead(train.last.wrapping_add(GAP_US - 1), now) > 0 {
            return false;
        }
        train.last = now;
        let one_way = (self.smallest as u32 / 2).max(LEAST_US);
        ahead(train.began.wrapping_add(one_way), now) > 0
    }

    /// After eight ACKs of a round its smallest RTT is more than an eighth above the smallest (the paper's delay increase).
    fn has_delay_grown(&mut self, of_round: i32) -> bool {
        let is_judged = self.unjudged == UNJUDGED;
        self.unjudged = (self.unjudged + 1).min(UNJUDGED);
        is_judged && of_round > (self.smallest + self.smallest / 8).max(LEAST_US as i32)
    }
}

/// Bits of `hystart_detect`.
const BY_TRAIN: u32 = 1;
const BY_DELAY: u32 = 2;
/// ACKs of one train are closer than this, µs.
const GAP_US: u32 = 3_000;
/// Smallest one-way delay and smallest threshold of the delay, µs.
const LEAST_US: u32 = 125;
/// ACKs of a round before its smallest RTT is judged.
const UNJUDGED: u32 = 8;
