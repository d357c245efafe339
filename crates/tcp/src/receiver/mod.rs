//! The receiving side of TCP as a sans-IO machine: a socket that listens, receives one stream and acknowledges it as Linux does.
//!
//! Source: RFC 9293, RFC 7323 (timestamps, PAWS, scaling), RFC 2018 and RFC 2883 (SACK, DSACK), RFC 5681 §4.2 (ACKs); what Linux 6.1 and
//! 6.12 do otherwise or besides is stated in docs/models/tcp/receiver.md. Differs: compacting is judged on averages; the application's own
//! FIN is not sent, so the ACK of the peer's FIN goes at once. Does not model: urgent data, memory shared between sockets. A socket that
//! its reader has locked is the caller's affair.

use crate::Jiffies;
use std::collections::VecDeque;
use tcpscape_base::{Kernel, Misbehaviour, Segment, Time};

mod acceptance;
mod ack;
mod autotune;
mod backlog;
mod buffer;
mod ecn;
mod handshake;
mod input;
mod misbehaviour;
mod output;
mod reassembly;
mod sack;
mod store;
mod stream;
mod timestamps;
mod tree;
mod window;

#[cfg(test)]
mod tests;

use acceptance::AckLimiter;
use ack::{AckPolicy, Due};
use autotune::{RightSizing, RoundTrip, Waiting};
pub use backlog::Backlog;
use buffer::Buffer;
use ecn::EcnFeedback;
pub use ecn::Feedback;
use handshake::Handshake;
use sack::SackOption;
use store::Store;
use stream::Stream;
use timestamps::Timestamps;
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
    /// How it tells of marks.
    pub feedback: Feedback,
    /// How it misbehaves.
    pub misbehaves: Option<Misbehaviour>,
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
    /// Segments that came with a congestion mark on a connection that uses ECN; without counted marks (RFC 3168) several that were merged before TCP count once.
    pub ce_segments: u64,
    /// Furthest that new data came behind later data, in bytes of the stream.
    pub max_reorder_extent: u64,
}

/// The receiving machine.
pub struct Receiver {
    kernel: Kernel,
    jiffies: Jiffies,
    mss: u32,
    misbehaves: Option<Misbehaviour>,
    /// What a receiver that divides acknowledgements has acknowledged.
    divided: u64,
    /// Bytes that an optimistic receiver took for received.
    missing: u64,
    handshake: Handshake,
    timestamps: Timestamps,
    limiter: AckLimiter,
    ecn: EcnFeedback,
    stream: Stream,
    store: Store,
    sack: SackOption,
    window: Window,
    acks: AckPolicy,
    round_trip: RoundTrip,
    sizing: RightSizing,
    out: VecDeque<Segment>,
    /// Bytes that the application has written: a few hundred for each request, which a trial of a day does not fill.
    written: u32,
    stats: ReceiverStats,
}

impl Receiver {
    /// A listening socket.
    pub fn new(cfg: &ReceiverConfig) -> Receiver {
        Receiver {
            kernel: cfg.kernel,
            jiffies: cfg.jiffies,
            mss: cfg.mss,
            misbehaves: cfg.misbehaves,
            divided: 1,
            missing: 0,
            handshake: Handshake::listen(),
            timestamps: Timestamps::default(),
            limiter: AckLimiter::default(),
            ecn: EcnFeedback::new(cfg.feedback),
            stream: Stream::new(),
            store: Store::new(&cfg.kernel),
            sack: SackOption::new(cfg.sack),
            window: Window::new(&cfg.kernel, cfg.rcvbuf, cfg.advmss),
            acks: AckPolicy::new(&cfg.kernel, &cfg.jiffies),
            round_trip: RoundTrip::default(),
            sizing: RightSizing::new(&cfg.kernel),
            out: VecDeque::new(),
            written: 0,
            stats: ReceiverStats::default(),
        }
    }

    /// A segment came from the peer. `truesize` is the memory it occupies, 0 to have it computed.
    pub fn on_segment(&mut self, now: Time, s: &Segment, truesize: u32) {
        self.take(now, s, &self.buffer(s, truesize));
    }
    // The buffer of a segment.
    #[inline]
    fn buffer(&self, s: &Segment, truesize: u32) -> Buffer {
        Buffer::of(s, if truesize == 0 { s.len + self.kernel.skb_overhead } else { truesize })
    }

    /// A segment came while the application has locked the socket: it waits in the socket's backlog.
    pub fn hold(&self, s: &Segment, backlog: &mut Backlog) {
        let overhead = self.kernel.skb_overhead;
        backlog.push(s, self.buffer(s, 0).condensed(overhead, self.kernel.head_room()), overhead);
    }
    /// Takes in the first segment that waits, if any; whether there was one.
    pub fn absorb(&mut self, now: Time, backlog: &mut Backlog) -> bool {
        let waiting = backlog.pop();
        if let Some((s, buffer)) = &waiting {
            self.take(now, s, buffer);
        }
        waiting.is_some()
    }

    #[inline]
    fn take(&mut self, now: Time, s: &Segment, buffer: &Buffer) {
        match self.misbehaves {
            None => self.take_segment(now, s, buffer),
            Some(how) => self.take_misread(now, s, buffer, how),
        }
    }
    fn take_segment(&mut self, now: Time, s: &Segment, buffer: &Buffer) {
        if !self.handshake.is_open() {
            return self.on_handshake_segment(now, s, buffer);
        }
        if self.accepts(now, s) {
            self.read_ecn(s);
            self.read_echo(now, s);
            self.on_data(now, s, buffer);
        }
    }

    /// Timers due at or before `now`: delayed and compressed ACKs, SYN-ACK retransmission.
    pub fn on_timer(&mut self, now: Time) {
        if self.handshake.on_timer(now) {
            self.send_syn_ack(now);
        }
        while let Some(due) = self.acks.on_timer(now, &self.jiffies) {
            match due {
                Due::Compressed => self.flush_compressed(now),
                Due::Delayed => {
                    self.stats.delayed_acks += 1;
                    self.send_ack(now);
                }
            }
        }
    }

    /// When [`Receiver::on_timer`] wants to be called.
    pub fn next_event(&self) -> Option<Time> {
        match (self.acks.next_event(), self.handshake.next_event()) {
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

    /// Whether segments wait in [`Receiver::poll_transmit`].
    #[inline]
    pub fn has_output(&self) -> bool {
        !self.out.is_empty()
    }

    /// Whether the connection is open.
    pub fn is_open(&self) -> bool {
        self.handshake.is_open()
    }

    /// The application writes a message of `len` bytes, which fits one segment: it leaves at once and acknowledges everything. Nothing
    /// repeats it but [`Receiver::rewrite`]; windows and congestion do not hold it back.
    pub fn write(&mut self, now: Time, len: u32) {
        self.send_message(now, len);
        self.written += len;
    }

    /// The last message, of `len` bytes, leaves again.
    pub fn rewrite(&mut self, now: Time, len: u32) {
        self.written -= len;
        self.write(now, len);
    }

    /// Bytes in order that the application has not read.
    pub fn readable(&self) -> u64 {
        self.store.unread()
    }

    /// The application reads up to `max` bytes; returns how many it got. May send an ACK or open the window.
    pub fn read(&mut self, now: Time, max: u64) -> u64 {
        let n = self.copy(now, max).0;
        self.finish_read(now, n > 0);
        n
    }

    /// The first half of a read: up to `max` bytes leave the queue; returns how many, and how many buffers held them.
    pub fn copy(&mut self, now: Time, max: u64) -> (u64, u32) {
        if self.store.unread() == 0 || max == 0 {
            return (0, 0);
        }
        let taken = self.store.read(max);
        // What a round trip's reads amount to is counted when the first buffer has been copied.
        self.stream.on_read(taken.first);
        let read = self.stream.read();
        let unread = if self.kernel.rules().autotunes_without_unread { self.stream.next() - read } else { 0 };
        let waiting = Waiting { unread, ahead: self.ahead() };
        self.sizing.on_read(now, read, waiting, &self.round_trip, self.kernel.rules(), &mut self.window);
        self.stream.on_read(taken.bytes - taken.first);
        (taken.bytes, taken.buffers)
    }

    // Bytes up to the end of what waits beyond a gap, as far as autotuning makes room for them.
    fn ahead(&self) -> u64 {
        let end = if self.kernel.rules().autotunes_for_gaps { self.store.end_ahead() } else { None };
        end.map_or(0, |end| end.saturating_sub(self.stream.next()))
    }

    /// The second half, `read` if the first brought anything: an ACK goes if more than a segment is unacknowledged, if the end of a write
    /// was read and nothing is left, or if the read has doubled the window (docs/models/tcp/receiver.md, "Reads").
    pub fn finish_read(&mut self, now: Time, read: bool) {
        let is_emptied = read && self.acks.has_write_end() && self.store.memory() == 0;
        let unacknowledged = self.stream.next() - self.window.last_ack();
        let is_due = self.acks.is_owed() && (unacknowledged > u64::from(self.acks.segment()) || is_emptied);
        if is_due || (read && !self.stream.ended() && self.has_doubled()) {
            self.send_ack(now);
        }
    }
    // Whether the window that could be offered is twice what is left of the last offer; a large rest needs no update.
    fn has_doubled(&mut self) -> bool {
        let left = self.window.left(self.stream.next());
        if 2 * u64::from(left) > u64::from(self.window.ceiling()) {
            return false;
        }
        let offer = self.offer();
        offer > 0 && u64::from(offer) >= 2 * u64::from(left)
    }

    /// End of the rightmost range that SACK blocks report, if anything is queued out of order.
    pub fn highest_sacked(&self) -> Option<u64> {
        self.sack.blocks().iter().map(|b| b.1).max()
    }

    /// Whether everything up to the peer's FIN has come.
    pub fn fin_received(&self) -> bool {
        self.stream.ended()
    }
    /// Counters.
    pub fn stats(&self) -> &ReceiverStats {
        &self.stats
    }
    /// The window last advertised, counted from the last ACK.
    pub fn window(&self) -> u32 {
        self.window.advertised()
    }
    /// The scale shift of the windows it advertises (RFC 7323 §2).
    pub fn wscale(&self) -> u8 {
        self.window.scale()
    }
    /// The sender's segment size as it is estimated, bytes (`tcpi_rcv_mss`).
    pub fn segment_size(&self) -> u32 {
        self.acks.segment()
    }
    /// The next byte expected.
    pub fn rcv_nxt(&self) -> u64 {
        self.stream.next()
    }
}
