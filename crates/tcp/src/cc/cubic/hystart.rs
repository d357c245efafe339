//! HyStart: two ways to see in slow start that the path is full, before it overflows.
//!
//! **What it is.** In each round trip it looks at the length of the train of closely spaced ACKs, and at the smallest RTT
//! of the first samples. **Source.** Ha, Rhee: "Taming the elephants: New TCP slow start", Computer Networks 55 (2011);
//! Linux 6.1: `hystart_update()`. **How it differs.** From the paper, as Linux 6.1 does: the train may last a whole
//! smallest RTT, plus an allowance for bursts, when the flow is paced. **What it does not model.** Nothing of it is left out.

use super::params::Rules;
use crate::cc::{View, Window};

/// Looks for the end of slow start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HyStart {
    /// The end was found; until the next timeout there is nothing more to look for.
    pub found: bool,
    /// The sequence number whose acknowledgement ends the round (`end_seq`).
    end: u64,
    /// When the round began, µs, low 32 bits.
    began: u32,
    /// The last ACK of the train, µs, low 32 bits (`last_ack`).
    train: u32,
    /// Smallest RTT of the round, µs (`curr_rtt`).
    rtt: u32,
    /// RTT samples in the round, counted up to 8.
    samples: u8,
}

impl HyStart {
    /// A round trip begins (Linux: `bictcp_hystart_reset()`).
    pub fn new_round(&mut self, v: &View) {
        let now = v.now.micros() as u32;
        *self = HyStart { found: self.found, end: v.snd_nxt, began: now, train: now, rtt: u32::MAX, samples: 0 };
    }

    /// Takes one RTT and the smallest one; slow start may end at the current window.
    pub fn sample(&mut self, v: &View, w: &mut Window, (rtt, delay_min): (u32, u32), rules: &Rules) {
        if v.snd_una > self.end {
            self.new_round(v);
        }
        if w.cwnd < rules.low_window {
            return;
        }
        let train = rules.train && self.train_is_long(v, w, delay_min, rules.ack_gap);
        let delay = rules.delay && self.delay_has_grown(rtt, delay_min);
        self.found = train || delay;
        if self.found {
            w.ssthresh = w.cwnd;
        }
    }

    /// ACKs have come without a gap for half of the smallest RTT, or all of it when pacing spreads them.
    fn train_is_long(&mut self, v: &View, w: &Window, delay_min: u32, ack_gap: i32) -> bool {
        let now = v.now.micros() as u32;
        if now.wrapping_sub(self.train) as i32 > ack_gap {
            return false;
        }
        self.train = now;
        let limit = delay_min.wrapping_add(burst_allowance(w));
        now.wrapping_sub(self.began) > if w.paced { limit } else { limit / 2 }
    }

    /// After eight samples, the round's smallest RTT is an eighth above the smallest (4 ms at least, 16 ms at most).
    fn delay_has_grown(&mut self, rtt: u32, delay_min: u32) -> bool {
        self.rtt = self.rtt.min(rtt);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        self.rtt > delay_min.saturating_add((delay_min >> 3).clamp(DELAY_MIN, DELAY_MAX))
    }
}

/// What segmentation offload may add to a train: four largest bursts at the pacing rate (which slow start doubles), at most
/// 1 ms. Linux: `hystart_ack_delay()`
fn burst_allowance(w: &Window) -> u32 {
    match w.pacing_rate {
        0 => 0,
        rate => (MAX_BURST * 4 * 1_000_000 / rate).min(1_000) as u32,
    }
}

/// RTT samples in a round before the smallest counts (`HYSTART_MIN_SAMPLES`).
const MIN_SAMPLES: u8 = 8;
/// Bounds of the tolerated RTT increase, µs (`HYSTART_DELAY_MIN`, `HYSTART_DELAY_MAX`).
const DELAY_MIN: u32 = 4_000;
const DELAY_MAX: u32 = 16_000;
/// Largest burst with segmentation offload, bytes (`sk_gso_max_size`): 64 KiB less room for the headers.
const MAX_BURST: u64 = 65_536 - 320 - 1;
