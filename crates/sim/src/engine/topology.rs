//! What the network of a plan is made of: its pipes, and through which of them each place's packets travel.
//!
//! A plan without places has one pair of hosts with queues of their own, as its stages say: three pipes, or four where the right host sends data too.
//! A plan with places has a chain of links whose stages are all at routers, and bare hosts. docs/models/methods/topology.md.

use crate::output::Link;
use crate::plan::{LinkPlan, PlacePlan, Plan};
use tcpscape_path::{Direction, Host, PathSpec, HOST_STREAMS, NETWORK_STREAMS, REVERSE_STREAMS};

/// A pipe to be.
pub(crate) struct PipePlan {
    pub spec: PathSpec,
    /// What its random streams are called.
    pub streams: String,
    pub direction: Direction,
    /// The link whose direction it is; none in a plan without places.
    pub link: Option<Link>,
    /// The pipe behind it, where it is the own queue of a host.
    pub leaves_to: Option<u32>,
    /// What samples of queues call it: 0 is the left host, 1 and 2 are the directions of the chain's first link, then follow those of the others, and of each
    /// place's links. The right host, where it sends data, is 3 in a plan without places.
    pub number: u32,
}

/// The pipes that packets of a place pass, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// From the left host to the right one.
    pub down: Vec<u32>,
    /// From the right host to the left one.
    pub up: Vec<u32>,
}

/// The pipes of a plan and the routes through them.
pub(crate) struct Topology {
    pub pipes: Vec<PipePlan>,
    /// By place; the only one of a plan without places.
    pub routes: Vec<Route>,
}

impl Topology {
    /// Of a plan that passed its checks.
    pub fn of(plan: &Plan) -> Topology {
        if plan.places.is_empty() {
            Topology::plain(plan)
        } else {
            Topology::chain(plan)
        }
    }

    /// Two hosts, each with the queues of its own egress.
    fn plain(plan: &Plan) -> Topology {
        let (left, network) = plan.forward.split_host(Host::Sender);
        let mut pipes = vec![
            PipePlan { leaves_to: Some(1), ..pipe(left, HOST_STREAMS, Direction::Forward, 0) },
            pipe(network, NETWORK_STREAMS, Direction::Forward, 1),
        ];
        if !plan.has_data_up() {
            pipes.push(pipe(plan.reverse.clone(), REVERSE_STREAMS, Direction::Reverse, 2));
            return Topology { pipes, routes: vec![Route { down: vec![0, 1], up: vec![2] }] };
        }
        let (right, network) = plan.reverse.split_host(Host::Receiver);
        let streams = |part| format!("{REVERSE_STREAMS}/{part}");
        pipes.push(PipePlan { leaves_to: Some(3), ..pipe(right, &streams("host"), Direction::Reverse, 3) });
        pipes.push(pipe(network, &streams("network"), Direction::Reverse, 2));
        Topology { pipes, routes: vec![Route { down: vec![0, 1], up: vec![2, 3] }] }
    }

    /// A chain of links, and places with links of their own.
    fn chain(plan: &Plan) -> Topology {
        let first = Some(Link::Chain(0));
        let mut pipes = vec![
            PipePlan { link: first, ..pipe(plan.forward.clone(), NETWORK_STREAMS, Direction::Forward, 1) },
            PipePlan { link: first, ..pipe(plan.reverse.clone(), REVERSE_STREAMS, Direction::Reverse, 2) },
        ];
        for (k, link) in (1..).zip(&plan.links) {
            both_ways(&mut pipes, link, &format!("link/{k}"), Link::Chain(k));
        }
        let routes = plan.places.iter().enumerate().map(|(k, place)| route(&mut pipes, k, place)).collect();
        Topology { pipes, routes }
    }
}

impl Topology {
    /// The pipes of data and those of ACKs, of flows between the hosts of a place.
    pub fn way(&self, place: usize, up: bool) -> (&[u32], &[u32]) {
        let Route { down, up: against } = &self.routes[place];
        if up {
            (against, down)
        } else {
            (down, against)
        }
    }
}

/// A pipe of a plan without places.
fn pipe(spec: PathSpec, streams: &str, direction: Direction, number: u32) -> PipePlan {
    PipePlan { spec, streams: streams.into(), direction, link: None, leaves_to: None, number }
}

/// Adds both directions of a link whose streams begin with `name`; gives their places.
fn both_ways(pipes: &mut Vec<PipePlan>, plan: &LinkPlan, name: &str, link: Link) -> [u32; 2] {
    [(&plan.forward, Direction::Forward), (&plan.reverse, Direction::Reverse)].map(|(spec, direction)| {
        let place = pipes.len() as u32;
        pipes.push(PipePlan { link: Some(link), ..pipe(spec.clone(), &format!("{name}/{direction}"), direction, place + 1) });
        place
    })
}

/// Adds the links of a place; gives the way of its packets. A direction of a link without a stage takes no time and is left out, unless nothing
/// were left.
fn route(pipes: &mut Vec<PipePlan>, k: usize, place: &PlacePlan) -> Route {
    let near = both_ways(pipes, &place.near, &format!("place/{k}/near"), Link::Near(k));
    let far = both_ways(pipes, &place.far, &format!("place/{k}/far"), Link::Far(k));
    let links = place.enter as u32..place.leave as u32;
    let down = [near[0]].into_iter().chain(links.clone().map(|i| 2 * i)).chain([far[0]]).collect();
    let up = [far[1]].into_iter().chain(links.rev().map(|i| 2 * i + 1)).chain([near[1]]).collect();
    Route { down: that_take_time(pipes, down), up: that_take_time(pipes, up) }
}

fn that_take_time(pipes: &[PipePlan], way: Vec<u32>) -> Vec<u32> {
    let kept: Vec<u32> = way.iter().copied().filter(|p| !pipes[*p as usize].spec.stages.is_empty()).collect();
    if kept.is_empty() {
        way[..1].to_vec()
    } else {
        kept
    }
}
