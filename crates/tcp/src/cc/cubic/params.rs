//! CUBIC's parameters: those of Linux's module, and one more.
//!
//! **What it is.** The parameters and the numbers derived from them once, when a connection is made. **Source.** Linux's
//! `/sys/module/tcp_cubic/parameters`. **How it differs.** Nothing known. As when it is written to /sys, `beta` leaves
//! the Reno estimate's step alone, which the kernel computes when the module is loaded; `bic_scale` can only be given then.
//! **What it does not model.** `beta` on the kernel's command line, which the step follows; values that make no sense: β ≥ 1024 or ≤ 0,
//! negative windows and times.

use super::TIME_SHIFT;
use crate::cc::{Options, Param};
use std::ops::RangeInclusive;

/// What the parameters come to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Multiplicative decrease, 1/1024.
    pub beta: u32,
    /// 10 · 1024 · C in packets/s³.
    pub c: u64,
    /// 1/C in (1/1024 s)³ per packet: 2^(10+30) / `c`.
    pub inverse_c: u64,
    pub fast_convergence: bool,
    pub friendly: bool,
    /// Threshold of a connection without HyStart, packets; 0 for none.
    pub initial_ssthresh: u32,
    pub hystart: bool,
    pub hystartpp: bool,
    /// HyStart: which detections work, from which window on, packets, and the largest gap between two ACKs of a train, µs.
    pub train: bool,
    pub delay: bool,
    pub low_window: u32,
    pub ack_gap: i32,
}

impl Rules {
    pub fn new(o: &Options<'_>) -> Rules {
        let c = o.get(&BIC_SCALE) as u64 * 10;
        let detect = o.get(&HYSTART_DETECT);
        Rules {
            beta: o.get(&BETA) as u32,
            c,
            inverse_c: (1 << (10 + 3 * TIME_SHIFT)) / c,
            fast_convergence: o.is_on(&FAST_CONVERGENCE),
            friendly: o.is_on(&TCP_FRIENDLINESS),
            initial_ssthresh: o.get(&INITIAL_SSTHRESH) as u32,
            hystart: o.is_on(&HYSTART) && !o.is_on(&HYSTARTPP),
            hystartpp: o.is_on(&HYSTARTPP),
            train: detect & 1 != 0,
            delay: detect & 2 != 0,
            low_window: o.get(&HYSTART_LOW_WINDOW) as u32,
            ack_gap: o.get(&HYSTART_ACK_DELTA) as i32,
        }
    }
}

impl Default for Rules {
    fn default() -> Rules {
        Rules::new(&Options::default())
    }
}

const fn param(name: &'static str, about: &'static str, default: i64, range: RangeInclusive<i64>) -> Param {
    Param { name, about, default, min: *range.start(), max: *range.end() }
}

/// All of them.
pub(crate) const PARAMS: &[Param] = &[
    FAST_CONVERGENCE,
    BETA,
    INITIAL_SSTHRESH,
    BIC_SCALE,
    TCP_FRIENDLINESS,
    HYSTART,
    HYSTART_DETECT,
    HYSTART_LOW_WINDOW,
    HYSTART_ACK_DELTA,
    HYSTARTPP,
];
const FAST_CONVERGENCE: Param =
    param("fast_convergence", "after a loss below the last maximum, aim lower than the window it came at", 1, 0..=1);
/// 717/1024 ≈ 0.7 (RFC 9438 §4.6).
const BETA: Param = param("beta", "part of the window kept after a loss, 1/1024", super::BETA as i64, 1..=1_023);
const INITIAL_SSTHRESH: Param =
    param("initial_ssthresh", "first slow-start threshold, packets, when hystart is off; 0 for none", 0, 0..=1 << 30);
/// 41/1024 · 10 ≈ 0.4 packets/s³ (RFC 9438 §4.2).
const BIC_SCALE: Param = param("bic_scale", "the curve's C, 10/1024 packets/s³", 41, 1..=100_000);
const TCP_FRIENDLINESS: Param = param("tcp_friendliness", "be no slower than an estimate of Reno", 1, 0..=1);
const HYSTART: Param = param("hystart", "end slow start before the queue overflows", 1, 0..=1);
const HYSTART_DETECT: Param = param("hystart_detect", "what ends slow start: 1 a train of ACKs, 2 a longer delay, 3 either", 3, 0..=3);
const HYSTART_LOW_WINDOW: Param = param("hystart_low_window", "window from which HyStart looks, packets", 16, 0..=1 << 30);
const HYSTART_ACK_DELTA: Param = param("hystart_ack_delta_us", "largest gap between two ACKs of a train, µs", 2_000, 0..=1_000_000);
/// Not Linux's.
const HYSTARTPP: Param = param("hystartpp", "HyStart++ (RFC 9406) in place of HyStart; not in Linux", 0, 0..=1);
