//! The account of each stage from the kernel's counters.

use super::gate::Layer;
use super::layout::{Layout, Stage};
use crate::qdisc::{stats::Counters, Place};
use std::collections::BTreeMap;
use tcpscape_path::{Direction, Host};
use tcpscape_plan::results::{KernelChild, KernelQueue};
use tcpscape_plan::samples::{QueueSample, QueueSamples};
use tcpscape_plan::{Plan, Topology, LEFT_HOST, RIGHT_HOST};

/// A stage's report from the counters of its host.
pub fn account(stage: &Stage, layout: &Layout, counters: &[Counters]) -> KernelQueue {
    let none = Counters::default();
    let at = |depth: usize| {
        let place = Place::at(stage.device, depth, false);
        counters.iter().find(|c| (c.device, c.handle) == (place.device, place.handle)).unwrap_or(&none)
    };
    let child = |(depth, layer): (usize, &Layer)| {
        let c = at(depth);
        let (backlog_packets, backlog_bytes) = (u64::from(c.backlog_packets), u64::from(c.backlog_bytes));
        let (dropped, marked) = (u64::from(c.drops), u64::from(c.marked));
        KernelChild { kind: layer.name(), dropped, marked, backlog_packets, backlog_bytes }
    };
    let root = at(0);
    KernelQueue {
        stage: stage.name,
        at: layout.role(stage.host),
        sent_packets: root.packets,
        sent_bytes: root.bytes,
        dropped: u64::from(root.drops),
        marked: u64::from(root.marked),
        overlimits: u64::from(root.overlimits),
        requeues: u64::from(root.requeues),
        backlog_packets: u64::from(root.backlog_packets),
        backlog_bytes: u64::from(root.backlog_bytes),
        children: stage.layers.iter().enumerate().skip(1).map(child).collect(),
    }
}

/// Samples every queue, numbered as [`Topology`] numbers the directions of links and hosts' own queues.
pub fn sample(into: &mut QueueSamples, plan: &Plan, queues: &[KernelQueue], t_ns: u64) {
    let topology = Topology::of(plan);
    let mut stages = BTreeMap::new();
    for q in queues {
        let pipe = match (q.stage.direction, q.at) {
            (Direction::Forward, Host::Sender) => LEFT_HOST,
            (Direction::Reverse, Host::Receiver) if plan.has_data_up() => RIGHT_HOST,
            _ => Topology::pipe(topology.number_of(&q.stage)),
        };
        let stage: &mut u32 = stages.entry(pipe).or_default();
        let own = [q.backlog_packets, q.backlog_bytes, q.dropped, q.marked];
        let inside = q.children.iter().map(|c| [c.backlog_packets, c.backlog_bytes, c.dropped, c.marked]);
        for (depth, [packets, bytes, drops, marks]) in (0..).zip([own].into_iter().chain(inside)) {
            into.push(QueueSample { t_ns, pipe, stage: *stage, depth, packets, bytes, sojourn_ns: None, drops, marks });
        }
        *stage += 1;
    }
}
