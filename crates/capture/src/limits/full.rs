//! The payload of a full segment as the packets show it: a path may take smaller ones than the SYNs agreed on (RFC 8899, RFC 4821), from the beginning
//! or from some time on.
//!
//! A segment without PSH is not the end of a write (RFC 9293 §3.9.1.2): more was there to be sent, and it is as large as the sender makes them. The size
//! that most of these have is that of full segments (Boyer and Moore, "MJRTY", 1991).

use super::Data;

/// Votes for a size from which on it is that of full segments.
const REPEATED: u32 = 4;
/// Most votes: a path that takes other segments from now on is noticed soon.
const MOST_VOTES: u32 = 16;
/// Segments in a super-packet at most: 64 kB in the smallest ones that a path must take (RFC 9293 §3.7.1).
const MOST_SEGMENTS: u32 = 123;

/// The size of full segments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullSize {
    /// What has the votes, and how many.
    size: Option<u32>,
    votes: u32,
    /// What had enough of them last.
    known: Option<u32>,
}

impl FullSize {
    /// Takes a segment or a super-packet, whose `mss` is what the SYNs agreed on; gives the payload of a full segment now, with as many options.
    pub(super) fn take(&mut self, d: &Data) -> Option<u32> {
        if d.options == 0 {
            self.learn(d);
        }
        let without = d.mss.map(|mss| self.known.map_or(mss, |known| known.min(mss)));
        without.map(|size| size.saturating_sub(d.options).max(1)) // RFC 9293 §3.7.1
    }

    fn learn(&mut self, d: &Data) {
        let is_of = |size: &u32| d.len % size == 0;
        // A sender cuts a super-packet into as few segments as the path allows.
        let fewest = |mss: u32| (d.len.div_ceil(mss)..=MOST_SEGMENTS).find(|k| d.len % k == 0);
        let by_size = || self.size.filter(is_of).filter(|&size| d.len > size);
        let by_parts = || d.mss.filter(|_| !d.psh).and_then(fewest).map(|k| d.len / k);
        if let Some(size) = d.mss.filter(is_of).or_else(by_size).or_else(by_parts) {
            self.vote(size);
        }
        if self.votes >= REPEATED {
            self.known = self.size;
        }
    }

    fn vote(&mut self, size: u32) {
        if self.size == Some(size) {
            self.votes = (self.votes + 1).min(MOST_VOTES);
        } else if self.votes == 0 {
            (self.size, self.votes) = (Some(size), 1);
        } else {
            self.votes -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1_448;

    /// What a full segment is after segments of these lengths, without PSH.
    fn after(full: &mut FullSize, lengths: impl IntoIterator<Item = u32>) -> u32 {
        lengths.into_iter().filter_map(|len| full.take(&Data { len, mss: Some(MSS), ..Data::default() })).last().unwrap_or(0)
    }

    #[test]
    fn a_size_below_the_mss_is_learnt_from_what_does_not_end_a_write() {
        let mut full = FullSize::default();
        assert_eq!(after(&mut full, [1_200; 3]), MSS);
        assert_eq!(after(&mut full, [1_200]), 1_200);
        // Ends of writes, and what the receiver's window cut once, change nothing.
        assert_eq!(full.take(&Data { len: 700, mss: Some(MSS), psh: true, ..Data::default() }), Some(1_200));
        assert_eq!(after(&mut full, [333]), 1_200);
    }

    #[test]
    fn options_make_a_full_segment_smaller_and_teach_no_size() {
        let mut full = FullSize::default();
        for _ in 0..20 {
            assert_eq!(full.take(&Data { len: MSS - 20, mss: Some(MSS), options: 20, ..Data::default() }), Some(MSS - 20));
        }
        assert_eq!(after(&mut full, [MSS]), MSS);
    }

    #[test]
    fn a_change_in_mid_flow_is_noticed() {
        let mut full = FullSize::default();
        assert_eq!(after(&mut full, [MSS; 100]), MSS);
        assert_eq!(after(&mut full, [1_200; 24]), 1_200);
        assert_eq!(after(&mut full, [1_324; 24]), 1_324);
        assert_eq!(after(&mut full, [MSS; 24]), MSS);
    }

    #[test]
    fn super_packets_show_the_size_of_their_segments() {
        assert_eq!(after(&mut FullSize::default(), [3_600, 12_000, 2_400, 6_000]), 1_200);
        assert_eq!(after(&mut FullSize::default(), [2 * MSS, 10 * MSS, MSS]), MSS);
        // 5 × 1,440 as well as 6 × 1,200: the others tell.
        assert_eq!(after(&mut FullSize::default(), [3_600, 7_200, 12_000, 7_200, 4_800]), 1_200);
    }
}
