//! What the other end's packets say of the data: what arrived, in which order, and what was sent needlessly.
//!
//! Source: RFC 2018 §4 (the first block holds the segment that caused the ACK), RFC 2883 §4 (DSACK), RFC 3522 §3.2 (Eifel detection),
//! RFC 5681 §2 (duplicate ACK), Karn and Partridge, "Improving round-trip time estimates" (SIGCOMM 1987).

use super::answers::{digest, Answers};
use super::data::Data;
use super::delivered::{Delivered, Order};
use super::end::Seen;
use super::log::{Happened, Log, Proof};
use super::repeats::{Phase, Repeated, Repeats, Situation, Trigger};
use super::rtt::Times;
use super::scoreboard::{Acked, Scoreboard, Sent};
use super::sequence::shown;
use super::table::{AckRow, Fate, Side};
use super::window::{Change, Window};
use std::ops::Range;
use tcpscape_base::wire::ahead;

/// A SACK block: left and right edge.
type Block = (u64, u64);

/// An acknowledgement, with numbers that do not wrap.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// The packet.
    pub seen: Seen,
    /// Its acknowledgement number.
    pub ack: u64,
    /// Its SACK blocks, as they stand in it.
    pub blocks: &'a [Block],
    /// Its window field.
    pub window: u16,
    /// Whether it is a SYN, whose window is not scaled.
    pub is_syn: bool,
    /// Whether it has ECE.
    pub ece: bool,
    /// Whether the capture cut its options off, so that it may have more blocks.
    pub is_cut: bool,
}

impl<'a> Report<'a> {
    /// The DSACK, and the blocks without it: the first lies below the acknowledgement number, or inside the second (RFC 2883 §4).
    fn split_dsack(&self) -> (Option<Block>, &'a [Block]) {
        match self.blocks {
            [first, rest @ ..] if first.1 <= self.ack || rest.first().is_some_and(|b| b.0 <= first.0 && first.1 <= b.1) => {
                (Some(*first), rest)
            }
            _ => (None, self.blocks),
        }
    }
}

/// What an acknowledgement said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// Bytes that it is the first to SACK.
    pub sacked: u32,
    /// Bytes that it is the first to acknowledge by its number.
    newly: u32,
    /// Bytes that its DSACK reports.
    pub dsack: u32,
    /// Whether it is a duplicate ACK.
    is_dup: bool,
    /// Whether it came after one that was sent later.
    is_late: bool,
}

/// What of the data was acknowledged.
#[derive(Debug, Default)]
pub struct Acks {
    board: Scoreboard,
    window: Window,
    rtt: Times,
    phase: Phase,
    repeats: Repeats,
    answers: Answers,
    delivered: Delivered,
    /// The newest TSval that the receiver echoed.
    recent_tsval: Option<u32>,
    /// Segments that the receiver discarded, by its answers.
    discarded: u64,
    /// When the acknowledgement number last grew.
    progress_t: u64,
    /// When bytes were last acknowledged or SACKed for the first time; 0 never.
    delivered_t: u64,
    last_t: u64,
    flight_max: u64,
    /// The largest place of an ACK among the receiver's, and when one was last missing before the next that came.
    last_place: Option<u64>,
    missed_t: u64,
    /// How many were missing so, with those that came late.
    missed: u64,
    /// Packets since the last row that have none, and parts of super-packets.
    beside: u64,
    /// Scratch: what an ACK covers first.
    covered: Vec<Sent>,
}

impl Acks {
    /// Bytes of memory beside its own.
    pub fn heap(&self) -> usize {
        self.board.heap() + self.repeats.heap() + self.delivered.heap() + self.covered.capacity() * size_of::<Sent>()
    }
    /// What is not acknowledged.
    pub fn board(&self) -> &Scoreboard {
        &self.board
    }
    /// The other end's receive window.
    pub fn window(&self) -> &Window {
        &self.window
    }
    /// From data to what covers them.
    pub fn rtt(&self) -> &Times {
        &self.rtt
    }
    /// When bytes were last acknowledged or SACKed for the first time; 0 never.
    pub fn delivered_t(&self) -> u64 {
        self.delivered_t
    }
    /// When the last packet came, ns; 0 before one.
    pub fn last_t(&self) -> u64 {
        self.last_t
    }
    /// Most bytes in flight.
    pub fn flight_max(&self) -> u64 {
        self.flight_max
    }
    /// The handshake says how the other end's windows are scaled.
    pub fn scale(&mut self, shift: Option<u8>) {
        self.window.shift = shift;
    }
    /// Whether the receiver had echoed a newer timestamp before this came: it discards it (RFC 7323 §5.3).
    pub fn discards(&self, s: &Seen) -> bool {
        s.stamp.tsval.is_some_and(|v| self.recent_tsval.is_some_and(|recent| ahead(recent, v) < 0))
    }

    /// Adds data that were never seen before.
    pub fn add(&mut self, s: &Seen, range: Range<u64>, row: u64) {
        let (start, end) = (range.start, range.end);
        self.board.add(Sent { start, end, first_t: s.t, last_t: s.t, row, tsval: s.tsval(), sends: 1, ..Sent::default() });
    }

    /// A data packet is taken, which the receiver discards or not. At most so many entries stay outstanding; gives how many were given up.
    pub fn settle(&mut self, s: &Seen, is_discarded: bool, most: usize) -> u64 {
        if is_discarded {
            self.board.discard(s.start, s.range().end);
        }
        let more = self.board.len().saturating_sub(most);
        (0..more).for_each(|_| self.board.forget());
        self.flight_max = self.flight_max.max(self.board.flight());
        more as u64
    }

    /// A range is repeated after the connection was quiet for so long: why, by what was going on.
    pub fn why_again(&mut self, s: &Seen, range: Range<u64>, data: &Data, quiet: u64) -> Trigger {
        let up = data.upstream().least().unwrap_or(0);
        let head_t = self.board.head().filter(|h| h.start <= range.start).map_or(0, |h| h.last_t);
        let high = data.arrivals().high().unwrap_or(range.end);
        self.phase.repeats(&Situation {
            is_head: range.start <= self.board.una(),
            is_tail: range.end >= high && self.board.high() < range.end,
            quiet,
            since_progress: s.t.saturating_sub(self.progress_t.max(head_t)),
            rtt: self.rtt.smoothed() + up,
            timeout: self.rtt.timeout(up),
            high,
        })
    }

    /// A range that was seen before is sent again.
    pub fn again(&mut self, s: &Seen, range: Range<u64>, log: &mut Log) {
        let (mut known, mut open, mut last, mut sends) = (range.end <= self.board.una(), false, None, [None; 8]);
        let mut i = 0;
        self.board.again(range.start, range.end, s.t, s.tsval(), |c| {
            known |= c.is_sacked;
            open |= !c.is_sacked;
            last = Some(c.row);
            if i < sends.len() {
                (sends[i], i) = (Some((c.row, c.sends)), i + 1);
            }
        });
        for (row, sends) in sends.into_iter().flatten() {
            if let Some(row) = log.segments.get(row) {
                (row.sends, row.rtt) = (row.sends.max(sends), 0);
            }
        }
        if known && !open {
            let row = last.unwrap_or(u64::MAX);
            self.repeats.add(Repeated { start: range.start, end: range.end, row, lost: 0, claimed: 1, passed_t: 0, event: None });
            log.add(s, range, Happened::RepeatedSacked);
        }
    }

    /// The sender holds for lost what its retransmission shows.
    pub fn presume_lost(&mut self, trigger: Trigger) {
        match trigger {
            Trigger::Timeout => self.board.lose_all(),
            Trigger::Fast => self.board.presume_lost(self.rtt.least().unwrap_or(0) / 4),
            Trigger::AfterTimeout | Trigger::Probe => {}
        }
    }

    /// Takes a packet of the other end; the data begin at `first`, if they were seen, and those that it acknowledges end before `end`.
    pub fn take(&mut self, r: &Report<'_>, first: Option<u64>, end: u64, log: &mut Log) -> Said {
        let s = &r.seen;
        log.counts.acks += 1;
        log.counts.ece += u64::from(r.ece);
        log.counts.sacks += u64::from(!r.blocks.is_empty());
        self.board.begin(first.map_or(r.ack, |f| f.min(r.ack)));
        let (dsack, blocks) = r.split_dsack();
        let (una, high_row, delivered) = (self.board.una(), self.board.high_row(), self.board.delivered());
        let is_late = r.ack < una || s.is_late == Some(true);
        let missed = s.place.zip(self.last_place).map_or(0, |(place, last)| place.saturating_sub(last + 1));
        if missed > 0 || r.is_cut {
            (self.missed, self.missed_t) = (self.missed + missed + u64::from(r.is_cut), s.t);
        }
        // A super-packet has a number for each of its parts.
        let segments = log.segments_in(u64::from(s.len));
        self.last_place = self.last_place.max(s.place.map(|place| place + segments - 1));
        let mut covered = std::mem::take(&mut self.covered);
        let did = self.board.ack(r.ack, blocks, s.t, s.place, &mut covered);
        let same_window = self.window.edge().map_or(true, |e| e == r.ack + self.window.bytes(r.window, r.is_syn));
        let is_repeated = r.blocks.is_empty() && same_window && log.counts.acks > 1;
        // RFC 5681 §2, and with SACK a packet that tells of something new above the number.
        let is_dup = r.ack == una && s.len == 0 && !r.is_syn && !self.board.is_empty() && (did.sacked > 0 || is_repeated);
        if is_dup {
            log.counts.dup_acks += 1;
            if r.blocks.is_empty() {
                self.board.duplicate(s.t);
            }
        }
        self.judge_all(r, &covered, una, high_row, log);
        covered.clear();
        self.covered = covered;
        let twice = dsack.map_or(0, |d| self.twice(s, d.0..d.1, log));
        if did.advances {
            self.progress_t = s.t;
            self.phase.acknowledged(r.ack);
        }
        if self.board.delivered() > delivered && (did.sacked > 0 || end > una) {
            self.delivered_t = s.t;
        }
        if is_late {
            self.lacked(r, blocks, log);
            log.add(s, r.ack..r.ack, Happened::ReorderedAck);
        } else {
            self.advertise(r, log);
        }
        self.last_t = s.t;
        let is_news = did.advances || did.sacked > 0 || is_late || is_dup || !same_window;
        for _ in 0..self.without_news(r, is_news) {
            self.discarded_there(s, log);
        }
        if s.tsecr.is_some_and(|echo| self.recent_tsval.map_or(true, |v| ahead(echo, v) < 0)) {
            self.recent_tsval = s.tsecr;
        }
        let Acked { sacked, newly, .. } = did;
        let [sacked, newly, dsack] = [sacked, newly, twice].map(|n| u32::try_from(n).unwrap_or(u32::MAX));
        let said = Said { sacked, newly, dsack, is_dup, is_late };
        let is_shown = s.len == 0 || did.newly + did.sacked > 0 || twice > 0;
        if is_shown && (log.counts.packets > 0 || self.board.delivered() > 1) {
            log.acks.offer(|| self.row(r, blocks.first().copied(), said));
            self.beside = segments - 1;
        } else if log.acks.offered() > 0 {
            self.beside += segments;
        }
        said
    }

    fn row(&self, r: &Report<'_>, block: Option<Block>, said: Said) -> AckRow {
        let s = &r.seen;
        let (left, right) = block.map_or((0, 0), |b| (shown(b.0), shown(b.1)));
        AckRow {
            t: s.t,
            frame: s.frame,
            ack: shown(r.ack),
            sack_left: left,
            sack_right: right,
            echo: s.echo_after(),
            sacked: said.sacked,
            newly: said.newly,
            window: u32::try_from(self.window.bytes(r.window, r.is_syn)).unwrap_or(u32::MAX),
            tsval: s.tsval(),
            tsecr: s.tsecr.unwrap_or(0),
            dsack: said.dsack,
            len: s.len,
            id: s.stamp.id,
            beside: u16::try_from(self.beside).unwrap_or(u16::MAX),
            dup: u8::from(said.is_dup),
            late: u8::from(said.is_late),
            ece: u8::from(r.ece),
        }
    }

    /// How many ACKs without news this one reveals.
    fn without_news(&mut self, r: &Report<'_>, is_news: bool) -> u64 {
        let s = &r.seen;
        if r.blocks.is_empty() || s.len > 0 || r.is_syn || r.split_dsack().0.is_some() {
            0
        } else {
            s.place.map_or(u64::from(!is_news), |place| self.answers.without_news(place, digest(r.ack, r.window, r.blocks)))
        }
    }

    /// An ACK with nothing new beside its blocks answers a segment that the receiver discarded because its timestamp was older than the
    /// newest (RFC 7323 §5.3: it answers with an ACK), unless it was discarded here already.
    fn discarded_there(&mut self, s: &Seen, log: &mut Log) {
        let Some(echo) = s.tsecr.filter(|_| log.counts.discarded <= self.discarded) else { return };
        if let Some((start, end)) = self.board.discard_one(echo, s.t, self.rtt.smoothed()) {
            self.discarded += 1;
            log.add(s, start..end, Happened::Discarded);
        }
    }

    fn advertise(&mut self, r: &Report<'_>, log: &mut Log) {
        let bytes = self.window.bytes(r.window, r.is_syn);
        match self.window.take(r.seen.t, r.ack, bytes) {
            Some(Change::Closed) => log.add(&r.seen, r.ack..r.ack, Happened::WindowClosed),
            Some(Change::Opened(after)) => log.add(&r.seen, r.ack..r.ack + bytes, Happened::WindowOpened(after)),
            None => None,
        };
    }

    /// Judges what an ACK covers first, in the order of its ranges: whoever was sent before a lower byte's transmission may have waited for
    /// that byte, so its RTT is no sample.
    ///
    /// An ACK is of what has just come: the next above the last number, or what is in its first block (RFC 2018 §4). The rest that it covers
    /// came before, and where an ACK since its sending is missing, or its blocks are cut off, that one may have said so: unless half of what was missing in this flow, or more,
    /// came late, where it is likely on its way, and says then what the receiver lacked (`delivered`).
    fn judge_all(&mut self, r: &Report<'_>, covered: &[Sent], una: u64, high_row: u64, log: &mut Log) {
        let (mut end, mut newest, mut sample) = (0, 0, None);
        let block = r.split_dsack().1.first();
        let come_late = 2 * log.counts.acks_reordered >= self.missed;
        for c in covered {
            if c.start != end {
                newest = 0;
            }
            let is_sample = c.sends == 1 && c.first_t >= newest;
            (end, newest) = (c.end, newest.max(c.last_t));
            let rtt = is_sample.then(|| r.seen.t.saturating_sub(c.first_t));
            sample = rtt.or(sample);
            let is_new = c.start <= una || block.is_some_and(|b| b.0 <= c.start && c.end <= b.1);
            let is_told = is_new || c.first_t >= self.missed_t || come_late;
            let is_passed = c.passed_t > 0 && c.row < high_row && is_told && !is_earlier(r.seen.place, c.passed_by);
            let passed = is_passed.then(|| r.seen.t.saturating_sub(c.passed_t));
            let fate = if c.sends > 1 {
                self.judge_repeated(r, c, c.start <= una && una < c.end, passed, log)
            } else if let Some(late) = passed {
                self.reordered(&r.seen, c, late, log);
                Fate::Reordered
            } else {
                Fate::InOrder
            };
            if log.counts.acks_reordered > 0 {
                self.delivered.add(c, order(r), is_passed);
            }
            if let Some(row) = log.segments.get(c.row) {
                if row.acked == 0 {
                    (row.acked, row.rtt) = (r.seen.t, rtt.unwrap_or(0));
                }
                row.late = row.late.max(passed.unwrap_or(0));
                set(&mut row.fate, fate);
            }
        }
        if let Some(rtt) = sample {
            self.rtt.add(rtt);
        }
    }

    /// An ACK that comes after later ones shows what was overtaken on the way to the receiver; how late that came does not show.
    fn lacked(&mut self, r: &Report<'_>, blocks: &[Block], log: &mut Log) {
        self.delivered.late(order(r), blocks, |c| {
            log.add(&r.seen, c.start..c.end, Happened::Reordered { side: Side::After, late: 0, above: None });
            if let Some(row) = log.segments.get(c.row) {
                set(&mut row.fate, Fate::Reordered);
            }
        });
    }

    fn reordered(&self, s: &Seen, c: &Sent, late: u64, log: &mut Log) {
        let above = log.segments_in(self.board.high().saturating_sub(c.end));
        log.add(s, c.start..c.end, Happened::Reordered { side: Side::After, late, above: Some(above) });
    }

    /// A repeated range arrived: which of its transmissions was it?
    fn judge_repeated(&mut self, r: &Report<'_>, c: &Sent, is_head: bool, passed: Option<u64>, log: &mut Log) -> Fate {
        let s = &r.seen;
        let since = s.t.saturating_sub(c.last_t);
        let by_timestamp = is_head && c.again_tsval != 0 && s.tsecr.is_some_and(|echo| ahead(c.again_tsval, echo) < 0);
        // Half of the least RTT: the queue that all samples so far contain may have gone.
        let by_time = since < self.rtt.least().unwrap_or(0) / 2;
        let is_claimed = c.twice == 0 && (by_timestamp || by_time);
        let claimed = u16::from(is_claimed);
        let lost = (c.sends - 1).saturating_sub(c.twice).saturating_sub(claimed).saturating_sub(c.discarded);
        if is_claimed {
            log.add(s, c.start..c.end, Happened::Spurious(if by_timestamp { Proof::Timestamp } else { Proof::Time }, since));
        }
        let mut event = None;
        if lost > 0 {
            let may_be_discarded = c.tsval != 0 && self.recent_tsval.is_some_and(|v| ahead(v, c.tsval) < 0);
            let since = s.t.saturating_sub(c.first_t);
            event = log.add(s, c.start..c.end, Happened::LostAfter { since, times: lost, may_be_discarded });
        } else if let Some(late) = passed {
            self.reordered(s, c, late, log);
        }
        self.repeats.add(Repeated { start: c.start, end: c.end, row: c.row, lost, claimed, passed_t: c.passed_t, event });
        match (lost, c.discarded) {
            (1.., _) => Fate::Lost,
            (0, 1..) => Fate::Reordered,
            (0, 0) => Fate::Spurious,
        }
    }

    /// A DSACK: something came twice. Gives its bytes.
    fn twice(&mut self, s: &Seen, range: Range<u64>, log: &mut Log) -> u64 {
        let (from, to) = (range.start, range.end);
        log.counts.dsacks += 1;
        log.counts.dsack_bytes += to - from;
        let held = self.board.twice(from, to);
        let known = self.repeats.twice(from, to, |r| log.refuted(s, r));
        if held > 0 {
            let n = log.segments_in(to - from);
            log.counts.spurious += n;
            log.counts.spurious_by_dsack += n;
        } else if known == 0 && log.counts.packets > 0 {
            log.add(s, range, Happened::CopiedAfter);
        }
        to - from
    }
}

/// Its place among the receiver's ACKs.
fn order(r: &Report<'_>) -> Order {
    Order { ack: r.ack, place: r.seen.place }
}

/// Whether the ACK at `place` was sent before the one at `passed_by`: what it covers had come before what passed it.
fn is_earlier(place: Option<u64>, passed_by: Option<u64>) -> bool {
    place.zip(passed_by).is_some_and(|(place, passed_by)| place < passed_by)
}

/// The worse fate stays.
fn set(fate: &mut u8, new: Fate) {
    let rank = |f: u8| if f == Fate::Lost as u8 { 9 } else { (f + 1) % 5 };
    if rank(new as u8) > rank(*fate) {
        *fate = new as u8;
    }
}
