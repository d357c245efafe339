//! Veno: Reno that estimates the queue as Vegas does, to tell losses of congestion from those of a bad link.
//!
//! **What it is.** Reno while fewer than three packets are in the queue, with a loss costing a fifth of the window; with more,
//! the window grows half as fast and a loss halves it.
//! **Source.** Fu, Liew: TCP Veno (IEEE JSAC 21(2), 2003): the backlog N, and what it changes in additive increase and multiplicative
//! decrease.
//! **How it differs.** From the paper, as Linux is seen to do (docs/models/controls/veno.md): the queue is estimated at each ACK from the RTTs since the
//! last one, not once a round; a transmission into an empty network forgets the smallest RTT. From Linux: nothing known.
//! **What it does not model.** Nothing else.

use super::reno::held_by_window;
use super::vegas::Samples;
use super::{AckSample, CaEvent, CongestionController, PktsAcked, Reno, View, Window};
use tcpscape_base::CaState;

/// Veno.
#[derive(Clone, Debug)]
pub struct Veno {
    /// Its count goes on for the life of the connection, wrapping at 16 bits; its minimum is of the RTTs since the last ACK judged.
    samples: Samples,
    /// The state is Open.
    is_open: bool,
    pace: EveryOther,
    /// Packets in the queue when last judged, in halves.
    queued: u32,
}

impl Default for Veno {
    fn default() -> Veno {
        Veno { samples: Samples::NONE, is_open: true, pace: EveryOther { grows_next: true }, queued: 0 }
    }
}

/// Growth by a packet for every other window acknowledged.
#[derive(Clone, Copy, Debug)]
struct EveryOther {
    grows_next: bool,
}

impl EveryOther {
    /// An ACK finds either a window's credit, which is spent whether or not it is this window's turn, or it adds its own.
    fn acknowledge(&mut self, w: &mut Window, acked: u32) {
        if w.cwnd_cnt < w.cwnd {
            w.cwnd_cnt = w.cwnd_cnt.saturating_add(acked);
            return;
        }
        w.cwnd_cnt = 0;
        if self.grows_next && w.cwnd < w.clamp {
            w.cwnd += 1;
            self.grows_next = false;
        } else {
            self.grows_next = true;
        }
    }
}

impl Veno {
    /// The RTTs that the next ACK is judged by begin with the next sample.
    fn forget_recent(&mut self) {
        self.samples.min = Samples::NONE.min;
    }

    /// Forgets the smallest RTT as well; the count goes on.
    fn restart(&mut self) {
        self.samples.base = Samples::NONE.base;
        self.forget_recent();
        self.is_open = true;
        self.pace.grows_next = true;
    }

    fn is_congested(&self) -> bool {
        self.queued >= CONGESTED
    }

    // The paper's additive increase: one packet a window, every other window from β packets in the queue on.
    fn grow(&mut self, w: &mut Window, acked: u32) {
        self.queued = queued_halves(w.cwnd, self.samples.base, self.samples.min);
        let left = if w.in_slow_start() { w.slow_start(acked) } else { acked };
        match left {
            0 => {}
            _ if self.is_congested() => self.pace.acknowledge(w, left),
            _ => w.additive_increase(w.cwnd, left),
        }
        w.cwnd = w.cwnd.max(LEAST).min(w.clamp);
    }
}

/// The backlog N = cwnd − cwnd · base/rtt of the paper, in half packets; what is not in the queue is rounded down.
fn queued_halves(cwnd: u32, base: u32, rtt: u32) -> u32 {
    let window = u64::from(cwnd) * HALVES;
    window.wrapping_sub(window * u64::from(base) / u64::from(rtt)) as u32
}

impl CongestionController for Veno {
    // The count is not begun anew.
    fn syn_acked(&mut self, _v: &View, rtt_us: i64) {
        self.samples.take(&PktsAcked { pkts_acked: 1, rtt_us, in_flight: 0 });
    }

    fn init(&mut self, _v: &View, _w: &mut Window) {
        self.restart();
    }

    // The paper's multiplicative decrease: a loss without a queue is the link's, and costs a fifth.
    fn ssthresh(&mut self, v: &View, w: &Window) -> u32 {
        if self.is_congested() {
            Reno.ssthresh(v, w)
        } else {
            (w.cwnd.wrapping_mul(4) / 5).max(2)
        }
    }

    fn pkts_acked(&mut self, _v: &View, _w: &mut Window, a: &PktsAcked) {
        self.samples.take(a);
    }

    fn on_ack(&mut self, v: &View, w: &mut Window, s: &AckSample) {
        if !s.may_raise {
            return;
        }
        if !self.is_open {
            Reno.on_ack(v, w, s);
        } else if held_by_window(v, w) {
            if self.samples.suffice() {
                self.grow(w, s.acked);
            } else {
                Reno.on_ack(v, w, s);
            }
            self.forget_recent();
        }
    }

    fn on_state(&mut self, _v: &View, _w: &mut Window, new: CaState) {
        self.is_open = new == CaState::Open;
        if self.is_open {
            self.forget_recent();
        }
    }

    fn on_event(&mut self, _v: &View, _w: &mut Window, e: CaEvent) {
        if matches!(e, CaEvent::CwndRestart | CaEvent::TxStart) {
            self.restart();
        }
    }
}

/// Packets in the queue are counted in halves.
const HALVES: u64 = 2;
/// From so many halves of a packet in the queue the path is congested: β = 3 packets (the paper's choice).
const CONGESTED: u32 = 3 * HALVES as u32;
/// Smallest window, packets.
const LEAST: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn limited() -> View {
        View { is_cwnd_limited: true, ..View::default() }
    }

    fn ack(c: &mut Veno, w: &mut Window, acked: u32, rtt_us: i64) {
        c.pkts_acked(&limited(), w, &PktsAcked { pkts_acked: acked, rtt_us, in_flight: 0 });
        c.on_ack(&limited(), w, &AckSample { acked, may_raise: true, ..AckSample::default() });
    }

    /// Four ACKs in, with a smallest RTT of 100 ms.
    fn veno(cwnd: u32) -> (Veno, Window) {
        let (mut c, mut w) = (Veno::default(), Window { cwnd, ssthresh: 2, ..Window::default() });
        (0..4).for_each(|_| ack(&mut c, &mut w, 0, 99_999));
        (c, w)
    }

    /// N = 40 − 40 · 100/110 = 3.64 packets; in halves 80 − ⌊72.7⌋.
    #[test]
    fn the_backlog_in_half_packets() {
        assert_eq!([110_000, 100_000, 200_000].map(|rtt| queued_halves(40, 100_000, rtt)), [8, 0, 40]);
    }

    /// At 40 packets, 100/108 of them would be 37.03 packets without a queue: 2.97 are in it, in halves 6, as 74.07 is cut to 74.
    #[test]
    fn the_queue_decides_what_a_loss_costs() {
        let (mut c, mut w) = veno(40);
        assert_eq!((c.queued, c.ssthresh(&limited(), &w)), (0, 32));
        ack(&mut c, &mut w, 1, 106_999);
        // 80 − ⌊80 · 100/107⌋ = 80 − 74.
        assert_eq!((c.queued, c.ssthresh(&limited(), &w)), (6, 20));
        ack(&mut c, &mut w, 1, 105_999);
        // 80 − ⌊75.47⌋.
        assert_eq!((c.queued, c.ssthresh(&limited(), &w)), (5, 32));
        w.cwnd = 2;
        assert_eq!(c.ssthresh(&limited(), &w), 2);
    }

    #[test]
    fn in_congestion_the_window_grows_every_other_round() {
        let (mut c, mut w) = veno(40);
        let mut acks = 0;
        let mut until = |c: &mut Veno, w: &mut Window, cwnd| {
            acks = 0;
            while w.cwnd < cwnd {
                ack(c, w, 1, 149_999);
                acks += 1;
            }
            acks
        };
        // 40 ACKs fill the credit, the 41st spends it; then 42 to no effect and 42 more.
        assert_eq!(until(&mut c, &mut w, 41), 41);
        assert_eq!(until(&mut c, &mut w, 42), 84);
    }

    #[test]
    fn without_congestion_it_is_reno() {
        let (mut c, mut w) = veno(40);
        (0..40).for_each(|_| ack(&mut c, &mut w, 1, 99_999));
        assert_eq!((w.cwnd, w.cwnd_cnt), (41, 0));
    }

    #[test]
    fn samples_are_counted_in_sixteen_bits_and_never_anew() {
        let (mut c, mut w) = veno(40);
        c.on_state(&limited(), &mut w, CaState::Recovery);
        c.on_state(&limited(), &mut w, CaState::Open);
        c.on_event(&limited(), &mut w, CaEvent::TxStart);
        assert!(c.samples.suffice() && c.samples.base == Samples::NONE.base);
        c.samples.count = u16::MAX;
        ack(&mut c, &mut w, 1, 149_999);
        assert!(!c.samples.suffice(), "Reno for the next three");
    }
}
