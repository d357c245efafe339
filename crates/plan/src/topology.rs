//! The network of a plan as one uniform thing: links, each with two directions, and the directions that the packets of a place pass.
//!
//! The links are numbered: those of the chain from left to right, then the near and the far link of each place. Link 0 of the chain is
//! [`Plan::forward`] and [`Plan::reverse`]; in a plan without places it is the only one, and packets pass it from host to host. Each direction has a
//! number too, twice that of its link, and one more where it is the reverse one. docs/models/methods/topology.md.

use crate::plan::Plan;
use serde::{Serialize, Serializer};
use std::fmt;
use tcpscape_path::{Direction, PathSpec};

/// What samples of queues call the own queues of the left host, where hosts have any. The directions of links follow, from 1 on.
pub const LEFT_HOST: u32 = 0;
/// And those of the right host, which sends data, in a plan without places.
pub const RIGHT_HOST: u32 = 3;

/// A link of a plan's network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkId {
    /// That number of the chain.
    Chain(usize),
    /// The left host's of that place.
    Near(usize),
    /// The right host's.
    Far(usize),
}

impl fmt::Display for LinkId {
    /// `chain/0`, `near/2`, `far/2`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkId::Chain(i) => write!(f, "chain/{i}"),
            LinkId::Near(place) => write!(f, "near/{place}"),
            LinkId::Far(place) => write!(f, "far/{place}"),
        }
    }
}

impl Serialize for LinkId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Which stage of a plan it is.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct StageName {
    /// The link that it is part of; none in a plan without places.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkId>,
    /// Which of its directions.
    #[serde(rename = "where")]
    pub direction: Direction,
    /// Number of the stage in its direction.
    pub stage: usize,
    /// tc's name of its queue.
    pub kind: &'static str,
}

impl fmt::Display for StageName {
    /// `forward stage 0 (netem)`, in a plan with places `near/2 forward stage 0 (netem)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.link.iter().try_for_each(|link| write!(f, "{link} "))?;
        write!(f, "{} stage {} ({})", self.direction, self.stage, self.kind)
    }
}

/// One direction of a link.
#[derive(Clone, Copy, Debug)]
pub struct Way<'a> {
    /// The link.
    pub link: LinkId,
    /// Which of its directions.
    pub direction: Direction,
    /// The stages that packets pass, and how they change.
    pub path: &'a PathSpec,
}

impl Way<'_> {
    /// What users call it: a field of their plan.
    pub fn field(&self) -> String {
        match self.link {
            LinkId::Chain(0) => self.direction.to_string(),
            LinkId::Chain(k) => format!("links[{}].{}", k - 1, self.direction),
            LinkId::Near(k) => format!("places[{k}].near.{}", self.direction),
            LinkId::Far(k) => format!("places[{k}].far.{}", self.direction),
        }
    }
}

/// The links of a plan's network and the ways through them.
#[derive(Clone, Debug)]
pub struct Topology<'a> {
    plan: &'a Plan,
    links: Vec<(LinkId, [&'a PathSpec; 2])>,
}

impl<'a> Topology<'a> {
    /// Of a plan.
    pub fn of(plan: &'a Plan) -> Topology<'a> {
        let further = plan.links.iter().zip(1..).map(|(link, k)| (LinkId::Chain(k), [&link.forward, &link.reverse]));
        let places = plan.places.iter().enumerate().flat_map(|(k, place)| {
            [(LinkId::Near(k), &place.near), (LinkId::Far(k), &place.far)].map(|(id, link)| (id, [&link.forward, &link.reverse]))
        });
        let first = (LinkId::Chain(0), plan.paths());
        Topology { plan, links: std::iter::once(first).chain(further).chain(places).collect() }
    }

    /// Whether the plan has no places: the hosts are at the ends of its only link, and stages may be their own queues.
    pub fn is_plain(&self) -> bool {
        self.plan.places.is_empty()
    }

    /// The links, in the order of their numbers, each with its forward and its reverse direction.
    pub fn links(&self) -> &[(LinkId, [&'a PathSpec; 2])] {
        &self.links
    }

    /// The links of the chain.
    pub fn chain(&self) -> &[(LinkId, [&'a PathSpec; 2])] {
        &self.links[..=self.plan.links.len()]
    }

    /// Both directions of a link.
    pub fn link(&self, id: LinkId) -> [&'a PathSpec; 2] {
        self.links[self.position(id)].1
    }

    /// The link's name in results; none in a plan without places, which has no other.
    pub fn shown(&self, id: LinkId) -> Option<LinkId> {
        (!self.is_plain()).then_some(id)
    }

    /// The number of the direction of a link that a stage is in.
    pub fn number_of(&self, stage: &StageName) -> usize {
        self.number(stage.link.unwrap_or(LinkId::Chain(0)), stage.direction)
    }

    /// The directions of all links, in the order of their numbers.
    pub fn ways(&self) -> impl Iterator<Item = Way<'a>> + '_ {
        self.links
            .iter()
            .flat_map(|&(link, paths)| Direction::BOTH.map(|direction| Way { link, direction, path: paths[direction.index()] }))
    }

    /// The direction of a link with this number.
    pub fn way(&self, number: usize) -> Way<'a> {
        let ((link, paths), direction) = (self.links[number / 2], Direction::BOTH[number % 2]);
        Way { link, direction, path: paths[direction.index()] }
    }

    /// The number of a direction of a link.
    pub fn number(&self, link: LinkId, direction: Direction) -> usize {
        2 * self.position(link) + direction.index()
    }

    /// What samples of queues call a direction of a link.
    pub fn pipe(number: usize) -> u32 {
        number as u32 + 1
    }

    /// The directions of links, by their numbers, that data of a flow between the hosts of a place pass, and those of their ACKs. Data that travel `up`
    /// go from the right host to the left one.
    pub fn route(&self, place: usize, up: bool) -> [Vec<usize>; 2] {
        let ends = self.plan.places.get(place);
        let links = ends.map_or(vec![LinkId::Chain(0)], |ends| {
            let chain = (ends.enter..ends.leave).map(LinkId::Chain);
            std::iter::once(LinkId::Near(place)).chain(chain).chain([LinkId::Far(place)]).collect()
        });
        let down = links.iter().map(|&link| self.number(link, Direction::Forward)).collect();
        let against = links.iter().rev().map(|&link| self.number(link, Direction::Reverse)).collect();
        if up {
            [against, down]
        } else {
            [down, against]
        }
    }

    fn position(&self, id: LinkId) -> usize {
        let chain = self.plan.links.len() + 1;
        match id {
            LinkId::Chain(k) => k,
            LinkId::Near(place) => chain + 2 * place,
            LinkId::Far(place) => chain + 2 * place + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Links 0 and 1 and two places: data of the second one travel over link 1 alone.
    #[test]
    fn a_route_passes_the_near_link_the_chain_and_the_far_link() {
        let json = r#"{"duration_ns": 1, "flows": [], "links": [{}], "places": [{"enter": 0, "leave": 2}, {"enter": 1, "leave": 2}]}"#;
        let plan = Plan::from_json(json).unwrap();
        let topology = Topology::of(&plan);
        let names = |place, up| topology.route(place, up).map(|way| way.into_iter().map(|n| topology.way(n).field()).collect::<Vec<_>>());
        let down = ["places[0].near.forward", "forward", "links[0].forward", "places[0].far.forward"];
        let back = ["places[0].far.reverse", "links[0].reverse", "reverse", "places[0].near.reverse"];
        assert_eq!(names(0, false), [down.to_vec(), back.to_vec()]);
        assert_eq!(names(0, true), [back.to_vec(), down.to_vec()]);
        assert_eq!(names(1, false)[0], ["places[1].near.forward", "links[0].forward", "places[1].far.forward"]);
    }

    #[test]
    fn each_direction_has_the_number_of_its_place() {
        let json = r#"{"duration_ns": 1, "flows": [], "links": [{}, {}], "places": [{"enter": 0, "leave": 3}, {"enter": 1, "leave": 2}]}"#;
        let plan = Plan::from_json(json).unwrap();
        let topology = Topology::of(&plan);
        for (number, way) in topology.ways().enumerate() {
            assert_eq!(topology.number(way.link, way.direction), number);
            assert_eq!(topology.way(number).field(), way.field());
        }
        assert_eq!(topology.ways().count(), 14);
        assert_eq!(topology.shown(LinkId::Far(1)).map(|link| link.to_string()), Some("far/1".to_owned()));
    }
}
