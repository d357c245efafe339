//! Hosts take time: each packet that arrives is between the wire and TCP for a while (interrupt, device driver, IP).
//!
//! Source: the smallest RTTs of paths without a delay (docs/models/tcp/hosts.md). All hosts of a trial take the same time for each packet, so that the
//! packets of all of them wait in one line. Not modelled: that a host with much to do takes longer, and hands several packets over at once.

use super::network::Arrival;
use std::collections::VecDeque;
use tcpscape_base::{Duration, Time};

/// The packets that are between the wire and TCP, of all hosts, in the order in which they came.
pub(super) struct Stack {
    time: Duration,
    /// When each has passed, the pipe that it came out of, and what it is.
    waiting: VecDeque<(Time, u32, Arrival)>,
}

impl Stack {
    /// Hosts that take so long for a packet.
    pub fn new(time: Duration) -> Stack {
        Stack { time, waiting: VecDeque::new() }
    }

    /// Whether they take any time.
    #[inline]
    pub fn takes_time(&self) -> bool {
        self.time > Duration::ZERO
    }

    /// A packet has come out of a pipe.
    pub fn enter(&mut self, now: Time, pipe: u32, arrival: Arrival) {
        self.waiting.push_back((now + self.time, pipe, arrival));
    }

    /// The next packet that has passed by now, with the pipe that it came out of.
    pub fn leave(&mut self, now: Time) -> Option<(u32, Arrival)> {
        self.waiting.front().filter(|first| first.0 <= now)?;
        self.waiting.pop_front().map(|(_, pipe, arrival)| (pipe, arrival))
    }

    /// When the next packet has passed.
    #[inline]
    pub fn next_event(&self) -> Option<Time> {
        self.waiting.front().map(|first| first.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_packet_takes_the_same_time_and_they_keep_their_order() {
        let mut stack = Stack::new(Duration::micros(15));
        stack.enter(Time(0), 4, Arrival::Moved(1));
        stack.enter(Time(10_000), 5, Arrival::Moved(2));
        assert_eq!(stack.next_event(), Some(Time(15_000)));
        assert!(stack.leave(Time(14_999)).is_none());
        assert!(matches!(stack.leave(Time(15_000)), Some((4, Arrival::Moved(1)))));
        assert!(stack.leave(Time(15_000)).is_none());
        assert!(matches!(stack.leave(Time(25_000)), Some((5, Arrival::Moved(2)))));
        assert_eq!(stack.next_event(), None);
    }
}
