//! What happens when the timer fires, and when it is set.
//!
//! Source: RFC 6298 §5, RFC 8985 §6.2 and §7, RFC 9293 §3.8.6.1. How it differs: docs/models/tcp/rtt.md and rack.md. Not modelled: giving up.

use super::handshake::State;
use super::output::Push;
use super::recovery::Phase;
use super::reduction::Actions;
use super::report::AckReport;
use super::timer::{Purpose, TIMER_MARGIN_US};
use super::Sender;

impl Sender {
    /// Sets the timer `ticks` ahead.
    pub(super) fn arm(&mut self, purpose: Purpose, ticks: u64) {
        self.timer.arm(purpose, ticks, self.tick(), &self.cfg.jiffies);
    }

    /// Sets the timer `ticks` after what pacing still holds back.
    pub(super) fn arm_paced(&mut self, purpose: Purpose, ticks: u64) {
        let hold_ns = self.pacer.hold_ns(self.now.time);
        let hold = if hold_ns == 0 { 0 } else { self.cfg.jiffies.from_micros(hold_ns / 1_000) };
        self.arm(purpose, ticks + hold);
    }

    /// The timer may have fired.
    pub(super) fn on_fired(&mut self) {
        match self.timer.due(self.now.time, &self.cfg.jiffies) {
            None => {}
            Some(Purpose::Reordering) => self.on_reordering_timer(),
            Some(Purpose::LossProbe) => self.send_loss_probe(),
            Some(Purpose::Retransmit) => {
                self.timer.stop();
                self.on_retransmission_timeout();
            }
            Some(Purpose::WindowProbe) => {
                self.timer.stop();
                self.on_window_probe_timer();
            }
        }
    }

    // ---- retransmission ----

    /// Time from now until the timeout of the oldest segment, µs; `None` if that has passed.
    fn left_of_rto_us(&self) -> Option<u64> {
        let rto_us = self.cfg.jiffies.to_micros(self.rtt.rto());
        let left = self.flight.front().map_or(rto_us, |s| (s.sent_us() + rto_us).saturating_sub(self.now_us()));
        Some(left).filter(|&us| us > 0)
    }

    /// RFC 6298 §5.2 and §5.3: restarts the retransmission timer, or stops it when nothing is in flight. After another purpose it runs for
    /// what is left of the oldest segment's timeout.
    pub(super) fn rearm_rto(&mut self) {
        if self.flight.out() == 0 {
            return self.timer.stop();
        }
        let ticks = match self.timer.purpose() {
            Some(Purpose::Reordering | Purpose::LossProbe) => self.cfg.jiffies.from_micros(self.left_of_rto_us().unwrap_or(1)),
            _ => self.rtt.rto(),
        };
        self.arm_paced(Purpose::Retransmit, ticks);
    }

    /// RFC 6298 §5.3, RFC 8985 §7.2: an ACK that made progress starts the timer anew, unless it was set for a reason of its own: a loss probe
    /// if one is due before the RTO, else the RTO.
    pub(super) fn restart_timer(&mut self, r: &AckReport, actions: &Actions) {
        if !r.restarts_timer || actions.timer_is_set {
            return;
        }
        let rto_us = self.cfg.jiffies.to_micros(self.rtt.rto());
        if !self.schedule_probe(Some(rto_us)) {
            self.rearm_rto();
        }
    }

    /// RFC 6298 §5.4 to §5.6.
    fn on_retransmission_timeout(&mut self) {
        if self.handshake.state() == State::SynSent {
            return self.on_syn_timeout();
        }
        if self.flight.out() == 0 {
            return;
        }
        self.stats.rtos += 1;
        self.enter_loss();
        if self.peer.window() > 0 {
            self.rtt.count_timeout();
        }
        let head = self.flight.front_id();
        let left = self.retransmit(head, 1) > 0;
        self.host.timeout_sent(left.then(|| self.flight.last_burst()));
        self.rtt.timed_out(&self.cfg.jiffies);
        self.arm(Purpose::Retransmit, self.rtt.rto());
    }

    // ---- loss probe ----

    /// Sets the timer for a probe after data were sent; the RTO of the oldest segment bounds it.
    pub(super) fn schedule_probe_after_sending(&mut self) {
        let left = self.left_of_rto_us();
        self.schedule_probe(left);
    }

    /// RFC 8985 §7.2: two round trips, and room for a delayed ACK when one segment is out, at most `bound_us`. Only in Open and CWR.
    fn schedule_probe(&mut self, bound_us: Option<u64>) -> bool {
        if self.flight.out() == 0 || !matches!(self.recovery.phase(), Phase::Open | Phase::Cwr(_)) {
            return false;
        }
        let margin_us = if self.flight.out() == 1 { MAX_ACK_DELAY_US } else { TIMER_MARGIN_US };
        let clock = &self.cfg.jiffies;
        let ticks = clock.from_micros(u64::from(self.rtt.srtt8_us() / 4) + margin_us);
        let bound = bound_us.map_or(u64::MAX, |us| clock.from_micros(us));
        self.arm_paced(Purpose::LossProbe, ticks.min(bound));
        true
    }

    /// RFC 8985 §7.3: one new segment, or the last one again unless it still waits in the host's own queue.
    fn send_loss_probe(&mut self) {
        if !self.tlp.is_out() {
            let resent = !self.window_allows_head();
            let sent = if resent { self.probe_with_last() } else { self.probe_with_new() };
            if sent {
                self.tlp.sent(self.flight.nxt(), resent);
                self.stats.tlps += 1;
                self.timer.stop();
            }
        }
        self.rearm_rto();
    }

    fn probe_with_new(&mut self) -> bool {
        let before = self.flight.out();
        self.send_pending(Push::Probe);
        self.flight.out() > before
    }

    fn probe_with_last(&mut self) -> bool {
        let last = self.flight.back_id().filter(|&id| !self.host.holds(self.flight.get(id).burst));
        last.is_some_and(|id| self.transmit_again(id, 1) > 0)
    }

    // ---- window probe ----

    /// Data wait, nothing is in flight and no timer runs: the window will be probed.
    pub(super) fn schedule_window_probe(&mut self) {
        if self.flight.out() == 0 && self.timer.purpose().is_none() && !self.buffer.is_empty() {
            self.arm_paced(Purpose::WindowProbe, self.rtt.first_probe(&self.cfg.jiffies));
        }
    }

    /// An ACK came while nothing was in flight: the window is open, or will be probed.
    pub(super) fn on_window_news(&mut self) {
        let Some(head) = self.buffer.head() else { return };
        if self.flight.nxt() + u64::from(head.len) <= self.window_end() {
            self.rtt.reset_backoff();
            self.timer.stop();
        } else {
            self.arm_paced(Purpose::WindowProbe, self.rtt.probe_interval(&self.cfg.jiffies));
        }
    }

    /// RFC 9293 §3.8.6.1: as much as the window admits of the next segment, else an ACK below the left edge, which the peer must answer.
    fn on_window_probe_timer(&mut self) {
        if self.flight.out() > 0 || self.buffer.is_empty() {
            return;
        }
        if self.flight.nxt() < self.window_end() {
            self.send_what_fits();
        } else {
            let probe = self.bare_ack(self.flight.una() - 1);
            self.out.push_back((probe, 0));
        }
        self.stats.window_probes += 1;
        if self.flight.out() > 0 || self.buffer.is_empty() {
            return self.rtt.reset_backoff();
        }
        self.rtt.count_probe();
        self.arm_paced(Purpose::WindowProbe, self.rtt.probe_interval(&self.cfg.jiffies));
    }
}

/// Longest delay of an ACK that the probe allows for (RFC 8985 §7.2, `TLP.max_ack_delay`): 200 ms.
const MAX_ACK_DELAY_US: u64 = 200_000;
