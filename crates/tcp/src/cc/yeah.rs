//! YeAH: grows as Scalable TCP while the queue is short, as Reno when it is not, and empties the queue before it overflows.
//!
//! **What it is.** Two modes, chosen once a round by Vegas's estimate of the queue. In the slow mode more than 80 packets in the
//! queue are taken out of the window at once. A loss costs what was in the queue, an eighth to a half of the window.
//! **Source.** Baiocchi, Castellani, Vacirca: YeAH-TCP (PFLDnet 2007).
//! **How it differs.** From the paper, as Linux is seen to do (docs/models/controls/yeah.md): one packet for 100 acknowledged in the fast mode (α = 80,
//! φ = 8, ε = 1, ρ = 16, ζ = 50); a transmission into an empty network forgets the smallest RTT. From Linux: nothing known.
//! **What it does not model.** Nothing else.

use super::reno::{half, held_by_window};
use super::vegas::{Rounds, Samples};
use super::{AckSample, CaEvent, CongestionController, PktsAcked, View, Window};
use tcpscape_base::CaState;

/// YeAH.
#[derive(Clone, Debug)]
pub struct Yeah {
    rounds: Rounds,
    /// Packets in the queue in the last round judged.
    queued: u32,
    mode: Mode,
    competitor: Competitor,
}

/// How it grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// As Scalable TCP.
    Fast,
    /// As Reno; for so many rounds.
    Slow(u32),
}

impl Mode {
    /// Rounds in the slow mode without interruption.
    fn slow_rounds(self) -> u32 {
        match self {
            Mode::Fast => 0,
            Mode::Slow(rounds) => rounds,
        }
    }
}

/// A guess at the window of a Reno flow in competition: no decongestion below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Competitor {
    window: u32,
    /// Rounds in the fast mode since a loss or since it was forgotten.
    fast_rounds: u32,
}

impl Competitor {
    const NONE: Competitor = Competitor { window: NO_RENO, fast_rounds: 0 };

    /// A Reno flow grows by one packet; one that was not known has half of this flow's window.
    fn slow_round(&mut self, w: &Window) {
        self.window = if self.window > NO_RENO { self.window + 1 } else { half(w) };
    }

    /// Where the queue is short there is none, after a while.
    fn fast_round(&mut self) {
        self.fast_rounds += 1;
        if self.fast_rounds > FORGET_AFTER {
            *self = Competitor::NONE;
        }
    }

    /// It loses as well.
    fn lose(&mut self) {
        *self = Competitor { window: (self.window / 2).max(NO_RENO), fast_rounds: 0 };
    }
}

impl Default for Yeah {
    fn default() -> Yeah {
        Yeah { rounds: Rounds::new(), queued: 0, mode: Mode::Fast, competitor: Competitor::NONE }
    }
}

impl Yeah {
    /// Chooses the mode, and takes the queue out of the window where it is long (the paper's precautionary decongestion).
    fn judge(&mut self, w: &mut Window, of_round: &Samples) {
        let Samples { min: rtt, base, .. } = *of_round;
        self.queued = queued(w.cwnd, base, rtt);
        let is_long = self.queued > LONG_QUEUE;
        if is_long || rtt - base > base / DELAY_PART {
            if is_long && w.cwnd > self.competitor.window {
                w.cwnd = decongested(w.cwnd, self.queued).max(self.competitor.window);
                w.ssthresh = w.cwnd;
            }
            self.competitor.slow_round(w);
            self.mode = Mode::Slow(self.mode.slow_rounds().saturating_add(1));
        } else {
            self.competitor.fast_round();
            self.mode = Mode::Fast;
        }
    }
}

/// Q = (RTT − RTTbase) · cwnd / RTT packets of the window are in the queue.
fn queued(cwnd: u32, base: u32, rtt: u32) -> u32 {
    (u64::from(cwnd) * u64::from(rtt - base) / u64::from(rtt)) as u32
}

/// What decongestion leaves of a window: the queue is taken out of it, at most a half (ε = 1).
fn decongested(cwnd: u32, queued: u32) -> u32 {
    cwnd - queued.min(cwnd / 2)
}

/// What a loss takes of a window: what was in the queue, from an eighth to a half.
fn loss_cut(w: &Window, queued: u32) -> u32 {
    queued.min(half(w)).max(w.cwnd / LEAST_CUT_PART)
}

impl CongestionController for Yeah {
    fn init(&mut self, v: &View, w: &mut Window) {
        self.rounds.restart(v);
        w.clamp = w.clamp.min(CLAMP);
    }

    fn ssthresh(&mut self, _v: &View, w: &Window) -> u32 {
        self.competitor.lose();
        let has_competition = self.mode.slow_rounds() >= COMPETITION;
        let cut = if has_competition { half(w) } else { loss_cut(w, self.queued) };
        w.cwnd.saturating_sub(cut).max(2)
    }

    fn pkts_acked(&mut self, _v: &View, _w: &mut Window, a: &PktsAcked) {
        self.rounds.samples.take(a);
    }

    fn on_ack(&mut self, v: &View, w: &mut Window, s: &AckSample) {
        if !s.may_raise || !held_by_window(v, w) {
            return;
        }
        let left = if w.in_slow_start() { w.slow_start(s.acked) } else { s.acked };
        if left > 0 {
            let per_packet = if self.mode == Mode::Fast { w.cwnd.min(SCALABLE) } else { w.cwnd };
            w.additive_increase(per_packet, left);
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
}

/// Packets in the queue that are too many (α of the paper).
const LONG_QUEUE: u32 = 80;
/// A queueing delay above this part of the smallest RTT ends the fast mode (φ of the paper).
const DELAY_PART: u32 = 8;
/// The smallest cut of a loss: an eighth of the window.
const LEAST_CUT_PART: u32 = 8;
/// After so many rounds in the slow mode there is competition, and a loss halves the window (ρ of the paper).
const COMPETITION: u32 = 16;
/// After more rounds in the fast mode the Reno flow is forgotten (ζ of the paper).
const FORGET_AFTER: u32 = 50;
/// Packets acknowledged for one of growth in the fast mode; see `scalable.rs`.
const SCALABLE: u32 = 100;
/// No Reno flow known: the smallest window.
const NO_RENO: u32 = 2;
/// Largest window (2³² − 1) / 128, packets.
const CLAMP: u32 = u32::MAX / 128;

#[cfg(test)]
mod tests {
    use super::*;

    fn yeah(cwnd: u32) -> (Yeah, Window) {
        (Yeah::default(), Window { cwnd, ssthresh: 2, ..Window::default() })
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
        c.mode = Mode::Slow(1);
        c.on_ack(&v, &mut w, &AckSample { acked: 201, may_raise: true, ..AckSample::default() });
        assert_eq!((w.cwnd, w.cwnd_cnt), (402, 201));
    }

    /// 400 · 30/130 = 92.3; an eighth of 160 is 20, half of it 80.
    #[test]
    fn the_queue_and_what_it_costs() {
        assert_eq!([queued(400, 100_000, 130_000), queued(400, 100_000, 100_000)], [92, 0]);
        assert_eq!([decongested(400, 92), decongested(400, 300)], [308, 200]);
        let w = Window { cwnd: 160, ..Window::default() };
        assert_eq!([0, 19, 20, 21, 80, 200].map(|q| loss_cut(&w, q)), [20, 20, 20, 21, 80, 80]);
    }

    /// 400 packets at an RTT of 130 ms: 400 · 30/130 = 92 in the queue. The window falls to 308, and half of it, 154, is taken for
    /// a Reno flow's; it grows by one a round.
    #[test]
    fn a_long_queue_is_taken_out_of_the_window() {
        let (mut c, mut w) = yeah(400);
        c.judge(&mut w, &samples(130_000));
        assert_eq!((c.queued, w.cwnd, w.ssthresh, c.competitor.window, c.mode.slow_rounds()), (92, 308, 308, 154, 1));
        // 308 · 30/130 = 71: not long, but the delay is more than an eighth.
        c.judge(&mut w, &samples(130_000));
        assert_eq!((c.queued, w.cwnd, c.competitor.window, c.mode.slow_rounds()), (71, 308, 155, 2));
        // Half of the RTT is queue: not below half of the window; not below the Reno flow's either.
        c.judge(&mut w, &samples(1_000_000));
        assert_eq!((c.queued, w.cwnd, c.competitor.window), (277, 155, 156));
        c.judge(&mut w, &samples(1_000_000));
        assert_eq!((c.queued, w.cwnd, c.competitor.window), (139, 155, 157));
        c.judge(&mut w, &samples(112_500));
        assert_eq!((c.mode.slow_rounds(), c.competitor.fast_rounds), (0, 1), "an eighth is still fast");
    }

    #[test]
    fn fifty_one_fast_rounds_forget_the_reno_flow() {
        let (mut c, mut w) = yeah(100);
        c.competitor.window = 60;
        (0..50).for_each(|_| c.judge(&mut w, &samples(100_000)));
        assert_eq!((c.competitor.window, c.competitor.fast_rounds), (60, 50));
        c.judge(&mut w, &samples(100_000));
        assert_eq!((c.competitor.window, c.competitor.fast_rounds), (2, 0));
    }

    #[test]
    fn a_loss_costs_the_queue() {
        let (mut c, w) = yeah(160);
        let v = View::default();
        for (queued, slow_rounds, left) in [(0, 0, 140), (50, 0, 110), (200, 15, 80), (50, 16, 80)] {
            (c.queued, c.mode, c.competitor.window) = (queued, Mode::Slow(slow_rounds), 9);
            assert_eq!((c.ssthresh(&v, &w), c.competitor.window), (left, 4));
        }
    }
}
