//! What leaves: what the application has written, when it may go, what the host's own queues still hold, the timer, and the segments on their
//! way out.
//!
//! `sending.rs` decides about new data and sends again what is lost, `timer.rs` sets the timer; here are the writer, the segments that come
//! out, and what the host says of them. Source: RFC 9293 §3.8 and §3.9.1.2, RFC 896 (Nagle), observed behaviour of Linux 6.1 and 6.12
//! (docs/models/tcp/sender.md). How it differs: see "Refused by the own queue" there: a loop over several bursts ends at the refused one in
//! Linux; here the later ones are taken back unseen. Not modelled: urgent data.

mod host_queue;
mod pacer;
mod send_buffer;
mod sending;
mod timer;

use super::connection::Connection;
use super::flight::Marks;
use super::governor::Governor;
use super::report::{Standing, TakenBack, Waiting};
use super::Transmit;
use host_queue::HostQueue;
use pacer::Pacer;
use send_buffer::{SendBuffer, Unsent};
pub(super) use sending::Reason;
use std::collections::VecDeque;
use tcpscape_base::{Ecn, Flags, Segment, Time};
pub(super) use timer::Purpose;
use timer::Timer;

/// The way out of one connection.
pub(super) struct Outbound {
    buffer: SendBuffer,
    pacer: Pacer,
    host: HostQueue,
    timer: Timer,
    /// Segments, with the burst they belong to (0 for none).
    queue: VecDeque<(Segment, u32)>,
}

/// What the application's write brought.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Written {
    /// Bytes that there was room for.
    pub bytes: u64,
    /// Segments that left at once.
    pub sent: u32,
}

impl Outbound {
    /// Nothing to send; the buffer has `size` bytes, for ever if `fixed`, and each of its parts costs `overhead`.
    pub fn new(size: u32, fixed: bool, overhead: u32) -> Outbound {
        Outbound {
            buffer: SendBuffer::new(size, fixed, overhead),
            pacer: Pacer::default(),
            host: HostQueue::new(),
            timer: Timer::default(),
            queue: VecDeque::new(),
        }
    }

    // ---- what others read ----

    /// What waits to leave.
    #[inline]
    pub fn waiting(&self) -> Waiting {
        Waiting { has_unsent: !self.buffer.is_empty(), next_departure_ns: self.pacer.next_ns() }
    }
    /// Whether data wait that were not sent yet.
    #[inline]
    pub fn has_unsent(&self) -> bool {
        !self.buffer.is_empty()
    }
    /// Whether a writer waits for room.
    #[inline]
    pub fn is_writer_blocked(&self) -> bool {
        self.buffer.is_blocked()
    }
    /// Whether data wait for the clock of departures.
    #[inline]
    pub fn is_paced(&self) -> bool {
        self.pacer.timer().is_some()
    }
    /// Whether data wait until memory in the host's queue is free.
    #[inline]
    pub fn is_throttled(&self) -> bool {
        self.host.is_throttled()
    }
    /// Whether segments are on their way out.
    pub fn has_output(&self) -> bool {
        !self.queue.is_empty()
    }
    /// What the timer is set for.
    #[inline]
    pub fn purpose(&self) -> Option<Purpose> {
        self.timer.purpose()
    }
    /// When the next timer fires.
    #[inline]
    pub fn next_event(&self) -> Option<Time> {
        match (self.timer.fires(), self.pacer.timer()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
    /// Whether the clock of departures has reached what waits for it; the answer is given once.
    #[inline]
    pub fn take_released(&mut self, now: Time) -> bool {
        self.pacer.take_due(now)
    }

    // ---- the writer ----

    /// Takes in what the application's process writes, a new write or the rest of one, and sends what may go.
    pub fn write(&mut self, bytes: u64, is_new: bool, c: &mut Connection, g: &mut Governor, st: Standing) -> Written {
        self.host.enter_process();
        let written = self.take_write(bytes, is_new, c, g, st);
        self.host.leave_process();
        written
    }

    fn take_write(&mut self, bytes: u64, is_new: bool, c: &mut Connection, g: &mut Governor, st: Standing) -> Written {
        self.note_application_limit(c, g);
        let goal = self.size_goal(c);
        let (mut left, mut sent) = (bytes, 0);
        while left > 0 {
            if self.buffer.room_in_tail(goal) == 0 {
                if !self.buffer.has_room_or_blocks(&c.flight) {
                    break;
                }
                g.restart_after_pause(c, st.state, self.waiting());
                self.buffer.begin();
            }
            let taken = u64::from(self.buffer.room_in_tail(goal)).min(left) as u32;
            left -= u64::from(taken);
            let is_first = is_new && left + u64::from(taken) == bytes;
            let full = self.buffer.append(taken, is_first, goal);
            if left > 0 && full {
                sent += self.send_while_writing(c, g, st);
            }
        }
        let written = bytes - left;
        c.stats.bytes_written += written;
        if written > 0 {
            self.buffer.push();
            if self.is_corked(goal, c) {
                self.host.throttle();
            } else {
                sent += self.push_pending(c, g, st);
            }
        }
        Written { bytes: written, sent }
    }

    /// A long write sends before it ends: all when half of the peer's largest window was gathered, else the first super-packet.
    fn send_while_writing(&mut self, c: &mut Connection, g: &mut Governor, st: Standing) -> u32 {
        if self.buffer.is_long_unpushed(c.peer.max_window()) {
            self.buffer.push();
            self.push_pending(c, g, st)
        } else if self.buffer.is_single() {
            self.send_pending(Reason::One, c, g, st)
        } else {
            0
        }
    }

    /// Size up to which unsent data are gathered: a super-packet, at most half of the peer's largest window.
    fn size_goal(&mut self, c: &Connection) -> u32 {
        if !c.cfg.gso {
            return c.cfg.mss;
        }
        let window = c.peer.max_window();
        let half = if window > SMALL_WINDOW { window / 2 } else { window };
        self.buffer.size_goal(GSO_MAX.min(half.max(LEAST_BOUND)), c.cfg.mss)
    }

    /// Whether a short write waits for more while the host's queue holds earlier data.
    fn is_corked(&self, goal: u32, c: &Connection) -> bool {
        let short = self.buffer.tail().filter(|tail| tail.len < goal);
        short.is_some_and(|tail| c.flight.out() > 0 && self.host.memory() >= u64::from(tail.len + c.cfg.kernel.skb_overhead))
    }

    /// draft-cheng-iccrg-delivery-rate-estimation §3.4: what was written before has left, the window is open, nothing waits to be sent again.
    fn note_application_limit(&self, c: &mut Connection, g: &Governor) {
        let drained = self.buffer.end() - c.flight.nxt() < u64::from(c.cfg.mss) && self.host.memory() == 0;
        if drained && c.flight.in_flight() < g.cwnd() && !c.flight.has_lost_to_send() {
            c.rate.limit_by_application(c.flight.in_flight());
        }
    }

    /// Nothing is written any more.
    pub fn finish(&mut self) {
        self.buffer.finish();
    }
    /// The application fixes the buffer's size, bytes of memory.
    pub fn fix_send_buffer(&mut self, size: u32) {
        self.buffer.fix(size);
    }
    /// A writer that could not write waits.
    pub fn block_writer(&mut self) {
        self.buffer.block();
    }
    /// The connection is there: a writer may begin.
    pub fn wake_writer(&mut self) {
        self.buffer.wake();
    }
    /// Whether a writer is to be woken; the answer is given once.
    #[inline]
    pub fn take_wake(&mut self) -> bool {
        self.buffer.take_wake()
    }

    /// Wakes a blocked writer if there is room, after growing a buffer that TCP tunes while the window is not full.
    #[inline]
    pub fn check_space(&mut self, c: &Connection, g: &mut Governor, st: Standing) {
        if self.buffer.is_blocked() {
            self.check_space_of_blocked(c, g, st);
        }
    }

    fn check_space_of_blocked(&mut self, c: &Connection, g: &mut Governor, st: Standing) {
        if self.buffer.is_tuned() && c.flight.in_flight() < g.cwnd() {
            self.expand_send_buffer(c, g, st);
            g.touch(c.tick());
        }
        self.buffer.wake_if_room(&c.flight);
    }

    /// Makes room for as many windows as the congestion control wants; each segment is a buffer rounded up to a power of two.
    pub fn expand_send_buffer(&mut self, c: &Connection, g: &Governor, st: Standing) {
        let k = &c.cfg.kernel;
        let segment = (c.cfg.mss + TIMESTAMP_OPTION + k.max_tcp_header + BUFFER_TRAILER).next_power_of_two() + BUFFER_HEADER;
        let segments = g.window_to_buffer().max(st.reordering + 1);
        let wanted = u64::from(g.sndbuf_expand()) * u64::from(segments) * u64::from(segment);
        self.buffer.grow(wanted, k.tcp_wmem_max);
    }

    // ---- segments on their way out ----

    /// The next segment that leaves.
    #[inline]
    pub fn poll(&mut self, c: &Connection) -> Option<Transmit> {
        let Some((segment, burst)) = self.queue.pop_front() else {
            self.queue.clear(); // the next one starts at the front of the same memory
            return None;
        };
        let departure = self.departure(&segment, burst, c);
        Some(Transmit { segment, segs: segment.len.div_ceil(c.cfg.mss).max(1) as u16, burst, departure })
    }

    /// When a segment just sent may leave its host, if that paces.
    #[inline]
    fn departure(&self, s: &Segment, burst: u32, c: &Connection) -> Time {
        if !c.cfg.fq {
            return c.now.time;
        }
        let sent = c.flight.find(s.seq).filter(|_| burst != 0).map(|id| c.flight.get(id).sent_ns);
        Time(sent.unwrap_or(self.pacer.next_ns().max(c.now.time.0)))
    }

    /// Gives a segment that carries no data to the host.
    pub fn give(&mut self, s: Segment) {
        self.queue.push_back((s, 0));
    }

    /// Sends a pure ACK. It moves the clock of departures like data does.
    pub fn send_ack(&mut self, ack: Segment, now: Time) {
        self.pacer.touch(now);
        self.give(ack);
    }

    /// Gives a burst to the host.
    fn emit(&mut self, seq: u64, len: u32, departure_ns: u64, flags: Flags, ecn: Ecn, c: &Connection) {
        let s = Segment { len, ecn, tsval: c.cfg.jiffies.stamp(Time(departure_ns)), flags: c.ecn.ack().with(flags), ..c.bare_ack(seq) };
        let burst = c.flight.last_burst();
        self.queue.push_back((s, burst));
        if c.cfg.watch_host {
            let packets = len.div_ceil(c.cfg.mss).max(1);
            let headers = (s.frame_len() - len) * packets;
            self.host.give(burst, self.host_memory(len, packets, c), len + headers);
        }
    }

    /// Memory that a burst holds in the host's queue. Without a queue in front of it the device cuts at once, and each packet has its own
    /// overhead; what a process sends has left then before it is asked.
    fn host_memory(&self, len: u32, packets: u32, c: &Connection) -> u32 {
        let buffers = if c.cfg.bare_host { packets } else { 1 };
        if c.cfg.tsq && !(c.cfg.bare_host && self.host.is_in_process()) {
            len + buffers * c.cfg.kernel.skb_overhead
        } else {
            0
        }
    }

    /// `bytes` of the frames of that burst have left the sender's host, or were dropped in its queue; returns whether what waited for their
    /// memory may go. Without a queue all that was sent in a batch has gone before the sender is called.
    pub fn on_departure(&mut self, burst: u32, bytes: u32, c: &Connection) -> bool {
        let freed = self.host.depart(burst, bytes).is_some_and(|memory| memory > 0);
        let released = freed && self.host.is_throttled() && !(c.cfg.bare_host && self.host.memory() > 0);
        if released {
            self.host.release();
        }
        released
    }

    // ---- what the host's own queue refuses ----

    /// The host's queue has no room for `t`, just given out. Its data wait for the next occasion; what was to follow in the same batch does too.
    pub fn take_all_back(&mut self, t: &Transmit, c: &mut Connection) -> TakenBack {
        let mut back = TakenBack::default();
        for (s, burst) in std::mem::take(&mut self.queue).into_iter().rev() {
            if burst == 0 {
                self.queue.push_front((s, 0));
                continue;
            }
            self.take_back(&s, burst, c, &mut back);
            self.host.take_back(burst);
            let n = u64::from(s.len.div_ceil(c.cfg.mss));
            c.stats.data_segs_out -= n;
            if s.end() <= c.flight.nxt() {
                c.stats.retransmits -= n;
            }
        }
        if t.burst != 0 {
            self.take_back(&t.segment, t.burst, c, &mut back);
        }
        self.host.release();
        back
    }

    /// Undoes a transmission: new data wait again in front of what is unsent, a retransmission is still to come.
    fn take_back(&mut self, s: &Segment, burst: u32, c: &mut Connection, back: &mut TakenBack) {
        let n = s.len.div_ceil(c.cfg.mss);
        let Some(id) = c.flight.find(s.seq) else { return };
        self.pacer.take_back(c.flight.get(id).sent_ns);
        back.segments += n;
        if c.flight.get(id).is(Marks::EVER_RESENT) {
            back.probe |= self.take_back_copies(id, n, burst, c);
        } else {
            let push = c.flight.take_back(n, s.len);
            self.buffer.put_back(Unsent { len: s.len, push });
        }
    }

    /// Returns whether they were a loss probe.
    fn take_back_copies(&mut self, id: u32, n: u32, burst: u32, c: &mut Connection) -> bool {
        let counted = c.flight.get(id).is(Marks::COPY_OUT);
        if counted {
            c.flight.take_back_copies(id, n);
        }
        if self.host.take_timeout(burst) {
            // Local congestion: once more in half a second, without back-off.
            c.rtt.undo_doubling();
            self.arm(Purpose::Retransmit, c.cfg.jiffies.hz_over(2), c);
        }
        !counted
    }

    /// The parts, for tests.
    #[cfg(test)]
    pub fn parts(&mut self) -> Parts<'_> {
        Parts { buffer: &mut self.buffer, pacer: &self.pacer, host: &self.host, timer: &self.timer }
    }
}

/// What tests see.
#[cfg(test)]
pub(super) struct Parts<'a> {
    pub buffer: &'a mut SendBuffer,
    pub pacer: &'a Pacer,
    pub host: &'a HostQueue,
    pub timer: &'a Timer,
}

/// Largest payload of a super-packet, bytes: 64 KiB less 192 of headers and one.
const GSO_MAX: u32 = 65_536 - 192 - 1;
/// A receive window up to this, bytes, is used as a whole by one super-packet.
const SMALL_WINDOW: u32 = 536;
/// Least size that a window bounds a super-packet to, bytes.
const LEAST_BOUND: u32 = 36;
/// Bytes of the timestamp option with its padding.
const TIMESTAMP_OPTION: u32 = 12;
/// Bookkeeping behind a buffer's data, bytes.
const BUFFER_TRAILER: u32 = 320;
/// Bookkeeping of a buffer apart from its data, bytes.
const BUFFER_HEADER: u32 = 256;
