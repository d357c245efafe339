//! What the network of a plan is made of in the model: its pipes, and through which of them each place's packets travel.
//!
//! A plan without places has one pair of hosts with queues of their own, as its stages say: three pipes, or four where the right host sends data too.
//! A plan with places has a pipe for each direction of its links, all of whose stages are at routers, and bare hosts.

use tcpscape_path::{Direction, Host, PathSpec, NETWORK_STREAMS, REVERSE_STREAMS};
use tcpscape_plan::{LinkId, Plan, Topology, Way, LEFT_HOST, RIGHT_HOST};

/// A pipe to be.
pub(crate) struct PipePlan {
    pub spec: PathSpec,
    /// What its random streams are called.
    pub streams: String,
    pub direction: Direction,
    /// The link whose direction it is; none in a plan without places.
    pub link: Option<LinkId>,
    /// The pipe behind it, where it is the own queue of a host.
    pub leaves_to: Option<u32>,
    /// What samples of queues call it.
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
pub(crate) struct Pipes {
    pub pipes: Vec<PipePlan>,
    /// By place; the only one of a plan without places.
    pub routes: Vec<Route>,
}

impl Pipes {
    /// Of a plan that passed its checks. A direction of a link without a stage takes no time: a plan with places leaves it out of the routes, unless
    /// nothing were left.
    pub fn of(plan: &Plan) -> Pipes {
        let topology = Topology::of(plan);
        let (mut pipes, mut of_ways) = (Vec::new(), Vec::new());
        for (number, way) in topology.ways().enumerate() {
            let (direction, link, first) = (way.direction, topology.shown(way.link), pipes.len() as u32);
            let pipe = |spec, streams, number| PipePlan { spec, streams, direction, link, leaves_to: None, number };
            if topology.is_plain() && (direction == Direction::Forward || plan.has_data_up()) {
                let (host, own) = [(Host::Sender, LEFT_HOST), (Host::Receiver, RIGHT_HOST)][direction.index()];
                let (host, network) = way.path.split_host(host);
                pipes.push(PipePlan { leaves_to: Some(first + 1), ..pipe(host, format!("{direction}/host"), own) });
                pipes.push(pipe(network, format!("{direction}/network"), Topology::pipe(number)));
            } else {
                pipes.push(pipe(way.path.clone(), streams(&way), Topology::pipe(number)));
            }
            of_ways.push(first..pipes.len() as u32);
        }
        let passed = |ways: Vec<usize>| {
            let mut all: Vec<u32> = ways.into_iter().flat_map(|way| of_ways[way].clone()).collect();
            let first = all[0];
            all.retain(|&k| topology.is_plain() || !pipes[k as usize].spec.stages.is_empty());
            if all.is_empty() {
                all.push(first);
            }
            all
        };
        let routes = (0..plan.places.len().max(1)).map(|place| {
            let [down, up] = topology.route(place, false).map(passed);
            Route { down, up }
        });
        Pipes { routes: routes.collect(), pipes }
    }

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

/// What the random streams of a direction of a link are called: the first link's are those of the network of a plan without places.
fn streams(way: &Way<'_>) -> String {
    let direction = way.direction;
    match way.link {
        LinkId::Chain(0) if direction == Direction::Forward => NETWORK_STREAMS.to_owned(),
        LinkId::Chain(0) => REVERSE_STREAMS.to_owned(),
        LinkId::Chain(k) => format!("link/{k}/{direction}"),
        LinkId::Near(place) => format!("place/{place}/near/{direction}"),
        LinkId::Far(place) => format!("place/{place}/far/{direction}"),
    }
}
