//! What the SACK option of the next ACK reports: a duplicate first, then the blocks beyond the gap, most recent first.
//!
//! Source: RFC 2018 §4 (which blocks, in which order), RFC 2883 §4 (the block that reports a duplicate). Differs: four blocks are
//! remembered, of which an ACK has room for three beside the timestamp option.

use tcpscape_base::{SackBlock, Segment, MAX_SACK_BLOCKS};

/// Blocks that are remembered.
const REMEMBERED: usize = 4;

/// Where a segment stands among the blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It widened the block of this position.
    Known(usize),
    /// It begins a new block.
    New,
}

/// The blocks that the next ACK reports.
#[derive(Default)]
pub(super) struct SackOption {
    /// The peer permits SACK; without it nothing is ever reported.
    permitted: bool,
    /// Number of blocks.
    count: u8,
    /// Blocks, most recently changed first.
    blocks: [SackBlock; REMEMBERED],
    /// A duplicate that the next ACK reports, and no other after it.
    duplicate: Option<SackBlock>,
}

/// Widens `block` by `with` if the two overlap or touch.
fn join(block: &mut SackBlock, with: SackBlock) -> bool {
    let touches = with.0 <= block.1 && block.0 <= with.1;
    if touches {
        *block = (block.0.min(with.0), block.1.max(with.1));
    }
    touches
}

impl SackOption {
    /// Nothing to report.
    pub fn new(permitted: bool) -> SackOption {
        SackOption { permitted, ..SackOption::default() }
    }
    /// Whether the peer permits the option.
    #[inline]
    pub fn is_permitted(&self) -> bool {
        self.permitted
    }
    /// The blocks beyond the gap, most recent first.
    #[inline]
    pub fn blocks(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.count)]
    }

    // ---- duplicates (RFC 2883) -------------------------------------------------------------------------------------

    /// A segment came, and this of it was a duplicate. A duplicate of an earlier segment that is still unreported is forgotten.
    #[inline]
    pub fn set_duplicate(&mut self, duplicate: Option<SackBlock>) {
        if self.permitted {
            self.duplicate = duplicate;
        }
    }
    /// More of the same segment was a duplicate: one contiguous range is reported (RFC 2883 §4), that which was seen first.
    pub fn extend_duplicate(&mut self, more: SackBlock) {
        match &mut self.duplicate {
            Some(first) => {
                join(first, more);
            }
            None => self.set_duplicate(Some(more)),
        }
    }

    // ---- blocks (RFC 2018) -----------------------------------------------------------------------------------------

    /// The bytes `range` were queued: widens the block that they continue. [`SackOption::bring_forward`] must follow.
    pub fn widen(&mut self, range: SackBlock) -> Place {
        let count = usize::from(self.count);
        self.blocks[..count].iter_mut().position(|block| join(block, range)).map_or(Place::New, Place::Known)
    }
    /// Whether bringing `place` forward pushes the last block out of an ACK that also reports a duplicate.
    pub fn crowds_out(&self, place: Place) -> bool {
        let position = match place {
            Place::Known(i) => i,
            Place::New => usize::from(self.count),
        };
        position + 1 >= MAX_SACK_BLOCKS
    }
    /// The block with the segment that came last is the first (RFC 2018 §4); others that it now touches become part of it.
    pub fn bring_forward(&mut self, place: Place, range: SackBlock) {
        match place {
            Place::Known(i) => {
                self.blocks[..=i].rotate_right(1);
                self.absorb();
            }
            Place::New => {
                self.count = (self.count + 1).min(REMEMBERED as u8);
                self.blocks[..usize::from(self.count)].rotate_right(1);
                self.blocks[0] = range;
            }
        }
    }
    // Joins the first block with those that it touches.
    fn absorb(&mut self) {
        let (mut first, mut kept) = (self.blocks[0], 1);
        for i in 1..usize::from(self.count) {
            if !join(&mut first, self.blocks[i]) {
                self.blocks[kept] = self.blocks[i];
                kept += 1;
            }
        }
        self.blocks[0] = first;
        self.count = kept as u8;
    }

    /// Everything below `next` is in order now: blocks that begin there go.
    #[inline]
    pub fn acknowledge(&mut self, next: u64) {
        let mut kept = 0;
        for i in 0..usize::from(self.count) {
            if self.blocks[i].0 > next {
                self.blocks[kept] = self.blocks[i];
                kept += 1;
            }
        }
        self.count = kept as u8;
    }
    /// Nothing is out of order any more.
    #[inline]
    pub fn forget_blocks(&mut self) {
        self.count = 0;
    }
    /// Nothing is to be reported: data that were reported have been dropped (RFC 2018 §8).
    pub fn forget(&mut self) {
        self.count = 0;
        self.duplicate = None;
    }

    /// Writes the option of an ACK, whose number is set. Returns whether a duplicate was among the blocks.
    #[inline]
    pub fn write(&mut self, ack: &mut Segment) -> bool {
        let duplicate = self.duplicate.take();
        if let Some(block) = duplicate {
            ack.push_sack(block);
        }
        for &block in self.blocks() {
            ack.push_sack(block);
        }
        duplicate.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reports `range` as queued.
    fn queued(sack: &mut SackOption, range: SackBlock) {
        let place = sack.widen(range);
        sack.bring_forward(place, range);
    }
    fn written(sack: &mut SackOption, ack: u64) -> Vec<SackBlock> {
        let mut s = Segment { ack, ..Segment::default() };
        sack.write(&mut s);
        s.sacks().collect()
    }

    /// RFC 2018 §7, case 2: the first of eight segments of 500 bytes from 5000 on is lost.
    #[test]
    fn rfc_2018_a_lost_first_segment() {
        let mut sack = SackOption::new(true);
        for end in (6_000..=9_000).step_by(500) {
            queued(&mut sack, (end - 500, end));
            assert_eq!(written(&mut sack, 5_000), [(5_500, end)]);
        }
    }

    /// RFC 2018 §7, case 3: the 2nd, 4th, 6th and last of the eight are lost; then the 4th comes, then the 2nd.
    #[test]
    fn rfc_2018_every_second_segment_lost() {
        let mut sack = SackOption::new(true);
        queued(&mut sack, (6_000, 6_500));
        assert_eq!(written(&mut sack, 5_500), [(6_000, 6_500)]);
        queued(&mut sack, (7_000, 7_500));
        assert_eq!(written(&mut sack, 5_500), [(7_000, 7_500), (6_000, 6_500)]);
        queued(&mut sack, (8_000, 8_500));
        assert_eq!(written(&mut sack, 5_500), [(8_000, 8_500), (7_000, 7_500), (6_000, 6_500)]);
        queued(&mut sack, (6_500, 7_000));
        assert_eq!(written(&mut sack, 5_500), [(6_000, 7_500), (8_000, 8_500)]);
        sack.acknowledge(7_500);
        assert_eq!(written(&mut sack, 7_500), [(8_000, 8_500)]);
    }

    /// RFC 2883 §4.1.1: two ACKs are lost, a segment is sent again: the ACK 4000 reports 3000–3500, once.
    #[test]
    fn rfc_2883_a_duplicate_below_the_acknowledgement() {
        let mut sack = SackOption::new(true);
        sack.set_duplicate(Some((3_000, 3_500)));
        assert_eq!(written(&mut sack, 4_000), [(3_000, 3_500)]);
        assert_eq!(written(&mut sack, 4_000), []);
    }

    /// RFC 2883 §4.1.2: a duplicate comes while 4500–5000 waits beyond a gap.
    #[test]
    fn rfc_2883_a_duplicate_beside_a_gap() {
        let mut sack = SackOption::new(true);
        queued(&mut sack, (4_500, 5_000));
        assert_eq!(written(&mut sack, 4_000), [(4_500, 5_000)]);
        sack.set_duplicate(Some((3_000, 3_500)));
        assert_eq!(written(&mut sack, 4_000), [(3_000, 3_500), (4_500, 5_000)]);
    }

    /// RFC 2883 §4.1.3: the duplicate lies in a waiting block; the larger block is the second.
    #[test]
    fn rfc_2883_a_duplicate_within_a_block() {
        let mut sack = SackOption::new(true);
        queued(&mut sack, (4_500, 5_000));
        queued(&mut sack, (5_000, 5_500));
        sack.set_duplicate(Some((5_000, 5_500)));
        queued(&mut sack, (5_000, 5_500));
        assert_eq!(written(&mut sack, 4_000), [(5_000, 5_500), (4_500, 5_500)]);
    }

    #[test]
    fn parts_that_touch_are_one_duplicate_and_others_are_left_out() {
        let mut sack = SackOption::new(true);
        sack.extend_duplicate((100, 200));
        sack.extend_duplicate((200, 300));
        sack.extend_duplicate((400, 500));
        assert_eq!(written(&mut sack, 1_000), [(100, 300)]);
    }

    #[test]
    fn a_fifth_block_pushes_the_oldest_out() {
        let mut sack = SackOption::new(true);
        for start in [10, 20, 30, 40, 50] {
            queued(&mut sack, (start, start + 1));
        }
        assert_eq!(sack.blocks(), [(50, 51), (40, 41), (30, 31), (20, 21)]);
    }

    /// Two blocks can change places unseen; a third is lost to an ACK that also reports a duplicate.
    #[test]
    fn the_third_block_crowds_out() {
        let mut sack = SackOption::new(true);
        queued(&mut sack, (10, 20));
        assert!(!sack.crowds_out(Place::New) && !sack.crowds_out(Place::Known(1)));
        queued(&mut sack, (30, 40));
        assert!(sack.crowds_out(Place::New) && sack.crowds_out(Place::Known(2)));
    }

    #[test]
    fn nothing_is_reported_unless_the_peer_permits_it() {
        let mut sack = SackOption::new(false);
        sack.set_duplicate(Some((1, 2)));
        sack.extend_duplicate((1, 2));
        assert_eq!(written(&mut sack, 4_000), []);
    }
}
