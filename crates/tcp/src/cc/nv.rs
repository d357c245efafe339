//! NV, "new Vegas": compares the window with what the best rate of the last rounds needs without a queue.
//!
//! **What it is.** Once a round the window for the highest rate seen and the smallest RTT is computed. Above it by more than ten
//! packets is congestion: the window comes down by 30 % of the excess. Eight below that it grows as Reno's. Decisions wait until
//! enough RTTs were measured. A loss costs 20 %.
//! **Source.** Brakmo: "TCP-NV: congestion avoidance for data centers" (Linux Plumbers Conference 2010); Linux 6.1: `tcpnv_acked()`,
//! `tcpnv_cong_avoid()`, `tcpnv_state()`.
//! **How it differs.** Nothing known.
//! **What it does not model.** A base RTT given by a BPF program; the constants that are no module parameters are fixed.

use super::reno::held_by_window;
use super::{AckSample, CongestionController, Options, Param, PktsAcked, Snapshot, View, Window};
use tcpscape_base::{CaState, Stream};

/// NV.
#[derive(Clone, Debug)]
pub struct Nv {
    /// Packets in the queue that are allowed; seconds between resets of the smallest RTT; smallest window without a loss.
    pad: u32,
    reset_period: u32,
    floor: u32,
    random: Stream,
    rtt: RttFilter,
    /// Windows to acknowledge for one packet of growth, as a power of two (`−cwnd_growth_factor`): doubled by each timeout.
    slowness: u32,
    /// Whether the window may grow (`nv_allow_cwnd_growth`).
    may_grow: bool,
    /// What was measured is to be forgotten when the state is Open again (`nv_reset`).
    reset_due: bool,
    /// RTTs measured since the last decision, at most 255 (`nv_eval_call_cnt`).
    measured: u32,
    /// Rounds since the last decision, at most 255 (`nv_rtt_cnt`).
    rounds: u32,
    /// Decisions in a row that found no congestion (`nv_no_cong_cnt`).
    uncongested: u32,
    /// Packets that one ACK must cover to be the only one of its round (the connection's `nv_min_cwnd`).
    batch: u32,
    /// Highest rate since the last decision, 100 bit/s (`nv_rtt_max_rate`).
    max_rate: u32,
    /// Sequence number whose acknowledgement ends the round (`nv_rtt_start_seq`).
    round_end: u64,
    /// Sequence number acknowledged at the last call (`nv_last_snd_una`).
    last_una: u64,
}

/// Averaged RTT and its minimum over the last one to two periods.
#[derive(Clone, Copy, Debug)]
struct RttFilter {
    /// The average of this sample and the last average, µs; 0 before the first (`nv_last_rtt`).
    average: u32,
    /// The smallest average in use, and the one that follows it, µs.
    min: u32,
    min_next: u32,
    /// When it follows, jiffies.
    reset_at: u32,
}

impl RttFilter {
    // Half of the old average, half of the new sample. The first after a loss begins the minimum anew, at twice its value.
    fn take(&mut self, rtt: u32) -> u32 {
        if self.average == 0 {
            self.average = rtt;
            self.min = rtt << 1;
        } else {
            self.average = ((u64::from(rtt) + u64::from(self.average)) >> 1) as u32;
        }
        self.average
    }

    fn lower(&mut self, rtt: u32) {
        self.min = self.min.min(rtt);
        self.min_next = self.min_next.min(rtt);
    }
}

impl Nv {
    /// A new one.
    pub fn new(o: &Options<'_>) -> Nv {
        let get = |i: usize| o.get(&PARAMS[i]) as u32;
        Nv {
            pad: get(0),
            reset_period: get(1),
            floor: get(2),
            random: Stream::new(o.seed, "nv"),
            rtt: RttFilter { average: 0, min: u32::MAX, min_next: u32::MAX, reset_at: 0 },
            slowness: 0,
            may_grow: true,
            reset_due: false,
            measured: 0,
            rounds: 0,
            uncongested: 0,
            batch: BATCH,
            max_rate: 0,
            round_end: 0,
            last_una: 0,
        }
    }

    // Linux: tcpnv_reset()
    fn reset(&mut self, v: &View) {
        self.reset_due = false;
        (self.uncongested, self.rounds, self.measured) = (0, 0, 0);
        (self.rtt.average, self.max_rate) = (0, 0);
        (self.round_end, self.last_una) = (v.snd_una, v.snd_una);
    }

    /// The smallest RTT of the last period becomes the one in use; the next change is 3/4 to 5/4 of a period away.
    fn age_min_rtt(&mut self, v: &View) {
        if (v.jiffies.wrapping_sub(self.rtt.reset_at) as i32) < 0 {
            return;
        }
        (self.rtt.min, self.rtt.min_next) = (self.rtt.min_next, u32::MAX);
        let byte = self.random.below(256);
        let wait = self.reset_period.wrapping_mul(384 + byte).wrapping_mul(v.hz) >> 9;
        self.rtt.reset_at = v.jiffies.wrapping_add(wait);
        self.batch = (self.batch / 2).max(BATCH);
    }

    /// A round has ended: is there congestion, and if so, how much?
    fn judge(&mut self, v: &View, w: &mut Window, bytes_acked: u64) {
        self.round_end = v.snd_nxt;
        self.rounds = (self.rounds + 1).min(255);
        // One ACK for all of a round, because of large segments: wait longer.
        if self.measured == 1 && bytes_acked >= u64::from((self.batch - 1) * v.mss) && self.batch < MOST_BATCH {
            self.batch = (self.batch + BATCH_STEP).min(MOST_BATCH);
            self.round_end = v.snd_nxt + u64::from(self.batch * v.mss);
            self.measured = 0;
            self.may_grow = true;
            return;
        }
        let needed = u64::from(self.max_rate) * u64::from(self.rtt.min) / (RATE_UNIT * u64::from(v.mss));
        let most = (needed as u32).wrapping_add(self.pad);
        let decided = if w.cwnd > most { self.shrink(w, most) } else { w.cwnd <= most.wrapping_sub(PAD_BUFFER) && self.allow_growth() };
        if decided {
            (self.measured, self.rounds, self.max_rate) = (0, 0, 0);
            w.cwnd = w.cwnd.max(self.floor).min(w.clamp);
        }
    }

    /// There is congestion; false when it is too early to say so.
    fn shrink(&mut self, w: &mut Window, most: u32) -> bool {
        if self.rounds < LEAST_ROUNDS {
            return false;
        }
        let first = w.ssthresh == super::INFINITE_SSTHRESH;
        if self.measured < if first { MEASURED_TO_LEAVE_SLOW_START } else { MEASURED_TO_SHRINK } {
            self.may_grow &= first || self.rounds <= STOP_AFTER;
            return false;
        }
        self.may_grow = false;
        w.ssthresh = most;
        let excess = w.cwnd - most;
        w.cwnd -= if excess > 2 { (excess.wrapping_mul(EXCESS_CUT) >> 7).max(2) } else { excess };
        self.uncongested = 0;
        true
    }

    /// There is no congestion; false when it is too early to say so.
    fn allow_growth(&mut self) -> bool {
        if self.measured < MEASURED_TO_GROW {
            return false;
        }
        self.may_grow = true;
        self.uncongested += 1;
        if self.slowness > 0 && self.uncongested > QUICKEN_AFTER {
            self.slowness -= 1;
            self.uncongested = 0;
        }
        true
    }
}

impl CongestionController for Nv {
    fn name(&self) -> &'static str {
        "nv"
    }

    // Linux: tcpnv_init()
    fn init(&mut self, v: &View, _w: &mut Window) {
        self.reset(v);
        self.rtt.reset_at = v.jiffies.wrapping_add(2 * v.hz);
    }

    // Linux: tcpnv_recalc_ssthresh()
    fn ssthresh(&mut self, _v: &View, w: &Window) -> u32 {
        (w.cwnd.wrapping_mul(LOSS_KEEPS) >> 10).max(2)
    }

    // Linux: tcpnv_acked()
    fn pkts_acked(&mut self, v: &View, w: &mut Window, a: &PktsAcked) {
        if a.rtt_us < 0 || v.ca_state > CaState::Disorder {
            return;
        }
        let bytes_acked = v.snd_una - self.last_una;
        self.last_una = v.snd_una;
        if a.in_flight == 0 {
            return;
        }
        let rtt = self.rtt.take(a.rtt_us as u32);
        let rate = (u64::from(a.in_flight) * RATE_UNIT / u64::from(rtt.max(1))) as u32;
        self.max_rate = self.max_rate.max(rate);
        self.measured = (self.measured + 1).min(255);
        self.rtt.lower(rtt);
        self.age_min_rtt(v);
        if self.round_end < v.snd_una {
            self.judge(v, w, bytes_acked);
        }
    }

    // Linux: tcpnv_cong_avoid()
    fn on_ack(&mut self, v: &View, w: &mut Window, s: &AckSample) {
        if !s.may_raise || !held_by_window(v, w) || !self.may_grow {
            return;
        }
        let left = if w.in_slow_start() { w.slow_start(s.acked) } else { s.acked };
        if left > 0 {
            let windows = if self.slowness > 0 { w.cwnd << self.slowness } else { w.cwnd.max(4) };
            w.additive_increase(windows, left);
        }
    }

    // Linux: tcpnv_state()
    fn on_state(&mut self, v: &View, _w: &mut Window, new: CaState) {
        match new {
            CaState::Open if self.reset_due => self.reset(v),
            CaState::Cwr | CaState::Recovery | CaState::Loss => {
                self.reset_due = true;
                self.may_grow = false;
                if new == CaState::Loss {
                    self.slowness = (self.slowness + 1).min(SLOWEST);
                }
            }
            _ => {}
        }
    }

    fn snapshot(&self) -> Snapshot {
        vec![
            ("rtt_us", self.rtt.average.into()),
            ("min_rtt_us", self.rtt.min.into()),
            ("max_rate_bps", f64::from(self.max_rate) * 100.0),
            ("may_grow", f64::from(u8::from(self.may_grow))),
        ]
    }
}

/// The module's parameters.
pub(super) const PARAMS: &[Param] = &[
    Param { name: "nv_pad", about: "packets allowed in the queue", default: 10, min: 1, max: 1_000_000 },
    Param { name: "nv_reset_period", about: "seconds after which the smallest RTT is taken anew", default: 5, min: 0, max: 3_000 },
    Param {
        name: "nv_min_cwnd",
        about: "smallest window, in packets, that congestion without loss leaves",
        default: 2,
        min: 1,
        max: 1_000_000,
    },
];
/// Bytes over µs to units of 100 bit/s.
const RATE_UNIT: u64 = 80_000;
/// The window does not grow when it is closer than so many packets to congestion (`nv_pad_buffer`).
const PAD_BUFFER: u32 = 2;
/// Part of the excess that congestion takes away, of 128: 30 % (`nv_cong_dec_mult`).
const EXCESS_CUT: u32 = 38;
/// Part of the window that a loss leaves, of 1024: 80 % (`nv_loss_dec_factor`).
const LOSS_KEEPS: u32 = 819;
/// RTTs to measure before the window shrinks, before it grows, and before slow start ends (`nv_*_eval_min_calls`).
const MEASURED_TO_SHRINK: u32 = 60;
const MEASURED_TO_GROW: u32 = 20;
const MEASURED_TO_LEAVE_SLOW_START: u32 = 30;
/// Growth ends after so many congested rounds with too few RTTs to decide (`nv_stop_rtt_cnt`).
const STOP_AFTER: u32 = 10;
/// Rounds before the window may shrink (`nv_rtt_min_cnt`).
const LEAST_ROUNDS: u32 = 2;
/// Uncongested decisions after which slowed growth is twice as fast (`nv_cwnd_growth_rate_neg`).
const QUICKEN_AFTER: u32 = 8;
/// Largest power of two by which growth is slowed.
const SLOWEST: u32 = 8;
/// Packets that a lone ACK of a round must cover: at first, more each time, at most (`NV_MIN_CWND`, `NV_MIN_CWND_GROW`,
/// `NV_TSO_CWND_BOUND` + 1).
const BATCH: u32 = 4;
const BATCH_STEP: u32 = 2;
const MOST_BATCH: u32 = 81;

#[cfg(test)]
mod tests;
