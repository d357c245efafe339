//! One buffer of received data: payload, memory, and what of its neighbours fits into it.
//!
//! Source: docs/models/tcp/receiver.md, "Memory".

use tcpscape_base::Segment;

/// Page fragments that one buffer can hold: neighbours are merged up to it.
const MOST_FRAGMENTS: u32 = 17;
/// Payload of a buffer of one page: 4096 bytes less 320 of administration.
pub(super) const PAGE_PAYLOAD: u32 = 3_776;
/// Memory of a buffer of one page: the page and 256 bytes of administration.
pub(super) const PAGE_MEMORY: u32 = 4_352;

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
    /// The buffer of a segment that occupies `memory` bytes. The sender copies its stream into blocks of 32 KiB: a segment is one page fragment, and one
    /// more for each block that it crosses.
    #[inline]
    pub fn of(s: &Segment, memory: u32) -> Buffer {
        let block = |seq: u64| (seq.wrapping_sub(1) >> 15) as u32;
        let last = s.seq + u64::from(s.len.max(1)) - 1;
        Buffer { len: s.len, memory, fragments: 1 + block(last).wrapping_sub(block(s.seq)), room: 0, in_head: false }
    }
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
