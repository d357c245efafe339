//! Quick ACKs: segments that are acknowledged one by one, while the sender's window is small or something is wrong.
//!
//! Source: RFC 5681 §4.2 allows an ACK for every segment, RFC 3465 §3 says why a slow start needs them; how many there are is observed:
//! docs/models/tcp/receiver.md, "Quick ACKs".

/// Most segments that are acknowledged one by one in a row (`TCP_MAX_QUICKACKS`).
pub(super) const MOST: u32 = 16;
/// Least of them.
const LEAST: u32 = 2;

/// Quick ACKs that are left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct QuickAcks {
    left: u32,
}

impl QuickAcks {
    /// Whether the next segment is acknowledged at once.
    #[inline]
    pub fn any(self) -> bool {
        self.left > 0
    }
    /// As many as half of a window has segments, 2 at least and `most` at most, if fewer are left.
    pub fn raise(&mut self, window: u32, segment: u32, most: u32) {
        let half = window / (2 * segment.max(1));
        self.left = self.left.max(half.max(LEAST).min(most));
    }
    /// The window has grown, and the sender should know: one is left at least. An even number becomes the odd one above it, so that the
    /// number does not fall while the window grows with each segment.
    #[inline]
    pub fn on_growth(&mut self) {
        self.left |= 1;
    }
    /// There are no more: the buffer fills, and the reader decides when there is room to tell of.
    #[inline]
    pub fn end(&mut self) {
        self.left = 0;
    }
    /// One is used. Returns whether it was the last.
    #[inline]
    pub fn spend(&mut self) -> bool {
        let last = self.left == 1;
        self.left = self.left.saturating_sub(1);
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_window_of_segments() {
        let raised = |window, segment, most| {
            let mut q = QuickAcks::default();
            q.raise(window, segment, most);
            q.left
        };
        assert_eq!(raised(14_480, 1_448, MOST), 5);
        assert_eq!((raised(65_535, 1_448, MOST), raised(1_000, 1_448, MOST), raised(65_535, 1_448, 1)), (16, 2, 1));
    }

    #[test]
    fn the_number_does_not_fall_while_the_window_grows() {
        let mut q = QuickAcks { left: 4 };
        for _ in 0..10 {
            q.on_growth();
            assert!(!q.spend());
        }
        assert_eq!(q.left, 4);
        let last: Vec<bool> = (0..5).map(|_| q.spend()).collect();
        assert_eq!((last, q.any()), (vec![false, false, false, true, false], false));
    }
}
