//! An ACK: is it acceptable, what does it say, and what follows.
//!
//! Source: RFC 9293 §3.10.7.4, RFC 2018 §5, RFC 2883 §4, RFC 7323 §4 and §5, RFC 6298 §3 (Karn's rule). An ACK is read once, into an
//! [`AckReport`]; then recovery decides, the congestion control sets the window, and what is due goes out. How it differs:
//! docs/models/tcp/sender.md. Not modelled: data from the peer other than messages of one segment (`Sender::receive`).

use super::flight::{timestamp, Context, Delivery, Marks, Reading, SackOption, Span};
use super::report::{AckReport, Prior};
use super::Sender;
use tcpscape_base::{CaState, Flags, Segment};

/// What a segment is to an established connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
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

impl Sender {
    /// A segment has come on an established connection.
    pub(super) fn on_established(&mut self, s: &Segment) {
        self.stats.segs_in += 1;
        match self.classify(s) {
            Kind::Syn => return self.repeat_ack(),
            Kind::OldTimestamp | Kind::TooOld => return self.answer_unacceptable(),
            Kind::Unsent => return,
            Kind::Current => self.on_ack(s),
            Kind::Old => self.on_old_ack(s),
        }
        self.push_pending();
        self.check_space();
    }

    /// RFC 9293 §3.10.7.4, RFC 7323 §5.3: whether the segment is acceptable. If its timestamp is, the peer's timestamps are taken over.
    fn classify(&mut self, s: &Segment) -> Kind {
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

    /// The SYN-ACK has come again, so its ACK was lost.
    fn repeat_ack(&mut self) {
        let ack = self.bare_ack(self.flight.nxt());
        self.out.push_back((ack, 0));
    }

    // RFC 9293 §3.10.7.4: an unacceptable segment is answered by an ACK.
    fn answer_unacceptable(&mut self) {
        if self.peer.take_answer(self.tick(), &self.cfg.jiffies) {
            self.send_ack();
        }
    }

    /// An ACK at or above the left edge.
    fn on_ack(&mut self, s: &Segment) {
        let mut report = AckReport::new(s.ack, self.prior(), self.flight.out() == 0);
        self.read(s, &mut report);
        self.notify_control(&report);
        if report.was_idle {
            return self.on_idle_ack(&report);
        }
        self.judge_probe(&report);
        let actions = self.recover(&report);
        self.restart_timer(&report, &actions);
        self.control_window(&report);
        self.resend(actions.resend);
    }

    /// An ACK while nothing is in flight speaks of the window, and perhaps of a duplicate.
    fn on_idle_ack(&mut self, report: &AckReport) {
        if report.duplicate.is_some() {
            self.recover(report); // nothing is in flight, so nothing is sent again
        }
        self.on_window_news();
        self.judge_probe(report);
    }

    /// An ACK older than the newest, still young enough for its SACK blocks. What they deliver is not counted as delivered.
    fn on_old_ack(&mut self, s: &Segment) {
        if s.sacks().len() == 0 {
            return;
        }
        let una = self.flight.una();
        let mut report = AckReport::new(una, Prior { una, ..Prior::default() }, false);
        self.read_sack(s, self.context(), &mut report);
        self.learn(&report.delivery);
        let actions = self.recover(&report);
        self.resend(actions.resend);
    }

    // ---- reading ----

    fn prior(&self) -> Prior {
        Prior {
            una: self.flight.una(),
            in_flight: self.flight.in_flight(),
            sacked_end: self.flight.sacked_end(),
            delivered: self.delivery.delivered(),
            marked_lost: self.flight.marked_lost(),
            rates_usable: !self.recovery.has_reneged(),
        }
    }

    /// Applies an ACK to the segments in flight, the peer's window, the RTT and the counts of deliveries, and writes down what it delivery. This is
    /// the only place that fills a report in; it is not returned because it is long.
    fn read(&mut self, s: &Segment, report: &mut AckReport) {
        if report.advanced() {
            self.rtt.progressed();
        }
        report.predicted = self.peer.predicts(s);
        report.window_update = self.take_window(s);
        let context = self.context();
        if s.nsack > 0 {
            self.read_sack(s, context, report);
        }
        report.congestion = self.ecn.echoes(s);
        let by_sack = report.delivery.sacked + report.duplicate.map_or(0, |d| d.segments);
        self.delivery.count(by_sack, report.congestion);
        if !report.was_idle {
            self.read_number(context, report);
            report.delivered = self.delivery.delivered().wrapping_sub(report.prior.delivered);
            report.congestion |= self.read_ace(s, report.delivered);
            self.rack.adapt(report.delivery.sampled.as_ref().map_or(0, |p| p.delivered_then), self.delivery.delivered());
        }
    }

    /// RFC 9293 §3.10.7.4: takes the window of an ACK over; returns whether it spoke about it.
    fn take_window(&mut self, s: &Segment) -> bool {
        let update = self.peer.updates_window(s, self.flight.una());
        if update && self.peer.set_window(s.wnd) {
            if !self.buffer.is_empty() {
                self.restart_after_pause();
            }
            self.stats.max_rwnd = self.stats.max_rwnd.max(s.wnd);
        }
        update
    }

    fn context(&self) -> Context {
        Context {
            now_us: self.now_us(),
            min_rtt_us: self.rtt.min_us(),
            echo: self.peer.echo(),
            recovery_point: self.recovery.point(),
            undo_from: self.recovery.undo.left_edge(),
        }
    }

    /// Applies the SACK option of an ACK.
    fn read_sack(&mut self, s: &Segment, context: Context, r: &mut AckReport) {
        let mut option = SackOption::of(s);
        let duplicate = option.duplicate(self.peer.max_window(), self.cfg.mss);
        r.probe_duplicate = duplicate.is_some_and(|d| d.segments == 1 && self.tlp.ends_at(d.end));
        // More duplicates than this side sent twice are the network's.
        self.stats.dsack_dups += duplicate.map_or(0, |d| u64::from(d.segments));
        r.duplicate = duplicate.filter(|_| self.stats.dsack_dups <= self.stats.retransmits);
        let nxt = self.flight.nxt();
        let mut reading = Reading::of(&mut self.flight, &mut r.delivery, context, r.ack);
        if let Some(d) = r.duplicate {
            if !r.probe_duplicate {
                self.rack.on_duplicate();
            }
            reading.duplicate(&d, r.prior.una);
        }
        for &block in option.usable(r.duplicate.is_some(), r.ack, nxt) {
            reading.sack(block);
        }
        self.recovery.undo.duplicates(r.delivery.needless);
        // After a timeout that cannot be undone, SACKs tell of its own retransmissions.
        if self.recovery.state() != CaState::Loss || context.undo_from.is_some() {
            self.note_reordering(r.delivery.overtaken_sack);
        }
    }

    /// Applies the number of an ACK to the segments in flight and to the RTT.
    fn read_number(&mut self, context: Context, r: &mut AckReport) {
        let sacked_before = self.flight.sacked();
        Reading::of(&mut self.flight, &mut r.delivery, context, r.ack).acknowledge();
        self.delivery.count(r.delivery.acked_first, r.congestion);
        self.learn(&r.delivery);
        r.is_duplicate = !r.advanced() && !r.window_update && r.delivery.acked == 0 && r.duplicate.is_none();
        r.reneged = self.flight.front().is_some_and(|s| s.is(Marks::SACKED));
        self.measure_rtt(sacked_before > 0, r);
        if r.delivery.lowest_acked.is_some_and(|low| low < r.prior.sacked_end) {
            self.note_reordering(r.delivery.lowest_acked);
        }
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
        let next_delivered = || delivery.sampled.as_ref().map_or(0, |p| p.delivered_then).wrapping_add(1) == self.delivery.delivered();
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
        let echoed = u64::from(timestamp(self.now.time.0).wrapping_sub(echo).max(1)) * 1_000;
        RttEvidence { first: Some(echoed), last: Some(echoed), ..evidence }
    }

    /// Takes a sample for the estimator, and `last` for the minimum.
    pub(super) fn take_rtt(&mut self, first: u32, last: u32, maybe_delayed: bool) {
        let span = (self.flight.una(), self.flight.nxt());
        let tick = self.tick();
        self.rtt.sample(first, last, maybe_delayed, span, &self.cfg.jiffies, tick);
        self.stats.rtt.add(first);
    }

    fn note_reordering(&mut self, overtaken: Option<u64>) {
        if let Some(low) = overtaken {
            self.rack.reordering.overtaken(low, self.flight.sacked_end(), self.cfg.mss);
        }
    }

    /// RACK and the rate sample learn of what was delivered.
    #[inline]
    fn learn(&mut self, delivery: &Delivery) {
        self.rack.delivered(delivery);
        if let Some(p) = &delivery.sampled {
            self.delivery.sampled(p);
        }
    }
}
