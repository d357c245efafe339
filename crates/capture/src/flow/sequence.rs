//! Sequence numbers that do not wrap, and sets of ranges of them.
//!
//! Source: RFC 9293 §3.4 (arithmetic modulo 2^32).

/// Where the first byte lies inside, so that what came before a capture's begin has a place too.
pub const ORIGIN: u64 = 1 << 32;

/// Makes 64-bit numbers of the 32 bits on the wire.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwrapped {
    /// The first byte's number on the wire, once known.
    base: Option<u32>,
    /// Highest number so far.
    high: u64,
}

impl Unwrapped {
    /// States the number of the stream's first byte, unless one is known.
    pub fn begin(&mut self, first: u32) {
        if self.base.is_none() {
            self.base = Some(first);
            self.high = ORIGIN;
        }
    }
    /// Whether the first byte's number is known.
    pub fn has_begun(&self) -> bool {
        self.base.is_some()
    }
    /// Whether `wire` is the number of the stream's first byte.
    pub fn begins_at(&self, wire: u32) -> bool {
        self.base == Some(wire)
    }
    /// The number nearest to the highest so far, which becomes the first byte if there is none; does not move the highest.
    pub fn near(&mut self, wire: u32) -> u64 {
        self.begin(wire);
        let base = self.base.unwrap_or(wire);
        let reference = base.wrapping_add(self.high.wrapping_sub(ORIGIN) as u32);
        let away = tcpscape_base::wire::ahead(reference, wire);
        (self.high as i64).saturating_add(away).max(0) as u64
    }
    /// Raises the highest number.
    pub fn raise(&mut self, to: u64) {
        self.high = self.high.max(to);
    }
}

/// The number as rows show it: from 0 at the first byte; what lies before a capture's begin is 0.
pub fn shown(number: u64) -> u64 {
    number.saturating_sub(ORIGIN)
}

/// Most ranges of a set. What would be one more is left out: only damage and malice have so many holes.
pub const MOST_RANGES: usize = 1 << 13;

/// Disjoint ranges in ascending order.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    ranges: Vec<(u64, u64)>,
    bytes: u64,
}

impl Ranges {
    /// Bytes of memory beside its own.
    pub fn heap(&self) -> usize {
        self.ranges.capacity() * size_of::<(u64, u64)>()
    }
    /// Bytes in all ranges.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
    /// How many ranges there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.ranges.len()
    }
    /// End of the last range.
    pub fn end(&self) -> Option<u64> {
        self.ranges.last().map(|r| r.1)
    }
    /// Adds `from..to` and calls `new` with each part that was not in yet; a range apart from all others is left out if there are
    /// [`MOST_RANGES`].
    pub fn add(&mut self, from: u64, to: u64, mut new: impl FnMut(u64, u64)) {
        if from >= to {
            return;
        }
        let first = self.ranges.partition_point(|r| r.1 < from);
        let mut last = first;
        let (mut start, mut end, mut cursor) = (from, to, from);
        while let Some(&(a, b)) = self.ranges.get(last).filter(|r| r.0 <= to) {
            if cursor < a {
                new(cursor, a);
                self.bytes += a - cursor;
            }
            (start, end, cursor) = (start.min(a), end.max(b), cursor.max(b));
            last += 1;
        }
        if last == first && self.ranges.len() >= MOST_RANGES {
            return;
        }
        if cursor < to {
            new(cursor, to);
            self.bytes += to - cursor;
        }
        if last == first + 1 {
            self.ranges[first] = (start, end);
        } else {
            self.ranges.splice(first..last, [(start, end)]);
        }
    }
    /// Removes what lies below `to`; gives how many bytes that were.
    pub fn remove_below(&mut self, to: u64) -> u64 {
        let before = self.bytes;
        let whole = self.ranges.partition_point(|r| r.1 <= to);
        self.ranges.drain(..whole).for_each(|(a, b)| self.bytes -= b - a);
        if let Some(first) = self.ranges.first_mut().filter(|r| r.0 < to) {
            self.bytes -= to - first.0;
            first.0 = to;
        }
        before - self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_continue_over_the_wrap_and_old_ones_lie_behind() {
        let mut u = Unwrapped::default();
        u.begin(0xffff_ff00);
        assert_eq!(shown(u.near(0xffff_ff00)), 0);
        let next = u.near(0x100);
        assert_eq!(shown(next), 0x200);
        u.raise(next);
        assert_eq!(shown(u.near(0xffff_ff80)), 0x80);
        assert_eq!(u.near(0xffff_fe00), ORIGIN - 0x100);
        assert_eq!(shown(u.near(0xffff_fe00)), 0);
    }

    #[test]
    fn ranges_report_what_is_new() {
        let mut r = Ranges::default();
        let mut add = |a, b| {
            let mut parts = Vec::new();
            r.add(a, b, |x, y| parts.push((x, y)));
            (parts, r.bytes(), r.len())
        };
        assert_eq!(add(10, 20), (vec![(10, 20)], 10, 1));
        assert_eq!(add(30, 40), (vec![(30, 40)], 20, 2));
        assert_eq!(add(12, 18), (vec![], 20, 2));
        assert_eq!(add(5, 50), (vec![(5, 10), (20, 30), (40, 50)], 45, 1));
        assert_eq!(add(50, 60), (vec![(50, 60)], 55, 1));
        assert_eq!(r.remove_below(20), 15);
        assert_eq!((r.bytes(), r.end()), (40, Some(60)));
        assert_eq!(r.remove_below(100), 40);
        assert_eq!(r.len(), 0);
    }

    #[test]
    fn a_full_set_takes_only_what_touches_its_ranges() {
        let mut r = Ranges::default();
        let n = MOST_RANGES as u64;
        (0..n + 5).rev().for_each(|i| r.add(10 * i, 10 * i + 4, |_, _| ()));
        assert_eq!((r.len(), r.bytes(), r.end()), (MOST_RANGES, 4 * n, Some(10 * (n + 4) + 4)));
        let mut new = Vec::new();
        r.add(54, 60, |a, b| new.push((a, b)));
        assert_eq!((new, r.len(), r.bytes()), (vec![(54, 60)], MOST_RANGES - 1, 4 * n + 6));
    }
}
