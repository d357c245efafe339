//! When an ACK is sent: at once, delayed, or compressed with others.
//!
//! Source: RFC 9293 §3.8.6.3 and RFC 5681 §4.2 (delayed ACKs: every second segment, at once around gaps); quick ACKs, the length of the
//! delay and SACK compression are observed: docs/models/tcp/receiver.md.

mod compression;
mod delayed;
mod segment_size;

pub(super) use compression::Limits;

use crate::Jiffies;
use compression::Compression;
use delayed::{DelayedAck, QuickAcks, Rhythm, MOST_QUICK};
use segment_size::SegmentSize;
use tcpscape_base::{Kernel, Segment, Time};

/// What becomes of the ACK that is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckDecision {
    /// It goes now.
    Now,
    /// The delayed-ACK timer, or a later segment, sends it.
    Delayed,
    /// SACK compression holds it back.
    Compressed,
}

/// What a segment with data did, as far as acknowledging it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// In order. `completes`: it filled the last gap or ended the stream (RFC 5681 §4.2: at once).
    InOrder {
        /// Nothing is missing any more, or nothing more will come.
        completes: bool,
    },
    /// Beyond a gap. `acknowledged`: an ACK that was held back has gone out since it came, and stands for it too.
    Ahead {
        /// It is acknowledged already.
        acknowledged: bool,
    },
    /// Nothing of it was new.
    Old,
    /// The window does not reach it.
    Outside,
    /// There was no memory for it.
    NoMemory,
}

/// What the decision depends on besides what the component knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Situation {
    /// More than a segment is unacknowledged, and the reader has taken all, or the window is no smaller for what it has not.
    pub is_second: bool,
    /// Data wait beyond a gap.
    pub has_gap: bool,
    /// The peer permits SACK: without it, each segment beyond a gap is acknowledged at once.
    pub sack: bool,
    /// The next byte expected.
    pub next: u64,
    /// The receiver's estimate of the round-trip time, in 1/8 µs.
    pub round_trip: u32,
    /// What bounds SACK compression.
    pub limits: Limits,
}

/// A timer's event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// A delayed ACK.
    Delayed,
    /// Compressed ACKs.
    Compressed,
}

/// What the next ACK has to say.
#[derive(Clone, Copy, Debug, Default)]
struct Owed {
    /// There is something to acknowledge.
    ack: bool,
    /// It must go at once.
    at_once: bool,
    /// A segment in order found no memory: it closes the window (6.12).
    closes_window: bool,
    /// The end of a write of the sender's is among what is to be acknowledged.
    write_end: bool,
}

/// Decides when ACKs are sent.
pub(super) struct AckPolicy {
    owed: Owed,
    quick: QuickAcks,
    segment: SegmentSize,
    compression: Compression,
    delayed: DelayedAck,
    /// Round-trip time of the handshake in 1/8 µs, 0 if it is not known.
    round_trip: u32,
}

impl AckPolicy {
    /// Nothing to acknowledge.
    pub fn new(kernel: &Kernel, jiffies: &Jiffies) -> AckPolicy {
        AckPolicy {
            owed: Owed::default(),
            quick: QuickAcks::default(),
            segment: SegmentSize::default(),
            compression: Compression::default(),
            delayed: DelayedAck::new(kernel, jiffies),
            round_trip: 0,
        }
    }
    /// The connection is open; `round_trip_us` is that of the SYN-ACK, if it was sent once.
    pub fn establish(&mut self, now: Time, jiffies: &Jiffies, mss: u32, window: u32, round_trip_us: Option<u64>) {
        self.segment = SegmentSize::new(mss, window);
        self.delayed.establish(now, jiffies, round_trip_us);
        self.round_trip = round_trip_us.map_or(0, |us| (us.max(1) << 3).min(u64::from(u32::MAX)) as u32);
    }

    /// The size of the sender's segments, as far as it is known.
    #[inline]
    pub fn segment(&self) -> u32 {
        self.segment.estimate()
    }
    /// Whether something is to be acknowledged.
    #[inline]
    pub fn is_owed(&self) -> bool {
        self.owed.ack
    }
    /// Whether an ACK is being delayed.
    #[inline]
    pub fn is_delayed(&self) -> bool {
        self.delayed.is_waiting()
    }
    /// Whether the next ACK closes the window.
    #[inline]
    pub fn closes_window(&self) -> bool {
        self.owed.closes_window
    }
    /// Whether data that the sender wrote to the end are unacknowledged: a read that empties the buffer acknowledges them.
    #[inline]
    pub fn has_write_end(&self) -> bool {
        self.owed.write_end
    }

    // ---- what comes in ---------------------------------------------------------------------------------------------

    /// A segment shows the sender's segment size in `len` bytes, no more than `most`, and where its writes end.
    #[inline]
    pub fn measure(&mut self, s: &Segment, len: u32, most: u32) {
        self.owed.write_end |= self.segment.read(s, len, most);
    }
    /// Data in order came while `window` was offered: the first of all and those after a long pause ask for quick ACKs.
    #[inline]
    pub fn on_data(&mut self, now: Time, jiffies: &Jiffies, window: u32) {
        if self.delayed.on_data(now, jiffies) != Rhythm::Steady {
            self.quick.raise(window, self.segment(), MOST_QUICK);
        }
    }
    /// A segment with data has been dealt with while `window` was offered.
    #[inline]
    pub fn on_arrival(&mut self, arrival: Arrival, jiffies: &Jiffies, window: u32) {
        match arrival {
            Arrival::InOrder { completes } => {
                self.owed.ack = true;
                self.owed.at_once |= completes;
            }
            Arrival::Ahead { acknowledged } => self.owed.ack |= !acknowledged,
            Arrival::Old | Arrival::Outside => {
                self.on_trouble(jiffies, window);
                self.owed.ack = true;
            }
            Arrival::NoMemory => {}
        }
    }
    /// A segment came that shows that something is wrong: ACKs should not be late.
    pub fn on_trouble(&mut self, jiffies: &Jiffies, window: u32) {
        self.hurry(jiffies, window, MOST_QUICK);
    }
    /// Acknowledges up to `most` segments one by one.
    pub fn hurry(&mut self, jiffies: &Jiffies, window: u32, most: u32) {
        self.quick.raise(window, self.segment(), most);
        self.delayed.reset(jiffies);
    }
    /// The next decision is to send at once.
    #[inline]
    pub fn send_at_once(&mut self) {
        self.owed.at_once = true;
    }
    /// A segment in order found no memory: an ACK that closes the window goes at once.
    pub fn close_window(&mut self) {
        self.owed = Owed { ack: true, at_once: true, closes_window: true, ..self.owed };
    }
    /// The window has grown.
    #[inline]
    pub fn on_growth(&mut self) {
        self.quick.on_growth();
    }
    /// The buffer fills.
    #[inline]
    pub fn end_quick(&mut self) {
        self.quick.end();
    }

    // ---- decisions -------------------------------------------------------------------------------------------------

    /// What becomes of the ACK that is owed. The timer that it waits for is armed.
    #[inline]
    pub fn decide(&mut self, now: Time, jiffies: &Jiffies, situation: &Situation) -> AckDecision {
        if situation.is_second || self.quick.any() || self.owed.at_once {
            AckDecision::Now
        } else if !situation.has_gap {
            self.delay(now, jiffies)
        } else if situation.sack {
            self.compress(now, situation)
        } else {
            AckDecision::Now
        }
    }
    #[inline]
    fn delay(&mut self, now: Time, jiffies: &Jiffies) -> AckDecision {
        let ends_write = self.has_write_end();
        if self.delayed.wait(now, jiffies, ends_write) {
            AckDecision::Delayed
        } else {
            AckDecision::Now
        }
    }
    fn compress(&mut self, now: Time, situation: &Situation) -> AckDecision {
        if !self.compression.holds(situation.next, situation.limits) {
            return AckDecision::Now;
        }
        if !self.compression.is_active() {
            self.delayed.forget_fired(now);
        }
        let handshake = if self.round_trip > 0 { self.round_trip } else { u32::MAX };
        self.compression.hold(now, situation.limits, situation.round_trip.min(handshake));
        AckDecision::Compressed
    }
    /// When the last of the ACKs that are held back was: the last segment's arrival.
    pub fn held_last(&self) -> Time {
        self.compression.last()
    }
    /// Whether ACKs are held back; if so, one of them is to be sent now, and the others are saved.
    pub fn release_compressed(&mut self) -> bool {
        let active = self.compression.is_active();
        if active {
            self.compression.release();
        }
        active
    }

    /// An ACK left that tells of everything. Returns how many that were held back it stands for.
    #[inline]
    pub fn on_sent(&mut self, jiffies: &Jiffies) -> u32 {
        if self.owed.ack && self.quick.spend() {
            self.delayed.reset(jiffies);
        }
        self.owed = Owed::default();
        self.delayed.cancel();
        self.compression.end()
    }
    /// An ACK left that tells of a part: the rest is still owed, but nothing is held back.
    pub fn on_part_sent(&mut self) {
        self.compression.end();
    }

    // ---- timers ----------------------------------------------------------------------------------------------------

    /// When a timer is due next. A delayed-ACK timer with nothing to do is not mentioned.
    #[inline]
    pub fn next_event(&self) -> Option<Time> {
        let until = self.compression.until();
        match self.delayed.fires() {
            Some(fires) if self.delayed.is_waiting() || self.compression.is_active() => Some(until.map_or(fires, |until| until.min(fires))),
            _ => until,
        }
    }
    /// What a timer asks for at `now`. A delayed-ACK timer that fires while ACKs are held back ends compression.
    pub fn on_timer(&mut self, now: Time, jiffies: &Jiffies) -> Option<Due> {
        if self.compression.until().is_some_and(|until| until <= now) {
            return Some(Due::Compressed);
        }
        if !self.delayed.fire(now) {
            return None;
        }
        if self.compression.is_active() {
            return Some(Due::Compressed);
        }
        if !self.delayed.expire(now, jiffies) || !self.owed.ack {
            return None;
        }
        self.delayed.back_off();
        Some(Due::Delayed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpscape_base::Duration;

    fn ms(n: u64) -> Time {
        Time(n * 1_000_000)
    }
    /// A policy of 6.1 whose quick ACKs are used up, at 1,000 ticks a second.
    fn settled() -> (Jiffies, AckPolicy) {
        let kernel = Kernel { hz: 1_000, ..Kernel::V6_1 };
        let j = Jiffies::new(kernel.hz, Duration::ZERO);
        let mut a = AckPolicy::new(&kernel, &j);
        a.establish(ms(0), &j, 1_448, 65_535, Some(50_000));
        a.on_data(ms(0), &j, 65_535);
        a.end_quick();
        (j, a)
    }
    const GAP: Situation = Situation {
        is_second: false,
        has_gap: true,
        sack: true,
        next: 1,
        round_trip: 400_000,
        limits: Limits { acks: 44, delay_ns: 1_000_000, percent: 5, slack_ns: 100_000 },
    };
    fn in_order(is_second: bool) -> Situation {
        Situation { is_second, has_gap: false, ..GAP }
    }

    /// RFC 5681 §4.2: an ACK for at least every second full-sized segment.
    #[test]
    fn every_second_segment() {
        let (j, mut a) = settled();
        a.on_arrival(Arrival::InOrder { completes: false }, &j, 65_535);
        assert_eq!(a.decide(ms(1), &j, &in_order(false)), AckDecision::Delayed);
        assert_eq!(a.decide(ms(2), &j, &in_order(true)), AckDecision::Now);
        a.on_sent(&j);
        assert!(!a.is_owed() && !a.is_delayed());
    }

    /// RFC 5681 §4.2: at once when a gap is filled.
    #[test]
    fn a_filled_gap_is_acknowledged_at_once() {
        let (j, mut a) = settled();
        a.on_arrival(Arrival::InOrder { completes: true }, &j, 65_535);
        assert_eq!(a.decide(ms(1), &j, &in_order(false)), AckDecision::Now);
    }

    #[test]
    fn beyond_a_gap_three_go_at_once_and_without_sack_all_do() {
        let (j, mut a) = settled();
        let decisions: Vec<AckDecision> = (0..5).map(|_| a.decide(ms(1), &j, &GAP)).collect();
        assert_eq!(decisions[..3], [AckDecision::Now; 3]);
        assert_eq!(decisions[3..], [AckDecision::Compressed; 2]);
        assert_eq!(a.next_event(), Some(Time(2_100_000)));
        assert_eq!(a.on_timer(Time(2_100_000), &j), Some(Due::Compressed));
        assert!(a.release_compressed());
        assert_eq!((a.on_sent(&j), a.next_event()), (1, None));
        let (j, mut a) = settled();
        for _ in 0..9 {
            assert_eq!(a.decide(ms(1), &j, &Situation { sack: false, ..GAP }), AckDecision::Now);
        }
    }

    #[test]
    fn trouble_is_answered_by_16_quick_acks() {
        let (j, mut a) = settled();
        a.on_arrival(Arrival::Old, &j, 65_535);
        for _ in 0..16 {
            assert_eq!(a.decide(ms(1), &j, &in_order(false)), AckDecision::Now);
            a.on_sent(&j);
            a.on_arrival(Arrival::InOrder { completes: false }, &j, 65_535);
        }
        assert_eq!(a.decide(ms(1), &j, &in_order(false)), AckDecision::Delayed);
    }

    #[test]
    fn a_short_segment_is_the_end_of_a_write_until_it_is_acknowledged() {
        let (j, mut a) = settled();
        let ends = [1_448, 70, 1_448].map(|len| {
            a.measure(&Segment { len, ..Segment::default() }, len, 1_448);
            a.has_write_end()
        });
        a.on_sent(&j);
        assert_eq!((ends, a.has_write_end()), ([false, true, true], false));
    }
}
