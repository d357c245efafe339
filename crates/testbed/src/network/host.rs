//! A host of a network: a namespace, and a socket through which the kernel is told of its devices.

use super::offload::{self, Offload};
use super::{faults, io_at, links, sysctl, TestbedError};
use crate::netlink::Socket;
use crate::sys;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// How long a device may take until it is ready, and how often to look, ns.
const READY_BY: u64 = 10_000_000_000;
const READY_POLL: u64 = 1_000_000;

/// A host: its namespace and a socket in it.
pub struct Host {
    /// It lives as long as this descriptor, or a thread or socket in it.
    pub namespace: OwnedFd,
    /// Messages to the kernel about this namespace.
    pub socket: Socket,
    /// Why IPv6 is still on, where it could not be switched off.
    pub ipv6: Option<String>,
}

impl Host {
    /// An empty host without IPv6; the calling thread moves into it.
    pub fn new() -> Result<Host, TestbedError> {
        let namespace = sys::new_namespace().map_err(io_at("new network namespace"))?;
        let socket = Socket::open().map_err(io_at("netlink socket"))?;
        Ok(Host { namespace, socket, ipv6: sysctl::without_ipv6() })
    }

    /// Switches off what would let super-packets pass these devices.
    pub fn without_offload(&self, devices: &[&str]) -> Result<(), TestbedError> {
        for device in devices {
            for offload in Offload::ALL {
                offload.set(self.socket.as_fd(), device, false).map_err(io_at("switching offloads off"))?;
            }
        }
        Ok(())
    }

    /// Has super-packets that packet sockets behind these devices could not see cut before them.
    pub fn cut_unseen(&self, devices: &[&str]) -> Result<(), TestbedError> {
        let mut each = devices.iter().map(|device| offload::cut_udp_where_unseen(self.socket.as_fd(), device));
        each.try_for_each(|done| done.map_err(io_at("segmentation of UDP")))
    }

    /// Says what its devices, given by number and name, did that nobody asked for.
    pub fn faults(&mut self, owner: &str, devices: &[(i32, &str)], offload: bool, found: &mut Vec<String>) -> Result<(), TestbedError> {
        faults::offloads(&self.socket, owner, devices, offload, found).map_err(io_at("offload flags"))?;
        let read = faults::devices(&mut self.socket, owner, devices, found);
        read.map_err(|error| TestbedError::Refused { part: "device statistics".into(), error })
    }
}

/// Waits until every device sends: a link's near end learns only by and by that the far end is up (Linux: linkwatch), and
/// drops everything until then.
pub fn wait_until_ready(hosts: &mut [Host]) -> Result<(), TestbedError> {
    let until = sys::now() + READY_BY;
    for host in hosts {
        while !links::ready(&mut host.socket).map_err(|error| TestbedError::Refused { part: "state of the links".into(), error })? {
            if sys::now() > until {
                return Err(io_at("links")(io::Error::new(io::ErrorKind::TimedOut, "they did not come up within 10 s")));
            }
            sys::nap(READY_POLL);
        }
    }
    Ok(())
}
