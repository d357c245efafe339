//! BBR's controls: pacing rate and window from the model.
//!
//! **What it is.** The rate is bandwidth × gain; the window is the bandwidth-delay product × gain with room for bursts and
//! ACK aggregation, and packet conservation in the first round of recovery.
//! **Source.** draft-cardwell-iccrg-bbr-congestion-control-00 §4.2; docs/models/controls/bbr.md.
//! **How it differs, what it does not model.** See the header of `bbr/mod.rs`.

use super::bandwidth::{bdp, bytes_per_sec, first_rate, Bw, BW_SCALE, UNIT};
use super::model::HIGH_GAIN;
use super::{Bbr, Mode, MIN_CWND};
use crate::cc::{RateSample, View, Window, INIT_CWND};
use tcpscape_base::CaState;

/// What is remembered of recoveries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recovery {
    /// The state at the last ACK.
    pub state: CaState,
    /// Packets are conserved: the first round trip.
    pub conserving: bool,
    /// The window before recovery or PROBE_RTT.
    pub cwnd: u32,
}

impl Default for Recovery {
    fn default() -> Recovery {
        Recovery { state: CaState::Open, conserving: false, cwnd: 0 }
    }
}

impl Bbr {
    /// Room for bursts on both hosts, an even number, and two more while probing (draft §4.2.3.2; docs/models/controls/bbr.md).
    pub(super) fn with_budget(&self, v: &View, w: &Window, cwnd: u32) -> u32 {
        let even = cwnd.saturating_add(3 * burst_goal(v, w)).saturating_add(1) & !1;
        even.saturating_add(if matches!(self.mode, Mode::ProbeBw { phase: 0, .. }) { 2 } else { 0 })
    }

    pub(super) fn target_inflight(&self, v: &View, w: &Window, bw: Bw, gain: u32) -> u32 {
        self.with_budget(v, w, bdp(bw, self.min_rtt.rtt, gain))
    }

    /// Packets that will be in the network when the next may depart.
    pub(super) fn inflight_at_departure(&self, v: &View, w: &Window, inflight: u32) -> u32 {
        let wait_us = v.pacing_next_ns.saturating_sub(v.now.0) / 1_000;
        let leave = (u64::from(self.bw()).wrapping_mul(wait_us) >> BW_SCALE) as u32;
        let next = if self.pacing_gain > UNIT { burst_goal(v, w) } else { 0 };
        inflight.saturating_add(next).saturating_sub(leave)
    }

    /// Window for what ACK aggregation holds back, at most 100 ms of bandwidth (docs/models/controls/bbr.md).
    pub(super) fn aggregation_cwnd(&self) -> u32 {
        if !self.full.reached {
            return 0;
        }
        let cap = (u64::from(self.bw()) * AGG_MAX_US) >> BW_SCALE;
        self.aggregation.excess().min(cap as u32)
    }

    /// The high gain's rate for the present window and RTT, 1 ms if there is none yet (draft §4.2.1).
    pub(super) fn first_rate(&mut self, v: &View, w: &mut Window) {
        self.has_seen_rtt |= v.srtt_us > 0;
        w.pacing_rate = first_rate(v, w, HIGH_GAIN);
    }

    /// The rate follows the bandwidth; until the pipe is full it does not fall (draft §4.2.1).
    pub(super) fn set_rate(&mut self, v: &View, w: &mut Window, gain: u32) {
        if !self.has_seen_rtt && v.srtt_us > 0 {
            self.first_rate(v, w);
        }
        let rate = bytes_per_sec(v.mss, self.bw(), gain);
        // A bandwidth of 0 is none known, and a rate of 0 would not be paced.
        if rate > 0 && (self.full.reached || rate > w.pacing_rate) {
            w.pacing_rate = rate;
        }
    }

    /// The window (draft §4.2.3.6).
    pub(super) fn set_cwnd(&mut self, v: &View, w: &mut Window, rs: &RateSample) {
        let cwnd = if rs.acked_sacked > 0 { self.towards_target(v, w, rs) } else { w.cwnd };
        let most = if matches!(self.mode, Mode::ProbeRtt { .. }) { w.clamp.min(MIN_CWND) } else { w.clamp };
        w.cwnd = cwnd.min(most);
    }

    /// By what was acknowledged towards the target, unless packets are conserved. Until the pipe is full the target holds nothing back.
    fn towards_target(&mut self, v: &View, w: &Window, rs: &RateSample) -> u32 {
        let cwnd = self.recover_or_restore(v, w.cwnd, rs);
        if self.recovery.conserving {
            return cwnd;
        }
        let target = bdp(self.bw(), self.min_rtt.rtt, self.cwnd_gain).saturating_add(self.aggregation_cwnd());
        let target = self.with_budget(v, w, target);
        let grown = cwnd.saturating_add(rs.acked_sacked);
        let cwnd = match self.full.reached {
            true => grown.min(target),
            false if cwnd < target || v.counts.delivered < INIT_CWND => grown,
            false => cwnd,
        };
        cwnd.max(MIN_CWND)
    }

    /// First round of recovery: one packet out for each delivered. At its end: the window before it (draft §4.2.3.4).
    pub(super) fn recover_or_restore(&mut self, v: &View, cwnd: u32, rs: &RateSample) -> u32 {
        let conserved = v.in_flight.saturating_add(rs.acked_sacked);
        let without_lost = cwnd.saturating_sub(rs.losses).max(1);
        let r = &mut self.recovery;
        let before = std::mem::replace(&mut r.state, v.ca_state);
        if v.ca_state == CaState::Recovery && before != CaState::Recovery {
            r.conserving = true;
            self.rounds.end = v.counts.delivered;
            return conserved;
        }
        if before >= CaState::Recovery && v.ca_state < CaState::Recovery {
            r.conserving = false;
            return without_lost.max(r.cwnd);
        }
        if r.conserving {
            without_lost.max(conserved)
        } else {
            without_lost
        }
    }

    /// Remembers a window worth returning to (draft §4.2.3.4).
    pub(super) fn save_cwnd(&mut self, w: &Window) {
        let cut = self.recovery.state >= CaState::Recovery || matches!(self.mode, Mode::ProbeRtt { .. });
        self.recovery.cwnd = if cut { self.recovery.cwnd.max(w.cwnd) } else { w.cwnd };
    }
}

/// Segments in 1/1024 s of the pacing rate, 1 or 2 at least, one 64-KiB burst at most (draft §4.2.2).
pub(super) fn burst_goal(v: &View, w: &Window) -> u32 {
    let bytes = (w.pacing_rate / BURSTS_PER_SECOND).min(MAX_BURST) as u32;
    (bytes / v.mss.max(1)).max(least_burst(w)).min(MOST_SEGMENTS)
}

/// Segments that a burst may hold at least: one at low rates (draft §4.2.2).
pub(super) fn least_burst(w: &Window) -> u32 {
    if w.pacing_rate < SMALL_BURST_RATE {
        1
    } else {
        2
    }
}

/// Below this rate a burst is one segment: 1.2 Mbit/s, bytes per second.
const SMALL_BURST_RATE: u64 = 150_000;
/// A burst is what the rate sends in 1/1024 s, 127 segments at most.
const BURSTS_PER_SECOND: u64 = 1_024;
const MOST_SEGMENTS: u32 = 127;
/// Largest burst, bytes: 64 KiB less room for headers.
const MAX_BURST: u64 = 65_536 - 1 - 320;
/// Longest aggregation that is compensated, µs.
const AGG_MAX_US: u64 = 100_000;
