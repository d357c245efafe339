//! Sending again what was lost, as far as the window allows.
//!
//! Source: RFC 6675 §5 step C, RFC 6937 §3. How it differs: small segments are not merged when they are sent again. Not modelled: rescue
//! retransmissions of RFC 6675 (the loss probe does their work).

use super::timer::Purpose;
use super::Sender;
use tcpscape_base::Flags;

impl Sender {
    /// Sends lost segments again, lowest first.
    pub(super) fn retransmit_lost(&mut self) {
        if self.flight.out() == 0 {
            return;
        }
        let most = self.burst_segments();
        let mut restart = false;
        while self.flight.in_flight() < self.w.cwnd && self.flight.has_lost_to_send() {
            let Some(id) = self.flight.next_lost() else { break };
            if self.wait_for_pacing() {
                break;
            }
            let len = self.flight.same_state_run(id, u32::MAX, u64::MAX).1;
            if self.throttle_if_host_is_full(len, 2) {
                break;
            }
            let n = self.retransmit(id, (self.w.cwnd - self.flight.in_flight()).min(most));
            if n == 0 {
                break;
            }
            if let Some(prr) = self.recovery.reduction() {
                prr.sent(n);
            }
            restart |= id == self.flight.front_id() && self.timer.purpose() != Some(Purpose::Reordering);
        }
        if restart {
            self.arm_paced(Purpose::Retransmit, self.rtt.rto());
        }
    }

    /// Sends up to `most` segments from `id` again and counts them as copies in flight; returns how many left.
    ///
    /// A burst that still waits in the host's own queue is not sent again, but counts as if it had been.
    pub(super) fn retransmit(&mut self, id: u32, most: u32) -> u32 {
        if self.host.holds(self.flight.get(id).burst) {
            self.stats.held_in_host_queue += 1;
            let (n, _) = self.flight.same_state_run(id, u32::MAX, u64::MAX);
            self.recovery.undo.resent(n, self.timestamp_of(id));
            return 0;
        }
        let n = self.transmit_again(id, most);
        if n > 0 {
            self.flight.count_copies(id, n);
            self.recovery.undo.resent(n, self.timestamp_of(id));
        } else {
            self.recovery.undo.not_resent(1);
        }
        n
    }

    /// Sends `id` again, with those of its burst that share its fate, up to `most`; returns how many left.
    pub(super) fn transmit_again(&mut self, id: u32, most: u32) -> u32 {
        let end = self.window_end();
        let s = *self.flight.get(id);
        if s.end() > end && id != self.flight.front_id() {
            return 0; // the receiver has closed its window over it
        }
        let (n, len) = self.flight.same_state_run(id, most, end);
        let departure_ns = self.depart(len, n);
        let departure = self.delivery.depart(departure_ns, false, self.flight.marked_lost());
        let push = self.flight.send_again(id, n, &departure);
        self.stats.retransmits += u64::from(n);
        let flags = if push { Flags::PSH } else { Flags::default() };
        self.emit(s.seq, len, departure_ns, (flags, self.ecn.control()));
        n
    }

    fn timestamp_of(&self, id: u32) -> u32 {
        super::flight::timestamp(self.flight.get(id).sent_ns)
    }
}
