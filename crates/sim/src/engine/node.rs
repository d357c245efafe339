//! The nodes of a trial: what events call. Their numbers in the calendar are known here alone.

use crate::events::{self, Phase};

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
    /// A pipe of the network, by its number there.
    Pipe(u32),
    /// The timer of neighbour discovery.
    Neighbours,
    FlowSamples,
    QueueSamples,
    /// The CPUs for which applications wait.
    Cpu,
    /// Packets of probes are due.
    Probes,
    /// Connections arrive.
    Transfers,
    /// Packets have passed the way from the wire to TCP in their hosts.
    Hosts,
    Flow(u32, Part),
}

/// The nodes that every trial has, by their numbers: the three pipes of a plain path among them.
const FIXED: [Node; 10] = [
    Node::Pipe(0),
    Node::Pipe(1),
    Node::Pipe(2),
    Node::Neighbours,
    Node::FlowSamples,
    Node::QueueSamples,
    Node::Cpu,
    Node::Probes,
    Node::Transfers,
    Node::Hosts,
];
const FIXED_PIPES: u32 = 3;
/// Behind them rows of eight: the nodes of a flow, in this order, and three pipes, so that as many of both as there are share the numbers.
const PARTS: [Part; 5] = [Part::Connection, Part::Sender, Part::Receiver, Part::Writer, Part::Reader];
const FIRST_ROW: u32 = FIXED.len() as u32;
const ROW: u32 = 8;
const FLOW_NODES: u32 = PARTS.len() as u32;
const ROW_PIPES: u32 = ROW - FLOW_NODES;

impl Node {
    /// Nodes of a trial with so many flows and pipes.
    pub fn count(flows: usize, pipes: usize) -> usize {
        let rows = flows.max(pipes.saturating_sub(FIXED_PIPES as usize).div_ceil(ROW_PIPES as usize));
        FIRST_ROW as usize + rows * ROW as usize
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
            Node::Pipe(pipe) if pipe < FIXED_PIPES => pipe, // its place in FIXED, as for the next ones
            Node::Pipe(pipe) => {
                let beyond = pipe - FIXED_PIPES;
                FIRST_ROW + beyond / ROW_PIPES * ROW + FLOW_NODES + beyond % ROW_PIPES
            }
            Node::Neighbours => 3,
            Node::FlowSamples => 4,
            Node::QueueSamples => 5,
            Node::Cpu => 6,
            Node::Probes => 7,
            Node::Transfers => 8,
            Node::Hosts => 9,
            Node::Flow(flow, part) => FIRST_ROW + flow * ROW + part as u32,
        }
    }

    #[inline]
    fn from_index(index: u32) -> Node {
        if let Some(node) = FIXED.get(index as usize) {
            return *node;
        }
        let (row, place) = ((index - FIRST_ROW) / ROW, (index - FIRST_ROW) % ROW);
        match PARTS.get(place as usize) {
            Some(part) => Node::Flow(row, *part),
            None => Node::Pipe(FIXED_PIPES + row * ROW_PIPES + place - FLOW_NODES),
        }
    }

    #[inline]
    fn phase(self) -> Phase {
        match self {
            Node::FlowSamples | Node::QueueSamples => Phase::Sample,
            Node::Cpu | Node::Probes | Node::Flow(_, Part::Writer | Part::Reader) => Phase::Application,
            Node::Pipe(_) | Node::Neighbours | Node::Transfers | Node::Hosts => Phase::Network,
            Node::Flow(_, Part::Connection | Part::Sender | Part::Receiver) => Phase::Network,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Node as _;
    use tcpscape_plan::MAX_PLACES;

    #[test]
    fn each_number_has_one_node_and_each_node_its_number() {
        let all: Vec<Node> = (0..Node::count(3, 0) as u32).map(Node::from_index).collect();
        assert!(all.iter().enumerate().all(|(i, n)| n.index() as usize == i), "{all:?}");
        let row = |i: u32| PARTS.map(|p| Node::Flow(i, p)).into_iter().chain((0..3).map(move |k| Node::Pipe(3 + 3 * i + k)));
        assert_eq!(all, FIXED.into_iter().chain((0..3).flat_map(row)).collect::<Vec<_>>());
    }

    #[test]
    fn there_are_numbers_for_all_flows_and_all_pipes() {
        for (flows, pipes) in [(1, 3), (1, 4), (1, 6), (1, 7), (2, 9), (5, 30)] {
            let count = Node::count(flows, pipes) as u32;
            assert!(Node::Flow(flows as u32 - 1, Part::Reader).index() < count, "{flows} flows");
            assert!((0..pipes as u32).all(|p| Node::Pipe(p).index() < count), "{pipes} pipes of {flows} flows");
        }
    }

    #[test]
    fn the_largest_trial_fits_the_calendar() {
        // As many flows as a plan may have, and all transfers at a time (as many are expected at most, and 5 standard deviations), each flow at a place of
        // its own with two links.
        assert!(Node::count(100_000 + 100_000 + 5 * 317, 4 * MAX_PLACES + 1_000) <= events::MAX_NODES);
    }
}
