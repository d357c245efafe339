//! CoDel's control law, which [`super::Codel`] applies to one queue and fq_codel to each of its flows.
//!
//! What it is: once the time that packets spend in the queue has stayed at or above `target` for an `interval`, a packet is dropped
//! (or marked) as it leaves, the next one `interval / √n` later, and so on until one has waited less than `target`.
//! Source: RFC 8289: estimator, setpoint and control loop (§3, §4), episodes of dropping (§5.5, §5.6).
//! How it differs: from RFC 8289 as the sentences under "The law" in docs/models/queues/codel.md say (its clock, its roots, its marks).
//! What it does not model: `ce_threshold_selector`.

use crate::discipline::{Aged, Books, Cause};
use serde::{Deserialize, Serialize};
use tcpscape_base::wire::ahead;
use tcpscape_base::{Duration, Time};

/// What CoDel holds to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Law {
    /// Sojourn time that is acceptable.
    pub target: Duration,
    /// How long it may be exceeded.
    pub interval: Duration,
    /// Mark instead of dropping where a packet allows it.
    pub ecn: bool,
    /// Mark every packet that waited longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ce_threshold: Option<Duration>,
}

impl Default for Law {
    /// The values of RFC 8289 §4 and tc-codel(8).
    fn default() -> Law {
        Law { target: Duration::millis(5), interval: Duration::millis(100), ecn: false, ce_threshold: None }
    }
}

/// The same numbers in units of CoDel's clock.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    target: u32,
    interval: u32,
    ce_threshold: Option<u32>,
    ecn: bool,
}

impl From<&Law> for Limits {
    fn from(l: &Law) -> Limits {
        let units = |d: Duration| Instant::of(Time(d.0)).0;
        Limits { target: units(l.target), interval: units(l.interval), ce_threshold: l.ce_threshold.map(units), ecn: l.ecn }
    }
}

/// The queue that a law is applied to.
pub trait Source<B> {
    /// Takes the head out.
    fn pull(&mut self) -> Option<Aged<B>>;
    /// Bytes in the whole queue discipline.
    fn backlog(&self) -> u64;
    /// Drops a packet.
    fn discard(&mut self, p: &Aged<B>);
    /// Counts a packet that was marked.
    fn marked(&mut self);
}

/// Packets that `pull` gives, with the books of their queue.
pub(crate) struct Draining<'a, 'b, P> {
    pub pull: P,
    pub books: &'a mut Books<'b>,
}

impl<B, P: FnMut() -> Option<Aged<B>>> Source<B> for Draining<'_, '_, P> {
    fn pull(&mut self) -> Option<Aged<B>> {
        let head = (self.pull)()?;
        self.books.leaves(&head.1);
        Some(head)
    }
    fn backlog(&self) -> u64 {
        self.books.inside().bytes
    }
    fn discard(&mut self, p: &Aged<B>) {
        self.books.drops(Cause::Aqm, &p.1);
    }
    fn marked(&mut self) {
        self.books.marked();
    }
}

/// One queue's state under the law.
#[derive(Clone, Copy, Debug, Default)]
pub struct Control {
    delay: StandingDelay,
    cadence: Cadence,
    phase: Phase,
    /// When the next signal (a drop or a mark) is due; outside an episode, when the one after its last would have been.
    due: Instant,
    /// Signals that the present or last episode began with.
    first_count: u32,
}

/// Whether the queue is in an episode of dropping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// The delay is acceptable, or not yet known to stand.
    #[default]
    Calm,
    /// Signals are sent when they are due.
    Dropping,
}

/// A drop, or a mark in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    /// The one that begins an episode.
    First,
    /// One of those that follow when they are due.
    Further,
}

impl Control {
    /// The next packet that may leave at `now`; those dropped on the way are handed back to the queue.
    pub fn next<B>(&mut self, now: Time, limits: &Limits, from: &mut impl Source<B>) -> Option<Aged<B>> {
        let t = Instant::of(now);
        let mut dropped = None;
        loop {
            let Some(mut packet) = from.pull() else {
                self.ran_empty(dropped);
                return None;
            };
            let sojourn = t.since(Instant::of(packet.0));
            let stands = self.delay.stands(t, sojourn, from.backlog(), limits);
            if let Some(signal) = self.judge(t, stands, dropped, limits.interval) {
                if !(limits.ecn && packet.1.mark()) {
                    from.discard(&packet);
                    dropped = Some(signal);
                    continue;
                }
                from.marked();
                if signal == Signal::Further {
                    self.schedule_next(limits.interval);
                }
            }
            if limits.ce_threshold.is_some_and(|most| ahead(most, sojourn) > 0) && packet.1.mark() {
                from.marked();
            }
            return Some(packet);
        }
    }

    /// Signals of the present or last episode.
    #[cfg(test)]
    pub fn signals(&self) -> u32 {
        self.cadence.count
    }
    /// Whether the last packet looked at had not waited too long.
    #[cfg(test)]
    pub(super) fn finds_no_delay(&self) -> bool {
        self.delay == StandingDelay::default()
    }

    /// Counts `n` packets that the queue's owner dropped itself (fq_codel when it is full) as drops of this episode.
    pub fn dropped_elsewhere(&mut self, n: u32) {
        self.cadence.count = self.cadence.count.wrapping_add(n);
    }

    /// The signal that the packet at the head is to carry, if any. `dropped` is what befell the packet before it in the same departure.
    fn judge(&mut self, t: Instant, stands: bool, dropped: Option<Signal>, interval: u32) -> Option<Signal> {
        if dropped == Some(Signal::First) {
            // One packet leaves between the first drop and the second, whatever its wait.
            return None;
        }
        if !stands {
            self.phase = Phase::Calm;
            return None;
        }
        if self.phase == Phase::Calm {
            self.begin(t, interval);
            return Some(Signal::First);
        }
        if dropped.is_some() {
            self.schedule_next(interval);
        }
        (!self.due.is_after(t)).then(|| {
            self.cadence.advance();
            Signal::Further
        })
    }

    /// Begins an episode at `t`. One that comes soon after the last resumes with as many signals as that one had added (RFC 8289 §5.5).
    fn begin(&mut self, t: Instant, interval: u32) {
        let added = self.cadence.count.wrapping_sub(self.first_count);
        let soon = ahead(t.since(self.due), MEMORY.wrapping_mul(interval)) > 0;
        if added > 1 && soon {
            self.cadence.resume(added);
        } else {
            self.cadence = Cadence::FIRST;
        }
        self.first_count = self.cadence.count;
        self.phase = Phase::Dropping;
        self.due = t;
        self.schedule_next(interval);
    }

    /// The control law: signals come `interval / √count` apart, counted from when the last was due.
    fn schedule_next(&mut self, interval: u32) {
        self.due = self.due.plus(self.cadence.root.share_of(interval));
    }

    fn ran_empty(&mut self, dropped: Option<Signal>) {
        self.delay.reset();
        if dropped != Some(Signal::First) {
            self.phase = Phase::Calm;
        }
    }
}

/// The estimator (RFC 8289 §3): whether every packet seen for an interval has waited at least the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct StandingDelay {
    /// When the wait will have been too long for an interval; `None` while it is not too long.
    ripe: Option<Instant>,
}

impl StandingDelay {
    /// Takes note of a head that has waited `sojourn`, with `backlog` B behind it.
    fn stands(&mut self, t: Instant, sojourn: u32, backlog: u64, limits: &Limits) -> bool {
        let acceptable = ahead(sojourn, limits.target) > 0 || backlog <= ENOUGH;
        self.ripe = if acceptable { None } else { Some(self.ripe.unwrap_or(t.plus(limits.interval))) };
        self.ripe.is_some_and(|ripe| t.is_after(ripe))
    }
    fn reset(&mut self) {
        self.ripe = None;
    }
}

/// How fast signals follow each other.
#[derive(Clone, Copy, Debug, Default)]
struct Cadence {
    /// Signals of this episode.
    count: u32,
    /// `1/√count`; 0 before the first episode.
    root: InverseRoot<16>,
}

impl Cadence {
    const FIRST: Cadence = Cadence { count: 1, root: InverseRoot::ONE };

    /// One more signal.
    fn advance(&mut self) {
        self.resume(self.count.wrapping_add(1));
    }
    /// `count` signals: the root takes one step towards it from where it is.
    fn resume(&mut self, count: u32) {
        *self = Cadence { count, root: self.root.refined(count) };
    }
}

/// An estimate of `1/√n` as a fraction of 2³², of which the upper `BITS` bits are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::queue) struct InverseRoot<const BITS: u32>(u32);

impl<const BITS: u32> InverseRoot<BITS> {
    /// `1/√1`, as near as the bits allow.
    pub const ONE: InverseRoot<BITS> = InverseRoot(u32::MAX << (u32::BITS - BITS));

    /// A step of Newton's iteration for `f(y) = 1/y² − n`: y·(3 − n·y²)/2. The bracket keeps 30 bits below one, which the last bits of the
    /// result show. It is an unsigned number: an estimate of more than √3 times the root, which Newton's step would turn negative, is thrown off.
    pub const fn refined(self, n: u32) -> InverseRoot<BITS> {
        let y = self.0 as u64;
        let square = (y * y) >> 32;
        let bracket = (3u64 << 32).wrapping_sub(n as u64 * square) >> 2;
        let next = (bracket.wrapping_mul(y) >> 31) as u32;
        InverseRoot(next & Self::ONE.0)
    }

    /// `interval / √n`, in the unit of the interval.
    pub fn share_of(self, interval: u32) -> u32 {
        ((u64::from(interval) * u64::from(self.0)) >> 32) as u32
    }

    /// The estimate as a fraction of 2³².
    #[cfg(test)]
    pub fn bits(self) -> u32 {
        self.0
    }
}

/// A time on CoDel's clock, which turns over every 4398 s; order on it is that of RFC 1982.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Instant(u32);

impl Instant {
    fn of(now: Time) -> Instant {
        Instant((now.0 >> UNIT_SHIFT) as u32)
    }
    fn since(self, earlier: Instant) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }
    fn plus(self, units: u32) -> Instant {
        Instant(self.0.wrapping_add(units))
    }
    fn is_after(self, other: Instant) -> bool {
        ahead(other.0, self.0) > 0
    }
}

/// CoDel's clock counts units of 2^10 ns (docs/models/queues/codel.md).
const UNIT_SHIFT: u32 = 10;
/// A backlog of at most a full frame is never too long (RFC 8289 §5.6), B.
const ENOUGH: u64 = 1514;
/// An episode that begins within so many intervals of when the last one's next signal was due resumes it (RFC 8289 §5.5).
const MEMORY: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use tcpscape_base::{Ecn, Packet};

    #[test]
    fn one_step_of_newton_towards_the_inverse_root_of_two_ends_at_a_half() {
        // y = 1: 1 · (3 − 2·1²) / 2 = 1/2; then 0.5 · (3 − 2·0.25) / 2 = 0.625; then 0.625 · (3 − 2·0.390625) / 2 = 0.693359375.
        let mut y = InverseRoot::<32>::ONE;
        for exact in [0.5, 0.625, 0.693_359_375] {
            y = y.refined(2);
            assert!((f64::from(y.bits()) / 2f64.powi(32) - exact).abs() < 1e-8, "{exact} {y:?}");
        }
    }

    #[test]
    fn sixteen_bits_are_those_of_the_longer_estimate() {
        let (long, short) = (InverseRoot::<32>::ONE.refined(3), InverseRoot::<16>(u32::MAX).refined(3));
        assert_eq!(short.bits(), long.bits() & 0xffff_0000);
        assert_eq!(InverseRoot::<16>::ONE.bits(), 0xffff_0000);
    }

    #[test]
    fn one_step_a_signal_follows_the_inverse_square_root() {
        let mut cadence = Cadence::FIRST;
        (1..200).for_each(|_| cadence.advance());
        // 1/√200 = 0.070711, times 65536: 4634
        assert_eq!(cadence.count, 200);
        assert!((4_620..=4_640).contains(&(cadence.root.bits() >> 16)), "{:?}", cadence.root);
    }

    #[test]
    fn the_second_signal_comes_half_an_interval_later() {
        let limits = Limits::from(&Law::default());
        // 5 ms and 100 ms in units of 1024 ns
        assert_eq!((limits.target, limits.interval), (4_882, 97_656));
        let mut control = Control::default();
        control.begin(Instant(0), limits.interval);
        // 65535/65536 of 97656
        assert_eq!(control.due, Instant(97_654));
        assert_eq!(control.judge(Instant(97_654), true, None, limits.interval), Some(Signal::Further));
        control.schedule_next(limits.interval);
        // One step from 65535/65536 towards 1/√2 ends at 32769/65536: 97656 · 0.500015 = 48829.
        assert_eq!(control.due.since(Instant(97_654)), 48_829);
    }

    #[test]
    fn a_wait_stands_once_it_has_been_too_long_for_more_than_an_interval() {
        let (limits, mut delay) = (Limits { target: 5, interval: 100, ce_threshold: None, ecn: false }, StandingDelay::default());
        assert!(!delay.stands(Instant(0), 5, 3_000, &limits), "from here on");
        assert!(!delay.stands(Instant(100), 5, 3_000, &limits) && delay.stands(Instant(101), 5, 3_000, &limits));
        assert!(!delay.stands(Instant(102), 4, 3_000, &limits), "one packet below the target ends it");
        assert!(!delay.stands(Instant(103), 5, 3_000, &limits));
        assert!(!delay.stands(Instant(300), 50, 1_514, &limits), "a frame behind it is no queue");
        assert_eq!(delay, StandingDelay::default());
    }

    #[test]
    fn an_episode_resumes_only_soon_after_the_last() {
        // RFC 8289 §5.5: seven signals, one at the beginning: the next episode begins with six, or after 16 intervals with one.
        for (pause, count) in [(1_599, 6), (1_600, 1)] {
            let mut control = Control { cadence: Cadence { count: 7, ..Cadence::FIRST }, first_count: 1, ..Control::default() };
            control.begin(Instant(pause), 100);
            assert_eq!((control.cadence.count, control.first_count), (count, count), "{pause}");
        }
    }

    /// A plain list; what is dropped and marked, by number.
    #[derive(Default)]
    struct List {
        queue: VecDeque<Aged<u32>>,
        dropped: Vec<u32>,
        marks: u32,
    }
    impl Source<u32> for List {
        fn pull(&mut self) -> Option<Aged<u32>> {
            self.queue.pop_front()
        }
        fn backlog(&self) -> u64 {
            self.queue.len() as u64 * 1_514
        }
        fn discard(&mut self, p: &Aged<u32>) {
            self.dropped.push(p.1.body);
        }
        fn marked(&mut self) {
            self.marks += 1;
        }
    }
    fn full(body: u32) -> Aged<u32> {
        (Time(0), Packet { size: 1514, ecn: Ecn::Ect0, body, ..Packet::default() })
    }

    #[test]
    fn one_departure_drops_all_that_are_due_and_marks_one() {
        // 500 ms behind its schedule, one interval or less apart: several drops at once, but only one mark.
        let late = |ecn| {
            let limits = Limits::from(&Law { ecn, ..Law::default() });
            let mut control = Control { phase: Phase::Dropping, cadence: Cadence::FIRST, ..Control::default() };
            control.delay.ripe = Some(Instant(0));
            let mut list = List { queue: (0..30).map(full).collect(), ..List::default() };
            let left = control.next(Time(500_000_000), &limits, &mut list);
            (left.map(|p| p.1.body), list.dropped, list.marks)
        };
        // Spaced 50, 56.25, 48.8, 44.2, 40.4, 37.5, 35.2, 33.2, 31.5, 30.1, 28.8, 27.7, 26.7 ms by one step of Newton each: from 0 ms on,
        // the fourteenth is due at 490.2 ms and the fifteenth at 516.
        let (left, dropped, marks) = late(false);
        assert_eq!((left, marks), (Some(dropped.len() as u32), 0));
        assert_eq!(dropped.len(), 14, "{dropped:?}");
        assert_eq!(late(true), (Some(0), vec![], 1));
    }

    #[test]
    fn a_packet_leaves_between_the_first_drop_and_the_second() {
        // An interval of 0 makes every packet due; even so the one behind the first drop passes.
        let limits = Limits { target: 1, interval: 0, ce_threshold: None, ecn: false };
        let mut control = Control::default();
        control.delay.ripe = Some(Instant(0));
        let mut list = List { queue: (0..9).map(full).collect(), ..List::default() };
        let left = control.next(Time(500_000_000), &limits, &mut list);
        assert_eq!((left.map(|p| p.1.body), list.dropped), (Some(1), vec![0]));
    }
}
