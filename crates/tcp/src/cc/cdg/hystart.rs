//! When slow start ends before a loss: HyStart with a clock in µs, from the first window on.

use super::super::reno::held_by_window;
use crate::cc::{View, Window};

/// What HyStart remembers of a round (Linux: `tcp_cdg_hystart_update()`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HyStart {
    /// Smallest RTT seen in slow start, µs; 0 before the first.
    pub delay_min: i32,
    /// Last ACK of the train and its start, µs in 32 bits; the last is 0 when there is no train.
    last_ack: u32,
    start: u32,
    /// ACKs of the round whose delay is not judged yet.
    skipped: u32,
}

impl HyStart {
    pub fn next_round(&mut self) {
        self.last_ack = 0;
        self.skipped = 0;
    }

    /// An ACK in slow start; `rtt_min` is the smallest RTT of the round, 0 for none. Sets `ssthresh` when slow start is over.
    pub fn update(&mut self, v: &View, w: &mut Window, rtt_min: i32, detect: u32) {
        self.delay_min = match (self.delay_min, rtt_min) {
            (0, m) | (m, 0) => m,
            (a, b) => a.min(b),
        };
        if self.delay_min == 0 {
            return;
        }
        let train = detect & ACK_TRAIN != 0 && self.is_long_train(v, w);
        if train || detect & DELAY != 0 && self.is_delayed(rtt_min) {
            w.ssthresh = w.cwnd;
        }
    }

    // A gap of 3 ms does not begin another train: the round has no more of them. One that does not fill the window does.
    fn is_long_train(&mut self, v: &View, w: &Window) -> bool {
        let now = v.now.micros() as u32;
        if self.last_ack == 0 || !held_by_window(v, w) {
            (self.last_ack, self.start) = (now, now);
            return false;
        }
        if now.wrapping_sub(self.last_ack.wrapping_add(GAP_US)) as i32 >= 0 {
            return false;
        }
        self.last_ack = now;
        let one_way = (self.delay_min as u32 / 2).max(LEAST_US);
        now.wrapping_sub(self.start.wrapping_add(one_way)) as i32 > 0
    }

    fn is_delayed(&mut self, rtt_min: i32) -> bool {
        if self.skipped < SKIPPED {
            self.skipped += 1;
            return false;
        }
        rtt_min > (self.delay_min + self.delay_min / 8).max(LEAST_US as i32)
    }
}

/// Bits of `hystart_detect`.
const ACK_TRAIN: u32 = 1;
const DELAY: u32 = 2;
/// ACKs of one train are closer than this, µs.
const GAP_US: u32 = 3_000;
/// Smallest one-way delay and smallest threshold of the delay, µs.
const LEAST_US: u32 = 125;
/// ACKs of a round before its smallest RTT is judged.
const SKIPPED: u32 = 8;
