//! Two hosts on one Ethernet whose path a program makes, which copies frames between two devices.
//!
//! ```text
//! sender fwd 10.77.1.2/24 ── veth ── rev  middle  fwd ── veth ── rev 10.77.1.3/24 receiver
//! ```
//!
//! What it is: three network namespaces with two veth pairs; the middle has no address and forwards nothing by itself. Nothing waits
//! in it: the devices have no queue of their own.
//! Source: veth(4), rtnetlink(7). How it differs from [`super::Testbed`]: all hosts are neighbours, so no router decrements a TTL, and
//! nothing outside these namespaces is written, so that a user namespace suffices.

use super::host::{wait_until_ready, Host};
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
use tcpscape_path::{Direction, QdiscSpec};
use tcpscape_plan::Plan;

/// Both hosts are in one network of so many bits.
const PREFIX: u8 = 24;

/// Packets that no queue of the middle's ever holds.
const UNBOUNDED: u32 = 1 << 20;

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
    fn other(self) -> End {
        match self {
            End::Sender => End::Receiver,
            End::Receiver => End::Sender,
        }
    }
    /// Its device in the direction of the other end, where a veth pair joins them.
    fn device(self) -> Direction {
        match self {
            End::Sender => Direction::Forward,
            End::Receiver => Direction::Reverse,
        }
    }
    /// The hardware address of that device.
    fn hardware(self) -> [u8; 6] {
        match self {
            End::Sender => links::hardware(0, Direction::Forward),
            End::Receiver => links::hardware(1, Direction::Reverse),
        }
    }
}

/// A host, which is the middle where it is no end, and its devices' numbers and names.
struct Member {
    end: Option<End>,
    host: Host,
    devices: Vec<(i32, String)>,
    /// Whether super-packets may pass its devices.
    offload: bool,
}

impl Member {
    fn name(&self) -> &'static str {
        self.end.map_or("middle", End::name)
    }
    fn request(&mut self, batch: &mut Batch) -> Result<(), TestbedError> {
        let part = format!("{}'s link, address or route", self.name());
        self.host.socket.request(batch).map_err(|error| TestbedError::Refused { part, error })
    }
}

/// The hosts; dropping it takes them down unless somebody else is in their namespaces.
pub struct Wire {
    /// Sender, middle, receiver.
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
        let mut wire = Wire::hosts(plan, settings)?;
        wire.join(plan)?;
        for member in &mut wire.members {
            wait_until_ready(std::slice::from_mut(&mut member.host))?;
        }
        Ok(wire)
    }

    /// The hosts without a device but loopback.
    fn hosts(plan: &Plan, settings: &BTreeMap<String, String>) -> Result<Wire, TestbedError> {
        let settings = Settings { values: settings, scope: Scope::Namespaces };
        let home = sys::namespace().map_err(io_at("network namespace"))?;
        let made = populate(&settings, plan.offload);
        let returned = sys::enter(home.as_fd()).map_err(io_at("return to the first namespace"));
        let (members, elsewhere) = made?;
        returned?;
        let (_, mut unset) = settings.write_elsewhere(&elsewhere)?;
        unset.extend(members.iter().find_map(|member| member.host.ipv6.clone()));
        let lost_before = faults::lost_on_cpus();
        Ok(Wire { members, unset, lost_before })
    }

    /// The veth pairs, and what each host knows of its neighbour.
    fn join(&mut self, plan: &Plan) -> Result<(), TestbedError> {
        let last = self.members.len() - 1;
        let mut batch = Batch::new();
        for i in 0..=last {
            batch.clear();
            let far = self.members.get(i + 1).map(|m| m.host.namespace.as_raw_fd());
            let mut devices = Vec::new();
            if let Some(far) = far {
                links::make(&mut batch, &links::ports(i), plan.mtu, far);
                devices.push(Direction::Forward);
            }
            if i > 0 {
                links::up(&mut batch, links::device(Direction::Reverse));
                devices.push(Direction::Reverse);
            }
            if let Some(end) = self.members[i].end {
                let number = links::device(end.device());
                address(&mut batch, end, number);
                if !plan.arp {
                    links::neighbour(&mut batch, number, end.other().address(), end.other().hardware());
                }
            }
            let member = &mut self.members[i];
            member.request(&mut batch)?;
            let names: Vec<&str> = devices.iter().map(|&d| links::device_name(d)).collect();
            member.host.cut_unseen(&names)?;
            if !plan.offload {
                member.host.without_offload(&names)?;
            }
            member.devices = devices.iter().map(|&d| (links::device(d), links::device_name(d).to_owned())).collect();
        }
        Ok(())
    }

    /// The sender's namespace.
    pub fn sender(&self) -> BorrowedFd<'_> {
        self.members[0].host.namespace.as_fd()
    }
    /// The middle's namespace: there the program finds the devices [`Wire::MIDDLE`].
    pub fn middle(&self) -> BorrowedFd<'_> {
        self.members[1].host.namespace.as_fd()
    }
    /// The receiver's namespace.
    pub fn receiver(&self) -> BorrowedFd<'_> {
        self.members[2].host.namespace.as_fd()
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
        let middle = &mut self.members[1];
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
            let name = member.name();
            let devices: Vec<(i32, &str)> = member.devices.iter().map(|(n, name)| (*n, name.as_str())).collect();
            member.host.faults(name, &devices, member.offload, &mut found)?;
        }
        faults::backlogs(self.lost_before, Scope::Namespaces, &mut found);
        Ok(found)
    }
}

/// Makes the hosts and leaves the thread in the last; also gives the settings that they do not have.
fn populate<'a>(settings: &Settings<'a>, offload: bool) -> Result<(Vec<Member>, Vec<&'a str>), TestbedError> {
    let (mut members, mut elsewhere, mut batch) = (Vec::new(), Vec::new(), Batch::new());
    for end in [Some(End::Sender), None, Some(End::Receiver)] {
        let mut member = Member { end, host: Host::new()?, devices: Vec::new(), offload };
        if end.is_some() {
            elsewhere = settings.write()?;
        }
        batch.clear();
        links::up(&mut batch, links::LOOPBACK);
        member.request(&mut batch)?;
        members.push(member);
    }
    Ok((members, elsewhere))
}

/// An end's address on its device, and its way to everywhere.
fn address(batch: &mut Batch, end: End, number: i32) {
    links::assign(batch, number, end.address(), PREFIX);
    links::route_by(batch, None, end.other().address(), number);
}
