//! HighSpeed TCP: Reno with steps that grow with the window.
//!
//! **What it is.** Above 38 packets the increase a(w) a round trip rises with the window, up to 72 packets, and the part that
//! a loss takes, b(w), falls from a half to a tenth, so that a window of 83,000 packets needs one loss in ten million packets.
//! **Source.** RFC 3649 §5 and the table of its appendix B.
//! **How it differs.** From the RFC, as Linux is seen to do (docs/models/controls/highspeed.md): the credit for the next packet grows by a(w) per ACK, however many packets
//! the ACK covers, so delayed ACKs halve the growth; what slow start leaves of an ACK is lost; b(w) is in 1/256. The b(w)
//! of a loss is that of the last ACK in congestion avoidance. From Linux: nothing known.
//! **What it does not model.** Nothing known.

use super::reno::held_by_window;
use super::{AckSample, CongestionController, View, Window};

/// HighSpeed TCP.
#[derive(Clone, Copy, Debug)]
pub struct HighSpeed {
    row: Row,
}

/// The row of the table that governs.
#[derive(Clone, Copy, Debug)]
struct Row {
    index: usize,
    /// The window is above this, and at most that.
    above: u32,
    most: u32,
}

impl Row {
    /// The row of a window of `cwnd`: the first whose window is not smaller, or the last.
    fn of(cwnd: u32) -> Row {
        let index = WINDOWS.partition_point(|&w| w < cwnd).min(ROWS - 1);
        let above = if index == 0 { 0 } else { WINDOWS[index - 1] };
        Row { index, above, most: if index == ROWS - 1 { u32::MAX } else { WINDOWS[index] } }
    }

    /// a(w): packets of growth a round trip. Row r of the table, from 0, is the one with a(w) = r + 1.
    fn increase(&self) -> u32 {
        self.index as u32 + 1
    }

    /// b(w), in 1/256.
    fn decrease(&self) -> u32 {
        DECREASES[self.index]
    }
}

impl HighSpeed {
    /// A new one.
    pub fn new() -> HighSpeed {
        HighSpeed { row: Row::of(0) }
    }

    fn look_up(&mut self, cwnd: u32) {
        if cwnd <= self.row.above || cwnd > self.row.most {
            self.row = Row::of(cwnd);
        }
    }
}

impl Default for HighSpeed {
    fn default() -> HighSpeed {
        HighSpeed::new()
    }
}

impl CongestionController for HighSpeed {
    // The products of `ssthresh` must fit 32 bits.
    fn init(&mut self, _v: &View, w: &mut Window) {
        self.row = Row::of(0);
        w.clamp = w.clamp.min(u32::MAX / 128);
    }

    fn ssthresh(&mut self, _v: &View, w: &Window) -> u32 {
        (w.cwnd - (w.cwnd.wrapping_mul(self.row.decrease()) / 256)).max(2)
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
            w.cwnd_cnt = w.cwnd_cnt.saturating_add(self.row.increase());
            if w.cwnd_cnt >= w.cwnd {
                w.cwnd_cnt -= w.cwnd;
                w.cwnd += 1;
            }
        }
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

/// What a loss takes of the window at these, in 1/256, rounded down.
const DECREASES: [u32; ROWS] = {
    let (mut table, mut row) = ([0; ROWS], 0);
    while row < ROWS {
        table[row] = decrease(WINDOWS[row]);
        row += 1;
    }
    table
};

/// b(w) = 0.5 − 0.4 · log(w / 38) / log(83,000 / 38) (RFC 3649 §5), in 1/256, rounded down: 128 − 102.4 times the quotient.
const fn decrease(w: u32) -> u32 {
    let (part, whole) = (log2(w, LOW_WINDOW), log2(HIGH_WINDOW, LOW_WINDOW));
    ((1_280 * whole - 1_024 * part) / (10 * whole)) as u32
}

/// log₂(`a`/`b`) for a ≥ b, times 2³²: a bit of the logarithm for each squaring.
const fn log2(a: u32, b: u32) -> u64 {
    const ONE: u64 = 1 << 32;
    let (mut x, mut log, mut bit) = (((a as u64) << 32) / b as u64, 0, ONE);
    while x >= 2 * ONE {
        x /= 2;
        log += ONE;
    }
    while bit > 1 {
        bit /= 2;
        x = ((x as u128 * x as u128) >> 32) as u64;
        if x >= 2 * ONE {
            x /= 2;
            log += bit;
        }
    }
    log
}

/// Low_Window and High_Window of RFC 3649 §5, packets.
const LOW_WINDOW: u32 = 38;
const HIGH_WINDOW: u32 = 83_000;

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
        let mut row = |cwnd| (h.look_up(cwnd), h.row.index).1;
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
