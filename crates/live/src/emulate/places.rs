//! Where programs run: the two ends, further hosts at the far end by their names, and a router between the near end and the path.
//!
//! ```text
//! near ── lan  router  wan ── emulator ── far
//!                                      ├─ cdn   10.77.1.4
//!                                      └─ …
//! ```

use crate::spaces::Program;
use std::net::Ipv4Addr;
use std::os::fd::BorrowedFd;
use tcpscape_testbed::network::wire::{host_address, End, Others, Wire, ROUTER, ROUTER_DEVICES};

/// The names of the two ends.
const NEAR: &str = "near";
const FAR: &str = "far";
/// The name of the router.
pub const ROUTER_NAME: &str = "router";
/// How the variables begin with the addresses of further hosts.
const OF_HOST: &str = "HOST_";

/// The places of one emulation.
#[derive(Clone, Copy)]
pub struct Places<'a> {
    wire: &'a Wire,
    /// Names of the further hosts.
    hosts: &'a [String],
}

impl<'a> Places<'a> {
    /// Those of a wire that was built with [`others`].
    pub fn new(wire: &'a Wire, hosts: &'a [String]) -> Places<'a> {
        Places { wire, hosts }
    }

    /// The network namespace of a host by its name.
    pub fn namespace(&self, name: &str) -> Option<BorrowedFd<'a>> {
        match name {
            NEAR => Some(self.wire.sender()),
            FAR => Some(self.wire.receiver()),
            ROUTER_NAME => self.wire.router(),
            _ => self.wire.host(self.hosts.iter().position(|host| host == name)?),
        }
    }

    /// The namespaces of all hosts but the router, and whether each is at the near end.
    pub fn hosts(&self) -> impl Iterator<Item = (BorrowedFd<'a>, bool)> {
        let (wire, further) = (self.wire, 0..self.hosts.len());
        let far = std::iter::once(wire.receiver()).chain(further.filter_map(|host| wire.host(host)));
        std::iter::once((wire.sender(), true)).chain(far.map(|namespace| (namespace, false)))
    }

    /// The addresses at the far end.
    pub fn far_addresses(&self) -> Vec<Ipv4Addr> {
        std::iter::once(End::Receiver.address()).chain((0..self.hosts.len()).map(host_address)).collect()
    }

    /// Tells a program where all of them are.
    pub fn name(&self, program: &mut Program) {
        let mut names = vec![(NEAR, End::Sender.address())];
        names.extend(self.wire.router().map(|_| (ROUTER_NAME, ROUTER)));
        names.extend(std::iter::once(FAR).chain(self.hosts.iter().map(String::as_str)).zip(self.far_addresses()));
        tell(program, &names);
    }
}

/// What a wire must have for a job.
pub fn others(hosts: &[String], has_router: bool) -> Others {
    Others { router: has_router, hosts: hosts.len() }
}

/// Tells a program that the two ends have these addresses, and that there is nobody else.
pub fn name_ends(program: &mut Program, near: Ipv4Addr, far: Ipv4Addr) {
    tell(program, &[(NEAR, near), (FAR, far)]);
}

/// Tells the router's program the names of its devices.
pub fn name_devices(program: &mut Program) {
    let [lan, wan] = ROUTER_DEVICES;
    program.command().env("TCPSCAPE_LAN", lan).env("TCPSCAPE_WAN", wan);
}

fn tell(program: &mut Program, names: &[(&str, Ipv4Addr)]) {
    let texts: Vec<(&str, String)> = names.iter().map(|(name, address)| (*name, address.to_string())).collect();
    program.names(&texts.iter().map(|(name, address)| (*name, address.as_str())).collect::<Vec<_>>());
    for (name, address) in texts {
        program.command().env(variable(name), address);
    }
}

/// The variable with a host's address: `TCPSCAPE_FAR`, `TCPSCAPE_HOST_CDN_2`.
fn variable(name: &str) -> String {
    let kind = if [NEAR, FAR, ROUTER_NAME].contains(&name) { "" } else { OF_HOST };
    format!("TCPSCAPE_{kind}{}", name.to_uppercase().replace('-', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hosts_variable_is_no_other_one() {
        assert_eq!(
            ["far", "router", "cdn-2", "hosts"].map(variable),
            ["TCPSCAPE_FAR", "TCPSCAPE_ROUTER", "TCPSCAPE_HOST_CDN_2", "TCPSCAPE_HOST_HOSTS"]
        );
    }
}
