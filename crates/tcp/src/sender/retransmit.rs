//! Sending again what was lost, as far as the window allows.
//!
//! Source: RFC 6675, RFC 6937; Linux: `tcp_xmit_retransmit_queue()`, `__tcp_retransmit_skb()`. How it differs: small segments are not merged
//! when they are retransmitted (`tcp_retrans_try_collapse()`).

use super::scoreboard::{EVER_RETRANS, LOST, PUSH, RETRANS, SACKED};
use super::*;

impl Sender {
    /// Sends lost segments again as far as the window allows (`tcp_xmit_retransmit_queue()`).
    pub(super) fn retransmit_lost(&mut self) {
        if self.packets_out == 0 {
            return;
        }
        let max_segs = self.tso_segs();
        let mut rearm = false;
        while self.in_flight() < self.w.cwnd && self.retrans_out < self.lost_out {
            let Some(id) = self.board.next_lost() else { break };
            if self.pacing_check() {
                break;
            }
            let len = self.same_burst(id, u32::MAX, u64::MAX).1;
            if self.small_queue_full(len, 1) {
                break;
            }
            let n = self.retransmit(id, (self.w.cwnd - self.in_flight()).min(max_segs));
            if n == 0 {
                break;
            }
            if self.in_cwnd_reduction() {
                self.prr_out += n;
            }
            rearm |= id == self.board.base() && self.pending() != Some(Pending::Reorder);
        }
        if rearm {
            self.arm_paced(Pending::Retrans, self.rto_jiffies);
        }
    }

    /// Retransmits up to `segs` segments from `id` and tags them (`tcp_retransmit_skb()`); returns how many.
    pub(super) fn retransmit(&mut self, id: u32, segs: u32) -> u32 {
        if self.held_in_host_queue(id) {
            // A failed attempt leaves its mark as the kernel's does.
            if self.retrans_stamp == 0 {
                self.retrans_stamp = Self::ts_of(self.board.get(id).xmit_ns);
            }
            let n = self.same_burst(id, u32::MAX, u64::MAX).0;
            self.undo_retrans = self.undo_retrans.max(0) + n as i32;
            return 0;
        }
        let n = self.transmit_again(id, segs);
        for i in 0..n {
            self.board.get_mut(id.wrapping_add(i)).flags |= RETRANS;
        }
        self.retrans_out += n;
        if n > 0 && self.retrans_stamp == 0 {
            self.retrans_stamp = Self::ts_of(self.board.get(id).xmit_ns);
        }
        self.undo_retrans = self.undo_retrans.max(0) + n.max(1) as i32;
        n
    }

    /// Sends `id` again, with those of its burst that share its fate, up to `segs`; returns how many (`__tcp_retransmit_skb()`).
    pub(super) fn transmit_again(&mut self, id: u32, segs: u32) -> u32 {
        let first = *self.board.get(id);
        let end = self.wnd_end();
        if first.end() > end && id != self.board.base() {
            return 0;
        }
        let (n, len) = self.same_burst(id, segs, end);
        self.begin_buffer(id);
        self.begin_buffer(id.wrapping_add(n));
        let stamp = self.stamp_and_pace(len, n);
        self.mark_sent(id, n, stamp);
        for i in 0..n {
            self.board.get_mut(id.wrapping_add(i)).flags |= EVER_RETRANS;
        }
        self.stats.retransmits += u64::from(n);
        let last = self.board.get_mut(id.wrapping_add(n - 1));
        if n > 1 {
            last.flags |= PUSH;
        }
        let push = last.flags & PUSH != 0;
        let flags = if push { Flags::PSH } else { Flags::default() };
        self.emit(first.seq, len, stamp, (flags, self.ecn.control()));
        n
    }

    /// Up to `segs` segments from `id` that left in one burst and share their fate, up to sequence number `end`: count and bytes.
    pub(super) fn same_burst(&self, id: u32, segs: u32, end: u64) -> (u32, u32) {
        let fate = |f: u8| f & (SACKED | LOST | RETRANS | EVER_RETRANS);
        let first = self.board.get(id);
        let (mut n, mut len) = (1, first.len);
        while n < segs && self.board.contains(id.wrapping_add(n)) {
            let s = self.board.get(id.wrapping_add(n));
            if s.burst != first.burst || fate(s.flags) != fate(first.flags) || s.end() > end {
                break;
            }
            len += s.len;
            n += 1;
        }
        (n, len)
    }

    /// Whether the last transmission of `id` still waits in a queue of the sender's host: it is not sent again then.
    pub(super) fn held_in_host_queue(&mut self, id: u32) -> bool {
        let held = self.in_host_queue(self.board.get(id).burst);
        self.stats.held_in_host_queue += u64::from(held);
        held
    }
}
