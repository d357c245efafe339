//! What BBR version 3 does about losses: it notes each, lowers its bounds, and takes both back when nothing was lost.
//!
//! **What it is.** While probing, the volume at which more than 2 % were lost becomes the long-term bound; otherwise each round trip
//! with a loss moves the short-term bounds to what was delivered in it, by 30 % at most.
//! **Source.** draft-ietf-ccwg-bbr-06 §5.5.10, §5.5.11. **How it differs, what it does not model.** See the header of `bbr3/mod.rs`.

use super::super::bbr::Bw;
use super::model::{Sample, ShortTerm};
use super::states::State;
use super::Bbr3;
use crate::cc::{LostPacket, View, Window};
use tcpscape_base::CaState;

/// A state that was left because of losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Undone {
    Startup,
    Up,
}

/// What to return to when a recovery turns out to have been spurious (§2.15).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// Saved for the recovery that goes on, or is about to begin.
    pub armed: bool,
    pub state: Option<Undone>,
    short: Option<ShortTerm>,
    inflight: u32,
}

impl Sample {
    /// More than 2 % of what was in flight with the sampled packet have been lost since (IsInflightTooHigh).
    pub fn too_much_lost(&self) -> bool {
        too_much(self.lost, self.tx_in_flight)
    }
}

impl Bbr3 {
    /// A packet was marked lost (§5.5.10.2, HandleLostPacket).
    pub(super) fn packet_lost(&mut self, v: &View, w: &Window, p: &LostPacket) {
        if !self.undo.armed && v.ca_state < CaState::Recovery {
            self.save_for_undo(v, w);
        }
        self.latest.note(v);
        self.latest.ranges += u32::from(p.seq != self.latest.range_end);
        self.latest.range_end = p.end;
        if self.probe.is_sample && too_much(p.lost, p.tx_in_flight) {
            // InflightAtLoss: what was in flight before the packet. Of a burst its good part would be added; here a packet is one segment.
            self.inflight_too_high(v, w, p.tx_in_flight.saturating_sub(1), p.is_app_limited);
        }
    }

    /// A probe put too much in flight: `volume` is the bound, though not less than CUBIC would keep (HandleInflightTooHigh).
    pub(super) fn inflight_too_high(&mut self, v: &View, w: &Window, volume: u32, is_app_limited: bool) {
        self.probe.too_high = true;
        self.probe.is_sample = false;
        if !is_app_limited {
            self.long.inflight = volume.max(beta(self.target_inflight(w)));
        }
        if self.state == State::Up {
            self.undo.state = Some(Undone::Up);
            self.start_down(v);
        }
    }

    /// Once a round trip: the short-term bounds move towards what was delivered in it (§5.5.10.3, UpdateCongestionSignals).
    pub(super) fn adapt_to_congestion(&mut self, v: &View, w: &Window) {
        if !self.latest.start {
            return;
        }
        if self.latest.lossy && !self.state.is_probing() {
            let s = &mut self.short;
            if s.bw == Bw::MAX {
                s.bw = self.long.max_bw();
            }
            if s.inflight == u32::MAX {
                s.inflight = if v.ca_state == CaState::Loss { w.cwnd.max(self.saved_cwnd) } else { w.cwnd };
            }
            s.bw = self.latest.bw.max(beta(s.bw));
            s.inflight = self.latest.inflight.max(beta(s.inflight));
        }
        self.latest.lossy = false;
    }

    /// Remembers what a spurious recovery would spoil, once a recovery (§5.5.11.1, SaveStateUponLoss).
    pub(super) fn save_for_undo(&mut self, v: &View, w: &Window) {
        self.save_cwnd(v, w);
        if !self.undo.armed {
            self.undo = Undo { armed: true, state: None, short: Some(self.short), inflight: self.long.inflight };
        }
    }

    /// Nothing was lost after all (§5.5.11.2, HandleSpuriousLossDetection); the window is the caller's to restore.
    pub(super) fn loss_was_spurious(&mut self, v: &View) {
        self.latest.lossy = false;
        self.full.reset(0);
        if let Some(s) = self.undo.short {
            self.short = ShortTerm { bw: self.short.bw.max(s.bw), inflight: self.short.inflight.max(s.inflight) };
            self.long.inflight = self.long.inflight.max(self.undo.inflight);
        }
        match self.undo.state.take() {
            Some(Undone::Startup) if self.state != State::Startup => {
                self.full.reached = false;
                if !self.state.is_probe_rtt() {
                    self.state = State::Startup;
                }
            }
            Some(Undone::Up) if self.state != State::Up && !self.state.is_probe_rtt() => self.start_refill(v),
            _ => {}
        }
    }
}

/// Whether `lost` packets are more than the loss threshold of `in_flight`.
fn too_much(lost: u32, in_flight: u32) -> bool {
    u64::from(lost) * 100 > u64::from(in_flight) * LOSS_PERCENT
}

/// 0.7 of `x` (`BBR.Beta`).
pub(super) fn beta(x: u32) -> u32 {
    (u64::from(x) * BETA_PERCENT / 100) as u32
}

/// Loss rate that a probe may cause, per cent (`BBR.LossThresh` = 2 %).
const LOSS_PERCENT: u64 = 2;
/// What a round trip with loss leaves at least, per cent (`BBR.Beta` = 0.7).
const BETA_PERCENT: u64 = 70;
