//! The delayed ACK: how long it waits, and its timer; and quick ACKs: segments that are acknowledged one by one, while the sender's window is small or
//! something is wrong.
//!
//! Source: RFC 9293 §3.8.6.3 and RFC 5681 §4.2 (less than 500 ms, and an ACK for every segment is allowed), RFC 3465 §3 (why a slow start needs them);
//! how the delay follows the sender's rhythm and how many quick ACKs there are is observed: docs/models/tcp/receiver.md, "Delay" and "Quick ACKs". The
//! timer has the host's tick.

use crate::Jiffies;
use tcpscape_base::{Kernel, Time};

/// What the gap since the last data says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rhythm {
    /// These are the first data.
    First,
    /// The sender goes on.
    Steady,
    /// Longer than a retransmission timeout: the sender begins anew, probably slowly.
    Restart,
}

/// The timer as the host's timer wheel holds it. It is left running when an ACK goes out otherwise.
#[derive(Clone, Copy, Debug)]
struct Alarm {
    fires: Time,
    /// The tick that it was armed for.
    tick: u64,
}

/// A span of time in ticks of the host.
type Ticks = u32;

/// Delay and timer.
pub(super) struct DelayedAck {
    /// The delay, 0 before the first data.
    delay: Ticks,
    /// Longest time that an ACK waits …
    longest: Ticks,
    /// … and that the delay grows to.
    most: Ticks,
    /// The sender's retransmission timeout, as far as the handshake tells.
    timeout: Ticks,
    /// Round-trip time of the handshake, the longest there is while it is not known.
    round_trip: Ticks,
    /// When the last data came.
    last_data: u64,
    /// When the ACK that waits is due.
    due: Option<u64>,
    alarm: Option<Alarm>,
    tick: Tick,
}

/// The current tick and when the next begins, so that time is seldom divided.
#[derive(Clone, Copy, Debug, Default)]
struct Tick {
    number: u64,
    next: Time,
}

/// The least delay: 40 ms, and 4 ticks where these are longer than 10 ms.
fn least(jiffies: &Jiffies) -> Ticks {
    if jiffies.hz() >= 100 {
        jiffies.hz() / 25
    } else {
        4
    }
}
/// A span of `us` microseconds, rounded up.
fn ticks(jiffies: &Jiffies, us: u64) -> Ticks {
    Ticks::try_from(jiffies.from_micros(us)).unwrap_or(Ticks::MAX)
}

impl DelayedAck {
    /// Nothing is delayed. An ACK waits 200 ms at most, in 6.12 a tick less than the least retransmission timeout.
    pub fn new(kernel: &Kernel, jiffies: &Jiffies) -> DelayedAck {
        let fifth = jiffies.hz() / 5;
        let below_least_rto = ticks(jiffies, 200_000).max(2) - 1;
        let (longest, most) = if kernel.rules().delays_below_least_rto { (fifth.min(below_least_rto), fifth) } else { (fifth, Ticks::MAX) };
        DelayedAck {
            delay: 0,
            longest,
            most,
            timeout: jiffies.hz(),
            round_trip: Ticks::MAX,
            last_data: 0,
            due: None,
            alarm: None,
            tick: Tick::default(),
        }
    }

    /// The connection is open; `round_trip_us` was measured in the handshake, if it could be: the timeout is that and twice as much, at
    /// least 200 ms (RFC 6298 §2.2, with a floor), otherwise a second (§2.1).
    pub fn establish(&mut self, now: Time, jiffies: &Jiffies, round_trip_us: Option<u64>) {
        self.last_data = jiffies.at(now);
        if let Some(us) = round_trip_us.map(|us| us.max(1)) {
            self.round_trip = ticks(jiffies, us);
            self.timeout = ticks(jiffies, us + (2 * us).max(200_000));
        }
    }

    /// Back to the least delay.
    pub fn reset(&mut self, jiffies: &Jiffies) {
        self.delay = least(jiffies);
    }

    /// Data in order came: the delay follows the gaps between them.
    #[inline]
    pub fn on_data(&mut self, now: Time, jiffies: &Jiffies) -> Rhythm {
        let (least, at) = (least(jiffies), self.tick_at(now, jiffies));
        let gap = (at - std::mem::replace(&mut self.last_data, at)).min(u64::from(Ticks::MAX)) as Ticks;
        if self.delay == 0 {
            self.delay = least;
            return Rhythm::First;
        }
        if gap < self.delay {
            self.delay = self.bounded(self.delay / 2 + gap.max(least / 2));
        }
        if gap > self.timeout {
            Rhythm::Restart
        } else {
            Rhythm::Steady
        }
    }
    // What the delay never exceeds.
    fn bounded(&self, delay: Ticks) -> Ticks {
        delay.min(self.timeout).min(self.most)
    }

    /// Whether an ACK waits.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        self.due.is_some()
    }
    /// An ACK was sent: none waits.
    #[inline]
    pub fn cancel(&mut self) {
        self.due = None;
    }

    /// Lets an ACK wait; `ends_write` when data came that end a write of the sender's. Returns false if one waits already that is as good
    /// as due: within a quarter of the delay.
    #[inline]
    pub fn wait(&mut self, now: Time, jiffies: &Jiffies, ends_write: bool) -> bool {
        let (patience, at) = (u64::from(self.patience(jiffies, ends_write)), self.tick_at(now, jiffies));
        let waits_for = self.due.map(|due| due.saturating_sub(at));
        if waits_for.is_some_and(|left| left <= patience / 4) {
            return false;
        }
        let due = at + waits_for.map_or(patience, |left| left.min(patience));
        self.due = Some(due);
        self.arm(now, jiffies, due);
        true
    }
    // How long an ACK waits: the delay, which above its least is no longer than half a second, a fifth of one at the end of a write, and than a
    // round trip.
    #[inline]
    fn patience(&self, jiffies: &Jiffies, ends_write: bool) -> Ticks {
        let (least, delay) = (least(jiffies), self.delay.min(self.longest));
        if self.delay <= least {
            return delay;
        }
        delay.min(jiffies.hz() / if ends_write { 5 } else { 2 }).min(self.round_trip.max(least))
    }

    // The tick at `now`, which never goes back.
    #[inline]
    fn tick_at(&mut self, now: Time, jiffies: &Jiffies) -> u64 {
        if now >= self.tick.next {
            let number = jiffies.at(now);
            self.tick = Tick { number, next: jiffies.time_of(number + 1) };
        }
        self.tick.number
    }
    // A timer already armed for that tick stays as it is: it may fire on a finer grid than a new one.
    fn arm(&mut self, now: Time, jiffies: &Jiffies, tick: u64) {
        if !matches!(self.alarm, Some(alarm) if alarm.fires > now && alarm.tick == tick) {
            self.alarm = Some(Alarm { fires: jiffies.fire(now, tick.saturating_sub(jiffies.at(now))), tick });
        }
    }

    /// When the timer fires, whether an ACK waits or not.
    #[inline]
    pub fn fires(&self) -> Option<Time> {
        self.alarm.map(|alarm| alarm.fires)
    }
    /// Forgets a timer that has fired unnoticed.
    pub fn forget_fired(&mut self, now: Time) {
        self.alarm = self.alarm.filter(|alarm| alarm.fires > now);
    }
    /// Whether the timer fires now; if so, it is armed no more.
    pub fn fire(&mut self, now: Time) -> bool {
        let fires = self.alarm.is_some_and(|alarm| alarm.fires <= now);
        if fires {
            self.alarm = None;
        }
        fires
    }
    /// The timer has fired: whether the ACK that waits is due. The timer is armed again if it is not.
    pub fn expire(&mut self, now: Time, jiffies: &Jiffies) -> bool {
        let Some(due) = self.due else { return false };
        if due > jiffies.at(now) {
            self.arm(now, jiffies, due);
            return false;
        }
        self.due = None;
        true
    }
    /// An ACK had to be sent by the timer: the next waits twice as long.
    pub fn back_off(&mut self) {
        self.delay = self.bounded(self.delay.saturating_mul(2));
    }
}

/// Most segments that are acknowledged one by one in a row (`TCP_MAX_QUICKACKS`).
pub(super) const MOST_QUICK: u32 = 16;
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
    use tcpscape_base::Duration;

    fn ms(n: u64) -> Time {
        Time(n * 1_000_000)
    }
    /// A delayed ACK of 6.1 at 1,000 ticks a second, after data at time 0.
    fn steady() -> (Jiffies, DelayedAck) {
        let j = Jiffies::new(1_000, Duration::ZERO);
        let mut d = DelayedAck::new(&Kernel { hz: 1_000, ..Kernel::V6_1 }, &j);
        d.establish(ms(0), &j, None);
        assert_eq!(d.on_data(ms(0), &j), Rhythm::First);
        (j, d)
    }
    /// The delays after data with these gaps, in ms.
    fn delays(gaps: &[u64]) -> Vec<Ticks> {
        let (j, mut d) = steady();
        let mut now = 0;
        let after = |gap: &u64| {
            now += gap;
            d.on_data(ms(now), &j);
            d.delay
        };
        gaps.iter().map(after).collect()
    }

    #[test]
    fn the_delay_follows_the_gaps() {
        assert_eq!(delays(&[20, 20]), [40, 40], "half the least delay or less: towards the least");
        assert_eq!(delays(&[30, 39, 39]), [50, 64, 71], "half the delay and the gap");
        assert_eq!(delays(&[39, 20]), [59, 49]);
        assert_eq!(delays(&[500]), [40], "a longer pause says nothing");
    }

    #[test]
    fn a_pause_of_more_than_the_timeout_is_a_restart() {
        let (j, mut d) = steady();
        assert_eq!(d.on_data(ms(1_000), &j), Rhythm::Steady);
        assert_eq!(d.on_data(ms(2_001), &j), Rhythm::Restart);
    }

    /// RFC 5681 §4.2 allows 500 ms; 200 ms are the most in 6.1, and a tick less in 6.12.
    #[test]
    fn an_ack_waits_less_than_the_smallest_timeout() {
        let j = Jiffies::new(100, Duration::ZERO);
        for (kernel, ticks) in [(Kernel::V6_1, 20), (Kernel { hz: 100, ..Kernel::V6_12 }, 19)] {
            let mut d = DelayedAck::new(&kernel, &j);
            d.delay = 50;
            assert!(d.wait(Time::ZERO, &j, false));
            assert_eq!(d.due, Some(j.at(Time::ZERO) + ticks));
        }
    }

    #[test]
    fn no_longer_than_a_round_trip_and_no_shorter_than_the_least() {
        for (rtt_ms, due) in [(120, 120), (5, 40)] {
            let (j, mut d) = steady();
            d.establish(ms(0), &j, Some(rtt_ms * 1_000));
            d.delay = 150;
            assert!(d.wait(ms(0), &j, false));
            assert_eq!(d.due, Some(j.at(ms(0)) + due));
        }
    }

    #[test]
    fn an_ack_that_is_nearly_due_goes_at_once() {
        let (j, mut d) = steady();
        assert!(d.wait(ms(0), &j, false), "due in 40 ms");
        assert!(d.wait(ms(29), &j, false), "11 ms are left");
        assert!(!d.wait(ms(30), &j, false), "a quarter of the delay is left");
    }

    #[test]
    fn the_timer_outlives_its_ack_and_is_armed_again() {
        let (j, mut d) = steady();
        assert!(d.wait(ms(0), &j, false));
        d.cancel();
        let fires = d.fires().unwrap();
        assert!(d.wait(ms(20), &j, false));
        assert_ne!(d.fires(), Some(fires), "the new one is due later");
        let mut now = d.fires().unwrap();
        assert!(!d.fire(ms(10)) && d.fire(now));
        while !d.expire(now, &j) {
            now = d.fires().unwrap();
            assert!(d.fire(now));
        }
        assert!((60..=61).contains(&now.millis()), "{now}");
        d.back_off();
        assert_eq!((d.delay, d.is_waiting()), (80, false));
    }

    #[test]
    fn half_a_window_of_segments() {
        let raised = |window, segment, most| {
            let mut q = QuickAcks::default();
            q.raise(window, segment, most);
            q.left
        };
        assert_eq!(raised(14_480, 1_448, MOST_QUICK), 5);
        assert_eq!((raised(65_535, 1_448, MOST_QUICK), raised(1_000, 1_448, MOST_QUICK), raised(65_535, 1_448, 1)), (16, 2, 1));
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
