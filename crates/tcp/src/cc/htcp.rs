//! H-TCP: the increase grows with the time since the last loss, the decrease follows from the queueing delay.
//!
//! **What it is.** Reno's increase in the first second after a loss, then a quadratic function of the time; scaled by the RTT so
//! that flows of different RTTs grow alike. A loss leaves RTTmin/RTTmax of the window, between a half and 0.8, as long as
//! the throughput at losses is steady within a fifth; a half otherwise.
//! **Source.** Leith, Shorten, "H-TCP: TCP for high-speed and long-distance networks", PFLDnet 2004; draft-leith-tcp-htcp-06.
//! **How it differs.** From the draft, as Linux is seen to do (docs/models/controls/htcp.md): RTTs and the time since the loss are in jiffies (10 ms
//! at HZ 100, rounded up), a sample more than 20 ms above RTTmax is ignored, which forgets 5 % of its distance at every loss, the RTT scaling is
//! limited to 0.5–10, the increase is computed anew when the window grows. From Linux: a connection's very first jiffy counts as a
//! time like others; counts of acknowledged packets do not wrap at 65,536.
//! **What it does not model.** Nothing known.

use super::reno::held_by_window;
use super::{AckSample, CongestionController, Options, Param, PktsAcked, View, Window};
use tcpscape_base::CaState;

/// H-TCP.
#[derive(Clone, Debug)]
pub struct Htcp {
    rtt_scaling: bool,
    bandwidth_switch: bool,
    /// Packets of growth a round trip, 1/128.
    alpha: u32,
    backoff: Backoff,
    /// Packets that the next ACK counts for: those of the latest cumulative acknowledgement, one if they have been counted.
    newly_acked: u32,
    /// Smallest RTT, jiffies; 0 before the first.
    rtt_min: u32,
    epoch: Epoch,
    /// What an undo brings back; none when there is nothing to undo, or it was undone.
    undoable: Option<Epoch>,
    throughput: Throughput,
}

/// What a reduction changes and an undo restores.
#[derive(Clone, Copy, Debug, Default)]
struct Epoch {
    /// Jiffy from which Δ counts: the end of the last loss.
    since: u32,
    /// Largest RTT, jiffies; each loss takes some of its distance from the smallest.
    rtt_max: u32,
    /// The largest throughput before the last loss, packets a second.
    peak_before: u32,
}

/// What a loss leaves of the window (the draft's adaptive backoff).
#[derive(Clone, Copy, Debug)]
struct Backoff {
    /// 1/128.
    beta: u32,
    /// The throughput at the last loss was that of the loss before.
    was_steady: bool,
}

impl Backoff {
    /// A loss at a throughput that is, or is not, that of the loss before: `ratio` = RTTmin/RTTmax counts from the second steady one on.
    fn on_loss(&mut self, is_steady: bool, ratio: Option<u32>) {
        let adaptive = is_steady && self.was_steady;
        self.beta = ratio.filter(|_| adaptive).unwrap_or(BETA_MIN);
        self.was_steady = is_steady;
    }
}

/// Packets a second, measured over round trips.
#[derive(Clone, Copy, Debug, Default)]
struct Throughput {
    /// Packets acknowledged in this measurement.
    packets: u32,
    /// Jiffy at which it began.
    began: u32,
    /// Moving average.
    average: u32,
    /// Largest average since the loss.
    peak: u32,
}

impl Throughput {
    fn restart(&mut self, v: &View) {
        (self.packets, self.began) = (0, v.jiffies);
    }

    /// The rate once `enough` packets have been counted over at least `rtt` jiffies; the next measurement begins then.
    fn rate(&mut self, v: &View, enough: u32, rtt: u32) -> Option<u32> {
        let time = v.jiffies.wrapping_sub(self.began);
        if self.packets < enough || time < rtt {
            return None;
        }
        let rate = self.packets.wrapping_mul(v.hz) / time;
        self.restart(v);
        Some(rate)
    }

    /// A rate soon after a loss: what was before does not count.
    fn begin_with(&mut self, rate: u32) {
        (self.average, self.peak) = (rate, rate);
    }

    /// Any other: ¾ old and ¼ new.
    fn average_in(&mut self, rate: u32) {
        self.average = self.average.wrapping_mul(3).wrapping_add(rate) / 4;
        self.peak = self.peak.max(self.average);
    }
}

impl Htcp {
    /// One with parameters from [`PARAMS`].
    pub fn new(o: &Options<'_>) -> Htcp {
        Htcp {
            rtt_scaling: o.is_on(&USE_RTT_SCALING),
            bandwidth_switch: o.is_on(&USE_BANDWIDTH_SWITCH),
            alpha: ONE,
            backoff: Backoff { beta: BETA_MIN, was_steady: false },
            newly_acked: 1,
            rtt_min: 0,
            epoch: Epoch::default(),
            undoable: None,
            throughput: Throughput::default(),
        }
    }

    /// Δ: jiffies since the last loss was over.
    fn elapsed(&self, v: &View) -> u32 {
        v.jiffies.wrapping_sub(self.epoch.since)
    }

    /// Takes an RTT, jiffies. Only in state Open does it raise the largest, and by a jump only if the jump is credible.
    fn take_rtt(&mut self, v: &View, rtt: u32) {
        let smallest = if self.rtt_min == 0 { rtt } else { self.rtt_min.min(rtt) };
        self.rtt_min = smallest;
        if v.ca_state == CaState::Open {
            let largest = self.epoch.rtt_max.max(smallest);
            let is_credible = rtt <= largest + v.jiffies_of(RTT_RISE_US);
            self.epoch.rtt_max = if is_credible { largest.max(rtt) } else { largest };
        }
    }

    /// Counts packets towards the throughput; reductions are left out.
    fn count(&mut self, v: &View, w: &Window, acked: u32) {
        if v.ca_state > CaState::Disorder {
            self.throughput.restart(v);
            return;
        }
        self.throughput.packets = self.throughput.packets.wrapping_add(acked);
        if self.rtt_min == 0 {
            return;
        }
        // A window as it was a round trip ago, before it grew by α.
        let window = w.cwnd.wrapping_sub((self.alpha / ONE).max(1));
        if let Some(rate) = self.throughput.rate(v, window, self.rtt_min) {
            if self.elapsed(v) / self.rtt_min <= SETTLING {
                self.throughput.begin_with(rate);
            } else {
                self.throughput.average_in(rate);
            }
        }
    }

    /// α = 2 (1 − β) ᾱ(Δ), which makes the average throughput that of Reno's β = ½; never 0.
    fn update_alpha(&mut self, v: &View) {
        let hz = v.hz.max(1);
        let mut packets = increase(self.elapsed(v), hz);
        if self.rtt_scaling && self.rtt_min > 0 {
            packets = scaled(packets, self.rtt_min, hz);
        }
        let alpha = packets.wrapping_mul(2).wrapping_mul(ONE - self.backoff.beta);
        self.alpha = if alpha == 0 { ONE } else { alpha };
    }

    /// RTTmin/RTTmax, 1/128, between ½ and 0.8 (the draft's adaptive backoff); none where RTTmin is too few jiffies to tell.
    fn rtt_ratio(&self, v: &View) -> Option<u32> {
        let precise = self.rtt_min > v.jiffies_of(RTT_MIN_US);
        let ratio = self.rtt_min.wrapping_mul(ONE).checked_div(self.epoch.rtt_max)?;
        precise.then(|| ratio.clamp(BETA_MIN, BETA_MAX))
    }

    /// Whether the throughput is that of the loss before; the next loss compares with the present one.
    fn is_throughput_steady(&mut self) -> bool {
        let before = std::mem::replace(&mut self.epoch.peak_before, self.throughput.peak);
        is_steady(self.throughput.peak, before)
    }
}

/// ᾱ(Δ) = 1 + 10 (Δ − Δ_L) + ((Δ − Δ_L)/2)² packets a round trip after `elapsed` jiffies, where Δ_L = 1 s; 1 until then (the draft's increase function).
/// The quotients are whole numbers, and the arithmetic is of 32 bits.
fn increase(elapsed: u32, hz: u32) -> u32 {
    let late = elapsed.saturating_sub(hz);
    let square = (late / 2).wrapping_mul(late / 2) / hz;
    (late.wrapping_mul(10).wrapping_add(square) / hz).wrapping_add(1)
}

/// `packets` over RTT0/RTTmin with an RTT0 of 0.1 s, the quotient in eighths and from 0.5 to 10; a packet at least (the draft's RTT scaling).
fn scaled(packets: u32, rtt_min: u32, hz: u32) -> u32 {
    let eighths = (hz.wrapping_mul(8) / rtt_min.wrapping_mul(10)).clamp(SCALE_MIN, SCALE_MAX);
    (packets.wrapping_mul(8) / eighths).max(1)
}

/// Whether two rates differ by at most a fifth of the second: 0.8 ≤ now / before ≤ 1.2.
fn is_steady(now: u32, before: u32) -> bool {
    let (now, before) = (u64::from(now) * 5, u64::from(before));
    (4 * before..=6 * before).contains(&now)
}

impl CongestionController for Htcp {
    fn init(&mut self, v: &View, _w: &mut Window) {
        self.epoch.since = v.jiffies;
    }

    fn ssthresh(&mut self, v: &View, w: &Window) -> u32 {
        let is_steady = !self.bandwidth_switch || self.is_throughput_steady();
        self.backoff.on_loss(is_steady, self.rtt_ratio(v));
        self.update_alpha(v);
        let queue = self.epoch.rtt_max.saturating_sub(self.rtt_min);
        if self.rtt_min > 0 && queue > 0 {
            self.epoch.rtt_max = self.rtt_min + queue * RTT_MAX_KEEPS_PERCENT / 100;
        }
        (w.cwnd.wrapping_mul(self.backoff.beta) / ONE).max(2)
    }

    fn pkts_acked(&mut self, v: &View, w: &mut Window, a: &PktsAcked) {
        if v.ca_state == CaState::Open {
            self.newly_acked = a.pkts_acked;
        }
        if a.rtt_us > 0 {
            self.take_rtt(v, v.jiffies_of(a.rtt_us as u32));
        }
        if self.bandwidth_switch {
            self.count(v, w, a.pkts_acked);
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
        let newly_acked = std::mem::replace(&mut self.newly_acked, 1);
        // The ACK that finds the credit sufficient spends all of it and adds none.
        let earned = w.cwnd_cnt.wrapping_mul(self.alpha) / ONE;
        if earned < w.cwnd {
            w.cwnd_cnt = w.cwnd_cnt.wrapping_add(newly_acked);
        } else {
            w.cwnd_cnt = 0;
            w.cwnd = w.cwnd.saturating_add(1).min(w.clamp);
            self.update_alpha(v);
        }
    }

    fn on_state(&mut self, v: &View, _w: &mut Window, new: CaState) {
        match new {
            // Δ counts from the end of the recovery.
            CaState::Open => {
                if self.undoable.take().is_some() {
                    self.epoch.since = v.jiffies;
                }
            }
            CaState::Disorder => {}
            CaState::Cwr | CaState::Recovery | CaState::Loss => {
                self.undoable = Some(self.epoch);
                self.epoch.since = v.jiffies;
            }
        }
    }

    // What was learnt about the throughput and the RTT since the loss is forgotten with the loss.
    fn undo(&mut self, _v: &View, w: &Window) -> u32 {
        if let Some(before) = self.undoable.take() {
            self.epoch = before;
        }
        w.cwnd.max(w.prior_cwnd)
    }
}

/// Its parameters, by the names that Linux gives them.
pub const PARAMS: &[Param] = &[USE_BANDWIDTH_SWITCH, USE_RTT_SCALING];

const USE_RTT_SCALING: Param =
    Param { name: "use_rtt_scaling", about: "the increase is scaled by the RTT over 0.1 s", default: 1, min: 0, max: 1 };
const USE_BANDWIDTH_SWITCH: Param =
    Param { name: "use_bandwidth_switch", about: "a loss halves the window when the throughput has changed", default: 1, min: 0, max: 1 };

/// 1 of α and β, in 1/128.
const ONE: u32 = 128;
/// β is between 0.5 …
const BETA_MIN: u32 = ONE / 2;
/// … and 0.8, rounded down.
const BETA_MAX: u32 = ONE * 8 / 10;
/// What a loss leaves of the distance between RTTmax and RTTmin, per cent.
const RTT_MAX_KEEPS_PERCENT: u32 = 95;
/// A sample that is further above RTTmax than this is ignored, µs.
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
