//! Veno: Reno that estimates the queue as Vegas does, to tell losses of congestion from those of a bad link.
//!
//! **What it is.** Reno while fewer than three packets are in the queue, with a loss costing a fifth of the window; with more,
//! the window grows half as fast and a loss halves it.
//! **Source.** Fu, Liew: TCP Veno (IEEE JSAC 21(2), 2003); Linux 6.1: `tcp_veno_cong_avoid()`, `tcp_veno_ssthresh()`.
//! **How it differs.** From the paper, as Linux does: the queue is estimated at each ACK from the RTTs since the last one, not once
//! a round; a transmission into an empty network forgets the smallest RTT. From Linux: nothing known.
//! **What it does not model.** Nothing else.

use super::reno::held_by_window;
use super::vegas::Samples;
use super::{AckSample, CaEvent, CongestionController, PktsAcked, Reno, Snapshot, View, Window};
use tcpscape_base::CaState;

/// Veno.
#[derive(Clone, Debug)]
pub struct Veno {
    /// Its count goes on for the life of the connection, wrapping at 16 bits; its minimum is of the RTTs since the last ACK judged.
    samples: Samples,
    /// The state is Open (`doing_veno_now`).
    open: bool,
    /// The next window acknowledged in the congestive state adds a packet (`inc`).
    turn: bool,
    /// Packets in the queue when last judged, in halves (`diff`).
    queued: u32,
}

impl Default for Veno {
    fn default() -> Veno {
        Veno { samples: Samples::NONE, open: true, turn: true, queued: 0 }
    }
}

impl Veno {
    /// A new one.
    pub fn new() -> Veno {
        Veno::default()
    }

    // Linux: veno_enable()
    fn enable(&mut self) {
        self.open = true;
        self.samples.min = Samples::NONE.min;
    }

    // Linux: tcp_veno_init()
    fn restart(&mut self) {
        self.samples.base = Samples::NONE.base;
        self.turn = true;
        self.enable();
    }

    fn grow(&mut self, w: &mut Window, acked: u32) {
        let Samples { min: rtt, base, .. } = self.samples;
        let without_queue = ((u64::from(w.cwnd) * u64::from(base)) << HALVES) / u64::from(rtt);
        self.queued = (u64::from(w.cwnd) << HALVES).wrapping_sub(without_queue) as u32;
        let left = if w.in_slow_start() { w.slow_start(acked) } else { acked };
        if left > 0 && self.queued < CONGESTIVE {
            w.additive_increase(w.cwnd, left);
        } else if left > 0 {
            self.grow_every_other_round(w, left);
        }
        w.cwnd = w.cwnd.max(LEAST).min(w.clamp);
    }

    // A window's credit is looked at before the ACK's own is added, and what is beyond a window is lost.
    fn grow_every_other_round(&mut self, w: &mut Window, acked: u32) {
        if w.cwnd_cnt < w.cwnd {
            w.cwnd_cnt = w.cwnd_cnt.saturating_add(acked);
            return;
        }
        w.cwnd_cnt = 0;
        let grows = self.turn && w.cwnd < w.clamp;
        w.cwnd += u32::from(grows);
        self.turn = !grows;
    }
}

impl CongestionController for Veno {
    fn name(&self) -> &'static str {
        "veno"
    }

    // The count is not begun anew.
    fn syn_acked(&mut self, _v: &View, rtt_us: i64) {
        self.samples.take(&PktsAcked { pkts_acked: 1, rtt_us, in_flight: 0 });
    }

    fn init(&mut self, _v: &View, _w: &mut Window) {
        self.restart();
    }

    // Linux: tcp_veno_ssthresh()
    fn ssthresh(&mut self, v: &View, w: &Window) -> u32 {
        if self.queued < CONGESTIVE {
            (w.cwnd.wrapping_mul(4) / 5).max(2)
        } else {
            Reno.ssthresh(v, w)
        }
    }

    fn pkts_acked(&mut self, _v: &View, _w: &mut Window, a: &PktsAcked) {
        self.samples.take(a);
    }

    // Linux: tcp_veno_cong_avoid()
    fn on_ack(&mut self, v: &View, w: &mut Window, s: &AckSample) {
        if !s.may_raise {
            return;
        }
        if !self.open {
            return Reno.on_ack(v, w, s);
        }
        if !held_by_window(v, w) {
            return;
        }
        if self.samples.suffice() {
            self.grow(w, s.acked);
        } else {
            Reno.on_ack(v, w, s);
        }
        self.samples.min = Samples::NONE.min;
    }

    fn on_state(&mut self, _v: &View, _w: &mut Window, new: CaState) {
        if new == CaState::Open {
            self.enable();
        } else {
            self.open = false;
        }
    }

    fn on_event(&mut self, _v: &View, _w: &mut Window, e: CaEvent) {
        if matches!(e, CaEvent::CwndRestart | CaEvent::TxStart) {
            self.restart();
        }
    }

    fn snapshot(&self) -> Snapshot {
        vec![("base_rtt_us", self.samples.base.into()), ("queued", f64::from(self.queued) / 2.0)]
    }
}

/// Packets in the queue are counted in halves: shift by so many bits.
const HALVES: u32 = 1;
/// From so many halves of a packet in the queue the path is congested: β = 3 packets.
const CONGESTIVE: u32 = 3 << HALVES;
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
        let (mut c, mut w) = (Veno::new(), Window { cwnd, ssthresh: 2, ..Window::default() });
        (0..4).for_each(|_| ack(&mut c, &mut w, 0, 99_999));
        (c, w)
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
