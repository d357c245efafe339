//! Hosts on one Ethernet whose path a program makes, which copies frames between two devices.
//!
//! ```text
//! sender fwd 10.77.1.2/24 ── veth ── rev  middle  fwd ── veth ── rev 10.77.1.3/24 receiver
//! ```
//! There may be a router between the sender and the middle, and further hosts at the receiver's side ([`Others`]), which one more forwarding
//! namespace joins to the middle; whoever sends to an address does not notice:
//!
//! ```text
//! sender fwd ── lan  router 10.77.1.1  wan ── rev  middle  fwd ── rev  exchange  fwd ── rev receiver
//!                                                                                fwd0 ── rev 10.77.1.4/24 host 0, …
//! ```
//!
//! What it is: network namespaces with veth pairs; the middle has no address and forwards nothing by itself. Nothing waits
//! in it: the devices have no queue of their own. Forwarding namespaces have a route to each address, and everybody the hardware addresses of all.
//! Source: veth(4), rtnetlink(7). How it differs from [`super::Testbed`]: all hosts are neighbours, so only a router decrements a TTL, and
//! nothing outside these namespaces is written, so that a user namespace suffices.

mod tree;

use super::host::{wait_until_ready, Host};
use super::links::Port;
use super::offload::Offload;
use super::{faults, io_at, links, Scope, Settings, TestbedError};
use crate::netlink::Batch;
use crate::qdisc::{self, Extra, Place};
use crate::sys;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use tcpscape_base::Duration;
use tcpscape_path::queue::FqSpec;
use tcpscape_path::QdiscSpec;
use tcpscape_plan::Plan;
pub use tree::{host_address, End, Others, MOST_HOSTS, ROUTER, ROUTER_DEVICES};
use tree::{Role, Tree};

/// Both hosts are in one network of so many bits.
const PREFIX: u8 = 24;

/// Packets that no queue of the middle's ever holds.
const UNBOUNDED: u32 = 1 << 20;

/// A member and its devices' numbers and names.
struct Member {
    role: Role,
    host: Host,
    devices: Vec<(i32, String)>,
    /// Whether super-packets may pass its devices.
    offload: bool,
}

impl Member {
    fn request(&mut self, batch: &mut Batch) -> Result<(), TestbedError> {
        let part = format!("{}'s link, address or route", self.role.name());
        self.host.socket.request(batch).map_err(|error| TestbedError::Refused { part, error })
    }
}

/// The hosts; dropping it takes them down unless somebody else is in their namespaces.
pub struct Wire {
    members: Vec<Member>,
    unset: Vec<String>,
    lost_before: u64,
}

impl Wire {
    /// The middle's device towards the sender, and towards the receiver.
    pub const MIDDLE: [&'static str; 2] = ["rev", "fwd"];

    /// Sender, middle and receiver, joined by veth pairs with the plan's MTU, offloads and neighbours, ready to send; `settings` go to
    /// both ends. The calling thread returns to the namespace in which it was.
    pub fn build(plan: &Plan, settings: &BTreeMap<String, String>) -> Result<Wire, TestbedError> {
        Wire::with(plan, settings, Others::default())
    }

    /// The same with others, which have the settings of the ends.
    pub fn with(plan: &Plan, settings: &BTreeMap<String, String>, others: Others) -> Result<Wire, TestbedError> {
        let tree = Tree::of(others);
        let mut wire = Wire::hosts(plan, settings, &tree)?;
        wire.join(plan, &tree)?;
        for member in &mut wire.members {
            wait_until_ready(std::slice::from_mut(&mut member.host))?;
        }
        Ok(wire)
    }

    /// The hosts without a device but loopback.
    fn hosts(plan: &Plan, settings: &BTreeMap<String, String>, tree: &Tree) -> Result<Wire, TestbedError> {
        let settings = Settings { values: settings, scope: Scope::Namespaces };
        let home = sys::namespace().map_err(io_at("network namespace"))?;
        let made = populate(&settings, plan.offload, &tree.roles);
        let returned = sys::enter(home.as_fd()).map_err(io_at("return to the first namespace"));
        let (members, elsewhere) = made?;
        returned?;
        let (_, mut unset) = settings.write_elsewhere(&elsewhere)?;
        unset.extend(members.iter().find_map(|member| member.host.ipv6.clone()));
        let lost_before = faults::lost_on_cpus();
        Ok(Wire { members, unset, lost_before })
    }

    /// The veth pairs, and what each host knows of the others.
    fn join(&mut self, plan: &Plan, tree: &Tree) -> Result<(), TestbedError> {
        let namespaces: Vec<i32> = self.members.iter().map(|member| member.host.namespace.as_raw_fd()).collect();
        let introduced = !plan.arp || tree.roles.iter().any(|role| role.forwards());
        let mut batch = Batch::new();
        for (i, member) in self.members.iter_mut().enumerate() {
            batch.clear();
            for (port, cable, end) in tree.ports(i) {
                if end == 0 {
                    links::make(&mut batch, &cable.ports, plan.mtu, namespaces[cable.members[1]]);
                }
                links::raise(&mut batch, port.number, member.role.forwards());
                member.devices.push((port.number, port.name.clone()));
            }
            for (port, cable, end) in tree.ports(i).filter(|_| member.role != Role::Middle) {
                let (addresses, hardware) = tree.beyond(cable, end);
                know(&mut batch, member.role, port, &addresses);
                if introduced {
                    addresses.iter().for_each(|&address| links::neighbour(&mut batch, port.number, address, hardware));
                }
            }
            member.request(&mut batch)?;
            let names: Vec<&str> = member.devices.iter().map(|(_, name)| name.as_str()).collect();
            member.host.cut_unseen(&names)?;
            if !plan.offload {
                member.host.without_offload(&names)?;
            }
        }
        Ok(())
    }

    fn namespace(&self, role: Role) -> Option<BorrowedFd<'_>> {
        self.members.iter().find(|member| member.role == role).map(|member| member.host.namespace.as_fd())
    }
    /// The sender's namespace.
    pub fn sender(&self) -> BorrowedFd<'_> {
        self.namespace(Role::End(End::Sender)).expect("it is always there")
    }
    /// The middle's namespace: there the program finds the devices [`Wire::MIDDLE`].
    pub fn middle(&self) -> BorrowedFd<'_> {
        self.namespace(Role::Middle).expect("it is always there")
    }
    /// The receiver's namespace.
    pub fn receiver(&self) -> BorrowedFd<'_> {
        self.namespace(Role::End(End::Receiver)).expect("it is always there")
    }
    /// The router's namespace, where there is one: its devices are [`ROUTER_DEVICES`].
    pub fn router(&self) -> Option<BorrowedFd<'_>> {
        self.namespace(Role::Router)
    }
    /// The namespace of a further host, where there is such a one.
    pub fn host(&self, host: usize) -> Option<BorrowedFd<'_>> {
        self.namespace(Role::Host(host))
    }
    /// Lets super-packets leave the sender's device whole, as they pass a real host's own queue: the program cuts them behind it.
    pub fn pass_whole(&mut self) -> Result<(), TestbedError> {
        let member = &mut self.members[0];
        for offload in [Offload::Tso, Offload::Gso] {
            offload.set(member.host.socket.as_fd(), &member.devices[0].1, true).map_err(io_at("switching offloads on"))?;
        }
        member.offload = true;
        Ok(())
    }
    /// Lets the program say when a frame is to leave the middle (socket(7) SO_TXTIME): its devices get a queue that waits for that, exactly.
    pub fn wait_for_departures(&mut self) -> Result<(), TestbedError> {
        let fq = FqSpec {
            limit: Some(UNBOUNDED),
            flow_limit: Some(UNBOUNDED),
            timer_slack: Some(Duration(1)),
            horizon: Some(Duration::secs(60)),
            ..FqSpec::default()
        };
        let middle = self.members.iter_mut().find(|member| member.role == Role::Middle).expect("it is always there");
        let mut batch = Batch::new();
        for (device, _) in &middle.devices {
            qdisc::encode(&mut batch, &QdiscSpec::Fq(fq.clone()), Place::at(*device, 0, true), Extra::default());
        }
        middle.request(&mut batch)
    }
    /// Settings that were asked for and are not so: one sentence each.
    pub fn unset(&self) -> &[String] {
        &self.unset
    }
    /// What the hosts and their devices did that nobody asked for: one sentence each, none if all is well.
    pub fn faults(&mut self) -> Result<Vec<String>, TestbedError> {
        let mut found = Vec::new();
        for member in &mut self.members {
            let name = member.role.name();
            let devices: Vec<(i32, &str)> = member.devices.iter().map(|(n, name)| (*n, name.as_str())).collect();
            member.host.faults(&name, &devices, member.offload, &mut found)?;
        }
        faults::backlogs(self.lost_before, Scope::Namespaces, &mut found);
        Ok(found)
    }
}

/// Makes the hosts and leaves the thread in the last; also gives the settings that they do not have.
fn populate<'a>(settings: &Settings<'a>, offload: bool, roles: &[Role]) -> Result<(Vec<Member>, Vec<&'a str>), TestbedError> {
    let (mut members, mut elsewhere, mut batch) = (Vec::new(), Vec::new(), Batch::new());
    for &role in roles {
        let mut member = Member { role, host: Host::new()?, devices: Vec::new(), offload };
        if role.address().is_some() {
            elsewhere = settings.write()?;
        }
        batch.clear();
        links::up(&mut batch, links::LOOPBACK);
        member.request(&mut batch)?;
        members.push(member);
    }
    Ok((members, elsewhere))
}

/// A member's address on a device, and its ways to those beyond it: an end has a way to everywhere, what forwards one to each.
fn know(batch: &mut Batch, role: Role, port: &Port, beyond: &[Ipv4Addr]) {
    if role.forwards() {
        // The router's address is that of its device towards the path alone, from which a source is chosen for all.
        let own = role.address().filter(|_| port.name == ROUTER_DEVICES[1]);
        own.into_iter().for_each(|own| links::assign(batch, port.number, own, 32));
        beyond.iter().for_each(|&to| links::route_to(batch, to, port.number, None));
    } else if let Some(own) = role.address() {
        let other = if role == Role::End(End::Sender) { End::Receiver } else { End::Sender };
        links::assign(batch, port.number, own, PREFIX);
        links::route_by(batch, None, other.address(), port.number);
    }
}
