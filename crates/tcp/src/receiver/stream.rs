//! The stream's sequence numbers: what has come, what was read, where it ends.
//!
//! Source: RFC 9293 §3.3.1 (RCV.NXT), §3.10.7.4 (segments are trimmed to the window).

use tcpscape_base::{SackBlock, Segment};

/// Where an acceptable segment's data lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// All of it had come before.
    Old,
    /// It contains the next byte expected.
    Next,
    /// Something before it is missing.
    Ahead,
    /// The window does not reach it.
    Outside,
}

/// Sequence numbers of the stream. 0 is the SYN, data begin at 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    /// The next byte expected (RCV.NXT).
    next: u64,
    /// The next byte that the application reads.
    read: u64,
    /// The byte after the last that was ever queued.
    highest: u64,
    end: End,
}

/// What is known of the stream's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Unknown,
    /// A FIN was accepted that ends it there, but something before it is missing.
    Announced(u64),
    /// Everything up to the FIN has come.
    Reached(u64),
}

impl Stream {
    /// Nothing but the SYN has come.
    pub fn new() -> Stream {
        Stream { next: 1, read: 1, highest: 1, end: End::Unknown }
    }
    /// The next byte expected.
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }
    /// The next byte that the application reads.
    #[inline]
    pub fn read(&self) -> u64 {
        self.read
    }
    /// Whether everything up to the FIN has come.
    #[inline]
    pub fn ended(&self) -> bool {
        matches!(self.end, End::Reached(_))
    }

    /// Where the data of `s` lie when `window` bytes are open.
    #[inline]
    pub fn place(&self, s: &Segment, window: u32) -> Place {
        if s.end() <= self.next {
            Place::Old
        } else if s.seq == self.next && s.len == 0 {
            // A FIN alone needs no memory (observed on Linux 6.18).
            Place::Next
        } else if s.seq >= self.next + u64::from(window) || window == 0 {
            Place::Outside
        } else if s.seq <= self.next {
            Place::Next
        } else {
            Place::Ahead
        }
    }
    /// The part of `s` that had been acknowledged before, if any (RFC 2883 §4.1).
    #[inline]
    pub fn old_part(&self, s: &Segment) -> Option<SackBlock> {
        (s.seq < self.next).then(|| (s.seq, s.end().min(self.next)))
    }

    /// A segment is queued. Returns how far its first new byte is behind data that had come before, in bytes, 0 if it is not.
    #[inline]
    pub fn note_reordering(&mut self, start: u64, end: u64) -> u64 {
        let extent = if start < self.highest { self.highest - start.max(self.next) } else { 0 };
        self.highest = self.highest.max(end);
        extent
    }

    /// Everything up to `end`, and beyond the next byte expected, is in order now; `fin` when a FIN is the last of it. Returns the
    /// bytes of data that are new.
    #[inline]
    pub fn advance(&mut self, end: u64, fin: bool) -> u32 {
        let new = (end - self.next) as u32 - u32::from(fin);
        self.next = end;
        if fin {
            self.end = End::Reached(end);
        }
        new
    }
    /// A segment that waits for others carries the FIN, and ends at `end`.
    pub fn ends_at(&mut self, end: u64) {
        self.end = if self.ended() { End::Reached(end) } else { End::Announced(end) };
    }
    /// Whether a buffer that ends at `end` ends the stream.
    #[inline]
    pub fn is_last(&self, end: u64) -> bool {
        matches!(self.end, End::Announced(at) | End::Reached(at) if at == end)
    }
    /// The application has read `bytes` more.
    #[inline]
    pub fn on_read(&mut self, bytes: u64) {
        self.read += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpscape_base::Flags;

    fn data(seq: u64, len: u32) -> Segment {
        Segment { seq, len, flags: Flags::ACK, ..Segment::default() }
    }

    #[test]
    fn places_around_the_window() {
        let mut s = Stream::new();
        assert_eq!(s.advance(1_001, false), 1_000);
        let place = |seq, len| s.place(&data(seq, len), 500);
        assert_eq!(place(501, 500), Place::Old);
        assert_eq!(place(501, 501), Place::Next);
        assert_eq!(place(1_001, 100), Place::Next);
        assert_eq!((place(1_002, 100), place(1_500, 1)), (Place::Ahead, Place::Ahead));
        assert_eq!(place(1_501, 1), Place::Outside);
        assert_eq!(s.place(&data(1_001, 1), 0), Place::Outside, "a probe of a closed window");
        assert_eq!(s.old_part(&data(501, 600)), Some((501, 1_001)));
        assert_eq!(s.old_part(&data(501, 100)), Some((501, 601)));
        assert_eq!(s.old_part(&data(1_001, 100)), None);
    }

    #[test]
    fn a_fin_counts_one_and_is_no_data() {
        let mut s = Stream::new();
        assert_eq!((s.advance(102, true), s.ended(), s.next()), (100, true, 102));
        let mut s = Stream::new();
        s.ends_at(202);
        assert!(!s.ended() && s.is_last(202) && !s.is_last(201));
    }

    #[test]
    fn reordering_is_measured_from_the_furthest_byte() {
        let mut s = Stream::new();
        assert_eq!(s.note_reordering(1_001, 2_001), 0);
        assert_eq!(s.note_reordering(501, 1_001), 1_500);
    }
}
