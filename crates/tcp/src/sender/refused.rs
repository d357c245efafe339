//! What the sender's own queue refuses: it was not sent, and the window shrinks as after a congestion signal.
//!
//! Source: observed behaviour of Linux 6.1 and 6.12 with a netem of few packets at the sender (no retransmission, every attempt is counted
//! as sent); docs/models/tcp/sender.md, "Refused by the own queue". How it differs: a loop over several bursts ends at the refused one in Linux;
//! here the later ones are taken back unseen.

use super::config::Transmit;
use super::flight::Marks;
use super::send_buffer::Unsent;
use super::timer::Purpose;
use super::Sender;
use tcpscape_base::{Segment, Time};

impl Sender {
    /// The queue of the sender's own host has no room for `t`, the segment just given by [`Sender::poll_transmit`]. Its data wait
    /// for the next occasion (an ACK, a write, a timer); what was to follow in the same batch does too.
    pub fn on_refused(&mut self, now: Time, t: &Transmit) {
        self.set_now(now);
        if !self.handshake.is_done() {
            return;
        }
        for (s, burst) in std::mem::take(&mut self.out).into_iter().rev() {
            if burst == 0 {
                self.out.push_front((s, 0));
                continue;
            }
            self.take_back(&s, burst);
            self.host.take_back(burst);
            let n = u64::from(s.len.div_ceil(self.cfg.mss));
            self.stats.data_segs_out -= n;
            if s.end() <= self.flight.nxt() {
                self.stats.retransmits -= n;
            }
        }
        if t.burst != 0 {
            self.take_back(&t.segment, t.burst);
        }
        self.host.release();
        self.enter_cwr();
        if self.flight.out() == 0 {
            self.timer.stop();
            self.schedule_window_probe();
        }
        self.account();
    }

    /// Undoes a transmission: new data wait again in front of what is unsent, a retransmission is still to come.
    fn take_back(&mut self, s: &Segment, burst: u32) {
        let n = s.len.div_ceil(self.cfg.mss);
        let Some(id) = self.flight.find(s.seq) else { return };
        self.pacer.take_back(self.flight.get(id).sent_ns);
        if let Some(prr) = self.recovery.reduction() {
            prr.taken_back(n);
        }
        if self.flight.get(id).is(Marks::EVER_RESENT) {
            return self.take_back_copies(id, n, burst);
        }
        let push = self.flight.take_back(n, s.len);
        self.buffer.put_back(Unsent { len: s.len, push });
    }

    fn take_back_copies(&mut self, id: u32, n: u32, burst: u32) {
        if self.flight.get(id).is(Marks::COPY_OUT) {
            self.flight.take_back_copies(id, n);
        } else {
            self.tlp.end(); // no probe is out
        }
        if self.host.take_timeout(burst) {
            // Local congestion: once more in half a second, without back-off.
            self.rtt.undo_doubling();
            self.arm(Purpose::Retransmit, self.cfg.jiffies.hz_over(2));
        }
    }
}
