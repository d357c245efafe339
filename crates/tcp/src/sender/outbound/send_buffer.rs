//! What the application has written and TCP has not sent yet, how much memory it may hold, and when a blocked writer is woken.
//!
//! Source: RFC 9293 §3.9.1.2 (SEND), RFC 896 (Nagle); observed behaviour of Linux 6.1 and 6.12 (`SO_MEMINFO`), docs/models/tcp/sender.md, "Send
//! buffer". Each buffer costs its payload and an overhead; segments in flight hold theirs until they are acknowledged. How it differs:
//! buffers already SACKed are neither split nor joined again by an older ACK, nor joined across segments of different size. Not modelled:
//! memory pressure.

use crate::sender::flight::Flight;
use std::collections::VecDeque;

/// Unsent data that will leave together.
#[derive(Clone, Copy, Debug)]
pub(in crate::sender) struct Unsent {
    /// Bytes.
    pub len: u32,
    /// It ends a write (PSH).
    pub push: bool,
}

/// The send buffer.
#[derive(Debug)]
pub(in crate::sender) struct SendBuffer {
    unsent: VecDeque<Unsent>,
    /// Sequence number of the next byte that is written.
    end: u64,
    /// Where the last write that was pushed ends.
    pushed: u64,
    /// Where the last segment ended that was shorter than the MSS.
    small_end: u64,
    /// Memory that may be used, bytes.
    size: u32,
    /// Whether the application fixed the size (`SO_SNDBUF`).
    fixed: bool,
    /// Memory of a buffer beside its payload, bytes.
    overhead: u32,
    /// Segments in a full super-packet.
    full_segments: u32,
    /// A writer waits for room.
    blocked: bool,
    /// A writer is to be woken.
    wake: bool,
    /// The last byte is the end of the stream, a FIN.
    finished: bool,
}

impl SendBuffer {
    /// An empty buffer of `size` bytes.
    pub fn new(size: u32, fixed: bool, overhead: u32) -> SendBuffer {
        SendBuffer {
            unsent: VecDeque::new(),
            end: 1,
            pushed: 1,
            small_end: 0,
            size,
            fixed,
            overhead,
            full_segments: 0,
            blocked: false,
            wake: false,
            finished: false,
        }
    }

    /// Whether nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.unsent.is_empty()
    }
    /// Whether only one buffer waits.
    #[inline]
    pub fn is_single(&self) -> bool {
        self.unsent.len() == 1
    }
    /// What leaves next.
    #[inline]
    pub fn head(&self) -> Option<&Unsent> {
        self.unsent.front()
    }
    /// What was written last.
    #[inline]
    pub fn tail(&self) -> Option<&Unsent> {
        self.unsent.back()
    }
    /// Sequence number of the next byte that is written.
    #[inline]
    pub fn end(&self) -> u64 {
        self.end
    }
    /// Memory held, bytes: unsent data and what is in flight, each buffer with its overhead.
    pub fn used(&self, flight: &Flight) -> u64 {
        let buffers = self.unsent.len() as u64 + u64::from(flight.buffers());
        self.end - flight.una() + buffers * u64::from(self.overhead)
    }

    // ---- writing ----

    /// Bytes that fit into the last buffer, which grows up to `goal`.
    pub fn room_in_tail(&self, goal: u32) -> u32 {
        self.tail().map_or(0, |t| goal.saturating_sub(t.len))
    }
    /// Whether another buffer may be begun; the writer is blocked if not.
    pub fn has_room_or_blocks(&mut self, flight: &Flight) -> bool {
        let room = self.used(flight) < u64::from(self.size);
        self.blocked |= !room;
        room
    }
    /// Begins another buffer.
    pub fn begin(&mut self) {
        self.unsent.push_back(Unsent { len: 0, push: false });
    }
    /// Adds `bytes` to the last buffer; returns whether it has reached `goal`. Where a new write begins (`is_first`), an earlier one does not
    /// end any more.
    pub fn append(&mut self, bytes: u32, is_first: bool, goal: u32) -> bool {
        let tail = self.unsent.back_mut().expect("a buffer was begun");
        tail.len += bytes;
        tail.push &= !is_first;
        self.end += u64::from(bytes);
        tail.len >= goal
    }
    /// What was written last ends a write, if it still waits.
    pub fn push(&mut self) {
        if let Some(tail) = self.unsent.back_mut() {
            tail.push = true;
            self.pushed = self.end;
        }
    }
    /// Whether more than half of the peer's largest window was written since the last push.
    pub fn is_long_unpushed(&self, max_window: u32) -> bool {
        self.end > self.pushed + u64::from(max_window / 2)
    }

    // ---- sending ----

    /// Size in bytes up to which data are gathered: whole segments, up to `bound`. It changes only when another segment fits or one does not.
    pub fn size_goal(&mut self, bound: u32, mss: u32) -> u32 {
        let goal = self.full_segments * mss;
        if bound < goal || bound >= goal + mss {
            self.full_segments = bound / mss;
        }
        (self.full_segments * mss).max(mss)
    }
    /// Cuts what leaves next after `len` bytes if it is longer; PSH stays with the end of the write.
    pub fn cut_head(&mut self, len: u32) {
        if let Some(head) = self.unsent.front_mut().filter(|u| u.len > len) {
            head.len -= len;
            self.unsent.push_front(Unsent { len, push: false });
        }
    }
    /// Fills what leaves next up to `goal` bytes from the buffer behind it, which is gone when nothing of it is left.
    pub fn grow_head(&mut self, goal: u32) {
        let [head, next, ..] = self.unsent.make_contiguous() else { return };
        let moved = goal.saturating_sub(head.len).min(next.len);
        head.len += moved;
        next.len -= moved;
        if next.len == 0 {
            head.push |= next.push;
            self.unsent.remove(1);
        }
    }
    /// Takes out what leaves next.
    pub fn take_head(&mut self) -> Option<Unsent> {
        self.unsent.pop_front()
    }
    /// Puts back what has not left after all.
    pub fn put_back(&mut self, unsent: Unsent) {
        self.unsent.push_front(unsent);
    }
    /// A segment shorter than the MSS has left, which ended there.
    pub fn small_sent(&mut self, end: u64) {
        self.small_end = end;
    }
    /// Whether a short segment is in flight: Nagle's test as Minshall modified it.
    #[inline]
    pub fn small_in_flight(&self, flight: &Flight) -> bool {
        flight.out() > 0 && self.small_end > flight.una() && self.small_end <= flight.nxt()
    }

    // ---- the writer ----

    /// A writer that could not write waits.
    pub fn block(&mut self) {
        self.blocked = true;
    }
    /// Whether a writer waits for room.
    #[inline]
    pub fn is_blocked(&self) -> bool {
        self.blocked
    }
    /// The connection is there: a writer may begin.
    pub fn wake(&mut self) {
        self.wake = true;
    }
    /// Whether a writer is to be woken; the answer is given once.
    #[inline]
    pub fn take_wake(&mut self) -> bool {
        std::mem::take(&mut self.wake)
    }
    /// Wakes the blocked writer when a third of the memory is free.
    pub fn wake_if_room(&mut self, flight: &Flight) {
        let (size, used) = (u64::from(self.size), self.used(flight));
        if size > used && size - used >= used / 2 {
            self.blocked = false;
            self.wake = true;
        }
    }
    /// Whether TCP chooses the size.
    #[inline]
    pub fn is_tuned(&self) -> bool {
        !self.fixed
    }
    /// Nothing is written any more: the byte that was written last stands for the FIN.
    pub fn finish(&mut self) {
        self.finished = true;
    }
    /// Whether nothing is written any more.
    #[inline]
    pub fn is_finished(&self) -> bool {
        self.finished
    }
    /// Whether the FIN alone is left to send.
    #[inline]
    pub fn is_fin(&self) -> bool {
        self.finished && self.is_single() && self.head().is_some_and(|u| u.len == 1)
    }
    /// The application's choice of a size, bytes, which stays.
    pub fn fix(&mut self, size: u32) {
        (self.size, self.fixed) = (size, true);
    }
    /// TCP's own choice of a size, bytes; it never shrinks.
    pub fn grow(&mut self, wanted: u64, most: u32) {
        if !self.fixed && u64::from(self.size) < wanted {
            self.size = wanted.min(u64::from(most)) as u32;
        }
    }

    /// Memory that may be used, bytes; for tests.
    #[cfg(test)]
    pub fn size(&mut self) -> &mut u32 {
        &mut self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_gather_in_buffers_and_are_cut_to_what_may_leave() {
        let (mut b, flight) = (SendBuffer::new(10_000, true, 1_000), Flight::new());
        b.begin();
        assert!(!b.append(700, true, 2_000) && b.append(1_300, false, 2_000));
        b.push();
        assert_eq!((b.used(&flight), b.room_in_tail(2_500)), (3_000, 500));
        b.cut_head(1_500);
        assert_eq!((b.head().unwrap().len, b.head().unwrap().push, b.tail().unwrap().push), (1_500, false, true));
        assert_eq!(b.used(&flight), 4_000);
        b.grow_head(1_800);
        b.grow_head(9_000);
        assert_eq!((b.head().unwrap().len, b.head().unwrap().push, b.is_single(), b.used(&flight)), (2_000, true, true, 3_000));
    }

    #[test]
    fn a_writer_is_blocked_without_room_and_woken_when_a_third_is_free() {
        let (mut b, flight) = (SendBuffer::new(3_000, true, 1_000), Flight::new());
        b.begin();
        b.append(2_000, true, 2_000);
        assert!(!b.has_room_or_blocks(&flight) && b.is_blocked());
        b.wake_if_room(&flight);
        assert!(b.is_blocked() && !b.take_wake());
        b.take_head();
        b.end -= 2_000;
        b.wake_if_room(&flight);
        assert!(!b.is_blocked() && b.take_wake() && !b.take_wake());
    }

    #[test]
    fn a_full_super_packet_changes_by_whole_segments() {
        let mut b = SendBuffer::new(0, false, 0);
        assert_eq!([65_343, 64_000, 32_000, 500].map(|bound| b.size_goal(bound, 1_448)), [65_160, 63_712, 31_856, 1_448]);
    }
}
