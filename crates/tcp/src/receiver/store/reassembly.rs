//! Data beyond a gap: buffers by the byte where they begin, until the gap is filled.
//!
//! Source: RFC 9293 §3.10.7.4 (segments out of order are queued), RFC 2883 §4 (what of a segment is a duplicate); merging and the memory
//! of short segments from what windows show (docs/models/tcp/receiver.md, "Memory").

use super::queue::{Buffer, MOST_FRAGMENTS, PAGE_MEMORY, PAGE_PAYLOAD};
use std::collections::BTreeMap;
use tcpscape_base::SackBlock;

/// A buffer that waits; its key is where it begins.
#[derive(Clone, Copy, Debug)]
struct Piece {
    end: u64,
    memory: u32,
    fragments: u32,
}

/// A buffer that has become in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Joined {
    /// Where it begins.
    pub start: u64,
    /// The byte after its last.
    pub end: u64,
    /// Memory that it occupies.
    pub memory: u32,
    /// Page fragments.
    pub fragments: u32,
}

/// How a segment was queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queued {
    /// All of it was there.
    Nothing,
    /// Merged into the buffer before it, for so much memory.
    Merged(u32),
    /// In a buffer of its own; memory changes by so much, since other buffers may go.
    Alone(i64),
}

/// What queueing a segment did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Insertion {
    /// How it was queued.
    pub queued: Queued,
    /// The contiguous part of it that was there already (RFC 2883 §4).
    pub duplicate: Option<SackBlock>,
}

/// The buffers beyond the gap. They may overlap: a merge leaves the overlap with the next buffer for later.
#[derive(Default)]
pub(super) struct Reassembly {
    pieces: BTreeMap<u64, Piece>,
}

impl Reassembly {
    /// Whether nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Queues the bytes `start..end` in `buffer`, which merged with the one before costs `overhead` less. Segments of at most `head_room`
    /// bytes are copied into their buffer's head, which costs `overhead` and is merged with nothing.
    pub fn insert(&mut self, start: u64, end: u64, buffer: Buffer, overhead: u32, head_room: u32) -> Insertion {
        let (mut duplicate, mut freed) = (None, 0);
        if let Some((&first, before)) = self.pieces.range_mut(..=start).next_back() {
            if before.end > start {
                duplicate = Some((start, end.min(before.end)));
                if before.end >= end {
                    return Insertion { queued: Queued::Nothing, duplicate };
                }
                if first == start {
                    freed += i64::from(before.memory); // the longer segment takes its place
                }
            } else if before.end == start && before.fragments + buffer.fragments <= MOST_FRAGMENTS {
                let memory = buffer.memory.saturating_sub(overhead);
                *before = Piece { end, memory: before.memory + memory, fragments: before.fragments + buffer.fragments };
                return Insertion { queued: Queued::Merged(memory), duplicate };
            }
        }
        let piece = if buffer.len <= head_room {
            Piece { end, memory: overhead.min(buffer.memory), fragments: MOST_FRAGMENTS }
        } else {
            Piece { end, memory: buffer.memory, fragments: buffer.fragments }
        };
        self.pieces.insert(start, piece);
        freed += self.cover(start, end, &mut duplicate);
        Insertion { queued: Queued::Alone(i64::from(piece.memory) - freed), duplicate }
    }

    // Buffers that begin within a new one: those that end in it go. Returns their memory.
    fn cover(&mut self, start: u64, end: u64, duplicate: &mut Option<SackBlock>) -> i64 {
        let mut freed = 0;
        while let Some((&next, &piece)) = self.pieces.range(start + 1..end).next() {
            let part = (next, piece.end.min(end));
            match duplicate {
                None => *duplicate = Some(part),
                Some(first) if part.0 <= first.1 => first.1 = first.1.max(part.1),
                Some(_) => {} // one contiguous range is reported
            }
            if piece.end > end {
                break;
            }
            self.pieces.remove(&next);
            freed += i64::from(piece.memory);
        }
        freed
    }

    /// Takes the first buffer if it begins at or below `next`.
    pub fn take_first(&mut self, next: u64) -> Option<Joined> {
        let first = self.pieces.first_entry().filter(|e| *e.key() <= next)?;
        let (start, Piece { end, memory, fragments }) = first.remove_entry();
        Some(Joined { start, end, memory, fragments })
    }

    /// Drops buffers from the far end until `least` bytes of memory are free, none that begins at or below `spare`. Returns the memory
    /// freed and the number of buffers.
    pub fn cut(&mut self, least: u64, spare: u64) -> (u64, u64) {
        let (mut freed, mut dropped) = (0, 0);
        while freed < least {
            let Some(last) = self.pieces.last_entry().filter(|e| *e.key() > spare) else { break };
            freed += u64::from(last.remove().memory);
            dropped += 1;
        }
        (freed, dropped)
    }
    /// Drops everything; returns the memory freed.
    pub fn clear(&mut self) -> u64 {
        std::mem::take(&mut self.pieces).values().map(|p| u64::from(p.memory)).sum()
    }

    /// Copies the payload of each contiguous range of several buffers into full pages, where that takes less memory and
    /// `saves(bytes, memory)`. Returns the memory freed.
    pub fn compact(&mut self, saves: impl Fn(u64, u64) -> bool) -> u64 {
        let (mut freed, mut from) = (0, 0);
        while let Some(range) = self.range_from(from) {
            from = range.end;
            let bytes = range.end - range.start;
            let pages = bytes.div_ceil(u64::from(PAGE_PAYLOAD)) * u64::from(PAGE_MEMORY);
            if range.buffers < 2 || pages >= range.memory || !saves(bytes, range.memory) {
                continue;
            }
            freed += range.memory - pages;
            self.pieces.retain(|&start, _| !(range.start..range.end).contains(&start));
            for start in (range.start..range.end).step_by(PAGE_PAYLOAD as usize) {
                let end = range.end.min(start + u64::from(PAGE_PAYLOAD));
                self.pieces.insert(start, Piece { end, memory: PAGE_MEMORY, fragments: MOST_FRAGMENTS });
            }
        }
        freed
    }
    // The contiguous range of buffers that begins with the first one at or after `from`.
    fn range_from(&self, from: u64) -> Option<Range> {
        let mut pieces = self.pieces.range(from..);
        let (&start, first) = pieces.next()?;
        let mut range = Range { start, end: first.end, memory: u64::from(first.memory), buffers: 1 };
        for (&next, piece) in pieces {
            if next > range.end {
                break;
            }
            range.end = range.end.max(piece.end);
            range.memory += u64::from(piece.memory);
            range.buffers += 1;
        }
        Some(range)
    }
}

/// A contiguous range of buffers.
struct Range {
    start: u64,
    end: u64,
    memory: u64,
    buffers: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    const OVERHEAD: u32 = 1_280;

    fn insert(r: &mut Reassembly, start: u64, end: u64) -> Insertion {
        let len = (end - start) as u32;
        r.insert(start, end, Buffer { len, memory: len + OVERHEAD, fragments: 1 }, OVERHEAD, 0)
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

    #[test]
    fn a_short_segment_costs_no_more_than_its_buffers_head() {
        let mut r = Reassembly::default();
        let short = Buffer { len: 64, memory: 64 + 960, fragments: 1 };
        assert_eq!(r.insert(100, 164, short, 960, 64), alone(960, None));
        assert_eq!(r.insert(164, 228, short, 960, 64), alone(960, None), "it is merged with nothing");
    }

    #[test]
    fn buffers_leave_in_order_once_the_gap_is_filled() {
        let mut r = with(&[(300, 400), (100, 200)]);
        assert_eq!(r.take_first(99), None);
        assert_eq!(r.take_first(150), Some(Joined { start: 100, end: 200, memory: 1_380, fragments: 1 }));
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
            let one = Buffer { len: 100, memory: 1_380, fragments: MOST_FRAGMENTS };
            r.insert(start, start + 100, one, OVERHEAD, 0);
        }
        assert_eq!(r.compact(|bytes, memory| bytes < memory), 4 * 1_380 - 4_352);
        assert_eq!(r.take_first(100), Some(Joined { start: 100, end: 500, memory: 4_352, fragments: MOST_FRAGMENTS }));
        assert_eq!(r.clear(), 1_380);
    }
}
