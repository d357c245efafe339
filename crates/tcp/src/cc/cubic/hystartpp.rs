//! HyStart++: when the delay grows, slow start goes on at a quarter of its speed for five round trips, or returns to full speed if the
//! delay falls again.
//!
//! **What it is.** An end of slow start that survives a moment of jitter. **Source.** RFC 9406 §4.2, §4.3; the names are the RFC's.
//! **How it differs.** Packets for bytes. **What it does not model.** Nothing of the RFC is left out; Linux does not have it.

use crate::cc::reno::past_slow_start;
use crate::cc::{AckSample, View, Window, INFINITE_SSTHRESH};

/// HyStart++ in a connection's first slow start.
#[derive(Clone, Copy, Debug)]
pub(super) struct HyStartPp {
    /// Slow start has ended: it is not looked for again.
    pub done: bool,
    /// The sequence number whose acknowledgement ends the round (`windowEnd`).
    end: u64,
    /// Smallest RTT of the last round and of this one, µs; `u32::MAX` for none.
    last: u32,
    current: u32,
    /// RTT samples of this round, counted up to [`SAMPLES`].
    samples: u8,
    /// Conservative slow start: the RTT below which it was a false alarm, and the rounds that have ended in it.
    css: Option<(u32, u8)>,
    /// Packets acknowledged that have not grown the window yet.
    credit: u32,
}

impl HyStartPp {
    pub fn new(v: &View) -> HyStartPp {
        HyStartPp { done: false, end: v.snd_nxt, last: u32::MAX, current: u32::MAX, samples: 0, css: None, credit: 0 }
    }

    /// Whether it is at work: only in the first slow start (§4.3).
    fn works(&self, w: &Window) -> bool {
        !self.done && w.ssthresh == INFINITE_SSTHRESH
    }

    /// Takes one RTT; ends slow start when five rounds of the conservative one are over.
    pub fn sample(&mut self, v: &View, w: &mut Window, rtt: u32) {
        if !self.works(w) {
            return;
        }
        if v.snd_una > self.end {
            self.next_round(v, w);
        }
        self.current = self.current.min(rtt);
        self.samples = (self.samples + 1).min(SAMPLES);
        if self.samples < SAMPLES {
            return;
        }
        match self.css {
            None if self.last != u32::MAX => {
                let limit = self.last.saturating_add((self.last / RTT_DIVISOR).clamp(RTT_MIN, RTT_MAX));
                self.css = (self.current >= limit).then_some((self.current, 0));
            }
            Some((baseline, _)) if self.current < baseline => self.css = None,
            _ => {}
        }
    }

    fn next_round(&mut self, v: &View, w: &mut Window) {
        (self.last, self.current, self.samples, self.end) = (self.current, u32::MAX, 0, v.snd_nxt);
        if let Some((_, rounds)) = &mut self.css {
            *rounds += 1;
            if *rounds >= CSS_ROUNDS {
                w.ssthresh = w.cwnd;
                self.done = true;
            }
        }
    }

    /// Slow start's part of an ACK, at its present speed; see [`past_slow_start`].
    pub fn grow(&mut self, v: &View, w: &mut Window, s: &AckSample) -> Option<u32> {
        if !s.may_raise || !self.works(w) {
            return past_slow_start(v, w, s);
        }
        // §4.2: eight packets an ACK at most when nothing spreads the burst that they let go.
        let mut acked = if w.paced { s.acked } else { s.acked.min(UNPACED_LIMIT) };
        if self.css.is_some() {
            self.credit += acked;
            acked = self.credit / CSS_GROWTH_DIVISOR;
            self.credit %= CSS_GROWTH_DIVISOR;
        }
        past_slow_start(v, w, &AckSample { acked, ..*s })
    }
}

/// RTT samples in a round before the smallest counts (`N_RTT_SAMPLE`).
const SAMPLES: u8 = 8;
/// The tolerated RTT increase, as a part of the last round's and its bounds, µs (`MIN_RTT_DIVISOR`, `MIN_RTT_THRESH`, `MAX_RTT_THRESH`).
const RTT_DIVISOR: u32 = 8;
const RTT_MIN: u32 = 4_000;
const RTT_MAX: u32 = 16_000;
/// Conservative slow start: its growth is divided by this, and it lasts so many rounds (`CSS_GROWTH_DIVISOR`, `CSS_ROUNDS`).
const CSS_GROWTH_DIVISOR: u32 = 4;
const CSS_ROUNDS: u8 = 5;
/// Packets that one ACK may add without pacing (`L`).
const UNPACED_LIMIT: u32 = 8;
