//! YeAH: grows as Scalable TCP while the queue is short, as Reno when it is not, and empties the queue before it overflows.
//!
//! **What it is.** Two modes, chosen once a round by Vegas's estimate of the queue. In the slow mode more than 80 packets in the
//! queue are taken out of the window at once. A loss costs what was in the queue, an eighth to a half of the window.
//! **Source.** Baiocchi, Castellani, Vacirca: YeAH-TCP (PFLDnet 2007); Linux 6.1: `tcp_yeah_cong_avoid()`, `tcp_yeah_ssthresh()`.
//! **How it differs.** From the paper, as Linux does: one packet for 100 acknowledged in the fast mode (α = 80, φ = 8, ε = 1, ρ = 16,
//! ζ = 50); a transmission into an empty network forgets the smallest RTT. From Linux: nothing known.
//! **What it does not model.** Nothing else.

use super::reno::{half, held_by_window};
use super::vegas::{Rounds, Samples};
use super::{AckSample, CaEvent, CongestionController, PktsAcked, Snapshot, View, Window};
use tcpscape_base::CaState;

/// YeAH.
#[derive(Clone, Debug)]
pub struct Yeah {
    rounds: Rounds,
    /// Packets in the queue in the last round judged (`lastQ`).
    queued: u32,
    /// Rounds in the slow mode without interruption; the fast mode is 0 (`doing_reno_now`).
    slow_rounds: u32,
    /// An estimate of the window of a Reno flow in competition: no decongestion below it (`reno_count`).
    reno_window: u32,
    /// Rounds in the fast mode since a loss or since the estimate was forgotten (`fast_count`).
    fast_rounds: u32,
}

impl Default for Yeah {
    fn default() -> Yeah {
        Yeah { rounds: Rounds::new(), queued: 0, slow_rounds: 0, reno_window: NO_RENO, fast_rounds: 0 }
    }
}

impl Yeah {
    /// A new one.
    pub fn new() -> Yeah {
        Yeah::default()
    }

    /// Chooses the mode, and takes the queue out of the window where it is long.
    fn judge(&mut self, w: &mut Window, of_round: &Samples) {
        let Samples { min: rtt, base, .. } = *of_round;
        let delay = rtt - base;
        self.queued = (u64::from(w.cwnd) * u64::from(delay) / u64::from(rtt)) as u32;
        let long = self.queued > LONG_QUEUE;
        if !long && delay <= base / DELAY_PART {
            self.fast_rounds += 1;
            if self.fast_rounds > FORGET_AFTER {
                (self.reno_window, self.fast_rounds) = (NO_RENO, 0);
            }
            self.slow_rounds = 0;
            return;
        }
        if long && w.cwnd > self.reno_window {
            let left = w.cwnd - self.queued.min(w.cwnd / 2);
            w.cwnd = left.max(self.reno_window);
            w.ssthresh = w.cwnd;
        }
        self.reno_window = if self.reno_window <= NO_RENO { half(w) } else { self.reno_window + 1 };
        self.slow_rounds = (self.slow_rounds + 1).min(MOST_ROUNDS);
    }
}

impl CongestionController for Yeah {
    fn name(&self) -> &'static str {
        "yeah"
    }

    fn init(&mut self, v: &View, w: &mut Window) {
        self.rounds.restart(v);
        w.clamp = w.clamp.min(CLAMP);
    }

    // Linux: tcp_yeah_ssthresh()
    fn ssthresh(&mut self, _v: &View, w: &Window) -> u32 {
        let cut = if self.slow_rounds < COMPETITION { self.queued.min(half(w)).max(w.cwnd >> LEAST_CUT) } else { half(w) };
        self.fast_rounds = 0;
        self.reno_window = (self.reno_window / 2).max(NO_RENO);
        w.cwnd.saturating_sub(cut).max(2)
    }

    fn pkts_acked(&mut self, _v: &View, _w: &mut Window, a: &PktsAcked) {
        self.rounds.samples.take(a);
    }

    // Linux: tcp_yeah_cong_avoid()
    fn on_ack(&mut self, v: &View, w: &mut Window, s: &AckSample) {
        if !s.may_raise || !held_by_window(v, w) {
            return;
        }
        let left = if w.in_slow_start() { w.slow_start(s.acked) } else { s.acked };
        if left > 0 {
            let fast = self.slow_rounds == 0;
            w.additive_increase(if fast { w.cwnd.min(SCALABLE) } else { w.cwnd }, left);
        }
        if let Some(of_round) = self.rounds.ended_by(v, s.ack).filter(Samples::suffice) {
            self.judge(w, &of_round);
        }
    }

    fn on_state(&mut self, v: &View, _w: &mut Window, new: CaState) {
        self.rounds.on_state(v, new);
    }

    fn on_event(&mut self, v: &View, _w: &mut Window, e: CaEvent) {
        self.rounds.on_event(v, e);
    }

    fn snapshot(&self) -> Snapshot {
        vec![
            ("base_rtt_us", self.rounds.samples.base.into()),
            ("queued", self.queued.into()),
            ("slow_rounds", self.slow_rounds.into()),
            ("reno_window", self.reno_window.into()),
        ]
    }
}

/// Packets in the queue that are too many (α, `TCP_YEAH_ALPHA`).
const LONG_QUEUE: u32 = 80;
/// A queueing delay above this part of the smallest RTT ends the fast mode (φ, `TCP_YEAH_PHY`).
const DELAY_PART: u32 = 8;
/// The smallest cut of a loss, as a shift of the window: an eighth (`TCP_YEAH_DELTA`).
const LEAST_CUT: u32 = 3;
/// After so many rounds in the slow mode there is competition, and a loss halves the window (ρ, `TCP_YEAH_RHO`).
const COMPETITION: u32 = 16;
/// After more rounds in the fast mode the Reno flow is forgotten (ζ, `TCP_YEAH_ZETA`).
const FORGET_AFTER: u32 = 50;
/// Packets acknowledged for one of growth in the fast mode (`TCP_SCALABLE_AI_CNT`).
const SCALABLE: u32 = 100;
/// No Reno flow known: the smallest window.
const NO_RENO: u32 = 2;
/// Rounds are counted up to here (24 bits).
const MOST_ROUNDS: u32 = 0x00ff_ffff;
/// Largest window (2³² − 1) / 128, packets.
const CLAMP: u32 = u32::MAX / 128;

#[cfg(test)]
mod tests {
    use super::*;

    fn yeah(cwnd: u32) -> (Yeah, Window) {
        (Yeah::new(), Window { cwnd, ssthresh: 2, ..Window::default() })
    }

    fn samples(rtt: u32) -> Samples {
        Samples { count: 3, min: rtt, base: 100_000 }
    }

    #[test]
    fn the_fast_mode_adds_a_packet_for_a_hundred() {
        let (mut c, mut w) = yeah(400);
        let v = View { is_cwnd_limited: true, ..View::default() };
        c.on_ack(&v, &mut w, &AckSample { acked: 200, may_raise: true, ..AckSample::default() });
        assert_eq!(w.cwnd, 402);
        c.slow_rounds = 1;
        c.on_ack(&v, &mut w, &AckSample { acked: 201, may_raise: true, ..AckSample::default() });
        assert_eq!((w.cwnd, w.cwnd_cnt), (402, 201));
    }

    /// 400 packets at an RTT of 130 ms: 400 · 30/130 = 92 in the queue. The window falls to 308, and half of it, 154, is taken for
    /// a Reno flow's; it grows by one a round.
    #[test]
    fn a_long_queue_is_taken_out_of_the_window() {
        let (mut c, mut w) = yeah(400);
        c.judge(&mut w, &samples(130_000));
        assert_eq!((c.queued, w.cwnd, w.ssthresh, c.reno_window, c.slow_rounds), (92, 308, 308, 154, 1));
        // 308 · 30/130 = 71: not long, but the delay is more than an eighth.
        c.judge(&mut w, &samples(130_000));
        assert_eq!((c.queued, w.cwnd, c.reno_window, c.slow_rounds), (71, 308, 155, 2));
        // Half of the RTT is queue: not below half of the window; not below the Reno flow's either.
        c.judge(&mut w, &samples(1_000_000));
        assert_eq!((c.queued, w.cwnd, c.reno_window), (277, 155, 156));
        c.judge(&mut w, &samples(1_000_000));
        assert_eq!((c.queued, w.cwnd, c.reno_window), (139, 155, 157));
        c.judge(&mut w, &samples(112_500));
        assert_eq!((c.slow_rounds, c.fast_rounds), (0, 1), "an eighth is still fast");
    }

    #[test]
    fn fifty_one_fast_rounds_forget_the_reno_flow() {
        let (mut c, mut w) = yeah(100);
        c.reno_window = 60;
        (0..50).for_each(|_| c.judge(&mut w, &samples(100_000)));
        assert_eq!((c.reno_window, c.fast_rounds), (60, 50));
        c.judge(&mut w, &samples(100_000));
        assert_eq!((c.reno_window, c.fast_rounds), (2, 0));
    }

    #[test]
    fn a_loss_costs_the_queue() {
        let (mut c, w) = yeah(160);
        let v = View::default();
        for (queued, slow_rounds, left) in [(0, 0, 140), (50, 0, 110), (200, 15, 80), (50, 16, 80)] {
            (c.queued, c.slow_rounds, c.reno_window) = (queued, slow_rounds, 9);
            assert_eq!((c.ssthresh(&v, &w), c.reno_window), (left, 4));
        }
    }
}
