//! The network of a trial, built in the kernel: namespaces in a chain, veth pairs between them, queues at their egresses.
//!
//! ```text
//! sender ──fwd── rev──router──fwd ── … ── rev──receiver      10.77.(link + 1).2 ── 10.77.(link + 1).3
//! ```
//!
//! | Question | File |
//! |---|---|
//! | Which host's egress is a stage? | [`layout`] |
//! | What does a host get? | `furnish` |
//! | links, addresses, routes | [`links`] |
//! | offload flags | [`offload`] |
//! | the accounts of the stages | [`queues`] |
//! | schedules | [`changes`], outages in [`gate`] |
//! | settings of the kernel | [`sysctl`] |
//! | what went wrong underneath | [`faults`] |
//!
//! A host costs one socket and one `sendmsg`: its link, addresses, routes and queues travel together.
//! How it differs from a script with ip and tc: not in what the kernel is told.

pub mod changes;
pub mod faults;
mod furnish;
pub mod gate;
pub mod layout;
pub mod links;
pub mod offload;
pub mod queues;
pub mod sysctl;

use crate::netlink::{self, Batch, NetlinkError, Socket};
use crate::qdisc::{self, stats::Counters, Extra, Place};
use crate::sys;
use changes::Act;
pub use changes::Change;
use furnish::furnish;
use layout::{Direction, Layout};
use offload::Offload;
pub use queues::{ChildReport, QueueReport};
use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use sysctl::Globals;
use tcpscape_sim::Plan;

/// Why a network could not be built, changed or read.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// The plan asks for what no kernel has.
    #[error("{0}")]
    Unsupported(String),
    /// The kernel refused a part of it.
    #[error("{part}: the kernel refuses: {error}")]
    Refused {
        /// Which part.
        part: String,
        /// The kernel's answer.
        error: NetlinkError,
    },
    /// The kernel was built without a queue.
    #[error("{part}: this kernel has no {kind}{why}: build it with CONFIG_NET_SCH_{}", .kind.to_uppercase())]
    Missing {
        /// Which stage needs it.
        part: String,
        /// The queue.
        kind: &'static str,
        /// What for, where that is not plain.
        why: &'static str,
    },
    /// The kernel refused a setting.
    #[error("sysctl {name} = {value}: {why}")]
    Setting {
        /// Its name.
        name: String,
        /// The value asked for.
        value: String,
        /// The kernel's answer.
        why: String,
    },
    /// A system call failed.
    #[error("{part}: {error}")]
    Io {
        /// What was being done.
        part: &'static str,
        /// The kernel's answer.
        error: io::Error,
    },
}

fn io_at(part: &'static str) -> impl FnOnce(io::Error) -> TestbedError {
    move |error| TestbedError::Io { part, error }
}

/// A host: its namespace and a socket in it.
struct Host {
    namespace: OwnedFd,
    socket: Socket,
}

/// A trial's network; dropping it takes it down.
pub struct Testbed {
    hosts: Vec<Host>,
    layout: Layout,
    changes: Vec<Change>,
    /// Whether super-packets may pass the devices.
    offload: bool,
    /// The namespace in which the builder was.
    home: OwnedFd,
    globals: Globals,
    lost_before: u64,
    batch: Batch,
}

impl Testbed {
    /// Builds the network of a plan. `sysctls` go to sender and receiver, those of the whole kernel to it (and back when the
    /// testbed is dropped). The calling thread returns to the namespace in which it was.
    pub fn build(plan: &Plan, sysctls: &BTreeMap<String, String>) -> Result<Testbed, TestbedError> {
        Testbed::build_seeded(plan, sysctls, None)
    }

    /// The same, with a seed for the random numbers of every netem; kernels before 6.6 know of none and draw their own.
    pub fn build_seeded(plan: &Plan, sysctls: &BTreeMap<String, String>, seed: Option<u64>) -> Result<Testbed, TestbedError> {
        let layout = Layout::of(plan)?;
        let changes = changes::expand(plan, &layout)?;
        let home = netlink::namespace().map_err(io_at("network namespace"))?;
        let built = Testbed::populate(plan, sysctls, &layout, seed);
        let returned = sys::enter(home.as_fd()).map_err(io_at("return to the first namespace"));
        let (mut hosts, elsewhere) = built?;
        returned?;
        wait_until_ready(&mut hosts)?;
        let globals = sysctl::write_globals(&elsewhere, sysctls)?;
        let lost_before = faults::lost_on_cpus();
        Ok(Testbed { hosts, layout, changes, offload: plan.offload, home, globals, lost_before, batch: Batch::new() })
    }

    /// Makes the hosts, joins them, and leaves the thread in the last; also gives the settings that hosts do not have.
    fn populate<'a>(
        plan: &Plan,
        sysctls: &'a BTreeMap<String, String>,
        layout: &Layout,
        seed: Option<u64>,
    ) -> Result<(Vec<Host>, Vec<&'a str>), TestbedError> {
        let (mut hosts, mut elsewhere) = (Vec::new(), Vec::new());
        for i in 0..layout.routers + 2 {
            let namespace = netlink::new_namespace().map_err(io_at("new network namespace"))?;
            let socket = Socket::open().map_err(io_at("netlink socket"))?;
            sysctl::without_ipv6();
            if i == 0 || i == layout.routers + 1 {
                elsewhere = sysctl::write(sysctls)?;
            }
            hosts.push(Host { namespace, socket });
        }
        let mut batch = Batch::new();
        for i in 0..hosts.len() {
            batch.clear();
            let far = hosts.get(i + 1).map(|h| h.namespace.as_raw_fd());
            let queues = furnish(&mut batch, plan, layout, i, far, seed);
            let host = &mut hosts[i];
            host.socket.request(&mut batch).map_err(|error| furnish::refused(error, layout, i, &queues))?;
        }
        if !plan.offload {
            without_offload(&hosts, layout)?;
        }
        Ok((hosts, elsewhere))
    }

    /// The sender's namespace.
    pub fn sender(&self) -> BorrowedFd<'_> {
        self.hosts[0].namespace.as_fd()
    }
    /// The receiver's namespace.
    pub fn receiver(&self) -> BorrowedFd<'_> {
        self.hosts[self.hosts.len() - 1].namespace.as_fd()
    }
    /// The receiver's address.
    pub fn address(&self) -> Ipv4Addr {
        links::address(self.layout.routers, Direction::Reverse)
    }
    /// What changes while the trial runs, in order of time.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Makes a change: new parameters for packets that come, unchanged due times for those that wait.
    pub fn apply(&mut self, change: usize) -> Result<(), TestbedError> {
        let Some(change) = self.changes.get(change) else { return Ok(()) };
        let stage = &self.layout.stages[change.stage];
        self.batch.clear();
        for act in &change.acts {
            let place = |depth: usize| Place::at(links::device(stage.direction), depth, false);
            match act {
                Act::Queue(depth, spec) => qdisc::encode(&mut self.batch, spec, place(*depth), Extra::default()),
                Act::Limit(depth, bytes) => qdisc::gate_limit(&mut self.batch, place(*depth), *bytes),
                Act::Close(depth, closed) => qdisc::gate(&mut self.batch, place(*depth), *closed),
            }
        }
        let part = || format!("{}, change at {} s", stage.title(), change.at_ns as f64 / 1e9);
        self.hosts[stage.host].socket.request(&mut self.batch).map_err(|error| TestbedError::Refused { part: part(), error })
    }

    /// The account of every stage, forward first.
    pub fn queues(&mut self) -> Result<Vec<QueueReport>, TestbedError> {
        let mut seen: Vec<Vec<Counters>> = vec![Vec::new(); self.hosts.len()];
        for (i, host) in self.hosts.iter_mut().enumerate() {
            if self.layout.stages.iter().any(|s| s.host == i) {
                let read = qdisc::stats::read(&mut host.socket, |c| seen[i].push(c));
                read.map_err(|error| TestbedError::Refused { part: "queue statistics".into(), error })?;
            }
        }
        Ok(self.layout.stages.iter().map(|s| queues::account(s, &self.layout, &seen[s.host])).collect())
    }

    /// What the testbed itself did to the trial and nobody asked for: one sentence each, none if all is well.
    pub fn faults(&mut self) -> Result<Vec<String>, TestbedError> {
        let mut found = Vec::new();
        for (i, host) in self.hosts.iter_mut().enumerate() {
            let owner = self.layout.host_name(i);
            let devices = self.layout.devices(i);
            faults::offloads(&host.socket, &owner, &devices, self.offload, &mut found).map_err(io_at("offload flags"))?;
            let read = faults::devices(&mut host.socket, &owner, &mut found);
            read.map_err(|error| TestbedError::Refused { part: "device statistics".into(), error })?;
        }
        let lost = faults::lost_on_cpus().saturating_sub(self.lost_before);
        if lost > 0 {
            found.push(format!(
                "the kernel lost {lost} packets between devices: its per-CPU backlog was full (net.core.netdev_max_backlog)"
            ));
        }
        Ok(found)
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        if self.globals.is_empty() {
            return;
        }
        let Ok(here) = netlink::namespace() else { return };
        if sys::enter(self.home.as_fd()).is_ok() {
            self.globals.restore();
            // It was there a moment ago; a thread that cannot return stays in the first namespace.
            let _ = sys::enter(here.as_fd());
        }
    }
}

/// How long a device may take until it is ready, and how often to look, ns.
const READY_BY: u64 = 10_000_000_000;
const READY_POLL: u64 = 1_000_000;

/// Waits until every device sends: a link's near end learns only by and by that the far end is up (Linux: linkwatch), and
/// drops everything until then.
fn wait_until_ready(hosts: &mut [Host]) -> Result<(), TestbedError> {
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

/// Switches off what would let super-packets pass the devices.
fn without_offload(hosts: &[Host], layout: &Layout) -> Result<(), TestbedError> {
    for (i, host) in hosts.iter().enumerate() {
        for device in layout.devices(i) {
            for offload in Offload::ALL {
                offload.set(host.socket.as_fd(), links::device_name(device), false).map_err(io_at("switching offloads off"))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
