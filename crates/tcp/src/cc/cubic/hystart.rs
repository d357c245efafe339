//! HyStart: two ways to see in slow start that the path is full, before it overflows.
//!
//! **What it is.** In each round trip it looks at the length of the train of closely spaced ACKs, and at the smallest RTT
//! of the first samples. **Source.** Ha, Rhee: "Taming the elephants: New TCP slow start", Computer Networks 55 (2011).
//! **How it differs.** From the paper, as Linux is seen to do (docs/models/controls/cubic.md): the train may last a whole smallest RTT, plus an
//! allowance for bursts, when the flow is paced. **What it does not model.** Nothing of it is left out.

use super::params::Rules;
use crate::cc::{View, Window};

/// Looks for the end of slow start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HyStart {
    /// The end was found; until the next timeout there is nothing more to look for.
    pub found: bool,
    /// The sequence number whose acknowledgement ends the round.
    round_end: u64,
    train: AckTrain,
    delay: DelayRise,
}

impl HyStart {
    /// A round trip begins.
    pub fn new_round(&mut self, v: &View) {
        self.round_end = v.snd_nxt;
        self.train = AckTrain::begin(v);
        self.delay = DelayRise::default();
    }

    /// Takes one RTT and the smallest one, µs; slow start may end at the current window.
    pub fn sample(&mut self, v: &View, w: &mut Window, rtt: u32, smallest: u32, rules: &Rules) {
        if v.snd_una > self.round_end {
            self.new_round(v);
        }
        if w.cwnd < rules.low_window {
            return;
        }
        let is_train_long = rules.train && self.train.lengthen(v, rules.ack_gap) && self.train.length() > longest_train(w, smallest);
        let has_delay_grown = rules.delay && self.delay.take(rtt) && self.delay.is_above(smallest);
        self.found = is_train_long || has_delay_grown;
        if self.found {
            w.ssthresh = w.cwnd;
        }
    }
}

/// ACKs that follow each other closely, from the beginning of the round (the paper's ACK train); µs, low 32 bits.
#[derive(Clone, Copy, Debug, Default)]
struct AckTrain {
    began: u32,
    last: u32,
}

impl AckTrain {
    fn begin(v: &View) -> AckTrain {
        let now = v.now.micros() as u32;
        AckTrain { began: now, last: now }
    }

    /// Takes an ACK; whether it belongs to the train, its gap being `most` µs at most.
    fn lengthen(&mut self, v: &View, most: i32) -> bool {
        let now = v.now.micros() as u32;
        let belongs = now.wrapping_sub(self.last) as i32 <= most;
        if belongs {
            self.last = now;
        }
        belongs
    }

    fn length(&self) -> u32 {
        self.last.wrapping_sub(self.began)
    }
}

/// The length of a train that fills the path, µs: half of the smallest RTT (paper), or all of it when pacing spreads the ACKs.
fn longest_train(w: &Window, smallest: u32) -> u32 {
    let whole = smallest.wrapping_add(burst_allowance(w));
    if w.paced {
        whole
    } else {
        whole / 2
    }
}

/// What segmentation offload may add to a train, µs: four largest bursts at the pacing rate (which slow start doubles), at most 1 ms.
fn burst_allowance(w: &Window) -> u32 {
    (4 * MAX_BURST * 1_000_000).checked_div(w.pacing_rate).map_or(0, |us| us.min(1_000) as u32)
}

/// The smallest RTT of a round (the paper's delay increase).
#[derive(Clone, Copy, Debug)]
struct DelayRise {
    /// µs.
    smallest: u32,
    /// Counted up to [`MIN_SAMPLES`].
    samples: u8,
}

impl Default for DelayRise {
    fn default() -> DelayRise {
        DelayRise { smallest: u32::MAX, samples: 0 }
    }
}

impl DelayRise {
    /// Takes an RTT; whether there were enough before it.
    fn take(&mut self, rtt: u32) -> bool {
        self.smallest = self.smallest.min(rtt);
        let is_enough = self.samples >= MIN_SAMPLES;
        self.samples += u8::from(!is_enough);
        is_enough
    }

    /// Whether the round's smallest RTT is an eighth above the smallest of all (4 ms at least, 16 ms at most).
    fn is_above(&self, smallest: u32) -> bool {
        self.smallest > smallest.saturating_add((smallest / 8).clamp(DELAY_MIN, DELAY_MAX))
    }
}

/// RTT samples in a round before the smallest counts (paper).
const MIN_SAMPLES: u8 = 8;
/// Bounds of the tolerated RTT increase, µs (paper).
const DELAY_MIN: u32 = 4_000;
const DELAY_MAX: u32 = 16_000;
/// Largest burst with segmentation offload, bytes: 64 KiB less room for the headers.
const MAX_BURST: u64 = 65_536 - 320 - 1;
