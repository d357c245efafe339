//! Data in order that the application has not read: the buffers that hold them, merged where neighbours fit into one.
//!
//! Source: what windows show of a reader that has not read yet (docs/models/tcp/receiver.md, "Memory").

use std::collections::VecDeque;

/// Page fragments that one buffer can hold: neighbours are merged up to it.
pub(crate) const MOST_FRAGMENTS: u32 = 17;
/// Payload of a buffer of one page: 4096 bytes less 320 of administration.
pub(super) const PAGE_PAYLOAD: u32 = 3_776;
/// Memory of a buffer of one page: the page and 256 bytes of administration.
pub(super) const PAGE_MEMORY: u32 = 4_352;

/// One buffer: payload bytes, memory that it occupies, and page fragments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Buffer {
    /// Payload, bytes.
    pub len: u32,
    /// Memory, bytes.
    pub memory: u32,
    /// Page fragments.
    pub fragments: u32,
}

impl Buffer {
    /// Whether `next` can be merged into this buffer.
    #[inline]
    pub fn has_room_for(&self, next: &Buffer) -> bool {
        self.fragments + next.fragments <= MOST_FRAGMENTS
    }
    /// A buffer of one page, filled with `len` bytes; nothing is merged with it.
    pub fn page(len: u32) -> Buffer {
        Buffer { len, memory: PAGE_MEMORY, fragments: MOST_FRAGMENTS }
    }
}

/// What one read took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
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
pub(super) struct Queue {
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
        self.bytes += u64::from(buffer.len);
        match self.buffers.back_mut() {
            Some(last) if last.has_room_for(&buffer) => {
                let memory = buffer.memory.saturating_sub(overhead);
                last.len += buffer.len;
                last.memory += memory;
                last.fragments += buffer.fragments;
                memory
            }
            _ => {
                self.buffers.push_back(buffer);
                buffer.memory
            }
        }
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
        Buffer { len: 1_448, memory: 2_728, fragments: 1 }
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
            q.append(Buffer { len: 100, memory: 1_380, fragments: 17 }, 1_280);
        }
        q.take(50);
        assert_eq!(q.compact(|_, _| false), (138_000, 138_000));
        // 9,950 bytes: two full pages and one with 2,398.
        assert_eq!(q.compact(|bytes, memory| bytes < memory), (138_000, 3 * 4_352));
        assert_eq!(q.take(u64::MAX), Taken { first: 3_776, bytes: 9_950, memory: 3 * 4_352, buffers: 3 });
    }
}
