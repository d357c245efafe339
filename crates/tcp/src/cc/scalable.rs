//! Scalable TCP: the window grows by one per cent of what is acknowledged, and falls by an eighth.
//!
//! **What it is.** Multiplicative increase and multiplicative decrease: the time from one loss to the next does not depend
//! on the window, about 13 round trips, where Reno's grows with it.
//! **Source.** T. Kelly, "Scalable TCP: improving performance in highspeed wide area networks", Computer Communication
//! Review 33(2), 2003: a = 0.01, b = 1/8.
//! **How it differs.** From the paper, as Linux is seen to do (docs/models/controls/scalable.md): below 100 packets it grows like Reno (where the paper switches at 16),
//! the decrease is an eighth at every window. From Linux: nothing known.
//! **What it does not model.** Nothing: there are no parameters and no state.

use super::reno::past_slow_start;
use super::{AckSample, CongestionController, View, Window};

/// Scalable TCP. It has no state of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scalable;

impl CongestionController for Scalable {
    fn ssthresh(&mut self, _v: &View, w: &Window) -> u32 {
        (w.cwnd - (w.cwnd >> DECREASE_SHIFT)).max(2)
    }

    fn on_ack(&mut self, v: &View, w: &mut Window, s: &AckSample) {
        if let Some(left) = past_slow_start(v, w, s) {
            w.additive_increase(w.cwnd.min(PER_PACKET), left);
        }
    }
}

/// Packets to acknowledge for one packet of growth: the paper's a = 0.01.
const PER_PACKET: u32 = 100;
/// A loss takes 2⁻³ of the window: the paper's b = 1/8.
const DECREASE_SHIFT: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn after_acks(cwnd: u32, acked: u32) -> Window {
        let v = View { is_cwnd_limited: true, hz: 100, ..View::default() };
        let mut w = Window { cwnd, ssthresh: cwnd, ..Window::default() };
        Scalable.on_ack(&v, &mut w, &AckSample { acked, may_raise: true, ..Default::default() });
        w
    }

    #[test]
    fn grows_by_a_hundredth_of_what_is_acknowledged_and_like_reno_below() {
        // A window of 1,050: 1,050 / 100 = 10, half a packet kept as 50.
        assert_eq!((after_acks(1_050, 1_050).cwnd, after_acks(1_050, 1_050).cwnd_cnt), (1_060, 50));
        // A window of 40: one packet a round trip.
        assert_eq!((after_acks(40, 40).cwnd, after_acks(40, 39).cwnd), (41, 40));
    }

    #[test]
    fn falls_by_an_eighth() {
        let after = |cwnd| Scalable.ssthresh(&View::default(), &Window { cwnd, ..Window::default() });
        assert_eq!([after(1_000), after(15), after(7), after(2), after(1)], [875, 14, 7, 2, 2]);
    }

    /// From 7/8 of the window back to it at 1 % a round trip: ln(8/7) / ln(1.01) = 13.4 round trips.
    #[test]
    fn a_loss_is_made_good_in_fourteen_round_trips_at_any_window() {
        for top in [1_000u32, 100_000] {
            let v = View { is_cwnd_limited: true, hz: 100, ..View::default() };
            let mut w = Window { cwnd: top - top / 8, ssthresh: 2, ..Window::default() };
            let mut trips = 0;
            while w.cwnd < top {
                let acked = w.cwnd;
                Scalable.on_ack(&v, &mut w, &AckSample { acked, may_raise: true, ..Default::default() });
                trips += 1;
            }
            assert_eq!(trips, 14, "{top}");
        }
    }
}
