//! The messages that make a host's devices, addresses and routes. Source: rtnetlink(7), linux/if_link.h, linux/veth.h.
//!
//! Link i joins host i and host i + 1: 10.77.(i + 1).2 and .3, a network of these two. Devices have the same names and
//! numbers on every host ([`device`]), so nothing has to be looked up.

use crate::netlink::{attribute, text_of, u32_at, Batch, NetlinkError, Socket, CHANGE, CREATE, NESTED};
use std::net::Ipv4Addr;
use std::os::fd::RawFd;
use tcpscape_path::Direction;

/// Message types. Source: linux/rtnetlink.h.
const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const RTM_NEWNEIGH: u16 = 28;
/// Attributes of a link. Source: linux/if_link.h, linux/veth.h.
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_TXQLEN: u16 = 13;
const IFLA_OPERSTATE: u16 = 16;
const IFLA_LINKINFO: u16 = 18;
const IFLA_AF_SPEC: u16 = 26;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
const IFLA_INET_CONF: u16 = 1;
/// Forwarding, as in /proc/sys/net/ipv4/conf/DEVICE. Linux: IPV4_DEVCONF_FORWARDING.
const FORWARDING: u16 = 1;
/// Attributes of addresses, routes and neighbours.
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
/// A device that sends. Linux: IF_OPER_UP.
const OPERATIONAL: u8 = 6;
/// Bytes of `struct ifinfomsg`.
const LINK_HEADER: usize = 16;
/// Loopback's number in every namespace.
pub const LOOPBACK: i32 = 1;
/// The two ends of a link are a network of 31 bits (RFC 3021).
const PREFIX: u8 = 31;
const INET: u8 = libc::AF_INET as u8;

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

/// `struct ifinfomsg`.
fn link_header(device: i32, up: bool) -> [u8; LINK_HEADER] {
    let mut h = [0; LINK_HEADER];
    h[4..8].copy_from_slice(&device.to_ne_bytes());
    if up {
        h[8..12].copy_from_slice(&(libc::IFF_UP as u32).to_ne_bytes());
        h[12..16].copy_from_slice(&(libc::IFF_UP as u32).to_ne_bytes());
    }
    h
}

/// Makes link `link` from the near host: its own end, up, and the far end in the namespace `far`.
pub fn make(b: &mut Batch, link: usize, mtu: u32, far: RawFd) {
    b.message(RTM_NEWLINK, CREATE, &link_header(device(Direction::Forward), true));
    describe(b, link, Direction::Forward, mtu);
    let info = b.nest(IFLA_LINKINFO | NESTED);
    b.put_str(IFLA_INFO_KIND, "veth");
    let data = b.nest(IFLA_INFO_DATA | NESTED);
    let peer = b.nest(VETH_INFO_PEER | NESTED);
    b.raw(&link_header(device(Direction::Reverse), false));
    describe(b, link, Direction::Reverse, mtu);
    b.put_u32(IFLA_NET_NS_FD, far as u32);
    b.end(peer);
    b.end(data);
    b.end(info);
}

fn describe(b: &mut Batch, link: usize, direction: Direction, mtu: u32) {
    b.put_str(IFLA_IFNAME, device_name(direction));
    b.put_u32(IFLA_MTU, mtu);
    b.put(IFLA_ADDRESS, &hardware(link, direction));
}

/// Brings a device up, and lets it forward.
pub fn raise(b: &mut Batch, direction: Direction, forwarding: bool) {
    b.message(RTM_NEWLINK, CHANGE, &link_header(device(direction), true));
    if forwarding {
        let families = b.nest(IFLA_AF_SPEC | NESTED);
        let inet = b.nest(u16::from(INET) | NESTED);
        let settings = b.nest(IFLA_INET_CONF | NESTED);
        b.put_u32(FORWARDING, 1);
        b.end(settings);
        b.end(inet);
        b.end(families);
    }
}

/// Brings a device up that is there already, whoever made it.
pub fn up(b: &mut Batch, number: i32) {
    b.message(RTM_NEWLINK, CHANGE, &link_header(number, true));
}

/// The same, with a largest packet and room for so many waiting packets.
pub fn up_with(b: &mut Batch, number: i32, mtu: u32, queue_length: u32) {
    up(b, number);
    b.put_u32(IFLA_MTU, mtu);
    b.put_u32(IFLA_TXQLEN, queue_length);
}

/// Gives a device its address on its link.
pub fn name(b: &mut Batch, link: usize, direction: Direction) {
    assign(b, device(direction), address(link, direction), PREFIX);
}

/// Gives a device an address in a network of `bits` bits.
pub fn assign(b: &mut Batch, number: i32, address: Ipv4Addr, bits: u8) {
    let mut header = [INET, bits, 0, 0, 0, 0, 0, 0];
    header[4..8].copy_from_slice(&number.to_ne_bytes());
    b.message(RTM_NEWADDR, CREATE, &header);
    let octets = address.octets();
    b.put(IFA_LOCAL, &octets);
    b.put(IFA_ADDRESS, &octets);
}

/// A route through `direction` over link `via`: to the network of another link, or to everywhere.
pub fn route(b: &mut Batch, to: Option<usize>, via: usize, direction: Direction) {
    let to = to.map(|link| address(link, Direction::Forward));
    route_by(b, to, address(via, direction.back()), device(direction));
}

/// A route by a gateway on a device: to the network that begins at `to`, or to everywhere.
pub fn route_by(b: &mut Batch, to: Option<Ipv4Addr>, gateway: Ipv4Addr, number: i32) {
    let bits = if to.is_some() { PREFIX } else { 0 };
    // rtm_family, dst_len, src_len, tos, table, protocol, scope, type, flags
    let header = [INET, bits, 0, 0, libc::RT_TABLE_MAIN, libc::RTPROT_STATIC, libc::RT_SCOPE_UNIVERSE, libc::RTN_UNICAST, 0, 0, 0, 0];
    b.message(RTM_NEWROUTE, CREATE, &header);
    if let Some(network) = to {
        b.put(RTA_DST, &network.octets());
    }
    b.put(RTA_GATEWAY, &gateway.octets());
    b.put_u32(RTA_OIF, number as u32);
}

/// Tells the device of `direction` on link `link` who is at the other end, for good: nobody asks with ARP.
pub fn introduce(b: &mut Batch, link: usize, direction: Direction) {
    let other = direction.back();
    neighbour(b, device(direction), address(link, other), hardware(link, other));
}

/// Tells a device the hardware address of a neighbour, for good.
pub fn neighbour(b: &mut Batch, number: i32, address: Ipv4Addr, hardware: [u8; 6]) {
    let mut header = [0; 12];
    header[0] = INET;
    header[4..8].copy_from_slice(&number.to_ne_bytes());
    header[8..10].copy_from_slice(&libc::NUD_PERMANENT.to_ne_bytes());
    b.message(RTM_NEWNEIGH, CREATE, &header);
    b.put(NDA_DST, &address.octets());
    b.put(NDA_LLADDR, &hardware);
}

/// The number of the device of this name in the socket's host.
pub fn number(socket: &mut Socket, name: &str) -> Result<Option<i32>, NetlinkError> {
    let mut found = None;
    socket.dump(RTM_GETLINK, &link_header(0, false), |message| {
        let attributes = message.get(LINK_HEADER..).unwrap_or_default();
        if attribute(attributes, IFLA_IFNAME).map(text_of) == Some(name) {
            found = Some(u32_at(message, 4) as i32);
        }
    })?;
    Ok(found)
}

fn ours(number: i32) -> bool {
    Direction::BOTH.into_iter().any(|d| device(d) == number)
}

/// Whether every device of ours in the socket's host is up and sends.
pub fn ready(socket: &mut Socket) -> Result<bool, NetlinkError> {
    let mut ready = true;
    socket.dump(RTM_GETLINK, &link_header(0, false), |message| {
        let state = message.get(LINK_HEADER..).and_then(|a| attribute(a, IFLA_OPERSTATE)).unwrap_or_default();
        ready &= !ours(u32_at(message, 4) as i32) || state == [OPERATIONAL];
    })?;
    Ok(ready)
}
