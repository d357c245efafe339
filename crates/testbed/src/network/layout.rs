//! Which hosts there are, how they are joined, and whose egress a stage is.
//!
//! A plain plan is a chain: the sender is host 0, then the routers, the receiver is last. A direction's first stage belongs to the host where that
//! direction begins unless it says `router`; every further stage is the egress of the next router. There are as many routers as the longer
//! direction needs.
//!
//! A plan with places is a tree: the routers of its chain, with inner ones where a link has several stages, and for each place a left and a right
//! host behind a link of their own, all of whose stages are at routers. Hosts are numbered from left to right: the left end of a link comes first.

use super::gate::{self, Layer};
use super::links::{self, Port};
use super::TestbedError;
use crate::qdisc;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use tcpscape_path::{Direction, Host, PathSpec, QdiscSpec};
use tcpscape_plan::{LinkId, Plan, StageName, Topology};

/// A stage and its place.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Which stage of the plan it is.
    pub name: StageName,
    /// Whose egress it is: 0 is the sender.
    pub host: usize,
    /// The number of the device whose egress it is.
    pub device: i32,
    /// Its queues, outermost first.
    pub layers: Vec<Layer>,
}

/// A link between two hosts.
#[derive(Clone, Debug)]
pub struct Cable {
    /// The hosts at its left and at its right end.
    pub hosts: [usize; 2],
    /// Their devices.
    pub ports: [Port; 2],
}

/// What a host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The left host of a place.
    Left(usize),
    Router(usize),
    /// The right host of a place.
    Right(usize),
}

/// Where everything is.
#[derive(Clone, Debug)]
pub struct Layout {
    roles: Vec<Role>,
    /// The links.
    pub cables: Vec<Cable>,
    /// The link of each end.
    own_cables: BTreeMap<usize, usize>,
    /// The stages of each direction of the plan's links, in the order of their numbers.
    pub stages: Vec<Stage>,
    /// The left and the right host of each place.
    pub places: Vec<[usize; 2]>,
    /// The link in the middle of the chain that has a router at its left end; None without routers.
    pub middle: Option<usize>,
    /// Whether links branch: then neighbours are known from the start.
    pub branches: bool,
}

/// Most hosts and routers of a trial.
const MOST_HOSTS: usize = 20_000;
/// Most routers of a plain plan: the third byte of an address counts the links.
const MOST_ROUTERS: usize = 200;

/// A link of the plan between two hosts, with the inner routers that its stages need.
struct Piece<'a> {
    link: LinkId,
    paths: [&'a PathSpec; 2],
    /// Its hosts from left to right, the inner routers between its ends.
    hosts: Vec<usize>,
    /// Whether the first stage of each direction is at the host where that direction begins.
    at_ends: [bool; 2],
}

impl Layout {
    /// Places a plan's stages; names what no kernel has.
    pub fn of(plan: &Plan) -> Result<Layout, TestbedError> {
        let topology = Topology::of(plan);
        let (roles, pieces, places, middle) = if topology.is_plain() { plain(&topology)? } else { tree(plan, &topology)? };
        let mut layout = Layout {
            roles,
            cables: Vec::new(),
            own_cables: BTreeMap::new(),
            stages: Vec::new(),
            places,
            middle: None,
            branches: !topology.is_plain(),
        };
        for piece in &pieces {
            layout.add(piece, topology.shown(piece.link))?;
        }
        layout.middle = layout.cables.iter().position(|cable| Some(cable.hosts[0]) == middle && layout.leads_on(cable, &pieces));
        Ok(layout)
    }

    /// Whether a link is part of the chain, not of a place's way to it.
    fn leads_on(&self, cable: &Cable, pieces: &[Piece<'_>]) -> bool {
        let chain = pieces.iter().filter(|p| matches!(p.link, LinkId::Chain(_)));
        chain.into_iter().any(|p| cable.hosts.iter().all(|host| p.hosts.contains(host)))
    }

    /// Adds the links and stages of a piece, called `link` in results.
    fn add(&mut self, piece: &Piece<'_>, link: Option<LinkId>) -> Result<(), TestbedError> {
        let first = self.cables.len();
        for pair in piece.hosts.windows(2) {
            let number = self.cables.len();
            let ports = if self.branches { links::branching(number) } else { links::ports(number) };
            self.cables.push(Cable { hosts: [pair[0], pair[1]], ports });
            let ends: Vec<usize> = pair.iter().copied().filter(|&host| self.is_end(host)).collect();
            self.own_cables.extend(ends.into_iter().map(|host| (host, number)));
        }
        let last = piece.hosts.len() - 1;
        for direction in Direction::BOTH {
            let path = piece.paths[direction.index()];
            for (index, spec) in path.stages.iter().enumerate() {
                refuse_ours(&spec.qdisc)?;
                let steps = index + usize::from(!piece.at_ends[direction.index()]);
                let (at, cable) = match direction {
                    Direction::Forward => (steps, first + steps),
                    Direction::Reverse => (last - steps, first + last - steps - 1),
                };
                let gated = gate::needed(&path.schedule, index);
                self.stages.push(Stage {
                    name: StageName { link, direction, stage: index, kind: spec.qdisc.name() },
                    host: piece.hosts[at],
                    device: self.cables[cable].ports[direction.index()].number,
                    layers: gate::layers(&spec.qdisc, gated, &path.schedule, index),
                });
            }
        }
        Ok(())
    }

    /// How many hosts and routers there are.
    pub fn hosts(&self) -> usize {
        self.roles.len()
    }
    /// Whether a host has applications; the others forward.
    pub fn is_end(&self, host: usize) -> bool {
        !matches!(self.roles[host], Role::Router(_))
    }
    /// What a host is; of a plan with places, the left hosts are senders.
    pub fn role(&self, host: usize) -> Host {
        match self.roles[host] {
            Role::Left(_) => Host::Sender,
            Role::Router(_) => Host::Router,
            Role::Right(_) => Host::Receiver,
        }
    }
    /// A host's name for a reader: `router 2` where there are several.
    pub fn host_name(&self, host: usize) -> String {
        let several = self.roles.iter().filter(|role| matches!(role, Role::Router(_))).count() > 1;
        match self.roles[host] {
            Role::Router(number) if several => format!("router {number}"),
            Role::Left(place) if self.branches => format!("left host of place {place}"),
            Role::Right(place) if self.branches => format!("right host of place {place}"),
            Role::Left(_) => "sender".to_owned(),
            Role::Router(_) => "router".to_owned(),
            Role::Right(_) => "receiver".to_owned(),
        }
    }
    /// The links of a host, each with the host's end: 0 the left one, 1 the right one.
    pub fn cables_of(&self, host: usize) -> impl Iterator<Item = (usize, &Cable, usize)> {
        let ends = move |(i, cable): (usize, &'_ Cable)| cable.hosts.iter().position(|h| *h == host).map(|end| (i, end));
        self.cables.iter().enumerate().filter_map(move |(i, c)| ends((i, c)).map(|(i, end)| (i, c, end)))
    }
    /// The devices that a host has.
    pub fn ports_of(&self, host: usize) -> Vec<&Port> {
        // Towards the right first.
        let mut ports: Vec<(usize, &Port)> = self.cables_of(host).map(|(_, cable, end)| (end, &cable.ports[end])).collect();
        ports.sort_by_key(|(end, _)| *end);
        ports.into_iter().map(|(_, port)| port).collect()
    }
}

impl Layout {
    /// The routes of a router: the network of each host that it does not reach directly, right hosts first, and the link by which it is reached (its
    /// number, and the router's end). Where links branch, most hosts lie behind one link: that is the default route, without a network.
    pub fn routes(&self, router: usize) -> Vec<(Option<Ipv4Addr>, (usize, usize))> {
        let towards = self.towards(router);
        let far = self.places.iter().flat_map(|place| place.iter().rev()).filter_map(|&host| {
            let own = self.own_cables[&host];
            let by = towards[host].filter(|by| by.0 != own)?;
            Some((Some(self.cables[own].ports[0].address), by))
        });
        let mut routes: Vec<_> = far.collect();
        if self.branches {
            let mut behind = BTreeMap::new();
            routes.iter().for_each(|(_, by)| *behind.entry(*by).or_insert(0) += 1);
            if let Some((default, _)) = behind.into_iter().max_by_key(|&(_, hosts)| hosts) {
                routes.retain(|(_, by)| *by != default);
                routes.insert(0, (None, default));
            }
        }
        routes
    }

    /// By which link of `from`, and which end of it, each host is reached; None for itself.
    fn towards(&self, from: usize) -> Vec<Option<(usize, usize)>> {
        let mut joined = vec![Vec::new(); self.hosts()];
        for (i, cable) in self.cables.iter().enumerate() {
            for end in 0..2 {
                joined[cable.hosts[end]].push((i, end));
            }
        }
        let mut by = vec![None; self.hosts()];
        let mut open: Vec<(usize, Option<(usize, usize)>)> = vec![(from, None)];
        while let Some((host, first)) = open.pop() {
            by[host] = first;
            for &(i, end) in &joined[host] {
                let next = self.cables[i].hosts[1 - end];
                if next != from && by[next].is_none() {
                    open.push((next, first.or(Some((i, end)))));
                }
            }
        }
        by
    }
}

type Parts<'a> = (Vec<Role>, Vec<Piece<'a>>, Vec<[usize; 2]>, Option<usize>);

/// A chain between a sender and a receiver, which may have stages of their own.
fn plain<'a>(topology: &Topology<'a>) -> Result<Parts<'a>, TestbedError> {
    let (link, paths) = topology.links()[0];
    let at_ends = paths.map(|path| !begins_at_router(path));
    let routers = inner(paths, at_ends);
    if routers > MOST_ROUTERS {
        return Err(TestbedError::Unsupported(format!("path: {routers} routers are too many; at most {MOST_ROUTERS}")));
    }
    let mut roles = vec![Role::Left(0)];
    roles.extend((1..=routers).map(Role::Router));
    roles.push(Role::Right(0));
    let hosts = (0..roles.len()).collect();
    let piece = Piece { link, paths, hosts, at_ends };
    let middle = (routers > 0).then(|| 1 + (routers - 1) / 2);
    Ok((roles, vec![piece], vec![[0, routers + 1]], middle))
}

/// The chain of a plan with places, and their hosts.
fn tree<'a>(plan: &Plan, topology: &Topology<'a>) -> Result<Parts<'a>, TestbedError> {
    let mut roles = Vec::new();
    let mut routers = 0;
    let mut add_routers = |roles: &mut Vec<Role>, count: usize| {
        let first = roles.len();
        roles.extend((0..count).map(|k| Role::Router(routers + k)));
        routers += count;
        (first..first + count).collect::<Vec<_>>()
    };
    let mut near = Vec::new();
    for k in 0..plan.places.len() {
        roles.push(Role::Left(k));
        let mut hosts = vec![roles.len() - 1];
        hosts.extend(add_routers(&mut roles, inner(topology.link(LinkId::Near(k)), NEAR)));
        near.push(hosts);
    }
    let mut named = add_routers(&mut roles, 1);
    let mut pieces = Vec::new();
    for (k, &(link, paths)) in topology.chain().iter().enumerate() {
        let mut hosts = vec![named[k]];
        hosts.extend(add_routers(&mut roles, inner(paths, CHAIN) + 1));
        named.extend(hosts.last());
        pieces.push(Piece { link, paths, hosts, at_ends: CHAIN });
    }
    let middle = pieces[pieces.len() / 2].hosts[0];
    let mut places = Vec::new();
    for (k, (place, mut hosts)) in plan.places.iter().zip(near).enumerate() {
        hosts.push(named[place.enter]);
        let left = hosts[0];
        let (near, far) = (LinkId::Near(k), LinkId::Far(k));
        pieces.push(Piece { link: near, paths: topology.link(near), hosts, at_ends: NEAR });
        let paths = topology.link(far);
        let mut hosts = vec![named[place.leave]];
        hosts.extend(add_routers(&mut roles, inner(paths, FAR)));
        roles.push(Role::Right(k));
        hosts.push(roles.len() - 1);
        places.push([left, roles.len() - 1]);
        pieces.push(Piece { link: far, paths, hosts, at_ends: FAR });
    }
    if roles.len() > MOST_HOSTS {
        return Err(TestbedError::Unsupported(format!("places: {} hosts and routers are too many; at most {MOST_HOSTS}", roles.len())));
    }
    Ok((roles, pieces, places, Some(middle)))
}

/// Where the first stage of a link's directions is, between a left host and a router, two routers, a router and a right host: never at a host.
const NEAR: [bool; 2] = [false, true];
const CHAIN: [bool; 2] = [true, true];
const FAR: [bool; 2] = [true, false];

/// The routers that a link needs inside.
fn inner(paths: [&PathSpec; 2], at_ends: [bool; 2]) -> usize {
    let need = |k: usize| paths[k].stages.len().saturating_sub(usize::from(at_ends[k]));
    need(0).max(need(1))
}

fn begins_at_router(path: &PathSpec) -> bool {
    path.stages.first().is_some_and(|s| s.at == Host::Router)
}

/// `jitter` exists in the model only, `dualpi2` in kernels since 6.17; for some there are no messages here.
fn refuse_ours(spec: &QdiscSpec) -> Result<(), TestbedError> {
    match spec {
        QdiscSpec::Jitter(_) => Err(TestbedError::Unsupported(
            "jitter: the kernel has no such queue; write netem delay 25ms 8ms (with rate for order) or use --engine model or live".into(),
        )),
        QdiscSpec::Dualpi2(_) => Err(TestbedError::Unsupported(
            "dualpi2: Linux has it since 6.17, and it cannot be set up here; use --engine model or live, or fq_codel with ecn".into(),
        )),
        other if !qdisc::knows(other) => {
            Err(TestbedError::Unsupported(format!("{}: this queue cannot be set up here; use --engine model or live", other.name())))
        }
        other => other.child().map_or(Ok(()), refuse_ours),
    }
}
