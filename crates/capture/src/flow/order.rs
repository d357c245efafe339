//! In which order an end sent its packets, as their IP identification and timestamps show it.
//!
//! Source: RFC 6864 §4 (the field's use), RFC 7323 §5.3 (TSval never decreases). Linux counts the field up by one for each segment of a
//! connected socket, also with DF set (`docs/diagnosis.md` has the packets that show it); ends that draw it at random are recognised.

use tcpscape_base::wire::ahead;

/// A larger step than this is no count of one connection's packets.
const STEP: i16 = 4096;
/// Steps of a count that show that the field is one.
const SHOWN: i32 = 4;

/// The packets of one end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Order {
    id: Option<u16>,
    /// Steps that a counter makes, less those that it does not make.
    score: i32,
    tsval: Option<u32>,
    /// The highest identification as a number that does not wrap.
    high: u64,
}

/// When a packet was sent, by what it carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// IP identification.
    pub id: u16,
    /// TSval.
    pub tsval: Option<u32>,
}

impl Order {
    /// Takes the next packet seen; gives whether it was sent before one that came earlier; `None` where nothing shows it.
    pub fn is_late(&mut self, s: Stamp) -> Option<bool> {
        let by_id = self.by_id(s.id);
        let older = match (s.tsval, self.tsval) {
            (Some(new), Some(last)) => Some(ahead(last, new) < 0),
            _ => None,
        };
        if older != Some(true) {
            self.tsval = s.tsval.or(self.tsval);
        }
        by_id.or(older)
    }

    fn by_id(&mut self, id: u16) -> Option<bool> {
        let Some(last) = self.id else {
            self.id = Some(id);
            return None;
        };
        let step = id.wrapping_sub(last) as i16;
        match step {
            1..=STEP => {
                self.score = (self.score + 1).min(64);
                self.id = Some(id);
                self.high += step as u64;
            }
            0 if id == 0 => self.score = (self.score - 1).max(-64),
            0 => {}
            step if (-STEP..0).contains(&step) => self.score = (self.score + 1).min(64),
            _ => {
                self.score = (self.score - 4).max(-64);
                self.id = Some(id);
                self.high += 1 << 16;
            }
        }
        self.counts().then_some((-STEP..0).contains(&step))
    }

    /// The place of the packet with this identification among its end's, where the field shows it.
    pub fn place(&self, id: u16) -> Option<u64> {
        let behind = self.id.map_or(0, |high| high.wrapping_sub(id) as i16);
        self.counts().then(|| (self.high + (1 << 16)).saturating_add_signed(-i64::from(behind)))
    }

    /// Whether the field is a count of the packets.
    pub fn counts(&self) -> bool {
        self.score >= SHOWN
    }

    /// Whether `a` was sent after `b`; `None` where neither field shows it.
    pub fn is_after(&self, a: Stamp, b: Stamp) -> Option<bool> {
        if self.counts() {
            return Some((a.id.wrapping_sub(b.id) as i16) > 0);
        }
        match (a.tsval, b.tsval) {
            (Some(a), Some(b)) if a != b => Some(ahead(a, b) < 0),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(id: u16, tsval: u32) -> Stamp {
        Stamp { id, tsval: Some(tsval) }
    }

    #[test]
    fn a_counted_field_shows_late_packets_over_its_wrap() {
        let mut o = Order::default();
        let late: Vec<_> = [65_531, 65_533, 65_532, 65_535, 1, 0, 2].map(|id| o.is_late(stamp(id, 7))).to_vec();
        assert_eq!(late, [None, Some(false), Some(false), Some(false), Some(false), Some(true), Some(false)]);
        assert_eq!(o.is_after(stamp(1, 9), stamp(65_530, 9)), Some(true));
    }

    #[test]
    fn without_a_count_timestamps_decide_and_equal_ones_decide_nothing() {
        let mut o = Order::default();
        let late: Vec<_> = [(9, 5), (4_000, 6), (77, 5), (60_000, 6)].map(|(id, v)| o.is_late(stamp(id, v))).to_vec();
        assert_eq!(late, [None, Some(false), Some(true), Some(false)]);
        assert_eq!((o.is_after(stamp(0, 6), stamp(0, 6)), o.is_after(stamp(0, 7), stamp(0, 6))), (None, Some(true)));
        let zeros: Vec<_> = (0..9).map(|_| o.is_late(Stamp::default())).collect();
        assert!(zeros.iter().all(Option::is_none));
    }
}
