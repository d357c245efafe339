//! The SACK option of an ACK, and the duplicate that its first block may report.
//!
//! Source: RFC 2018 §3 and §5, RFC 2883 §4 and §5. How it differs: nothing known. Not modelled: blocks of ancient data (older than a window).

use tcpscape_base::{SackBlock, Segment, MAX_SACK_BLOCKS};

/// A DSACK: data that arrived twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Duplicate {
    /// First sequence number.
    pub start: u64,
    /// The one behind the last.
    pub end: u64,
    /// Segments that it covers.
    pub segments: u32,
}

/// The blocks of one ACK.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SackOption {
    blocks: [SackBlock; MAX_SACK_BLOCKS],
    n: usize,
    ack: u64,
}

impl SackOption {
    /// The option of `s`.
    pub fn of(s: &Segment) -> SackOption {
        let mut option = SackOption { blocks: [(0, 0); MAX_SACK_BLOCKS], n: 0, ack: s.ack };
        for block in s.sacks() {
            option.blocks[option.n] = block;
            option.n += 1;
        }
        option
    }

    /// The duplicate that the first block reports (RFC 2883 §4): it lies below the ACK number, or inside the block that follows. One longer
    /// than the largest window is no report of this connection.
    pub fn duplicate(&self, max_window: u32, mss: u32) -> Option<Duplicate> {
        let (start, end) = *self.blocks[..self.n].first()?;
        let inside_next = self.blocks[..self.n].get(1).is_some_and(|&(low, high)| low <= start && end <= high);
        let reports = start < end && (start < self.ack || inside_next) && end - start <= u64::from(max_window);
        reports.then(|| Duplicate { start, end, segments: (end - start).div_ceil(u64::from(mss)).max(1) as u32 })
    }

    /// The blocks that tell of data in flight, in order: above the left edge, and sent. `without_first` leaves the duplicate out.
    pub fn usable(&mut self, without_first: bool, una: u64, nxt: u64) -> &[SackBlock] {
        let mut kept = 0;
        for i in usize::from(without_first)..self.n {
            let (start, end) = self.blocks[i];
            if una < start && start < end && end <= nxt {
                self.blocks[kept] = (start, end);
                kept += 1;
            }
        }
        self.blocks[..kept].sort_unstable();
        &self.blocks[..kept]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(ack: u64, blocks: &[SackBlock]) -> SackOption {
        let mut s = Segment { ack, ..Segment::default() };
        blocks.iter().for_each(|&b| s.push_sack(b));
        SackOption::of(&s)
    }

    /// The examples of RFC 2883 §4.1 and §4.2, with segments of 500 bytes.
    #[test]
    fn the_examples_of_rfc_2883() {
        let dup = |ack, blocks: &[SackBlock]| option(ack, blocks).duplicate(65_535, 500).map(|d| (d.start, d.end));
        // §4.1.1: the receiver got 3000-3499 twice, with nothing out of order.
        assert_eq!(dup(4_000, &[(3_000, 3_500)]), Some((3_000, 3_500)));
        // §4.1.2: out of order data besides.
        assert_eq!(dup(4_000, &[(3_000, 3_500), (4_500, 5_000)]), Some((3_000, 3_500)));
        // §4.1.3: the duplicate is itself out of order: inside the second block.
        assert_eq!(dup(4_000, &[(5_000, 5_500), (4_500, 5_500)]), Some((5_000, 5_500)));
        // §4.2.1: a part of a segment.
        assert_eq!(dup(2_500, &[(1_000, 1_500)]), Some((1_000, 1_500)));
        // An ordinary SACK is none, nor is one that is longer than a window.
        assert_eq!(dup(4_000, &[(4_500, 5_000), (6_000, 6_500)]), None);
        assert_eq!(option(4_000_000, &[(1, 100_000)]).duplicate(65_535, 500), None);
    }

    #[test]
    fn blocks_are_used_in_order_and_only_for_data_in_flight() {
        let mut o = option(1_000, &[(500, 900), (3_000, 3_500), (2_000, 2_500)]);
        assert_eq!(o.usable(true, 1_000, 9_000), [(2_000, 2_500), (3_000, 3_500)]);
        assert!(option(1_000, &[(900, 1_500), (8_000, 9_500)]).usable(false, 1_000, 9_000).is_empty());
    }
}
