//! Memory: what the queues hold of the send buffer, what the host's queue still has, when a writer is woken, how the buffer grows.
//!
//! Source: observed behaviour of Linux 6.1 (`SO_MEMINFO`). Linux: `sk_wmem_queued`, `tcp_check_space()`, `tcp_sndbuf_expand()`,
//! `tcp_shift_skb_data()`. How it differs: buffers already SACKed are neither split nor joined again by an older ACK, nor
//! joined across segments of different size. Not modelled: memory pressure.

use super::scoreboard::{Seg, HEAD, LOST, RETRANS, SACKED};
use super::*;

/// A burst given to the sender's host.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Queued {
    /// Nothing of it has left yet.
    pub here: bool,
    /// Memory that it still holds (its share of `sk_wmem_alloc`), with TCP small queues.
    pub memory: u32,
    /// Bytes of its frames that have not left.
    pub frames: u32,
}

impl Sender {
    /// `bytes` of the frames of that burst have left the sender's host, or were dropped in its queue. With TCP small queues
    /// their memory is free again (`tcp_wfree()`).
    pub fn on_departure(&mut self, now: Time, burst: u32, bytes: u32) {
        let Some(q) = self.host.get_mut(burst.wrapping_sub(self.host_base) as usize) else { return };
        q.here = false;
        let freed = if bytes >= q.frames { q.memory } else { (u64::from(q.memory) * u64::from(bytes) / u64::from(q.frames)) as u32 };
        q.memory -= freed;
        q.frames = q.frames.saturating_sub(bytes);
        self.local_queue -= u64::from(freed);
        while self.host.front().is_some_and(|q| !q.here && q.memory == 0) {
            self.host.pop_front();
            self.host_base = self.host_base.wrapping_add(1);
        }
        // Without a queue all that was sent in a batch has gone before the sender is called (a tasklet runs after the packets).
        if freed > 0 && self.tsq_throttled && !(self.bare_host && self.local_queue > 0) {
            self.now = now;
            self.tsq_throttled = false;
            self.on_pacing_timer();
            self.account();
        }
    }

    /// The burst has not come to the host after all.
    pub(super) fn forget_in_host(&mut self, burst: u32) {
        if let Some(q) = self.host.get_mut(burst.wrapping_sub(self.host_base) as usize) {
            self.local_queue -= u64::from(q.memory);
            *q = Queued::default();
        }
    }

    /// Whether the burst is still in a queue of the sender's host (`skb_still_in_host_queue()`).
    pub(super) fn in_host_queue(&self, burst: u32) -> bool {
        self.host.get(burst.wrapping_sub(self.host_base) as usize).is_some_and(|q| q.here)
    }

    /// Keeps the buffers' memory: a SACKed part is cut out of its buffer (`tcp_fragment()`), or joined to a SACKed buffer before
    /// it and then to one behind it (`tcp_shift_skb_data()`).
    pub(super) fn cut_sacked(&mut self, id: u32) {
        let sacked = |s: &Seg| s.flags & (SACKED | LOST | RETRANS) == SACKED;
        let joins = |b: &Scoreboard, id: u32| {
            let before = id.wrapping_sub(1);
            b.contains(before) && b.contains(id) && sacked(b.get(before)) && sacked(b.get(id)) && b.get(before).len == b.get(id).len
        };
        let next = id.wrapping_add(1);
        if !joins(&self.board, id) {
            self.begin_buffer(id);
        } else if self.join_buffer(id) && joins(&self.board, next) {
            self.join_buffer(next);
        }
        if self.board.contains(next) && !self.board.get(next).has(SACKED) {
            self.begin_buffer(next);
        }
    }

    /// From `id` on it is another buffer (`tcp_fragment()`).
    pub(super) fn begin_buffer(&mut self, id: u32) {
        if self.board.contains(id) && !self.board.get(id).has(HEAD) {
            self.board.get_mut(id).flags |= HEAD;
            self.wmem_queued += u64::from(self.kernel.skb_overhead);
        }
    }

    /// The buffer that begins with `id` becomes part of the one before it; false if none begins there.
    fn join_buffer(&mut self, id: u32) -> bool {
        let begins = self.board.get(id).has(HEAD);
        if begins {
            self.board.get_mut(id).flags &= !HEAD;
            self.wmem_queued = self.wmem_queued.saturating_sub(u64::from(self.kernel.skb_overhead));
        }
        begins
    }

    /// Gives back the memory of an acknowledged segment.
    pub(super) fn free(&mut self, len: u32, whole_buffer: bool) {
        let overhead = if whole_buffer { self.kernel.skb_overhead } else { 0 };
        self.wmem_queued = self.wmem_queued.saturating_sub(u64::from(len + overhead));
    }

    /// Wakes a blocked writer when a third of the buffer is free, after growing it (`tcp_check_space()`).
    pub(super) fn check_space(&mut self) {
        if !self.nospace {
            return;
        }
        if !self.sndbuf_locked && self.in_flight() < self.w.cwnd {
            self.expand_sndbuf();
            self.cwnd_stamp = self.jiffies.at(self.now);
        }
        let (buf, used) = (u64::from(self.sndbuf), self.wmem_queued);
        if buf > used && buf - used >= used >> 1 {
            self.nospace = false;
            self.wake = true;
        }
    }

    /// `tcp_sndbuf_expand()`: room for `sndbuf_expand` windows.
    pub(super) fn expand_sndbuf(&mut self) {
        if self.sndbuf_locked {
            return;
        }
        let per_mss = (self.mss + 12 + self.kernel.max_tcp_header + 320).next_power_of_two() + 256;
        let segs = self.w.cwnd.max(crate::cc::INIT_CWND).max(self.reordering + 1);
        let want = u64::from(self.cc.sndbuf_expand()) * u64::from(segs) * u64::from(per_mss);
        if u64::from(self.sndbuf) < want {
            self.sndbuf = want.min(u64::from(self.kernel.tcp_wmem_max)) as u32;
        }
    }
}
