//! The messages that make a host's devices, addresses and routes. Source: rtnetlink(7), linux/if_link.h, linux/veth.h.
//!
//! Link i joins host i and host i + 1: 10.77.(i + 1).2 and .3, a network of these two. Devices have the same names and
//! numbers on every host ([`device`]), so nothing has to be looked up.

use super::layout::Direction;
use crate::netlink::{attribute, u32_at, Batch, NetlinkError, Socket, CHANGE, CREATE, NESTED};
use std::net::Ipv4Addr;
use std::os::fd::RawFd;

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

/// The number of the device in this direction, the same on every host.
pub fn device(direction: Direction) -> i32 {
    match direction {
        Direction::Forward => 2,
        Direction::Reverse => 3,
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

fn hardware(link: usize, direction: Direction) -> [u8; 6] {
    [0x02, 0x77, 0, 0, link as u8 + 1, device(direction) as u8]
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

/// Gives a device its address.
pub fn name(b: &mut Batch, link: usize, direction: Direction) {
    let mut header = [INET, PREFIX, 0, 0, 0, 0, 0, 0];
    header[4..8].copy_from_slice(&device(direction).to_ne_bytes());
    b.message(RTM_NEWADDR, CREATE, &header);
    let octets = address(link, direction).octets();
    b.put(IFA_LOCAL, &octets);
    b.put(IFA_ADDRESS, &octets);
}

/// A route through `direction` over link `via`: to the network of another link, or to everywhere.
pub fn route(b: &mut Batch, to: Option<usize>, via: usize, direction: Direction) {
    let (bits, gateway) = (if to.is_some() { PREFIX } else { 0 }, address(via, opposite(direction)));
    // rtm_family, dst_len, src_len, tos, table, protocol, scope, type, flags
    let header = [INET, bits, 0, 0, libc::RT_TABLE_MAIN, libc::RTPROT_STATIC, libc::RT_SCOPE_UNIVERSE, libc::RTN_UNICAST, 0, 0, 0, 0];
    b.message(RTM_NEWROUTE, CREATE, &header);
    if let Some(link) = to {
        b.put(RTA_DST, &address(link, Direction::Forward).octets());
    }
    b.put(RTA_GATEWAY, &gateway.octets());
    b.put_u32(RTA_OIF, device(direction) as u32);
}

/// Tells the device of `direction` on link `link` who is at the other end, for good: nobody asks with ARP.
pub fn introduce(b: &mut Batch, link: usize, direction: Direction) {
    let mut header = [0; 12];
    header[0] = INET;
    header[4..8].copy_from_slice(&device(direction).to_ne_bytes());
    header[8..10].copy_from_slice(&libc::NUD_PERMANENT.to_ne_bytes());
    b.message(RTM_NEWNEIGH, CREATE, &header);
    let other = opposite(direction);
    b.put(NDA_DST, &address(link, other).octets());
    b.put(NDA_LLADDR, &hardware(link, other));
}

/// Whether every device of the socket's host but loopback is up and sends.
pub fn ready(socket: &mut Socket) -> Result<bool, NetlinkError> {
    let mut ready = true;
    socket.dump(RTM_GETLINK, &link_header(0, false), |message| {
        let state = message.get(LINK_HEADER..).and_then(|a| attribute(a, IFLA_OPERSTATE)).unwrap_or_default();
        ready &= u32_at(message, 4) as i32 == LOOPBACK || state == [OPERATIONAL];
    })?;
    Ok(ready)
}

fn opposite(direction: Direction) -> Direction {
    match direction {
        Direction::Forward => Direction::Reverse,
        Direction::Reverse => Direction::Forward,
    }
}
