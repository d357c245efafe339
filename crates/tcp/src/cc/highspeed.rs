//! HighSpeed TCP: Reno with steps that grow with the window.
//!
//! **What it is.** Above 38 packets the increase a(w) a round trip rises with the window, up to 72 packets, and the part that
//! a loss takes, b(w), falls from a half to a tenth, so that a window of 83,000 packets needs one loss in ten million packets.
//! **Source.** RFC 3649, table of its appendix B; Linux 6.1's `tcp_highspeed.c`: `hstcp_cong_avoid()`, `hstcp_ssthresh()`.
//! **How it differs.** From the RFC, as Linux does: the credit for the next packet grows by a(w) per ACK, however many packets
//! the ACK covers, so delayed ACKs halve the growth; what slow start leaves of an ACK is lost; b(w) is in 1/256. The b(w)
//! of a loss is that of the last ACK in congestion avoidance. From Linux: nothing known.
//! **What it does not model.** Nothing known.

use super::reno::held_by_window;
use super::{AckSample, CongestionController, Snapshot, View, Window};

/// HighSpeed TCP.
#[derive(Clone, Copy, Debug, Default)]
pub struct HighSpeed {
    /// Row of the table that governs: the window is above the row before, and at most this one (`ai`).
    row: usize,
}

impl HighSpeed {
    /// A new one.
    pub fn new() -> HighSpeed {
        HighSpeed::default()
    }

    /// Moves to the row of a window of `cwnd`.
    fn look_up(&mut self, cwnd: u32) {
        while self.row < ROWS - 1 && cwnd > WINDOWS[self.row] {
            self.row += 1;
        }
        while self.row > 0 && cwnd <= WINDOWS[self.row - 1] {
            self.row -= 1;
        }
    }
}

impl CongestionController for HighSpeed {
    fn name(&self) -> &'static str {
        "highspeed"
    }

    // Linux: hstcp_init(); the products of ssthresh must fit 32 bits.
    fn init(&mut self, _v: &View, w: &mut Window) {
        self.row = 0;
        w.clamp = w.clamp.min(u32::MAX / 128);
    }

    fn ssthresh(&mut self, _v: &View, w: &Window) -> u32 {
        (w.cwnd - (w.cwnd.wrapping_mul(DECREASES[self.row]) >> 8)).max(2)
    }

    fn on_ack(&mut self, v: &View, w: &mut Window, s: &AckSample) {
        if !s.may_raise || !held_by_window(v, w) {
            return;
        }
        if w.in_slow_start() {
            w.slow_start(s.acked);
            return;
        }
        self.look_up(w.cwnd);
        if w.cwnd < w.clamp {
            // Row r of the table, from 0, is the one with a(w) = r + 1.
            w.cwnd_cnt = w.cwnd_cnt.saturating_add(self.row as u32 + 1);
            if w.cwnd_cnt >= w.cwnd {
                w.cwnd_cnt -= w.cwnd;
                w.cwnd += 1;
            }
        }
    }

    fn snapshot(&self) -> Snapshot {
        vec![("a", self.row as f64 + 1.0), ("b", f64::from(DECREASES[self.row]) / 256.0)]
    }
}

/// Rows of the table.
const ROWS: usize = 72;

/// The largest window, in packets, at which a(w) is 1, 2, 3 … packets a round trip (RFC 3649, appendix B).
#[rustfmt::skip]
const WINDOWS: [u32; ROWS] = [
    38, 118, 221, 347, 495, 663, 851, 1_058, 1_284, 1_529, 1_793, 2_076, 2_378, 2_699, 3_039, 3_399, 3_778, 4_177,
    4_596, 5_036, 5_497, 5_979, 6_483, 7_009, 7_558, 8_130, 8_726, 9_346, 9_991, 10_661, 11_358, 12_082, 12_834,
    13_614, 14_424, 15_265, 16_137, 17_042, 17_981, 18_955, 19_965, 21_013, 22_101, 23_230, 24_402, 25_618, 26_881,
    28_193, 29_557, 30_975, 32_450, 33_986, 35_586, 37_253, 38_992, 40_808, 42_707, 44_694, 46_776, 48_961, 51_258,
    53_677, 56_230, 58_932, 61_799, 64_851, 68_113, 71_617, 75_401, 79_517, 84_035, 89_053,
];

/// What a loss takes of the window at these, in 1/256: b(w) = 0.5 − 0.4 · ln(w / 38) / ln(83,000 / 38) (RFC 3649, §5),
/// rounded down.
#[rustfmt::skip]
const DECREASES: [u32; ROWS] = [
    128, 112, 104, 98, 93, 89, 86, 83, 81, 78, 76, 74, 72, 71, 69, 68, 66, 65, 64, 62, 61, 60, 59, 58, 57, 56, 55, 54,
    53, 52, 52, 51, 50, 49, 48, 48, 47, 46, 45, 45, 44, 43, 43, 42, 41, 41, 40, 39, 39, 38, 38, 37, 36, 36, 35, 35,
    34, 33, 33, 32, 32, 31, 30, 30, 29, 28, 28, 27, 26, 26, 25, 24,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn limited() -> View {
        View { is_cwnd_limited: true, hz: 100, ..View::default() }
    }

    fn ack(n: u32) -> AckSample {
        AckSample { acked: n, may_raise: true, ..Default::default() }
    }

    /// RFC 3649 §5: b(w) as above, a(w) = w² p(w) 2 b(w) / (2 − b(w)) with p(w) = 0.078 / w^1.2.
    #[test]
    fn the_table_is_the_rfcs() {
        for (i, (&w, &md)) in WINDOWS.iter().zip(&DECREASES).enumerate() {
            let w = f64::from(w);
            let b = 0.5 - 0.4 * (w / 38.0).ln() / (83_000.0f64 / 38.0).ln();
            assert_eq!(md, (256.0 * b).floor() as u32, "{w}");
            let a = w * w * 2.0 * b / (2.0 - b) * 0.078 / w.powf(1.2);
            assert!((a - (i as f64 + 1.0)).abs() < 0.05, "{w}: {a}");
        }
    }

    #[test]
    fn one_ack_is_worth_a_of_w_whatever_it_covers() {
        let (mut h, mut w) = (HighSpeed::new(), Window { cwnd: 120, ssthresh: 2, ..Window::default() });
        // 118 < 120 ≤ 221: 3 for each ACK, 40 ACKs for a packet.
        for n in 1..=39 {
            h.on_ack(&limited(), &mut w, &ack(1 + n % 2));
        }
        assert_eq!((w.cwnd, w.cwnd_cnt), (120, 117));
        h.on_ack(&limited(), &mut w, &ack(2));
        assert_eq!((w.cwnd, w.cwnd_cnt), (121, 0));
    }

    #[test]
    fn rows_follow_the_window_up_and_down() {
        let mut h = HighSpeed::new();
        let mut row = |cwnd| (h.look_up(cwnd), h.row).1;
        assert_eq!([row(10), row(38), row(39), row(118), row(119), row(90_000), row(1 << 24)], [0, 0, 1, 1, 2, 71, 71]);
        assert_eq!([row(84_035), row(84_036), row(500), row(38)], [70, 71, 5, 0]);
    }

    #[test]
    fn a_loss_takes_less_of_a_larger_window_by_the_row_of_the_last_ack() {
        let (mut h, with) = (HighSpeed::new(), |cwnd| Window { cwnd, ssthresh: 2, ..Window::default() });
        // No ACK in congestion avoidance yet: a half, at any window.
        assert_eq!(h.ssthresh(&limited(), &with(1_000)), 500);
        h.on_ack(&limited(), &mut with(1_000), &ack(1));
        // 851 < 1,000 ≤ 1,058: 83/256, 324 packets.
        assert_eq!((h.ssthresh(&limited(), &with(1_000)), h.ssthresh(&limited(), &with(2))), (676, 2));
    }

    #[test]
    fn slow_start_stops_at_the_threshold() {
        let (mut h, mut w) = (HighSpeed::new(), Window { cwnd: 10, ssthresh: 16, ..Window::default() });
        h.on_ack(&limited(), &mut w, &ack(10));
        assert_eq!((w.cwnd, w.cwnd_cnt), (16, 0));
    }
}
