//! Reading an ACK: what it says, once, as an [`AckReport`].
//!
//! Source: RFC 9293 §3.10.7.4, RFC 2018 §5, RFC 2883 §4, RFC 7323 §4 and §5, RFC 6298 §3 (Karn's rule). How it differs:
//! docs/models/tcp/sender.md. Not modelled: data from the peer other than messages of one segment (`Sender::receive`).

use super::connection::Connection;
use super::flight::{Context, Delivery, Marks, Reading, SackOption, Span};
use super::report::{AckReport, Overtaken, Prior, Watch, WindowNews};
use crate::cc::{AckSample, RateSample};
use tcpscape_base::{Flags, Segment};

/// What a segment is to an established connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The SYN-ACK again.
    Syn,
    /// Refused by PAWS.
    OldTimestamp,
    /// It acknowledges what was never sent; it is dropped without an answer.
    Unsent,
    /// Its number is the left edge or above.
    Current,
    /// Its number is below the left edge, by a window at most.
    Old,
    /// Older than that.
    TooOld,
}

/// The RTT that an ACK shows, µs.
#[derive(Clone, Copy, Debug, Default)]
struct RttEvidence {
    /// For the estimator: of the first segment delivered.
    first: Option<u64>,
    /// For the minimum and the congestion control: of the last one.
    last: Option<u64>,
    /// Of the first segment SACKed.
    sacked: Option<u64>,
}

impl Connection {
    /// RFC 9293 §3.10.7.4, RFC 7323 §5.3: whether the segment is acceptable. If its timestamp is, the peer's timestamps are taken over.
    pub fn classify(&mut self, s: &Segment) -> Kind {
        let una = self.flight.una();
        if s.flags.has(Flags::SYN) {
            Kind::Syn
        } else if !self.peer.accepts(s, una, self.rtt.rto(), &self.cfg.jiffies, &self.cfg.kernel) {
            self.stats.paws_rejected += 1;
            Kind::OldTimestamp
        } else if s.ack > self.flight.nxt() {
            Kind::Unsent
        } else if s.ack >= una {
            Kind::Current
        } else if self.peer.is_recent(s.ack, &self.flight) {
            Kind::Old
        } else {
            Kind::TooOld
        }
    }

    /// RFC 9293 §3.10.7.4: takes the window of an ACK over.
    #[inline]
    pub fn take_window(&mut self, s: &Segment) -> WindowNews {
        let predicted = self.peer.predicts(s);
        let update = self.peer.updates_window(s, self.flight.una());
        let changed = update && self.peer.set_window(s.wnd);
        if changed {
            self.stats.max_rwnd = self.stats.max_rwnd.max(s.wnd);
        }
        WindowNews { predicted, update, changed }
    }

    /// The report of an ACK of which only its number and its window are known yet.
    #[inline]
    pub fn begin_report(&self, s: &Segment, window: WindowNews) -> AckReport {
        AckReport::new(s.ack, self.prior(), self.flight.out() == 0, window)
    }

    /// Applies an ACK at or above the left edge to the segments in flight, the RTT and the counts of deliveries, and fills its report in.
    #[inline]
    pub fn read(&mut self, s: &Segment, watch: &Watch, r: &mut AckReport) {
        if r.advanced() {
            self.rtt.progressed();
        }
        let context = self.context(watch);
        if s.nsack > 0 {
            self.read_sack(s, context, watch, r);
        }
        r.congestion = self.ecn.echoes(s);
        let by_sack = r.delivery.sacked + r.duplicate.map_or(0, |d| d.segments);
        self.rate.count(by_sack, r.congestion);
        if !r.was_idle {
            self.read_number(context, r);
            r.delivered = self.rate.delivered().wrapping_sub(r.prior.delivered);
            r.congestion |= self.read_ace(s, r.delivered);
        }
    }

    /// Applies the SACK blocks of an ACK below the left edge. What they deliver is not counted as delivered.
    pub fn read_old(&mut self, s: &Segment, watch: &Watch) -> AckReport {
        let una = self.flight.una();
        let mut r = AckReport::new(una, Prior { una, ..Prior::default() }, false, WindowNews::default());
        r.is_old = true;
        self.read_sack(s, self.context(watch), watch, &mut r);
        self.note_sampled(&r.delivery);
        r
    }

    /// What the congestion control learns of an ACK, with its delivery-rate sample; `usable` is false while what was SACKed is forgotten.
    #[inline]
    pub fn sample(&mut self, r: &AckReport, usable: bool) -> AckSample {
        let (now_us, min_rtt_us, marked) = (self.now_us(), self.rtt.min_us(), self.flight.marked_lost());
        let rate = self.rate.sample(r.delivery.sampled.as_ref(), r.delivered, now_us, min_rtt_us, usable);
        AckSample {
            acked: r.delivered,
            ack: r.ack,
            may_raise: false,
            rate: RateSample {
                rtt_us: r.rtt_us,
                losses: marked.wrapping_sub(r.prior.marked_lost),
                lost: marked.wrapping_sub(r.delivery.sampled.as_ref().map_or(0, |p| p.lost_then)),
                prior_in_flight: r.prior.in_flight,
                is_ack_delayed: r.maybe_delayed,
                ..rate
            },
        }
    }

    #[inline]
    fn prior(&self) -> Prior {
        Prior {
            una: self.flight.una(),
            in_flight: self.flight.in_flight(),
            sacked_end: self.flight.sacked_end(),
            delivered: self.rate.delivered(),
            marked_lost: self.flight.marked_lost(),
        }
    }

    #[inline]
    fn context(&self, watch: &Watch) -> Context {
        Context {
            now_us: self.now_us(),
            jiffies: self.cfg.jiffies,
            min_rtt_us: self.rtt.min_us(),
            echo: self.peer.echo(),
            recovery_point: watch.recovery_point,
            undo_from: watch.undo_from,
        }
    }

    /// Applies the SACK option of an ACK.
    fn read_sack(&mut self, s: &Segment, context: Context, watch: &Watch, r: &mut AckReport) {
        let mut option = SackOption::of(s);
        let duplicate = option.duplicate(self.peer.max_window(), self.cfg.mss);
        r.probe_duplicate = duplicate.is_some_and(|d| d.segments == 1 && watch.probe_end == Some(d.end));
        // More duplicates than this side sent twice are the network's.
        self.stats.dsack_dups += duplicate.map_or(0, |d| u64::from(d.segments));
        r.duplicate = duplicate.filter(|_| self.stats.dsack_dups <= self.stats.retransmits);
        let nxt = self.flight.nxt();
        let mut reading = Reading::of(&mut self.flight, &mut r.delivery, context, r.ack);
        if let Some(d) = r.duplicate {
            reading.duplicate(&d, r.prior.una);
        }
        reading.sack(option.usable(r.duplicate.is_some(), r.ack, nxt));
        r.sacked_late = self.overtaken(r.delivery.overtaken_sack);
    }

    /// Applies the number of an ACK to the segments in flight and to the RTT.
    fn read_number(&mut self, context: Context, r: &mut AckReport) {
        let sacked_before = self.flight.sacked();
        Reading::of(&mut self.flight, &mut r.delivery, context, r.ack).acknowledge();
        self.rate.count(r.delivery.acked_first, r.congestion);
        self.note_sampled(&r.delivery);
        r.reneged = self.flight.front().is_some_and(|s| s.is(Marks::SACKED));
        self.measure_rtt(sacked_before > 0, r);
        r.acked_late = self.overtaken(r.delivery.lowest_acked.filter(|&low| low < r.prior.sacked_end));
    }

    /// RFC 6298 §3: takes an RTT sample.
    fn measure_rtt(&mut self, was_sacked: bool, r: &mut AckReport) {
        let now_us = self.now_us();
        let delivery = &r.delivery;
        let rtt = self.rtt_evidence(delivery, now_us);
        // One short segment is acknowledged alone, nothing was delivered since it left, and nothing else is said: the receiver may have waited
        // for a second one.
        let alone = delivery.acked == 1 && !delivery.partial && !was_sacked && r.ack - r.prior.una < u64::from(self.cfg.mss);
        let by_number = delivery.acked_times.is_some() && !delivery.acked_resent;
        let next_delivered = || delivery.sampled.as_ref().map_or(0, |p| p.delivered_then).wrapping_add(1) == self.rate.delivered();
        let quiet = delivery.sacked == 0 && !r.congestion && r.duplicate.is_none();
        r.maybe_delayed = alone && by_number && quiet && next_delivered();
        r.rtt_us = rtt.last.map_or(-1, |us| us as i64);
        // SACKs that tell a longer RTT than the oldest segment has waited move the timer, too.
        let oldest_is_younger = |us| self.flight.front().is_some_and(|s| s.sent_us() + us > now_us);
        r.restarts_timer = delivery.acked > 0 || rtt.sacked.is_some_and(oldest_is_younger);
        if let Some(first) = rtt.first {
            let last = rtt.last.unwrap_or(0) as u32;
            self.take_rtt(first as u32, last, r.maybe_delayed);
        }
    }

    /// Originals acknowledged first, then those SACKed, then the echoed timestamp (RFC 7323 §4.1), which is exact to 1 ms.
    fn rtt_evidence(&self, delivery: &Delivery, now_us: u64) -> RttEvidence {
        let since = |us: u64| now_us.saturating_sub(us);
        let numbered = delivery.acked_times.filter(|_| !delivery.acked_resent);
        let first = |span: Option<Span>| span.map(|s| since(s.first_us));
        let last = |span: Option<Span>| span.map(|s| since(s.last_us));
        let sacked = first(delivery.sacked_times);
        let evidence = RttEvidence { first: first(numbered).or(sacked), last: last(delivery.sacked_times).or(last(numbered)), sacked };
        let echo = self.peer.echo();
        if evidence.first.is_some() || echo == 0 || delivery.acked == 0 {
            return evidence;
        }
        let echoed = u64::from(self.timestamp().wrapping_sub(echo).max(1)) * 1_000;
        RttEvidence { first: Some(echoed), last: Some(echoed), ..evidence }
    }

    /// Accurate ECN: reads the counts of an ACK that delivered `packets`; returns whether it tells of marks. Without accurate feedback it tells
    /// nothing.
    #[inline]
    fn read_ace(&mut self, s: &Segment, packets: u32) -> bool {
        if packets == 0 || !self.ecn.accurate.on {
            return false;
        }
        let marks = self.ecn.accurate.read(s.flags.ace(), s.ceb, packets, self.cfg.mss);
        self.rate.count_marks(marks);
        marks > 0
    }

    #[inline]
    fn overtaken(&self, low: Option<u64>) -> Option<Overtaken> {
        low.map(|low| Overtaken { low, high: self.flight.sacked_end() })
    }

    /// The rate sample learns of what was delivered.
    #[inline]
    fn note_sampled(&mut self, delivery: &Delivery) {
        if let Some(p) = &delivery.sampled {
            self.rate.sampled(p);
        }
    }
}
