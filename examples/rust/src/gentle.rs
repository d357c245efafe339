//! Gentle: AIMD(1, 0.8) that leaves slow start when a queue stands.
//!
//! **What it is.** Slow start until the first loss or until the RTT is a quarter above its minimum; then one packet a round trip; a loss
//! takes a fifth off the window. The same rules as in `examples/python/aimd.py`.
//! **Source.** AIMD: Chiu and Jain 1989. It is an example, not a proposal.
//! **How it differs.** There is nothing to differ from.
//! **What it does not model.** Anything else.

use tcpscape_tcp::cc::{AckSample, CongestionController, View, Window};

/// AIMD(1, 0.8).
#[derive(Clone, Copy, Debug, Default)]
pub struct Gentle;

impl CongestionController for Gentle {
    fn ssthresh(&mut self, _v: &View, w: &Window) -> u32 {
        (w.cwnd * 4 / 5).max(2)
    }

    fn on_ack(&mut self, v: &View, w: &mut Window, s: &AckSample) {
        if !s.may_raise || !v.is_cwnd_limited {
            return;
        }
        if w.in_slow_start() {
            w.slow_start(s.acked);
            if s.rate.rtt_us > 0 && s.rate.rtt_us * 4 > i64::from(v.min_rtt_us) * 5 {
                w.ssthresh = w.cwnd;
            }
        } else {
            w.additive_increase(w.cwnd, s.acked);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_takes_a_fifth() {
        let at = |cwnd| Window { cwnd, ..Window::default() };
        assert_eq!((Gentle.ssthresh(&View::default(), &at(100)), Gentle.ssthresh(&View::default(), &at(2))), (80, 2));
    }

    #[test]
    fn slow_start_ends_where_a_queue_stands() {
        let v = View { min_rtt_us: 40_000, is_cwnd_limited: true, ..View::default() };
        let mut s = AckSample { acked: 2, may_raise: true, ..AckSample::default() };
        let mut w = Window::default();
        s.rate.rtt_us = 50_000;
        Gentle.on_ack(&v, &mut w, &s);
        assert!(w.in_slow_start());
        s.rate.rtt_us = 50_001;
        Gentle.on_ack(&v, &mut w, &s);
        assert_eq!((w.cwnd, w.ssthresh), (14, 14));
    }
}
