//! What comes for a socket that its application has locked, and waits until it lets go.
//!
//! A segment that continues the last one that waits, under a header that says the same of all else, joins it: TCP sees both as one, as if receive
//! offload had merged them. Source: docs/models/tcp/receiver.md, "Backlog"; the kernel's counter `TCPBacklogCoalesce`.

use super::buffer::Buffer;
use std::collections::VecDeque;
use tcpscape_base::{Flags, Segment};

/// The segments that wait, in the order in which they came.
#[derive(Default)]
pub struct Backlog {
    /// Each with its buffer.
    waiting: VecDeque<(Segment, Buffer)>,
}

impl Backlog {
    /// Whether nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// A segment comes in a buffer; it joins the last one if it continues it, and costs `overhead` less then.
    pub(super) fn push(&mut self, segment: &Segment, buffer: Buffer, overhead: u32) {
        if let Some((last, held)) = self.waiting.back_mut().filter(|(last, _)| continues(last, segment)) {
            if let Some(cost) = held.cost_of(&buffer, overhead) {
                held.merge(&buffer, cost);
                last.len += segment.len;
                last.flags = last.flags.with(segment.flags);
                (last.ack, last.wnd) = (segment.ack, segment.wnd);
                return;
            }
        }
        self.waiting.push_back((*segment, buffer));
    }

    /// The next one, if any.
    pub(super) fn pop(&mut self) -> Option<(Segment, Buffer)> {
        self.waiting.pop_front()
    }
}

// Whether `next` brings the data that follow those of `last` and says the same of all else.
fn continues(last: &Segment, next: &Segment) -> bool {
    let either = last.flags.with(next.flags);
    let is_plain = either.0 & Flags::SYN.with(Flags::RST).0 == 0 && !last.flags.has(Flags::FIN);
    let says_the_same =
        (last.tsval, last.tsecr, last.ceb, last.ecn, last.flags.ace()) == (next.tsval, next.tsecr, next.ceb, next.ecn, next.flags.ace());
    is_plain && says_the_same && next.len > 0 && next.seq == last.end() && next.ack >= last.ack && last.sacks().eq(next.sacks())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(number: u64) -> Segment {
        Segment { seq: 1 + number * 1_448, len: 1_448, tsval: 7, ..Segment::default() }
    }
    fn lengths(segments: impl IntoIterator<Item = Segment>) -> Vec<u32> {
        let mut backlog = Backlog::default();
        segments.into_iter().for_each(|s| backlog.push(&s, Buffer::of(&s, s.len + 640).condensed(640, 138), 640));
        std::iter::from_fn(|| backlog.pop()).map(|(s, buffer)| if s.len == buffer.len { s.len } else { 0 }).collect()
    }

    /// docs/models/tcp/receiver.md, "Backlog".
    #[test]
    fn what_continues_the_last_segment_joins_it() {
        assert_eq!(lengths([data(0), data(1), data(2)]), [3 * 1_448]);
        assert_eq!(lengths([data(0), data(2)]), [1_448, 1_448], "one is missing");
        assert_eq!(lengths([data(0), Segment { tsval: 8, ..data(1) }]), [1_448, 1_448], "another timestamp");
        assert_eq!(lengths([Segment { flags: Flags::FIN, ..data(0) }, data(1)]), [1_448, 1_448], "nothing follows the last byte");
    }

    /// A short segment lies in its buffer's head: it joins only one whose head has room for it, and what follows joins it.
    #[test]
    fn a_short_segment_begins_a_buffer() {
        let short = Segment { len: 56, ..data(1) };
        let after = Segment { seq: short.end(), ..data(2) };
        assert_eq!(lengths([data(0), short, after]), [1_448, 56 + 1_448]);
        let second = Segment { seq: short.end(), len: 56, ..short };
        assert_eq!(lengths([data(0), short, second]), [1_448, 56 + 56]);
    }

    /// 17 page fragments are the most that a buffer of Linux holds; the 23rd segment crosses a block of 32 KiB, and so is two.
    #[test]
    fn a_buffer_is_full() {
        assert_eq!(lengths((0..40).map(data)), [17 * 1_448, 16 * 1_448, 7 * 1_448]);
    }
}
