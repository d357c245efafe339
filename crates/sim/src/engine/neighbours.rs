//! Neighbour discovery before the first connection: in a fresh namespace the address must be asked for across the path (RFC 826).
//! Hosts of a plan with places know their neighbours.

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
    /// The host that sends down asks for the other one's address, or the one that sends up.
    pub(super) fn ask_neighbours(&mut self, up: bool) {
        self.neighbours[usize::from(up)] = Neighbours::Asked(self.now);
        self.events.want(Node::Neighbours, self.now + RETRY);
        let pipe = self.network.ask_neighbours(self.now, up);
        self.call_pipe(pipe);
    }

    /// The timer: no answer has come, perhaps.
    pub(super) fn repeat_question(&mut self) {
        for up in [false, true] {
            let known = self.neighbours[usize::from(up)];
            match known {
                Neighbours::Asked(at) if !known.overdue(self.now) => self.events.want(Node::Neighbours, at + RETRY),
                Neighbours::Asked(_) if self.now < self.end => self.ask_neighbours(up),
                _ => {}
            }
        }
    }

    /// A question that travelled up, or down, is answered; whoever is asked knows the other one from then on.
    pub(super) fn answer_neighbours(&mut self, up: bool) {
        let pipe = self.network.answer_neighbours(self.now, up);
        self.wake(pipe);
        self.neighbours_known(!up);
    }

    /// The address is known to the host that sends down, or up: whoever waited there for it connects.
    pub(super) fn neighbours_known(&mut self, up: bool) {
        let known = &mut self.neighbours[usize::from(up)];
        if *known == Neighbours::Known {
            return;
        }
        *known = Neighbours::Known;
        for i in 0..self.flows.len() {
            if self.flows[i].is_up() == up && self.flows[i].waits_since_start(self.now) {
                self.connect(i);
            }
        }
        self.send_waiting_probes(up);
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
