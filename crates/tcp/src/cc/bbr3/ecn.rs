//! How BBR version 3 answers ECN marks.
//!
//! **What it is.** On short paths, by their share: a moving average of the share of marked packets lowers the short-term volume, and a
//! share of a half ends a probe or, twice in a row, STARTUP. On others a marked round trip counts as one with a loss.
//! **Source.** The draft specifies no response but asks that marks count as congestion (draft-ietf-ccwg-bbr-06 §3.7): the second
//! rule. The first: the published kernel's constants (docs/models/controls/bbr3.md) and Cardwell et al., IETF 117 (2023), after DCTCP (RFC 8257).
//! **How it differs.** From the patch: the share that ends a probe is a round trip's, not a sample's; one ECN negotiation for all
//! paths. With RFC 3168 receivers every packet until the CWR counts as marked. **What it does not model.** Accurate ECN, L4S.

use super::model::Sample;
use super::states::State;
use super::Bbr3;
use crate::cc::{View, Window};

/// Marks seen, and their average share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ecn {
    /// Largest RTT at which the share counts, µs.
    pub max_rtt: u32,
    /// Average share of marked packets, 1/65536; begins at 1.
    alpha: u32,
    /// `delivered` and `delivered_ce` when the round trip began, and the latter at the last ACK.
    delivered: u32,
    ce: u32,
    last_ce: u32,
    /// A packet of this round trip was marked.
    marked: bool,
    /// Round trips of STARTUP in a row with many marks.
    startup_rounds: u32,
}

impl Ecn {
    pub fn new(max_rtt: u32) -> Ecn {
        Ecn { max_rtt, alpha: ONE, delivered: 0, ce: 0, last_ce: 0, marked: false, startup_rounds: 0 }
    }

    /// Counts from here.
    pub fn restart(&mut self, v: &View) {
        (self.delivered, self.ce, self.last_ce) = (v.counts.delivered, v.counts.delivered_ce, v.counts.delivered_ce);
    }

    /// Ends a round trip: its share of marks, 1/65536.
    fn end_round(&mut self, v: &View) -> u32 {
        let delivered = v.counts.delivered.wrapping_sub(self.delivered).max(1);
        let share = (u64::from(v.counts.delivered_ce.wrapping_sub(self.ce)) * u64::from(ONE) / u64::from(delivered)).min(ONE.into()) as u32;
        self.alpha = self.alpha - self.alpha / ALPHA_WEIGHT + share / ALPHA_WEIGHT;
        self.restart(v);
        share
    }
}

impl Bbr3 {
    /// Takes the marks of one ACK.
    pub(super) fn update_ecn(&mut self, v: &View, w: &Window, rs: &Sample) {
        if !v.ecn.is_on() {
            return;
        }
        let by_share = self.min_rtt.rtt <= self.ecn.max_rtt;
        if std::mem::replace(&mut self.ecn.last_ce, v.counts.delivered_ce) != v.counts.delivered_ce {
            self.ecn.marked = true;
            if !by_share {
                self.latest.note(v);
            }
        }
        if self.rounds.start {
            let share = self.ecn.end_round(v);
            if by_share {
                self.answer_share(v, w, rs, share);
            }
            self.ecn.marked = false;
        }
    }

    fn answer_share(&mut self, v: &View, w: &Window, rs: &Sample, share: u32) {
        let many = share >= MANY;
        if self.state == State::Startup {
            self.ecn.startup_rounds = if many { self.ecn.startup_rounds + 1 } else { 0 };
            if self.ecn.startup_rounds >= STARTUP_MARKED_ROUNDS {
                self.startup_too_high();
            }
        } else if self.probe.is_sample && many {
            self.inflight_too_high(v, w, rs.tx_in_flight, rs.is_app_limited);
        }
        if self.ecn.marked && !self.state.is_probing() {
            let volume = if self.short.inflight == u32::MAX { w.cwnd } else { self.short.inflight };
            let cut = u64::from(volume) * u64::from(self.ecn.alpha) / (FACTOR_DIVISOR * u64::from(ONE));
            self.short.inflight = volume - cut as u32;
        }
    }
}

/// A share of 1.
const ONE: u32 = 1 << 16;
/// Weight of the past in the average share: 15/16.
const ALPHA_WEIGHT: u32 = 16;
/// The volume is cut by a third of the average share.
const FACTOR_DIVISOR: u64 = 3;
/// Share of a round trip that is too much: a half.
const MANY: u32 = ONE / 2;
/// Round trips with it that end STARTUP.
const STARTUP_MARKED_ROUNDS: u32 = 2;
