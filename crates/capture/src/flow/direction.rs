//! The data of one end of a connection, as the packets of both ends show what becomes of them. This file takes the data packets,
//! `acked` the other end's.

use super::answers::Answers;
use super::arrivals::{Arrivals, Cause, Part};
use super::counts::Counts;
use super::echo::{is_before, Echoed, Echoes};
use super::order::{Order, Stamp};
use super::repeats::{Phase, Repeats, Situation, Trigger};
use super::rtt::Times;
use super::scoreboard::{Scoreboard, Sent};
use super::sequence::{shown, Unwrapped, ORIGIN};
use super::table::{AckRow, EventRow, Fate, Kind, SegmentRow, Side, Thinned};
use super::window::Window;
use tcpscape_base::{Ecn, Flags};

/// Most events kept as rows.
const EVENTS: usize = 1 << 17;
/// A sender with nothing in flight that is silent for so long is idle, ns.
const IDLE: u64 = 200_000_000;
/// Copies that the network makes are looked for among so many packets.
const COPIES: usize = 64;
/// Bytes beyond the window that no sender's mistake explains.
const FAR: u64 = 1 << 30;

/// A packet, with numbers that do not wrap.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// When, ns since the capture's first packet.
    pub t: u64,
    /// Its number in the capture.
    pub frame: u64,
    /// Its first byte.
    pub start: u64,
    /// Bytes of payload.
    pub len: u32,
    /// Bytes of the IP packet.
    pub size: u32,
    /// Its flags.
    pub flags: Flags,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Order of sending.
    pub stamp: Stamp,
    /// TSecr; 0 none.
    pub tsecr: u32,
    /// Whether it was sent before one of its end that came earlier.
    pub is_late: Option<bool>,
    /// Its place in its end's order of sending, where the identification counts; 0 unknown.
    pub place: u64,
    /// What its TSecr answers.
    pub echo: Option<Echoed>,
}

impl Seen {
    pub(super) fn tsval(&self) -> u32 {
        self.stamp.tsval.unwrap_or(0)
    }
}

/// What a data packet turned out to be, for those who watch the sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Why it was sent again, if it was.
    pub again: Option<Trigger>,
    /// Whether what it repeats had arrived.
    pub is_needless: bool,
    /// Whether it counts as data of the connection.
    pub is_data: bool,
}

/// The state of one direction.
#[derive(Debug, Default)]
pub struct Direction {
    /// Numbers of this end.
    pub seq: Unwrapped,
    /// Order of this end's packets.
    pub order: Order,
    /// TSvals of this end.
    pub echoes: Echoes,
    /// What was seen.
    pub arrivals: Arrivals,
    /// What is not acknowledged.
    pub board: Scoreboard,
    /// The other end's receive window.
    pub window: Window,
    /// From data to what covers them.
    pub rtt: Times,
    /// From the other end's packets to data that echo them.
    pub upstream: Times,
    /// Counters.
    pub counts: Counts,
    /// Rows of data.
    pub segments: Thinned<SegmentRow>,
    /// Rows of the other end's packets.
    pub acks: Thinned<AckRow>,
    /// Rows of events.
    pub events: Vec<EventRow>,
    /// Most rows of events; 0 for [`EVENTS`].
    pub events_most: usize,
    /// First and last data packet.
    pub span: Option<(u64, u64)>,
    /// Most bytes in flight.
    pub flight_max: u64,
    /// Payload of a full segment; 0 unknown.
    pub mss: u32,
    /// The largest payload of a packet that is no super-packet.
    pub largest: u32,
    /// RTT by the handshake, ns.
    pub handshake_rtt: Option<u64>,
    /// Time to live of the first packet.
    pub ttl: Option<u8>,
    /// The newest TSval that the receiver echoed.
    pub(super) recent_tsval: Option<u32>,
    pub(super) answers: Answers,
    /// Segments that the receiver discarded, by its answers.
    pub(super) discarded_there: u64,
    pub(super) phase: Phase,
    pub(super) repeats: Repeats,
    pub(super) progress_t: u64,
    pub(super) delivered_t: u64,
    pub(super) last_data_t: u64,
    pub(super) last_ack_t: u64,
    pub(super) covered: Vec<Sent>,
    pieces: Vec<(u64, u64, Part)>,
    copies: Option<Box<[(u16, u32, u32); COPIES]>>,
}

impl Direction {
    /// Bytes of memory beside its own and its rows.
    pub fn heap(&self) -> usize {
        let queues = self.echoes.heap() + self.arrivals.heap() + self.board.heap() + self.repeats.heap();
        let copies = self.copies.as_ref().map_or(0, |c| size_of_val(&**c));
        queues + copies + self.covered.capacity() * size_of::<Sent>()
    }

    /// Whether it carries data, as seen or as acknowledged.
    pub fn carries(&self) -> bool {
        self.counts.packets > 0 || self.board.delivered() > 1
    }

    /// When bytes were last acknowledged or SACKed for the first time.
    pub fn delivered_last(&self) -> Option<u64> {
        (self.delivered_t > 0).then_some(self.delivered_t)
    }

    /// Takes a data packet. `most` entries may be outstanding.
    pub fn data(&mut self, s: &Seen, most: usize) -> Taken {
        let end = s.start + u64::from(s.len);
        if self.is_out_of_window(s) {
            self.counts.out_of_window += 1;
            self.event(Kind::OutOfWindow, Side::Unknown, s, s.start, s.len, 0, 0);
            return Taken::default();
        }
        self.idle(s);
        self.count(s);
        let is_discarded = self.paws(s);
        if self.is_copy(s) && self.arrivals.high().is_some_and(|h| s.start < h) {
            self.counts.duplicates += 1;
            self.event(Kind::Duplicate, Side::Before, s, s.start, s.len, 0, 0);
            return Taken { is_data: true, ..Taken::default() };
        }
        let mut pieces = std::mem::take(&mut self.pieces);
        let least = self.least_repeat();
        self.arrivals.take(s.start, end, s.t, s.stamp, &self.order, least, |a, b, p| pieces.push((a, b, p)));
        let mut taken = self.sent_again(s, &pieces);
        taken.is_data = true;
        self.place(s, &pieces);
        if is_discarded {
            self.board.discard(s.start, end);
        }
        pieces.clear();
        self.pieces = pieces;
        while self.board.len() > most {
            self.board.forget();
            self.counts.given_up += 1;
        }
        self.flight_max = self.flight_max.max(self.board.flight());
        self.last_data_t = s.t;
        taken
    }

    /// Adds what is new, or fills a hole, as a row and as entries of the scoreboard.
    fn place(&mut self, s: &Seen, pieces: &[(u64, u64, Part)]) {
        if pieces.iter().all(|p| p.2 == Part::Again) {
            return;
        }
        let (mut fate, mut late) = (Fate::Unknown, 0);
        let (mut first, mut last) = (u64::MAX, 0);
        let row = self.segments.offered();
        for &(start, end, part) in pieces.iter().filter(|p| p.2 != Part::Again) {
            (first, last) = (first.min(start), last.max(end));
            if let Part::Fill(cause, since) = part {
                late = s.t.saturating_sub(since);
                fate = self.filled(s, start, end, cause, late);
            }
            self.board.add(Sent { start, end, first_t: s.t, last_t: s.t, row, tsval: s.tsval(), sends: 1, ..Sent::default() });
        }
        if !self.segments.keeps_next() {
            self.segments.push(SegmentRow::default());
            return;
        }
        let flight = u32::try_from(self.board.flight()).unwrap_or(u32::MAX);
        let len = last.saturating_sub(first) as u32;
        let flight_by_echo = self.flight_by_echo(s);
        self.segments.push(SegmentRow {
            t: s.t,
            frame: s.frame,
            seq: shown(first),
            delivered: self.board.delivered(),
            delivered_t: self.delivered_t,
            late,
            echo: s.echo.and_then(|e| e.after).unwrap_or(0),
            len,
            flight,
            flight_by_echo,
            tsval: s.tsval(),
            tsecr: s.tsecr,
            id: s.stamp.id,
            segs: u16::try_from(self.segments_in(len)).unwrap_or(u16::MAX),
            sends: 1,
            fate: fate as u8,
            ce: u8::from(s.ecn == Ecn::Ce),
            psh: u8::from(s.flags.has(Flags::PSH)),
            ..SegmentRow::default()
        });
    }

    /// What the sender had in flight when it sent this, by the ACK that it echoes; 0 unknown.
    fn flight_by_echo(&self, s: &Seen) -> u32 {
        let (Some(echo), Some(high)) = (s.echo, self.arrivals.high()) else { return 0 };
        u32::try_from((high - ORIGIN.min(high)).saturating_sub(echo.delivered)).unwrap_or(u32::MAX)
    }

    /// A hole was filled: what that says of the way here.
    fn filled(&mut self, s: &Seen, start: u64, end: u64, cause: Cause, late: u64) -> Fate {
        let len = (end - start) as u32;
        let n = self.segments_in(len);
        let after = self.arrivals.high().unwrap_or(end).saturating_sub(end);
        let extent = self.segments_in(u32::try_from(after).unwrap_or(u32::MAX));
        match cause {
            Cause::Reordered => {
                self.counts.reordered += n;
                self.counts.reordered_before += n;
                self.reordering_extent(extent, late);
                self.frequent(Kind::Reordering, Side::Before, s, start, len, late, extent);
                Fate::Reordered
            }
            Cause::Repeated => {
                self.counts.losses += n;
                self.counts.losses_before += n;
                self.event(Kind::Loss, Side::Before, s, start, len, late, extent);
                Fate::Lost
            }
            Cause::Unknown => {
                self.counts.late_unexplained += n;
                Fate::Unknown
            }
        }
    }

    pub(super) fn reordering_extent(&mut self, segments: u64, ns: u64) {
        self.counts.reordering_segments_max = self.counts.reordering_segments_max.max(segments);
        self.counts.reordering_ns_max = self.counts.reordering_ns_max.max(ns);
    }

    /// If it repeats something: why, by what was going on.
    fn sent_again(&mut self, s: &Seen, pieces: &[(u64, u64, Part)]) -> Taken {
        let is_repeat = |p: &Part| matches!(p, Part::Again | Part::Fill(Cause::Repeated, _));
        let (Some(first), Some(last)) = (pieces.iter().find(|p| is_repeat(&p.2)), pieces.iter().rev().find(|p| is_repeat(&p.2))) else {
            return Taken::default();
        };
        let (start, end) = (first.0, last.1);
        let trigger = self.trigger(s, start, end);
        let n = self.segments_in((end - start) as u32);
        self.counts.retransmissions += n;
        let (count, kind) = match trigger {
            Trigger::Fast => (&mut self.counts.fast_retransmissions, Kind::FastRetransmission),
            Trigger::Timeout => (&mut self.counts.timeouts, Kind::Timeout),
            Trigger::AfterTimeout => (&mut self.counts.after_timeout, Kind::AfterTimeout),
            Trigger::Probe => (&mut self.counts.tail_probes, Kind::TailProbe),
        };
        *count += if trigger == Trigger::Timeout { 1 } else { n };
        self.event(kind, Side::Unknown, s, start, (end - start) as u32, 0, n);
        let mut is_needless = false;
        for &(a, b, _) in pieces.iter().filter(|p| p.2 == Part::Again) {
            is_needless |= self.board_again(s, a, b);
        }
        match trigger {
            Trigger::Timeout => self.board.lose_all(),
            Trigger::Fast => self.board.presume_lost(self.rtt.least().unwrap_or(0) / 4),
            Trigger::AfterTimeout | Trigger::Probe => {}
        }
        Taken { again: Some(trigger), is_needless, is_data: true }
    }

    fn trigger(&mut self, s: &Seen, start: u64, end: u64) -> Trigger {
        let up = self.upstream.least().unwrap_or(0);
        let head = self.board.head().copied();
        let high = self.arrivals.high().unwrap_or(end);
        let head_t = head.filter(|h| h.start <= start).map_or(0, |h| h.last_t);
        let situation = Situation {
            is_head: start <= self.board.una(),
            is_tail: end >= high && self.board.high() < end,
            quiet: s.t.saturating_sub(self.last_ack_t.max(self.last_data_t)),
            since_progress: s.t.saturating_sub(self.progress_t.max(head_t)),
            rtt: self.rtt.smoothed() + up,
            timeout: self.rtt.timeout(up),
            high,
        };
        self.phase.repeats(&situation)
    }

    /// Counts a packet.
    fn count(&mut self, s: &Seen) {
        self.span = Some((self.span.map_or(s.t, |x| x.0), s.t));
        if s.size <= 1_500 {
            self.largest = self.largest.max(s.len);
        }
        let n = self.segments_in(s.len);
        let c = &mut self.counts;
        c.packets += 1;
        c.segments += n;
        c.super_packets += u64::from(n > 1);
        c.payload_bytes += u64::from(s.len);
        if let Some(after) = s.echo.and_then(|e| e.after) {
            self.upstream.add(after);
        }
        if s.ecn == Ecn::Ce {
            self.counts.ce += 1;
            self.event(Kind::Ce, Side::Before, s, s.start, s.len, 0, 0);
        }
    }

    /// The receiver had echoed a newer timestamp before this came: it discards it (RFC 7323 §5.3).
    fn paws(&mut self, s: &Seen) -> bool {
        let is = s.stamp.tsval.is_some_and(|v| self.recent_tsval.is_some_and(|recent| is_before(v, recent)));
        if is {
            self.counts.discarded += 1;
            self.event(Kind::Discarded, Side::After, s, s.start, s.len, 0, 0);
        }
        is
    }

    /// Nothing was in flight, and the sender had been silent.
    fn idle(&mut self, s: &Seen) {
        let gap = s.t.saturating_sub(self.last_data_t.max(self.last_ack_t));
        if self.counts.packets > 0 && gap >= IDLE && self.board.flight() == 0 && self.board.is_empty() {
            self.counts.idles += 1;
            self.event(Kind::Idle, Side::Unknown, s, s.start, 0, gap, 0);
        }
    }

    fn is_out_of_window(&self, s: &Seen) -> bool {
        let Some(high) = self.arrivals.high() else { return false };
        let end = s.start + u64::from(s.len);
        let beyond = match self.window.edge() {
            Some(edge) => s.start > edge.max(high) + self.window.most().max(1 << 16),
            None => false,
        };
        beyond || s.start > high + FAR || end + FAR < high
    }

    /// Whether the same packet has just been seen: the network made a copy (a retransmission has another identification, or another TSval).
    fn is_copy(&mut self, s: &Seen) -> bool {
        if s.stamp.id == 0 && s.stamp.tsval.is_none() {
            return false;
        }
        let copies = self.copies.get_or_insert_with(|| Box::new([(0, 0, 0); COPIES]));
        let place = if s.stamp.id == 0 { (s.start >> 8) as usize } else { usize::from(s.stamp.id) } % COPIES;
        let this = (s.stamp.id, s.start as u32, s.tsval());
        let is = copies[place] == this && (s.stamp.id != 0 || s.t.saturating_sub(self.last_data_t) < 1_000_000);
        copies[place] = this;
        is
    }

    /// Payload of a full segment: by the SYNs, otherwise the largest seen; 0 unknown.
    pub fn segment_size(&self) -> u32 {
        if self.mss > 0 {
            self.mss
        } else {
            self.largest
        }
    }

    /// Segments that so many bytes take.
    pub fn segments_in(&self, len: u32) -> u64 {
        let mss = if self.mss > 0 { self.mss } else { self.largest.max(536) };
        u64::from(len.div_ceil(mss).max(1))
    }

    /// The least time that a retransmission takes after the loss shows: a round trip.
    fn least_repeat(&self) -> Option<u64> {
        match (self.rtt.least(), self.upstream.least()) {
            (Some(down), Some(up)) => Some((down + up) * 9 / 10),
            _ => self.handshake_rtt,
        }
    }

    #[allow(clippy::too_many_arguments)] // the fields of a row
    pub(super) fn event(&mut self, kind: Kind, side: Side, s: &Seen, seq: u64, len: u32, extent: u64, segments: u64) -> Option<usize> {
        if self.events.len() >= if self.events_most == 0 { EVENTS } else { self.events_most } {
            self.counts.events_left_out += 1;
            return None;
        }
        let segments = u32::try_from(segments).unwrap_or(u32::MAX);
        let row = EventRow { t: s.t, frame: s.frame, seq: shown(seq), extent, len, segments, kind: kind as u8, side: side as u8 };
        self.events.push(row);
        Some(self.events.len() - 1)
    }
}
