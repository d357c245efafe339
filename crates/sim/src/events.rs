//! The event queue: integer nanoseconds, phases within an instant, ties by insertion.
//!
//! Each component (a pipe, a timer, an application) has at most one valid entry. Asking for a later time than the one queued
//! leaves the entry where it is; when it comes up too early it is queued again. So re-arming a timer on every ACK costs nothing.

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

/// Pending events of numbered components.
#[derive(Debug, Default)]
pub struct Events {
    heap: BinaryHeap<Reverse<(Time, u8, u64, u32)>>,
    /// For each component the time of its valid entry.
    at: Vec<Time>,
    phase: Vec<Phase>,
    seq: u64,
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
        if t < self.at[c as usize] {
            self.at[c as usize] = t;
            self.seq += 1;
            self.heap.push(Reverse((t, self.phase[c as usize] as u8, self.seq, c)));
        }
    }

    /// The next event at or before `until`.
    #[inline]
    pub fn pop(&mut self, until: Time) -> Option<(Time, u32)> {
        while let Some(&Reverse((t, _, _, c))) = self.heap.peek() {
            if t > until {
                return None;
            }
            self.heap.pop();
            if self.at[c as usize] == t {
                self.at[c as usize] = Time::MAX;
                return Some((t, c));
            }
        }
        None
    }

    /// Entries queued, stale ones included.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
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
}
