//! The network of a trial, built in the kernel: namespaces in a chain, veth pairs between them, queues at their egresses.
//!
//! ```text
//! sender ──fwd── rev──router──fwd ── … ── rev──receiver      10.77.(link + 1).2 ── 10.77.(link + 1).3
//! ```
//! A plan with places has a chain of routers with hosts behind links of their own at its sides: [`layout`].
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
//! | hosts whose path a program makes | [`wire`] |
//!
//! A host costs one socket and one `sendmsg`: its link, addresses, routes and queues travel together.
//! How it differs from a script with ip and tc: not in what the kernel is told.

pub mod changes;
pub mod faults;
mod furnish;
pub mod gate;
pub mod host;
pub mod layout;
pub mod links;
pub mod offload;
pub mod queues;
pub mod sysctl;
pub mod wire;

use crate::netlink::{Batch, NetlinkError};
use crate::qdisc::{self, stats::Counters, Extra, Place};
use crate::sys;
use changes::Act;
pub use changes::Change;
use furnish::furnish;
use host::Host;
use layout::Layout;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use sysctl::Globals;
pub use sysctl::{Scope, Settings};
use tcpscape_plan::results::{KernelQueue, QueueReport};
use tcpscape_plan::samples::QueueSamples;
use tcpscape_plan::Plan;

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
    /// The program that makes the path failed.
    #[error("{0}")]
    Path(String),
    /// A system call failed.
    #[error("{part}: {error}")]
    Io {
        /// What was being done.
        part: &'static str,
        /// The kernel's answer.
        error: io::Error,
    },
}

pub(crate) fn io_at(part: &'static str) -> impl FnOnce(io::Error) -> TestbedError {
    move |error| TestbedError::Io { part, error }
}

/// A host as sockets see it.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// Its namespace.
    pub namespace: BorrowedFd<'a>,
    /// The address at which others reach it.
    pub address: Ipv4Addr,
}

/// A trial's network as its course sees it, whoever makes the path: the kernel's queues ([`Testbed`]), or a program between two
/// devices of a [`wire::Wire`].
pub trait Network {
    /// The namespace of the router in the middle of the way, and its device towards the right; None where there is none.
    fn router(&self) -> Option<(BorrowedFd<'_>, &str)> {
        None
    }
    /// The two hosts of a place of the plan: the left one, and the right one. A plan without places has one, its sender and its receiver.
    fn hosts(&self, place: usize) -> [Site<'_>; 2];
    /// When the path has to be changed next, ns since the trial's start; None if it never has, or changes by itself.
    fn next_change(&self) -> Option<u64>;
    /// Makes every change that is due at `t`, ns since the trial's start.
    fn change(&mut self, t: u64) -> Result<(), TestbedError>;
    /// The account of every stage so far, forward first.
    fn queues(&mut self) -> Result<Vec<QueueReport>, TestbedError>;
    /// Samples every queue at `t`, ns since the trial's start.
    fn sample_queues(&mut self, plan: &Plan, t: u64, into: &mut QueueSamples) -> Result<(), TestbedError>;
    /// What the network did to the trial and nobody asked for: one sentence each, none if all is well.
    fn faults(&mut self) -> Result<Vec<String>, TestbedError>;
}

/// Where data begin that travel between the hosts of a place, `up` or down, and where they end.
pub fn ends(network: &dyn Network, place: usize, up: bool) -> [Site<'_>; 2] {
    let [left, right] = network.hosts(place);
    if up {
        [right, left]
    } else {
        [left, right]
    }
}

/// A trial's network; dropping it takes it down.
pub struct Testbed {
    hosts: Vec<Host>,
    layout: Layout,
    changes: Vec<Change>,
    /// Changes made so far.
    changed: usize,
    /// Whether super-packets may pass the devices.
    offload: bool,
    /// The namespace in which the builder was.
    home: OwnedFd,
    globals: Globals,
    scope: Scope,
    /// Settings that could not be made, and why.
    unset: Vec<String>,
    lost_before: u64,
    batch: Batch,
}

impl Testbed {
    /// Builds the network of a plan; settings go to sender and receiver, those of the whole kernel where their scope says so. `seed`
    /// is for the random numbers of every netem; kernels before 6.6 know of none and draw their own. The calling thread returns to the
    /// namespace in which it was.
    pub fn build(plan: &Plan, settings: &Settings, seed: Option<u64>) -> Result<Testbed, TestbedError> {
        let layout = Layout::of(plan)?;
        let changes = changes::expand(plan, &layout)?;
        let home = sys::namespace().map_err(io_at("network namespace"))?;
        let built = Testbed::populate(plan, settings, &layout, seed);
        let returned = sys::enter(home.as_fd()).map_err(io_at("return to the first namespace"));
        let (mut hosts, elsewhere) = built?;
        returned?;
        host::wait_until_ready(&mut hosts)?;
        let (globals, mut unset) = settings.write_elsewhere(&elsewhere)?;
        unset.extend(hosts.iter().find_map(|host| host.ipv6.clone()));
        let lost_before = faults::lost_on_cpus();
        let offload = plan.offload;
        Ok(Testbed {
            hosts,
            layout,
            changes,
            changed: 0,
            offload,
            home,
            globals,
            scope: settings.scope,
            unset,
            lost_before,
            batch: Batch::new(),
        })
    }

    /// Makes the hosts, joins them, and leaves the thread in the last; also gives the settings that hosts do not have.
    fn populate<'a>(
        plan: &Plan,
        settings: &Settings<'a>,
        layout: &Layout,
        seed: Option<u64>,
    ) -> Result<(Vec<Host>, Vec<&'a str>), TestbedError> {
        let (mut hosts, mut elsewhere) = (Vec::new(), Vec::new());
        for i in 0..layout.hosts() {
            hosts.push(Host::new()?);
            if layout.is_end(i) {
                elsewhere = settings.write()?;
            }
        }
        let namespaces: Vec<i32> = hosts.iter().map(|h| h.namespace.as_raw_fd()).collect();
        let mut batch = Batch::new();
        for (i, host) in hosts.iter_mut().enumerate() {
            batch.clear();
            let queues = furnish(&mut batch, plan, layout, i, &namespaces, seed);
            host.socket.request(&mut batch).map_err(|error| furnish::refused(error, layout, i, &queues))?;
        }
        if !plan.offload {
            for (i, host) in hosts.iter().enumerate() {
                host.without_offload(&layout.ports_of(i).into_iter().map(|port| port.name.as_str()).collect::<Vec<_>>())?;
            }
        }
        Ok((hosts, elsewhere))
    }

    /// Settings that were asked for and are not so: one sentence each.
    pub fn unset(&self) -> &[String] {
        &self.unset
    }
    /// What changes while the trial runs, in order of time.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// The account of every stage so far.
    pub fn accounts(&mut self) -> Result<Vec<KernelQueue>, TestbedError> {
        let mut seen: Vec<Vec<Counters>> = vec![Vec::new(); self.hosts.len()];
        for (i, host) in self.hosts.iter_mut().enumerate() {
            if self.layout.stages.iter().any(|s| s.host == i) {
                let read = qdisc::stats::read(&mut host.socket, |c| seen[i].push(c));
                read.map_err(|error| TestbedError::Refused { part: "queue statistics".into(), error })?;
            }
        }
        Ok(self.layout.stages.iter().map(|s| queues::account(s, &self.layout, &seen[s.host])).collect())
    }

    /// Makes a change: new parameters for packets that come, unchanged due times for those that wait.
    pub fn apply(&mut self, change: usize) -> Result<(), TestbedError> {
        let Some(change) = self.changes.get(change) else { return Ok(()) };
        let stage = &self.layout.stages[change.stage];
        self.batch.clear();
        for act in &change.acts {
            let place = |depth: usize| Place::at(stage.device, depth, false);
            match act {
                Act::Queue(depth, spec) => qdisc::encode(&mut self.batch, spec, place(*depth), Extra::default()),
                Act::Limit(depth, bytes) => qdisc::gate_limit(&mut self.batch, place(*depth), *bytes),
                Act::Close(depth, closed) => qdisc::gate(&mut self.batch, place(*depth), *closed),
            }
        }
        let part = || format!("{}, change at {} s", stage.name, change.at_ns as f64 / 1e9);
        self.hosts[stage.host].socket.request(&mut self.batch).map_err(|error| TestbedError::Refused { part: part(), error })
    }
}

impl Network for Testbed {
    fn router(&self) -> Option<(BorrowedFd<'_>, &str)> {
        let cable = &self.layout.cables[self.layout.middle?];
        Some((self.hosts[cable.hosts[0]].namespace.as_fd(), &cable.ports[0].name))
    }
    fn hosts(&self, place: usize) -> [Site<'_>; 2] {
        self.layout.places[place].map(|host| {
            let address = self.layout.ports_of(host)[0].address;
            Site { namespace: self.hosts[host].namespace.as_fd(), address }
        })
    }
    fn next_change(&self) -> Option<u64> {
        self.changes.get(self.changed).map(|c| c.at_ns)
    }
    fn change(&mut self, t: u64) -> Result<(), TestbedError> {
        while self.next_change().is_some_and(|at| at <= t) {
            self.apply(self.changed)?;
            self.changed += 1;
        }
        Ok(())
    }
    fn queues(&mut self) -> Result<Vec<QueueReport>, TestbedError> {
        Ok(self.accounts()?.into_iter().map(QueueReport::Kernel).collect())
    }
    fn sample_queues(&mut self, plan: &Plan, t: u64, into: &mut QueueSamples) -> Result<(), TestbedError> {
        queues::sample(into, plan, &self.accounts()?, t);
        Ok(())
    }

    fn faults(&mut self) -> Result<Vec<String>, TestbedError> {
        let mut found = Vec::new();
        for (i, host) in self.hosts.iter_mut().enumerate() {
            let owner = self.layout.host_name(i);
            let devices: Vec<_> = self.layout.ports_of(i).into_iter().map(|port| (port.number, port.name.as_str())).collect();
            host.faults(&owner, &devices, self.offload, &mut found)?;
        }
        faults::backlogs(self.lost_before, self.scope, &mut found);
        Ok(found)
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        if self.globals.is_empty() {
            return;
        }
        let Ok(here) = sys::namespace() else { return };
        if sys::enter(self.home.as_fd()).is_ok() {
            self.globals.restore();
            // It was there a moment ago; a thread that cannot return stays in the first namespace.
            let _ = sys::enter(here.as_fd());
        }
    }
}

#[cfg(test)]
mod tests;
