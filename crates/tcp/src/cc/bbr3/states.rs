//! The states of BBR version 3 and how it moves through them.
//!
//! **What it is.** STARTUP → DRAIN → PROBE_BW (DOWN → CRUISE → REFILL → UP → DOWN …) ⇄ PROBE_RTT, judged on every ACK.
//! **Source.** draft-ietf-ccwg-bbr-06 §5.3. **How it differs, what it does not model.** See the header of `bbr3/mod.rs`.

use super::super::bbr::{bdp, UNIT};
use super::model::Sample;
use super::{Bbr3, Undone};
use crate::cc::{View, Window};
use tcpscape_base::CaState;

/// What BBR is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Doubling the rate each round trip until the pipe is full.
    Startup,
    /// Draining the queue that STARTUP made; the round trip in which it began.
    Drain { since: u32 },
    /// Sending a little slower than the bandwidth.
    Down,
    /// Sending at the bandwidth.
    Cruise,
    /// Sending at the bandwidth without short-term bounds, for a round trip.
    Refill,
    /// Sending faster than the bandwidth, to see whether there is more.
    Up,
    /// Half the bandwidth-delay product in flight, to see the path's RTT without a queue: until when, once there is so little
    /// (µs), and whether a round trip has passed.
    ProbeRtt { until: Option<u64>, round_done: bool },
}

impl State {
    pub fn is_probe_bw(self) -> bool {
        matches!(self, State::Down | State::Cruise | State::Refill | State::Up)
    }
    pub fn is_probe_rtt(self) -> bool {
        matches!(self, State::ProbeRtt { .. })
    }
    /// Whether it looks for more bandwidth: losses do not lower the short-term bounds then (IsProbingBW).
    pub fn is_probing(self) -> bool {
        matches!(self, State::Startup | State::Refill | State::Up)
    }
    /// As the draft writes it, without `PROBE_BW_`.
    pub fn name(self) -> &'static str {
        match self {
            State::Startup => "STARTUP",
            State::Drain { .. } => "DRAIN",
            State::Down => "DOWN",
            State::Cruise => "CRUISE",
            State::Refill => "REFILL",
            State::Up => "UP",
            State::ProbeRtt { .. } => "PROBE_RTT",
        }
    }
}

/// What the ACKs tell about the last probe (`BBR.ack_phase`, §2.14).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Acks {
    #[default]
    Nothing,
    Refilling,
    Starting,
    Feedback,
    Stopping,
}

/// Probing for bandwidth.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probe {
    pub acks: Acks,
    /// What is lost was sent by a probe that has not been answered yet (`BBR.is_bw_probe_sample`).
    pub is_sample: bool,
    /// The last probe lost too much (`BBR.prev_probe_too_high`).
    pub too_high: bool,
    /// The last probe stopped at the long-term volume (`BBR.prev_probe_precautionary`).
    pub precautionary: bool,
    /// Packets to acknowledge for one packet of long-term volume, packets acknowledged towards it, round trips of growth.
    per_packet: u32,
    acked: u32,
    up_rounds: u32,
    /// When the cycle began, and how long it may last before the next probe, µs.
    since: u64,
    wait: u64,
}

impl Bbr3 {
    /// STARTUP → DRAIN → PROBE_BW (§5.3.1.1 CheckStartupDone, §5.3.2 CheckDrainDone).
    pub(super) fn leave_startup_or_drain(&mut self, v: &View, w: &Window, rs: &Sample) {
        if self.state == State::Startup {
            self.check_startup_loss(v, rs);
            if self.full.reached {
                self.state = State::Drain { since: self.rounds.count };
            }
        }
        if let State::Drain { since } = self.state {
            let long = self.rounds.count.wrapping_sub(since) > DRAIN_ROUNDS;
            if long || v.in_flight <= self.inflight(v, w, self.bw, UNIT) {
                self.start_down(v);
            }
        }
    }

    // §5.3.1.3: in recovery for a round trip, in which six separate ranges and more than 2 % were lost.
    fn check_startup_loss(&mut self, v: &View, rs: &Sample) {
        let lost = v.ca_state == CaState::Recovery && self.latest.ranges >= STARTUP_LOST_RANGES && rs.too_much_lost();
        if self.latest.start && lost && !self.full.reached {
            self.undo.state = Some(Undone::Startup);
            self.startup_too_high();
        }
    }

    /// The pipe overflows: what was delivered in the last round trip is safe (§5.3.1.3).
    pub(super) fn startup_too_high(&mut self) {
        self.full.reached = true;
        self.long.inflight = bdp(self.bw, self.min_rtt.rtt, UNIT).max(self.latest.inflight);
    }

    /// The cycle of PROBE_BW (§5.3.3.9, UpdateProbeBWCyclePhase).
    pub(super) fn update_probe_bw(&mut self, v: &View, w: &Window, rs: &Sample) {
        if !self.full.reached || self.adapt_long_term(v, w, rs) {
            return;
        }
        match self.state {
            State::Down | State::Cruise if self.time_to_probe(v, w) => self.start_refill(v),
            State::Down if self.time_to_cruise(v, w) => self.state = State::Cruise,
            State::Refill if self.rounds.start => {
                self.probe.is_sample = true;
                self.start_up(v, w, rs);
            }
            State::Up => self.leave_up(v, w, rs),
            _ => {}
        }
    }

    /// Follows what probes show; whether the state has been decided (§5.3.3.9, AdaptLongTermModel).
    fn adapt_long_term(&mut self, v: &View, w: &Window, rs: &Sample) -> bool {
        if self.probe.acks == Acks::Starting && self.rounds.start {
            self.probe.acks = Acks::Feedback;
        }
        if self.probe.acks == Acks::Stopping && self.rounds.start {
            self.probe.is_sample = false;
            self.probe.acks = Acks::Nothing;
            if self.state.is_probe_bw() {
                if !rs.is_app_limited {
                    self.long.next_cycle();
                }
                // A careful probe went well: once more, without stopping.
                if self.probe.precautionary && !self.probe.too_high {
                    self.start_refill(v);
                    return true;
                }
            }
        }
        if !rs.too_much_lost() && self.long.inflight != u32::MAX {
            self.long.inflight = self.long.inflight.max(rs.tx_in_flight);
            if self.state == State::Up {
                self.raise_long_term(v, w, rs);
            }
        }
        false
    }

    // §5.3.3.9, ProbeInflightLongtermUpward: by 1, 2, 4, … packets a round trip, while the window is what bounds the flow.
    fn raise_long_term(&mut self, v: &View, w: &Window, rs: &Sample) {
        if !v.is_cwnd_limited || w.cwnd < self.long.inflight {
            return;
        }
        let p = &mut self.probe;
        p.acked = p.acked.saturating_add(rs.acked);
        if p.acked >= p.per_packet {
            let delta = p.acked / p.per_packet;
            p.acked -= delta * p.per_packet;
            self.long.inflight = self.long.inflight.saturating_add(delta).min(u32::MAX - 1);
        }
        if self.rounds.start {
            p.steeper(w);
        }
    }

    // §5.3.3.8.3: 2 to 3 s have passed, or as many round trips as Reno would need to regain the same window.
    fn time_to_probe(&self, v: &View, w: &Window) -> bool {
        let reno_rounds = self.target_inflight(w).min(RENO_ROUNDS);
        v.now.micros() > self.probe.since + self.probe.wait || self.rounds.since_probe >= reno_rounds
    }

    fn time_to_cruise(&self, v: &View, w: &Window) -> bool {
        v.in_flight <= self.headroom() && v.in_flight <= self.inflight(v, w, self.long.max_bw(), UNIT)
    }

    // §5.3.3.7
    fn leave_up(&mut self, v: &View, w: &Window, rs: &Sample) {
        if self.probe.too_high && v.in_flight >= self.long.inflight {
            // The last probe lost too much here: look at what this one brings before going on.
            self.probe.precautionary = true;
        } else if v.is_cwnd_limited && w.cwnd >= self.long.inflight {
            // The bound is the long-term volume, not the bandwidth.
            return self.full.reset(rs.bw);
        } else if !self.full.now {
            return;
        }
        self.probe.too_high = false;
        self.start_down(v);
    }

    pub(super) fn start_down(&mut self, v: &View) {
        self.latest.forget();
        self.probe.per_packet = u32::MAX;
        self.rounds.since_probe = self.waits.below(2);
        self.probe.wait = PROBE_WAIT_US + u64::from(self.waits.below(PROBE_WAIT_SPREAD_US));
        self.probe.since = v.now.micros();
        self.probe.acks = Acks::Stopping;
        self.rounds.restart(v);
        self.state = State::Down;
    }

    pub(super) fn start_refill(&mut self, v: &View) {
        self.short = Default::default();
        (self.probe.up_rounds, self.probe.acked) = (0, 0);
        self.probe.precautionary = false;
        self.probe.acks = Acks::Refilling;
        self.rounds.restart(v);
        self.state = State::Refill;
    }

    fn start_up(&mut self, v: &View, w: &Window, rs: &Sample) {
        self.probe.acks = Acks::Starting;
        self.rounds.restart(v);
        self.full.reset(rs.bw);
        self.state = State::Up;
        self.probe.steeper(w);
    }

    /// PROBE_RTT: when the smallest RTT has not been seen for 5 s, unless the flow was idle (§5.3.4.3, CheckProbeRTT).
    pub(super) fn update_probe_rtt(&mut self, v: &View, w: &mut Window, rs: &Sample) {
        if self.min_rtt.expired && !self.idle_restart && !self.state.is_probe_rtt() {
            // In this order: the state keeps a larger window that was saved before.
            self.state = State::ProbeRtt { until: None, round_done: false };
            self.save_cwnd(v, w);
            self.probe.acks = Acks::Stopping;
            self.rounds.restart(v);
            self.min_rtt.slowed.begin(v);
        }
        if self.state.is_probe_rtt() {
            self.stay_in_probe_rtt(v, w);
        }
        self.idle_restart &= rs.delivered == 0;
    }

    fn stay_in_probe_rtt(&mut self, v: &View, w: &mut Window) {
        self.min_rtt.slowed.extend(v);
        let few = v.in_flight <= self.probe_rtt_cwnd();
        match &mut self.state {
            State::ProbeRtt { until: until @ None, .. } if few => {
                *until = Some(v.now.micros() + PROBE_RTT_US);
                self.rounds.restart(v);
            }
            State::ProbeRtt { until: Some(_), round_done } => {
                *round_done |= self.rounds.start;
                if *round_done {
                    self.leave_probe_rtt(v, w);
                }
            }
            _ => {}
        }
    }

    /// Leaves PROBE_RTT if its time is over (§5.3.4.3 CheckProbeRTTDone, §5.3.4.4).
    pub(super) fn leave_probe_rtt(&mut self, v: &View, w: &mut Window) {
        let State::ProbeRtt { until: Some(until), .. } = self.state else { return };
        if v.now.micros() <= until {
            return;
        }
        self.min_rtt.probed(v);
        w.cwnd = w.cwnd.max(self.saved_cwnd).min(w.clamp);
        self.short = Default::default();
        if self.full.reached {
            self.start_down(v);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }
}

impl Probe {
    /// How long a cycle may last before the next probe, µs.
    pub fn wait(&self) -> u64 {
        self.wait
    }

    // §5.3.3.9, RaiseInflightLongtermSlope.
    fn steeper(&mut self, w: &Window) {
        let growth = 1u32 << self.up_rounds;
        self.up_rounds = (self.up_rounds + 1).min(30);
        self.per_packet = (w.cwnd / growth).max(1);
    }
}

/// DRAIN ends after so many round trips at the latest (§5.3.2).
const DRAIN_ROUNDS: u32 = 3;
/// Separate ranges lost in a round trip that end STARTUP (`BBRStartupFullLossCnt`).
const STARTUP_LOST_RANGES: u32 = 6;
/// Round trips between probes, at most: Reno's time scale at 62 packets (§5.3.3.8.2).
const RENO_ROUNDS: u32 = 63;
/// Time between probes, µs: 2 s and up to 1 s more (§5.3.3.8.2).
const PROBE_WAIT_US: u64 = 2_000_000;
const PROBE_WAIT_SPREAD_US: u32 = 1_000_000;
/// How long PROBE_RTT keeps little in flight, µs (`BBR.ProbeRTTDuration` = 200 ms).
const PROBE_RTT_US: u64 = 200_000;
