//! The account of each stage from the kernel's counters.

use super::gate::Layer;
use super::layout::{Layout, Stage};
use crate::qdisc::{stats::Counters, Place};
use serde::Serialize;

/// One stage's account at a time.
#[derive(Clone, Debug, Serialize)]
pub struct QueueReport {
    /// The link that it is part of, `chain/0`, `near/2` or `far/2`; left out in a plain plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// `forward` or `reverse`.
    pub r#where: &'static str,
    /// Number of the stage in its direction.
    pub stage: usize,
    /// tc's name of its queue.
    pub kind: &'static str,
    /// Whose egress: `sender`, `router` or `receiver`.
    pub at: &'static str,
    /// Packets that left.
    pub sent_packets: u64,
    /// Bytes that left.
    pub sent_bytes: u64,
    /// Packets that the outermost queue dropped or saw dropped by its child as they came.
    pub dropped: u64,
    /// Packets that the outermost queue marked CE; netem does not tell.
    pub marked: u64,
    /// Packets that had to wait for a rate.
    pub overlimits: u64,
    /// Packets given back by the device.
    pub requeues: u64,
    /// Packets held.
    pub backlog_packets: u64,
    /// Bytes held.
    pub backlog_bytes: u64,
    /// The queues inside, outermost first. What a netem inside loses at random shows only here; what it drops because it
    /// is full shows in both.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<ChildReport>,
}

/// A queue inside another.
#[derive(Clone, Debug, Serialize)]
pub struct ChildReport {
    /// The kernel's name of it.
    pub kind: &'static str,
    /// Packets dropped.
    pub dropped: u64,
    /// Packets marked CE.
    pub marked: u64,
    /// Packets held.
    pub backlog_packets: u64,
    /// Bytes held.
    pub backlog_bytes: u64,
}

/// A stage's report from the counters of its host.
pub fn account(stage: &Stage, layout: &Layout, counters: &[Counters]) -> QueueReport {
    let none = Counters::default();
    let at = |depth: usize| {
        let place = Place::at(stage.device, depth, false);
        counters.iter().find(|c| (c.device, c.handle) == (place.device, place.handle)).unwrap_or(&none)
    };
    let child = |(depth, layer): (usize, &Layer)| {
        let c = at(depth);
        let (backlog_packets, backlog_bytes) = (u64::from(c.backlog_packets), u64::from(c.backlog_bytes));
        let (dropped, marked) = (u64::from(c.drops), u64::from(c.marked));
        ChildReport { kind: layer.name(), dropped, marked, backlog_packets, backlog_bytes }
    };
    let root = at(0);
    QueueReport {
        link: stage.link.clone(),
        r#where: stage.direction.name(),
        stage: stage.index,
        kind: stage.kind,
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
