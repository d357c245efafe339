//! The size of the sender's segments, and where its writes end.
//!
//! Source: RFC 9293 §3.8.6.2.2 and RFC 5681 §4.2 count in segments of the sender's effective size, which the receiver must guess;
//! how Linux guesses: docs/models/tcp/receiver.md, "Segment size".

use tcpscape_base::{Flags, Segment};

/// Segment size to begin with: the default MSS (RFC 9293 §3.7.1).
const DEFAULT: u32 = 536;
/// The smallest size to begin with (`TCP_MIN_MSS`).
const LEAST: u32 = 88;
/// Bytes of a timestamp option, padded (RFC 7323, appendix A).
const TIMESTAMPS: u32 = 12;

/// An estimate of the sender's segment size.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SegmentSize {
    /// Bytes of payload.
    estimate: u32,
    /// Length of the last segment, if it was shorter than the estimate but may be the sender's size.
    candidate: u32,
}

impl SegmentSize {
    /// Before any data: at most the default, and half the window.
    pub fn new(mss: u32, window: u32) -> SegmentSize {
        SegmentSize { estimate: mss.min(window / 2).clamp(LEAST, DEFAULT), candidate: 0 }
    }
    /// The estimate, bytes of payload.
    #[inline]
    pub fn estimate(self) -> u32 {
        self.estimate
    }

    /// A segment with `len` bytes came; the estimate is never more than `most`. Returns whether it seems to end a write of the sender's:
    /// it is pushed, or shorter than the others.
    #[inline]
    pub fn read(&mut self, s: &Segment, len: u32, most: u32) -> bool {
        let previous = std::mem::take(&mut self.candidate);
        let is_pushed = s.flags.has(Flags::PSH);
        if len >= self.estimate {
            self.estimate = len.min(most);
            return is_pushed;
        }
        let may_be_cut = is_pushed || s.flags.has(Flags::FIN);
        let least = if may_be_cut { DEFAULT } else { LEAST } - TIMESTAMPS;
        if len >= least && len == previous {
            self.estimate = len;
            return false;
        }
        self.candidate = if len >= least { len } else { 0 };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(size: &mut SegmentSize, len: u32, flags: Flags) -> bool {
        size.read(&Segment { len, flags, ..Segment::default() }, len, 1_448)
    }

    #[test]
    fn a_longer_segment_is_believed_at_once() {
        let mut size = SegmentSize::new(1_448, 65_535);
        assert_eq!((size.estimate(), SegmentSize::new(1_448, 100).estimate()), (536, 88));
        assert!(!read(&mut size, 1_448, Flags::ACK));
        assert!(read(&mut size, 1_448, Flags::PSH));
        assert!(!read(&mut size, 9_000, Flags::ACK));
        assert_eq!(size.estimate(), 1_448, "no more than it announced");
    }

    #[test]
    fn a_shorter_one_is_believed_the_second_time() {
        let mut size = SegmentSize { estimate: 1_448, candidate: 0 };
        assert!(read(&mut size, 1_000, Flags::ACK));
        assert!(read(&mut size, 999, Flags::ACK));
        assert_eq!(size.estimate(), 1_448);
        assert!(!read(&mut size, 999, Flags::ACK));
        assert_eq!(size.estimate(), 999);
    }

    /// The end of a write is believed only where it is as long as a default segment with timestamps.
    #[test]
    fn ends_of_writes_are_no_segment_sizes() {
        for (len, flags, believed) in [(523, Flags::PSH, false), (524, Flags::PSH, true), (75, Flags::ACK, false), (76, Flags::ACK, true)] {
            let mut size = SegmentSize { estimate: 1_448, candidate: 0 };
            assert!(read(&mut size, len, flags));
            assert_eq!(!read(&mut size, len, flags), believed, "{len}");
            assert_eq!(size.estimate() == len, believed);
        }
    }
}
