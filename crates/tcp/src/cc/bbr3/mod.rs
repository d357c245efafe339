//! BBR version 3: paces at the measured bandwidth, and bounds what is in flight by what the path took without much loss.
//!
//! **What it is.** A model of the path on two time scales — bandwidth, volume and RTT that probing showed to be safe, and what the
//! present losses leave of them — and states that probe: STARTUP, DRAIN, PROBE_BW (DOWN, CRUISE, REFILL, UP), PROBE_RTT.
//! **Source.** draft-ietf-ccwg-bbr-06 (2026-07-06), named below by its sections. The response to ECN, which the draft leaves open,
//! is that of the kernel patch "BBRv3" (google/bbr, branch v3) on paths below 5 ms.
//! **How it differs.** From the draft: packets instead of bytes; the state to return to after a spurious loss is saved once a recovery
//! (its text), not once a round trip of it (its pseudocode); after a timeout the short-term volume starts from the window
//! before it; a bandwidth slot without samples keeps the older one; packets sent during PROBE_RTT are recognised by
//! `prior_delivered`, where the draft marks the connection application-limited. From the kernel patch: everything in which the
//! draft has gone another way since (drain gain, full-pipe test, precautionary probing, no packet conservation).
//! **What it does not model.** Connections without SACK; pacing by the network device; QUIC's budgets; the patch's fast path.

use super::bbr::{first_rate, Bw, BW_SCALE, UNIT};
use super::{AckSample, CaEvent, CongestionController, LostPacket, Observation, Options, Param, View, Window, INFINITE_SSTHRESH};
use tcpscape_base::{CaState, Stream};

mod control;
mod ecn;
mod loss;
mod model;
mod shown;
mod states;
use ecn::Ecn;
use loss::{Undo, Undone};
use model::{Aggregation, FullPipe, LongTerm, LossRound, MinRtt, Rounds, Sample, ShortTerm};
use states::{Probe, State};

/// BBR version 3.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    state: State,
    /// The bandwidth to work with: the long-term one, bounded by the short-term one (`BBR.bw`).
    bw: Bw,
    rounds: Rounds,
    full: FullPipe,
    long: LongTerm,
    short: ShortTerm,
    latest: LossRound,
    min_rtt: MinRtt,
    aggregation: Aggregation,
    probe: Probe,
    undo: Undo,
    ecn: Ecn,
    /// The window before recovery or PROBE_RTT (`BBR.prior_cwnd`).
    saved_cwnd: u32,
    idle_restart: bool,
    waits: Stream,
}

impl Bbr3 {
    /// A new one; the seed decides how long it waits between probes.
    pub fn new(o: &Options<'_>) -> Bbr3 {
        Bbr3::with(Stream::new(o.seed, "bbr3"), Ecn::new(o.get(&ECN_MAX_RTT) as u32))
    }

    fn with(waits: Stream, ecn: Ecn) -> Bbr3 {
        Bbr3 {
            state: State::Startup,
            bw: 0,
            rounds: Rounds::default(),
            full: FullPipe::default(),
            long: LongTerm::default(),
            short: ShortTerm::default(),
            latest: LossRound::default(),
            min_rtt: MinRtt::default(),
            aggregation: Aggregation::default(),
            probe: Probe::default(),
            undo: Undo::default(),
            ecn,
            saved_cwnd: 0,
            idle_restart: false,
            waits,
        }
    }

    /// The state that it is in, as the draft names it, without `PROBE_BW_`.
    pub fn state(&self) -> &'static str {
        self.state.name()
    }

    /// The bandwidth that it works with, packets/s.
    pub fn bandwidth(&self) -> f64 {
        if self.bw == Bw::MAX {
            0.0
        } else {
            f64::from(self.bw) * 1e6 / f64::from(1 << BW_SCALE)
        }
    }

    /// What is safe to have in flight by the long-term model, packets; None before it is known.
    pub fn inflight_hi(&self) -> Option<u32> {
        (self.long.inflight != u32::MAX).then_some(self.long.inflight)
    }

    /// Remembers a window worth returning to (§5.6.4.4, SaveCwnd).
    fn save_cwnd(&mut self, v: &View, w: &Window) {
        let cut = v.ca_state >= CaState::Recovery || self.state.is_probe_rtt();
        self.saved_cwnd = if cut { self.saved_cwnd.max(w.cwnd) } else { w.cwnd };
    }
}

impl CongestionController for Bbr3 {
    // §5.2.1, §5.6.2 InitPacingRate.
    fn init(&mut self, v: &View, w: &mut Window) {
        *self = Bbr3::with(self.waits.clone(), Ecn::new(self.ecn.max_rtt));
        self.min_rtt = MinRtt::new(v);
        self.aggregation.restart(v.now.micros());
        self.ecn.restart(v);
        w.ssthresh = INFINITE_SSTHRESH;
        w.paced = true;
        w.pacing_rate = first_rate(v, w, self.gains().0);
    }

    // A loss recovery begins (§5.6.4.4). There is no threshold.
    fn ssthresh(&mut self, v: &View, w: &Window) -> u32 {
        self.save_for_undo(v, w);
        w.ssthresh
    }

    fn wants_lost(&self) -> bool {
        true
    }

    fn on_lost(&mut self, v: &View, w: &mut Window, p: &LostPacket) {
        self.packet_lost(v, w, p);
    }

    // §5.2.3
    fn on_ack(&mut self, v: &View, w: &mut Window, s: &AckSample) {
        let rs = Sample::of(s, &self.min_rtt);
        self.rounds.update(v, &rs);
        self.latest.begin(v, &rs);
        self.long.update_bw(&rs);
        self.update_ecn(v, w, &rs);
        self.adapt_to_congestion(v, w);
        self.aggregation.update(v, rs.acked, self.rounds.count, self.full.reached, self.bw, w.cwnd);
        self.full.update(self.rounds.start, &rs);
        self.leave_startup_or_drain(v, w, &rs);
        self.update_probe_bw(v, w, &rs);
        self.min_rtt.update(v, &rs);
        self.update_probe_rtt(v, w, &rs);
        self.latest.advance(&rs);
        self.bw = self.long.max_bw().min(self.short.bw);
        self.set_rate(v, w, self.gains().0);
        self.set_cwnd(v, w, rs.acked);
    }

    // §5.6.4.4: the window before the recovery comes back at its end.
    fn on_state(&mut self, v: &View, w: &mut Window, new: CaState) {
        if new < CaState::Recovery {
            self.undo.armed = false;
            if v.ca_state >= CaState::Recovery {
                w.cwnd = w.cwnd.max(self.saved_cwnd).min(w.clamp);
            }
        }
    }

    // §5.4.1: restart from idle at the bandwidth, not faster.
    fn on_event(&mut self, v: &View, w: &mut Window, e: CaEvent) {
        if e != CaEvent::TxStart || v.counts.app_limited == 0 && !self.min_rtt.slowed.lasts(v) {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(v.now.micros());
        if self.state.is_probe_bw() {
            self.set_rate(v, w, UNIT);
        } else if self.state.is_probe_rtt() {
            self.leave_probe_rtt(v, w);
        }
    }

    fn undo(&mut self, v: &View, w: &Window) -> u32 {
        self.loss_was_spurious(v);
        w.cwnd.max(self.saved_cwnd)
    }

    fn owns_window(&self) -> bool {
        true
    }

    fn observe(&self, v: &View, w: &Window, out: &mut Observation) {
        self.show(v, w, out);
    }

    fn sndbuf_expand(&self) -> u32 {
        3
    }
}

/// Its parameters.
pub(super) const PARAMS: &[Param] = &[ECN_MAX_RTT];
/// Largest RTT at which marks are answered by their share; above it they count as loss does.
const ECN_MAX_RTT: Param = Param {
    name: "ecn_max_rtt_us",
    about: "largest smallest RTT, µs, at which ECN marks are answered by their share (0: never; then they count as a loss)",
    default: 5_000,
    min: 0,
    max: 10_000_000,
};

#[cfg(test)]
mod tests;
