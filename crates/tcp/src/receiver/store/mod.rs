//! The receive buffer: data in order that wait for their reader, data beyond a gap that wait for what is missing, and the memory of both.
//!
//! Source: docs/models/tcp/receiver.md, "Memory" and "Full buffer": no RFC says how a receiver's memory is counted.

mod queue;
mod reassembly;

pub(super) use queue::{Buffer, Taken};
pub(super) use reassembly::{Insertion, Joined, Queued};

use queue::Queue;
use reassembly::Reassembly;
use tcpscape_base::{Kernel, Segment};

/// Everything that is queued.
pub(super) struct Store {
    unread: Queue,
    ahead: Reassembly,
    /// Memory of both, bytes.
    memory: u64,
    /// What a buffer costs beyond its payload, bytes.
    overhead: u32,
    /// Segments up to this length are copied into their buffer's head.
    head_room: u32,
}

impl Buffer {
    /// The buffer of which `len` bytes of `s` are used. The sender copies its stream into blocks of 32 KiB: a segment is one page
    /// fragment, and one more for each block that it crosses.
    #[inline]
    pub fn of(s: &Segment, len: u32, memory: u32) -> Buffer {
        let block = |seq: u64| (seq.wrapping_sub(1) >> 15) as u32;
        let last = s.seq + u64::from(s.len.max(1)) - 1;
        Buffer { len, memory, fragments: 1 + block(last).wrapping_sub(block(s.seq)) }
    }
}

impl Store {
    /// Nothing queued.
    pub fn new(kernel: &Kernel) -> Store {
        Store {
            unread: Queue::default(),
            ahead: Reassembly::default(),
            memory: 0,
            overhead: kernel.skb_overhead,
            head_room: kernel.head_room(),
        }
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
        !self.ahead.is_empty()
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

    /// Appends data in order.
    #[inline]
    pub fn append(&mut self, buffer: Buffer) {
        self.memory += u64::from(self.unread.append(buffer, self.overhead));
    }
    /// Queues `start..end` beyond the gap. What this costs counts only with [`Store::charge`].
    pub fn insert(&mut self, start: u64, end: u64, buffer: Buffer) -> Insertion {
        self.ahead.insert(start, end, buffer, self.overhead, self.head_room)
    }
    /// Counts what a segment beyond the gap costs; negative where it took the place of others.
    pub fn charge(&mut self, bytes: i64) {
        self.memory = self.memory.saturating_add_signed(bytes);
    }
    /// Takes the first buffer beyond the gap if the gap is filled up to `next`; what of it is new is to be appended.
    pub fn take_joined(&mut self, next: u64) -> Option<Joined> {
        let joined = self.ahead.take_first(next)?;
        self.memory -= u64::from(joined.memory);
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
        self.memory -= self.ahead.compact(&saves);
        let (before, after) = self.unread.compact(&saves);
        self.memory = self.memory - before + after;
    }
    /// Cuts the far end of what waits beyond the gap, an eighth of `limit` at a time, until memory is within `limit`; nothing that begins
    /// at or below `spare`. Returns the number of buffers dropped.
    pub fn cut(&mut self, limit: u32, spare: u64) -> u64 {
        let mut dropped = 0;
        while self.memory > u64::from(limit) {
            let (freed, buffers) = self.ahead.cut(u64::from(limit >> 3), spare);
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
        self.memory -= self.ahead.clear();
    }
}
