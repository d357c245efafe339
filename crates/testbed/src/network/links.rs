//! The messages that make a host's devices, addresses and routes. Source: rtnetlink(7), veth(4).
//!
//! A link joins two hosts, whose [`Port`]s are a network of two. Link i of a path without branches is 10.77.(i + 1).2 and .3, and devices have the
//! same names and numbers on every host ([`device`]), so nothing has to be looked up; where links branch, each has numbers of its own ([`branching`]).

use crate::netlink::{attribute, text_of, u32_at, Batch, Message, NetlinkError, Socket, CHANGE, CREATE, REPLACE};
use netlink_packet_core::Emitable;
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{
    AfSpecInet, AfSpecUnspec, InetDevConf, InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkHeader, LinkInfo, LinkMessage, State,
};
use netlink_packet_route::neighbour::{NeighbourAttribute, NeighbourMessage, NeighbourState};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::AddressFamily;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::RawFd;
use tcpscape_path::Direction;

/// Attributes of a link that are read. Source: linux/if_link.h.
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_OPERSTATE: u16 = 16;
/// Loopback's number in every namespace.
pub const LOOPBACK: i32 = 1;
/// The two ends of a link are a network of 31 bits (RFC 3021).
const PREFIX: u8 = 31;

/// The number of the device in this direction, the same on every host; a kernel that adds devices to every new namespace, as some
/// tunnels do, gives those the next small numbers.
pub fn device(direction: Direction) -> i32 {
    match direction {
        Direction::Forward => 1002,
        Direction::Reverse => 1003,
    }
}

/// And its name.
pub fn device_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => "fwd",
        Direction::Reverse => "rev",
    }
}

/// The address of link `link`'s end that a device in `direction` is: `fwd` is its near end, `rev` its far end.
pub fn address(link: usize, direction: Direction) -> Ipv4Addr {
    let end = if direction == Direction::Forward { 2 } else { 3 };
    Ipv4Addr::new(10, 77, link as u8 + 1, end)
}

/// Its hardware address.
pub fn hardware(link: usize, direction: Direction) -> [u8; 6] {
    let end = if direction == Direction::Forward { 2 } else { 3 };
    [0x02, 0x77, 0, 0, link as u8 + 1, end]
}

/// One end of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// The device's number on its host.
    pub number: i32,
    /// The device's name.
    pub name: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// Its hardware address.
    pub hardware: [u8; 6],
}

/// The near and the far end of link `link` of a path without branches.
pub fn ports(link: usize) -> [Port; 2] {
    Direction::BOTH.map(|direction| Port {
        number: device(direction),
        name: device_name(direction).to_owned(),
        address: address(link, direction),
        hardware: hardware(link, direction),
    })
}

/// The near and the far end of link `link` of a network with branches: numbers and names differ on every host, addresses are pairs from 10.128.0.0 on.
pub fn branching(link: usize) -> [Port; 2] {
    Direction::BOTH.map(|direction| {
        let end = 2 * link as u32 + direction.index() as u32;
        let [_, high, middle, low] = end.to_be_bytes();
        Port {
            number: device(Direction::Forward) + end as i32,
            name: format!("{}{link}", device_name(direction)),
            address: Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 128, 0, 0)) + end),
            hardware: [0x02, 0x78, 0, high, middle, low],
        }
    })
}

/// A message about a device; `up` brings it up.
fn about(number: i32, up: bool) -> LinkMessage {
    let mut link = LinkMessage::default();
    link.header.index = number as u32;
    if up {
        (link.header.flags, link.header.change_mask) = (LinkFlags::Up, LinkFlags::Up);
    }
    link
}

/// A device that is to be made.
fn described(port: &Port, mtu: u32, up: bool) -> LinkMessage {
    let mut message = about(port.number, up);
    message.attributes =
        vec![LinkAttribute::IfName(port.name.clone()), LinkAttribute::Mtu(mtu), LinkAttribute::Address(port.hardware.to_vec())];
    message
}

/// Makes a link from the near host: its own end, up, and the far end in the namespace `far`.
pub fn make(b: &mut Batch, ports: &[Port; 2], mtu: u32, far: RawFd) {
    let mut peer = described(&ports[1], mtu, false);
    peer.attributes.push(LinkAttribute::NetNsFd(far));
    let mut near = described(&ports[0], mtu, true);
    let info = vec![LinkInfo::Kind(InfoKind::Veth), LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer)))];
    near.attributes.push(LinkAttribute::LinkInfo(info));
    b.push(Message::NewLink(near), CREATE);
}

/// Brings a device up, and lets it forward.
pub fn raise(b: &mut Batch, number: i32, forwarding: bool) {
    let mut link = about(number, true);
    if forwarding {
        let mut settings = InetDevConf::default();
        settings.forwarding = 1;
        link.attributes = vec![LinkAttribute::AfSpecUnspec(vec![AfSpecUnspec::Inet(vec![AfSpecInet::DevConfRequest(settings)])])];
    }
    b.push(Message::NewLink(link), CHANGE);
}

/// Brings a device up that is there already, whoever made it.
pub fn up(b: &mut Batch, number: i32) {
    b.push(Message::NewLink(about(number, true)), CHANGE);
}

/// Gives a device its address on its link.
pub fn name(b: &mut Batch, port: &Port) {
    assign(b, port.number, port.address, PREFIX);
}

/// Gives a device an address in a network of `bits` bits; one of version 6 is there at once, without a search for duplicates.
pub fn assign(b: &mut Batch, number: i32, address: impl Into<IpAddr>, bits: u8) {
    let address = address.into();
    let mut message = AddressMessage::default();
    message.header.prefix_len = bits;
    message.header.index = number as u32;
    (message.header.family, message.header.flags) = match address {
        IpAddr::V4(_) => (AddressFamily::Inet, AddressHeaderFlags::empty()),
        IpAddr::V6(_) => (AddressFamily::Inet6, AddressHeaderFlags::Nodad),
    };
    message.attributes = vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
    b.push(Message::NewAddress(message), CREATE);
}

/// A route by a gateway on a device: to the network that begins at `to`, or to everywhere.
pub fn route_by(b: &mut Batch, to: Option<Ipv4Addr>, gateway: Ipv4Addr, number: i32) {
    let mut message = RouteMessage::default();
    message.header = RouteHeader {
        address_family: AddressFamily::Inet,
        destination_prefix_length: if to.is_some() { PREFIX } else { 0 },
        table: RouteHeader::RT_TABLE_MAIN,
        protocol: RouteProtocol::Static,
        kind: RouteType::Unicast,
        ..RouteHeader::default()
    };
    message.attributes.extend(to.map(|network| RouteAttribute::Destination(network.into())));
    message.attributes.extend([RouteAttribute::Gateway(gateway.into()), RouteAttribute::Oif(number as u32)]);
    b.push(Message::NewRoute(message), CREATE);
}

/// The route to everywhere by a gateway on a device, in the place of the one that is there.
pub fn replace_default(b: &mut Batch, gateway: Ipv4Addr, number: i32) {
    let mut message = RouteMessage::default();
    message.header = RouteHeader {
        address_family: AddressFamily::Inet,
        table: RouteHeader::RT_TABLE_MAIN,
        protocol: RouteProtocol::Static,
        kind: RouteType::Unicast,
        ..RouteHeader::default()
    };
    message.attributes = vec![RouteAttribute::Gateway(RouteAddress::Inet(gateway)), RouteAttribute::Oif(number as u32)];
    b.push(Message::NewRoute(message), REPLACE);
}

/// A route to one neighbour; with `cca`, its connections have this congestion control, whatever their programs choose. Linux: ip-route(8) `congctl`.
pub fn route_to(b: &mut Batch, neighbour: Ipv4Addr, number: i32, cca: Option<&str>) {
    let mut message = RouteMessage::default();
    message.header = RouteHeader {
        address_family: AddressFamily::Inet,
        destination_prefix_length: 32,
        table: RouteHeader::RT_TABLE_MAIN,
        protocol: RouteProtocol::Static,
        scope: RouteScope::Link,
        kind: RouteType::Unicast,
        ..RouteHeader::default()
    };
    message.attributes = vec![RouteAttribute::Destination(RouteAddress::Inet(neighbour)), RouteAttribute::Oif(number as u32)];
    message.attributes.extend(cca.map(|cca| RouteAttribute::Metrics(vec![RouteMetric::CcAlgo(cca.to_owned())])));
    b.push(Message::NewRoute(message), CREATE);
}

/// Tells a device who is at the other end of its link, for good: nobody asks with ARP.
pub fn introduce(b: &mut Batch, port: &Port, other: &Port) {
    neighbour(b, port.number, other.address, other.hardware);
}

/// Tells a device the hardware address of a neighbour, for good.
pub fn neighbour(b: &mut Batch, number: i32, address: Ipv4Addr, hardware: [u8; 6]) {
    let mut message = NeighbourMessage::default();
    message.header.family = AddressFamily::Inet;
    message.header.ifindex = number as u32;
    message.header.state = NeighbourState::Permanent;
    message.attributes = vec![NeighbourAttribute::Destination(address.into()), NeighbourAttribute::LinkLayerAddress(hardware.to_vec())];
    b.push(Message::NewNeighbour(message), CREATE);
}

/// Whether every device of ours in the socket's host is up and sends.
pub fn ready(socket: &mut Socket) -> Result<bool, NetlinkError> {
    let mut ready = true;
    links(socket, |number, attributes| {
        ready &= !ours(number) || attribute(attributes, IFLA_OPERSTATE) == Some(&[u8::from(State::Up)]);
    })?;
    Ok(ready)
}

/// The number of the device of this name in the socket's host.
pub fn number(socket: &mut Socket, name: &str) -> Result<Option<i32>, NetlinkError> {
    let mut found = None;
    links(socket, |number, attributes| {
        if attribute(attributes, IFLA_IFNAME).map(text_of) == Some(name) {
            found = Some(number);
        }
    })?;
    Ok(found)
}

/// A device's largest packet by its name, bytes; None without such a device.
pub fn mtu(socket: &mut Socket, name: &str) -> Result<Option<u32>, NetlinkError> {
    let mut found = None;
    links(socket, |_, attributes| {
        if attribute(attributes, IFLA_IFNAME).map(text_of) == Some(name) {
            found = attribute(attributes, IFLA_MTU).map(|value| u32_at(value, 0));
        }
    })?;
    Ok(found)
}

/// Every device of the socket's host: its number and its attributes. They are not parsed as a whole, for a newer kernel may say more
/// of a device than the crate knows.
fn links(socket: &mut Socket, mut each: impl FnMut(i32, &[u8])) -> Result<(), NetlinkError> {
    socket.dump(Message::GetLink(LinkMessage::default()), |message| {
        if let Ok(header) = LinkHeader::parse(message) {
            each(header.index as i32, &message[header.buffer_len()..]);
        }
    })
}

fn ours(number: i32) -> bool {
    number >= device(Direction::Forward)
}
