//! The world outside in place of the far end: a device of slirp4netns in the middle's namespace.
//!
//! ```text
//! the command ── near (10.0.2.100) ── emulator ── tap0 ── slirp4netns, outside (10.0.2.2, DNS 10.0.2.3)
//! ```
//!
//! slirp4netns runs with the rights of the user in the host's namespace, and makes connections of its own for what it reads from the
//! device. The process outside starts it when it is told where the namespace is. Source: slirp4netns(1).

use crate::channel::Channel;
use crate::spaces::{self, Program};
use serde_json::{json, Value};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use tcpscape_testbed::netlink::{Batch, Socket};
use tcpscape_testbed::network::links;
use tcpscape_testbed::network::wire::Wire;

/// The device that slirp4netns makes.
pub const DEVICE: &str = "tap0";
/// Its network, and the machines in it: the command's, the way out (which is this machine's loopback too), and the resolver.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 100);
const BITS: u8 = 24;
const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);
const RESOLVER: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 3);

/// What the command is told of that network: the far end is this machine. Source: resolv.conf(5).
pub fn prepare(program: &mut Program) {
    super::places::name_ends(program, ADDRESS, GATEWAY);
    program.resolvers(&format!("nameserver {RESOLVER}\n"));
}

/// Has the device made, and gives the near end its address in that network.
pub fn connect(wire: &Wire, channel: &Channel) -> Result<(), String> {
    let middle = wire.middle();
    channel.send(&json!({ "event": "outside", "network": format!("/proc/{}/fd/{}", std::process::id(), middle.as_raw_fd()) }));
    await_go(channel)?;
    let fail = |e: io::Error| format!("outside: {DEVICE}: {e}; report it");
    spaces::within(middle, || with_device(DEVICE, links::up)).and_then(|done| done).map_err(fail)?;
    let near = |batch: &mut Batch, number| {
        links::assign(batch, number, ADDRESS, BITS);
        links::replace_default(batch, GATEWAY, number);
    };
    spaces::within(wire.sender(), || with_device("fwd", near)).and_then(|done| done).map_err(fail)
}

/// Waits for the message that the device is there.
fn await_go(channel: &Channel) -> Result<(), String> {
    let lines = channel.read().map_err(|e| format!("outside: {e}; run it again"))?.ok_or("outside: nobody connects it; run it again")?;
    let go = lines.first().and_then(|line| serde_json::from_str::<Value>(line).ok()).is_some_and(|message| message["go"] == true);
    go.then_some(()).ok_or_else(|| "outside: it could not be connected; run it again".to_owned())
}

/// Sends requests about a device of the calling thread's namespace.
fn with_device(name: &str, ask: impl FnOnce(&mut Batch, i32)) -> io::Result<()> {
    let mut socket = Socket::open()?;
    let number = links::number(&mut socket, name).map_err(io::Error::other)?;
    let number = number.ok_or_else(|| io::Error::other("there is no such device"))?;
    let mut batch = Batch::new();
    ask(&mut batch, number);
    socket.request(&mut batch).map_err(io::Error::other)
}
