//! The course of a trial on a network that stands: sockets, flows, watching, the report.
//!
//! What it is: what every engine with real sockets does between the network's completion and the result; who makes the path
//! ([`Network`]) does not matter. How it differs from the model's: time 0 is a moment of the monotonic clock by which every reader listens.

use crate::flows::{Clock, Flow, Options, Running};
use crate::network::{ends, Network, TestbedError};
use crate::pcap::Recorder;
use crate::proof::prove;
use crate::report::{counters, flow_summary, Report};
use crate::sys;
use crate::traffic::Traffic;
use crate::watch::{watch, Watched};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::ffi::CString;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;
use tcpscape_base::mix;
use tcpscape_plan::{FlowPlan, Plan, PlayerSummary};

/// What ended a trial before it had a result.
#[derive(Debug, thiserror::Error)]
pub enum CourseError {
    /// The network could not be changed or read.
    #[error("{0}")]
    Network(#[from] TestbedError),
    /// A socket, a thread or a namespace failed.
    #[error("{what}: {error}")]
    Io {
        /// What was being done.
        what: &'static str,
        /// The kernel's answer.
        error: io::Error,
    },
}

fn at(what: &'static str) -> impl FnOnce(io::Error) -> CourseError {
    move |error| CourseError::Io { what, error }
}

/// Time from the network's completion to the trial's time 0, ns, and a little more for each flow: every reader listens by then.
const LEAD: u64 = 200_000_000;
const LEAD_PER_FLOW: u64 = 10_000_000;
/// Longest tick that a kernel has (HZ = 24), ns: time 0 falls anywhere within a tick.
const TICK: u64 = 41_666_667;
/// Least sampling interval of the summaries, ns.
const LEAST_INTERVAL: u64 = 1_000_000;

/// Where packets are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CapturePoint {
    /// All devices of the sender.
    Sender,
    /// The device towards the receiver of the router in the middle: of a chain's even number the one before its middle.
    Router,
    /// All devices of the receiver.
    Receiver,
}

impl CapturePoint {
    /// Its name, as part of a file's name.
    pub fn name(self) -> &'static str {
        match self {
            CapturePoint::Sender => "sender",
            CapturePoint::Router => "router",
            CapturePoint::Receiver => "receiver",
        }
    }
}

/// A trial to be run.
#[derive(Clone, Copy, Debug)]
pub struct Course<'a> {
    /// The scenario.
    pub plan: &'a Plan,
    /// The trial's seed.
    pub seed: u64,
    /// Time 0 on the monotonic clock, ns: see [`time_zero`].
    pub zero: u64,
    /// Sampling interval of the summaries, ns.
    pub sample_ns: u64,
    /// What its flows do besides their plans.
    pub options: Options,
    /// Where packets are recorded, and the file of each place.
    pub captures: &'a [(CapturePoint, PathBuf)],
    /// Whether the network's own account is held against the plan ([`prove`]); a program that makes the path may know more.
    pub is_proved: bool,
}

/// A trial that has ended.
pub struct Finished {
    /// Its result.
    pub report: Report,
    /// What was seen while it ran.
    pub watched: Watched,
    /// Its flows with their sockets.
    pub flows: Vec<Arc<Flow>>,
}

/// A time 0 for a network that is complete now: at a place within the kernel's tick that depends on the seed.
pub fn time_zero(plan: &Plan, seed: u64) -> u64 {
    sys::now() + LEAD + LEAD_PER_FLOW * plan.flows.len() as u64 + mix(seed, 0) % TICK
}

/// The first time after `zero` that lies as the plan has it before a tick of a kernel with `hz` ticks a second, whose ticks fall on whole multiples of
/// a tick on the monotonic clock: of one in virtual time they do. `zero` itself where the plan leaves it to the seed.
pub fn at_phase(zero: u64, plan: &Plan, hz: u32) -> u64 {
    let tick = 1_000_000_000 / u64::from(hz);
    plan.tick_phase_ns.map_or(zero, |phase| (zero + phase % tick).next_multiple_of(tick) - phase % tick)
}

impl Course<'_> {
    /// Runs the trial; the calling thread ends in one of the network's namespaces.
    pub fn run(&self, network: &mut dyn Network) -> Result<Finished, CourseError> {
        let plan = self.plan;
        let clock = Clock { zero: self.zero, end: plan.duration_ns, slack: plan.timer_slack_ns, noise: plan.wake_noise_ns };
        sys::allow_descriptors();
        let flows = self.prepare(network)?;
        let traffic = Traffic::prepare(plan, self.seed, self.options, network)?;
        let recorders = self.record(network).map_err(at("pcap"))?;
        let mut running = Vec::with_capacity(flows.len());
        for (i, flow) in flows.into_iter().enumerate() {
            let [_, to] = ends(network, plan.flows[i].place, plan.flows[i].up);
            running.push(flow.start(i, to.address, clock).map_err(at("thread"))?);
        }
        let traffic = traffic.start(network, clock)?;
        let mut watched = watch(plan, network, &running, clock.zero, self.sample_ns.max(LEAST_INTERVAL))?;
        let flows: Vec<_> = running.into_iter().map(Running::join).collect();
        let mut report = Report { duration_ns: plan.duration_ns, queues: network.queues()?, ..Report::default() };
        report.flows = flows.iter().zip(&mut watched.flows).map(|(f, seen)| flow_summary(f, seen, clock.zero, plan.duration_ns)).collect();
        report.caveats.append(&mut watched.caveats);
        report.caveats.append(&mut network.faults()?);
        report.caveats.extend(flows.iter().filter_map(|f| f.trouble()));
        report.caveats.extend(PlayerSummary::caveat(report.flows.iter().filter_map(|f| f.player)));
        traffic.finish(&mut report, &mut watched.probes);
        count(&mut report, plan, network).map_err(at("counters"))?;
        if self.is_proved {
            report.proof = prove(plan, &report.queues, &report.flows, &report.counters, &mut report.caveats);
        }
        report.caveats.extend(recorders.into_iter().filter_map(Recorder::finish));
        Ok(Finished { report, watched, flows })
    }

    /// Starts a recorder at each place; the calling thread ends in the sender's namespace.
    fn record(&self, network: &dyn Network) -> io::Result<Vec<Recorder>> {
        let mut recorders = Vec::with_capacity(self.captures.len());
        let [from, to] = self.plan.flows.first().map_or_else(|| ends(network, 0, false), |flow| ends(network, flow.place, flow.up));
        for (place, path) in self.captures {
            let (namespace, device) = match place {
                CapturePoint::Sender => (Some(from.namespace), None),
                CapturePoint::Router => network.router().map_or((None, None), |(namespace, device)| (Some(namespace), Some(device))),
                CapturePoint::Receiver => (Some(to.namespace), None),
            };
            let device = device.map(|name| CString::new(name).expect("a device's name"));
            let none = || io::Error::new(io::ErrorKind::InvalidInput, "the path has no router; add a stage, or record at an end");
            sys::enter(namespace.ok_or_else(none)?)?;
            recorders.push(Recorder::start(path, device.as_deref(), self.zero)?);
        }
        sys::enter(from.namespace)?;
        Ok(recorders)
    }

    /// The flows with their sockets, all listening.
    fn prepare(&self, network: &dyn Network) -> Result<Vec<Flow>, CourseError> {
        let plans = &self.plan.flows;
        let listen = |(i, f): (usize, &FlowPlan)| {
            let [_, to] = ends(network, f.place, f.up);
            sys::enter(to.namespace).map_err(at("namespace"))?;
            Flow::listen(f, i, self.options).map_err(at("listen"))
        };
        let listeners: Result<Vec<_>, _> = plans.iter().enumerate().map(listen).collect();
        let dial = |(i, (f, listener)): (usize, (&FlowPlan, _))| {
            let [from, _] = ends(network, f.place, f.up);
            sys::enter(from.namespace).map_err(at("namespace"))?;
            Flow::dial(f, listener, self.options, mix(self.seed, i as u64 + 1)).map_err(at("socket"))
        };
        plans.iter().zip(listeners?).enumerate().map(dial).collect()
    }
}

/// The hosts where data begin and those where they end, each once; the first place's where nothing is sent by connections.
fn all_ends<'a>(plan: &Plan, network: &'a dyn Network) -> [Vec<BorrowedFd<'a>>; 2] {
    let joins = plan.connections().map(|flow| (flow.place, flow.up));
    let distinct: BTreeSet<(usize, bool)> = joins.collect();
    let distinct = if distinct.is_empty() { BTreeSet::from([(0, false)]) } else { distinct };
    [0, 1].map(|end| distinct.iter().map(|&(place, up)| ends(network, place, up)[end].namespace).collect())
}

/// The kernel's counters of the hosts of both kinds, and what they say about a single flow.
fn count(report: &mut Report, plan: &Plan, network: &dyn Network) -> io::Result<()> {
    for (host, namespaces) in ["sender", "receiver"].into_iter().zip(all_ends(plan, network)) {
        for namespace in namespaces {
            sys::enter(namespace)?;
            for file in ["netstat", "snmp"] {
                counters(host, &std::fs::read_to_string(format!("/proc/thread-self/net/{file}"))?, &mut report.counters);
            }
        }
    }
    if let [flow] = &mut report.flows[..] {
        let sum = |names: &[&str]| Some(names.iter().map(|n| report.counters.get(&format!("sender.TcpExt.{n}")).unwrap_or(&0)).sum());
        flow.rtos = flow.rtos.or_else(|| sum(&["TCPTimeouts"]));
        flow.fast_recoveries = sum(&["TCPSackRecovery", "TCPRenoRecovery"]);
        flow.undos = sum(&["TCPFullUndo", "TCPPartialUndo", "TCPDSACKUndo", "TCPLossUndo"]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_0_lies_before_a_tick_as_the_plan_has_it() {
        let mut plan: Plan = serde_json::from_str(r#"{"duration_ns": 1, "flows": []}"#).unwrap();
        assert_eq!(at_phase(12_345_678, &plan, 100), 12_345_678);
        for phase in [0, 1, 3_000_000, 9_999_999, 13_000_000] {
            plan.tick_phase_ns = Some(phase);
            let zero = at_phase(12_345_678, &plan, 100);
            assert!((12_345_678..12_345_678 + 10_000_000).contains(&zero), "{zero}");
            assert_eq!((zero + phase) % 10_000_000, 0);
        }
    }
}
