//! The receiving side of Linux's TCP as a sans-IO machine: a socket that listens, receives one stream and acknowledges it.
//!
//! Source: RFC 9293, RFC 7323 (timestamps, PAWS, scaling), RFC 2018 and RFC 2883 (SACK, DSACK); Linux 6.1 and 6.12:
//! `tcp_rcv_established()`, `tcp_validate_incoming()`, `tcp_data_queue()`, `tcp_cleanup_rbuf()`.
//! Differs: collapsing is judged on averages; the application's own FIN is not
//! sent, so the ACK of the peer's FIN goes at once. Does not model: urgent data, memory shared between sockets. A socket that its
//! reader has locked is the caller's affair. Details: docs/models/receiver.md.

use crate::{Jiffies, Kernel};
use std::collections::VecDeque;
use tcpscape_base::{Flags, Segment, Time};

mod accecn;
mod ack;
mod autotune;
mod ecn;
mod input;
mod reassembly;
mod window;

#[cfg(test)]
mod tests;

use ack::{Acks, Verdict};
use autotune::Autotune;
use ecn::EcnState;
pub use ecn::Feedback;
use reassembly::{Queue, Reassembly};
use window::Window;

/// How a receiver is made.
#[derive(Clone, Copy, Debug)]
pub struct ReceiverConfig {
    /// Rules and sysctl values.
    pub kernel: Kernel,
    /// Its clock of timer ticks.
    pub jiffies: Jiffies,
    /// Payload of a full segment with timestamps: 1448 at an MTU of 1500.
    pub mss: u32,
    /// Maximum segment size announced in the SYN-ACK: 1460 at an MTU of 1500.
    pub advmss: u32,
    /// Argument of `SO_RCVBUF`, 0 for an autotuned buffer.
    pub rcvbuf: u32,
    /// Whether SACK is used.
    pub sack: bool,
    /// Whether one segment handed in may hold many that the device merged.
    pub gro: bool,
    /// How it tells of marks.
    pub feedback: Feedback,
}

/// What a receiver has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverStats {
    /// Bytes that became readable, in order.
    pub bytes: u64,
    /// Segments with data or FIN that came.
    pub segments: u64,
    /// Segments that brought nothing new.
    pub duplicates: u64,
    /// DSACK blocks sent.
    pub dsacks: u64,
    /// Segments queued out of order.
    pub ooo_segments: u64,
    /// ACKs sent, SYN-ACKs not counted.
    pub acks: u64,
    /// ACKs that the delayed-ACK timer sent.
    pub delayed_acks: u64,
    /// ACKs saved by SACK compression.
    pub compressed_acks: u64,
    /// Buffers (of up to 17 segments) thrown out of the out-of-order queue to make room.
    pub pruned: u64,
    /// Segments refused because the buffer was full.
    pub dropped_memory: u64,
    /// Segments refused because they were outside the window.
    pub dropped_window: u64,
    /// Segments refused because their timestamp was old (PAWS).
    pub dropped_paws: u64,
    /// ACKs sent with a window of zero.
    pub zero_window_acks: u64,
    /// Segments that came with a congestion mark on a connection that uses ECN.
    pub ce_segments: u64,
    /// Furthest that new data came behind later data, in bytes of the stream.
    pub max_reorder_extent: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Listen,
    SynReceived,
    Established,
    /// The FIN came.
    CloseWait,
}

/// The receiving machine.
pub struct Receiver {
    kernel: Kernel,
    jiffies: Jiffies,
    mss: u32,
    sack: bool,
    gro: bool,
    state: State,
    rcv_nxt: u64,
    copied_seq: u64,
    /// Memory of everything queued (`sk_rmem_alloc`).
    used: u64,
    /// Largest sequence number seen.
    highest: u64,
    /// Where the stream ends, once a FIN was accepted.
    fin: Option<u64>,
    /// Timestamp to echo (`ts_recent`).
    ts_recent: u32,
    /// Jiffy of the last ACK for an unacceptable segment, 0 for none (`last_oow_ack_time`).
    last_oow: u64,
    /// SYN-ACK timeouts so far, when the SYN-ACK was sent if only once, and when the next is due.
    synack_timeouts: u32,
    synack_sent: Option<Time>,
    synack_due: Option<Time>,
    ecn: EcnState,
    window: Window,
    acks: Acks,
    tune: Autotune,
    queue: Queue,
    ooo: Reassembly,
    out: VecDeque<Segment>,
    stats: ReceiverStats,
}

/// What timestamps count from: any constant will do.
const TS_OFFSET: u64 = 1_000_000;
/// Tolerance of PAWS in ticks of the timestamp clock (`TCP_PAWS_WINDOW`).
const PAWS_WINDOW: i32 = 1;
/// SYN-ACKs that are retransmitted (`net.ipv4.tcp_synack_retries`).
const SYNACK_RETRIES: u32 = 5;
impl Receiver {
    /// A listening socket.
    pub fn new(cfg: &ReceiverConfig) -> Receiver {
        Receiver {
            kernel: cfg.kernel,
            jiffies: cfg.jiffies,
            mss: cfg.mss,
            sack: cfg.sack,
            gro: cfg.gro,
            state: State::Listen,
            rcv_nxt: 1,
            copied_seq: 1,
            used: 0,
            highest: 1,
            fin: None,
            ts_recent: 0,
            last_oow: 0,
            synack_timeouts: 0,
            synack_sent: None,
            synack_due: None,
            ecn: EcnState::new(cfg.feedback),
            window: Window::new(&cfg.kernel, cfg.rcvbuf, cfg.advmss),
            acks: Acks::new(&cfg.kernel, &cfg.jiffies),
            tune: Autotune::default(),
            queue: Queue::default(),
            ooo: Reassembly::new(cfg.kernel.head_room()),
            out: VecDeque::new(),
            stats: ReceiverStats::default(),
        }
    }

    /// A segment came from the peer. `truesize` is the memory it occupies, 0 to have it computed.
    pub fn on_segment(&mut self, now: Time, s: &Segment, truesize: u32) {
        let truesize = if truesize == 0 { s.len + self.kernel.skb_overhead } else { truesize };
        match self.state {
            State::Established | State::CloseWait => {
                if self.acceptable(now, s) {
                    self.accept_cwr(s);
                    self.echo(now, s);
                    self.data(now, s, truesize);
                }
            }
            State::Listen if s.flags.has(Flags::SYN) => {
                self.ecn.on_syn(s);
                self.ts_recent = s.tsval;
                self.state = State::SynReceived;
                self.send_synack(now);
                self.synack_sent = Some(now);
            }
            State::Listen => {}
            State::SynReceived => self.handshake(now, s, truesize),
        }
    }

    /// Timers due at or before `now`: delayed and compressed ACKs, SYN-ACK retransmission.
    pub fn on_timer(&mut self, now: Time) {
        if self.synack_due.is_some_and(|t| t <= now) {
            self.synack_due = None;
            self.synack_timeouts += 1;
            if self.synack_timeouts <= SYNACK_RETRIES {
                self.send_synack(now);
            }
        }
        while let Some(delayed) = self.acks.on_timer(now, &self.jiffies) {
            if delayed {
                self.stats.delayed_acks += 1;
                self.send_ack(now);
            } else {
                self.flush_compressed(now);
            }
        }
    }

    /// When [`Receiver::on_timer`] wants to be called.
    pub fn next_event(&self) -> Option<Time> {
        match (self.acks.next_event(), self.synack_due) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// The next segment to send, if any.
    pub fn poll_transmit(&mut self, _now: Time) -> Option<Segment> {
        let s = self.out.pop_front();
        if s.is_none() {
            self.out.clear(); // the next one starts at the front of the same memory
        }
        s
    }

    /// Bytes in order that the application has not read.
    pub fn readable(&self) -> u64 {
        self.queue.bytes
    }

    /// The application reads up to `max` bytes; returns how many it got. May send an ACK or open the window.
    pub fn read(&mut self, now: Time, max: u64) -> u64 {
        let n = self.copy(now, max).0;
        self.finish_read(now, n > 0);
        n
    }

    /// The first half of a read: up to `max` bytes leave the queue; returns how many, and how many buffers held them.
    pub fn copy(&mut self, now: Time, max: u64) -> (u64, u32) {
        let (first, n, freed, buffers) = self.queue.take(max);
        if n > 0 {
            self.copied_seq += first;
            let waiting = if self.kernel.is_6_12() { self.rcv_nxt - self.copied_seq } else { 0 };
            self.tune.on_read(now, self.copied_seq, waiting, &mut self.window);
            self.copied_seq += n - first;
            self.used -= freed;
        }
        (n, buffers)
    }

    /// The second half: whether what was read calls for an ACK (`tcp_cleanup_rbuf()`).
    pub fn finish_read(&mut self, now: Time, read: bool) {
        self.after_read(now, read);
    }

    /// End of the rightmost range that SACK blocks report, if anything is queued out of order.
    pub fn highest_sacked(&self) -> Option<u64> {
        self.ooo.sacks().iter().map(|b| b.1).max()
    }

    /// Whether everything up to the peer's FIN has come.
    pub fn fin_received(&self) -> bool {
        self.state == State::CloseWait
    }
    /// Counters.
    pub fn stats(&self) -> &ReceiverStats {
        &self.stats
    }
    /// The window last advertised, counted from the last ACK.
    pub fn window(&self) -> u32 {
        self.window.wnd
    }
    /// The scale shift of the windows it advertises (RFC 7323 §2).
    pub fn wscale(&self) -> u8 {
        self.window.wscale
    }
    /// The next byte expected.
    pub fn rcv_nxt(&self) -> u64 {
        self.rcv_nxt
    }

    // ---- handshake -------------------------------------------------------------------------------------------------

    fn send_synack(&mut self, now: Time) {
        self.synack_sent = None; // Karn's algorithm: no RTT sample from a second one
        let backoff = u64::from(self.jiffies.hz()) << self.synack_timeouts;
        self.synack_due = Some(self.jiffies.fire(now, backoff));
        let (flags, ecn) = self.ecn.syn_ack();
        let flags = Flags::SYN.with(Flags::ACK).with(flags);
        let s = segment(0, 1, self.window.wnd.min(65_535), self.timestamp(now), self.ts_recent, flags);
        self.out.push_back(Segment { ecn, ..s });
    }

    // Linux: tcp_check_req(), tcp_rcv_state_process()
    fn handshake(&mut self, now: Time, s: &Segment, truesize: u32) {
        let old = self.ts_recent != 0 && (self.ts_recent.wrapping_sub(s.tsval) as i32) > 0;
        if s.flags.has(Flags::SYN) {
            if !old && !self.oow_limited(now) {
                self.send_synack(now);
            }
            return;
        }
        if old || s.seq > u64::from(self.window.wnd) || s.end() == 0 {
            if s.len > 0 || !self.oow_limited(now) {
                self.push_ack(now, self.window.wnd.min(65_535), self.rcv_nxt);
            }
            return;
        }
        if !s.flags.has(Flags::ACK) {
            return;
        }
        if s.seq <= 1 {
            self.ts_recent = s.tsval;
        }
        self.synack_due = None;
        self.state = State::Established;
        let rtt = self.synack_sent.map(|t| now.since(t).as_micros());
        self.window.establish();
        self.tune.establish(now, &self.window, self.copied_seq);
        self.acks.establish(now, &self.jiffies, self.window.advmss.min(self.mss), self.window.wnd, rtt);
        if self.acceptable(now, s) {
            if self.ecn.accurate.on {
                self.count_marks(s);
            }
            self.data(now, s, truesize);
        }
    }

    // ---- arrival ---------------------------------------------------------------------------------------------------

    // PAWS and window check; ts_recent follows. Linux: tcp_validate_incoming(), tcp_replace_ts_recent(); RFC 7323 §5
    fn acceptable(&mut self, now: Time, s: &Segment) -> bool {
        let behind = if self.ts_recent == 0 { 0 } else { self.ts_recent.wrapping_sub(s.tsval) as i32 };
        let end = s.end();
        if behind > PAWS_WINDOW && (end != s.seq || s.seq != self.rcv_nxt) {
            self.stats.dropped_paws += 1;
            self.refuse(now, s);
            return false;
        }
        if s.flags.has(Flags::SYN) {
            if !self.oow_limited(now) {
                self.send_ack(now);
            }
            return false;
        }
        if end < self.window.wup || s.seq > self.rcv_nxt + u64::from(self.window.left(self.rcv_nxt)) {
            self.stats.dropped_window += u64::from(end > self.rcv_nxt && end != s.seq);
            self.refuse(now, s);
            return false;
        }
        if s.seq <= self.window.wup && behind <= 0 {
            self.ts_recent = s.tsval;
        }
        !s.flags.has(Flags::RST)
    }

    // An ACK for a segment that cannot be accepted, with a DSACK for what of it is old. Linux: tcp_send_dupack()
    fn refuse(&mut self, now: Time, s: &Segment) {
        let end = s.end();
        if end == s.seq {
            if !self.oow_limited(now) {
                self.send_ack(now);
            }
            return;
        }
        self.stats.segments += 1;
        if s.seq < self.rcv_nxt {
            self.stats.duplicates += u64::from(end <= self.rcv_nxt);
            self.acks.enter_quick(&self.jiffies, self.window.wnd);
            self.set_dsack(s.seq, end.min(self.rcv_nxt));
        }
        self.send_ack(now);
    }

    // One ACK in half a second for what is neither data nor acceptable. Linux: tcp_oow_rate_limited(), RFC 5961 §7
    fn oow_limited(&mut self, now: Time) -> bool {
        let at = self.jiffies.at(now);
        if self.last_oow != 0 && at - self.last_oow < self.jiffies.hz_over(2) {
            return true;
        }
        self.last_oow = at;
        false
    }

    /// The timestamp clock: milliseconds since the host's boot, which was a whole number of ticks before its next tick.
    /// Linux: tcp_time_stamp(); RFC 7323 §5.4
    #[inline]
    fn timestamp(&self, now: Time) -> u32 {
        (self.jiffies.since_tick(now) / 1_000_000 + TS_OFFSET) as u32
    }

    #[inline]
    fn echo(&mut self, now: Time, s: &Segment) {
        let age = self.timestamp(now).wrapping_sub(s.tsecr);
        let least = u32::from(!self.kernel.is_6_12());
        self.tune.on_echo(s.tsecr, age, s.end() - s.seq >= u64::from(self.acks.rcv_mss), least);
    }

    fn set_dsack(&mut self, start: u64, end: u64) {
        if self.sack {
            self.ooo.dsack = Some((start, end));
        }
    }

    // ---- acknowledging ---------------------------------------------------------------------------------------------

    // What would be offered now; a buffer more than half full ends quick ACKs.
    #[inline]
    fn offer(&mut self) -> u32 {
        let (offer, tight) = self.window.select(self.used, self.acks.rcv_mss);
        if tight {
            self.acks.quick = 0;
        }
        offer
    }

    // Linux: __tcp_ack_snd_check()
    #[inline]
    fn check_ack(&mut self, now: Time) {
        let full = self.rcv_nxt - self.window.wup > u64::from(self.acks.rcv_mss)
            && (self.rcv_nxt == self.copied_seq || self.offer() >= self.window.wnd);
        let verdict = if full || self.acks.is_quick() {
            Verdict::Send
        } else if self.ooo.is_empty() {
            self.acks.delay(now, &self.jiffies)
        } else if self.sack {
            self.acks.compress(now, self.rcv_nxt, self.tune.rtt_us, self.kernel.comp_sack_nr, self.kernel.comp_sack_delay_ns)
        } else {
            Verdict::Send
        };
        if verdict == Verdict::Send {
            self.send_ack(now);
        }
    }

    // Linux: tcp_cleanup_rbuf()
    fn after_read(&mut self, now: Time, read: bool) {
        let a = &self.acks;
        let mut send = a.scheduled
            && (self.rcv_nxt - self.window.wup > u64::from(a.rcv_mss)
                || (read && (a.pushed_twice || (a.pushed && !a.pingpong)) && self.used == 0));
        if !send && read && self.state != State::CloseWait {
            let left = self.window.left(self.rcv_nxt);
            if 2 * u64::from(left) <= u64::from(self.window.clamp) {
                let offer = self.offer();
                send = offer > 0 && u64::from(offer) >= 2 * u64::from(left);
            }
        }
        if send {
            self.send_ack(now);
        }
    }

    // Linux: tcp_sack_compress_send_ack()
    fn flush_compressed(&mut self, now: Time) {
        if self.acks.compressed > 0 {
            self.acks.compressed -= 1; // one of them is sent after all
            self.send_ack(now);
        }
    }

    #[inline]
    fn send_ack(&mut self, now: Time) {
        let wnd = if self.acks.no_memory {
            self.window.close(self.rcv_nxt)
        } else {
            let offer = self.offer();
            self.window.advertise(offer, self.rcv_nxt)
        };
        self.stats.zero_window_acks += u64::from(wnd == 0);
        self.stats.compressed_acks += u64::from(self.acks.compressed);
        self.push_ack(now, wnd, self.rcv_nxt);
        self.acks.on_sent(&self.jiffies);
    }

    #[inline]
    fn push_ack(&mut self, now: Time, wnd: u32, ack: u64) {
        let (flags, ecn) = self.ecn.ack();
        let mut s = segment(1, ack, wnd, self.timestamp(now), self.ts_recent, Flags::ACK.with(flags));
        s.ecn = ecn;
        if let Some(d) = self.ooo.dsack.take() {
            s.push_sack(d);
            self.stats.dsacks += 1;
        }
        for &b in self.ooo.sacks() {
            s.push_sack(b);
        }
        if self.ecn.accurate.on {
            self.ecn.accurate.put_option(&mut s);
        }
        self.stats.acks += 1;
        self.out.push_back(s);
    }
}

#[inline]
#[allow(clippy::field_reassign_with_default)]
fn segment(seq: u64, ack: u64, wnd: u32, tsval: u32, tsecr: u32, flags: Flags) -> Segment {
    let mut s = Segment::default();
    s.seq = seq;
    s.ack = ack;
    s.wnd = wnd;
    s.tsval = tsval;
    s.tsecr = tsecr;
    s.flags = flags;
    s
}
