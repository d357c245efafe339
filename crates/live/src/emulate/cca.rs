//! The congestion control of every connection at both ends.
//!
//! What it is: the namespace's default where the kernel lets it be chosen there. A namespace other than the machine's first may only have
//! one of `tcp_allowed_congestion_control` as its default; any other is then that of the route to the other end, which holds for every
//! connection, whatever its program chooses. Source: ip-sysctl (tcp_congestion_control), rtnetlink(7), ip-route(8) `congctl`.

use super::places::Places;
use crate::spaces;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use tcpscape_testbed::netlink::{Batch, Socket};
use tcpscape_testbed::network::links;
use tcpscape_testbed::network::sysctl::is_not_here;
use tcpscape_testbed::network::wire::End;

/// The default of new sockets, in the calling thread's namespace.
const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
/// Those that this kernel has loaded.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Refuses a congestion control that this kernel does not have loaded; `field` asked for it.
pub fn check(field: &str, cca: &str) -> Result<(), String> {
    let text = fs::read_to_string(AVAILABLE).map_err(|e| format!("{field}: {e}; leave it out"))?;
    let mut names: Vec<&str> = text.split_whitespace().collect();
    names.sort_unstable();
    match names.contains(&cca) {
        true => Ok(()),
        false => Err(format!("{field}: this kernel has no {cca}; choose {}, or as root: modprobe tcp_{cca}", names.join(", "))),
    }
}

/// Gives it to both ends and their further hosts; `outside`: to connections with the world, for which there is no route of their own.
pub fn set(places: &Places, cca: &str, outside: bool) -> Result<(), String> {
    places.hosts().try_for_each(|(namespace, is_near)| {
        let (others, device) = if is_near { (places.far_addresses(), "fwd") } else { (vec![End::Sender.address()], "rev") };
        let set = spaces::within(namespace, || match fs::write(DEFAULT, cca) {
            Err(e) if is_not_here(&e) && !outside => route(&others, device, cca),
            set => set,
        });
        set.and_then(|set| set).map_err(|e| format!("cca: {cca} cannot be the default: {e}; leave it out, or as root: sysctl -w net.ipv4.tcp_allowed_congestion_control=\"reno {cca}\""))
    })
}

/// Routes to those at the other end with a congestion control of their own, in the calling thread's namespace.
fn route(others: &[Ipv4Addr], device: &str, cca: &str) -> io::Result<()> {
    let mut socket = Socket::open()?;
    let number = links::number(&mut socket, device).map_err(io::Error::other)?;
    let number = number.ok_or_else(|| io::Error::other(format!("there is no device {device}")))?;
    let mut batch = Batch::new();
    others.iter().for_each(|&other| links::route_to(&mut batch, other, number, Some(cca)));
    socket.request(&mut batch).map_err(io::Error::other)
}
