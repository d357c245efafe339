//! Neighbour discovery before the first connection: in a fresh namespace the address must be asked for across the path (RFC 826).

use super::node::Node;
use super::Engine;
use tcpscape_base::{Duration, Time};

/// A question is repeated after 1 s (`retrans_timer` of neighbour discovery).
const RETRY: Duration = Duration::secs(1);

/// Whether the neighbour's address is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Neighbours {
    Unknown,
    /// Asked for at that time.
    Asked(Time),
    Known,
}

impl Neighbours {
    /// At the start: unknown where neighbour discovery is simulated.
    pub fn new(discovery: bool) -> Neighbours {
        if discovery {
            Neighbours::Unknown
        } else {
            Neighbours::Known
        }
    }

    /// Whether a question is to be repeated.
    fn overdue(self, now: Time) -> bool {
        matches!(self, Neighbours::Asked(at) if now >= at + RETRY)
    }
}

impl Engine<'_> {
    pub(super) fn ask_neighbours(&mut self) {
        self.neighbours = Neighbours::Asked(self.now);
        self.events.want(Node::Neighbours, self.now + RETRY);
        self.network.ask_neighbours(self.now);
        self.leave_host();
    }

    /// The timer: no answer has come, perhaps.
    pub(super) fn repeat_question(&mut self) {
        if self.neighbours.overdue(self.now) && self.now < self.end {
            self.ask_neighbours();
        }
    }

    /// The answer came: whoever waited for it connects.
    pub(super) fn neighbours_known(&mut self) {
        if self.neighbours == Neighbours::Known {
            return;
        }
        self.neighbours = Neighbours::Known;
        for i in 0..self.flows.len() {
            if self.flows[i].waits_since_start(self.now) {
                self.connect(i);
            }
        }
        self.send_waiting_probes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_repeated_after_a_second_without_an_answer() {
        let asked = Neighbours::Asked(Time(500_000_000));
        assert!(!asked.overdue(Time(1_499_999_999)) && asked.overdue(Time(1_500_000_000)));
        assert!(!Neighbours::Known.overdue(Time::MAX) && !Neighbours::Unknown.overdue(Time::MAX));
    }
}
