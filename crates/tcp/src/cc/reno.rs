//! Reno: slow start, then one packet a round trip; half the window after a loss.
//!
//! **What it is.** The window growth of RFC 5681. Recovery itself (NewReno, SACK, RACK, PRR) is the sender's business.
//! **Source.** RFC 5681 §3.1–3.2, RFC 3465 (counting what was acknowledged).
//! **How it differs.** From the RFC, as Linux is seen to do (docs/models/controls/reno.md): packets instead of bytes, no limit L on what one ACK may add in slow
//! start, the threshold is half of the window and not half of what is in flight. From Linux: nothing known.
//! **What it does not model.** ABC's byte counting.

use super::{AckSample, CongestionController, View, Window};

/// Reno. It has no state of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reno;

impl CongestionController for Reno {
    fn ssthresh(&mut self, _v: &View, w: &Window) -> u32 {
        half(w)
    }

    // RFC 5681 §3.1.
    fn on_ack(&mut self, v: &View, w: &mut Window, s: &AckSample) {
        if let Some(left) = past_slow_start(v, w, s) {
            w.additive_increase(w.cwnd, left);
        }
    }
}

/// Half of the window, at least two packets (RFC 5681 §3.2, equation 4).
pub(super) fn half(w: &Window) -> u32 {
    (w.cwnd / 2).max(2)
}

/// Does slow start's part of an ACK; what is left of it for congestion avoidance, none if nothing is to be done there.
pub(super) fn past_slow_start(v: &View, w: &mut Window, s: &AckSample) -> Option<u32> {
    if !s.may_raise || !held_by_window(v, w) {
        return None;
    }
    if !w.in_slow_start() {
        return Some(s.acked);
    }
    Some(w.slow_start(s.acked)).filter(|&left| left > 0)
}

/// Whether the window is what holds the sender back, so that it may grow: it was when last judged, or, in slow start,
/// more than half of it was used (RFC 7661).
pub(super) fn held_by_window(v: &View, w: &Window) -> bool {
    v.is_cwnd_limited || w.in_slow_start() && w.cwnd < v.most_packets_out.saturating_mul(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::INFINITE_SSTHRESH;

    fn limited() -> View {
        View { is_cwnd_limited: true, hz: 100, ..View::default() }
    }

    fn ack(n: u32) -> AckSample {
        AckSample { acked: n, may_raise: true, ..Default::default() }
    }

    #[test]
    fn slow_start_doubles_and_hands_the_rest_to_congestion_avoidance() {
        let (mut r, mut w) = (Reno, Window { ssthresh: 16, ..Window::default() });
        // 10 + 6 reach the threshold; the 4 left are 4/16 of a packet.
        r.on_ack(&limited(), &mut w, &ack(10));
        assert_eq!((w.cwnd, w.cwnd_cnt), (16, 4));
        r.on_ack(&limited(), &mut w, &ack(12));
        assert_eq!((w.cwnd, w.cwnd_cnt), (17, 0));
    }

    /// From 100 packets: down to 50, then 50 + 51 + … + 99 = 3,725 packets acknowledged bring the window back to 100.
    #[test]
    fn sawtooth() {
        let (mut r, mut w) = (Reno, Window { cwnd: 100, ..Window::default() });
        w.ssthresh = r.ssthresh(&limited(), &w);
        w.cwnd = w.ssthresh;
        let mut acked = 0;
        while w.cwnd < 100 {
            r.on_ack(&limited(), &mut w, &ack(1));
            acked += 1;
        }
        assert_eq!((w.ssthresh, acked), (50, 3_725));
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        let (mut r, mut w) = (Reno, Window { ssthresh: INFINITE_SSTHRESH, ..Window::default() });
        r.on_ack(&View { most_packets_out: 5, ..View::default() }, &mut w, &ack(5));
        assert_eq!(w.cwnd, 10);
        r.on_ack(&View { most_packets_out: 6, ..View::default() }, &mut w, &ack(6));
        assert_eq!(w.cwnd, 16);
        r.on_ack(&limited(), &mut w, &AckSample { may_raise: false, ..ack(6) });
        assert_eq!(w.cwnd, 16);
    }

    #[test]
    fn threshold_is_at_least_two_and_undo_returns_to_the_old_window() {
        let mut r = Reno;
        let at = |cwnd, prior_cwnd| Window { cwnd, prior_cwnd, ..Window::default() };
        assert_eq!(r.ssthresh(&limited(), &at(3, 0)), 2);
        assert_eq!((r.undo(&limited(), &at(10, 40)), r.undo(&limited(), &at(50, 40))), (40, 50));
    }
}
