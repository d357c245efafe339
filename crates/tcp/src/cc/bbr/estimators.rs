//! What BBR measures: the windowed maximum of the bandwidth, the long-term bandwidth behind a policer, and how many packets
//! ACKs bring beyond what the bandwidth explains.
//!
//! **What it is.** Three estimators, each fed once per ACK. **Source.** draft-cardwell-iccrg-bbr-congestion-control-00 §4.1;
//! Linux 6.1: `lib/win_minmax.c` (Kathleen Nichols' algorithm), `bbr_lt_bw_sampling()`, `bbr_update_ack_aggregation()`.
//! **How it differs.** From Linux: nothing known. **What it does not model.** Nothing of these is left out.

use super::control::bytes_per_sec;
use super::{before, Bw, BW_SCALE, UNIT};
use crate::cc::{RateSample, View};

/// Packets sent at PROBE_RTT's low rate: samples of them count as application-limited (Linux marks the connection so).
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::cc) struct Slowed {
    /// Deliveries (from, to) between which they were sent.
    span: Option<(u32, u32)>,
}

impl Slowed {
    /// Whether a packet sent at `delivered` deliveries is one of them.
    pub fn covers(&self, delivered: u32) -> bool {
        self.span.is_some_and(|(from, to)| !before(delivered, from) && !before(to, delivered))
    }

    /// Whether some of them are still to be delivered.
    pub fn lasts(&self, v: &View) -> bool {
        self.span.is_some_and(|(_, to)| !before(to, v.delivered))
    }

    /// PROBE_RTT begins.
    pub fn begin(&mut self, v: &View) {
        let from = self.span.filter(|_| self.lasts(v)).map_or(v.delivered, |s| s.0);
        self.span = Some((from, v.delivered));
    }

    /// PROBE_RTT goes on: what is in flight now is slowed as well.
    pub fn extend(&mut self, v: &View) {
        if let Some((_, to)) = &mut self.span {
            *to = v.delivered.wrapping_add(v.in_flight);
        }
    }
}

/// What the long-term estimator concluded from an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing changed.
    Same,
    /// Two lossy intervals agreed: a policer is at work, its rate is the bandwidth from now on.
    Policed,
    /// The policer's rate has been used long enough: probe again.
    ProbeAgain,
}

/// The bandwidth over long, lossy intervals: detects token-bucket policers (draft §4.1.1 leaves it out;
/// Flach et al.: "An Internet-wide analysis of traffic policing", SIGCOMM 2016).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LongTerm {
    /// Average bandwidth of the last interval, of the last two when it is in use; 0 when unknown.
    bw: Bw,
    /// The bandwidth is in use.
    in_use: bool,
    /// An interval is being sampled.
    sampling: bool,
    /// Round trips in the interval, or since it is in use.
    rounds: u32,
    /// Interval's start: packets delivered and lost, and when, ms.
    delivered: u32,
    lost: u32,
    since_ms: u32,
}

impl LongTerm {
    /// The policed bandwidth, if there is one.
    pub fn bw(&self) -> Option<Bw> {
        self.in_use.then_some(self.bw)
    }

    /// Forgets everything.
    pub fn reset(&mut self, v: &View) {
        *self = LongTerm::default();
        self.begin(v);
    }

    fn begin(&mut self, v: &View) {
        let since_ms = (v.delivered_mstamp / 1_000) as u32;
        *self = LongTerm { rounds: 0, delivered: v.delivered, lost: v.lost, since_ms, ..*self };
    }

    /// Takes one ACK; `round` when it starts a round trip, `probing` in PROBE_BW.
    pub fn update(&mut self, v: &View, rs: &RateSample, round: bool, probing: bool) -> Verdict {
        if self.in_use {
            self.rounds += u32::from(round && probing);
            if round && probing && self.rounds >= LT_USE_ROUNDS {
                self.reset(v);
                return Verdict::ProbeAgain;
            }
            return Verdict::Same;
        }
        // An interval runs from loss to loss: only then is the bucket known to be empty.
        if !self.sampling {
            if rs.losses == 0 {
                return Verdict::Same;
            }
            self.begin(v);
            self.sampling = true;
        }
        if rs.is_app_limited {
            self.reset(v);
            return Verdict::Same;
        }
        self.rounds += u32::from(round);
        if self.rounds > 4 * LT_MIN_ROUNDS {
            self.reset(v);
        } else if self.rounds >= LT_MIN_ROUNDS && rs.losses > 0 {
            return self.close(v);
        }
        Verdict::Same
    }

    /// Ends the interval, if it was lossy, and compares it with the one before.
    fn close(&mut self, v: &View) -> Verdict {
        let (lost, delivered) = (v.lost.wrapping_sub(self.lost), v.delivered.wrapping_sub(self.delivered));
        if delivered == 0 || lost << 8 < LT_LOSS.wrapping_mul(delivered) {
            return Verdict::Same;
        }
        let ms = ((v.delivered_mstamp / 1_000) as u32).wrapping_sub(self.since_ms);
        if (ms as i32) < 1 {
            return Verdict::Same;
        }
        if ms >= u32::MAX / 1_000 {
            self.reset(v);
            return Verdict::Same;
        }
        let bw = ((u64::from(delivered) << BW_SCALE) / u64::from(ms * 1_000)) as Bw;
        if self.bw != 0 && self.agrees(v, bw) {
            (self.bw, self.in_use, self.rounds) = (bw.wrapping_add(self.bw) >> 1, true, 0);
            return Verdict::Policed;
        }
        self.bw = bw;
        self.begin(v);
        Verdict::Same
    }

    /// Whether `bw` is within an eighth, or 4 kbit/s, of the last interval's.
    fn agrees(&self, v: &View, bw: Bw) -> bool {
        let diff = (bw.wrapping_sub(self.bw) as i32).unsigned_abs();
        diff.wrapping_mul(256) <= LT_RATIO.wrapping_mul(self.bw) || bytes_per_sec(v.mss, diff, UNIT) <= LT_DIFF
    }
}

/// ACK aggregation: the most packets acknowledged beyond the bandwidth's share in the last 5 to 10 round trips.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregation {
    /// Beginning of the epoch, µs, and packets acknowledged in it.
    since: u64,
    acked: u32,
    /// Largest excess of the current and the previous five round trips; Linux keeps 16 bits of it.
    most: [u16; 2],
    /// Which of the two is current, and its age in round trips.
    current: usize,
    rounds: u32,
}

impl Aggregation {
    /// A new epoch begins at `now` µs.
    pub fn restart(&mut self, now: u64) {
        (self.since, self.acked) = (now, 0);
    }

    /// Largest excess, packets.
    pub fn excess(&self) -> u32 {
        self.most[0].max(self.most[1]).into()
    }

    /// Takes one ACK.
    pub fn update(&mut self, v: &View, rs: &RateSample, round: bool, bw: Bw, cwnd: u32) {
        if rs.acked_sacked == 0 || rs.delivered < 0 || rs.interval_us <= 0 {
            return;
        }
        self.rounds += u32::from(round);
        if self.rounds >= AGG_ROUNDS {
            self.rounds = 0;
            self.current ^= 1;
            self.most[self.current] = 0;
        }
        let us = v.delivered_mstamp.saturating_sub(self.since) as u32;
        let mut expected = (u64::from(bw).wrapping_mul(u64::from(us)) >> BW_SCALE) as u32;
        // No faster than expected, or an endless epoch: begin again.
        if self.acked <= expected || self.acked.saturating_add(rs.acked_sacked) >= AGG_MAX_ACKED {
            self.restart(v.delivered_mstamp);
            expected = 0;
        }
        self.acked = self.acked.saturating_add(rs.acked_sacked).min(AGG_MAX_ACKED - 1);
        let excess = self.acked.wrapping_sub(expected).min(cwnd);
        if excess > u32::from(self.most[self.current]) {
            self.most[self.current] = excess as u16;
        }
    }
}

/// Round trips in a long-term interval, at least; at most four times as many (`bbr_lt_intvl_min_rtts`).
const LT_MIN_ROUNDS: u32 = 4;
/// An interval is lossy from this lost/delivered ratio, 1/256: 20 % (`bbr_lt_loss_thresh`).
const LT_LOSS: u32 = 50;
/// Two bandwidths agree within this ratio, 1/256: 1/8 (`bbr_lt_bw_ratio`).
const LT_RATIO: u32 = 32;
/// … or within this difference, bytes per second: 4 kbit/s (`bbr_lt_bw_diff`).
const LT_DIFF: u64 = 500;
/// Round trips for which the policed bandwidth is used (`bbr_lt_bw_max_rtts`).
const LT_USE_ROUNDS: u32 = 48;
/// Round trips in each half of the aggregation window (`bbr_extra_acked_win_rtts`).
const AGG_ROUNDS: u32 = 5;
/// Packets after which an aggregation epoch is begun anew: 2^20 (`bbr_ack_epoch_acked_reset_thresh`).
const AGG_MAX_ACKED: u32 = 1 << 20;
