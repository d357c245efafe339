//! What new data may leave: super-packets, Nagle's rule, the windows, the host's queue.
//!
//! Source: RFC 9293 §3.8 and §3.8.6.2.1 (sender's silly-window avoidance), RFC 896 (Nagle),
//! docs/models/tcp/sender.md (super-packets). How it differs: nothing known. Not modelled: urgent data.

use super::send_buffer::Unsent;
use super::timer::Purpose;
use super::Sender;
use tcpscape_base::{CaState, Ecn, Flags, Segment};

/// Why data are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Push {
    /// Everything that may go.
    All,
    /// One super-packet, while a write goes on.
    One,
    /// One segment as a tail loss probe, whatever the congestion window.
    Probe,
}

/// What becomes of the next unsent data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// So many bytes leave as one burst.
    Leaves(u32),
    /// They wait, or there are none.
    Waits,
    /// They wait for a larger burst, which the congestion window does not admit yet.
    WaitsForCwnd,
}

impl Sender {
    // ---- writing ----

    /// Takes in what the application writes; returns how many bytes there was room for.
    pub(super) fn take_write(&mut self, bytes: u64) -> u64 {
        self.note_application_limit();
        let goal = self.size_goal();
        let mut left = bytes;
        while left > 0 {
            if self.buffer.room_in_tail(goal) == 0 {
                if !self.buffer.has_room_or_blocks(&self.flight) {
                    break;
                }
                self.restart_after_pause();
                self.buffer.begin();
            }
            let taken = u64::from(self.buffer.room_in_tail(goal)).min(left) as u32;
            left -= u64::from(taken);
            let is_first = left + u64::from(taken) == bytes;
            let full = self.buffer.append(taken, is_first, goal);
            if left > 0 && full {
                self.send_while_writing();
            }
        }
        let written = bytes - left;
        self.stats.bytes_written += written;
        if written > 0 {
            self.buffer.push();
            if self.is_corked(goal) {
                self.host.throttle();
            } else {
                self.push_pending();
            }
        }
        written
    }

    /// A long write sends before it ends: all when half of the peer's largest window was gathered, else the first super-packet.
    fn send_while_writing(&mut self) {
        if self.buffer.is_long_unpushed(self.peer.max_window()) {
            self.buffer.push();
            self.push_pending();
        } else if self.buffer.is_single() {
            self.send_pending(Push::One);
        }
    }

    /// Size up to which unsent data are gathered: a super-packet, at most half of the peer's largest window.
    fn size_goal(&mut self) -> u32 {
        if !self.cfg.gso {
            return self.cfg.mss;
        }
        let window = self.peer.max_window();
        let half = if window > SMALL_WINDOW { window / 2 } else { window };
        self.buffer.size_goal(GSO_MAX.min(half.max(LEAST_BOUND)), self.cfg.mss)
    }

    /// Whether a short write waits for more while the host's queue holds earlier data.
    fn is_corked(&self, goal: u32) -> bool {
        let short = self.buffer.tail().filter(|tail| tail.len < goal);
        short.is_some_and(|tail| self.flight.out() > 0 && self.host.memory() >= u64::from(tail.len + self.cfg.kernel.skb_overhead))
    }

    /// draft-cheng-iccrg-delivery-rate-estimation §3.4: what was written before has left, the window is open, nothing waits to be sent again.
    fn note_application_limit(&mut self) {
        let drained = self.buffer.end() - self.flight.nxt() < u64::from(self.cfg.mss) && self.host.memory() == 0;
        if drained && self.flight.in_flight() < self.w.cwnd && !self.flight.has_lost_to_send() {
            self.delivery.limit_by_application(self.flight.in_flight());
        }
    }

    // ---- sending ----

    /// Sends what may go, and sees to it that a closed window is probed.
    pub(super) fn push_pending(&mut self) {
        if !self.buffer.is_empty() && self.send_pending(Push::All) {
            self.schedule_window_probe();
        }
    }

    /// Sends unsent data as far as they may go; returns whether data wait with nothing in flight.
    pub(super) fn send_pending(&mut self, push: Push) -> bool {
        let most = self.burst_segments();
        let (mut sent, mut limited) = (0, false);
        loop {
            match self.next(push, most) {
                Next::Leaves(len) => sent += self.send_new(len),
                Next::Waits => break,
                Next::WaitsForCwnd => {
                    limited = true;
                    break;
                }
            }
            if push != Push::All {
                break;
            }
        }
        limited |= self.flight.in_flight() >= self.w.cwnd;
        if sent > 0 || limited {
            self.judge_window_use(limited);
        }
        if sent == 0 {
            return self.flight.out() == 0 && !self.buffer.is_empty();
        }
        if let Some(prr) = self.recovery.reduction() {
            prr.sent(sent);
        }
        if push != Push::Probe {
            self.schedule_probe_after_sending();
        }
        false
    }

    /// Segments that one burst may hold: what the rate sends in 1/1024 s, and more the shorter the path; however few, no more than a super-packet has
    /// room for.
    pub(super) fn burst_segments(&self) -> u32 {
        if !self.cfg.gso {
            return 1;
        }
        let halvings = self.rtt.min_us() / HALVING_RTT_US;
        let by_rtt = GSO_MAX.checked_shr(halvings).unwrap_or(0);
        let bytes = (self.w.pacing_rate / 1_024 + u64::from(by_rtt)).min(u64::from(GSO_MAX)) as u32;
        let room = (GSO_MAX / self.cfg.mss).max(1);
        let segments = (bytes / self.cfg.mss).max(self.control.cc.min_tso_segs(&self.w)).min(room);
        if self.control.owns_window {
            return segments.min(self.control.cc.max_tso_segs(&self.w)).max(1);
        }
        segments
    }

    /// What becomes of the next unsent data; `most` segments make a burst.
    fn next(&mut self, push: Push, most: u32) -> Next {
        if self.buffer.is_empty() || self.wait_for_pacing() {
            return Next::Waits;
        }
        let quota = match self.cwnd_quota() {
            0 if push == Push::Probe => 1,
            0 => return Next::Waits,
            n => n,
        };
        if self.cfg.kernel.is_6_12() {
            self.buffer.grow_head(quota.min(most).saturating_mul(self.cfg.mss));
        }
        let Some(&Unsent { len, .. }) = self.buffer.head() else { return Next::Waits };
        if !self.window_allows_head() {
            return Next::Waits;
        }
        let single = self.buffer.is_single();
        let burst = if len <= self.cfg.mss {
            if single && push != Push::Probe && self.nagle_holds(len < self.cfg.mss) {
                return Next::Waits;
            }
            self.cfg.mss
        } else {
            if push == Push::All {
                if let Some(wait) = self.waits_for_larger(len, single, most) {
                    return wait;
                }
            }
            self.burst_length(len, single, quota.min(most))
        };
        if self.throttle_if_host_is_full(len.min(burst), 1) {
            // It was cut to size before the queue was looked at, and stays so.
            self.buffer.cut_head(burst);
            return Next::Waits;
        }
        Next::Leaves(len.min(burst))
    }

    /// Segments that the congestion window admits in one burst: at most half of it.
    fn cwnd_quota(&self) -> u32 {
        let cwnd = self.w.cwnd;
        cwnd.saturating_sub(self.flight.in_flight()).min((cwnd / 2).max(1))
    }

    /// The sequence number behind the receiver's window.
    #[inline]
    pub(super) fn window_end(&self) -> u64 {
        self.peer.window_end(self.flight.una())
    }

    /// Whether the first unsent segment fits into the receiver's window.
    pub(super) fn window_allows_head(&self) -> bool {
        self.buffer.head().is_some_and(|u| self.flight.nxt() + u64::from(u.len.min(self.cfg.mss)) <= self.window_end())
    }

    /// Whether new data wait that the receiver's window admits, at least in part.
    pub(super) fn may_send_new(&self) -> bool {
        !self.buffer.is_empty() && self.window_end() > self.flight.nxt()
    }

    /// RFC 896 with Minshall's modification: a short segment waits while another short one is in flight.
    fn nagle_holds(&self, short: bool) -> bool {
        short && !self.cfg.nodelay && self.buffer.small_in_flight(&self.flight)
    }

    /// How much of `len` unsent bytes leaves as one burst: what `segments` hold and the window admits, the rest of the last segment only if
    /// it is the end of what was written and Nagle's rule lets it go.
    fn burst_length(&self, len: u32, single: bool, segments: u32) -> u32 {
        let full = self.cfg.mss.saturating_mul(segments);
        let window = self.window_end() - self.flight.nxt();
        let admitted = u64::from(len).min(window) as u32;
        if full <= admitted || (!single && u64::from(full) <= window) {
            return full;
        }
        let rest = admitted % self.cfg.mss;
        let held = if self.nagle_holds(rest > 0) { rest } else { 0 };
        admitted - held
    }

    /// Whether `len` unsent bytes wait for the next ACK, because it is near and would let a larger burst go: docs/models/tcp/sender.md, "Waiting
    /// for a fuller burst".
    fn waits_for_larger(&self, len: u32, single: bool, most: u32) -> Option<Next> {
        let mss = self.cfg.mss;
        let by_window = (self.window_end() - self.flight.nxt()) as u32;
        let by_cwnd = (self.w.cwnd - self.flight.in_flight()).saturating_mul(mss);
        let admitted = by_window.min(by_cwnd);
        let whole_window = self.peer.window().min(self.w.cwnd.saturating_mul(mss));
        let is_large = admitted >= most * mss || admitted >= whole_window / WINDOW_SHARE || (!single && admitted >= len);
        if is_large || !self.ack_is_near() {
            return None;
        }
        Some(if by_cwnd < by_window && by_cwnd <= len { Next::WaitsForCwnd } else { Next::Waits })
    }

    /// Whether it is worth to wait for the next ACK: the last transmission was within 1 ms, nothing is being repaired, and the ACK of the oldest
    /// segment is due within 1 ms or half the RTT.
    fn ack_is_near(&self) -> bool {
        let now_ns = self.now.time.0;
        let repairing = self.recovery.state() >= CaState::Recovery;
        if repairing || now_ns.saturating_sub(self.pacer.next_ns()) > NEAR_NS {
            return false;
        }
        let srtt_ns = u64::from(self.rtt.srtt8_us()) * 125;
        let near_ns = now_ns + NEAR_NS.min(srtt_ns / 2);
        self.flight.front().is_some_and(|oldest| oldest.sent_ns + srtt_ns <= near_ns)
    }

    /// TCP small queues: whether so much waits in the host's own queue that `len` more bytes wait here. The limit is two such bursts or what
    /// the rate sends in 1/1024 s, times `factor`.
    pub(super) fn throttle_if_host_is_full(&mut self, len: u32, factor: u64) -> bool {
        if !self.cfg.tsq || self.flight.is_one_burst() {
            return false;
        }
        let memory = u64::from(len + self.cfg.kernel.skb_overhead);
        let limit = (2 * memory).max(self.w.pacing_rate / 1_024);
        let limit = if self.w.paced { limit } else { limit.min(u64::from(self.cfg.kernel.limit_output_bytes)) };
        let full = self.host.memory() >= limit * factor;
        if full {
            self.host.throttle();
        }
        full
    }

    /// Sends the first `len` unsent bytes as one burst; returns its segments.
    fn send_new(&mut self, len: u32) -> u32 {
        self.buffer.cut_head(len);
        let Some(head) = self.buffer.take_head() else { return 0 };
        let (segments, seq, was_out) = (len.div_ceil(self.cfg.mss), self.flight.nxt(), self.flight.out());
        // Every super-packet has PSH.
        let push = segments > 1 || head.push;
        let departure_ns = self.depart(len, segments);
        let departure = self.delivery.depart(departure_ns, was_out == 0, self.flight.marked_lost());
        self.flight.send(len, self.cfg.mss, push, &departure);
        if len % self.cfg.mss != 0 {
            self.buffer.small_sent(self.flight.nxt());
        }
        if was_out == 0 || self.timer.purpose() == Some(Purpose::LossProbe) {
            self.rearm_rto();
        }
        self.check_space();
        let (cwr, ecn) = self.ecn.data();
        let flags = if push { cwr.with(Flags::PSH) } else { cwr };
        self.emit(seq, len, departure_ns, (flags, ecn));
        segments
    }

    /// A window probe that carries what little of the next segment the window admits.
    pub(super) fn send_what_fits(&mut self) {
        let room = (self.window_end() - self.flight.nxt()) as u32;
        let len = self.buffer.head().map_or(0, |u| u.len).min(room).min(self.cfg.mss);
        if len > 0 {
            self.send_new(len);
        }
    }

    /// Gives a burst to the host.
    pub(super) fn emit(&mut self, seq: u64, len: u32, departure_ns: u64, (flags, ecn): (Flags, Ecn)) {
        let timestamp = super::flight::timestamp(departure_ns);
        let s = Segment { len, ecn, tsval: timestamp, flags: self.ecn.ack().with(flags), ..self.bare_ack(seq) };
        let burst = self.flight.last_burst();
        self.out.push_back((s, burst));
        if self.cfg.watch_host {
            let packets = len.div_ceil(self.cfg.mss).max(1);
            let headers = (s.frame_len() - len) * packets;
            self.host.give(burst, self.host_memory(len, packets), len + headers);
        }
    }

    /// Memory that a burst holds in the host's queue. Without a queue in front of it the device cuts at once, and each packet has its own
    /// overhead; what a process sends has left then before it is asked.
    fn host_memory(&self, len: u32, packets: u32) -> u32 {
        let buffers = if self.cfg.bare_host { packets } else { 1 };
        if self.cfg.tsq && !(self.cfg.bare_host && self.host.is_in_process()) {
            len + buffers * self.cfg.kernel.skb_overhead
        } else {
            0
        }
    }

    /// Sends a pure ACK. It moves the clock of departures like data does.
    pub(super) fn send_ack(&mut self) {
        self.pacer.touch(self.now.time);
        let ack = self.bare_ack(self.flight.nxt());
        self.out.push_back((ack, 0));
    }

    /// A pure ACK or window probe at sequence number `seq`.
    pub(super) fn bare_ack(&self, seq: u64) -> Segment {
        Segment {
            seq,
            ack: self.peer.rcv_nxt,
            wnd: OWN_WINDOW,
            flags: self.ecn.ack(),
            tsval: self.timestamp(),
            tsecr: self.peer.ts_recent(),
            ecn: self.ecn.control(),
            ..Segment::default()
        }
    }
}

/// Largest payload of a super-packet, bytes: 64 KiB less 192 of headers and one.
const GSO_MAX: u32 = 65_536 - 192 - 1;
/// Every so many µs of the smallest RTT halve what a burst may hold beyond the rate.
const HALVING_RTT_US: u32 = 512;
/// A receive window up to this, bytes, is used as a whole by one super-packet.
const SMALL_WINDOW: u32 = 536;
/// Least size that a window bounds a super-packet to, bytes.
const LEAST_BOUND: u32 = 36;
/// What is near enough to wait for: 1 ms.
const NEAR_NS: u64 = 1_000_000;
/// `net.ipv4.tcp_tso_win_divisor`: a third of the window is large enough to go.
const WINDOW_SHARE: u32 = 3;
/// Receive window that this side announces, bytes.
const OWN_WINDOW: u32 = 64_256;
