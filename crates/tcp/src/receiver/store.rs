//! The receive buffer: data in order that wait for their reader, data beyond a gap that wait for what is missing, and the memory of both.
//!
//! Neighbours are merged where they fit into one buffer. Source: docs/models/tcp/receiver.md, "Memory" and "Full buffer", by what windows show of a
//! reader that has not read yet: no RFC says how a receiver's memory is counted. RFC 9293 §3.10.7.4 (segments out of order are queued), RFC 2883 §4
//! (what of a segment is a duplicate).

use super::tree::{Id, Side, Tree};
use std::collections::VecDeque;
use tcpscape_base::{Kernel, SackBlock, Segment};

/// Everything that is queued.
pub(super) struct Store {
    unread: Queue,
    /// None until something waits beyond a gap for the first time.
    ahead: Option<Box<Reassembly>>,
    /// Memory of both, bytes.
    memory: u64,
    /// What a buffer costs beyond its payload, bytes.
    overhead: u32,
    /// Segments up to this length are copied into their buffer's head.
    head_room: u32,
}

impl Buffer {
    /// The buffer of a segment that occupies `memory` bytes. The sender copies its stream into blocks of 32 KiB: a segment is one page fragment, and one
    /// more for each block that it crosses.
    #[inline]
    pub fn of(s: &Segment, memory: u32) -> Buffer {
        let block = |seq: u64| (seq.wrapping_sub(1) >> 15) as u32;
        let last = s.seq + u64::from(s.len.max(1)) - 1;
        Buffer { len: s.len, memory, fragments: 1 + block(last).wrapping_sub(block(s.seq)), room: 0, in_head: false }
    }
}

impl Store {
    /// Nothing queued.
    pub fn new(kernel: &Kernel) -> Store {
        Store { unread: Queue::default(), ahead: None, memory: 0, overhead: kernel.skb_overhead, head_room: kernel.head_room() }
    }
    /// Memory of everything queued, bytes.
    #[inline]
    pub fn memory(&self) -> u64 {
        self.memory
    }
    /// Bytes in order that the application has not read.
    #[inline]
    pub fn unread(&self) -> u64 {
        self.unread.bytes()
    }
    /// Whether data wait beyond a gap.
    #[inline]
    pub fn has_gap(&self) -> bool {
        self.ahead.as_ref().is_some_and(|ahead| !ahead.is_empty())
    }
    /// Where the last of what waits beyond a gap ends.
    pub fn end_ahead(&self) -> Option<u64> {
        self.ahead.as_ref()?.end()
    }
    /// Memory of a segment when it shares the buffer of its neighbour: its payload, if it has a buffer like others.
    #[inline]
    pub fn memory_when_merged(&self, len: u32, memory: u32) -> u32 {
        let payload = memory.saturating_sub(self.overhead);
        if payload >= len {
            payload
        } else {
            memory
        }
    }

    /// Appends data in order. A buffer that begins with old data is merged with nothing before it.
    #[inline]
    pub fn append(&mut self, buffer: Buffer, has_old: bool) {
        let memory = if has_old { self.unread.push(buffer) } else { self.unread.append(buffer, self.overhead) };
        self.memory += u64::from(memory);
    }
    /// Queues `start..end` beyond the gap. What this costs counts only with [`Store::charge`].
    pub fn insert(&mut self, start: u64, end: u64, buffer: Buffer) -> Insertion {
        self.ahead.get_or_insert_with(Box::default).insert(start, end, buffer, self.overhead, self.head_room)
    }
    /// Counts what a segment beyond the gap costs; negative where it took the place of others.
    pub fn charge(&mut self, bytes: i64) {
        self.memory = self.memory.saturating_add_signed(bytes);
    }
    /// Takes the first buffer beyond the gap if the gap is filled up to `next`; what of it is new is to be appended.
    pub fn take_joined(&mut self, next: u64) -> Option<Joined> {
        let joined = self.ahead.as_mut()?.take_first(next)?;
        self.memory -= u64::from(joined.buffer.memory);
        Some(joined)
    }
    /// The application reads up to `most` bytes.
    #[inline]
    pub fn read(&mut self, most: u64) -> Taken {
        let taken = self.unread.take(most);
        self.memory -= taken.memory;
        taken
    }

    /// Copies payload together where `saves(bytes, memory)`.
    pub fn compact(&mut self, saves: impl Fn(u64, u64) -> bool) {
        self.memory -= self.ahead.as_mut().map_or(0, |ahead| ahead.compact(&saves));
        let (before, after) = self.unread.compact(&saves);
        self.memory = self.memory - before + after;
    }
    /// Cuts the far end of what waits beyond the gap, an eighth of `limit` at a time, until memory is within `limit`; nothing that begins
    /// at or below `spare`. Returns the number of buffers dropped.
    pub fn cut(&mut self, limit: u32, spare: u64) -> u64 {
        let Some(ahead) = &mut self.ahead else { return 0 };
        let mut dropped = 0;
        while self.memory > u64::from(limit) {
            let (freed, buffers) = ahead.cut(u64::from(limit >> 3), spare);
            if buffers == 0 {
                break;
            }
            self.memory -= freed;
            dropped += buffers;
        }
        dropped
    }
    /// The stream has ended: nothing beyond its end is kept.
    pub fn drop_ahead(&mut self) {
        self.memory -= self.ahead.as_mut().map_or(0, |ahead| ahead.clear());
    }
}

/// Page fragments that one buffer can hold: neighbours are merged up to it.
const MOST_FRAGMENTS: u32 = 17;
/// Payload of a buffer of one page: 4096 bytes less 320 of administration.
const PAGE_PAYLOAD: u32 = 3_776;
/// Memory of a buffer of one page: the page and 256 bytes of administration.
const PAGE_MEMORY: u32 = 4_352;

/// One buffer: payload bytes, memory that it occupies, and page fragments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Buffer {
    /// Payload, bytes.
    pub len: u32,
    /// Memory, bytes.
    pub memory: u32,
    /// Page fragments.
    pub fragments: u32,
    /// Bytes that still fit into the head, where there are no fragments.
    pub room: u32,
    /// Whether payload is in the head.
    pub in_head: bool,
}

impl Buffer {
    /// What merging `next` into this buffer costs; none where it cannot be merged. What fits into a head is copied there; payload that is in a head
    /// goes nowhere else.
    #[inline]
    pub fn cost_of(&self, next: &Buffer, overhead: u32) -> Option<u32> {
        if next.len <= self.room {
            return Some(0);
        }
        let has_room = !next.in_head && self.fragments + next.fragments <= MOST_FRAGMENTS;
        has_room.then(|| next.memory.saturating_sub(overhead))
    }
    /// Merges `next` for so much memory.
    #[inline]
    pub fn merge(&mut self, next: &Buffer, cost: u32) {
        if next.len <= self.room {
            self.room -= next.len;
        } else {
            self.room = 0;
            self.fragments += next.fragments;
        }
        self.len += next.len;
        self.memory += cost;
    }
    /// The same with its payload in the head, if it fits into one of `head_room` bytes.
    pub fn condensed(self, overhead: u32, head_room: u32) -> Buffer {
        if self.len > head_room {
            return self;
        }
        Buffer { len: self.len, memory: overhead.min(self.memory), fragments: 0, room: head_room - self.len, in_head: true }
    }
    /// A buffer of one page, filled with `len` bytes; nothing is merged with it.
    pub fn page(len: u32) -> Buffer {
        Buffer { len, memory: PAGE_MEMORY, fragments: MOST_FRAGMENTS, room: 0, in_head: false }
    }
}

/// What one read took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    /// Bytes that came from the first buffer.
    pub first: u64,
    /// All bytes.
    pub bytes: u64,
    /// Memory of the buffers that are empty now.
    pub memory: u64,
    /// Buffers that were touched.
    pub buffers: u32,
}

/// The queue of unread data.
#[derive(Default)]
struct Queue {
    buffers: VecDeque<Buffer>,
    /// Bytes of the first buffer that have been read already.
    consumed: u32,
    /// Bytes to read.
    bytes: u64,
}

impl Queue {
    /// Bytes to read.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends a buffer; merged with the last one it costs `overhead` less. Returns the memory that it takes.
    #[inline]
    pub fn append(&mut self, buffer: Buffer, overhead: u32) -> u32 {
        let Some((last, cost)) = self.buffers.back_mut().and_then(|last| last.cost_of(&buffer, overhead).map(|cost| (last, cost))) else {
            return self.push(buffer);
        };
        last.merge(&buffer, cost);
        self.bytes += u64::from(buffer.len);
        cost
    }
    /// Appends a buffer that stays alone, until one that continues it comes. Returns the memory that it takes.
    pub fn push(&mut self, buffer: Buffer) -> u32 {
        self.bytes += u64::from(buffer.len);
        self.buffers.push_back(buffer);
        buffer.memory
    }

    /// Takes up to `most` bytes. Memory is freed buffer by buffer: one that is read in part stays.
    pub fn take(&mut self, most: u64) -> Taken {
        let mut taken = Taken::default();
        while let Some(&buffer) = self.buffers.front() {
            let wanted = most - taken.bytes;
            let available = u64::from(buffer.len - self.consumed);
            let bytes = wanted.min(available);
            taken.bytes += bytes;
            taken.buffers += u32::from(wanted > 0);
            if taken.first == 0 {
                taken.first = bytes;
            }
            if bytes < available {
                self.consumed += bytes as u32;
                break;
            }
            taken.memory += u64::from(buffer.memory);
            self.consumed = 0;
            self.buffers.pop_front();
        }
        self.bytes -= taken.bytes;
        taken
    }

    /// Copies the payload into full pages if `saves(bytes, memory)`. Returns the memory before and after.
    pub fn compact(&mut self, saves: impl Fn(u64, u64) -> bool) -> (u64, u64) {
        let before: u64 = self.buffers.iter().map(|b| u64::from(b.memory)).sum();
        if self.bytes == 0 || !saves(self.bytes, before) {
            return (before, before);
        }
        let pages = self.bytes.div_ceil(u64::from(PAGE_PAYLOAD));
        let last = self.bytes - (pages - 1) * u64::from(PAGE_PAYLOAD);
        self.buffers.clear();
        self.consumed = 0;
        self.buffers.extend((1..pages).map(|_| Buffer::page(PAGE_PAYLOAD)));
        self.buffers.push_back(Buffer::page(last as u32));
        (before, pages * u64::from(PAGE_MEMORY))
    }
}

/// A buffer that waits; its key is where it begins.
#[derive(Clone, Copy, Debug)]
struct Piece {
    end: u64,
    buffer: Buffer,
}

/// A buffer that has become in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Joined {
    /// Where it begins.
    pub start: u64,
    /// The byte after its last.
    pub end: u64,
    /// Its memory.
    pub buffer: Buffer,
}

/// How a segment was queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queued {
    /// All of it was there.
    Nothing,
    /// Merged into the buffer before it, for so much memory.
    Merged(u32),
    /// In a buffer of its own; memory changes by so much, since other buffers may go.
    Alone(i64),
}

/// What queueing a segment did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Insertion {
    /// How it was queued.
    pub queued: Queued,
    /// The contiguous part of it that was there already (RFC 2883 §4).
    pub duplicate: Option<SackBlock>,
}

/// The buffers beyond the gap, by where they begin. They may overlap: a merge leaves the overlap with the next buffer for later.
#[derive(Default)]
struct Reassembly {
    pieces: Tree<Piece>,
}

/// Where the search for a segment's place ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// At a buffer that has all of it.
    Within,
    /// At a buffer that it continues and can be merged into, for so much memory.
    Continues(Id, u32),
    /// At a shorter buffer that begins where it does.
    Replaces(Id),
    /// At no buffer, but beside this one in the tree.
    Own(Option<(Id, Side)>),
}

impl Reassembly {
    /// Whether nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.pieces.root().is_none()
    }
    /// The end of the last piece.
    pub fn end(&self) -> Option<u64> {
        self.pieces.last().map(|last| self.pieces.get(last).end)
    }

    /// Queues the bytes `start..end` in `buffer`, which merged with the one before costs `overhead` less. Segments of at most `head_room`
    /// bytes that are not are copied into their buffer's head, which costs `overhead`.
    pub fn insert(&mut self, start: u64, end: u64, buffer: Buffer, overhead: u32, head_room: u32) -> Insertion {
        let piece = Piece { end, buffer: buffer.condensed(overhead, head_room) };
        let (place, mut duplicate) = self.search(start, end, &buffer, overhead);
        let (id, mut freed) = match place {
            Place::Within => return Insertion { queued: Queued::Nothing, duplicate },
            Place::Continues(id, cost) => {
                let before = self.pieces.get_mut(id);
                before.end = end;
                before.buffer.merge(&buffer, cost);
                return Insertion { queued: Queued::Merged(cost), duplicate };
            }
            Place::Replaces(id) => (id, i64::from(std::mem::replace(self.pieces.get_mut(id), piece).buffer.memory)),
            Place::Own(below) => (self.pieces.insert_below(below, start, piece), 0),
        };
        freed += self.cover(id, end, &mut duplicate);
        Insertion { queued: Queued::Alone(i64::from(piece.buffer.memory) - freed), duplicate }
    }

    // The place of a segment, and what of it the buffers have that were met on the way. A segment at or beyond the end of the buffer that begins
    // last is compared with that alone; any other with those on the way from the root of the tree. The first one that it continues takes it, even
    // if one further down has it already.
    fn search(&self, start: u64, end: u64, buffer: &Buffer, overhead: u32) -> (Place, Option<SackBlock>) {
        let (mut duplicate, mut below) = (None, None);
        let mut at = self.pieces.last().filter(|&last| self.pieces.get(last).end <= start).or(self.pieces.root());
        while let Some(id) = at {
            let (first, piece) = (self.pieces.key(id), self.pieces.get(id));
            if (first..piece.end).contains(&start) {
                if piece.end >= end {
                    return (Place::Within, Some((start, end)));
                }
                if first == start {
                    extend(&mut duplicate, (first, piece.end));
                    return (Place::Replaces(id), duplicate);
                }
                duplicate = Some((start, piece.end));
            } else if piece.end == start {
                if let Some(cost) = piece.buffer.cost_of(buffer, overhead) {
                    return (Place::Continues(id, cost), duplicate);
                }
            }
            let side = if start < first { Side::Left } else { Side::Right };
            (below, at) = (Some((id, side)), self.pieces.child(id, side));
        }
        (Place::Own(below), duplicate)
    }

    // Buffers that begin within a new one: those that end in it go. Returns their memory.
    fn cover(&mut self, new: Id, end: u64, duplicate: &mut Option<SackBlock>) -> i64 {
        let mut freed = 0;
        while let Some(next) = self.pieces.next(new).filter(|&next| self.pieces.key(next) < end) {
            let (start, piece) = (self.pieces.key(next), *self.pieces.get(next));
            extend(duplicate, (start, piece.end.min(end)));
            if piece.end > end {
                break;
            }
            self.pieces.remove(next);
            freed += i64::from(piece.buffer.memory);
        }
        freed
    }

    /// Takes the first buffer if it begins at or below `next`.
    pub fn take_first(&mut self, next: u64) -> Option<Joined> {
        let first = self.pieces.first().filter(|&first| self.pieces.key(first) <= next)?;
        let start = self.pieces.key(first);
        let Piece { end, buffer } = self.pieces.remove(first);
        Some(Joined { start, end, buffer })
    }

    /// Drops buffers from the far end until `least` bytes of memory are free, none that begins at or below `spare`. Returns the memory
    /// freed and the number of buffers.
    pub fn cut(&mut self, least: u64, spare: u64) -> (u64, u64) {
        let (mut freed, mut dropped) = (0, 0);
        while freed < least {
            let Some(last) = self.pieces.last().filter(|&last| self.pieces.key(last) > spare) else { break };
            freed += u64::from(self.pieces.remove(last).buffer.memory);
            dropped += 1;
        }
        (freed, dropped)
    }
    /// Drops everything; returns the memory freed.
    pub fn clear(&mut self) -> u64 {
        let mut freed = 0;
        while let Some(first) = self.pieces.first() {
            freed += u64::from(self.pieces.remove(first).buffer.memory);
        }
        freed
    }

    /// Copies the payload of each contiguous range of several buffers into full pages, where that takes less memory and
    /// `saves(bytes, memory)`. Returns the memory freed.
    pub fn compact(&mut self, saves: impl Fn(u64, u64) -> bool) -> u64 {
        let (mut freed, mut from) = (0, self.pieces.first());
        while let Some(first) = from {
            let range = self.range_from(first);
            from = range.after;
            let bytes = range.end - range.start;
            let pages = bytes.div_ceil(u64::from(PAGE_PAYLOAD)) * u64::from(PAGE_MEMORY);
            if range.buffers < 2 || pages >= range.memory || !saves(bytes, range.memory) {
                continue;
            }
            freed += range.memory - pages;
            let mut old = Some(first);
            while let Some(id) = old.filter(|&id| Some(id) != range.after) {
                old = self.pieces.next(id);
                self.pieces.remove(id);
            }
            for start in (range.start..range.end).step_by(PAGE_PAYLOAD as usize) {
                let end = range.end.min(start + u64::from(PAGE_PAYLOAD));
                self.pieces.insert(start, Piece { end, buffer: Buffer::page((end - start) as u32) });
            }
        }
        freed
    }
    // The contiguous range of buffers that begins with this one.
    fn range_from(&self, first: Id) -> Range {
        let (start, piece) = (self.pieces.key(first), self.pieces.get(first));
        let mut range = Range { start, end: piece.end, memory: u64::from(piece.buffer.memory), buffers: 1, after: self.pieces.next(first) };
        while let Some(next) = range.after.filter(|&next| self.pieces.key(next) <= range.end) {
            let piece = self.pieces.get(next);
            range.end = range.end.max(piece.end);
            range.memory += u64::from(piece.buffer.memory);
            range.buffers += 1;
            range.after = self.pieces.next(next);
        }
        range
    }
}

/// A duplicate becomes longer by a range that it touches; another range is left out, since one is reported.
fn extend(duplicate: &mut Option<SackBlock>, more: SackBlock) {
    match duplicate {
        None => *duplicate = Some(more),
        Some(first) if more.0 <= first.1 => first.1 = first.1.max(more.1),
        Some(_) => {}
    }
}

/// A contiguous range of buffers.
struct Range {
    start: u64,
    end: u64,
    memory: u64,
    buffers: u32,
    /// The next buffer.
    after: Option<Id>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Buffer {
        Buffer { len: 1_448, memory: 2_728, fragments: 1, room: 0, in_head: false }
    }

    /// 6.1: 1,448 + 1,280 bytes, then 1,448 for each that is merged, up to 17 fragments.
    #[test]
    fn neighbours_share_a_buffer_up_to_17_fragments() {
        let mut q = Queue::default();
        let memory: Vec<u32> = (0..19).map(|_| q.append(full(), 1_280)).collect();
        assert_eq!(memory[0], 2_728);
        assert!(memory[1..17].iter().all(|&m| m == 1_448));
        assert_eq!(memory[17..], [2_728, 1_448]);
    }

    #[test]
    fn memory_is_freed_with_the_last_byte_of_a_buffer() {
        let mut q = Queue::default();
        for _ in 0..18 {
            q.append(full(), 1_280);
        }
        let whole = 17 * 1_448;
        assert_eq!(q.take(whole - 1), Taken { first: whole - 1, bytes: whole - 1, memory: 0, buffers: 1 });
        let memory = 2_728 + 16 * 1_448;
        assert_eq!(q.take(u64::MAX), Taken { first: 1, bytes: 1_449, memory: memory + 2_728, buffers: 2 });
        assert_eq!((q.take(u64::MAX), q.bytes()), (Taken::default(), 0));
    }

    #[test]
    fn compacting_fills_pages() {
        let mut q = Queue::default();
        for _ in 0..100 {
            q.append(Buffer { len: 100, memory: 1_380, fragments: 17, room: 0, in_head: false }, 1_280);
        }
        q.take(50);
        assert_eq!(q.compact(|_, _| false), (138_000, 138_000));
        // 9,950 bytes: two full pages and one with 2,398.
        assert_eq!(q.compact(|bytes, memory| bytes < memory), (138_000, 3 * 4_352));
        assert_eq!(q.take(u64::MAX), Taken { first: 3_776, bytes: 9_950, memory: 3 * 4_352, buffers: 3 });
    }

    const OVERHEAD: u32 = 1_280;

    fn insert(r: &mut Reassembly, start: u64, end: u64) -> Insertion {
        let len = (end - start) as u32;
        r.insert(start, end, Buffer { len, memory: len + OVERHEAD, fragments: 1, room: 0, in_head: false }, OVERHEAD, 0)
    }
    /// A reassembly with one buffer for each range.
    fn with(ranges: &[SackBlock]) -> Reassembly {
        let mut r = Reassembly::default();
        for &(start, end) in ranges {
            assert!(matches!(insert(&mut r, start, end).queued, Queued::Alone(_)));
        }
        r
    }
    fn alone(memory: i64, duplicate: Option<SackBlock>) -> Insertion {
        Insertion { queued: Queued::Alone(memory), duplicate }
    }

    #[test]
    fn a_segment_that_continues_a_buffer_costs_its_payload() {
        let mut r = with(&[(5_500, 6_000)]);
        assert_eq!(insert(&mut r, 6_000, 6_500), Insertion { queued: Queued::Merged(500), duplicate: None });
        assert_eq!(insert(&mut r, 7_000, 7_500), alone(1_780, None));
        assert_eq!(r.clear(), 2 * 1_780 + 500);
    }

    /// Linux: 1, 2, 4, 3 wait beyond a gap, in units of 500 bytes, 3 in the buffer of 1 and 2, which a search for 4 meets before that of 4: a copy of 4
    /// joins it and is no duplicate. After 4 and 3 alone the search begins at 4.
    #[test]
    fn a_copy_joins_the_buffer_before_it() {
        let mut r = with(&[(500, 1_000)]);
        insert(&mut r, 1_000, 1_500);
        insert(&mut r, 2_000, 2_500);
        insert(&mut r, 1_500, 2_000);
        assert_eq!(insert(&mut r, 2_000, 2_500), Insertion { queued: Queued::Merged(500), duplicate: None });
        assert_eq!(r.take_first(500).map(|joined| joined.end), Some(2_500));
        assert_eq!(r.take_first(2_500).map(|joined| joined.start), Some(2_000), "what both have is left for later");
        let mut r = with(&[(2_000, 2_500), (1_500, 2_000)]);
        assert_eq!(insert(&mut r, 2_000, 2_500), Insertion { queued: Queued::Nothing, duplicate: Some((2_000, 2_500)) });
    }

    /// RFC 2883 §4.1.3: 5000–5500 comes again while 4500–5500 waits beyond a gap.
    #[test]
    fn rfc_2883_a_whole_duplicate() {
        let mut r = with(&[(4_500, 5_500)]);
        assert_eq!(insert(&mut r, 5_000, 5_500), Insertion { queued: Queued::Nothing, duplicate: Some((5_000, 5_500)) });
    }

    /// RFC 2883 §4.2: a segment of 1000 bytes of which parts wait already.
    #[test]
    fn rfc_2883_partial_duplicates() {
        // The first half is there.
        assert_eq!(insert(&mut with(&[(500, 1_500)]), 1_000, 2_000), alone(2_280, Some((1_000, 1_500))));
        // The second half is there, and goes, since the new buffer holds it too.
        assert_eq!(insert(&mut with(&[(1_500, 2_000)]), 1_000, 2_000), alone(2_280 - 1_780, Some((1_500, 2_000))));
        // Two parts are there, with a gap between them: the first is reported.
        let freed = 2 * (200 + 1_280);
        assert_eq!(insert(&mut with(&[(1_100, 1_300), (1_500, 1_700)]), 1_000, 2_000), alone(2_280 - freed, Some((1_100, 1_300))));
        // A longer segment takes the place of a shorter one.
        assert_eq!(insert(&mut with(&[(1_000, 1_500)]), 1_000, 2_000), alone(500, Some((1_000, 1_500))));
    }

    /// A short segment alone is copied into its buffer's head; what follows is copied there too while it fits, then merged as elsewhere.
    #[test]
    fn a_short_segment_costs_no_more_than_its_buffers_head() {
        let mut r = Reassembly::default();
        let of = |len: u32| Buffer { len, memory: len + 960, fragments: 1, room: 0, in_head: false };
        let merged = |cost| Insertion { queued: Queued::Merged(cost), duplicate: None };
        assert_eq!(r.insert(100, 164, of(64), 960, 128), alone(960, None));
        assert_eq!(r.insert(164, 228, of(64), 960, 128), merged(0));
        assert_eq!(r.insert(228, 292, of(64), 960, 128), merged(64));
        assert_eq!(r.insert(300, 364, of(64), 960, 128), alone(960, None));
        // In order: the one in its head is merged with nothing before it; what follows is merged with it.
        let mut q = Queue::default();
        q.append(of(1_448), 960);
        assert_eq!([of(64).condensed(960, 128), of(1_448), of(64)].map(|b| q.append(b, 960)), [960, 1_448, 64]);
    }

    #[test]
    fn buffers_leave_in_order_once_the_gap_is_filled() {
        let mut r = with(&[(300, 400), (100, 200)]);
        assert_eq!(r.take_first(99), None);
        let buffer = Buffer { len: 100, memory: 1_380, fragments: 1, room: 0, in_head: false };
        assert_eq!(r.take_first(150), Some(Joined { start: 100, end: 200, buffer }));
        assert_eq!(r.take_first(200), None);
    }

    #[test]
    fn the_far_end_is_cut_and_what_lies_below_is_spared() {
        let mut r = with(&[(100, 200), (300, 400), (500, 600)]);
        assert_eq!(r.cut(1, 0), (1_380, 1));
        assert_eq!(r.cut(u64::MAX, 100), (1_380, 1));
        assert!(!r.is_empty());
    }

    #[test]
    fn only_ranges_of_several_buffers_are_compacted() {
        let mut r = Reassembly::default();
        for start in [100, 200, 300, 400, 900] {
            let one = Buffer { len: 100, memory: 1_380, fragments: MOST_FRAGMENTS, room: 0, in_head: false };
            r.insert(start, start + 100, one, OVERHEAD, 0);
        }
        assert_eq!(r.compact(|bytes, memory| bytes < memory), 4 * 1_380 - 4_352);
        assert_eq!(r.take_first(100), Some(Joined { start: 100, end: 500, buffer: Buffer::page(400) }));
        assert_eq!(r.clear(), 1_380);
    }
}
