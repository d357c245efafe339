//! Who is on a [`super::Wire`], what joins them, and who is reached through which device: a tree of veth pairs around the middle.

use crate::network::links::{self, Port};
use std::net::Ipv4Addr;
use tcpscape_path::Direction;

/// One of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Where flows begin.
    Sender,
    /// Where they end.
    Receiver,
}

impl End {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            End::Sender => "sender",
            End::Receiver => "receiver",
        }
    }
    /// Its address.
    pub fn address(self) -> Ipv4Addr {
        links::address(0, self.device())
    }
    /// Its device in the direction of the other end, where a veth pair joins them.
    fn device(self) -> Direction {
        match self {
            End::Sender => Direction::Forward,
            End::Receiver => Direction::Reverse,
        }
    }
}

/// What there is besides the two ends and the middle.
#[derive(Clone, Copy, Debug, Default)]
pub struct Others {
    /// Whether a router stands between the sender and the middle.
    pub router: bool,
    /// Further hosts at the receiver's side.
    pub hosts: usize,
}

/// Address of the router.
pub const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 77, 1, 1);
/// The router's device towards the sender, and towards the middle.
pub const ROUTER_DEVICES: [&str; 2] = ["lan", "wan"];
/// The most further hosts.
pub const MOST_HOSTS: usize = 100;
/// Last part of the first one's address.
const FIRST_HOST: u8 = 4;

/// Address of a further host.
pub fn host_address(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 1, FIRST_HOST + host.min(MOST_HOSTS) as u8)
}

/// Who a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    End(End),
    Router,
    Middle,
    /// Forwards between the middle, the receiver and the further hosts.
    Exchange,
    Host(usize),
}

impl Role {
    pub fn name(self) -> String {
        match self {
            Role::End(end) => end.name().into(),
            Role::Router => "router".into(),
            Role::Middle => "middle".into(),
            Role::Exchange => "exchange".into(),
            Role::Host(host) => format!("host {host}"),
        }
    }
    pub fn address(self) -> Option<Ipv4Addr> {
        match self {
            Role::End(end) => Some(end.address()),
            Role::Router => Some(ROUTER),
            Role::Host(host) => Some(host_address(host)),
            Role::Middle | Role::Exchange => None,
        }
    }
    pub fn forwards(self) -> bool {
        matches!(self, Role::Router | Role::Exchange)
    }
}

/// A veth pair: the numbers of the two members, the one on the sender's side first, and its devices there.
#[derive(Clone, Debug)]
pub(super) struct Cable {
    pub members: [usize; 2],
    pub ports: [Port; 2],
}

/// Who there is, and what joins them: a tree.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub roles: Vec<Role>,
    cables: Vec<Cable>,
}

impl Tree {
    pub fn of(others: Others) -> Tree {
        let mut roles = vec![Role::End(End::Sender)];
        roles.extend(others.router.then_some(Role::Router));
        roles.push(Role::Middle);
        roles.extend((others.hosts > 0).then_some(Role::Exchange));
        roles.push(Role::End(End::Receiver));
        let trunk = roles.len() - 1;
        let mut tree = Tree { roles, cables: Vec::new() };
        for near in 0..trunk {
            tree.join(near, near + 1);
        }
        for host in 0..others.hosts.min(MOST_HOSTS) {
            tree.roles.push(Role::Host(host));
            tree.join(trunk - 1, tree.roles.len() - 1);
        }
        tree
    }

    /// Adds the veth pair between two members.
    fn join(&mut self, near: usize, far: usize) {
        let mut ports = links::ports(self.cables.len());
        let [lan, wan] = ROUTER_DEVICES;
        if self.roles[near] == Role::Router {
            ports[0].name = wan.into();
        } else if self.roles[far] == Role::Router {
            ports[1].name = lan.into();
        } else if let Role::Host(host) = self.roles[far] {
            ports[0].number = links::device(Direction::Reverse) + 1 + host as i32;
            ports[0].name = format!("{}{host}", ports[0].name);
        }
        self.cables.push(Cable { members: [near, far], ports });
    }

    /// A member's devices, each with its cable and which end of it that is.
    pub fn ports(&self, member: usize) -> impl Iterator<Item = (&Port, &Cable, usize)> {
        self.cables.iter().filter_map(move |cable| {
            let end = cable.members.iter().position(|&m| m == member)?;
            Some((&cable.ports[end], cable, end))
        })
    }

    /// Who is reached through a cable from its end `end`: their addresses, and the hardware address of the first of them that is not the middle.
    pub fn beyond(&self, cable: &Cable, end: usize) -> (Vec<Ipv4Addr>, [u8; 6]) {
        let other = cable.members[1 - end];
        let further = self.ports(other).filter(|(_, next, _)| next.members != cable.members);
        let further: Vec<_> = further.map(|(_, next, end)| self.beyond(next, end)).collect();
        let first = match (self.roles[other], further.first()) {
            (Role::Middle, Some((_, hardware))) => *hardware,
            _ => cable.ports[1 - end].hardware,
        };
        (self.roles[other].address().into_iter().chain(further.into_iter().flat_map(|(addresses, _)| addresses)).collect(), first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who is told which hardware address for whom: `sender: 10.77.1.3 at 02:77:00:00:02:03`.
    fn neighbours(others: Others) -> Vec<String> {
        let tree = Tree::of(others);
        let mut lines = Vec::new();
        for (i, role) in tree.roles.iter().enumerate().filter(|(_, role)| **role != Role::Middle) {
            for (port, cable, end) in tree.ports(i) {
                let (addresses, [.., link, last]) = tree.beyond(cable, end);
                let addresses: Vec<String> = addresses.iter().map(|a| a.octets()[3].to_string()).collect();
                lines.push(format!("{} {}: {} at {link}/{last}", role.name(), port.name, addresses.join(" ")));
            }
        }
        lines
    }

    #[test]
    fn two_ends_are_neighbours() {
        assert_eq!(neighbours(Others::default()), ["sender fwd: 3 at 2/3", "receiver rev: 2 at 1/2"]);
    }

    #[test]
    fn everybody_is_reached_through_the_router_and_the_exchange() {
        let expected = [
            "sender fwd: 1 3 4 5 at 1/3",
            "router lan: 2 at 1/2",
            "router wan: 3 4 5 at 3/3",
            "exchange rev: 1 2 at 2/2",
            "exchange fwd: 3 at 4/3",
            "exchange fwd0: 4 at 5/3",
            "exchange fwd1: 5 at 6/3",
            "receiver rev: 1 2 4 5 at 4/2",
            "host 0 rev: 1 2 3 5 at 5/2",
            "host 1 rev: 1 2 3 4 at 6/2",
        ];
        assert_eq!(neighbours(Others { router: true, hosts: 2 }), expected);
    }
}
