//! The nodes of a trial: what events call. Their numbers in the calendar are known here alone.

use crate::events::{self, Phase};

/// Where time passes for packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Leg {
    /// The queues of the sender's own host.
    Host,
    /// The network towards the receiver.
    Network,
    /// The way back.
    Reverse,
}

/// The machine or application of a connection that wants to be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Part {
    /// The connection itself: it begins or ends.
    Connection,
    Sender,
    Receiver,
    /// The sending application.
    Writer,
    /// The receiving application.
    Reader,
}

/// What an event calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Pipe(Leg),
    /// The timer of neighbour discovery.
    Neighbours,
    FlowSamples,
    QueueSamples,
    /// The CPU of the sending host, for which applications wait.
    Cpu,
    /// Packets of probes are due.
    Probes,
    /// Connections arrive.
    Transfers,
    Flow(u32, Part),
}

/// The nodes that every trial has, by their numbers.
const FIXED: [Node; 9] = [
    Node::Pipe(Leg::Host),
    Node::Pipe(Leg::Network),
    Node::Pipe(Leg::Reverse),
    Node::Neighbours,
    Node::FlowSamples,
    Node::QueueSamples,
    Node::Cpu,
    Node::Probes,
    Node::Transfers,
];
/// Behind them the nodes of each flow, in this order.
const PARTS: [Part; 5] = [Part::Connection, Part::Sender, Part::Receiver, Part::Writer, Part::Reader];
const FIRST_FLOW: u32 = FIXED.len() as u32;
const PER_FLOW: u32 = PARTS.len() as u32;

impl Node {
    /// Nodes of a trial with so many flows.
    pub fn count(flows: usize) -> usize {
        FIRST_FLOW as usize + flows * PER_FLOW as usize
    }

    /// The nodes of flow `i`.
    pub fn of_flow(i: usize) -> impl Iterator<Item = Node> {
        PARTS.into_iter().map(move |part| Node::Flow(i as u32, part))
    }
}

impl events::Node for Node {
    #[inline]
    fn index(self) -> u32 {
        match self {
            Node::Pipe(leg) => leg as u32, // its place in FIXED, as for the next ones
            Node::Neighbours => 3,
            Node::FlowSamples => 4,
            Node::QueueSamples => 5,
            Node::Cpu => 6,
            Node::Probes => 7,
            Node::Transfers => 8,
            Node::Flow(flow, part) => FIRST_FLOW + flow * PER_FLOW + part as u32,
        }
    }

    #[inline]
    fn from_index(index: u32) -> Node {
        match FIXED.get(index as usize) {
            Some(node) => *node,
            None => Node::Flow((index - FIRST_FLOW) / PER_FLOW, PARTS[((index - FIRST_FLOW) % PER_FLOW) as usize]),
        }
    }

    #[inline]
    fn phase(self) -> Phase {
        match self {
            Node::FlowSamples | Node::QueueSamples => Phase::Sample,
            Node::Cpu | Node::Probes | Node::Flow(_, Part::Writer | Part::Reader) => Phase::Application,
            Node::Pipe(_) | Node::Neighbours | Node::Transfers => Phase::Network,
            Node::Flow(_, Part::Connection | Part::Sender | Part::Receiver) => Phase::Network,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Node as _;

    #[test]
    fn each_number_has_one_node_and_each_node_its_number() {
        let all: Vec<Node> = (0..Node::count(3) as u32).map(Node::from_index).collect();
        assert!(all.iter().enumerate().all(|(i, n)| n.index() as usize == i), "{all:?}");
        assert_eq!(all.last(), Some(&Node::Flow(2, Part::Reader)));
        let flows = (0..3).flat_map(|i| PARTS.map(|p| Node::Flow(i, p)));
        assert_eq!(all, FIXED.into_iter().chain(flows).collect::<Vec<_>>());
    }

    #[test]
    fn the_largest_trial_fits_the_calendar() {
        // As many flows as a plan may have, and all transfers at a time: as many are expected at most, and 5 standard deviations.
        assert!(Node::count(100_000 + 100_000 + 5 * 317) <= events::MAX_NODES);
    }
}
