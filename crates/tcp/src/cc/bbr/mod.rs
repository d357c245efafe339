//! BBR version 1: paces at the measured bandwidth and keeps about two bandwidth-delay products in flight.
//!
//! **What it is.** A model of the path, maximum bandwidth and minimum RTT, and four modes that probe one or the other.
//! **Source.** draft-cardwell-iccrg-bbr-congestion-control-00; Cardwell et al., "BBR: Congestion-based congestion control",
//! ACM Queue 14(5), 2016.
//! **How it differs.** From the draft, as Linux is seen to do (docs/models/controls/bbr.md): packets instead of bytes, 1 % pacing margin, ACK aggregation, policer
//! detection. From Linux: packets sent during PROBE_RTT are recognised here by `prior_delivered`, where the kernel marks the
//! connection application-limited; which random phase PROBE_BW starts with comes from the trial's seed.
//! **What it does not model.** `SO_MAX_PACING_RATE`; BBR versions 2 and 3.

use super::{AckSample, CaEvent, CongestionController, Observation, RateSample, View, Window, INFINITE_SSTHRESH};
use crate::windowed::WindowedMax;
use tcpscape_base::{CaState, Stream};

mod bandwidth;
mod control;
mod estimators;
mod model;
pub(super) use bandwidth::{bandwidth, bdp, bytes_per_sec, first_rate, Bw, BW_SCALE, UNIT};
use control::Recovery;
pub(super) use estimators::Slowed;
use estimators::{Aggregation, LongTerm};
use model::{FullPipe, MinRtt, Rounds};

/// What BBR is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Doubling the rate each round trip until the bandwidth stops growing.
    Startup,
    /// Draining the queue that STARTUP made.
    Drain,
    /// Cycling the gain through eight phases; since when, µs.
    ProbeBw { phase: usize, since: u64 },
    /// Four packets in flight, to see the path's RTT without a queue: until when, once there are so few (jiffies), and
    /// whether a round trip has passed.
    ProbeRtt { until: Option<u32>, round_done: bool },
}

/// BBR.
#[derive(Clone, Debug)]
pub struct Bbr {
    mode: Mode,
    /// Gains in force, 1/256; brought up to date after the mode, at the end of each ACK.
    pacing_gain: u32,
    cwnd_gain: u32,
    /// Maximum bandwidth of ten round trips.
    max_bw: WindowedMax,
    long_term: LongTerm,
    aggregation: Aggregation,
    min_rtt: MinRtt,
    has_seen_rtt: bool,
    rounds: Rounds,
    full: FullPipe,
    recovery: Recovery,
    idle_restart: bool,
    /// The packets sent at PROBE_RTT's low rate.
    slowed: Slowed,
    phases: Stream,
}

impl Bbr {
    /// A new one; `seed` decides with which phase it starts to probe.
    pub fn new(seed: u64) -> Bbr {
        Bbr {
            mode: Mode::Startup,
            pacing_gain: 0,
            cwnd_gain: 0,
            max_bw: WindowedMax::default(),
            long_term: LongTerm::default(),
            aggregation: Aggregation::default(),
            min_rtt: MinRtt { rtt: u32::MAX, seen: 0 },
            has_seen_rtt: false,
            rounds: Rounds::default(),
            full: FullPipe::default(),
            recovery: Recovery::default(),
            idle_restart: false,
            slowed: Slowed::default(),
            phases: Stream::new(seed, "bbr"),
        }
    }

    /// The bandwidth to work with: the policer's if there is one.
    fn bw(&self) -> Bw {
        self.long_term.bw().unwrap_or_else(|| self.max_bw.get())
    }
}

impl CongestionController for Bbr {
    fn init(&mut self, v: &View, w: &mut Window) {
        *self = Bbr { phases: self.phases.clone(), ..Bbr::new(0) };
        self.rounds.end = v.counts.delivered;
        self.min_rtt = MinRtt { rtt: v.min_rtt_us, seen: v.jiffies };
        self.long_term.reset();
        self.aggregation.restart(v.now.micros());
        w.ssthresh = INFINITE_SSTHRESH;
        w.paced = true;
        self.first_rate(v, w);
    }

    fn ssthresh(&mut self, _v: &View, w: &Window) -> u32 {
        self.save_cwnd(w);
        w.ssthresh
    }

    // The draft's steps for an ACK: the model and the state, then the controls.
    fn on_ack(&mut self, v: &View, w: &mut Window, s: &AckSample) {
        let mut rs = s.rate;
        rs.is_app_limited |= self.slowed.covers(rs.prior_delivered);
        self.update_bw(v, &rs);
        self.aggregation.update(v, &rs, self.rounds.start, self.bw(), w.cwnd);
        self.update_phase(v, w, &rs);
        self.full.judge(self.rounds.start && !rs.is_app_limited, self.max_bw.get());
        self.update_drain(v, w);
        self.update_min_rtt(v, w, &rs);
        self.update_gains();
        self.set_rate(v, w, self.pacing_gain);
        self.set_cwnd(v, w, &rs);
    }

    // A timeout ends a round.
    fn on_state(&mut self, v: &View, _w: &mut Window, new: CaState) {
        if new == CaState::Loss {
            self.recovery.state = CaState::Loss;
            self.full.bw = 0;
            self.rounds.start = true;
            self.sample_long_term(v, &RateSample { losses: 1, ..RateSample::default() });
        }
    }

    // Restart from idle: at the bandwidth, not faster.
    fn on_event(&mut self, v: &View, w: &mut Window, e: CaEvent) {
        if e != CaEvent::TxStart || v.counts.app_limited == 0 && !self.slowed.lasts(v) {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(v.now.micros());
        match self.mode {
            Mode::ProbeBw { .. } => self.set_rate(v, w, UNIT),
            Mode::ProbeRtt { .. } => self.leave_probe_rtt(v, w),
            _ => {}
        }
    }

    fn undo(&mut self, _v: &View, w: &Window) -> u32 {
        (self.full.bw, self.full.rounds) = (0, 0);
        self.long_term.reset();
        w.cwnd
    }

    fn owns_window(&self) -> bool {
        true
    }

    // Packets, packets/s, s; named as version 3 names them.
    fn observe(&self, v: &View, w: &Window, out: &mut Observation) {
        let per_second = 1e6 / f64::from(1u32 << BW_SCALE);
        let name = match self.mode {
            Mode::Startup => STATES[0],
            Mode::Drain => STATES[1],
            Mode::ProbeBw { .. } => STATES[2],
            Mode::ProbeRtt { .. } => STATES[3],
        };
        out.state(name, STATES);
        out.count("pacing_gain", f64::from(self.pacing_gain) / f64::from(UNIT));
        out.count("cwnd_gain", f64::from(self.cwnd_gain) / f64::from(UNIT));
        out.count("round", self.rounds.count);
        out.count("full_bw_count", self.full.rounds);
        out.count("full_bw_reached", u8::from(self.full.reached));
        out.number("full_bw", f64::from(self.full.bw) * per_second);
        out.count("idle_restart", u8::from(self.idle_restart));
        out.number("max_bw", f64::from(self.max_bw.get()) * per_second);
        out.number("bw", f64::from(self.bw()) * per_second);
        out.bound("min_rtt", self.min_rtt.rtt, 1e-6);
        out.number("extra_acked", self.aggregation.excess());
        out.number("bdp", self.target_inflight(v, w, self.bw(), UNIT));
    }

    fn min_tso_segs(&self, w: &Window) -> u32 {
        control::least_burst(w)
    }

    fn sndbuf_expand(&self) -> u32 {
        3
    }
}

/// Its states (draft §3.4).
const STATES: &[&str] = &["STARTUP", "DRAIN", "PROBE_BW", "PROBE_RTT"];
/// Smallest window, packets (draft §4.2.3.3).
pub(super) const MIN_CWND: u32 = 4;

#[cfg(test)]
mod tests;
