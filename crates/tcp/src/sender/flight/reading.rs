//! Applying one ACK to the segments in flight, and gathering what their delivery tells; its SACK option, and the duplicate that the first block may
//! report.
//!
//! Source: RFC 2018 §3 and §5 (SACK at the sender), RFC 2883 §4 and §5 (DSACK), RFC 8985 §6.2 steps 1 and 2, RFC 6298 §3 (Karn's rule),
//! draft-cheng-iccrg-delivery-rate-estimation §3.3 (which packet gives the sample). A segment that an ACK delivers passes once, either when
//! it is SACKed or when it is acknowledged; only then does it tell anything. Not modelled: blocks of ancient data (older than a window).

use super::segment::{Marks, Sent, Transmission};
use super::Flight;
use crate::Jiffies;
use tcpscape_base::{SackBlock, Segment, Time, MAX_SACK_BLOCKS};

/// What reading an ACK needs to know of the connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    /// Now, µs.
    pub now_us: u64,
    /// The clock of timestamps.
    pub jiffies: Jiffies,
    /// Smallest RTT of the connection before this ACK, µs.
    pub min_rtt_us: u32,
    /// Timestamp that the ACK echoes, 0 for none.
    pub echo: u32,
    /// The highest sequence number sent when the present phase of recovery began.
    pub recovery_point: u64,
    /// The left edge when the reduction began that could be undone.
    pub undo_from: Option<u64>,
}

/// The transmission that gives an ACK's delivery-rate sample: the last one sent of those that it delivers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampled {
    /// The transmission.
    pub sent: Transmission,
    /// Packets delivered when it was sent.
    pub delivered_then: u32,
    /// When they were, µs.
    pub delivered_then_us: u64,
    /// Time from the packet that was sampled last when it was sent to its own transmission, µs.
    pub send_interval_us: u64,
    /// Packets in flight just after it was sent.
    pub in_flight_then: u32,
    /// Packets marked lost when it was sent.
    pub lost_then: u32,
    /// The application had nothing more to send.
    pub app_limited: bool,
    /// It was sent more than once.
    pub resent: bool,
}

/// The first and the last of some transmission times, µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// Of the segment met first.
    pub first_us: u64,
    /// Of the segment met last.
    pub last_us: u64,
}

/// The most recent transmission known to be delivered (RFC 8985 §6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Newest {
    /// The transmission.
    pub sent: Transmission,
    /// RTT of the segment met last, µs.
    pub rtt_us: u32,
}

/// What the segments that one ACK delivers tell.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delivery {
    /// Segments taken off because they are cumulatively acknowledged.
    pub acked: u32,
    /// Of those, segments that had not been SACKed before.
    pub acked_first: u32,
    /// Segments SACKed for the first time.
    pub sacked: u32,
    /// Copies of a DSACK that the reduction under way had caused.
    pub needless: u32,
    /// One of the segments acknowledged had been sent again: no RTT can be measured by its time (Karn).
    pub acked_resent: bool,
    /// A segment that was never sent again, from before the recovery point, was delivered.
    pub original: bool,
    /// A segment was acknowledged in part.
    pub partial: bool,
    /// Transmission times of the segments acknowledged that were neither SACKed nor sent again.
    pub acked_times: Option<Span>,
    /// Transmission times of the segments newly SACKed that were not sent again.
    pub sacked_times: Option<Span>,
    /// Lowest segment newly SACKed below another that was SACKed before: it was overtaken.
    pub overtaken_sack: Option<u64>,
    /// Lowest original acknowledged without having been SACKed.
    pub lowest_acked: Option<u64>,
    /// For RACK.
    pub newest: Option<Newest>,
    /// For the delivery rate.
    pub sampled: Option<Sampled>,
}

/// An ACK being read.
pub(crate) struct Reading<'a> {
    flight: &'a mut Flight,
    delivery: &'a mut Delivery,
    context: Context,
}

impl<'a> Reading<'a> {
    /// Reads an ACK with the number `ack`, which is now the left edge, and adds to what it delivery. SACK blocks come first, then the number.
    #[inline]
    pub fn of(flight: &'a mut Flight, delivery: &'a mut Delivery, context: Context, ack: u64) -> Reading<'a> {
        flight.una = ack;
        Reading { flight, delivery, context }
    }

    /// The blocks of an option, in order: whole segments inside them have arrived.
    pub fn sack(&mut self, blocks: &[SackBlock]) {
        let mut told = [SackBlock::default(); MAX_SACK_BLOCKS];
        told[..blocks.len()].copy_from_slice(blocks);
        let before = std::mem::replace(&mut self.flight.told, told);
        blocks.iter().filter(|block| !before.contains(block)).for_each(|&block| self.sack_block(block));
    }

    fn sack_block(&mut self, (start, end): SackBlock) {
        let mut id = self.flight.board.lower_bound(start);
        while self.flight.board.contains(id) {
            id = self.flight.board.next_unsacked(id);
            if !self.flight.board.contains(id) || self.flight.get(id).end() > end {
                return;
            }
            self.sack_segment(id);
            id = id.wrapping_add(1);
        }
    }

    /// A DSACK block; the left edge was `prior_una`. What it covers has arrived twice, so that no copy of it is in flight any more.
    pub fn duplicate(&mut self, d: &Duplicate, prior_una: u64) {
        if d.end > prior_una {
            return self.duplicate_in_flight(d);
        }
        if self.is_after_reduction(d.end) {
            self.delivery.needless += d.segments;
        }
    }

    fn duplicate_in_flight(&mut self, d: &Duplicate) {
        let mut id = self.flight.board.lower_bound(d.start);
        while self.flight.board.contains(id) && self.flight.get(id).end() <= d.end {
            let s = *self.flight.get(id);
            if s.was_resent() {
                self.delivery.needless += u32::from(self.is_after_reduction(s.end()));
                if s.is(Marks::SACKED) {
                    self.overtaken(s.seq);
                }
            }
            if !s.is(Marks::SACKED) && s.end() > self.flight.una {
                self.sack_segment(id);
            }
            if self.flight.get(id).is(Marks::COPY_OUT) {
                self.flight.board.get_mut(id).marks.clear(Marks::COPY_OUT);
                self.flight.copies_out -= 1;
            }
            id = id.wrapping_add(1);
        }
    }

    /// Whether data that end there were sent again because of the reduction that could be undone.
    fn is_after_reduction(&self, end: u64) -> bool {
        self.context.undo_from.is_some_and(|from| end > from)
    }

    fn overtaken(&mut self, seq: u64) {
        self.delivery.overtaken_sack = Some(self.delivery.overtaken_sack.map_or(seq, |low| low.min(seq)));
    }

    /// A segment has arrived out of order.
    fn sack_segment(&mut self, id: u32) {
        let s = *self.flight.get(id);
        self.update_newest(&s);
        if !s.was_resent() {
            if s.seq < self.flight.sacked_end() {
                self.overtaken(s.seq);
            }
            self.delivery.original |= s.end() <= self.context.recovery_point;
            extend(&mut self.delivery.sacked_times, s.sent_us());
        }
        if s.is(Marks::LOST) {
            // It was not, and a copy that was sent for it is not waited for.
            self.flight.lost -= 1;
            self.flight.copies_out -= u32::from(s.is(Marks::COPY_OUT));
            self.flight.board.get_mut(id).marks.clear(Marks::LOST | Marks::COPY_OUT);
        }
        self.delivery.sacked += 1;
        self.flight.board.set_sacked(id);
        self.flight.cut_out_sacked(id);
        self.flight.sacked_end = self.flight.sacked_end().max(s.end());
        self.flight.sacked += 1;
        self.sample(&s);
        self.flight.board.get_mut(id).delivered_then_us = 0;
    }

    /// Everything below the left edge has arrived.
    #[inline]
    pub fn acknowledge(&mut self) {
        let ack = self.flight.una;
        while let Some(&s) = self.flight.front() {
            if s.end() > ack {
                if s.seq < ack {
                    self.flight.board.trim_front((ack - s.seq) as u32);
                    self.delivery.partial = true;
                }
                return;
            }
            self.acknowledge_segment(&s);
            self.flight.board.pop_front();
            // What is left of a buffer goes on with the next segment.
            if !self.flight.board.begin_at_front() {
                self.flight.buffers -= 1;
            }
        }
    }

    #[inline]
    fn acknowledge_segment(&mut self, s: &Sent) {
        let sacked = s.is(Marks::SACKED);
        if s.was_resent() {
            self.delivery.acked_resent = true;
        } else if !sacked {
            extend(&mut self.delivery.acked_times, s.sent_us());
            self.delivery.lowest_acked = Some(self.delivery.lowest_acked.map_or(s.seq, |low| low.min(s.seq)));
            self.delivery.original |= s.end() <= self.context.recovery_point;
        }
        if !sacked {
            self.delivery.acked_first += 1;
            // The echo tells an original that was only late: the copy's time says nothing (RFC 8985 §6.2 step 2).
            let copy_unneeded = s.was_resent() && echoes_before(self.context.echo, self.context.jiffies.stamp(Time(s.sent_ns)));
            if !copy_unneeded {
                self.update_newest(s);
            }
        }
        self.delivery.acked += 1;
        self.flight.sacked -= u32::from(sacked);
        self.flight.copies_out -= u32::from(s.is(Marks::COPY_OUT));
        self.flight.lost -= u32::from(s.is(Marks::LOST));
        self.sample(s);
    }

    /// RFC 8985 §6.2 steps 1 and 2: a copy that seems to have returned faster than the path allows was not what arrived.
    #[inline]
    fn update_newest(&mut self, s: &Sent) {
        let rtt_us = self.context.now_us.saturating_sub(s.sent_us()) as u32;
        if rtt_us < self.context.min_rtt_us && s.was_resent() {
            return;
        }
        let sent = self.delivery.newest.map_or(s.transmission(), |n| n.sent.max(s.transmission()));
        self.delivery.newest = Some(Newest { sent, rtt_us });
    }

    /// The last one sent of the packets delivered gives the rate sample; each packet is asked once.
    #[inline]
    fn sample(&mut self, s: &Sent) {
        let later = self.delivery.sampled.map_or(true, |l| s.transmission() > l.sent);
        if s.delivered_then_us == 0 || !later {
            return;
        }
        self.delivery.sampled = Some(Sampled {
            sent: s.transmission(),
            delivered_then: s.delivered_then,
            delivered_then_us: s.delivered_then_us,
            send_interval_us: s.sent_us().saturating_sub(s.first_sent_then_us),
            in_flight_then: s.in_flight_then(),
            lost_then: s.lost_then,
            app_limited: s.is(Marks::APP_LIMITED),
            resent: s.was_resent(),
        });
    }
}

fn extend(span: &mut Option<Span>, sent_us: u64) {
    *span = Some(Span { first_us: span.map_or(sent_us, |s| s.first_us), last_us: sent_us });
}

/// Whether the timestamp that an ACK echoes is older than `when` (RFC 7323 §5.2; the clock wraps); 0 is no echo.
#[inline]
pub(crate) fn echoes_before(echo: u32, when: u32) -> bool {
    echo != 0 && (echo.wrapping_sub(when) as i32) < 0
}

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
    use super::super::Departure;
    use super::*;

    const MSS: u32 = 1000;

    fn departure(sent_ns: u64) -> Departure {
        Departure { sent_ns, delivered: 1, lost: 0, delivered_us: 1, first_sent_us: 1, app_limited: false }
    }

    /// Segments 0 to n−1, sent 1 ms apart from 1 ms on.
    fn flight(n: u64) -> Flight {
        let mut f = Flight::new();
        for i in 0..n {
            f.send(MSS, MSS, false, &departure((i + 1) * 1_000_000));
        }
        f
    }

    fn seq(n: u64) -> u64 {
        1 + n * u64::from(MSS)
    }

    /// Reads an ACK up to `ack`; `act` is its SACK option.
    fn read(f: &mut Flight, now_us: u64, ack: u64, act: impl FnOnce(&mut Reading)) -> Delivery {
        let context = Context {
            now_us,
            jiffies: Jiffies::new(250, tcpscape_base::Duration::ZERO),
            min_rtt_us: 10_000,
            echo: 0,
            recovery_point: seq(2),
            undo_from: None,
        };
        let mut delivery = Delivery::default();
        let mut r = Reading::of(f, &mut delivery, context, ack);
        act(&mut r);
        r.acknowledge();
        f.check(0);
        delivery
    }

    /// RFC 2018 §5: the scoreboard remembers what was SACKed, and a cumulative ACK takes it off.
    #[test]
    fn sacked_segments_leave_the_pipe_and_are_counted_once() {
        let mut f = flight(5);
        let delivery = read(&mut f, 50_000, 1, |r| r.sack(&[(seq(1), seq(3))]));
        assert_eq!((delivery.sacked, f.sacked(), f.in_flight(), f.sacked_end()), (2, 2, 3, seq(3)));
        assert_eq!(delivery.sacked_times, Some(Span { first_us: 2_000, last_us: 3_000 }));
        let delivery = read(&mut f, 51_000, 1, |r| r.sack(&[(seq(1), seq(4))]));
        assert_eq!((delivery.sacked, f.sacked()), (1, 3));
        let delivery = read(&mut f, 52_000, seq(5), |_| {});
        assert_eq!((delivery.acked, delivery.acked_first, f.out(), f.sacked(), f.buffers()), (5, 2, 0, 0, 0));
    }

    /// The last transmission delivered is the one that counts, the RTT is that of the segment met last.
    #[test]
    fn rack_learns_of_the_newest_transmission() {
        let mut f = flight(4);
        let delivery = read(&mut f, 50_000, seq(1), |r| r.sack(&[(seq(3), seq(4))]));
        assert_eq!(delivery.newest, Some(Newest { sent: Transmission { us: 4_000, end: seq(4) }, rtt_us: 49_000 }));
    }

    /// RFC 8985 §6.2 step 2: a copy sent 5 ms ago on a path of 10 ms cannot be what was delivered.
    #[test]
    fn a_copy_that_returns_too_fast_is_not_believed() {
        let mut f = flight(2);
        f.mark_lost(0);
        f.send_again(0, 1, &departure(45_000_000));
        f.count_copies(0, 1);
        let delivery = read(&mut f, 50_000, seq(1), |_| {});
        assert!(delivery.newest.is_none() && delivery.acked_resent && delivery.acked_times.is_none());
    }

    /// A segment below the highest SACK that arrives for the first time was overtaken; a copy proves nothing.
    #[test]
    fn originals_below_the_highest_sack_were_overtaken() {
        let mut f = flight(6);
        read(&mut f, 50_000, 1, |r| r.sack(&[(seq(4), seq(5))]));
        assert_eq!(read(&mut f, 51_000, 1, |r| r.sack(&[(seq(2), seq(3))])).overtaken_sack, Some(seq(2)));
        f.mark_lost(1);
        f.send_again(1, 1, &departure(52_000_000));
        f.count_copies(1, 1);
        assert_eq!(read(&mut f, 70_000, 1, |r| r.sack(&[(seq(1), seq(2))])).overtaken_sack, None);
    }

    /// RFC 2883: a duplicate takes its copy out of the pipe.
    #[test]
    fn a_duplicate_ends_its_copy() {
        let mut f = flight(4);
        f.mark_lost(1);
        f.send_again(1, 1, &departure(40_000_000));
        f.count_copies(1, 1);
        read(&mut f, 60_000, 1, |r| r.sack(&[(seq(1), seq(2))]));
        assert_eq!((f.copies_out(), f.lost()), (0, 0));
        f.mark_lost(2);
        f.send_again(2, 1, &departure(61_000_000));
        f.count_copies(2, 1);
        assert_eq!(f.in_flight(), 3);
        read(&mut f, 90_000, 1, |r| r.duplicate(&Duplicate { start: seq(2), end: seq(3), segments: 1 }, 1));
        assert_eq!((f.copies_out(), f.sacked(), f.in_flight()), (0, 2, 2));
    }

    #[test]
    fn an_ack_inside_a_segment_shortens_it() {
        let mut f = flight(2);
        let delivery = read(&mut f, 50_000, seq(0) + 400, |_| {});
        assert!(delivery.partial && delivery.acked == 0);
        assert_eq!((f.front().unwrap().len, f.nxt(), f.una()), (600, 2001, 401));
    }

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
