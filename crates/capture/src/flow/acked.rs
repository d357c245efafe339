//! What the other end's packets say of the data: what arrived, in which order, and what was sent needlessly.
//!
//! Source: RFC 2018 §4 (the first block holds the segment that caused the ACK), RFC 2883 §4 (DSACK), RFC 3522 §3.2 (Eifel detection),
//! RFC 5681 §2 (duplicate ACK), Karn and Partridge, "Improving round-trip time estimates" (SIGCOMM 1987).

use super::answers::digest;
use super::direction::{Direction, Seen};
use super::echo::is_before;
use super::repeats::{Confirmed, Repeated};
use super::scoreboard::Sent;
use super::sequence::shown;
use super::table::{AckRow, Fate, Kind, Side};
use super::window::Change;

/// Rows of events up to which reorderings are kept.
const FREQUENT: usize = 1 << 16;

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
    pub blocks: &'a [(u64, u64)],
    /// Its window field.
    pub window: u16,
    /// Whether it is a SYN, whose window is not scaled.
    pub is_syn: bool,
    /// Whether it has ECE.
    pub ece: bool,
}

/// What an acknowledgement said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// Bytes that it is the first to SACK.
    pub sacked: u32,
    /// Bytes that its DSACK reports.
    pub dsack: u32,
}

impl Direction {
    /// Takes a packet of the other end that acknowledges this direction's data.
    pub fn ack(&mut self, r: &Report<'_>) -> Said {
        let s = &r.seen;
        self.counts.acks += 1;
        self.counts.ece += u64::from(r.ece);
        self.counts.sacks += u64::from(!r.blocks.is_empty());
        self.board.begin(self.arrivals.first().map_or(r.ack, |f| f.min(r.ack)));
        let (dsack, blocks) = split_dsack(r.ack, r.blocks);
        let old = (self.board.una(), self.board.high_row(), self.board.delivered());
        let is_late = r.ack < old.0 || s.is_late == Some(true);
        let missed = if self.counts.packets > 0 { self.arrivals.acknowledged(r.ack) } else { 0 };
        if missed > 1 {
            // 1 is a FIN
            self.counts.not_captured_bytes += missed;
            self.event(Kind::NotCaptured, Side::Unknown, s, r.ack - missed, u32::try_from(missed).unwrap_or(u32::MAX), 0, 0);
        }
        let mut covered = std::mem::take(&mut self.covered);
        let did = self.board.ack(r.ack, blocks, s.t, s.place, &mut covered);
        let same_window = self.window.edge().map_or(true, |e| e == r.ack + self.window.bytes(r.window, r.is_syn));
        let is_dup = self.is_duplicate(r, old.0, did.sacked, same_window);
        if is_dup {
            self.counts.dup_acks += 1;
            if r.blocks.is_empty() {
                self.board.duplicate(s.t);
            }
        }
        self.judge_all(r, &covered, old.0, old.1);
        covered.clear();
        self.covered = covered;
        let twice = dsack.map_or(0, |d| self.twice(s, d));
        if did.advances {
            self.progress_t = s.t;
            self.phase.acknowledged(r.ack);
        }
        if self.board.delivered() > old.2 {
            self.delivered_t = s.t;
        }
        if is_late {
            self.counts.acks_reordered += 1;
            self.frequent(Kind::ReorderedAck, Side::After, s, r.ack, 0, 0, 0);
        } else {
            self.advertise(r);
        }
        self.last_ack_t = s.t;
        let is_news = did.advances || did.sacked > 0 || is_late || is_dup || !same_window;
        for _ in 0..self.without_news(r, is_news) {
            self.discarded_there(s);
        }
        if s.tsecr != 0 && self.recent_tsval.map_or(true, |v| is_before(v, s.tsecr)) {
            self.recent_tsval = Some(s.tsecr);
        }
        let cut = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        if s.len == 0 || did.newly + did.sacked > 0 || twice > 0 {
            self.ack_row(r, blocks.first().copied(), [cut(did.sacked), cut(did.newly), cut(twice)], [is_dup, is_late]);
        }
        Said { sacked: cut(did.sacked), dsack: cut(twice) }
    }

    fn ack_row(&mut self, r: &Report<'_>, block: Option<(u64, u64)>, [sacked, newly, dsack]: [u32; 3], [dup, late]: [bool; 2]) {
        if self.counts.packets == 0 && self.board.delivered() <= 1 {
            return;
        }
        if !self.acks.keeps_next() {
            self.acks.push(AckRow::default());
            return;
        }
        let s = &r.seen;
        let (left, right) = block.map_or((0, 0), |b| (shown(b.0), shown(b.1)));
        self.acks.push(AckRow {
            t: s.t,
            frame: s.frame,
            ack: shown(r.ack),
            sack_left: left,
            sack_right: right,
            echo: s.echo.and_then(|e| e.after).unwrap_or(0),
            sacked,
            newly,
            window: u32::try_from(self.window.bytes(r.window, r.is_syn)).unwrap_or(u32::MAX),
            tsval: s.tsval(),
            tsecr: s.tsecr,
            dsack,
            len: s.len,
            id: s.stamp.id,
            dup: u8::from(dup),
            late: u8::from(late),
            ece: u8::from(r.ece),
        });
    }

    /// RFC 5681 §2, and with SACK a packet that tells of something new above the number.
    fn is_duplicate(&self, r: &Report<'_>, una: u64, sacked: u64, same_window: bool) -> bool {
        r.ack == una
            && r.seen.len == 0
            && !r.is_syn
            && !self.board.is_empty()
            && (sacked > 0 || (r.blocks.is_empty() && same_window && self.counts.acks > 1))
    }

    /// How many ACKs without news this one reveals.
    fn without_news(&mut self, r: &Report<'_>, is_news: bool) -> u64 {
        let s = &r.seen;
        if r.blocks.is_empty() || s.len > 0 || r.is_syn || split_dsack(r.ack, r.blocks).0.is_some() {
            0
        } else if s.place > 0 {
            self.answers.without_news(s.place, digest(r.ack, r.window, r.blocks))
        } else {
            u64::from(!is_news)
        }
    }

    /// An ACK with nothing new beside its blocks answers a segment that the receiver discarded because its timestamp was older than the
    /// newest (RFC 7323 §5.3: it answers with an ACK), unless it was discarded here already.
    fn discarded_there(&mut self, s: &Seen) {
        if s.tsecr == 0 || self.counts.discarded > self.discarded_there {
            return;
        }
        if let Some((start, end)) = self.board.discard_one(s.tsecr, s.t, self.rtt.smoothed()) {
            self.discarded_there += 1;
            self.counts.discarded += 1;
            self.event(Kind::Discarded, Side::After, s, start, (end - start) as u32, 0, 0);
        }
    }

    fn advertise(&mut self, r: &Report<'_>) {
        let s = &r.seen;
        let bytes = self.window.bytes(r.window, r.is_syn);
        match self.window.take(s.t, r.ack, bytes) {
            Some(Change::Closed) => {
                self.counts.zero_windows += 1;
                self.event(Kind::ZeroWindow, Side::After, s, r.ack, 0, 0, 0);
            }
            Some(Change::Opened(after)) => {
                self.counts.zero_window_ns += after;
                self.event(Kind::WindowOpened, Side::After, s, r.ack, u32::try_from(bytes).unwrap_or(u32::MAX), after, 0);
            }
            None => {}
        }
    }

    /// Judges what an ACK covers first, in the order of its ranges: whoever was sent before a lower byte's transmission may have waited for
    /// that byte, so its RTT is no sample.
    fn judge_all(&mut self, r: &Report<'_>, covered: &[Sent], una: u64, high_row: u64) {
        let (mut end, mut newest, mut sample) = (0, 0, None);
        for c in covered {
            if c.start != end {
                newest = 0;
            }
            let is_sample = c.sends == 1 && c.first_t >= newest;
            (end, newest) = (c.end, newest.max(c.last_t));
            let rtt = if is_sample { r.seen.t.saturating_sub(c.first_t) } else { 0 };
            if is_sample {
                sample = Some(rtt);
            }
            self.judge(r, c, rtt, c.start <= una && una < c.end, high_row);
        }
        if let Some(rtt) = sample {
            self.rtt.add(rtt);
        }
    }

    fn judge(&mut self, r: &Report<'_>, c: &Sent, rtt: u64, is_head: bool, high_row: u64) {
        let t = r.seen.t;
        let passed = (c.passed_t > 0 && c.row < high_row && !is_earlier(r.seen.place, c.passed_by)).then(|| t.saturating_sub(c.passed_t));
        let fate = if c.sends > 1 {
            self.judge_repeated(r, c, is_head, passed)
        } else if let Some(late) = passed {
            self.reordered_after(&r.seen, c, late);
            Fate::Reordered
        } else {
            Fate::InOrder
        };
        if let Some(row) = self.segments.get(c.row) {
            if row.acked == 0 {
                (row.acked, row.rtt) = (t, rtt);
            }
            row.late = row.late.max(passed.unwrap_or(0));
            set(&mut row.fate, fate);
        }
    }

    fn reordered_after(&mut self, s: &Seen, c: &Sent, late: u64) {
        let len = (c.end - c.start) as u32;
        let n = self.segments_in(len);
        let above = self.board.high().saturating_sub(c.end);
        let extent = self.segments_in(u32::try_from(above).unwrap_or(u32::MAX));
        self.counts.reordered += n;
        self.reordering_extent(extent, late);
        self.frequent(Kind::Reordering, Side::After, s, c.start, len, late, extent);
    }

    /// A repeated range arrived: which of its transmissions was it?
    fn judge_repeated(&mut self, r: &Report<'_>, c: &Sent, is_head: bool, passed: Option<u64>) -> Fate {
        let s = &r.seen;
        let len = (c.end - c.start) as u32;
        let n = self.segments_in(len);
        let by_timestamp = is_head && c.again_tsval != 0 && s.tsecr != 0 && is_before(s.tsecr, c.again_tsval);
        // Half of the least RTT: the queue that all samples so far contain may have gone.
        let by_time = s.t.saturating_sub(c.last_t) < self.rtt.least().unwrap_or(0) / 2;
        let claimed = u16::from(c.twice == 0 && (by_timestamp || by_time));
        let lost = (c.sends - 1).saturating_sub(c.twice).saturating_sub(claimed).saturating_sub(c.discarded);
        if claimed > 0 {
            self.counts.spurious += n;
            *if by_timestamp { &mut self.counts.spurious_by_timestamp } else { &mut self.counts.spurious_by_time } += n;
            self.event(Kind::Spurious, Side::After, s, c.start, len, s.t.saturating_sub(c.last_t), n);
        }
        let mut event = None;
        if lost > 0 {
            self.counts.losses += n * u64::from(lost);
            let may_be_discarded = c.tsval != 0 && self.recent_tsval.is_some_and(|v| is_before(c.tsval, v));
            if may_be_discarded && self.counts.reordered > 0 {
                self.counts.losses_uncertain += n * u64::from(lost);
            }
            event = self.event(Kind::Loss, Side::After, s, c.start, len, s.t.saturating_sub(c.first_t), n * u64::from(lost));
        } else if let Some(late) = passed {
            self.reordered_after(s, c, late);
        }
        self.repeats.add(Repeated { start: c.start, end: c.end, row: c.row, lost, claimed, passed_t: c.passed_t, event });
        if lost > 0 {
            Fate::Lost
        } else if c.discarded > 0 {
            Fate::Reordered
        } else {
            Fate::Spurious
        }
    }

    /// A DSACK: something came twice.
    fn twice(&mut self, s: &Seen, (from, to): (u64, u64)) -> u64 {
        self.counts.dsacks += 1;
        self.counts.dsack_bytes += to - from;
        let held = self.board.twice(from, to);
        let mut repeats = std::mem::take(&mut self.repeats);
        let known = repeats.twice(from, to, |r, what| self.confirmed(s, r, what));
        self.repeats = repeats;
        let n = self.segments_in(u32::try_from(to - from).unwrap_or(u32::MAX));
        if held > 0 {
            self.counts.spurious += n;
            self.counts.spurious_by_dsack += n;
        } else if known == 0 && self.counts.packets > 0 {
            self.counts.duplicates += n;
            self.event(Kind::Duplicate, Side::After, s, from, (to - from) as u32, 0, n);
        }
        to - from
    }

    fn confirmed(&mut self, s: &Seen, r: &Repeated, what: Confirmed) {
        let len = (r.end - r.start) as u32;
        let n = self.segments_in(len);
        if what == Confirmed::Known {
            return;
        }
        self.counts.losses = self.counts.losses.saturating_sub(n);
        self.counts.spurious += n;
        self.counts.spurious_by_dsack += n;
        if r.lost > 0 {
            return;
        }
        if let Some(row) = self.segments.get(r.row) {
            row.fate = Fate::Spurious as u8;
        }
        if let Some(event) = r.event {
            self.events[event].kind = Kind::Spurious as u8;
        }
        if r.passed_t > 0 {
            // The original came, after later ones; when exactly lies between the two.
            self.counts.reordered += n;
            self.frequent(Kind::Reordering, Side::After, s, r.start, len, s.t.saturating_sub(r.passed_t), 0);
        }
    }

    /// An event of a kind of which a path with jitter has one for each packet: half of the rows stay free for the others.
    #[allow(clippy::too_many_arguments)] // the fields of a row
    pub(super) fn frequent(&mut self, kind: Kind, side: Side, s: &Seen, seq: u64, len: u32, extent: u64, segments: u64) {
        if self.events.len() < FREQUENT {
            self.event(kind, side, s, seq, len, extent, segments);
        } else {
            self.counts.events_left_out += 1;
        }
    }

    /// Something that was acknowledged already is sent again, or not yet; gives whether it is needless for sure.
    pub(super) fn board_again(&mut self, s: &Seen, from: u64, to: u64) -> bool {
        let n = self.segments_in((to - from) as u32);
        let (mut known, mut open, mut row, mut sends) = (to <= self.board.una(), false, None, [None; 8]);
        let mut i = 0;
        self.board.again(from, to, s.t, s.tsval(), |c| {
            known |= c.is_sacked;
            open |= !c.is_sacked;
            row = Some(c.row);
            if i < sends.len() {
                (sends[i], i) = (Some((c.row, c.sends)), i + 1);
            }
        });
        for (row, sends) in sends.into_iter().flatten() {
            if let Some(row) = self.segments.get(row) {
                (row.sends, row.rtt) = (row.sends.max(sends), 0);
            }
        }
        let is_needless = known && !open;
        if is_needless {
            self.counts.spurious += n;
            self.event(Kind::Spurious, Side::Unknown, s, from, (to - from) as u32, 0, n);
            let row = row.unwrap_or(u64::MAX);
            self.repeats.add(Repeated { start: from, end: to, row, lost: 0, claimed: 1, passed_t: 0, event: None });
        }
        is_needless
    }
}

/// Whether the ACK at `place` was sent before the one at `passed_by`: what it covers had come before what passed it.
fn is_earlier(place: u64, passed_by: u64) -> bool {
    place > 0 && place < passed_by
}

/// The worse fate stays.
fn set(fate: &mut u8, new: Fate) {
    let rank = |f: u8| if f == Fate::Lost as u8 { 9 } else { (f + 1) % 5 };
    if rank(new as u8) > rank(*fate) {
        *fate = new as u8;
    }
}

/// Takes the DSACK off the blocks: the first lies below the acknowledgement number, or inside the second (RFC 2883 §4).
fn split_dsack(ack: u64, blocks: &[Block]) -> (Option<Block>, &[Block]) {
    match blocks {
        [first, rest @ ..] if first.1 <= ack || rest.first().is_some_and(|b| b.0 <= first.0 && first.1 <= b.1) => (Some(*first), rest),
        _ => (None, blocks),
    }
}
