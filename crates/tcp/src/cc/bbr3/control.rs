//! The controls of BBR version 3: pacing rate and window from the model.
//!
//! **What it is.** The rate is bandwidth × gain, less 1 %; the window is bandwidth-delay product × gain with room for bursts and ACK
//! aggregation, below the long-term and short-term volumes.
//! **Source.** draft-ietf-ccwg-bbr-06 §5.6. **How it differs, what it does not model.** See the header of `bbr3/mod.rs`.

use super::super::bbr::{bdp, bytes_per_sec, Bw, MIN_CWND, UNIT};
use super::states::State;
use super::Bbr3;
use crate::cc::{View, Window, INIT_CWND};

impl Bbr3 {
    /// Pacing gain and window gain, 1/256 (§5.6.1).
    pub(super) fn gains(&self) -> (u32, u32) {
        match self.state {
            State::Startup => (STARTUP_GAIN, CWND_GAIN),
            State::Drain { .. } => (DRAIN_GAIN, CWND_GAIN),
            State::Down => (DOWN_GAIN, CWND_GAIN),
            State::Cruise | State::Refill => (UNIT, CWND_GAIN),
            State::Up => (UP_GAIN, UP_CWND_GAIN),
            State::ProbeRtt { .. } => (UNIT, PROBE_RTT_CWND_GAIN),
        }
    }

    /// The rate follows the bandwidth; until the pipe is full it does not fall (§5.6.2).
    pub(super) fn set_rate(&mut self, v: &View, w: &mut Window, gain: u32) {
        let rate = bytes_per_sec(v.mss, self.bw, gain);
        // A bandwidth of 0 is none known, and a rate of 0 would not be paced.
        if rate > 0 && (self.full.reached || rate > w.pacing_rate) {
            w.pacing_rate = rate;
        }
    }

    /// The window: up to its target by what was acknowledged, down at once (§5.6.4.6).
    pub(super) fn set_cwnd(&mut self, v: &View, w: &mut Window, acked: u32) {
        let target = bdp(self.bw, self.min_rtt.rtt, self.gains().1).saturating_add(self.aggregation.extra());
        let target = self.with_budget(v, w, target);
        let mut cwnd = w.cwnd;
        if self.full.reached {
            cwnd = cwnd.saturating_add(acked).min(target);
        } else if cwnd < target || v.counts.delivered < INIT_CWND {
            cwnd = cwnd.saturating_add(acked);
        }
        cwnd = cwnd.max(MIN_CWND);
        if self.state.is_probe_rtt() {
            cwnd = cwnd.min(self.probe_rtt_cwnd());
        }
        w.cwnd = cwnd.min(self.cap()).min(w.clamp);
    }

    /// The bound by recent congestion (§5.6.4.7, BoundCwndForModel).
    fn cap(&self) -> u32 {
        let long = match self.state {
            State::Down | State::Refill | State::Up => self.long.inflight,
            State::Cruise | State::ProbeRtt { .. } => self.headroom(),
            State::Startup | State::Drain { .. } => u32::MAX,
        };
        long.min(self.short.inflight).max(MIN_CWND)
    }

    /// The long-term volume less what is left to others (InflightWithHeadroom).
    pub(super) fn headroom(&self) -> u32 {
        self.long.with_headroom().max(MIN_CWND)
    }

    /// PROBE_RTT's window: half a bandwidth-delay product (§5.6.4.5).
    pub(super) fn probe_rtt_cwnd(&self) -> u32 {
        bdp(self.bw, self.min_rtt.rtt, PROBE_RTT_CWND_GAIN).max(MIN_CWND)
    }

    /// What congestion has left of the bandwidth-delay product (§5.3.3.8.3, TargetInflight).
    pub(super) fn target_inflight(&self, w: &Window) -> u32 {
        bdp(self.bw, self.min_rtt.rtt, UNIT).min(w.cwnd)
    }

    /// `gain` bandwidth-delay products, with room for bursts (§5.6.4.2, Inflight).
    pub(super) fn inflight(&self, v: &View, w: &Window, bw: Bw, gain: u32) -> u32 {
        self.with_budget(v, w, bdp(bw, self.min_rtt.rtt, gain))
    }

    /// At least three bursts and four packets, and two more while probing (§5.6.4.2, QuantizationBudget; §5.5.8.1).
    fn with_budget(&self, v: &View, w: &Window, n: u32) -> u32 {
        let least = (3 * quantum(v, w)).max(MIN_CWND);
        n.max(least).saturating_add(if self.state == State::Up { 2 } else { 0 })
    }
}

/// Packets in 1 ms of the pacing rate, two at least, 64 KiB at most (§5.6.3).
fn quantum(v: &View, w: &Window) -> u32 {
    let bytes = (w.pacing_rate / 1_000).min(MAX_BURST) as u32;
    (bytes / v.mss.max(1)).max(2)
}

/// 4 ln 2 = 2.77: the least gain that doubles the rate each round trip (`BBR.StartupPacingGain`).
pub(super) const STARTUP_GAIN: u32 = UNIT * 277 / 100 + 1;
/// `BBR.DrainPacingGain` = 0.5.
const DRAIN_GAIN: u32 = UNIT / 2;
/// Pacing gain of DOWN, 0.9 (§5.3.3.1).
const DOWN_GAIN: u32 = UNIT * 9 / 10;
/// Pacing gain of UP, 1.25 (§5.3.3.5).
const UP_GAIN: u32 = UNIT * 5 / 4;
/// Window in bandwidth-delay products (`BBR.DefaultCwndGain` = 2).
const CWND_GAIN: u32 = UNIT * 2;
/// … in UP, 2.25 (§5.3.3.5).
const UP_CWND_GAIN: u32 = UNIT * 9 / 4;
/// … in PROBE_RTT (`BBR.ProbeRTTCwndGain` = 0.5).
const PROBE_RTT_CWND_GAIN: u32 = UNIT / 2;
/// Largest burst, bytes (§5.6.3).
const MAX_BURST: u64 = 65_536;
