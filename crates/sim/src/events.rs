//! The event queue: integer nanoseconds, phases within an instant, ties by insertion.
//!
//! Each component (a pipe, a timer, an application) has at most one valid entry. Asking for a later time than the one queued
//! leaves the entry where it is; when it comes up too early it is queued again. So re-arming a timer on every ACK costs nothing.
//!
//! A calendar in front of a heap keeps the cost of an event nearly the same for one flow and for a thousand: entries wait unsorted
//! in buckets of 131 µs and enter the heap, sorted, when their bucket's time comes; what is more than a second ahead waits in a heap
//! of its own.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tcpscape_base::Time;

/// What happens within one instant: all packets and timers first, then applications, then samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Phase {
    /// Packets and protocol timers.
    Network = 0,
    /// Reads and writes of applications: a woken process runs when the interrupts are done.
    Application = 1,
    /// Observation.
    Sample = 2,
}

/// Length of a bucket: 2¹⁷ ns.
const SHIFT: u32 = 17;
/// Number of buckets: the calendar reaches 1.07 s ahead.
const BUCKETS: usize = 1 << 13;

/// Time, then phase and order of insertion in one word, then component.
type Entry = Reverse<(Time, u64, u32)>;

/// Pending events of numbered components.
#[derive(Debug)]
pub struct Events {
    /// Entries of the current bucket and earlier ones.
    near: BinaryHeap<Entry>,
    buckets: Vec<Vec<Entry>>,
    /// A bit for each bucket that is not empty.
    occupied: Vec<u64>,
    /// Number of the bucket that `near` holds.
    current: u64,
    far: BinaryHeap<Entry>,
    /// For each component the time of its valid entry.
    at: Vec<Time>,
    phase: Vec<Phase>,
    seq: u64,
}

impl Default for Events {
    fn default() -> Events {
        Events {
            near: BinaryHeap::new(),
            buckets: vec![Vec::new(); BUCKETS],
            occupied: vec![0; BUCKETS / 64],
            current: 0,
            far: BinaryHeap::new(),
            at: Vec::new(),
            phase: Vec::new(),
            seq: 0,
        }
    }
}

impl Events {
    /// Adds a component; returns its number.
    pub fn add(&mut self, phase: Phase) -> u32 {
        self.at.push(Time::MAX);
        self.phase.push(phase);
        self.at.len() as u32 - 1
    }

    /// Component `c` wants to be called at `t` or, if something earlier is queued for it, then.
    #[inline]
    pub fn want(&mut self, c: u32, t: Time) {
        if t >= self.at[c as usize] {
            return;
        }
        self.at[c as usize] = t;
        self.seq += 1;
        let e = Reverse((t, (self.phase[c as usize] as u64) << 62 | self.seq, c));
        let b = t.0 >> SHIFT;
        if b <= self.current {
            self.near.push(e);
        } else if b - self.current < BUCKETS as u64 {
            let i = b as usize % BUCKETS;
            self.buckets[i].push(e);
            self.occupied[i / 64] |= 1 << (i % 64);
        } else {
            self.far.push(e);
        }
    }

    /// The next event at or before `until`.
    #[inline]
    pub fn pop(&mut self, until: Time) -> Option<(Time, u32)> {
        loop {
            while let Some(&Reverse((t, _, c))) = self.near.peek() {
                if t > until {
                    return None;
                }
                self.near.pop();
                if self.at[c as usize] == t {
                    self.at[c as usize] = Time::MAX;
                    return Some((t, c));
                }
            }
            if !self.turn_page(until) {
                return None;
            }
        }
    }

    /// Moves the next bucket that has something into the heap; false if there is none up to `until`.
    fn turn_page(&mut self, until: Time) -> bool {
        let far = self.far.peek().map(|e| e.0 .0 .0 >> SHIFT);
        let next = match (self.next_occupied(), far) {
            (Some(a), Some(b)) => a.min(b),
            (a, b) => match a.or(b) {
                Some(n) => n,
                None => return false,
            },
        };
        if next > until.0 >> SHIFT {
            return false;
        }
        self.current = next;
        let i = next as usize % BUCKETS;
        self.occupied[i / 64] &= !(1 << (i % 64));
        let mut page = std::mem::take(&mut self.buckets[i]);
        // A bucket's slot is its own until the calendar has gone round: everything in it is of this time.
        self.near.extend(page.drain(..).filter(|e| self.at[e.0 .2 as usize] == e.0 .0));
        self.buckets[i] = page;
        while self.far.peek().is_some_and(|e| e.0 .0 .0 >> SHIFT <= next) {
            self.near.extend(self.far.pop());
        }
        true
    }

    /// Number of the first bucket after the current one that is not empty.
    fn next_occupied(&self) -> Option<u64> {
        let start = (self.current as usize + 1) % BUCKETS;
        let words = self.occupied.len();
        for k in 0..=words {
            let w = (start / 64 + k) % words;
            let mut bits = self.occupied[w];
            if k == 0 {
                bits &= !0 << (start % 64);
            } else if k == words {
                bits &= !(!0 << (start % 64));
            }
            if bits != 0 {
                let i = w * 64 + bits.trailing_zeros() as usize;
                return Some(self.current + 1 + ((i + BUCKETS - start) % BUCKETS) as u64);
            }
        }
        None
    }
}

/// Seconds that `events` events take with nothing behind them, for the components of one flow: the floor of the benchmark.
pub fn floor(events: u64) -> f64 {
    let mut e = Events::default();
    let parts: Vec<u32> = (0..8).map(|_| e.add(Phase::Network)).collect();
    for &c in &parts {
        e.want(c, Time(u64::from(c)));
    }
    let start = std::time::Instant::now();
    for i in 0..events {
        let (t, c) = e.pop(Time::MAX).expect("every component wants more");
        e.want(c, Time(t.0 + 1_000 + (i & 63)));
    }
    start.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpscape_base::Stream;

    #[test]
    fn instants_run_network_first_then_in_order_of_insertion() {
        let mut e = Events::default();
        let (app, a, b) = (e.add(Phase::Application), e.add(Phase::Network), e.add(Phase::Network));
        for c in [app, b, a] {
            e.want(c, Time(5));
        }
        let order: Vec<u32> = std::iter::from_fn(|| e.pop(Time::MAX)).map(|(_, c)| c).collect();
        assert_eq!(order, [b, a, app]);
    }

    #[test]
    fn an_earlier_wish_replaces_a_later_one() {
        let mut e = Events::default();
        let c = e.add(Phase::Network);
        e.want(c, Time(9));
        e.want(c, Time(3));
        e.want(c, Time(7));
        assert_eq!(e.pop(Time::MAX), Some((Time(3), c)));
        e.want(c, Time(20));
        assert_eq!(e.pop(Time::MAX), Some((Time(20), c)));
        assert_eq!(e.pop(Time::MAX), None);
    }

    #[test]
    fn events_near_and_far_come_in_order() {
        let mut e = Events::default();
        let mut s = Stream::new(1, "events");
        let mut now = Time::ZERO;
        let parts: Vec<u32> = (0..300).map(|_| e.add(Phase::Network)).collect();
        let mut due = vec![Time::MAX; parts.len()];
        for _ in 0..200_000 {
            let c = s.below(300);
            // Reaches from nanoseconds to many turns of the calendar.
            let ahead = s.next_u64() >> (30 + s.below(30));
            let t = Time(now.0 + ahead % 20_000_000_000);
            e.want(c, t);
            due[c as usize] = due[c as usize].min(t);
            if s.below(2) == 0 {
                let (t, c) = e.pop(Time::MAX).expect("one was just queued");
                assert!(t >= now);
                assert_eq!(due[c as usize], t);
                assert_eq!(due.iter().min(), Some(&t));
                due[c as usize] = Time::MAX;
                now = t;
            }
        }
    }

    #[test]
    fn nothing_is_popped_before_its_time() {
        let mut e = Events::default();
        let c = e.add(Phase::Network);
        e.want(c, Time(5_000_000_000));
        assert_eq!(e.pop(Time(4_999_999_999)), None);
        e.want(c, Time(1_000));
        assert_eq!(e.pop(Time(4_999_999_999)), Some((Time(1_000), c)));
    }
}
