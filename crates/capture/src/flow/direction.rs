//! The data of one end of a connection, as the packets of both ends show what becomes of them: `data` has what was seen sent, `acks` what was
//! acknowledged, `log` what is handed on.

use super::acks::{Acks, Report, Said};
use super::data::{Cause, Data, Evidence, Part, Piece};
use super::end::{End, Seen};
use super::log::{Happened, Log};
use super::repeats::Trigger;
use super::sequence::shown;
use super::table::{Fate, SegmentRow, Side};
use tcpscape_base::{Ecn, Flags};

/// A sender with nothing in flight that is silent for so long is idle, ns.
const IDLE: u64 = 200_000_000;

/// What a data packet turned out to be, for those who watch the sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Why it was sent again, if it was.
    pub again: Option<Trigger>,
    /// Whether it counts as data of the connection.
    pub is_data: bool,
    /// Whether it is a copy of what was seen.
    pub is_copy: bool,
}

/// The state of one direction.
#[derive(Debug, Default)]
pub struct Direction {
    /// Who sends it.
    pub end: End,
    /// What was seen sent.
    pub data: Data,
    /// What was acknowledged.
    pub acks: Acks,
    /// What is handed on.
    pub log: Log,
    /// RTT by the handshake, ns.
    pub handshake_rtt: Option<u64>,
    /// Scratch: a packet's bytes.
    pieces: Vec<Piece>,
}

impl Direction {
    /// Bytes of memory beside its own and its rows.
    pub fn heap(&self) -> usize {
        self.end.heap() + self.data.heap() + self.acks.heap()
    }

    /// Whether it carries data, as seen or as acknowledged.
    pub fn carries(&self) -> bool {
        self.log.counts.packets > 0 || self.acks.board().delivered() > 1
    }

    /// Takes a packet of the other end that acknowledges this direction's data.
    pub fn ack(&mut self, r: &Report<'_>) -> Said {
        let missed = self.data.acknowledged(r.ack, &r.seen);
        if missed > 1 {
            // 1 may be a FIN that was not seen
            self.log.add(&r.seen, r.ack - missed..r.ack, Happened::NotCaptured);
        }
        self.acks.take(r, self.data.arrivals().first(), self.data.without_fin(r.ack), &mut self.log)
    }

    /// Takes a data packet. `most` entries may be outstanding.
    pub fn data(&mut self, s: &Seen, most: usize) -> Taken {
        if self.data.is_out_of_window(s, self.acks.window()) {
            self.log.add(s, s.range(), Happened::OutOfWindow);
            return Taken::default();
        }
        let quiet = s.t.saturating_sub(self.data.last_t().max(self.acks.last_t()));
        let board = self.acks.board();
        if self.log.counts.packets > 0 && quiet >= IDLE && board.flight() == 0 && board.is_empty() {
            self.log.add(s, s.start..s.start, Happened::Idle(quiet));
        }
        self.data.timed(s);
        self.log.data(s);
        let is_discarded = self.acks.discards(s);
        if is_discarded {
            self.log.add(s, s.range(), Happened::Discarded);
        }
        if self.data.is_copy(s) {
            return self.copied(s);
        }
        let mut pieces = std::mem::take(&mut self.pieces);
        let (least, answer) = (self.least_repeat(), self.acks.rtt().least());
        let evidence = Evidence { t: s.t, stamp: s.stamp, order: self.end.order(), least, answer };
        self.data.take(s, &evidence, |p| pieces.push(p));
        if self.is_sighting(s, &pieces) {
            pieces.clear();
            self.pieces = pieces;
            return self.copied(s);
        }
        let again = self.sent_again(s, &pieces, quiet);
        self.place(s, &pieces);
        pieces.clear();
        self.pieces = pieces;
        self.log.counts.given_up += self.acks.settle(s, is_discarded, most);
        Taken { again, is_data: true, is_copy: false }
    }

    /// It is a copy of what was seen.
    fn copied(&mut self, s: &Seen) -> Taken {
        self.log.add(s, s.range(), Happened::Copied);
        Taken { is_data: true, is_copy: true, again: None }
    }

    /// Whether it was sent before packets that came earlier, and all of it was seen with the same TSval: a second sight of it, perhaps as a part of a
    /// super-packet, since a retransmission is newer.
    fn is_sighting(&self, s: &Seen, pieces: &[Piece]) -> bool {
        let all_again = !pieces.is_empty() && pieces.iter().all(|p| p.part == Part::Again);
        all_again && s.is_late == Some(true) && s.stamp.tsval.is_some_and(|tsval| self.acks.board().has(s.range(), tsval))
    }

    /// The least time that a retransmission takes after the loss shows: a round trip.
    fn least_repeat(&self) -> Option<u64> {
        match (self.acks.rtt().least(), self.data.upstream().least()) {
            (Some(down), Some(up)) => Some((down + up) * 9 / 10),
            _ => self.handshake_rtt,
        }
    }

    /// If it repeats something: why.
    fn sent_again(&mut self, s: &Seen, pieces: &[Piece], quiet: u64) -> Option<Trigger> {
        let is_repeat = |p: &&Piece| matches!(p.part, Part::Again | Part::Fill(Cause::Repeated, _));
        let (first, last) = (pieces.iter().find(is_repeat)?, pieces.iter().rfind(is_repeat)?);
        let range = first.start..last.end;
        let trigger = self.acks.why_again(s, range.clone(), &self.data, quiet);
        self.log.add(s, range, Happened::Repeated(trigger));
        for p in pieces.iter().filter(|p| p.part == Part::Again) {
            self.acks.again(s, p.start..p.end, &mut self.log);
        }
        self.acks.presume_lost(trigger);
        Some(trigger)
    }

    /// Adds what is new, or fills a hole, as a row and as entries of the scoreboard.
    fn place(&mut self, s: &Seen, pieces: &[Piece]) {
        let mut new = pieces.iter().filter(|p| p.part != Part::Again).peekable();
        let Some(first) = new.peek().map(|p| p.start) else { return };
        let (mut last, mut fate, mut late) = (first, Fate::Unknown, 0);
        let row = self.log.segments.offered();
        for p in new {
            last = p.end;
            match p.part {
                Part::Fill(cause, since) => {
                    late = s.t.saturating_sub(since);
                    fate = self.filled(s, p, cause, late);
                }
                Part::Late(ack) => {
                    self.log.captured_late(ack, p.end - p.start);
                    fate = Fate::InOrder;
                }
                Part::New | Part::Again => {}
            }
            self.acks.add(s, p.start..p.end, row);
        }
        let len = (last - first) as u32;
        let segments = self.log.segments_in(u64::from(len));
        self.log.segments.offer(|| SegmentRow {
            t: s.t,
            frame: s.frame,
            seq: shown(first),
            delivered: self.acks.board().delivered(),
            delivered_t: self.acks.delivered_t(),
            late,
            echo: s.echo_after(),
            len,
            flight: u32::try_from(self.acks.board().flight()).unwrap_or(u32::MAX),
            flight_by_echo: self.data.flight_by_echo(s),
            tsval: s.tsval(),
            tsecr: s.tsecr.unwrap_or(0),
            id: s.stamp.id,
            segs: u16::try_from(segments).unwrap_or(u16::MAX),
            sends: 1,
            fate: fate as u8,
            ce: u8::from(s.ecn == Ecn::Ce),
            psh: u8::from(s.flags.has(Flags::PSH)),
            ..SegmentRow::default()
        });
    }

    /// A hole was filled: what that says of the way here.
    fn filled(&mut self, s: &Seen, p: &Piece, cause: Cause, late: u64) -> Fate {
        let above = self.log.segments_in(self.data.arrivals().high().unwrap_or(p.end).saturating_sub(p.end));
        let (happened, fate) = match cause {
            Cause::Reordered => (Happened::Reordered { side: Side::Before, late, above: Some(above) }, Fate::Reordered),
            Cause::Repeated => (Happened::LostBefore { late, above }, Fate::Lost),
            Cause::Unknown => (Happened::Late, Fate::Unknown),
        };
        self.log.add(s, p.start..p.end, happened);
        fate
    }
}
