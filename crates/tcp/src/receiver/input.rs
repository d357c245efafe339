//! Where an acceptable segment's data goes: the in-order queue, the out-of-order queue, or nowhere.
//!
//! Source: RFC 9293 §3.10.7.4, RFC 5681 §4.2; Linux: `tcp_data_queue()`, `tcp_data_queue_ofo()`, `tcp_ofo_queue()`,
//! `tcp_try_rmem_schedule()`, `tcp_prune_queue()`. See docs/models/receiver.md.

use super::reassembly::Buffer;
use super::{Receiver, State};
use tcpscape_base::{Flags, Segment, Time};

/// Segments shorter than this do not open the window.
const GROW_MIN: u32 = 128;
/// SACK blocks after which an ACK held back would lose information (`TCP_SACK_BLOCKS_EXPECTED`).
const SACK_BLOCKS_EXPECTED: usize = 2;

impl Receiver {
    // Linux: tcp_data_queue(), then tcp_ack_snd_check()
    #[inline]
    pub(super) fn data(&mut self, now: Time, s: &Segment, truesize: u32) {
        let (seq, end) = (s.seq, s.end());
        if seq == end {
            return;
        }
        self.stats.segments += 1;
        self.ooo.dsack = None;
        let left = self.window.left(self.rcv_nxt);
        if end <= self.rcv_nxt {
            self.stats.duplicates += 1;
            self.set_dsack(seq, end);
            self.acks.enter_quick(&self.jiffies, self.window.wnd);
            self.acks.scheduled = true;
        } else if seq <= self.rcv_nxt {
            if seq < self.rcv_nxt {
                self.set_dsack(seq, self.rcv_nxt);
            }
            if left == 0 {
                self.out_of_window();
            } else {
                self.in_order(now, s, truesize);
            }
        } else if seq >= self.rcv_nxt + u64::from(left) {
            self.out_of_window();
        } else {
            self.out_of_order(now, s, truesize);
        }
        if self.acks.scheduled {
            self.check_ack(now);
        }
    }

    fn out_of_window(&mut self) {
        self.stats.dropped_window += 1;
        self.acks.enter_quick(&self.jiffies, self.window.wnd);
        self.acks.scheduled = true;
    }

    #[inline]
    fn in_order(&mut self, now: Time, s: &Segment, truesize: u32) {
        let end = s.end();
        if !self.admits(s.seq) {
            self.stats.dropped_memory += 1;
            return;
        }
        if s.seq < self.highest {
            self.stats.max_reorder_extent = self.stats.max_reorder_extent.max(self.highest - self.rcv_nxt);
        }
        let fin = s.flags.has(Flags::FIN);
        let new = (end - self.rcv_nxt) as u32 - u32::from(fin);
        self.rcv_nxt = end;
        self.highest = self.highest.max(end);
        self.stats.bytes += u64::from(new);
        if new > 0 {
            let b = Buffer { len: new, truesize, frags: fragments(s) };
            self.used += u64::from(self.queue.push(b, self.kernel.skb_overhead));
        }
        self.acks.scheduled = true;
        if s.len > 0 {
            self.measure(s, truesize);
            self.tune.on_data(now, self.rcv_nxt, self.window.wnd);
            self.acks.on_data(now, &self.jiffies, self.window.wnd);
            self.check_ce(now, s);
            if s.len >= GROW_MIN {
                self.grow(s.len, truesize, true);
            }
        }
        if fin {
            self.finish(end);
        }
        if !self.ooo.is_empty() {
            self.drain();
            self.acks.at_once |= self.ooo.is_empty(); // RFC 5681 §4.2: the gap is filled
        }
        self.ooo.remove_sacks(self.rcv_nxt);
    }

    // Whether a segment in order is taken. 6.1 takes it unasked where nothing else waits to be read; 6.12 answers a lack of
    // memory with a closed window, whether the segment is taken or not. Linux: tcp_data_queue()
    #[inline]
    fn admits(&mut self, seq: u64) -> bool {
        let alone = self.queue.bytes == 0;
        if !self.kernel.is_6_12() {
            return alone || self.make_room(seq);
        }
        let room = self.make_room(seq);
        if !room {
            self.acks.no_memory = true;
            self.acks.at_once = true;
            self.acks.scheduled = true;
        }
        room || alone
    }

    // The sender's segment size, and what its payload costs in memory. Linux: tcp_measure_rcv_mss()
    #[inline]
    fn measure(&mut self, s: &Segment, truesize: u32) {
        let len = if self.gro { s.len.min(self.mss) } else { s.len };
        if self.window.measures() && len >= self.acks.rcv_mss && len != self.acks.rcv_mss && self.window.measure_ratio(s.len, truesize) {
            self.tune.space = self.tune.space.min(self.window.clamp);
        }
        self.acks.measure_mss(len, s.flags.has(Flags::PSH), s.flags.0 & (Flags::PSH.0 | Flags::FIN.0) == 0, self.window.advmss);
    }

    // The out-of-order buffers that have become in order. Linux: tcp_ofo_queue()
    fn drain(&mut self) {
        let high = self.rcv_nxt;
        while let Some(p) = self.ooo.pop(self.rcv_nxt, high) {
            self.used -= u64::from(p.truesize);
            if p.end <= self.rcv_nxt {
                continue;
            }
            let fin = self.fin == Some(p.end);
            let new = (p.end - self.rcv_nxt) as u32 - u32::from(fin);
            self.rcv_nxt = p.end;
            self.stats.bytes += u64::from(new);
            if new > 0 {
                let b = Buffer { len: new, truesize: p.truesize, frags: p.frags };
                self.used += u64::from(self.queue.push(b, self.kernel.skb_overhead));
            }
            if fin {
                self.finish(p.end);
                break;
            }
        }
    }

    fn finish(&mut self, end: u64) {
        self.fin = Some(end);
        self.state = State::CloseWait;
        self.acks.at_once = true;
        self.used -= self.ooo.clear();
    }

    // Linux: tcp_data_queue_ofo()
    fn out_of_order(&mut self, now: Time, s: &Segment, truesize: u32) {
        let (seq, end) = (s.seq, s.end());
        self.check_ce(now, s);
        if !self.make_room(seq) {
            self.stats.dropped_memory += 1;
            return;
        }
        if self.kernel.is_6_12() {
            self.measure(s, truesize);
        }
        self.acks.scheduled = true;
        self.stats.ooo_segments += 1;
        if s.flags.has(Flags::FIN) {
            self.fin = Some(end);
        }
        if seq < self.highest {
            self.stats.max_reorder_extent = self.stats.max_reorder_extent.max(self.highest - seq);
        }
        self.highest = self.highest.max(end);
        let b = Buffer { len: s.len, truesize, frags: fragments(s) };
        let queued = self.ooo.insert(seq, end, b, self.kernel.skb_overhead);
        if !self.sack {
            self.ooo.dsack = None;
        } else {
            let place = self.ooo.touch(seq, end);
            if place.0 >= SACK_BLOCKS_EXPECTED {
                self.flush_compressed(now);
            }
            self.ooo.promote(place, seq, end);
        }
        match queued {
            Some((delta, merged)) => {
                // A merged segment counts before the window grows, another one after it.
                let used = (self.used as i64 + delta) as u64;
                if merged {
                    self.used = used;
                }
                if self.sack {
                    self.grow(s.len, truesize, merged);
                }
                self.used = used;
            }
            None => self.stats.duplicates += 1,
        }
    }

    // `coalesced`: the payload may share the memory of its neighbour, so only the payload counts. Linux: truesize_adjust()
    #[inline]
    fn grow(&mut self, len: u32, truesize: u32, coalesced: bool) {
        let bare = truesize.saturating_sub(self.kernel.skb_overhead);
        let cost = if coalesced && bare >= len { bare } else { truesize };
        if self.window.grow(self.used, len, cost, self.acks.rcv_mss) {
            self.acks.quick |= 1;
        }
    }

    // Whether there is room for another segment, made by force if need be. Linux: tcp_try_rmem_schedule(), tcp_prune_queue()
    #[inline]
    fn make_room(&mut self, seq: u64) -> bool {
        self.used <= u64::from(self.window.rcvbuf) || self.prune(seq)
    }
    #[cold]
    fn prune(&mut self, seq: u64) -> bool {
        self.acks.quick = 0;
        self.window.squeeze(self.used);
        let fits = |r: &Receiver| r.used <= u64::from(r.window.rcvbuf);
        if fits(self) {
            return true;
        }
        let bloated = |bytes: u64, memory: u64| self.window.win_from(memory as i64) > bytes as i64;
        self.used -= self.ooo.collapse(bloated);
        let (before, after) = self.queue.collapse(bloated);
        self.used = self.used - before + after;
        // 6.6 and later spare what lies below the segment that wants in.
        let keep = if self.window.measures() { seq } else { 0 };
        while !fits(self) {
            let (freed, dropped) = self.ooo.trim(u64::from(self.window.rcvbuf >> 3), keep);
            if dropped == 0 {
                break;
            }
            self.used -= freed;
            self.stats.pruned += dropped;
            self.ooo.reset_sacks();
        }
        fits(self)
    }
}

/// Page fragments that hold a segment's payload: the sender copies its stream into blocks of 32 KiB (`sk_page_frag()`).
#[inline]
fn fragments(s: &Segment) -> u32 {
    let block = |seq: u64| (seq.wrapping_sub(1) >> 15) as u32;
    1 + block(s.seq + u64::from(s.len.max(1)) - 1).wrapping_sub(block(s.seq))
}
