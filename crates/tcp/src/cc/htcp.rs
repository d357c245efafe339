//! H-TCP: the increase grows with the time since the last loss, the decrease follows from the queueing delay.
//!
//! **What it is.** Reno's increase in the first second after a loss, then a quadratic function of the time; scaled by the RTT so
//! that flows of different RTTs grow alike. A loss leaves RTTmin/RTTmax of the window, between a half and 0.8, as long as
//! the throughput at losses is steady within a fifth; a half otherwise.
//! **Source.** Leith, Shorten, "H-TCP: TCP for high-speed and long-distance networks", PFLDnet 2004;
//! draft-leith-tcp-htcp-06; Linux 6.1's `tcp_htcp.c`: `htcp_cong_avoid()`, `htcp_param_update()`,
//! `measure_achieved_throughput()`, `htcp_state()`, `htcp_cwnd_undo()`.
//! **How it differs.** From the draft, as Linux does: RTTs and the time since the loss are in jiffies (10 ms at HZ 100, rounded
//! up), RTTmax rises by at most 20 ms a sample and forgets 5 % of its distance at every loss, the RTT scaling is limited to
//! 0.5–10, the increase is computed anew when the window grows. From Linux: a connection's very first jiffy counts as a time
//! like others (Linux takes 0 for "no undo"); counts of acknowledged packets do not wrap at 65,536.
//! **What it does not model.** Nothing known.

use super::reno::held_by_window;
use super::{AckSample, CongestionController, Options, Param, PktsAcked, Snapshot, View, Window};
use tcpscape_base::CaState;

/// H-TCP.
#[derive(Clone, Debug)]
pub struct Htcp {
    rtt_scaling: bool,
    bandwidth_switch: bool,
    /// Packets of growth a round trip, 1/128.
    alpha: u32,
    /// What a loss leaves of the window, 1/128.
    beta: u32,
    /// The next loss may use the RTTs: there was one before it with a steady throughput (`modeswitch`).
    adaptive: bool,
    /// Packets that the next ACK counts for (`pkts_acked`).
    acked: u32,
    /// Smallest RTT, jiffies; 0 before the first (`minRTT`).
    rtt_min: u32,
    memory: Memory,
    /// What an undo brings back; none when there is nothing to undo, or it was undone (`undo_*`).
    before: Option<Memory>,
    throughput: Throughput,
}

/// What a reduction changes and an undo restores.
#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    /// Jiffy at which the last loss was over (`last_cong`).
    since: u32,
    /// Largest RTT, jiffies, fading (`maxRTT`).
    rtt_max: u32,
    /// The throughput's maximum at the loss before (`old_maxB`).
    peak: u32,
}

/// Packets a second, measured over round trips.
#[derive(Clone, Copy, Debug, Default)]
struct Throughput {
    /// Packets acknowledged in this measurement (`packetcount`).
    packets: u32,
    /// Jiffy at which it began (`lasttime`).
    began: u32,
    /// Smoothed (`Bi`).
    smoothed: u32,
    /// Largest since the last loss (`maxB`).
    peak: u32,
}

impl Htcp {
    /// One with parameters from [`PARAMS`].
    pub fn new(o: &Options<'_>) -> Htcp {
        Htcp {
            rtt_scaling: o.is_on(&USE_RTT_SCALING),
            bandwidth_switch: o.is_on(&USE_BANDWIDTH_SWITCH),
            alpha: ONE,
            beta: BETA_MIN,
            adaptive: false,
            acked: 1,
            rtt_min: 0,
            memory: Memory::default(),
            before: None,
            throughput: Throughput::default(),
        }
    }

    /// Jiffies since the last loss was over (`htcp_cong_time()`).
    fn age(&self, v: &View) -> u32 {
        v.jiffies.wrapping_sub(self.memory.since)
    }

    // Linux: measure_rtt()
    fn measure_rtt(&mut self, v: &View, rtt: u32) {
        if self.rtt_min == 0 || rtt < self.rtt_min {
            self.rtt_min = rtt;
        }
        if v.ca_state == CaState::Open {
            let largest = self.memory.rtt_max.max(self.rtt_min);
            let credible = rtt <= largest + v.jiffies_of(RTT_RISE_US);
            self.memory.rtt_max = if credible { largest.max(rtt) } else { largest };
        }
    }

    // Linux: measure_achieved_throughput()
    fn measure_throughput(&mut self, v: &View, w: &Window, acked: u32) {
        if v.ca_state > CaState::Disorder {
            (self.throughput.packets, self.throughput.began) = (0, v.jiffies);
            return;
        }
        let recent = self.rtt_min > 0 && self.age(v) / self.rtt_min <= SETTLING;
        let t = &mut self.throughput;
        t.packets = t.packets.wrapping_add(acked);
        let window = w.cwnd.wrapping_sub((self.alpha >> SHIFT).max(1));
        let time = v.jiffies.wrapping_sub(t.began);
        if self.rtt_min == 0 || t.packets < window || time < self.rtt_min {
            return;
        }
        let rate = t.packets.wrapping_mul(v.hz) / time;
        if recent {
            (t.smoothed, t.peak) = (rate, rate);
        } else {
            t.smoothed = t.smoothed.wrapping_mul(3).wrapping_add(rate) / 4;
            t.peak = t.peak.max(t.smoothed);
        }
        (t.packets, t.began) = (0, v.jiffies);
    }

    // Linux: htcp_beta_update()
    fn update_beta(&mut self, v: &View) {
        self.beta = BETA_MIN;
        if self.bandwidth_switch {
            let (now, before) = (self.throughput.peak, self.memory.peak);
            self.memory.peak = now;
            if !is_steady(now, before) {
                self.adaptive = false;
                return;
            }
        }
        let rtt_max = self.memory.rtt_max;
        if self.adaptive && self.rtt_min > v.jiffies_of(RTT_MIN_US) && rtt_max > 0 {
            self.beta = ((self.rtt_min << SHIFT) / rtt_max).clamp(BETA_MIN, BETA_MAX);
        } else {
            self.adaptive = true;
        }
    }

    // draft-leith-tcp-htcp §3.1; Linux: htcp_alpha_update(). Wraps at 32 bits, as there.
    fn update_alpha(&mut self, v: &View) {
        let (hz, age) = (v.hz.max(1), self.age(v));
        let mut factor = 1;
        if age > hz {
            let late = age - hz;
            let half = late / 2;
            factor = (late.wrapping_mul(10).wrapping_add(half.wrapping_mul(half) / hz) / hz).wrapping_add(1);
        }
        if self.rtt_scaling && self.rtt_min > 0 {
            // Eighths of RTT0 / RTT, with an RTT0 of 0.1 s.
            let scale = ((hz << 3) / self.rtt_min.wrapping_mul(10)).clamp(SCALE_MIN, SCALE_MAX);
            factor = ((factor << 3) / scale).max(1);
        }
        self.alpha = factor.wrapping_mul(2).wrapping_mul(ONE - self.beta);
        if self.alpha == 0 {
            self.alpha = ONE;
        }
    }
}

/// Whether two rates differ by at most a fifth of the second: 0.8 ≤ now / before ≤ 1.2.
fn is_steady(now: u32, before: u32) -> bool {
    let (now, before) = (u64::from(now) * 5, u64::from(before));
    (4 * before..=6 * before).contains(&now)
}

impl CongestionController for Htcp {
    fn name(&self) -> &'static str {
        "htcp"
    }

    fn init(&mut self, v: &View, _w: &mut Window) {
        self.memory.since = v.jiffies;
    }

    // Linux: htcp_recalc_ssthresh(), htcp_param_update()
    fn ssthresh(&mut self, v: &View, w: &Window) -> u32 {
        self.update_beta(v);
        self.update_alpha(v);
        if self.rtt_min > 0 && self.memory.rtt_max > self.rtt_min {
            self.memory.rtt_max = self.rtt_min + (self.memory.rtt_max - self.rtt_min) * 95 / 100;
        }
        (w.cwnd.wrapping_mul(self.beta) >> SHIFT).max(2)
    }

    fn pkts_acked(&mut self, v: &View, w: &mut Window, a: &PktsAcked) {
        if v.ca_state == CaState::Open {
            self.acked = a.pkts_acked;
        }
        if a.rtt_us > 0 {
            self.measure_rtt(v, v.jiffies_of(a.rtt_us as u32));
        }
        if self.bandwidth_switch {
            self.measure_throughput(v, w, a.pkts_acked);
        }
    }

    fn on_ack(&mut self, v: &View, w: &mut Window, s: &AckSample) {
        if !s.may_raise || !held_by_window(v, w) {
            return;
        }
        if w.in_slow_start() {
            w.slow_start(s.acked);
            return;
        }
        if w.cwnd_cnt.wrapping_mul(self.alpha) >> SHIFT >= w.cwnd {
            w.cwnd = w.cwnd.saturating_add(1).min(w.clamp);
            w.cwnd_cnt = 0;
            self.update_alpha(v);
        } else {
            w.cwnd_cnt = w.cwnd_cnt.wrapping_add(self.acked);
        }
        self.acked = 1;
    }

    fn on_state(&mut self, v: &View, _w: &mut Window, new: CaState) {
        match new {
            // The time counts from the end of the recovery.
            CaState::Open => {
                if self.before.take().is_some() {
                    self.memory.since = v.jiffies;
                }
            }
            CaState::Disorder => {}
            CaState::Cwr | CaState::Recovery | CaState::Loss => {
                self.before = Some(self.memory);
                self.memory.since = v.jiffies;
            }
        }
    }

    // What was learnt about the throughput and the RTT since the loss is forgotten with the loss.
    fn undo(&mut self, _v: &View, w: &Window) -> u32 {
        if let Some(before) = self.before.take() {
            self.memory = before;
        }
        w.cwnd.max(w.prior_cwnd)
    }

    fn snapshot(&self) -> Snapshot {
        vec![
            ("alpha", f64::from(self.alpha) / 128.0),
            ("beta", f64::from(self.beta) / 128.0),
            ("rtt_min_jiffies", self.rtt_min.into()),
            ("rtt_max_jiffies", self.memory.rtt_max.into()),
            ("peak_pps", self.throughput.peak.into()),
        ]
    }
}

/// The parameters of Linux's module `tcp_htcp`.
pub const PARAMS: &[Param] = &[USE_BANDWIDTH_SWITCH, USE_RTT_SCALING];

const USE_RTT_SCALING: Param =
    Param { name: "use_rtt_scaling", about: "the increase is scaled by the RTT over 0.1 s", default: 1, min: 0, max: 1 };
const USE_BANDWIDTH_SWITCH: Param =
    Param { name: "use_bandwidth_switch", about: "a loss halves the window when the throughput has changed", default: 1, min: 0, max: 1 };

/// α and β are in 1/128.
const SHIFT: u32 = 7;
const ONE: u32 = 1 << SHIFT;
/// β is between 0.5 …
const BETA_MIN: u32 = 64;
/// … and 0.8.
const BETA_MAX: u32 = 102;
/// A sample may raise RTTmax by at most this, µs.
const RTT_RISE_US: u32 = 20_000;
/// Below this RTTmin a loss leaves a half, µs.
const RTT_MIN_US: u32 = 10_000;
/// Round trips after a loss in which the throughput is taken as measured.
const SETTLING: u32 = 3;
/// The RTT scaling is between 0.5 and 10, in eighths.
const SCALE_MIN: u32 = 4;
const SCALE_MAX: u32 = 80;

#[cfg(test)]
mod tests;
