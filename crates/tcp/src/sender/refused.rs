//! What the sender's own queue refuses: it was not sent, and the window shrinks as after a congestion signal.
//!
//! Source: observed behaviour of Linux 6.1 and 6.12 with a netem of few packets at the sender (no retransmission, `data_segs_out` counts
//! each attempt). Linux: `__tcp_transmit_skb()` (a result above 0), `tcp_enter_cwr()`, `tcp_retransmit_timer()`.
//! How it differs: a loop over several bursts ends at the refused one in Linux; here the later ones are taken back unseen.

use super::scoreboard::{EVER_RETRANS, PUSH, RETRANS};
use super::*;

impl Sender {
    /// The queue of the sender's own host has no room for `t`, the segment just given by [`Sender::poll_transmit`]. Its data wait
    /// for the next occasion (an ACK, a write, a timer); what was to follow in the same batch does too.
    pub fn on_refused(&mut self, now: Time, t: &Transmit) {
        self.now = now;
        if self.state != State::Established {
            return;
        }
        for (s, burst) in std::mem::take(&mut self.out).into_iter().rev() {
            if burst == 0 {
                self.out.push_front((s, 0));
                continue;
            }
            self.take_back(&s, burst);
            self.forget_in_host(burst);
            let n = u64::from(s.len.div_ceil(self.mss));
            self.stats.data_segs_out -= n;
            if s.end() <= self.snd_nxt {
                self.stats.retransmits -= n;
            }
        }
        if t.burst != 0 {
            self.take_back(&t.segment, t.burst);
        }
        self.tsq_throttled = false;
        self.enter_cwr();
        if self.packets_out == 0 {
            self.timer = None;
            self.check_probe_timer();
        }
        self.account();
    }

    /// Undoes a transmission: new data wait again in front of what is unsent, a retransmission is still to come.
    fn take_back(&mut self, s: &Segment, burst: u32) {
        let (id, n) = (self.board.lower_bound(s.seq), s.len.div_ceil(self.mss));
        if !self.board.contains(id) {
            return;
        }
        self.wstamp_ns = self.board.get(id).xmit_ns;
        if self.in_cwnd_reduction() {
            self.prr_out = self.prr_out.saturating_sub(n);
        }
        if self.board.get(id).has(EVER_RETRANS) {
            return self.take_back_retransmission(id, n, burst);
        }
        let push = self.board.get(id.wrapping_add(n - 1)).has(PUSH);
        for _ in 0..n {
            self.board.pop_back();
        }
        self.packets_out -= n;
        self.snd_nxt -= u64::from(s.len);
        self.unsent.push_front(Unsent { len: s.len, push });
    }

    fn take_back_retransmission(&mut self, id: u32, n: u32, burst: u32) {
        let tagged = self.board.get(id).has(RETRANS);
        for id in (0..n).map(|i| id.wrapping_add(i)).filter(|_| tagged) {
            self.board.get_mut(id).flags &= !RETRANS;
            self.board.delist(id);
            self.board.note_lost(id);
            self.retrans_out -= 1;
        }
        if !tagged {
            self.tlp_high_seq = 0; // no probe is out
        }
        if burst == self.rto_burst {
            // Local congestion: once more in half a second, without backoff.
            self.rto_burst = 0;
            self.backoff = self.backoff.saturating_sub(1);
            self.rto_jiffies >>= 1;
            self.arm(Pending::Retrans, self.jiffies.hz_over(2));
        }
    }
}
