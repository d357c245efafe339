//! What new data may leave: segmentation into super-packets, Nagle, window tests, small queues.
//!
//! Source: RFC 9293 §3.8, RFC 896 (Nagle), RFC 2861 (window validation), observed behaviour of Linux's GSO-by-default output path.
//! Linux: `tcp_sendmsg_locked()`, `tcp_write_xmit()`, `__tcp_transmit_skb()`. How it differs: nothing known.

use super::scoreboard::{APP_LIMITED, HEAD, PUSH};
use super::*;
use tcpscape_base::Ecn;

/// How `tcp_write_xmit()` was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Push {
    /// Everything that may go.
    All,
    /// One super-packet (`tcp_push_one()`).
    One,
    /// One segment as a tail loss probe, whatever the window.
    Probe,
}

impl Sender {
    /// Size up to which unsent data is gathered in one super-packet (`tcp_send_mss()`, `tcp_bound_to_half_wnd()`).
    fn size_goal(&mut self) -> u32 {
        if !self.gso {
            return self.mss;
        }
        let half = if self.max_window > 536 { self.max_window >> 1 } else { self.max_window };
        let bound = GSO_MAX.min(half.max(36));
        let goal = self.gso_segs * self.mss;
        if bound < goal || bound >= goal + self.mss {
            self.gso_segs = bound / self.mss;
        }
        (self.gso_segs * self.mss).max(self.mss)
    }

    pub(super) fn sendmsg(&mut self, bytes: u64) -> u64 {
        self.rate_check_app_limited();
        let goal = self.size_goal();
        let mut left = bytes;
        while left > 0 {
            let mut room = self.unsent.back().map_or(0, |u| goal.saturating_sub(u.len));
            if room == 0 {
                if self.wmem_queued >= u64::from(self.sndbuf) {
                    self.nospace = true;
                    break;
                }
                self.slow_start_after_idle_check();
                self.unsent.push_back(Unsent { len: 0, push: false });
                self.wmem_queued += u64::from(self.kernel.skb_overhead);
                room = goal;
            }
            let copy = u64::from(room).min(left) as u32;
            let tail = self.unsent.back_mut().expect("a tail was just made");
            tail.len += copy;
            tail.push &= left < bytes; // what a new write continues does not end a write any more
            let full = tail.len >= goal;
            self.write_seq += u64::from(copy);
            self.wmem_queued += u64::from(copy);
            left -= u64::from(copy);
            if left > 0 && full {
                if self.write_seq > self.pushed_seq + u64::from(self.max_window >> 1) {
                    self.mark_push();
                    self.push_pending();
                } else if self.unsent.len() == 1 {
                    self.write_xmit(Push::One);
                }
            }
        }
        let copied = bytes - left;
        self.stats.bytes_written += copied;
        if copied > 0 {
            self.mark_push();
            if self.corked(goal) {
                self.tsq_throttled = true;
            } else {
                self.push_pending();
            }
        }
        copied
    }

    /// What is written last gets PSH, if it still waits (`tcp_mark_push()`).
    fn mark_push(&mut self) {
        if let Some(tail) = self.unsent.back_mut() {
            tail.push = true;
            self.pushed_seq = self.write_seq;
        }
    }

    /// Whether a short write waits for more while the host's queue holds earlier data (`tcp_should_autocork()`).
    fn corked(&self, goal: u32) -> bool {
        let Some(tail) = self.unsent.back() else { return false };
        tail.len < goal && self.packets_out > 0 && self.local_queue >= u64::from(tail.len + self.kernel.skb_overhead)
    }

    /// `__tcp_push_pending_frames()`.
    pub(super) fn push_pending(&mut self) {
        if self.unsent.is_empty() {
            return;
        }
        if self.write_xmit(Push::All) {
            self.check_probe_timer();
        }
    }

    /// draft-cheng-iccrg-delivery-rate-estimation §3.3; Linux: `tcp_rate_check_app_limited()`.
    fn rate_check_app_limited(&mut self) {
        if self.write_seq - self.snd_nxt < u64::from(self.mss)
            && self.local_queue == 0
            && self.in_flight() < self.w.cwnd
            && self.lost_out <= self.retrans_out
        {
            self.app_limited = self.delivered.wrapping_add(self.in_flight()).max(1);
        }
    }

    fn cwnd_quota(&self) -> u32 {
        let (n, cwnd) = (self.in_flight(), self.w.cwnd);
        if n >= cwnd {
            0
        } else {
            (cwnd - n).min((cwnd >> 1).max(1))
        }
    }

    /// Whether the first unsent segment fits the receiver's window (`tcp_snd_wnd_test()`).
    pub(super) fn window_allows_head(&self) -> bool {
        self.unsent.front().is_some_and(|u| self.snd_nxt + u64::from(u.len.min(self.mss)) <= self.wnd_end())
    }

    // RFC 896 with Minshall's modification; Linux: tcp_nagle_check().
    fn nagle_holds(&self, partial: bool) -> bool {
        partial && !self.nodelay && self.packets_out > 0 && self.snd_sml > self.snd_una && self.snd_sml <= self.snd_nxt
    }

    /// Linux: `tcp_write_xmit()`. Returns whether data waits with nothing in flight.
    pub(super) fn write_xmit(&mut self, push: Push) -> bool {
        let max_segs = self.tso_segs();
        let (mut sent, mut cwnd_limited) = (0, false);
        while !self.unsent.is_empty() {
            if self.pacing_check() {
                break;
            }
            let mut quota = self.cwnd_quota();
            if quota == 0 {
                if push != Push::Probe {
                    break;
                }
                quota = 1;
            }
            if self.kernel.is_6_12() {
                self.grow_head(quota.min(max_segs).saturating_mul(self.mss));
            }
            let Some(&Unsent { len, .. }) = self.unsent.front() else { break };
            if !self.window_allows_head() {
                break;
            }
            let last = self.unsent.len() == 1;
            if len <= self.mss {
                if last && push != Push::Probe && self.nagle_holds(len < self.mss) {
                    break;
                }
            } else if push == Push::All && self.tso_should_defer(len, last, max_segs, &mut cwnd_limited) {
                break;
            }
            let limit = if len > self.mss { self.split_point(len, last, quota.min(max_segs)) } else { self.mss };
            if self.small_queue_full(len.min(limit), 0) {
                // It was cut to size before the queue was looked at, and stays so.
                self.split_head(limit);
                break;
            }
            sent += self.send_new(len.min(limit));
            if push != Push::All {
                break;
            }
        }
        cwnd_limited |= self.in_flight() >= self.w.cwnd;
        if sent > 0 || cwnd_limited {
            self.cwnd_validate(cwnd_limited);
        }
        if sent > 0 {
            if self.in_cwnd_reduction() {
                self.prr_out += sent;
            }
            if push != Push::Probe {
                self.schedule_loss_probe(false);
            }
            return false;
        }
        self.packets_out == 0 && !self.unsent.is_empty()
    }

    /// Fills the first unsent buffer up to `goal` bytes from the one behind it, which is gone when nothing of it is left.
    /// Linux 6.12: tcp_grow_skb()
    fn grow_head(&mut self, goal: u32) {
        let [head, next, ..] = self.unsent.make_contiguous() else { return };
        let moved = goal.saturating_sub(head.len).min(next.len);
        head.len += moved;
        next.len -= moved;
        if next.len == 0 {
            head.push |= next.push;
            self.unsent.remove(1);
            self.wmem_queued = self.wmem_queued.saturating_sub(u64::from(self.kernel.skb_overhead));
        }
    }

    /// Where to split a super-packet so that it fits the quota and the window (`tcp_mss_split_point()`).
    fn split_point(&self, len: u32, last: bool, segs: u32) -> u32 {
        let max = self.mss.saturating_mul(segs);
        let window = self.wnd_end() - self.snd_nxt;
        if u64::from(max) <= window && !last {
            return max;
        }
        let needed = u64::from(len).min(window) as u32;
        if max <= needed {
            return max;
        }
        let partial = needed % self.mss;
        if self.nagle_holds(partial != 0) {
            needed - partial
        } else {
            needed
        }
    }

    /// Waits for the next ACK if it is near and would let a larger super-packet go (`tcp_tso_should_defer()`).
    fn tso_should_defer(&self, len: u32, last: bool, max_segs: u32, cwnd_limited: &mut bool) -> bool {
        if self.ca_state >= CaState::Recovery || self.now.0 > self.wstamp_ns + 1_000_000 {
            return false;
        }
        let send_win = (self.wnd_end() - self.snd_nxt) as u32;
        let cong_win = (self.w.cwnd - self.in_flight()).saturating_mul(self.mss);
        let limit = send_win.min(cong_win);
        if limit >= max_segs * self.mss || (!last && limit >= len) {
            return false;
        }
        // net.ipv4.tcp_tso_win_divisor = 3: a third of the window is enough to go.
        if limit >= self.snd_wnd.min(self.w.cwnd.saturating_mul(self.mss)) / 3 {
            return false;
        }
        let Some(head) = self.board.front() else { return false };
        let srtt_ns = u64::from(self.rtt.srtt_us) * 125;
        let ack_in = (head.xmit_ns + srtt_ns) as i64 - self.now.0 as i64;
        if ack_in > (srtt_ns >> 1).min(1_000_000) as i64 {
            return false;
        }
        if cong_win < send_win && cong_win <= len {
            *cwnd_limited = true;
        }
        true
    }

    /// TCP small queues: more than about a millisecond's worth waits in the sender's own queue (`tcp_small_queue_check()`).
    pub(super) fn small_queue_full(&mut self, len: u32, factor: u32) -> bool {
        // tcp_rtx_queue_empty_or_single_skb()
        let single = || self.board.front().map(|s| s.burst) == self.board.back_id().map(|id| self.board.get(id).burst);
        if !self.tsq || single() {
            return false;
        }
        let truesize = u64::from(len + self.kernel.skb_overhead);
        let mut limit = (2 * truesize).max(self.w.pacing_rate >> 10);
        if !self.w.paced {
            limit = limit.min(1 << 20);
        }
        // sk_wmem_alloc counts from 1.
        if self.local_queue < limit << factor {
            return false;
        }
        self.tsq_throttled = true;
        true
    }

    /// Cuts the first unsent super-packet after `len` bytes if it is longer; PSH stays with the end of the write (`tso_fragment()`).
    fn split_head(&mut self, len: u32) {
        let Some(head) = self.unsent.front_mut().filter(|u| u.len > len) else { return };
        head.len -= len;
        self.unsent.push_front(Unsent { len, push: false });
        self.wmem_queued += u64::from(self.kernel.skb_overhead);
    }

    /// Sends the first `len` unsent bytes as one super-packet; returns its segments.
    fn send_new(&mut self, len: u32) -> u32 {
        self.split_head(len);
        let head = self.unsent.pop_front().expect("the caller saw it");
        let n = len.div_ceil(self.mss);
        // Every super-packet has PSH. Linux: __tcp_transmit_skb()
        let push = n > 1 || head.push;
        let seq = self.snd_nxt;
        let stamp = self.stamp_and_pace(len, n);
        let first = self.board.base().wrapping_add(self.board.len() as u32);
        for i in 0..n {
            let off = i * self.mss;
            self.board.push(seq + u64::from(off), self.mss.min(len - off));
        }
        self.mark_sent(first, n, stamp);
        self.board.get_mut(first).flags |= HEAD;
        if push {
            self.board.get_mut(first.wrapping_add(n - 1)).flags |= PUSH;
        }
        if len % self.mss != 0 {
            self.snd_sml = seq + u64::from(len);
        }
        let prior = self.packets_out;
        self.snd_nxt += u64::from(len);
        self.packets_out += n;
        if prior == 0 || self.pending() == Some(Pending::LossProbe) {
            self.rearm_rto();
        }
        self.check_space();
        let (cwr, ecn) = self.ecn.data();
        self.emit(seq, len, stamp, (if push { cwr.with(Flags::PSH) } else { cwr }, ecn));
        n
    }

    pub(super) fn emit(&mut self, seq: u64, len: u32, stamp: u64, (flags, ecn): (Flags, Ecn)) {
        let s = Segment { len, ecn, tsval: Self::ts_of(stamp), flags: self.ecn.ack().with(flags), ..self.bare_ack(seq) };
        self.out.push_back((s, self.burst));
        if self.watch_host {
            while self.host_base.wrapping_add(self.host.len() as u32) != self.burst {
                self.host.push_back(Queued::default());
            }
            let packets = len.div_ceil(self.mss).max(1);
            // Without a queue in front of it the device segments at once, and each segment has its own overhead.
            let skbs = if self.bare_host { packets } else { 1 };
            let memory = if self.tsq && !(self.bare_host && self.in_process) { len + skbs * self.kernel.skb_overhead } else { 0 };
            self.local_queue += u64::from(memory);
            let headers = (s.frame_len() - len) * packets;
            self.host.push_back(Queued { here: true, memory, frames: len + headers });
        }
    }

    /// Sends a pure ACK. It moves the clock of transmissions like data does (`tcp_wstamp_ns`).
    pub(super) fn send_ack(&mut self) {
        self.wstamp_ns = self.wstamp_ns.max(self.now.0);
        let ack = self.bare_ack(self.snd_nxt);
        self.out.push_back((ack, 0));
    }

    /// A pure ACK or window probe at sequence number `seq`.
    pub(super) fn bare_ack(&self, seq: u64) -> Segment {
        Segment {
            seq,
            ack: self.rcv_nxt,
            wnd: 64_256,
            flags: self.ecn.ack(),
            tsval: self.tsval(),
            tsecr: self.ts_recent,
            ecn: self.ecn.control(),
            ..Segment::default()
        }
    }

    /// Stamps `n` entries from `first` as one burst sent at `stamp` (`tcp_rate_skb_sent()`).
    pub(super) fn mark_sent(&mut self, first: u32, n: u32, stamp: u64) {
        if self.packets_out == 0 {
            self.first_tx_mstamp = stamp / 1_000;
            self.delivered_mstamp = stamp / 1_000;
        }
        self.burst = self.burst.wrapping_add(1);
        let app = if self.app_limited != 0 { APP_LIMITED } else { 0 };
        let (in_flight, lost) = (self.in_flight(), self.lost);
        for i in 0..n {
            let id = first.wrapping_add(i);
            let (burst, delivered) = (self.burst, self.delivered);
            let (dm, fm) = (self.delivered_mstamp, self.first_tx_mstamp);
            let s = self.board.get_mut(id);
            s.xmit_ns = stamp;
            s.burst = burst;
            s.tx_delivered = delivered;
            s.tx_lost = lost;
            s.set_tx_in_flight(in_flight + i + 1);
            s.tx_delivered_mstamp = dm;
            s.tx_first_mstamp = fm;
            s.flags = s.flags & !APP_LIMITED | app;
            self.board.sent(id);
        }
    }

    /// A zero-window probe that may carry what little the window admits (`tcp_write_wakeup()`).
    pub(super) fn write_wakeup(&mut self) {
        let room = (self.wnd_end() - self.snd_nxt) as u32;
        let len = self.unsent.front().map_or(0, |u| u.len).min(room).min(self.mss);
        if len > 0 {
            self.send_new(len);
        }
    }

    // RFC 2861, RFC 7661 in spirit; Linux: tcp_cwnd_validate().
    fn cwnd_validate(&mut self, limited: bool) {
        if self.snd_una >= self.cwnd_usage_seq || limited || (!self.is_cwnd_limited && self.packets_out > self.max_packets_out) {
            self.is_cwnd_limited = limited;
            self.max_packets_out = self.packets_out;
            self.cwnd_usage_seq = self.snd_nxt;
        }
        let now = self.jiffies.at(self.now);
        if self.is_cwnd_limited || (self.w.in_slow_start() && self.w.cwnd < 2 * self.max_packets_out) {
            self.cwnd_used = 0;
            self.cwnd_stamp = now;
            return;
        }
        self.cwnd_used = self.cwnd_used.max(self.packets_out);
        if self.kernel.slow_start_after_idle && now.saturating_sub(self.cwnd_stamp) >= self.rto_jiffies && !self.owns_window {
            self.cwnd_application_limited(now);
        }
    }

    // Linux: tcp_cwnd_application_limited(): halfway back to what was used.
    fn cwnd_application_limited(&mut self, now: u64) {
        if self.ca_state == CaState::Open && !self.nospace {
            let used = self.cwnd_used.max(crate::cc::INIT_CWND);
            if used < self.w.cwnd {
                self.w.ssthresh = self.current_ssthresh();
                self.w.cwnd = (self.w.cwnd + used) >> 1;
            }
            self.cwnd_used = 0;
        }
        self.cwnd_stamp = now;
    }

    // RFC 2861 §2; Linux: tcp_slow_start_after_idle_check(), tcp_cwnd_restart().
    pub(super) fn slow_start_after_idle_check(&mut self) {
        if !self.kernel.slow_start_after_idle || self.packets_out > 0 || self.owns_window {
            return;
        }
        let now = self.jiffies.at(self.now);
        let mut idle = now.saturating_sub(self.lsndtime) as i64;
        let rto = self.rto_jiffies as i64;
        if idle <= rto {
            return;
        }
        self.ca_event(CaEvent::CwndRestart);
        self.w.ssthresh = self.current_ssthresh();
        let mut cwnd = self.w.cwnd;
        let restart = crate::cc::INIT_CWND.min(cwnd);
        loop {
            idle -= rto;
            if idle <= 0 || cwnd <= restart {
                break;
            }
            cwnd >>= 1;
        }
        self.w.cwnd = cwnd.max(restart);
        self.cwnd_stamp = now;
        self.cwnd_used = 0;
    }
}
