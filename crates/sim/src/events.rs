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
/// No entry.
const NONE: u32 = u32::MAX;

/// Time in the upper half; phase, order of insertion and component in the lower one.
type Key = u128;
/// Bits of the component in a key.
const COMPONENT_BITS: u32 = 20;
/// Bits of the order of insertion.
const SEQ_BITS: u32 = 42;

fn time_of(k: Key) -> Time {
    Time((k >> 64) as u64)
}
fn component_of(k: Key) -> u32 {
    k as u32 & ((1 << COMPONENT_BITS) - 1)
}

/// Entries of buckets, linked.
#[derive(Debug)]
struct Node {
    key: Key,
    next: u32,
}

/// Pending events of numbered components.
#[derive(Debug)]
pub struct Events {
    /// The earliest of all that the current bucket holds, if it came after the heap's first; else `Key::MAX`.
    top: Key,
    /// Entries of the current bucket and earlier ones.
    near: BinaryHeap<Reverse<Key>>,
    /// First entry of each bucket.
    buckets: Box<[u32]>,
    nodes: Vec<Node>,
    /// First unused node.
    free: u32,
    /// A bit for each bucket that is not empty.
    occupied: Box<[u64]>,
    /// Entries in buckets.
    paged: usize,
    /// Number of the bucket that `near` holds.
    current: u64,
    far: BinaryHeap<Reverse<Key>>,
    /// For each component the time of its valid entry.
    at: Vec<Time>,
    phase: Vec<Phase>,
    seq: u64,
}

impl Default for Events {
    fn default() -> Events {
        Events {
            top: Key::MAX,
            near: BinaryHeap::new(),
            buckets: vec![NONE; BUCKETS].into_boxed_slice(),
            nodes: Vec::new(),
            free: NONE,
            occupied: vec![0; BUCKETS / 64].into_boxed_slice(),
            paged: 0,
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
        assert!(self.at.len() < 1 << COMPONENT_BITS, "more than a million components");
        self.at.len() as u32 - 1
    }

    /// Component `c` wants to be called at `t` or, if something earlier is queued for it, then.
    #[inline]
    pub fn want(&mut self, c: u32, t: Time) {
        let i = c as usize;
        let queued = self.at[i];
        if t >= queued {
            return;
        }
        self.at[i] = t;
        self.seq += 1;
        debug_assert!(self.seq < 1 << SEQ_BITS);
        let order = (self.phase[i] as u64) << 62 | self.seq << COMPONENT_BITS | u64::from(c);
        let key = Key::from(t.0) << 64 | Key::from(order);
        self.file(key);
    }

    /// Puts an entry where its time belongs.
    #[inline]
    fn file(&mut self, key: Key) {
        let b = time_of(key).0 >> SHIFT;
        if b <= self.current {
            self.stack(key);
        } else if b - self.current < BUCKETS as u64 {
            let i = b as usize % BUCKETS;
            let node = Node { key, next: self.buckets[i] };
            let n = self.free;
            if n == NONE {
                self.buckets[i] = self.nodes.len() as u32;
                self.nodes.push(node);
            } else {
                self.free = self.nodes[n as usize].next;
                self.nodes[n as usize] = node;
                self.buckets[i] = n;
            }
            self.occupied[i / 64] |= 1 << (i % 64);
            self.paged += 1;
        } else {
            self.far.push(Reverse(key));
        }
    }

    /// Adds an entry to those of the current bucket. What comes before all others needs no heap: most events ask for the next one.
    #[inline]
    fn stack(&mut self, key: Key) {
        let first = self.first().unwrap_or(Key::MAX);
        if key > first {
            return self.near.push(Reverse(key));
        }
        let old = std::mem::replace(&mut self.top, key);
        if old != Key::MAX {
            self.near.push(Reverse(old));
        }
    }

    /// The earliest entry of the current bucket.
    #[inline]
    fn first(&self) -> Option<Key> {
        if self.top != Key::MAX {
            return Some(self.top);
        }
        self.near.peek().map(|k| k.0)
    }

    #[inline]
    fn pop_first(&mut self) {
        if self.top != Key::MAX {
            self.top = Key::MAX;
        } else {
            self.near.pop();
        }
    }

    /// The next event at or before `until`.
    #[inline]
    pub fn pop(&mut self, until: Time) -> Option<(Time, u32)> {
        loop {
            while let Some(k) = self.first() {
                let (t, c) = (time_of(k), component_of(k));
                if t > until {
                    return None;
                }
                self.pop_first();
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
        let far = self.far.peek().map(|e| time_of(e.0).0 >> SHIFT);
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
        // A bucket's slot is its own until the calendar has gone round: everything in it is of this time.
        let mut n = std::mem::replace(&mut self.buckets[i], NONE);
        while n != NONE {
            let Node { key, next } = self.nodes[n as usize];
            if self.at[component_of(key) as usize] == time_of(key) {
                self.stack(key);
            }
            self.nodes[n as usize].next = self.free;
            self.free = n;
            self.paged -= 1;
            n = next;
        }
        while self.far.peek().is_some_and(|e| time_of(e.0).0 >> SHIFT <= next) {
            if let Some(Reverse(key)) = self.far.pop() {
                self.stack(key);
            }
        }
        true
    }

    /// Number of the first bucket after the current one that is not empty.
    fn next_occupied(&self) -> Option<u64> {
        if self.paged == 0 {
            return None;
        }
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
