//! All that one host gets, in one batch of messages: links, addresses, routes, neighbours and queues.

use super::gate::Layer;
use super::layout::{Layout, Stage};
use super::{links, TestbedError};
use crate::netlink::{Batch, NetlinkError};
use crate::qdisc::{self, Extra, Place};
use std::io;
use tcpscape_base::Stream;
use tcpscape_path::Direction;
use tcpscape_sim::Plan;

/// From which message of a host's batch on it is about which queue.
pub struct Furnished {
    first: usize,
    stage: usize,
    depth: usize,
}

/// Adds to the batch all that host `i` gets; says which messages are about which queue.
pub fn furnish(b: &mut Batch, plan: &Plan, layout: &Layout, i: usize, far: Option<i32>, seed: Option<u64>) -> Vec<Furnished> {
    let last = layout.routers;
    let forwards = i > 0 && i <= last;
    if let Some(far) = far {
        links::make(b, i, plan.mtu, far);
        if forwards {
            links::raise(b, Direction::Forward, true);
        }
        links::name(b, i, Direction::Forward);
    }
    if i > 0 {
        links::raise(b, Direction::Reverse, forwards);
        links::name(b, i - 1, Direction::Reverse);
    }
    if i == 0 {
        links::route(b, None, 0, Direction::Forward);
    } else if i > last {
        links::route(b, None, last, Direction::Reverse);
    } else {
        if i < last {
            links::route(b, Some(last), i, Direction::Forward);
        }
        if i > 1 {
            links::route(b, Some(0), i - 1, Direction::Reverse);
        }
    }
    if !plan.arp {
        if far.is_some() {
            links::introduce(b, i, Direction::Forward);
        }
        if i > 0 {
            links::introduce(b, i - 1, Direction::Reverse);
        }
    }
    let mut queues = Vec::new();
    for (number, stage) in layout.stages.iter().enumerate().filter(|(_, s)| s.host == i) {
        for depth in 0..stage.layers.len() {
            queues.push(Furnished { first: b.len(), stage: number, depth });
            queue(b, stage, depth, seed);
        }
    }
    queues
}

/// Adds a stage's queue at `depth` to the batch.
fn queue(b: &mut Batch, stage: &Stage, depth: usize, seed: Option<u64>) {
    let place = Place::at(links::device(stage.direction), depth, true);
    // f(seed, direction, stage, depth), so that adding a stage moves no other's draws
    let name = || format!("{}/{}/{depth}", stage.direction.name(), stage.index);
    match &stage.layers[depth] {
        Layer::Queue(spec) => qdisc::encode(b, spec, place, Extra { seed: seed.map(|s| Stream::new(s, &name()).next_u64()) }),
        Layer::Gate { limit } => qdisc::new_gate(b, place, *limit),
    }
}

/// Names the part of a host's batch that the kernel refused.
pub fn refused(error: NetlinkError, layout: &Layout, host: usize, queues: &[Furnished]) -> TestbedError {
    let message = if let NetlinkError::Refused { message, .. } = error { message } else { 0 };
    let Some(q) = queues.iter().rev().find(|q| q.first <= message) else {
        return TestbedError::Refused { part: format!("{}'s link, address or route", layout.host_name(host)), error };
    };
    let stage = &layout.stages[q.stage];
    let (part, layer) = (stage.title(), &stage.layers[q.depth]);
    if matches!(&error, NetlinkError::Refused { error, .. } if error.kind() == io::ErrorKind::NotFound) {
        return TestbedError::Missing {
            part,
            kind: layer.name(),
            why: if let Layer::Gate { .. } = layer { ", which an outage needs" } else { "" },
        };
    }
    TestbedError::Refused { part, error }
}
