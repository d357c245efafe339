//! What BBR version 3 knows of the path: round trips, bandwidth, volume, RTT, aggregation, and whether the pipe is full.
//!
//! **What it is.** Small estimators, each fed once per ACK, on two time scales: the long term holds what probing showed, the short
//! term what this cycle's losses left of it. **Source.** draft-ietf-ccwg-bbr-06 §5.5, §5.3.1.2, §5.3.4.3.
//! **How it differs, what it does not model.** See the header of `bbr3/mod.rs`.

use super::super::bbr::{bandwidth, Bw, Slowed, BW_SCALE};
use crate::cc::{AckSample, View};
use crate::windowed::WindowedMax;
use tcpscape_base::wire::ahead;

/// One ACK's delivery-rate sample (the draft's RS); zeroes where there is none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    /// `RS.delivery_rate`.
    pub bw: Bw,
    /// `RS.delivered`, packets.
    pub delivered: u32,
    /// `RS.newly_acked`, packets.
    pub acked: u32,
    /// `delivered` when the sampled packet was sent; none without a sample.
    pub prior_delivered: Option<u32>,
    pub tx_in_flight: u32,
    pub lost: u32,
    /// `RS.rtt`, µs; negative when unknown.
    pub rtt_us: i64,
    pub is_app_limited: bool,
}

impl Sample {
    pub fn of(s: &AckSample, m: &MinRtt) -> Sample {
        let rs = &s.rate;
        let mut out = Sample { acked: rs.acked_sacked, rtt_us: rs.rtt_us, is_app_limited: rs.is_app_limited, ..Sample::default() };
        if rs.delivered >= 0 && rs.prior_mstamp > 0 {
            out.is_app_limited |= m.slowed.covers(rs.prior_delivered);
            out.prior_delivered = Some(rs.prior_delivered);
            (out.tx_in_flight, out.lost) = (rs.tx_in_flight, rs.lost);
            if rs.interval_us > 0 {
                out.delivered = rs.delivered as u32;
                out.bw = bandwidth(rs).min(u64::from(Bw::MAX - 1)) as Bw;
            }
        }
        out
    }
}

/// Round trips, counted by packets (§5.5.1).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    /// `BBR.round_count`.
    pub count: u32,
    /// This ACK begins one (`BBR.round_start`).
    pub start: bool,
    /// `BBR.rounds_since_probe_up`.
    pub since_probe: u32,
    /// One ends when a packet sent after this many deliveries is acknowledged.
    end: u32,
}

impl Rounds {
    pub fn update(&mut self, v: &View, rs: &Sample) {
        self.start = rs.prior_delivered.is_some_and(|d| ahead(self.end, d) >= 0);
        if self.start {
            self.restart(v);
            self.count = self.count.wrapping_add(1);
            self.since_probe = self.since_probe.saturating_add(1);
        }
    }

    /// A round trip begins with what is sent now.
    pub fn restart(&mut self, v: &View) {
        self.end = v.counts.delivered;
    }
}

/// The full-pipe estimator: three round trips in which the bandwidth did not grow by a quarter (§5.3.1.2).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// The pipe has been full once.
    pub reached: bool,
    /// It has been found full since the estimator was reset.
    pub now: bool,
    /// The bandwidth to beat.
    pub bw: Bw,
    /// Round trips that did not.
    pub rounds: u32,
}

impl FullPipe {
    /// Begins anew from `bw`.
    pub fn reset(&mut self, bw: Bw) {
        *self = FullPipe { reached: self.reached, now: false, bw, rounds: 0 };
    }

    pub fn update(&mut self, round: bool, rs: &Sample) {
        if self.now || !round || rs.is_app_limited {
            return;
        }
        if u64::from(rs.bw) * 4 >= u64::from(self.bw) * FULL_BW_GROWTH_QUARTERS {
            return self.reset(rs.bw);
        }
        self.rounds += 1;
        self.now = self.rounds >= FULL_BW_ROUNDS;
        self.reached |= self.now;
    }
}

/// What probing showed: the largest bandwidth of this cycle and the one before, and the volume above which too much was lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct LongTerm {
    /// Largest bandwidth of the previous and the present cycle (§5.5.5, §5.5.6).
    slots: [Bw; 2],
    /// `BBR.inflight_longterm`, packets; `u32::MAX` while unknown.
    pub inflight: u32,
}

impl Default for LongTerm {
    fn default() -> LongTerm {
        LongTerm { slots: [0; 2], inflight: u32::MAX }
    }
}

impl LongTerm {
    pub fn max_bw(&self) -> Bw {
        self.slots[0].max(self.slots[1])
    }

    // The application's rate tells nothing about the path, unless it is higher than what is known (§5.5.4).
    pub fn update_bw(&mut self, rs: &Sample) {
        if rs.bw > 0 && (!rs.is_app_limited || rs.bw >= self.max_bw()) {
            self.slots[1] = self.slots[1].max(rs.bw);
        }
    }

    /// A cycle of probing has ended.
    pub fn next_cycle(&mut self) {
        if self.slots[1] > 0 {
            self.slots = [self.slots[1], 0];
        }
    }

    /// The volume that leaves room for others; infinite while there is no bound (§5.3.3.9, InflightWithHeadroom).
    pub fn with_headroom(&self) -> u32 {
        if self.inflight == u32::MAX {
            return u32::MAX;
        }
        let headroom = (u64::from(self.inflight) * HEADROOM_PERCENT / 100).max(1) as u32;
        self.inflight.saturating_sub(headroom)
    }
}

/// What the losses of this cycle left; infinite without losses (§5.5.10.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShortTerm {
    /// `BBR.bw_shortterm`.
    pub bw: Bw,
    /// `BBR.inflight_shortterm`, packets.
    pub inflight: u32,
}

impl Default for ShortTerm {
    fn default() -> ShortTerm {
        ShortTerm { bw: Bw::MAX, inflight: u32::MAX }
    }
}

/// The round trip over which losses are judged, which begins with a first loss, and what was delivered in it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossRound {
    /// This ACK ends one (`BBR.loss_round_start`).
    pub start: bool,
    /// Something was lost in it (`BBR.is_loss_in_round`).
    pub lossy: bool,
    /// Separate ranges of sequence numbers lost in it, and the end of the last of them.
    pub ranges: u32,
    pub range_end: u64,
    /// Largest bandwidth and volume delivered in it.
    pub bw: Bw,
    pub inflight: u32,
    /// It ends when a packet sent after this many deliveries is acknowledged.
    end: u32,
}

impl LossRound {
    /// Near the start of an ACK (UpdateLatestDeliverySignals).
    pub fn begin(&mut self, v: &View, rs: &Sample) {
        self.bw = self.bw.max(rs.bw);
        self.inflight = self.inflight.max(rs.delivered);
        self.start = rs.prior_delivered.is_some_and(|d| ahead(self.end, d) >= 0);
        if self.start {
            self.end = v.counts.delivered;
        }
    }

    /// Near its end (AdvanceLatestDeliverySignals).
    pub fn advance(&mut self, rs: &Sample) {
        if self.start {
            (self.bw, self.inflight, self.ranges) = (rs.bw, rs.delivered, 0);
        }
    }

    /// Something was lost; whether it is the first loss of the round trip.
    pub fn note(&mut self, v: &View) -> bool {
        let first = !self.lossy;
        if first {
            self.end = v.counts.delivered;
        }
        self.lossy = true;
        first
    }

    /// ResetCongestionSignals
    pub fn forget(&mut self) {
        (self.lossy, self.bw, self.inflight) = (false, 0, 0);
    }
}

/// The smallest RTT, and when it must be looked for (§5.3.4.3, UpdateMinRTT).
#[derive(Clone, Copy, Debug)]
pub(super) struct MinRtt {
    /// Smallest of 10 s, µs, and when it was seen, µs.
    pub rtt: u32,
    stamp: u64,
    /// Smallest of 5 s (`BBR.probe_rtt_min_delay`), and when it was seen.
    delay: u32,
    delay_stamp: u64,
    /// It has not been seen for 5 s.
    pub expired: bool,
    /// The packets sent at PROBE_RTT's low rate.
    pub slowed: Slowed,
}

impl Default for MinRtt {
    fn default() -> MinRtt {
        MinRtt { rtt: u32::MAX, stamp: 0, delay: u32::MAX, delay_stamp: 0, expired: false, slowed: Slowed::default() }
    }
}

impl MinRtt {
    pub fn new(v: &View) -> MinRtt {
        let rtt = if v.srtt_us > 0 { v.srtt_us >> 3 } else { u32::MAX };
        let now = v.now.micros();
        MinRtt { rtt, stamp: now, delay: rtt, delay_stamp: now, ..MinRtt::default() }
    }

    pub fn update(&mut self, v: &View, rs: &Sample) {
        let now = v.now.micros();
        self.expired = now > self.delay_stamp + PROBE_RTT_INTERVAL_US;
        if rs.rtt_us >= 0 && (rs.rtt_us < i64::from(self.delay) || self.expired) {
            (self.delay, self.delay_stamp) = (rs.rtt_us.clamp(1, i64::from(u32::MAX - 1)) as u32, now);
        }
        if self.delay < self.rtt || now > self.stamp + MIN_RTT_WINDOW_US {
            (self.rtt, self.stamp) = (self.delay, self.delay_stamp);
        }
    }

    /// PROBE_RTT is over: the next one in 5 s.
    pub fn probed(&mut self, v: &View) {
        self.delay_stamp = v.now.micros();
    }
}

/// ACK aggregation: the most packets acknowledged beyond the bandwidth's share (§5.5.9).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregation {
    /// Beginning of the interval, µs, and packets acknowledged in it.
    since: u64,
    acked: u32,
    most: WindowedMax,
}

impl Aggregation {
    pub fn restart(&mut self, now: u64) {
        (self.since, self.acked) = (now, 0);
    }

    /// Largest excess, packets.
    pub fn extra(&self) -> u32 {
        self.most.get()
    }

    /// Takes an ACK for `acked` packets in round trip `round`; the maximum is of one round trip until the pipe is full.
    pub fn update(&mut self, v: &View, acked: u32, round: u32, full: bool, bw: Bw, cwnd: u32) {
        let now = v.now.micros();
        let us = now.saturating_sub(self.since).min(u32::MAX.into());
        let mut expected = ((u64::from(bw) * us) >> BW_SCALE).min(u32::MAX.into()) as u32;
        // No faster than expected: the burst of ACKs is over.
        if self.acked <= expected {
            self.restart(now);
            expected = 0;
        }
        self.acked = self.acked.saturating_add(acked);
        let extra = (self.acked - expected).min(cwnd);
        self.most.update(if full { EXTRA_ACKED_ROUNDS } else { 1 }, round, extra);
    }
}

/// The pipe is not full while the bandwidth grows by this much, in quarters: 1.25 (§5.3.1.2).
const FULL_BW_GROWTH_QUARTERS: u64 = 5;
/// Round trips without such growth (§5.3.1.2).
const FULL_BW_ROUNDS: u32 = 3;
/// Share of the long-term volume left to others, per cent (`BBR.Headroom` = 0.15).
const HEADROOM_PERCENT: u64 = 15;
/// Window of the smallest RTT, µs (`BBR.MinRTTFilterLen` = 10 s).
const MIN_RTT_WINDOW_US: u64 = 10_000_000;
/// Time between two PROBE_RTTs, µs (`BBR.ProbeRTTInterval` = 5 s).
const PROBE_RTT_INTERVAL_US: u64 = 5_000_000;
/// Window of the aggregation filter, round trips; one before the pipe is full (`BBR.ExtraAckedFilterLen`).
const EXTRA_ACKED_ROUNDS: u32 = 10;
