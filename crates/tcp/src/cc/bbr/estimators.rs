//! What BBR measures: the long-term bandwidth behind a policer, how many packets ACKs bring beyond what the bandwidth explains, and which
//! packets were sent at PROBE_RTT's low rate. The windowed maximum of the bandwidth is `windowed.rs`.
//!
//! **What it is.** Estimators, each fed once per ACK. **Source.** Cardwell et al., ACM Queue 14(5), 2016; Flach et al., SIGCOMM 2016, for
//! policers; draft-cardwell-iccrg-bbr-congestion-control-02 (BBR.extra_acked) for aggregation; docs/models/controls/bbr.md for what is seen of Linux.
//! **How it differs.** From Linux: nothing known. **What it does not model.** Nothing of these is left out.

use super::bandwidth::{bytes_per_sec, Bw, BW_SCALE, UNIT};
use crate::cc::{RateSample, View};
use tcpscape_base::wire::ahead;

/// Packets sent at PROBE_RTT's low rate: samples of them count as application-limited.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slowed {
    /// Deliveries (from, to) between which they were sent.
    span: Option<(u32, u32)>,
}

impl Slowed {
    /// Whether a packet sent at `delivered` deliveries is one of them.
    pub fn covers(&self, delivered: u32) -> bool {
        self.span.is_some_and(|(from, to)| ahead(from, delivered) >= 0 && ahead(delivered, to) >= 0)
    }

    /// Whether some of them are still to be delivered.
    pub fn lasts(&self, v: &View) -> bool {
        self.span.is_some_and(|(_, to)| ahead(v.counts.delivered, to) >= 0)
    }

    /// PROBE_RTT begins.
    pub fn begin(&mut self, v: &View) {
        let from = self.span.filter(|_| self.lasts(v)).map_or(v.counts.delivered, |s| s.0);
        self.span = Some((from, v.counts.delivered));
    }

    /// PROBE_RTT goes on: what is in flight now is slowed as well.
    pub fn extend(&mut self, v: &View) {
        if let Some((_, to)) = &mut self.span {
            *to = v.counts.delivered.wrapping_add(v.in_flight);
        }
    }
}

/// What the policer detector concluded from an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing changed.
    Same,
    /// Two lossy intervals agreed: a policer is at work, its rate is the bandwidth from now on.
    Policed,
    /// The policer's rate has been used long enough: probe again.
    ProbeAgain,
}

/// Detects token-bucket policers by the bandwidth over long, lossy intervals (Flach et al.: "An Internet-wide analysis of traffic policing",
/// SIGCOMM 2016; docs/models/controls/bbr.md, "Policers"; the draft leaves it out).
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum LongTerm {
    /// No loss yet: the next one begins an interval.
    #[default]
    Waiting,
    /// Intervals are measured; the bandwidth of the last one, 0 after the first loss.
    Measuring { interval: Interval, last: Bw },
    /// The policer's rate is the bandwidth, for so many round trips of PROBE_BW already.
    Policed { bw: Bw, rounds: u32 },
}

/// Where an interval began, and the round trips that it has lasted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    rounds: u32,
    delivered: u32,
    lost: u32,
    /// ms.
    since: u32,
}

/// What an interval that has ended says.
enum Ended {
    /// It was not lossy, or too short for the clock: it goes on.
    No,
    /// Its bandwidth.
    With(Bw),
    /// It was too long for the arithmetic.
    TooLong,
}

impl Interval {
    fn begin(v: &View) -> Interval {
        Interval { rounds: 0, delivered: v.counts.delivered, lost: v.counts.lost, since: ms(v) }
    }

    /// Ends at a loss, if a fifth of what was delivered is lost.
    fn end(&self, v: &View) -> Ended {
        let (lost, delivered) = (v.counts.lost.wrapping_sub(self.lost), v.counts.delivered.wrapping_sub(self.delivered));
        let lasted = ms(v).wrapping_sub(self.since);
        let is_lossy = delivered > 0 && lost << 8 >= LT_LOSS.wrapping_mul(delivered);
        if !is_lossy || (lasted as i32) < 1 {
            Ended::No
        } else if lasted >= u32::MAX / 1_000 {
            Ended::TooLong
        } else {
            Ended::With(((u64::from(delivered) << BW_SCALE) / u64::from(lasted * 1_000)) as Bw)
        }
    }
}

/// The time of the last delivery, ms.
fn ms(v: &View) -> u32 {
    (v.counts.delivered_us / 1_000) as u32
}

impl LongTerm {
    /// The policed bandwidth, if there is one.
    pub fn bw(&self) -> Option<Bw> {
        match *self {
            LongTerm::Policed { bw, .. } => Some(bw),
            _ => None,
        }
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        *self = LongTerm::Waiting;
    }

    /// Takes one ACK; `round` when it starts a round trip, `probing` in PROBE_BW.
    pub fn update(&mut self, v: &View, rs: &RateSample, round: bool, probing: bool) -> Verdict {
        match self {
            LongTerm::Policed { rounds, .. } => {
                let counts = round && probing;
                *rounds += u32::from(counts);
                if counts && *rounds >= LT_USE_ROUNDS {
                    self.reset();
                    return Verdict::ProbeAgain;
                }
            }
            // An interval runs from loss to loss: only then is the bucket known to be empty.
            LongTerm::Waiting if rs.losses > 0 => {
                let mut interval = Interval::begin(v);
                interval.rounds = u32::from(round);
                *self = if rs.is_app_limited { LongTerm::Waiting } else { LongTerm::Measuring { interval, last: 0 } };
            }
            LongTerm::Waiting => {}
            LongTerm::Measuring { .. } if rs.is_app_limited => self.reset(),
            LongTerm::Measuring { interval, last } => {
                interval.rounds += u32::from(round);
                match interval.rounds {
                    LT_MIN_ROUNDS..=LT_MAX_ROUNDS if rs.losses > 0 => {
                        let (interval, last) = (*interval, *last);
                        return self.end_interval(v, interval, last);
                    }
                    0..=LT_MAX_ROUNDS => {}
                    _ => self.reset(),
                }
            }
        }
        Verdict::Same
    }

    /// Ends the interval, if it was lossy, and compares it with the one before.
    fn end_interval(&mut self, v: &View, interval: Interval, last: Bw) -> Verdict {
        match interval.end(v) {
            Ended::No => {}
            Ended::TooLong => self.reset(),
            Ended::With(bw) if last != 0 && agree(v, bw, last) => {
                *self = LongTerm::Policed { bw: bw.wrapping_add(last) >> 1, rounds: 0 };
                return Verdict::Policed;
            }
            Ended::With(bw) => *self = LongTerm::Measuring { interval: Interval::begin(v), last: bw },
        }
        Verdict::Same
    }
}

/// Whether two bandwidths are within an eighth of the second, or 4 kbit/s, of each other.
fn agree(v: &View, bw: Bw, last: Bw) -> bool {
    let difference = (bw.wrapping_sub(last) as i32).unsigned_abs();
    difference.wrapping_mul(256) <= LT_RATIO.wrapping_mul(last) || bytes_per_sec(v.mss, difference, UNIT) <= LT_DIFF
}

/// ACK aggregation: the most packets acknowledged beyond the bandwidth's share in the last 5 to 10 round trips (BBR.extra_acked of
/// draft-cardwell-iccrg-bbr-congestion-control-02).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregation {
    /// Beginning of the epoch, µs, and packets acknowledged in it.
    since: u64,
    acked: u32,
    most: TwoHalves,
}

/// A maximum of 16 bits over the present and the previous five round trips.
#[derive(Clone, Copy, Debug, Default)]
struct TwoHalves {
    present: u16,
    previous: u16,
    /// Age of the present half, round trips.
    rounds: u32,
}

impl TwoHalves {
    fn next_round(&mut self) {
        self.rounds += 1;
        if self.rounds >= AGG_ROUNDS {
            *self = TwoHalves { present: 0, previous: self.present, rounds: 0 };
        }
    }

    /// What does not fit 16 bits loses its upper ones.
    fn take(&mut self, value: u32) {
        if value > u32::from(self.present) {
            self.present = value as u16;
        }
    }
}

impl Aggregation {
    /// A new epoch begins at `now` µs.
    pub fn restart(&mut self, now: u64) {
        (self.since, self.acked) = (now, 0);
    }

    /// Largest excess, packets.
    pub fn excess(&self) -> u32 {
        self.most.present.max(self.most.previous).into()
    }

    /// Packets that the bandwidth explains since the epoch began.
    fn expected(&self, v: &View, bw: Bw) -> u32 {
        let us = v.counts.delivered_us.saturating_sub(self.since) as u32;
        (u64::from(bw).wrapping_mul(u64::from(us)) >> BW_SCALE) as u32
    }

    /// Takes one ACK.
    pub fn update(&mut self, v: &View, rs: &RateSample, round: bool, bw: Bw, cwnd: u32) {
        if rs.acked_sacked == 0 || rs.delivered < 0 || rs.interval_us <= 0 {
            return;
        }
        if round {
            self.most.next_round();
        }
        let mut expected = self.expected(v, bw);
        // No faster than expected, or an endless epoch: begin again.
        if self.acked <= expected || self.acked.saturating_add(rs.acked_sacked) >= AGG_MAX_ACKED {
            self.restart(v.counts.delivered_us);
            expected = 0;
        }
        self.acked = self.acked.saturating_add(rs.acked_sacked).min(AGG_MAX_ACKED - 1);
        self.most.take(self.acked.wrapping_sub(expected).min(cwnd));
    }
}

/// Round trips in a long-term interval: at least, and at most.
const LT_MIN_ROUNDS: u32 = 4;
const LT_MAX_ROUNDS: u32 = 4 * LT_MIN_ROUNDS;
/// An interval is lossy from this lost/delivered ratio, 1/256: 20 %.
const LT_LOSS: u32 = 50;
/// Two bandwidths agree within this ratio, 1/256: 1/8.
const LT_RATIO: u32 = 32;
/// … or within this difference, bytes per second: 4 kbit/s.
const LT_DIFF: u64 = 500;
/// Round trips for which the policed bandwidth is used.
const LT_USE_ROUNDS: u32 = 48;
/// Round trips in each half of the aggregation window.
const AGG_ROUNDS: u32 = 5;
/// Packets after which an aggregation epoch is begun anew: 2^20.
const AGG_MAX_ACKED: u32 = 1 << 20;
