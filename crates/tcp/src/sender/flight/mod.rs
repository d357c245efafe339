//! The segments in flight, their state, and every count that follows from it.
//!
//! What it is: the scoreboard of RFC 6675. It knows each segment that was sent and is not cumulatively acknowledged, and whether it was
//! SACKed, is believed lost, or was sent again. Verbs change a segment and the counts together, so that they cannot contradict each other;
//! `reading.rs` is how an ACK is applied. Source: RFC 6675 §3 and §4 (scoreboard, pipe), RFC 2018 §5. How it differs: one entry per
//! MSS-sized segment, where Linux has super-packets that it splits; the buffers that those would occupy are counted (docs/models/tcp/sender.md).
//! Not modelled: connections without SACK.

mod board;
mod reading;
mod segment;

pub(super) use reading::{echoes_before, Context, Delivery, Duplicate, Reading, SackOption, Sampled, Span};
pub(super) use segment::{Departure, Marks, Sent, Transmission};

use crate::cc::LostPacket;
use board::Board;
use tcpscape_base::{SackBlock, MAX_SACK_BLOCKS};

/// What is in flight.
#[derive(Debug)]
pub(super) struct Flight {
    /// Oldest sequence number not acknowledged.
    una: u64,
    /// Next sequence number to be sent for the first time.
    nxt: u64,
    board: Board,
    sacked: u32,
    lost: u32,
    copies_out: u32,
    /// End of the highest SACKed segment; meaningless while `sacked` is 0.
    sacked_end: u64,
    /// Blocks that the last option told: all that they cover is SACKed, and an option repeats most of them.
    told: [SackBlock; MAX_SACK_BLOCKS],
    /// Buffers that the segments occupy.
    buffers: u32,
    /// Number of the last burst.
    burst: u32,
    /// Segments marked lost so far, on a counter that wraps.
    marked_lost: u32,
}

impl Flight {
    /// Nothing in flight; the stream begins with sequence number 1, behind the SYN.
    pub fn new() -> Flight {
        let board = Board::default();
        let told = Default::default();
        Flight { una: 1, nxt: 1, board, sacked: 0, lost: 0, copies_out: 0, sacked_end: 0, told, buffers: 0, burst: 0, marked_lost: 0 }
    }

    // ---- counts ----

    /// Oldest sequence number not acknowledged (SND.UNA).
    #[inline]
    pub fn una(&self) -> u64 {
        self.una
    }
    /// Next sequence number to be sent for the first time (SND.NXT).
    #[inline]
    pub fn nxt(&self) -> u64 {
        self.nxt
    }
    /// Segments sent and not cumulatively acknowledged.
    #[inline]
    pub fn out(&self) -> u32 {
        self.board.len() as u32
    }
    /// Of those, segments that were SACKed.
    #[inline]
    pub fn sacked(&self) -> u32 {
        self.sacked
    }
    /// Of those, segments believed lost.
    #[inline]
    pub fn lost(&self) -> u32 {
        self.lost
    }
    /// Copies believed in flight.
    #[inline]
    pub fn copies_out(&self) -> u32 {
        self.copies_out
    }
    /// Segments believed to be in the network: the pipe of RFC 6675 §4.
    #[inline]
    pub fn in_flight(&self) -> u32 {
        (self.out() + self.copies_out).saturating_sub(self.sacked + self.lost)
    }
    /// Segments marked lost so far, on a counter that wraps.
    #[inline]
    pub fn marked_lost(&self) -> u32 {
        self.marked_lost
    }
    /// End of the highest segment that was SACKed, the left edge without any.
    #[inline]
    pub fn sacked_end(&self) -> u64 {
        if self.sacked == 0 {
            self.una
        } else {
            self.sacked_end
        }
    }
    /// Buffers that hold it.
    #[inline]
    pub fn buffers(&self) -> u32 {
        self.buffers
    }
    /// Number of the last burst.
    #[inline]
    pub fn last_burst(&self) -> u32 {
        self.burst
    }
    /// Whether a lost segment waits to be sent again.
    #[inline]
    pub fn has_lost_to_send(&self) -> bool {
        self.lost > self.copies_out
    }
    /// Whether something in flight was sent again, as far as it shows at the left edge.
    #[inline]
    pub fn any_resent(&self) -> bool {
        self.copies_out > 0 || self.front().is_some_and(|s| s.is(Marks::EVER_RESENT))
    }

    // ---- segments ----

    /// The segment at the left edge.
    #[inline]
    pub fn front(&self) -> Option<&Sent> {
        self.board.front()
    }
    /// Its name.
    #[inline]
    pub fn front_id(&self) -> u32 {
        self.board.base()
    }
    /// The segment at the right edge.
    #[inline]
    pub fn back_id(&self) -> Option<u32> {
        self.board.back_id()
    }
    /// The segment called `id`, which is in flight.
    #[inline]
    pub fn get(&self, id: u32) -> &Sent {
        self.board.get(id)
    }
    /// The name of the segment that begins with `seq`, if there is one or a later one.
    pub fn find(&self, seq: u64) -> Option<u32> {
        Some(self.board.lower_bound(seq)).filter(|&id| self.board.contains(id))
    }
    /// Names of all segments, in order of sequence numbers.
    pub fn ids(&self) -> impl Iterator<Item = u32> + 'static {
        self.board.iter_ids()
    }
    /// The lowest segment that is lost and was not sent again since.
    #[inline]
    pub fn next_lost(&mut self) -> Option<u32> {
        self.board.next_lost()
    }
    /// The transmission that was earliest, of those still undecided.
    #[inline]
    pub fn oldest_transmission(&self) -> Option<u32> {
        self.board.oldest()
    }
    /// The last of the undecided transmissions before this one, which only moves forward.
    #[inline]
    pub fn last_before(&mut self, newest: Transmission) -> Option<u32> {
        self.board.advance_cursor(|s| newest > s.transmission())
    }
    /// Whether all segments left in one burst, or there is none.
    pub fn is_one_burst(&self) -> bool {
        self.front().map(|s| s.burst) == self.back_id().map(|id| self.get(id).burst)
    }
    /// Up to `most` segments from `id` that left in one burst and share their fate, up to sequence number `end`: how many, and bytes.
    pub fn same_state_run(&self, id: u32, most: u32, end: u64) -> (u32, u32) {
        let first = self.get(id);
        let (mut n, mut len) = (1, first.len);
        while n < most && self.board.contains(id.wrapping_add(n)) {
            let s = self.get(id.wrapping_add(n));
            if s.burst != first.burst || s.marks.only(Marks::FATE) != first.marks.only(Marks::FATE) || s.end() > end {
                break;
            }
            len += s.len;
            n += 1;
        }
        (n, len)
    }

    // ---- transmissions ----

    /// Sends `len` new bytes as one burst of segments of up to `mss`; the last one ends a write if `push`.
    pub fn send(&mut self, len: u32, mss: u32, push: bool, d: &Departure) {
        let segments = len.div_ceil(mss);
        let first = self.board.base().wrapping_add(self.out());
        let in_flight = self.in_flight();
        self.burst = self.burst.wrapping_add(1);
        let (burst, nxt) = (self.burst, self.nxt);
        self.board.push(segments, |i| {
            let offset = i * mss;
            let mut s = Sent::new(nxt + u64::from(offset), mss.min(len - offset));
            s.leaves(d, burst, in_flight + i + 1);
            s
        });
        self.begin_buffer(first);
        if push {
            self.board.get_mut(first.wrapping_add(segments - 1)).marks.set(Marks::PUSH);
        }
        self.nxt += u64::from(len);
    }

    /// Sends `n` segments from `id` again as one burst, which is a buffer of its own; returns whether it ends a write.
    pub fn send_again(&mut self, id: u32, n: u32, d: &Departure) -> bool {
        self.begin_buffer(id);
        self.begin_buffer(id.wrapping_add(n));
        let in_flight = self.in_flight();
        self.burst = self.burst.wrapping_add(1);
        for i in 0..n {
            let s = self.board.get_mut(id.wrapping_add(i));
            s.leaves(d, self.burst, in_flight + i + 1);
            s.marks.set(Marks::EVER_RESENT);
            self.board.sent_again(id.wrapping_add(i));
        }
        self.get(id.wrapping_add(n - 1)).is(Marks::PUSH)
    }

    /// The `n` segments from `id` that were just sent again count as copies in flight.
    ///
    /// A copy that is still counted is counted twice; see docs/models/tcp/sender.md for when that happens.
    pub fn count_copies(&mut self, id: u32, n: u32) {
        for i in 0..n {
            self.board.get_mut(id.wrapping_add(i)).marks.set(Marks::COPY_OUT);
        }
        self.copies_out += n;
    }

    /// The last `n` segments, `len` bytes, have not left after all; returns whether they ended a write.
    pub fn take_back(&mut self, n: u32, len: u32) -> bool {
        let push = self.back_id().is_some_and(|id| self.get(id).is(Marks::PUSH));
        for _ in 0..n {
            self.buffers -= u32::from(self.back_id().is_some_and(|id| self.get(id).is(Marks::BUFFER_START)));
            self.board.pop_back();
        }
        self.nxt -= u64::from(len);
        push
    }

    /// The copies of `n` segments from `id` have not left after all: the segments wait to be sent again.
    pub fn take_back_copies(&mut self, id: u32, n: u32) {
        for id in (0..n).map(|i| id.wrapping_add(i)) {
            self.board.get_mut(id).marks.clear(Marks::COPY_OUT);
            self.board.delist(id);
            self.board.note_lost(id);
            self.copies_out -= 1;
        }
    }

    // ---- losses ----

    /// Marks `id` lost, or its copy if it was sent again; false if nothing changed.
    pub fn mark_lost(&mut self, id: u32) -> bool {
        let s = self.board.get_mut(id);
        if s.is(Marks::SACKED) {
            return false;
        }
        if !s.is(Marks::LOST) {
            s.marks.set(Marks::LOST);
            self.lost += 1;
        } else if s.is(Marks::COPY_OUT) {
            s.marks.clear(Marks::COPY_OUT);
            self.copies_out -= 1;
        } else {
            return false;
        }
        self.marked_lost = self.marked_lost.wrapping_add(1);
        self.board.note_lost(id);
        true
    }

    /// What a congestion control learns of `id`, just marked lost.
    pub fn lost_packet(&self, id: u32) -> LostPacket {
        let s = self.get(id);
        LostPacket {
            seq: s.seq,
            end: s.end(),
            tx_in_flight: s.in_flight_then(),
            lost: self.marked_lost.wrapping_sub(s.lost_then),
            is_app_limited: s.is(Marks::APP_LIMITED),
        }
    }

    /// The transmission of `id` has been judged: it is no longer among the undecided ones.
    pub fn decided(&mut self, id: u32) {
        self.board.delist(id);
    }

    /// A timeout has marked `id` lost: undecided again only when it is sent again or the loss is undone.
    pub fn lost_by_timeout(&mut self, id: u32) {
        let s = self.get(id);
        if s.is(Marks::LOST) && !s.is(Marks::COPY_OUT) {
            self.board.park(id);
        }
    }

    /// Before a timeout marks segments lost: forgets what an earlier one left.
    pub fn begin_timeout(&mut self) {
        self.board.prune_parked();
    }

    /// Nothing is lost any more: the timeout, or what RACK found, was wrong.
    pub fn forget_losses(&mut self) {
        if self.lost > 0 {
            self.board.unmark_all_lost();
        }
        self.lost = 0;
        self.board.unpark();
    }

    /// Forgets every SACK: the receiver has dropped what it had (RFC 2018 §8).
    pub fn forget_sacks(&mut self) {
        self.board.clear_sacked();
        self.sacked = 0;
        self.told = Default::default();
    }

    // ---- buffers ----

    /// From `id` on it is another buffer.
    fn begin_buffer(&mut self, id: u32) {
        if self.board.contains(id) && !self.get(id).is(Marks::BUFFER_START) {
            self.board.get_mut(id).marks.set(Marks::BUFFER_START);
            self.buffers += 1;
        }
    }

    /// The buffer that begins with `id` becomes part of the one before it; false if none begins there.
    fn join_buffer(&mut self, id: u32) -> bool {
        let begins = self.get(id).is(Marks::BUFFER_START);
        if begins {
            self.board.get_mut(id).marks.clear(Marks::BUFFER_START);
            self.buffers -= 1;
        }
        begins
    }

    /// `id` was just SACKed: it is cut out of its buffer, or joined to a SACKed buffer before it and then to one behind it.
    fn cut_out_sacked(&mut self, id: u32) {
        let next = id.wrapping_add(1);
        if !self.can_join(id) {
            self.begin_buffer(id);
        } else if self.join_buffer(id) && self.can_join(next) {
            self.join_buffer(next);
        }
        if self.board.contains(next) && !self.get(next).is(Marks::SACKED) {
            self.begin_buffer(next);
        }
    }

    /// Whether `id` and the segment before it can share a buffer: both SACKed, never lost since, of one size.
    fn can_join(&self, id: u32) -> bool {
        let before = id.wrapping_sub(1);
        let plain = |s: &Sent| s.marks.only(Marks::SACKED | Marks::LOST | Marks::COPY_OUT) == Marks::SACKED;
        let both = self.board.contains(before) && self.board.contains(id);
        both && plain(self.get(before)) && plain(self.get(id)) && self.get(before).len == self.get(id).len
    }

    /// Panics when the counts contradict the segments; for tests. `timeouts` are those so far.
    pub fn check(&self, timeouts: u64) {
        let count = |mark| self.ids().filter(|&id| self.get(id).is(mark)).count() as u32;
        assert_eq!((self.sacked, self.lost, self.buffers), (count(Marks::SACKED), count(Marks::LOST), count(Marks::BUFFER_START)));
        assert_eq!(self.nxt - self.una, self.ids().map(|id| u64::from(self.get(id).len)).sum::<u64>());
        // A timeout may count a copy twice (docs/models/tcp/sender.md).
        let twice = self.copies_out.checked_sub(count(Marks::COPY_OUT));
        assert!(twice.is_some_and(|n| u64::from(n) <= timeouts), "copies: {} counted, {} marked", self.copies_out, count(Marks::COPY_OUT));
    }
}
