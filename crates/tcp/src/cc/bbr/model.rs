//! BBR's model of the path and the modes that it moves through, updated by each ACK.
//!
//! **What it is.** Rounds, bandwidth, whether the pipe is full, minimum RTT; STARTUP → DRAIN → PROBE_BW ⇄ PROBE_RTT.
//! **Source.** draft-cardwell-iccrg-bbr-congestion-control-00 §4.1, §4.3.
//! **How it differs, what it does not model.** See the header of `bbr/mod.rs`.

use super::bandwidth::{bandwidth, Bw, UNIT};
use super::estimators::Verdict;
use super::{Bbr, Mode, MIN_CWND};
use crate::cc::{RateSample, View, Window};
use tcpscape_base::wire::ahead;

/// Round trips, counted by packets (draft §4.1.1.3): one ends when a packet is acknowledged that was sent after so many deliveries.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    pub count: u32,
    pub end: u32,
    /// This ACK begins one.
    pub start: bool,
}

impl Rounds {
    /// Takes an ACK of a packet that was sent after `prior_delivered` deliveries, if its sample `is_valid`.
    fn update(&mut self, v: &View, prior_delivered: u32, is_valid: bool) {
        self.start = is_valid && ahead(self.end, prior_delivered) >= 0;
        if self.start {
            self.end = v.counts.delivered;
            self.count = self.count.wrapping_add(1);
        }
    }
}

/// Whether the pipe is full: the bandwidth has not grown by a quarter in three rounds (draft §4.3.2.2).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    pub reached: bool,
    /// The bandwidth to beat by a quarter.
    pub bw: Bw,
    /// Rounds in which it was not.
    pub rounds: u32,
}

impl FullPipe {
    /// Takes the bandwidth of an ACK; only those that begin a round trip count, and not the application's.
    pub(super) fn judge(&mut self, counts: bool, bw: Bw) {
        if self.reached || !counts {
            return;
        }
        if u64::from(bw) >= (u64::from(self.bw) * FULL_BW_GROWTH) >> 8 {
            (self.bw, self.rounds) = (bw, 0);
        } else {
            self.rounds += 1;
            self.reached = self.rounds >= FULL_BW_ROUNDS;
        }
    }
}

/// The minimum RTT of 10 s, µs, and the jiffy in which it was seen (draft §4.1.2).
#[derive(Clone, Copy, Debug)]
pub(super) struct MinRtt {
    pub rtt: u32,
    pub seen: u32,
}

impl MinRtt {
    fn has_expired(&self, v: &View) -> bool {
        ahead(v.jiffies, self.seen.wrapping_add(MIN_RTT_SECONDS.wrapping_mul(v.hz))) < 0
    }

    /// A smaller RTT, or any that is not of a delayed ACK where the minimum has expired.
    fn take(&mut self, v: &View, rs: &RateSample, expired: bool) {
        if rs.rtt_us >= 0 && (rs.rtt_us < i64::from(self.rtt) || expired && !rs.is_ack_delayed) {
            *self = MinRtt { rtt: rs.rtt_us as u32, seen: v.jiffies };
        }
    }
}

impl Bbr {
    /// Rounds and bandwidth (draft §4.1.1.3, §4.1.1).
    pub(super) fn update_bw(&mut self, v: &View, rs: &RateSample) {
        let is_valid = rs.delivered >= 0 && rs.interval_us > 0;
        self.rounds.update(v, rs.prior_delivered, is_valid);
        if !is_valid {
            return;
        }
        // Packets are conserved for a round trip.
        self.recovery.conserving &= !self.rounds.start;
        self.sample_long_term(v, rs);
        let bw = bandwidth(rs);
        // The application's rate tells nothing about the path, unless it is higher than what is known.
        if !rs.is_app_limited || bw >= u64::from(self.max_bw.get()) {
            self.max_bw.update(BW_ROUNDS, self.rounds.count, bw as Bw);
        }
    }

    pub(super) fn sample_long_term(&mut self, v: &View, rs: &RateSample) {
        let probing = matches!(self.mode, Mode::ProbeBw { .. });
        match self.long_term.update(v, rs, self.rounds.start, probing) {
            Verdict::Same => {}
            Verdict::Policed => self.pacing_gain = UNIT,
            Verdict::ProbeAgain => self.probe_bw(v),
        }
    }

    /// Next phase of PROBE_BW, when it is time (draft §4.3.4.3).
    pub(super) fn update_phase(&mut self, v: &View, w: &Window, rs: &RateSample) {
        let Mode::ProbeBw { phase, since } = self.mode else { return };
        let lasted = v.counts.delivered_us.saturating_sub(since) as u32 > self.min_rtt.rtt;
        let over = if self.pacing_gain == UNIT {
            lasted
        } else {
            let inflight = self.inflight_at_departure(v, w, rs.prior_in_flight);
            let target = |gain| self.target_inflight(v, w, self.max_bw.get(), gain);
            if self.pacing_gain > UNIT {
                lasted && (rs.losses > 0 || inflight >= target(self.pacing_gain))
            } else {
                lasted || inflight <= target(UNIT)
            }
        };
        if over {
            self.mode = Mode::ProbeBw { phase: (phase + 1) % CYCLE.len(), since: v.counts.delivered_us };
        }
    }

    /// STARTUP → DRAIN → PROBE_BW (draft §4.3.3).
    pub(super) fn update_drain(&mut self, v: &View, w: &mut Window) {
        if self.mode == Mode::Startup && self.full.reached {
            self.mode = Mode::Drain;
            w.ssthresh = self.target_inflight(v, w, self.max_bw.get(), UNIT);
        }
        if self.mode == Mode::Drain && self.inflight_at_departure(v, w, v.in_flight) <= self.target_inflight(v, w, self.max_bw.get(), UNIT)
        {
            self.probe_bw(v);
        }
    }

    /// The minimum RTT, and PROBE_RTT when it has not been seen for 10 s (draft §4.1.2, §4.3.5).
    pub(super) fn update_min_rtt(&mut self, v: &View, w: &mut Window, rs: &RateSample) {
        let expired = self.min_rtt.has_expired(v);
        self.min_rtt.take(v, rs, expired);
        if expired && !self.idle_restart && !matches!(self.mode, Mode::ProbeRtt { .. }) {
            // In this order: the mode keeps a larger window that was saved before.
            self.mode = Mode::ProbeRtt { until: None, round_done: false };
            self.save_cwnd(w);
            self.slowed.begin(v);
        }
        if matches!(self.mode, Mode::ProbeRtt { .. }) {
            self.stay_in_probe_rtt(v, w);
        }
        self.idle_restart &= rs.delivered <= 0;
    }

    /// At least 200 ms and one round trip with no more than four packets in flight.
    pub(super) fn stay_in_probe_rtt(&mut self, v: &View, w: &mut Window) {
        self.slowed.extend(v);
        match &mut self.mode {
            Mode::ProbeRtt { until: until @ None, round_done } if v.in_flight <= MIN_CWND => {
                *until = Some(v.jiffies.wrapping_add((PROBE_RTT_MS * v.hz).div_ceil(1_000)));
                *round_done = false;
                self.rounds.end = v.counts.delivered;
            }
            Mode::ProbeRtt { until: Some(_), round_done } => {
                *round_done |= self.rounds.start;
                if *round_done {
                    self.leave_probe_rtt(v, w);
                }
            }
            _ => {}
        }
    }

    /// Leaves PROBE_RTT if its time is over (draft §4.3.5).
    pub(super) fn leave_probe_rtt(&mut self, v: &View, w: &mut Window) {
        let Mode::ProbeRtt { until: Some(until), .. } = self.mode else { return };
        if ahead(v.jiffies, until) >= 0 {
            return;
        }
        self.min_rtt.seen = v.jiffies;
        w.cwnd = w.cwnd.max(self.recovery.cwnd);
        if self.full.reached {
            self.probe_bw(v);
        } else {
            self.mode = Mode::Startup;
        }
    }

    /// PROBE_BW in a random phase, but never the draining one (draft §4.3.4.2).
    pub(super) fn probe_bw(&mut self, v: &View) {
        let phase = (CYCLE.len() - self.phases.below(CYCLE.len() as u32 - 1) as usize) % CYCLE.len();
        self.mode = Mode::ProbeBw { phase, since: v.counts.delivered_us };
    }

    pub(super) fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw { .. } if self.long_term.bw().is_some() => (UNIT, CWND_GAIN),
            Mode::ProbeBw { phase, .. } => (CYCLE[phase], CWND_GAIN),
            Mode::ProbeRtt { .. } => (UNIT, UNIT),
        };
    }
}

/// 2/ln 2 = 2.885: the least gain that doubles the rate each round trip (draft §4.3.2).
pub(super) const HIGH_GAIN: u32 = UNIT * 2885 / 1000 + 1;
/// Its inverse.
const DRAIN_GAIN: u32 = UNIT * 1000 / 2885;
/// Window in bandwidth-delay products.
const CWND_GAIN: u32 = UNIT * 2;
/// PROBE_BW's gains: probe, drain, cruise.
const CYCLE: [u32; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// Window of the bandwidth filter, round trips (draft §4.1.1.2).
const BW_ROUNDS: u32 = 10;
/// Window of the minimum RTT, s (draft §4.1.2.2).
const MIN_RTT_SECONDS: u32 = 10;
/// PROBE_RTT's length, ms (draft §4.3.5).
const PROBE_RTT_MS: u32 = 200;
/// The pipe is not full while the bandwidth grows by this much, 1/256: 1.25 (draft §4.3.2.2).
const FULL_BW_GROWTH: u64 = 320;
/// Rounds without such growth (draft §4.3.2.2).
const FULL_BW_ROUNDS: u32 = 3;
