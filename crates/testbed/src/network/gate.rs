//! The queues of a stage as the kernel gets them, with a gate at the end where the schedule has outages.
//!
//! What it is: an outage holds everything back, and what comes waits and overflows. No ordinary queue can do that and go on
//! at once afterwards; sch_plug can, as the innermost queue: plugged it keeps what it has, unplugged it is a FIFO.
//! How it differs from the stage without a gate: not in what passes. Plug counts bytes, so a limit in packets is kept by a
//! netem without delay in front of it. A packet that a bucket is already paying for still leaves.

use tcpscape_path::queue::{fifo::TX_QUEUE_LEN, NetemSpec, PfifoSpec};
use tcpscape_path::schedule::Change;
use tcpscape_path::{Patch, QdiscSpec, ScheduledChange};

/// One queue of a stage.
#[derive(Clone, Debug, PartialEq)]
pub enum Layer {
    /// One of tc's, without its child.
    Queue(QdiscSpec),
    /// The gate: a FIFO of so many bytes that can be closed.
    Gate {
        /// Bytes.
        limit: u64,
    },
}

impl Layer {
    /// What the kernel calls it.
    pub fn name(&self) -> &'static str {
        match self {
            Layer::Queue(q) => q.name(),
            Layer::Gate { .. } => "plug",
        }
    }
}

/// Whether the schedule ever closes this stage.
pub fn needed(schedule: &[ScheduledChange], stage: usize) -> bool {
    let closes = |p: &Patch| p.outage == Some(true);
    schedule.iter().filter(|c| c.stage == stage).any(|c| match &c.change {
        Change::Set { set, .. } | Change::Periodic { set, .. } => closes(set),
        Change::Ramp { start, end, .. } => closes(start) || closes(end),
        Change::RateTrace { points, .. } => points.iter().any(|p| p.1.bytes_per_sec() == 0),
    })
}

/// The queues of a stage, outermost first.
pub fn layers(spec: &QdiscSpec, gated: bool, schedule: &[ScheduledChange], stage: usize) -> Vec<Layer> {
    let mut list: Vec<Layer> = spec.levels().map(|q| Layer::Queue(q.without_child())).collect();
    if gated {
        add_gate(&mut list);
    } else if matches!(list.last(), Some(Layer::Queue(QdiscSpec::Htb(_)))) && limits(schedule, stage, list.len() - 1) {
        // htb's own FIFO can be changed only under a name of its own.
        list.push(Layer::Queue(QdiscSpec::Pfifo(PfifoSpec { limit: TX_QUEUE_LEN })));
    }
    list
}

/// Whether the schedule changes the limit of a stage's queue at `depth`.
fn limits(schedule: &[ScheduledChange], stage: usize, depth: usize) -> bool {
    schedule.iter().filter(|c| (c.stage, c.depth) == (stage, depth)).any(|c| match &c.change {
        Change::Set { set, .. } | Change::Periodic { set, .. } => set.limit.is_some(),
        Change::Ramp { start, end, .. } => start.limit.is_some() && end.limit.is_some(),
        Change::RateTrace { .. } => false,
    })
}

/// Puts a gate behind the innermost queue, which keeps its limit.
fn add_gate(list: &mut Vec<Layer>) {
    let packets =
        |limit: u64| Layer::Queue(QdiscSpec::Netem(NetemSpec { limit: u32::try_from(limit).unwrap_or(u32::MAX), ..NetemSpec::default() }));
    let gate = |limit: u64| Layer::Gate { limit };
    let (replacement, mut rest) = match list.last() {
        Some(Layer::Queue(QdiscSpec::Bfifo(s))) => (Some(gate(s.limit)), vec![]),
        Some(Layer::Queue(QdiscSpec::Pfifo(s))) => (Some(packets(s.limit)), vec![gate(u64::MAX)]),
        Some(Layer::Queue(QdiscSpec::Tbf(s))) => (None, vec![gate(s.limit)]),
        Some(Layer::Queue(QdiscSpec::Htb(_))) => (None, vec![packets(TX_QUEUE_LEN), gate(u64::MAX)]),
        _ => (None, vec![gate(u64::MAX)]),
    };
    if let (Some(r), Some(last)) = (replacement, list.last_mut()) {
        *last = r;
    }
    list.append(&mut rest);
}
