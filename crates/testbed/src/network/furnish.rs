//! All that one host gets, in one batch of messages: links, addresses, routes, neighbours and queues.

use super::gate::Layer;
use super::layout::{Cable, Layout, Stage};
use super::{links, TestbedError};
use crate::netlink::{Batch, NetlinkError};
use crate::qdisc::{self, Extra, Place};
use std::io;
use tcpscape_base::Stream;
use tcpscape_plan::LinkId;
use tcpscape_plan::Plan;

/// From which message of a host's batch on it is about which queue.
pub struct Furnished {
    first: usize,
    stage: usize,
    depth: usize,
}

/// Adds to the batch all that host `i` gets; says which messages are about which queue. `namespaces` are those of all hosts.
pub fn furnish(b: &mut Batch, plan: &Plan, layout: &Layout, i: usize, namespaces: &[i32], seed: Option<u64>) -> Vec<Furnished> {
    let forwards = !layout.is_end(i);
    let cables: Vec<_> = layout.cables_of(i).map(|(_, cable, end)| (cable, end)).collect();
    for (cable, end) in towards_right_first(&cables) {
        let own = &cable.ports[end];
        if end == 0 {
            links::make(b, &cable.ports, plan.mtu, namespaces[cable.hosts[1]]);
        }
        if end == 1 || forwards {
            links::raise(b, own.number, forwards);
        }
        links::name(b, own);
    }
    if forwards {
        for (to, by) in layout.routes(i) {
            let (cable, end) = (&layout.cables[by.0], by.1);
            links::route_by(b, to, cable.ports[1 - end].address, cable.ports[end].number);
        }
    } else if let Some((cable, end)) = cables.first() {
        links::route_by(b, None, cable.ports[1 - end].address, cable.ports[*end].number);
    }
    if !plan.arp || layout.branches {
        for (cable, end) in towards_right_first(&cables) {
            links::introduce(b, &cable.ports[end], &cable.ports[1 - end]);
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

/// A host's links, those at whose left end it is first.
fn towards_right_first<'a>(cables: &[(&'a Cable, usize)]) -> impl Iterator<Item = (&'a Cable, usize)> {
    let mut sorted = cables.to_vec();
    sorted.sort_by_key(|(_, end)| *end);
    sorted.into_iter()
}

/// Adds a stage's queue at `depth` to the batch.
fn queue(b: &mut Batch, stage: &Stage, depth: usize, seed: Option<u64>) {
    let place = Place::at(stage.device, depth, true);
    // f(seed, link, direction, stage, depth), so that adding a stage moves no other's draws; the first link keeps its name in a chain
    let link = stage.name.link.filter(|link| *link != LinkId::Chain(0)).map(|link| format!("{link}/")).unwrap_or_default();
    let name = || format!("{link}{}/{}/{depth}", stage.name.direction, stage.name.stage);
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
    let (part, layer) = (stage.name.to_string(), &stage.layers[q.depth]);
    if matches!(&error, NetlinkError::Refused { error, .. } if error.kind() == io::ErrorKind::NotFound) {
        return TestbedError::Missing {
            part,
            kind: layer.name(),
            why: if let Layer::Gate { .. } = layer { ", which an outage needs" } else { "" },
        };
    }
    TestbedError::Refused { part, error }
}
