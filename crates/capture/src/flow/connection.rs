//! Both directions of a connection: its packets in, what is known of each direction's data out.

use super::acks::Report;
use super::direction::{Direction, Taken};
use super::end::Seen;
use super::forwarded::Forwarded;
use super::handshake::Handshake;
use super::log::Happened;
use super::repeats::Trigger;
use super::sequence::shown;
use crate::limits::{self, Tracker};
use crate::packet::{Endpoint, Packet, MOST_BLOCKS};
use std::ops::Range;
use tcpscape_base::Flags;

/// Most intervals of limits kept for a direction.
const INTERVALS: usize = 4096;
/// Bytes that the distributions of a connection's times take at most, as a rule.
const HISTOGRAMS: usize = 6_000;
/// A silence after which a SYN begins another connection of the same ends, ns (RFC 9293 §3.6.1 has the states that allow it).
const REUSE: u64 = 1_000_000_000;

/// A connection.
#[derive(Debug)]
pub struct Connection {
    /// Its ends; directions are numbered by who sends.
    pub ends: [Endpoint; 2],
    /// First and last packet.
    pub span: Range<u64>,
    /// The data of either end.
    pub directions: [Direction; 2],
    /// Its handshake.
    pub handshake: Handshake,
    /// How it ended.
    pub ended: Option<&'static str>,
    /// Whether a packet was seen that only an established connection has: an acknowledgement after the SYNs.
    pub is_established: bool,
    /// Packets seen more than once on their way.
    pub forwarded: Forwarded,
    /// Whether a packet of the end was seen.
    pub is_seen: [bool; 2],
    /// Whether timestamps were seen.
    pub has_timestamps: bool,
    /// What held each direction, once it carries data.
    pub limits: [Option<Box<Tracker>>; 2],
    /// The last acknowledgement before data, which has the first window.
    first_acks: [Option<limits::Ack>; 2],
    /// The highest acknowledgement number that each end has sent.
    answered: [u64; 2],
    fins: [bool; 2],
}

impl Connection {
    /// Bytes of memory, its own included, its rows not.
    pub fn memory(&self) -> usize {
        let limits: usize = self.limits.iter().flatten().map(|t| t.memory()).sum();
        size_of::<Connection>() + limits + self.forwarded.heap() + self.directions.iter().map(Direction::heap).sum::<usize>() + HISTOGRAMS
    }

    /// Keeps at most so many rows of events, intervals and gaps of a direction from now on.
    pub fn bound(&mut self, events: usize, intervals: usize, gaps: usize) {
        self.directions.iter_mut().for_each(|d| d.log.bound(events));
        self.limits.iter_mut().flatten().for_each(|t| t.bound(intervals, gaps));
    }

    /// A connection whose first packet is `p`; at first, at most so many rows of events of a direction are kept.
    pub fn new(p: &Packet, t: u64, events: usize) -> Connection {
        let mut connection = Connection {
            ends: [p.from, p.to],
            span: t..t,
            directions: Default::default(),
            handshake: Handshake::default(),
            ended: None,
            is_established: false,
            forwarded: Forwarded::default(),
            is_seen: [false; 2],
            has_timestamps: false,
            limits: [None, None],
            first_acks: [None, None],
            answered: [0; 2],
            fins: [false; 2],
        };
        connection.bound(events, INTERVALS, usize::MAX);
        connection
    }

    /// Whether `p`, a SYN, begins another connection of the same ends.
    pub fn is_over(&self, p: &Packet, t: u64) -> bool {
        if !p.flags.has(Flags::SYN) || p.flags.has(Flags::ACK) {
            return false;
        }
        let seq = &self.directions[self.side(p)].end.seq;
        let is_same = seq.begins_at(p.seq.wrapping_add(1));
        !is_same && seq.has_begun() && (self.ended.is_some() || t.saturating_sub(self.span.end) >= REUSE)
    }

    fn side(&self, p: &Packet) -> usize {
        usize::from(p.from != self.ends[0])
    }

    /// Takes a packet; `most` entries may be outstanding in a direction.
    pub fn packet(&mut self, p: &Packet, t: u64, most: usize) {
        let side = self.side(p);
        if self.forwarded.is_again(side, p) {
            return;
        }
        self.span.end = t;
        self.is_seen[side] = true;
        let seen = self.seen(side, p, t);
        if p.flags.has(Flags::SYN) {
            self.handshake.syn(side, t, p);
            self.agree();
        } else if p.flags.has(Flags::ACK) {
            self.is_established |= !p.flags.has(Flags::RST);
            self.handshake.ack(side, t, p.frame);
            self.measure();
        }
        let answer = if p.flags.has(Flags::ACK) { self.acknowledge(1 - side, p, &seen) } else { 0 };
        let delivered = self.directions[1 - side].acks.board().delivered();
        self.directions[side].end.mark(&seen, delivered);
        if p.len > 0 {
            self.data(side, &seen, answer, most);
        } else {
            self.probe(side, p, &seen);
        }
        self.answered[side] = self.answered[side].max(answer);
        self.end(side, p, &seen);
    }

    /// The packet with numbers that do not wrap, in the order in which its end sent it.
    fn seen(&mut self, side: usize, p: &Packet, t: u64) -> Seen {
        self.has_timestamps |= p.options.timestamps.is_some();
        let [a, b] = &mut self.directions;
        let (own, other) = if side == 0 { (a, b) } else { (b, a) };
        let seen = own.end.packet(p, t, &mut other.end);
        if p.flags.has(Flags::SYN) {
            own.data.begin(seen.start);
        }
        seen
    }

    /// The handshake says what both ends agreed on.
    fn agree(&mut self) {
        let payload = self.handshake.payload();
        for (side, d) in self.directions.iter_mut().enumerate() {
            d.acks.scale(self.handshake.shift(1 - side));
            d.log.agree(payload);
        }
    }

    fn measure(&mut self) {
        if self.directions[0].handshake_rtt.is_none() {
            let parts = [self.handshake.part(0), self.handshake.part(1)];
            if let [Some(a), Some(b)] = parts {
                self.directions.iter_mut().for_each(|d| d.handshake_rtt = Some(a + b));
            }
        }
    }

    /// The packet acknowledges the other direction's data; gives up to where.
    fn acknowledge(&mut self, of: usize, p: &Packet, seen: &Seen) -> u64 {
        let d = &mut self.directions[of];
        let ack = d.end.seq.near(p.ack);
        let mut blocks = [(0, 0); MOST_BLOCKS];
        let mut n = 0;
        for &(left, right) in &p.options.blocks[..usize::from(p.options.block_count).min(MOST_BLOCKS)] {
            let (left, right) = (d.end.seq.near(left), d.end.seq.near(right));
            if left < right && right - left < 1 << 30 {
                blocks[n] = (left, right);
                n += 1;
            }
        }
        d.end.seq.raise(ack);
        let is_syn = p.flags.has(Flags::SYN);
        let (ece, is_cut) = (p.flags.has(Flags::ECE), p.options.is_cut);
        let report = Report { seen: *seen, ack, blocks: &blocks[..n], window: p.window, is_syn, ece, is_cut };
        let said = d.ack(&report);
        let window = d.acks.window();
        let edge = window.shift.map(|_| shown(ack) + window.bytes(p.window, is_syn));
        let ack = limits::Ack {
            t: seen.t,
            frame: seen.frame,
            ack: shown(ack),
            edge,
            window: Some(p.window).filter(|_| !is_syn),
            sacked: said.sacked,
            delivered: d.acks.board().delivered(),
            dsack: said.dsack,
            tsval: seen.stamp.tsval,
            tsecr: seen.tsecr,
            len: p.len,
            end: shown(seen.range().end),
            is_beyond: shown(seen.start) > self.answered[of],
        };
        match &mut self.limits[of] {
            Some(tracker) => tracker.ack(&ack),
            None => self.first_acks[of] = Some(ack),
        }
        ack.ack
    }

    fn data(&mut self, side: usize, seen: &Seen, answer: u64, most: usize) {
        if self.is_keep_alive(side, seen) {
            return;
        }
        let d = &mut self.directions[side];
        let is_closed = d.acks.window().is_closed();
        let taken = d.data(seen, most);
        if taken.is_copy {
            self.forwarded.remembers();
        }
        if !taken.is_data {
            return;
        }
        d.end.seq.raise(seen.range().end);
        if is_closed && seen.len == 1 {
            d.log.add(seen, seen.range(), Happened::WindowProbe);
        }
        self.watch(side, seen, taken, answer);
    }

    /// The data goes to those who watch what holds the sender.
    fn watch(&mut self, side: usize, seen: &Seen, taken: Taken, answer: u64) {
        let (handshake, first) = (&self.handshake, self.first_acks[side].take());
        let tracker = self.limits[side].get_or_insert_with(|| {
            let mut tracker = Tracker::new(INTERVALS);
            if handshake.client == Some(1 - side) {
                tracker.accepted();
            }
            for (t, frame, packet) in handshake.packets() {
                tracker.handshake(t, frame, packet);
            }
            if let Some(ack) = &first {
                tracker.ack(ack);
            }
            Box::new(tracker)
        });
        let repeat = taken.again.map(|trigger| match trigger {
            Trigger::Fast => limits::Repeat::Fast,
            Trigger::Timeout | Trigger::AfterTimeout => limits::Repeat::Timeout,
            Trigger::Probe => limits::Repeat::Probe,
        });
        let mss = self.directions[side].log.segment_size().filter(|&size| size > 0);
        tracker.data(&limits::Data {
            t: seen.t,
            frame: seen.frame,
            seq: shown(seen.start),
            len: seen.len,
            mss,
            tsval: seen.stamp.tsval,
            tsecr: seen.tsecr,
            psh: seen.flags.has(Flags::PSH),
            repeat,
            ack: answer,
            options: seen.sack_bytes,
        });
    }

    /// A byte before the next new one, when nothing is outstanding: RFC 9293 §3.8.4 (keep-alive), §3.8.6.1 (window probe).
    fn is_keep_alive(&mut self, side: usize, seen: &Seen) -> bool {
        let d = &mut self.directions[side];
        let board = d.acks.board();
        let is_next = d.data.arrivals().high() == Some(seen.start + 1) && board.una() == seen.start + 1;
        let is = seen.len <= 1 && is_next && board.is_empty();
        if is {
            let happened = if d.acks.window().is_closed() { Happened::WindowProbe } else { Happened::KeepAlive };
            d.log.add(seen, seen.range(), happened);
        }
        is
    }

    /// A packet without data may be a keep-alive or a probe too.
    fn probe(&mut self, side: usize, p: &Packet, seen: &Seen) {
        if p.flags.has(Flags::SYN) || p.flags.has(Flags::FIN) || p.flags.has(Flags::RST) {
            return;
        }
        if seen.is_late != Some(true) {
            self.is_keep_alive(side, seen);
        }
    }

    fn end(&mut self, side: usize, p: &Packet, seen: &Seen) {
        if p.flags.has(Flags::FIN) {
            self.directions[side].data.ends(seen.range().end);
        }
        if p.flags.has(Flags::RST) {
            self.ended = self.ended.or(Some("rst"));
        } else if p.flags.has(Flags::FIN) {
            self.fins[side] = true;
            if self.fins == [true; 2] {
                self.ended = self.ended.or(Some("fin"));
            }
        } else {
            return;
        }
        if let Some(tracker) = &mut self.limits[side] {
            tracker.ended(seen.t, seen.frame);
        }
    }
}
