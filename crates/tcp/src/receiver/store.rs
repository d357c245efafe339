//! The receive buffer: data in order that wait for their reader, data beyond a gap that wait for what is missing, and the memory of both.
//!
//! Neighbours are merged where they fit into one buffer. Source: docs/models/tcp/receiver.md, "Memory" and "Full buffer", by what windows show of a
//! reader that has not read yet: no RFC says how a receiver's memory is counted. RFC 9293 §3.10.7.4 (segments out of order are queued), RFC 2883 §4
//! (what of a segment is a duplicate).

use super::buffer::{Buffer, PAGE_MEMORY, PAGE_PAYLOAD};
use super::reassembly::{Insertion, Joined, Reassembly};
use std::collections::VecDeque;
use tcpscape_base::Kernel;

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

    /// In order a short segment in its buffer's head is merged with nothing before it; what follows is merged with it.
    #[test]
    fn a_short_segment_in_its_head_is_merged_with_what_follows() {
        let of = |len: u32| Buffer { len, memory: len + 960, fragments: 1, room: 0, in_head: false };
        let mut q = Queue::default();
        q.append(of(1_448), 960);
        assert_eq!([of(64).condensed(960, 128), of(1_448), of(64)].map(|b| q.append(b, 960)), [960, 1_448, 64]);
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
}
