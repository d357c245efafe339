//! Finding what is lost: after an ACK, when the reordering timer fires, and by timeout.
//!
//! Source: RFC 8985 §6.2 step 5 and §6.3, RFC 2018 §8. How it differs: docs/models/tcp/rack.md. Not modelled: connections without SACK.

use super::flight::Marks;
use super::rack::Bounds;
use super::recovery::Phase;
use super::timer::{Purpose, TIMER_MARGIN_US};
use super::Sender;
use tcpscape_base::CaState;

/// What looking for losses brought.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Search {
    /// The reordering timer was set.
    pub timer_is_set: bool,
    /// Copies were lost, too.
    pub lost_copies: bool,
}

impl Sender {
    /// What is lost now, if anything was delivered since this was last asked. The reordering timer looks again when more time has passed.
    pub(super) fn look_for_losses(&mut self) -> Search {
        if self.flight.out() == 0 || !self.rack.take_to_look() {
            return Search::default();
        }
        let copies = self.flight.copies_out();
        let wait = self.mark_overdue();
        if let Some(us) = wait {
            let ticks = self.cfg.jiffies.from_micros(us + TIMER_MARGIN_US).min(self.rtt.rto());
            self.arm(Purpose::Reordering, ticks);
        }
        Search { timer_is_set: wait.is_some(), lost_copies: self.flight.copies_out() < copies }
    }

    /// RFC 8985 §6.2 step 5: marks what is lost; returns the time until the next judgement, µs.
    fn mark_overdue(&mut self) -> Option<u64> {
        let bounds = Bounds {
            recovering: self.recovery.state() >= CaState::Recovery,
            sacked: self.flight.sacked(),
            min_rtt_us: self.rtt.min_us(),
            srtt_us: self.rtt.srtt_us(),
        };
        let (patience, now_us) = (self.rack.patience_us(&bounds), self.now_us());
        let wait = self.rack.wait_us(&mut self.flight, patience, now_us);
        while let Some(id) = self.rack.overdue(&self.flight, patience, now_us) {
            self.mark_lost(id);
            self.flight.decided(id);
        }
        wait
    }

    /// Marks a segment lost and tells the congestion control that wants to know.
    pub(super) fn mark_lost(&mut self, id: u32) {
        if self.flight.mark_lost(id) && self.control.wants_lost {
            let (p, v) = (self.flight.lost_packet(id), self.view());
            self.control.cc.on_lost(&v, &mut self.w, &p);
        }
    }

    /// RFC 8985 §6.2 step 5: the reordering timer has expired.
    pub(super) fn on_reordering_timer(&mut self) {
        let marked = self.flight.marked_lost();
        self.mark_overdue();
        let newly_lost = self.flight.marked_lost().wrapping_sub(marked);
        if newly_lost > 0 {
            self.repair_without_ack(newly_lost);
        }
        if self.timer.purpose() != Some(Purpose::Retransmit) {
            self.rearm_rto();
        }
    }

    /// Losses were found by the timer. A recovery that begins so counts one packet as delivered, so that a retransmission may leave.
    fn repair_without_ack(&mut self, newly_lost: u32) {
        if !matches!(self.recovery.phase(), Phase::Recovery(_)) {
            self.enter_recovery(false);
            if !self.control.owns_window {
                self.reduce(1, newly_lost, false);
            }
        }
        self.retransmit_lost();
    }

    /// Marks lost all but what was sent within the last RTT that RACK measured (RFC 8985 §6.3, without the reordering window). A SACKed segment
    /// at the left edge shows that the receiver has dropped what it had: then none of its SACKs counts (RFC 2018 §8).
    pub(super) fn mark_lost_by_timeout(&mut self) {
        let reneged = self.flight.front().is_some_and(|s| s.is(Marks::SACKED));
        if reneged {
            self.flight.forget_sacks();
            self.recovery.receiver_reneged();
        }
        self.flight.begin_timeout();
        let (head, now_us, rtt_us) = (self.flight.front_id(), self.now_us(), u64::from(self.rack.rtt_us()));
        for id in self.flight.ids() {
            let s = self.flight.get(id);
            let recent = s.sent_us() + rtt_us > now_us;
            if s.is(Marks::SACKED) || (recent && !reneged && id != head) {
                continue;
            }
            self.mark_lost(id);
            self.flight.lost_by_timeout(id);
        }
    }
}
